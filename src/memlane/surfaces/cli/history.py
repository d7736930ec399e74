"""`memlane history`: the versions of a memory, and the bank's commits in git."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.history import versions as histories
from memlane.recall import under
from memlane.recall.address import find_any
from memlane.surfaces.cli.options import complete_id, with_bank
from memlane.surfaces.cli.output import print_json, print_result, print_rows, print_text, say

COMMITS = 20  # of a bank, unless --limit says how many


@click.command()
@click.argument("id", required=False, shell_complete=complete_id)
@click.option("--show", "version", metavar="VERSION", help="Print the text of this version.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help=f"At most so many; without an ID, {COMMITS} if it is not given."
)
@with_bank
def history(bank: Bank, id: str | None, version: str | None, limit: int | None, as_json: bool) -> None:
    """List the versions of a memory, the newest first; without an ID, the git commits that changed memories.

    Of a vault record: the lines of its log. Of any other memory, a deleted one too: the commits of its file, where the
    bank is in git. A commit's memories are marked: + added, ~ changed, - removed, and ! for a file that was left out,
    because its name leads out of the bank or it is too large.

    \b
    $ memlane history notes:deploy-day
    $ memlane history vault:3f9a1c0b7d2e --show 2
    $ memlane history -n 5
    """
    if id is None:
        if version is not None:
            raise click.UsageError("--show needs the ID of a memory.")
        _print_commits(bank, limit or COMMITS, as_json)
        return
    bank, id = under.home(bank, id)
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
    versions = versions[:limit]
    rows = (
        (each.version[:12], iso(each.at) or "", each.author or "", each.what, *([each.text] if each.text else []))
        for each in versions
    )
    print_result(versions, as_json, rows, notes=[several] if is_entry else [])


def _print_commits(bank: Bank, limit: int, as_json: bool) -> None:
    changes = bank.log(limit=limit)
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
