"""`memlane forget`: remove memories for good."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.core.errors import InvalidInput
from memlane.gate import shown
from memlane.surfaces.cli.options import ids_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_rows, say

if TYPE_CHECKING:
    from memlane.care.forget import Forgotten


@click.command()
@ids_argument(required=False)
@click.option("--captured", is_flag=True, help="All that was captured and distilled, instead of single memories.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed and what could not.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_bank
def forget(bank: Bank, ids: tuple[str, ...], captured: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove memories for good: from files, trash, archives, index and exported blocks. There is no way back.

    What stays is a hash, so that capture and import do not bring the text back. Prints what cannot be reached from
    here, git's history for one, with the command for it.

    --captured takes all captured messages and distilled notes, also deleted ones, with the log of the bank's sessions.
    Of these no hash stays: a transcript that the client has kept can be captured again.

    \b
    $ memlane forget notes:deploy-day --dry-run
    $ memlane forget notes:deploy-day --yes
    $ memlane forget --captured
    """
    if captured == bool(ids):
        raise InvalidInput("Either memories are forgotten or all that was captured.", hint="Give ids, or --captured.")
    from memlane.care.forget import forget_captured

    remove = partial(forget_captured, bank) if captured else partial(bank.forget, *ids)
    if not dry_run and not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(
                "There is no way back, and no terminal to ask at. Nothing was changed.",
                hint="Look with --dry-run, then give --yes.",
            )
        preview = remove(dry_run=True)
        for piece in preview.removed:
            say(f"{piece.what}: {piece.path}")
        click.confirm(f"Remove {_named(preview, captured)} for good?", abort=True, err=True)
    done = remove(dry_run=dry_run)
    if as_json:
        print_json({"applied": not dry_run, **done.to_dict()})
        return
    print_rows(("would remove" if dry_run else "removed", piece.what, piece.path) for piece in done.removed)
    print_rows(("left", left.where, left.why, left.command) for left in done.left)
    say("nothing was changed" if dry_run else f"forgotten: {_named(done, captured)}")


def _named(done: Forgotten, captured: bool) -> str:
    """The memories in words: of what was captured, there are too many to name."""
    count = len(done.ids)
    return (
        f"{count:,} captured {'memory' if count == 1 else 'memories'}" if captured else ", ".join(map(shown, done.ids))
    )
