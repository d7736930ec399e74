"""`memlane undo`: the way back from what a plan has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.surfaces.cli.output import as_json, print_json, print_rows, say, with_bank

if TYPE_CHECKING:
    from memlane.history.undo import Applied

FEW = 3


@click.command()
@click.argument("id", required=False)
@click.option("--list", "list_", is_flag=True, help="List what can be undone, the latest first.")
@as_json
@with_bank
def undo(bank: Bank, id: str | None, list_: bool, as_json: bool) -> None:
    """Take back what `upkeep --apply`, `prune --apply`, `merge` or `records retain --apply` did last, or under this ID.

    A file goes back to what it was only if it is still as the plan left it. What has changed since is named and left
    alone, exit code 5. Undoing an undo, by its ID, does it again.

    \b
    $ memlane undo --list
    $ memlane undo
    """
    from memlane.history.undo import applied

    if list_:
        if id is not None:
            raise click.UsageError("Give an ID or --list, not both.")
        found = applied(bank)
        if as_json:
            print_json([one.to_dict() for one in found])
            return
        print_rows((one.id, one.what, one.state, _steps(one)) for one in found)
        if not found:
            say("nothing was applied yet")
        return
    done = bank.undo(id)
    if as_json:
        print_json(done.to_dict())
    else:
        for path in done.restored:
            click.echo(path)
        for path, why in done.conflicts:
            say(f"left as it is: {path} {why}")
        say(f"undone: {done.what} {done.of}" if not done.conflicts else f"partly undone: {done.what} {done.of}")
        if done.id:
            say(f"`memlane undo {done.id}` does it again")
    if done.conflicts:
        click.get_current_context().exit(5)


def _steps(one: Applied) -> str:
    """What it changed, in a few words."""
    ids = [id for id, _ in one.steps]
    return ", ".join(ids[:FEW]) + (f" and {len(ids) - FEW} more" if len(ids) > FEW else "")
