"""What is forgotten by one process while another one adds to it stays forgotten, and nothing of it is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from memlane import Bank, MemlaneError, NotFound
from memlane.core.model import Draft
from memlane.disk import locks
from memlane.exchange import sharing
from memlane.lanes import NAMES
from synced import at_remote, member, synced

SAID = "Nadia's landlord raised the rent of the flat in Lindenstrasse to twelve hundred."
FIELDS: dict[str, dict[str, Any]] = {
    "notes": {"title": "Rent"},
    "vault": {},
    "topics": {"title": "Rent", "topic": "home", "subtopic": "flat"},
    "records": {"title": "Rent"},
    "layers": {"project": "home", "file_type": "common_patterns"},
}


class Forgetful(Bank):
    """Another process's bank, which forgets, and stops once it has noted that and before it removes anything."""

    noted: Event
    go_on: Event

    def close(self) -> None:
        super().close()
        self.noted.set()
        assert self.go_on.wait(60)


def _locking(bank: Bank, call: Callable[[], None]) -> None:
    """Call this once somebody here holds the lock of something in a bank."""

    def look(path: str) -> None:
        if os.path.realpath(path).startswith(os.path.realpath(bank.root)):
            locks.once_locked.set(None)
            call()

    locks.once_locked.set(look)


def _left(bank: Bank) -> list[str]:
    files = [path for path in Path(bank.root).rglob("*") if path.is_file()]
    return [path.name for path in files if b"Lindenstrasse" in path.read_bytes()]


@pytest.mark.parametrize("lane", NAMES)
@pytest.mark.parametrize("change", ["append", "update", "edit"])
def test_who_adds_to_a_memory_does_not_want_again_what_is_forgotten_in_that_moment(
    tmp_path: Path, lane: str, change: str
) -> None:
    bank = Bank.init(tmp_path)
    id = bank.add(SAID, lane=lane, **FIELDS[lane]).id
    other = Forgetful.open(tmp_path)
    other.noted, other.go_on = Event(), Event()
    thread = Thread(target=other.forget, args=(id,))

    def forget() -> None:
        thread.start()
        assert other.noted.wait(60)

    _locking(bank, forget)
    if change == "append":
        bank.append(id, "It is due on Fridays.")
    elif change == "edit":
        bank.edit(id, "twelve hundred", "a thousand")
    elif lane == "layers":
        pytest.skip("a layer has no other fields")
    else:
        bank.update(id, tags=["home"])
    other.go_on.set()
    thread.join(60)
    assert (_left(bank), bank.tombstones.knows(id)) == ([], True)


@pytest.mark.parametrize("lane", NAMES)
def test_nor_what_a_sync_in_another_process_learns_of_in_that_moment(tmp_path: Path, lane: str) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    for bank in (ann, bob):
        sharing.share(bank, ["records"])
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    id = ann.add(SAID, lane=lane, **FIELDS[lane]).id
    synced(ann, bob)
    ann.forget(id)
    synced(ann)
    waits = Event()

    def watch() -> None:
        locks.on_wait.set(waits.set)  # for the lock of what is being written
        with Bank.open(tmp_path / "bob") as other:
            synced(other)
        waits.set()

    thread = Thread(target=watch)

    def learn() -> None:
        thread.start()
        assert waits.wait(60)

    _locking(bob, learn)
    with suppress(NotFound):  # it is gone as soon as the lock is free
        bob.append(id, "It is due on Fridays.")
    thread.join(60)
    synced(bob, ann, bob)
    assert ([_left(bank) for bank in (ann, bob)], bob.tombstones.knows(id)) == ([[], []], True)
    assert not [path for path, data in at_remote(tmp_path).items() if b"Lindenstrasse" in data]


def test_a_file_is_not_removed_between_being_read_and_being_written(tmp_path: Path) -> None:
    bank, other = Bank.init(tmp_path), Bank.open(tmp_path)
    id = bank.add(SAID, lane="records", **FIELDS["records"]).id
    waits = Event()

    def forget() -> None:
        locks.on_wait.set(waits.set)
        other.forget(id)
        waits.set()

    thread = Thread(target=forget)

    def check(draft: Draft, _: object) -> Draft:  # of what the record will be: it was read by then
        thread.start()
        assert waits.wait(60)
        return draft

    bank.records.checks = (*bank.records.checks, check)
    bank.append(id, "It is due on Fridays.")
    thread.join(60)
    assert (_left(bank), bank.tombstones.knows(id)) == ([], True)


def test_what_is_gone_cannot_be_added_to(tmp_path: Path) -> None:
    bank, other = Bank.init(tmp_path), Bank.open(tmp_path)
    id = bank.add(SAID, title="Rent").id

    def check(draft: Draft, _: object) -> Draft:
        other.forget(id)
        return draft

    bank.notes.checks = (*bank.notes.checks, check)
    with pytest.raises(MemlaneError):
        bank.append(id, "It is due on Fridays.")
    assert (_left(bank), bank.tombstones.knows(id)) == ([], True)
