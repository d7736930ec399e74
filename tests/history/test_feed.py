"""What changed since: a cursor that goes on, across processes, and says when the journal does not reach back."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from memlane.core.errors import InvalidInput
from memlane.history.feed import Changes
from samples import LANES, draft


def told(found: Changes) -> list[tuple[str, str, bool]]:
    return [(one.verb, one.id, one.version is None) for one in found.changes]


def test_every_change_is_told_once_and_in_order(bank: Bank) -> None:
    assert bank.changes() == Changes((), "0-0", True)
    bank.add("Herons stand.", title="heron")
    first = bank.changes()
    assert told(first) == [("add", "notes:heron", False)]
    bank.update("notes:heron", "Herons stand still.")
    bank.put("gull", "Gulls cry.")
    bank.move("notes:heron", "birds/heron")
    bank.delete("notes:gull")
    later = bank.changes(first.cursor)
    assert told(later) == [
        ("update", "notes:heron", True),
        ("put", "notes:gull", True),
        ("move", "notes:heron", True),
        ("move", "notes:birds/heron", False),
        ("delete", "notes:gull", True),
    ]
    assert later.changes[3].version == bank.get("notes:birds/heron").version
    assert (later.complete, later.changes[0].by) == (True, "python")
    assert bank.changes(later.cursor) == Changes((), later.cursor, True)


@pytest.mark.parametrize("lane", LANES)
def test_the_memories_of_every_lane_are_named(bank: Bank, lane: str) -> None:
    given = draft(lane, 1)
    made = bank.add(given.text, lane=lane, title=given.title, **given.fields)
    start = bank.changes()
    assert told(start) == [("add", made.id, False)]
    assert start.changes[0].version == bank.get(made.id).version
    bank.undo()
    assert [(one.id, one.version) for one in bank.changes(start.cursor).changes] == [(made.id, None)]


def test_a_cursor_goes_on_in_another_process(bank: Bank, run: Run) -> None:
    cursor = bank.changes("now").cursor
    bank.add("Herons stand.", title="heron")
    bank.close()
    found = run("changes", "--since", cursor, "--json").json
    assert [(one["verb"], one["id"]) for one in found["changes"]] == [("add", "notes:heron")]
    run("rm", "notes:heron")
    done = run("changes", "--since", found["cursor"])
    assert done.out.split("\t")[1:3] == ["notes:heron", "gone"]
    with Bank.open(bank.root.parent) as again:
        assert told(again.changes(found["cursor"])) == [("rm", "notes:heron", True)]


def test_a_limit_cuts_no_change_in_two(bank: Bank) -> None:
    bank.add_many([{"text": f"Heron {number}.", "title": f"heron {number}"} for number in range(3)])
    bank.add("A gull.", title="gull")
    page = bank.changes(limit=1)
    assert ([one.id for one in page.changes], page.more) == ([f"notes:heron-{number}" for number in range(3)], True)
    rest = bank.changes(page.cursor, limit=1)
    assert ([one.id for one in rest.changes], rest.more) == (["notes:gull"], False)


def test_now_is_where_nothing_has_changed_yet(bank: Bank) -> None:
    bank.add("A gull.", title="gull")
    now = bank.changes("now")
    assert (now.changes, now.complete) == ((), True)
    assert bank.changes(now.cursor).changes == ()


def test_what_the_journal_has_dropped_is_said(bank: Bank) -> None:
    bank.put("gull", "A gull.")
    early = bank.changes("now").cursor
    for number in range(4):
        bank.put("gull", f"Gull {number}.")
    late = bank.changes("now").cursor
    bank.put("gull", "The last gull.")
    assert bank.journal
    bank.journal._do(lambda file: file._drop(int(late.partition("-")[0])), None)
    assert bank.changes(early).complete is False
    assert told(bank.changes(late)) == [("put", "notes:gull", False)]
    assert bank.changes(late).complete is True


def test_the_cursor_of_another_journal_does_not_reach(bank: Bank, tmp_path: Path) -> None:
    bank.add("A gull.", title="gull")
    found = bank.changes("99-0")
    assert ([one.id for one in found.changes], found.complete) == (["notes:gull"], False)


@pytest.mark.parametrize("cursor", ["", "x", "12", "-3", "1-", 7])
def test_what_is_no_cursor_is_said(bank: Bank, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not a cursor"):
        bank.changes(cursor)
