"""An index that goes back in time, as from a backup, is told from one that has only grown since."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from memlane import Bank
from memlane.disk.walking import is_settled
from memlane.index import kept_columns, kept_look, steps
from memlane.index.database import open_in_memory
from memlane.index.peek import kept_from


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep of a small bank what is kept of a large one."""
    monkeypatch.setattr(kept_columns, "SMALL", 1)
    monkeypatch.setattr(kept_columns, "MANY", 1)
    monkeypatch.setattr(kept_look, "FEW", 1)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    for number in range(6):
        write(bank, f"base-{number}", f"Apples of tree {number} in the orchard.")
    bank.search("apples")
    return bank


def write(bank: Bank, name: str, text: str) -> None:
    (bank.root / f"{name}.md").write_text(f"{text}\n")


def go_back(bank: Bank, content: bytes) -> None:
    """As `cp` does it: in place."""
    with bank.index_file.path.open("r+b") as file:
        file.write(content)
        file.truncate()


def settle(bank: Bank) -> None:
    """Let the bank look at its files once they show any further change."""
    newest = max(path.stat().st_ctime_ns for path in [bank.root, *bank.root.rglob("*")])
    while not is_settled(newest, time.time_ns()):
        pass
    bank.index.refresh(now=True)
    bank.index.refresh(now=True)


def hits(bank: Bank, query: str) -> list[tuple[str, str]]:
    return [(hit.memory.id, hit.content) for hit in bank.search(query)]


def test_an_open_bank_notices_it(bank: Bank) -> None:
    before = bank.index_file.path.read_bytes()
    bank.add("A zebra crosses the garden.", title="zebra")
    bank.delete("notes:base-3")
    settle(bank)
    assert hits(bank, "zebra")[0] == ("notes:zebra", "A zebra crosses the garden.")
    go_back(bank, before)
    assert hits(bank, "zebra")[0] == ("notes:zebra", "A zebra crosses the garden.")
    assert "notes:base-3" not in [id for id, _ in hits(bank, "apples")]


def test_an_open_bank_notices_it_after_as_many_changes_as_were_lost(bank: Bank) -> None:
    """SQLite counts changes, and takes a file with the same count for the one that it knows."""
    before = bank.index_file.path.read_bytes()
    bank.add("A zebra crosses the garden.", title="zebra")
    for _ in range(20):
        with bank.index._writing():
            pass
    settle(bank)
    hits(bank, "zebra")
    known = counted(bank)
    go_back(bank, before)
    (bank.root / "zebra.md").unlink()
    with Bank.open(bank.root.parent) as other:
        other.add("A giraffe looks into the kitchen.", title="giraffe")
        expected = hits(other, "giraffe")
        while counted(other) != known:
            with other.index._writing():
                pass
    assert expected == [("notes:giraffe", "A giraffe looks into the kitchen.")]
    step = steps.in_file(bank.index_file)
    assert hits(bank, "giraffe") == expected
    assert steps.has(bank.index._db, step)  # what the other one wrote was not written over


def counted(bank: Bank) -> bytes:
    """What SQLite looks at: the number of changes, and of pages."""
    content = bank.index_file.path.read_bytes()
    assert int.from_bytes(content[24:28]) < 100
    return content[24:40]


@pytest.mark.usefixtures("large")
def test_columns_and_looks_of_what_it_had_been_are_not_used(bank: Bank) -> None:
    before = bank.index_file.path.read_bytes()
    for number in range(4):
        write(bank, f"lost-{number}", f"Beta {number} is in the kitchen.")
    bank.search("beta")
    bank.close()
    bank.search("beta")  # and what the disk is like is kept as well
    bank.close()
    go_back(bank, before)
    for number in range(4):
        (bank.root / f"lost-{number}.md").unlink()
    for number in range(8):
        write(bank, f"found-{number}", f"Gamma {number} is in the bathroom.")
    bank.index.refresh(force=True)  # it goes further than before, by a process that asks for no columns
    bank.close()
    found = hits(bank, "gamma 2 bathroom")
    bank.close()
    for path in (kept_columns.beside(bank.index_file, name) for name in ("columns", "look")):
        assert path is not None
        path.unlink(missing_ok=True)
    assert found == hits(bank, "gamma 2 bathroom")
    assert found[0] == ("notes:found-2", "Gamma 2 is in the bathroom.")


@pytest.mark.usefixtures("large")
def test_a_look_at_files_that_it_does_not_have_any_more_is_not_used(bank: Bank) -> None:
    before = bank.index_file.path.read_bytes()
    write(bank, "lost", "Beta is in the kitchen.")
    settle(bank)
    bank.close()
    bank.search("beta")
    bank.close()
    go_back(bank, before)
    for name in ("gamma", "delta"):
        write(bank, name, f"{name} is in the bathroom.")
        bank.index.note(bank.notes, f"{bank.root}/{name}.md")  # looks at nothing else
    bank.close()
    assert kept_from(bank.index_file, bank.index._db, bank.present()) is None
    assert hits(bank, "beta")[0] == ("notes:lost", "Beta is in the kitchen.")


def test_who_was_away_for_very_long_reads_anew() -> None:
    db = open_in_memory()
    first = steps.last(db)
    assert first[0] == 1
    for _ in range(1_998):
        steps.take(db)
    assert (steps.has(db, first), count(db)) == (True, 1_999)
    recent = steps.last(db)
    for _ in range(501):
        steps.take(db)
    assert (steps.has(db, first), steps.has(db, recent), count(db)) == (False, True, 2_000)


def count(db: sqlite3.Connection) -> int:
    found: int = db.execute("SELECT count(*) FROM steps").fetchone()[0]
    return found
