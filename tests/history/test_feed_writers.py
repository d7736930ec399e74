"""The feed while others write: whoever makes a change is waited for while it lives, however the change then ends."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from memlane import Bank
from memlane.core.errors import Refused
from memlane.disk import journal
from memlane.history.feed import Changed
from samples import LANES, draft, tries

SECRET = "The token is ghp_R4nd0mV4lueTh4tIsN0tRealAtAll1234567, by hand."
HALF = """
import sys
from memlane import Bank
from memlane.disk import journal
with Bank.open(sys.argv[1]) as bank, journal.change("batch"):
    bank.put("half", "Half of it.")
    print("written", flush=True)
    sys.stdin.read()
"""
WRITER = """
import random, sys
from contextlib import suppress
from memlane import Bank
from memlane.core.errors import Refused
from memlane.disk import journal
name, dice = sys.argv[2], random.Random(sys.argv[2])
with Bank.open(sys.argv[1]) as bank:
    for number in range(1000):
        made = [f"{name}-{number}-{each}" for each in range(dice.randint(1, 3))]
        with suppress(Refused), journal.change("batch"):
            for title in made:
                bank.add(f"The bird {title} was seen.", title=title)
            if dice.random() < 0.3:
                bank.add(sys.argv[3])
        print(*made, flush=True)
"""


@contextmanager
def process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that is killed in the end."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def ids(changes: tuple[Changed, ...]) -> list[str]:
    return [one.id for one in changes]


def in_a_thread(bank: Bank, key: str) -> None:
    """As a change of its own, whatever this thread is doing."""
    thread = Thread(target=bank.put, args=(key, "Gulls cry."))
    thread.start()
    thread.join()


@pytest.mark.parametrize("lane", LANES)
def test_what_a_change_wrote_before_it_was_refused_is_told(bank: Bank, lane: str) -> None:
    start = bank.changes("now").cursor
    good = draft(lane, 1)
    kept = {"text": good.text, "title": good.title, "lane": lane, **good.fields}
    with suppress(Refused), journal.change("batch"):
        bank.add(**kept)
        bank.add(**{**kept, "text": SECRET, "title": "Another"})
    bank.put("gull", "Gulls cry.")
    found = bank.changes(start)
    written = [one.id for one in bank.list(lane=lane) if one.id != "notes:gull"]
    assert (len(written), ids(found.changes), found.complete) == (1, [*written, "notes:gull"], True)
    assert bank.changes(found.cursor).changes == ()


def test_what_comes_after_a_refused_batch_is_told(bank: Bank) -> None:
    start = bank.changes("now").cursor
    with pytest.raises(Refused):
        bank.add_many(["Herons stand.", SECRET])
    bank.put("gull", "Gulls cry.")
    assert ids(bank.changes(start).changes) == ["notes:gull"]


def test_a_change_is_waited_for_while_its_writer_lives_and_not_when_it_was_killed(bank: Bank) -> None:
    start = bank.changes("now").cursor
    with process(HALF, str(bank.root.parent)) as child:
        assert child.stdout
        assert child.stdout.readline() == "written\n"
        bank.put("gull", "Gulls cry.")
        waiting = bank.changes(start)
        assert (waiting.changes, waiting.complete) == ((), True)
        assert bank.changes("now").cursor == waiting.cursor
    found = bank.changes(waiting.cursor)
    assert [(one.verb, one.id) for one in found.changes] == [("batch", "notes:half"), ("put", "notes:gull")]
    assert bank.changes("now").cursor == found.cursor


def test_what_a_failed_change_was_about_and_has_not_written_is_not_told(bank: Bank) -> None:
    entry = draft("topics", 1)
    with suppress(RuntimeError), journal.change("batch", "topics:area/part1/never"):
        made = bank.add(entry.text, lane="topics", title=entry.title, **entry.fields)
        raise RuntimeError("half-way")
    assert ids(bank.changes().changes) == [made.id]


def test_a_change_of_another_thread_is_waited_for(bank: Bank) -> None:
    bank.put("heron", "Herons stand.")
    start = bank.changes("now").cursor
    with journal.change("batch"):
        bank.put("half", "Half of it.")
        in_a_thread(bank, "gull")
        assert bank.changes(start).changes == ()
    assert ids(bank.changes(start).changes) == ["notes:half", "notes:gull"]


def test_a_change_whose_first_write_failed_is_waited_for(bank: Bank) -> None:
    start = bank.changes("now").cursor
    with journal.change("batch"):
        with suppress(OSError), journal.writing(str(bank.root / "notes" / "no.md"), None, b"No"):
            raise OSError("no such luck")
        in_a_thread(bank, "gull")
        middle = bank.changes(start)
        bank.put("half", "Half of it.")
    assert ids((*middle.changes, *bank.changes(middle.cursor).changes)) == ["notes:half", "notes:gull"]


def test_what_is_changed_after_the_newest_was_forgotten_is_told(bank: Bank) -> None:
    bank.put("heron", "Herons stand.")
    bank.put("gull", "Gulls cry.")
    cursor = bank.changes("now").cursor
    bank.forget("notes:gull")
    bank.put("tern", "Terns dive.")
    assert "notes:tern" in ids(bank.changes(cursor).changes)


def test_a_cursor_beyond_the_journal_is_of_one_that_is_gone(bank: Bank) -> None:
    bank.put("gull", "Gulls cry.")
    name = bank.changes("now").cursor.partition("-")[2]
    found = bank.changes(f"99-{name}")
    assert (ids(found.changes), found.complete) == (["notes:gull"], False)
    assert bank.changes(found.cursor).complete is True


@pytest.mark.parametrize("seed", range(tries(1, 3)))
def test_nothing_is_lost_or_told_twice_while_writers_run_fail_and_are_killed(bank: Bank, seed: int) -> None:
    dice = random.Random(seed)
    told: list[Changed] = []
    written: set[str] = set()
    cursor = bank.changes("now").cursor

    def follow() -> None:
        nonlocal cursor
        found = bank.changes(cursor, limit=dice.choice([1, 3, None]))
        assert found.complete
        told.extend(found.changes)
        cursor = found.cursor

    for turn in range(3):
        with (
            process(WRITER, str(bank.root.parent), f"tern{turn}", SECRET) as first,
            process(WRITER, str(bank.root.parent), f"gull{turn}", SECRET) as second,
        ):
            for _ in range(12):
                child = dice.choice([first, second])
                assert child.stdout
                written.update(child.stdout.readline().split())
                follow()
    last = ""
    while last != cursor:
        last = cursor
        follow()
    assert {key for key, count in Counter((one.change, one.id) for one in told).items() if count > 1} == set()
    assert {f"notes:{name}" for name in written} <= set(ids(tuple(told)))
    assert {memory.id for memory in bank.list()} <= set(ids(tuple(told)))
    numbers = [int(one.change[1:]) for one in told]
    assert numbers == sorted(numbers)
