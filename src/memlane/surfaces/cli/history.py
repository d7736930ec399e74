"""`memlane history` and `memlane log`: the versions of a memory, and the bank's commits in git."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.history import versions as histories
from memlane.recall.address import find_any
from memlane.surfaces.cli.options import id_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_result, print_rows, print_text, say


@click.command()
@id_argument
@click.option("--show", "version", metavar="VERSION", help="Print the text of this version.")
@with_bank
def history(bank: Bank, id: str, version: str | None, as_json: bool) -> None:
    """List the versions of a memory, the newest first; of a deleted one, too.

    Of a vault record: the lines of its log. Of any other memory: the commits of its file, where the bank is in git.

    \b
    $ memlane history notes:deploy-day
    $ memlane history vault:3f9a1c0b7d2e --show 2
    """
    if version is not None:
        shown = histories.show(bank, id, version)
        if as_json:
            print_json(shown)
        else:
            say(" · ".join(fact for fact in (shown.version[:12], iso(shown.at), shown.author, shown.what) if fact))
            print_text(shown.text or "")
        return
    versions = histories.history(bank, id)
    several = f"these are the commits of {versions[0].path}, which holds more than this entry"
    is_entry = find_any(bank, id).lane.name == "topics"
    rows = (
        (each.version[:12], iso(each.at) or "", each.author or "", each.what, *([each.text] if each.text else []))
        for each in versions
    )
    print_result(versions, as_json, rows, notes=[several] if is_entry else [])


@click.command()
@click.argument("id", required=False)
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many commits."
)
@with_bank
def log(bank: Bank, id: str | None, limit: int, as_json: bool) -> None:
    """List the git commits that changed memories (or the one of ID), the newest first: + added, ~ changed, - removed.

    ! marks a file that was left out, and why: a name that leads out of the bank, or one that is too large.

    \b
    $ memlane log -n 5
    $ memlane log notes:deploy-day
    """
    changes = bank.log(id, limit)
    if as_json:
        print_json(changes)
        return
    for change in changes:
        print_rows([(change.commit[:12], (iso(change.date) or "")[:10], change.author, change.subject)])
        for sign, memories in (("+", change.added), ("~", change.changed), ("-", change.removed)):
            print_rows((sign, id, title) for id, title in memories)
        print_rows(("!", path) for path in change.left_out)
    if not changes:
        say("no commit has memories yet")
