"""A file that has changed is indexed anew, however little its size and its times tell."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memlane import Bank
from memlane.core.model import Memory, Problem
from memlane.index.seal import IndexFile
from memlane.index.store import Index
from memlane.lanes.notes.store import NoteLane

FIRST, SECOND = "the first of two\n", "a second of them\n"


class Racing(NoteLane):
    """Two programs save a note at the same moment: one before its file is looked at, the other once it was read."""

    def files(self) -> Iterator[str | Problem]:
        now = time.time_ns()
        for name, text in (("first", FIRST), ("second", SECOND)):
            Path(self.root, name).write_text(text)
            os.utime(Path(self.root, name), ns=(now, now))
        yield self._saved("first")

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        yield from list(super().parse(path))
        self._saved("second")

    def _saved(self, name: str) -> str:
        return str(Path(self.root, name).rename(Path(self.root, "note.md")))


def texts(index: Index) -> list[str]:
    return [memory.text for _, memory in index.every_memory()]


def test_two_changes_within_one_tick_of_the_clock(tmp_path: Path) -> None:
    file = IndexFile.of(tmp_path, tmp_path / "state")
    for lane in (Racing(tmp_path), NoteLane(tmp_path)):
        with closing(Index(file, lambda: [lane], "none")) as index:  # noqa: B023
            index.refresh()
            found = texts(index)
    assert found == [SECOND]


def test_a_change_that_keeps_size_and_time(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        note = bank.root / "note.md"
        note.write_text(FIRST)
        os.utime(note, ns=(10**18, 10**18))
        bank.search("first")
        note.write_text(SECOND)
        os.utime(note, ns=(10**18, 10**18))
        assert [hit.memory.text for hit in bank.search("second")] == [SECOND]


def stamps(bank: Bank) -> list[tuple[int, int, int]]:
    bank.index  # noqa: B018 - made when first asked for
    with sqlite3.connect(bank.root / "indices/index.db") as db:
        return db.execute("SELECT size, mtime, ctime FROM files").fetchall()


def test_a_file_that_was_young_is_looked_at_once_more(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        note = bank.root / "note.md"
        while not (found := stamps(bank)) or found[0][2] >= 0:  # a busy machine may take long until it looks
            note.write_text(FIRST)
            bank.index.note(bank.lane("notes"), str(note))
        info = note.stat()
        assert found[0][:2] == (info.st_size, info.st_mtime_ns)
        while stamps(bank)[0][2] < 0:
            bank.index.refresh(force=True)
        assert stamps(bank) == [(info.st_size, info.st_mtime_ns, info.st_ctime_ns)]


def test_an_edit_in_place_before_another_process_appends_reaches_those_who_come_later(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        first = bank.add("The server port is 8080.", lane="vault")
        bank.add("Backups run on Sunday at night.", lane="vault")
        assert bank.search("server port")[0].memory.text == first.text
        edited = bank.vault.path.read_bytes().replace(b"8080", b"9090")
        with bank.vault.path.open("r+b") as file:
            file.write(edited)
        with Bank.open(tmp_path) as other:
            other.vault.add_memory("Logins use signed cookies.", "shared", "fact")
        assert bank.search("server port")[0].memory.text == "The server port is 9090."
    with Bank.open(tmp_path) as later:
        assert later.search("server port")[0].memory.text == "The server port is 9090."


def test_a_slow_process_does_not_write_over_what_a_quicker_one_has_indexed_since(tmp_path: Path) -> None:
    file, note = IndexFile.of(tmp_path, tmp_path / "state"), tmp_path / "note.md"
    note.write_text(FIRST)
    with closing(Index(file, lambda: [NoteLane(tmp_path)], "none")) as quick:

        class Outrun(NoteLane):
            """Its notes are saved, and indexed by another process, once they were read."""

            def parse(self, path: str) -> Iterator[Memory | Problem]:
                yield from list(super().parse(path))
                if note.read_text() == FIRST:
                    note.write_text(SECOND)
                    quick.refresh()

        with closing(Index(file, lambda: [Outrun(tmp_path)], "none")) as slow:
            slow.refresh()
            assert texts(slow) == [SECOND]
        assert texts(quick) == [SECOND]
