"""An index whose askers do not wait for what takes long: it is left to whoever has time."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from memlane import Bank
from memlane.disk.walking import is_settled
from memlane.index.peek import with_content


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    bring(bank, 0, 2)
    bank.index.refresh()
    bank.index.refresh()  # the second look begins to listen
    bank.index.few = 3
    return bank


def bring(bank: Bank, first: int, count: int) -> None:
    """Write notes, and be back once they are old enough that a look at their times is enough."""
    for number in range(first, first + count):
        (bank.root / f"n{number}.md").write_text(f"Note {number}.\n")
    last = (bank.root / f"n{first + count - 1}.md").stat().st_ctime_ns
    while not is_settled(last, time.time_ns()):
        pass


def with_time(bank: Bank) -> None:
    bank.index.few = None
    bank.index.refresh(now=True)
    bank.index.few = 3


def known(bank: Bank) -> tuple[int, bool]:
    return len(bank.index.ask(bank.index.ids)), bank.index.complete


def test_a_few_changed_files_are_indexed_at_once(bank: Bank) -> None:
    bring(bank, 2, 3)
    assert known(bank) == (5, True)


def test_many_changed_files_are_left_until_somebody_has_time(bank: Bank) -> None:
    bring(bank, 2, 4)
    assert [known(bank), known(bank)] == [(2, False), (2, False)]
    with_time(bank)
    assert known(bank) == (6, True)


def test_so_many_that_nobody_can_say_which_are_left(bank: Bank) -> None:
    bring(bank, 2, 300)
    assert known(bank) == (2, False)
    with_time(bank)
    assert known(bank) == (302, True)


def test_many_deleted_files_are_left(bank: Bank) -> None:
    bring(bank, 2, 300)
    with_time(bank)
    for path in bank.root.glob("n*.md"):
        path.unlink()
    assert known(bank) == (302, False)
    with_time(bank)
    assert known(bank) == (0, True)


def test_an_index_that_is_gone_is_made_whole_whatever_it_takes(bank: Bank) -> None:
    bring(bank, 2, 4)
    assert known(bank) == (2, False)
    (bank.root / "indices/index.db").unlink()
    assert known(bank) == (6, True)


def test_what_need_not_be_written_at_once_is_left_until_somebody_has_time(bank: Bank) -> None:
    """A stamp that says that a file is old enough: else every reader would write after every write of another."""
    with Bank.open(bank.root.parent) as other:
        other.index.refresh()
        path = other.add("Note of another.", title="Other").file
    info = os.stat(path)
    while not is_settled(info.st_ctime_ns, time.time_ns()):
        pass
    young = with_content((info.st_size, info.st_mtime_ns, -1, info.st_ino), path)[2]
    bank.index._db.execute("UPDATE files SET ctime = ? WHERE path = ?", (young, path))

    def stamp() -> int:
        ((ctime,),) = bank.index.rows("SELECT ctime FROM files WHERE path = ?", path)
        return int(ctime)

    assert (known(bank), stamp()) == ((3, True), young)
    with_time(bank)
    assert (known(bank), stamp()) == ((3, True), info.st_ctime_ns)


def test_an_index_that_rests_is_asked_as_it_is(bank: Bank) -> None:
    bank.index.rests = True
    bring(bank, 2, 1)
    assert known(bank) == (2, True)
    bank.index.rests = False
    assert known(bank) == (3, True)


def test_an_index_that_rests_and_is_gone_is_made_anew(bank: Bank) -> None:
    bank.index.rests = True
    shutil.rmtree(bank.root / "indices")
    assert known(bank) == (2, True)
