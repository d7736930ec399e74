"""`memlane rm` and `restore`: deleting memories and bringing them back."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.recall import under
from memlane.surfaces.cli.options import complete_id, ids_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_line, print_result, print_written, say


@click.command()
@ids_argument()
@with_bank
def rm(bank: Bank, ids: tuple[str, ...], as_json: bool) -> None:
    """Delete memories; `memlane restore ID` brings one back.

    \b
    $ memlane rm notes:deploy-day
    """
    removed = []
    try:
        for id in ids:
            removed.append(bank.delete(id))
    finally:  # what was deleted before an error is printed, too
        if as_json:
            print_json(removed)
        else:
            for item in removed:
                say(f"moved to {item.path}" if item.how == "trash" else f"marked as deleted in {item.path}")
                print_line(item.id)


@click.command()
@click.argument("id", required=False, shell_complete=complete_id)
@with_bank
def restore(bank: Bank, id: str | None, as_json: bool) -> None:
    """Bring back a deleted or archived memory; without an ID, list what was deleted and can come back.

    \b
    $ memlane restore
    $ memlane restore notes:deploy-day
    """
    if id is None:
        removed = under.removed_by(bank)
        print_result(removed, as_json, ((item.id, iso(item.removed_at) or "", str(item.path)) for item in removed))
    else:
        print_written(bank.restore(id), as_json, "restored to")
