"""`memlane undo` and `redo`: take back what was changed, and do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import Count, with_bank
from memlane.surfaces.cli.output import print_json, print_line, print_result, say

if TYPE_CHECKING:
    from memlane.history.undo import Applied, Undone

FEW = 3  # how many ids of a change are listed
LISTED = 20


@click.command()
@click.argument("which", metavar="[N|ID]", required=False)
@click.option("--list", "list_", is_flag=True, help="List what was changed, the latest first.")
@click.option("--limit", "-n", type=Count(1), default=LISTED, show_default=True, help="With --list.")
@with_bank
def undo(bank: Bank, which: str | None, list_: bool, limit: int, as_json: bool) -> None:
    """Take back the last change of any kind, the last N, or the one of this ID.

    A change is what one command, one tool call of an agent, one hook or one call in Python did. A file goes back to
    what it was only if it is still as the change left it. What has changed since is named and left alone, exit code 5.
    `memlane redo` does again what was undone last.

    \b
    $ memlane undo --list
    $ memlane undo
    $ memlane undo 3
    $ memlane undo c17
    """
    if list_:
        if which is not None:
            raise click.UsageError("Give N, an ID or --list, not several.")
        print_changes(bank, limit, as_json)
        return
    count = int(which) if which and which.isdecimal() and len(which) < 6 else None
    if count == 0:
        raise click.UsageError("N is 1 or more.")
    done: list[Undone] = []
    for _ in range(count or 1):
        done.append(bank.undo(None if count else which))
        if not as_json:
            _print(done[-1])
        if done[-1].conflicts:
            break
    if as_json:
        print_json(done if count else done[0])
    _say_of_users(bank, done[0].of)
    if done[-1].conflicts:
        click.get_current_context().exit(5)


@click.command()
@with_bank
def redo(bank: Bank, as_json: bool) -> None:
    """Do again what was undone last, unless something else was changed since.

    \b
    $ memlane undo
    $ memlane redo
    """
    done = bank.redo()
    if as_json:
        print_json(done)
    else:
        _print(done)
    if done.conflicts:
        click.get_current_context().exit(5)


def print_changes(bank: Bank, limit: int, as_json: bool) -> None:
    """What was changed here, the latest first."""
    from memlane.history.undo import applied

    changes = applied(bank, limit)
    rows = ((one.id, one.at, one.by, one.what, _state(one), _ids(one)) for one in changes)
    print_result(changes, as_json, rows, talk="" if changes else "nothing was changed yet")


def _print(done: Undone) -> None:
    for path in done.restored:
        print_line(path)
    for path, why in done.conflicts:
        say(f"left as it is: {path} {why}")
    again = done.what == "undo"
    word = "done again" if again else "undone"
    say(f"{'partly ' if done.conflicts else ''}{word}: {done.what} {done.of}")
    if done.id and not again:
        say("`memlane redo` does it again")


def _say_of_users(bank: Bank, of: str) -> None:
    """Tell that the user's own bank was changed after what was just taken back: perhaps that was meant."""
    from memlane.history.undo import latest

    own = bank.under and latest(bank.under)
    change = bank.journal and bank.journal.get(int(of[1:]))
    if own and change and own.at > change.at:
        say(f"your own bank was changed after that ({own.verb} {own.id}): `memlane --user undo` takes that back")


def _state(one: Applied) -> str:
    if one.state == "applied":
        return f"of {one.undoes}" if one.undoes else ""
    return one.state


def _ids(one: Applied) -> str:
    """The first ids that a change was about, and how many more there are."""
    return ", ".join(one.ids[:FEW]) + (f" and {len(one.ids) - FEW} more" if len(one.ids) > FEW else "")
