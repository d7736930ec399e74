"""`memlane history` and `changes`: the versions of a memory, the bank's commits in git, and what changed since."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.history import git
from memlane.history import versions as histories
from memlane.lanes.answers import Version
from memlane.recall import under
from memlane.recall.address import find_any
from memlane.surfaces.cli.options import Count, complete_id, with_bank
from memlane.surfaces.cli.output import print_json, print_result, print_rows, print_text, say
from memlane.surfaces.cli.undo import print_changes

COMMITS = 20  # of a bank, unless --limit says how many


@click.command()
@click.argument("id", required=False, shell_complete=complete_id)
@click.option("--show", "version", metavar="VERSION", help="Print the text of this version.")
@click.option("--diff", is_flag=True, help="Print what each version changed.")
@click.option("--limit", "-n", type=Count(1), help=f"At most so many; without an ID, {COMMITS} if it is not given.")
@with_bank
def history(bank: Bank, id: str | None, version: str | None, diff: bool, limit: int | None, as_json: bool) -> None:
    """List the versions of a memory, the newest first; without an ID, what changed the bank.

    Of a vault record: its numbers. Of any other memory, a deleted one too: the changes that memlane made (c17, by which
    surface or client), and the commits of its file where the bank is in git. `memlane restore ID --version VERSION`
    brings one back.

    Without an ID: the git commits that changed memories, or outside of git the changes that memlane made. A commit's
    memories are marked: + added, ~ changed, - removed, and ! for a file that was left out, because its name leads out
    of the bank or it is too large.

    \b
    $ memlane history notes:deploy-day
    $ memlane history notes:deploy-day --diff
    $ memlane history vault:3f9a1c0b7d2e --show 2
    $ memlane history -n 5
    """
    if id is None:
        if version is not None or diff:
            raise click.UsageError("--show and --diff need the ID of a memory.")
        if git.top(bank.root) is None:
            print_changes(bank, limit or COMMITS, as_json)
        else:
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
    if diff:
        _print_differences(bank, id, versions[:limit], versions, as_json)
        return
    several = f"commits are of {versions[-1].path}, which holds more than this entry"
    is_entry = any(len(each.version) > 12 for each in versions) and find_any(bank, id).lane.name == "topics"
    versions = versions[:limit]
    rows = (
        (each.version[:12], iso(each.at) or "", each.author or "", each.what, *([each.text] if each.text else []))
        for each in versions
    )
    print_result(versions, as_json, rows, notes=[several] if is_entry else [])


def _print_differences(bank: Bank, id: str, shown: list[Version], versions: list[Version], as_json: bool) -> None:
    """What each version changed of the one before it."""
    from difflib import unified_diff

    texts = {each.version: histories.show(bank, id, each.version).text or "" for each in versions[: len(shown) + 1]}
    found = []
    for number, each in enumerate(shown):
        before = versions[number + 1].version if number + 1 < len(versions) else None
        old = texts[before].splitlines() if before is not None else []
        names = (before or "", each.version)
        lines = list(unified_diff(old, texts[each.version].splitlines(), *names, lineterm="", n=1))
        found.append({**each.to_dict(), "diff": lines})
        if not as_json:
            print_rows([(each.version[:12], iso(each.at) or "", each.author or "", each.what)])
            print_text("\n".join([*lines[2:], ""]))
    if as_json:
        print_json(found)


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


@click.command()
@click.option(
    "--since", metavar="CURSOR", help="After this, which an earlier call has printed; `now` prints one alone."
)
@click.option("--limit", "-n", type=Count(1), help="At most about so many; a change is not cut in two.")
@with_bank
def changes(bank: Bank, since: str | None, limit: int | None, as_json: bool) -> None:
    """List what was changed, memory by memory, the oldest first, for programs that follow a bank.

    Of each: when, the id, the version that it has now (`gone` where it is deleted), what was done and by whom. The last
    line on stderr has the cursor to go on with. What an editor or git has written is not in the list.

    \b
    $ memlane changes --since now
    $ memlane changes --since 17-3fa2c1 --json
    """
    found = bank.changes(since, limit)
    if as_json:
        print_json(found.to_dict())
        return
    print_rows((iso(one.at) or "", one.id, one.version or "gone", one.verb, one.by) for one in found.changes)
    if not found.complete:
        say("note: the journal does not reach back that far; read everything anew")
    say(f"{'more: ' if found.more else ''}go on with --since {found.cursor}")
