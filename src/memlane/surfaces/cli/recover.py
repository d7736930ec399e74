"""`memlane recover`: bring back what vanished without memlane."""

from __future__ import annotations

import sys

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import apply_option, ids_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_rows, say, say_notes


@click.command()
@ids_argument("names", required=False)
@apply_option
@with_bank
def recover(bank: Bank, names: tuple[str, ...], applied: bool, as_json: bool) -> None:
    """Show what is gone or changed back without memlane (git clean, checkout, rm), and bring it back.

    What was deleted with memlane is not among it, nor what somebody changed by hand since. What git has on another
    branch is only named, unless you name it, too. On a terminal it asks; else --apply does it. `memlane undo` takes it
    back.

    \b
    $ memlane recover
    $ memlane recover --apply
    $ memlane recover notes:deploy-day --apply
    """
    from memlane.history import recover as recovery

    found = recovery.lost(bank)
    wanted = recovery.chosen(found, names)
    if not as_json:
        for one in found:
            where = f"on branch {one.branch}" if one.branch else one.place
            print_rows((id, one.what, one.at, one.by, where) for id in one.ids)
    if wanted and not applied and not as_json and sys.stdin.isatty():
        applied = click.confirm(f"Bring back {_files(len(wanted))}?", err=True)
    done, remarks = recovery.recover(bank, names) if applied and wanted else ([], [])
    if as_json:
        print_json({"applied": bool(done), "lost": found, "recovered": [one.name for one in done]})
        return
    say_notes(remarks)
    if done:
        say(f"brought back {_files(len(done))}; `memlane undo` takes that back")
    elif wanted and not applied:
        say("nothing was changed; --apply brings them back")
    elif not found:
        say("nothing is lost")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
