"""`memlane share`: what others get through git, and what stays with you."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.exchange.sharing import share as move
from memlane.surfaces.cli.options import complete_id, with_bank
from memlane.surfaces.cli.output import print_json, print_line, say


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_id)
@click.option("--private", is_flag=True, help="Keep them out of git instead.")
@with_bank
def share(bank: Bank, ids: tuple[str, ...], private: bool, as_json: bool) -> None:
    """Let git take memories along, so that others get them, or with --private, leave them out.

    Captured records are private; all other memories are shared, but for the notes in the folder `private`. A note
    moves, and has another id then; a record stays where it is. `records` means all of them. Vault, topics and layers
    are shared as a whole. Nothing is committed.

    \b
    $ memlane share notes:private/deploy-day
    $ memlane share --private notes:salary
    $ memlane share --private records
    """
    done = move(bank, ids, private=private)
    if as_json:
        print_json(done)
        return
    for each in done:
        print_line(each.id)
        for remark in each.remarks:
            say(f"{each.id}: {remark}")
