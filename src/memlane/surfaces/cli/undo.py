"""`memlane undo`: take back what a plan did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import with_bank
from memlane.surfaces.cli.output import print_json, print_line, print_result, say

if TYPE_CHECKING:
    from memlane.history.undo import Applied

FEW = 3  # how many ids of a plan are listed


@click.command()
@click.argument("id", required=False)
@click.option("--list", "list_", is_flag=True, help="List what can be undone, the latest first.")
@with_bank
def undo(bank: Bank, id: str | None, list_: bool, as_json: bool) -> None:
    """Take back what `review --apply`, `merge` or a lane's own pruning did last, or under this ID.

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
        plans = applied(bank)
        rows = ((plan.id, plan.what, plan.state, _steps(plan)) for plan in plans)
        print_result(plans, as_json, rows, talk="" if plans else "nothing was applied yet")
        return
    done = bank.undo(id)
    if as_json:
        print_json(done)
    else:
        for path in done.restored:
            print_line(path)
        for path, why in done.conflicts:
            say(f"left as it is: {path} {why}")
        say(f"{'partly undone' if done.conflicts else 'undone'}: {done.what} {done.of}")
        if done.id:
            say(f"`memlane undo {done.id}` does it again")
    if done.conflicts:
        click.get_current_context().exit(5)


def _steps(plan: Applied) -> str:
    """The first ids that a plan changed, and how many more there are."""
    ids = [id for id, _ in plan.steps]
    return ", ".join(ids[:FEW]) + (f" and {len(ids) - FEW} more" if len(ids) > FEW else "")
