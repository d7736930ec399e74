"""`memlane rm`, `restore` and `trash`: deleting memories and bringing them back."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.surfaces.cli.options import id_argument, ids_argument, with_bank
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
@id_argument
@with_bank
def restore(bank: Bank, id: str, as_json: bool) -> None:
    """Bring back a deleted memory.

    \b
    $ memlane restore notes:deploy-day
    """
    print_written(bank.restore(id), as_json, "restored to")


@click.command()
@with_bank
def trash(bank: Bank, as_json: bool) -> None:
    """List what `restore` can bring back.

    \b
    $ memlane trash
    """
    removed = bank.removed()
    print_result(removed, as_json, ((item.id, iso(item.removed_at) or "", str(item.path)) for item in removed))
