"""`memlane get`, `list` and `stats`: reading memories of any lane."""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.values import replace
from memlane.disk import files
from memlane.recall import under
from memlane.surfaces.cli.options import (
    archived_option,
    as_of,
    complete_id,
    expired_option,
    filters,
    limit_option,
    offset_option,
    user_option,
    with_bank,
)
from memlane.surfaces.cli.output import (
    one_line,
    print_bytes,
    print_json,
    print_lines,
    print_list,
    print_rows,
    print_text,
    say,
    say_under,
    so_many,
)


@click.command()
@click.argument("id", required=False, shell_complete=complete_id)
@click.option("--key", help="Instead of an ID: exactly the key under which `memlane put` stored it.")
@click.option("--raw", is_flag=True, help="Print the whole file, front matter included.")
@expired_option
@as_of
@with_bank
def get(bank: Bank, id: str | None, key: str | None, raw: bool, expired: bool, as_json: bool) -> None:
    """Print one memory.

    On a terminal it is shown as it is in its file. In a pipe, and as JSON, it is for programs: there a secret that got
    into the file by hand or by git is blanked, as everywhere else.

    \b
    $ memlane get notes:deploy-day
    $ memlane get --key alice@example.org
    """
    for_person = sys.stdout.isatty() and not as_json
    memory = bank.get(id, key=key, expired=expired)
    if raw and not as_json:
        print_bytes(files.read_bytes(memory.file, files.MAX_LOG_BYTES), as_it_is=for_person)
        return
    at, stored = under.found_in(bank, memory.id)
    is_whole = memory == (stored if at is bank else under.as_users(stored))
    if for_person:
        memory = replace(memory, text=stored.text)
    where = "" if as_json else bank.origins([memory]).get(memory.id)
    memory = bank.original(memory)
    if as_json:
        print_json(memory)
        return
    archived = "archived" if memory.status == "archived" else ""
    whose = "your own" if memory.owner else ""
    day = (iso(memory.created_at) or "")[:10]
    ends = f"expires {iso(memory.expires)}" if memory.expires else ""
    facts = [memory.title, whose, day, archived, ends, ", ".join(memory.tags), str(memory.path)]
    say(" · ".join(one_line(fact) for fact in facts if fact))
    if memory.distilled:
        from memlane.care.deciding import evidence

        say(one_line(evidence(memory)))
    if why := bank.held(memory):
        say(f"note: {why}")
    if memory.superseded_by:
        say(f"⚠ replaced by {memory.superseded_by}")
    if memory.replaces:
        say(f"replaces {', '.join(memory.replaces)}")
    if outdated := bank.outdated(memory):
        say(f"⚠ {outdated}")
    if where:
        say(f"⚠ {where}")
    if memory.suspicious:
        say(f"⚠ suspicious: it {', '.join(memory.suspicious)}")
    if not is_whole:
        say("⚠ it holds a secret or personal data: `memlane doctor --only secrets` says where, and what to do")
    print_text(memory.text, as_it_is=True)


@click.command("list")
@limit_option(help="At most this many.")
@offset_option
@filters
@user_option
@archived_option
@expired_option
@as_of
@with_bank
def list_(bank: Bank, as_json: bool, **chosen: Any) -> None:
    """List memories, the newest first.

    \b
    $ memlane list --tag release --since 2025-01-01 -n 10
    $ memlane list --where team=shop
    """
    if as_json:
        print_list(bank, [bank.original(memory) for memory in bank.list(**chosen)])
        return
    from memlane.surfaces.cli.listing import lines

    found = iter(lines(bank, chosen))
    if (first := next(found, None)) is None:
        say("nothing found")
        return
    print_lines(chain([first], found))


@click.command()
@with_bank
def stats(bank: Bank, as_json: bool) -> None:
    """Count what the bank holds, and what sessions were told of it, as far back as `memlane log --sessions` reaches.

    Your own bank, which is read with it, is not counted.

    \b
    $ memlane stats
    """
    counts = bank.stats()
    if as_json:
        print_json(counts)
        return
    from memlane.lanes.notes.store import human_size

    apart = ("archived", "problems", "deleted")
    numbers = zip((counts["archived"], counts["problems"], counts["removed"]), apart, strict=True)
    say(f"{counts['root']}: {so_many(counts['count'])}, {', '.join(f'{number} {what}' for number, what in numbers)}")
    print_rows((name, f"{lane['count']}", human_size(lane["bytes"])) for name, lane in counts["lanes"].items())
    _print_told(counts["told"])
    say_under(bank)


def _print_told(told: dict[str, Any]) -> None:
    """Print what sessions were told, if anything: how often, how useful it was, and which memories most."""
    if not told["prompts"] and not told["injections"]:
        return
    share = "" if told["share_useful"] is None else f", {told['share_useful']:.0%} of them useful"
    say(
        f"given to sessions: {told['injections']:,} times, {told['judged']:,} judged{share}; "
        f"prompts: {told['prompts']:,}, {told['prompts_without']:,} without memory"
    )
    print_rows((one["id"], f"given {one['times']}", f"useful {one['useful']}") for one in told["most_given"])
