"""The columns that one process kept serve the next as if it had read them, and no others do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memlane import Bank
from memlane.index import kept_columns, store
from memlane.index.columns import Columns, read_columns

WORDS = "tuna salmon trout herring cod perch pike carp eel sole plaice bream".split()


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bank:
    monkeypatch.setattr(kept_columns, "SMALL", 1)
    monkeypatch.setattr(kept_columns, "MANY", 5)
    bank = Bank.init(tmp_path)
    for number, word in enumerate(WORDS):
        write(bank, f"note-{number:02}", f"{word} swims with {WORDS[number - 1]} number {number}")
    return bank


def write(bank: Bank, name: str, text: str) -> None:
    (bank.root / f"{name}.md").write_text(f"# {name}\n\n{text}.\n")


def kept(home: Path) -> list[Path]:
    return list((home / ".local/state/memlane/indices").glob("*.columns"))


def hits(bank: Bank, query: str) -> list[tuple[str, float]]:
    """What is found by a bank that was opened just now."""
    bank.close()
    return [(hit.memory.id, hit.score) for hit in bank.search(query)]


def loaded(bank: Bank) -> tuple[Columns | None, Columns]:
    """What a process that opens the index now has of its columns before it reads a row, and all of them."""
    index = bank.index
    layout = f"{index._now().embedded} {store.get_meta(index._db, 'packed', 0)}"
    return kept_columns.load(index.file, index._db, layout), read_columns(index._db, index.encoder.dim)


def test_what_was_kept_is_what_would_be_read(bank: Bank) -> None:
    hits(bank, "tuna")
    had, read = loaded(bank)
    assert had is not None
    for name in kept_columns._ARRAYS:
        np.testing.assert_array_equal(getattr(had, name), getattr(read, name), strict=True)
    assert (had.used, had.buried) == (read.used, read.buried)


def test_what_was_written_and_deleted_since_counts(bank: Bank, home: Path) -> None:
    hits(bank, "tuna")
    (before,) = kept(home)
    stamp = before.stat().st_mtime_ns
    write(bank, "late", "a walrus, which is no fish")
    (bank.root / "note-00.md").unlink()
    assert hits(bank, "walrus")[0][0] == "notes:late"
    assert "notes:note-00" not in [id for id, _ in hits(bank, "tuna")]
    assert before.stat().st_mtime_ns == stamp  # of few changes, nothing is kept anew
    for number in range(8):
        write(bank, f"more-{number}", f"whale {number}")
    assert "notes:more-3" in [id for id, _ in hits(bank, "whale")]
    assert before.stat().st_mtime_ns > stamp


def test_an_answer_is_the_same_without_what_was_kept(bank: Bank, home: Path) -> None:
    hits(bank, "tuna")
    found = hits(bank, "herring and trout")
    for path in kept(home):
        path.unlink()
    assert found == hits(bank, "herring and trout") != []


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b'{"about": 1}' + bytes(9000)])
def test_a_damaged_file_is_not_used(bank: Bank, home: Path, damage: bytes) -> None:
    found = hits(bank, "tuna")
    (path,) = kept(home)
    path.write_bytes(damage)
    assert hits(bank, "tuna") == found


def test_a_file_that_was_cut_is_not_used(bank: Bank, home: Path) -> None:
    found = hits(bank, "tuna")
    (path,) = kept(home)
    path.write_bytes(path.read_bytes()[:-2000])
    assert hits(bank, "tuna") == found


def test_columns_of_another_index_or_of_a_later_state_are_not_used(bank: Bank) -> None:
    hits(bank, "tuna")
    index = bank.index
    index._db.execute("BEGIN")
    index._db.execute("DELETE FROM steps WHERE n = (SELECT max(n) FROM steps)")
    assert loaded(bank)[0] is None
    index._db.execute("ROLLBACK")
    assert loaded(bank)[0] is not None
    bank.close()
    bank.index_file.path.unlink()
    bank.index.refresh()
    assert loaded(bank)[0] is None


def test_they_are_the_users_alone_and_forget_removes_them(bank: Bank, home: Path) -> None:
    hits(bank, "tuna")
    (path,) = kept(home)
    assert path.stat().st_mode & 0o777 == 0o600
    bank.forget("notes:note-03")
    assert kept(home) == []
