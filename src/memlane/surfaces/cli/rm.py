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
@click.option("--version", metavar="VERSION", help="Bring back what it said in this version: see `memlane history ID`.")
@with_bank
def restore(bank: Bank, id: str | None, version: str | None, as_json: bool) -> None:
    """Bring back a deleted or archived memory, or an earlier version; without an ID, list what was deleted.

    \b
    $ memlane restore
    $ memlane restore notes:deploy-day
    $ memlane restore notes:deploy-day --version c17
    """
    if id is None and version is not None:
        raise click.UsageError("--version needs the ID of a memory.")
    if id is None:
        removed = under.removed_by(bank)
        print_result(removed, as_json, ((item.id, iso(item.removed_at) or "", str(item.path)) for item in removed))
    else:
        print_written(bank.restore(id, version), as_json, "restored to")
