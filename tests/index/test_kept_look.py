"""What one process saw of the disk serves the next, which finds all that has changed since."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memlane import Bank
from memlane.disk.walking import Stamps, is_settled
from memlane.index import kept_look, writing
from memlane.index.peek import Peek, Seen, kept_from


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bank:
    """A bank of notes in two folders, a vault and records, after a search: what the disk was like is kept."""
    monkeypatch.setattr(kept_look, "FEW", 1)
    bank = Bank.init(tmp_path)
    bank.add("The vault has a tuna.", lane="vault")
    bank.add("A record of a tuna.", lane="records", thread="t")
    (bank.root / "records/.archive").mkdir()
    for name in ("a.md", "b.md", "sub/c.md", "sub/d.md"):
        (bank.root / name).parent.mkdir(exist_ok=True)
        (bank.root / name).write_text(f"A tuna in {name}.\n")
    return settled(settled(bank))  # the first one makes folders


def settled(bank: Bank) -> Bank:
    """The bank after a search that comes later than any change that its files do not show."""
    newest = max(path.stat().st_ctime_ns for path in bank.root.rglob("*"))
    while not is_settled(newest, time.time_ns()):
        pass
    found(bank)
    return bank


def found(bank: Bank) -> list[str]:
    """What is found by a bank that was opened just now."""
    bank.close()
    return sorted(hit.memory.id for hit in bank.search("tuna", 99))


def listed(bank: Bank, lane: str | None = None) -> list[str]:
    """What a look at the index without opening it finds."""
    bank.close()
    return sorted(memory.text.strip() for memory in bank.list(limit=99, lane=lane, brief=True))


def answers(bank: Bank) -> list[list[str]]:
    bank.close()
    archived = sorted(memory.text for memory in bank.list(limit=9, lane="records", archived=True, brief=True))
    return [archived, listed(bank), *(listed(bank, lane) for lane in ("notes", "vault", "records")), found(bank)]


def kept(home: Path) -> Path:
    (path,) = (home / ".local/state/memlane/indices").glob("*.look")
    return path


def seen(bank: Bank, *lanes: str) -> Seen | None:
    return kept_from(bank.index_file, bank.index._db, [lane for lane in bank.present() if lane.name in lanes])


def names(look: Seen | None) -> set[str]:
    assert look is not None
    return {name for stamps in look.files.values() for name in stamps.known}


def edited(root: Path) -> None:
    (root / "a.md").write_text("Another tuna altogether.\n")


def edited_in_place_with_its_time_put_back(root: Path) -> None:
    info = (root / "a.md").stat()
    with (root / "a.md").open("r+") as file:
        file.write("B")
    os.utime(root / "a.md", ns=(info.st_atime_ns, info.st_mtime_ns))


def added(root: Path) -> None:
    (root / "sub/new.md").write_text("A new tuna.\n")


def added_in_a_new_folder(root: Path) -> None:
    (root / "fresh").mkdir()
    (root / "fresh/new.md").write_text("A new tuna.\n")


def deleted(root: Path) -> None:
    (root / "sub/c.md").unlink()


def moved(root: Path) -> None:
    (root / "b.md").rename(root / "sub/b.md")


def folder_removed(root: Path) -> None:
    shutil.rmtree(root / "sub")


def vault_written(root: Path) -> None:
    with Bank.open(root.parent) as bank:
        bank.add("The vault has another tuna.", lane="vault")


def record_archived_by_hand(root: Path) -> None:
    """As by a pull: nothing else has changed."""
    (record,) = (root / "records").glob("*.md")
    (root / "records/.archive/b.md").write_bytes(record.read_bytes())


def record_added(root: Path) -> None:
    with Bank.open(root.parent) as bank:
        bank.add("Another record of a tuna.", lane="records", thread="t")


def record_archived(root: Path) -> None:
    (record,) = (root / "records").glob("*.md")
    record.rename(root / "records/.archive" / record.name)


CHANGES = (
    edited, edited_in_place_with_its_time_put_back, added, added_in_a_new_folder, deleted, moved, folder_removed,
    vault_written, record_archived_by_hand, record_added, record_archived,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_since_is_found_as_without_it(bank: Bank, home: Path, change: Callable[[Path], None]) -> None:
    change(bank.root)
    with_it = answers(bank)
    kept(home).unlink()
    assert with_it == answers(bank)


def test_it_is_what_is_on_the_disk_lane_by_lane(bank: Bank) -> None:
    (record,) = (os.path.basename(path) for path in bank.records.files() if isinstance(path, str))
    vault = os.path.basename(bank.vault.path)
    assert names(seen(bank, "notes")) == {"a.md", "b.md", "c.md", "d.md"}
    assert names(seen(bank, "vault")) == {vault}
    assert names(seen(bank, "records", "vault")) == {record, vault}
    assert names(seen(bank, "notes", "vault", "records")) == {"a.md", "b.md", "c.md", "d.md", record, vault}


@pytest.mark.parametrize("lanes", [("notes",), ("notes", "vault", "records")])
def test_where_nothing_has_changed_it_is_not_taken_apart(bank: Bank, lanes: tuple[str, ...]) -> None:
    look = seen(bank, *lanes)
    assert look is not None
    assert look._news() == ([], [], None)
    assert all(stamps._packed for stamps in look.files.values())


def test_where_nothing_has_changed_no_row_of_a_file_is_read(bank: Bank) -> None:
    index = bank.index
    asked: list[str] = []
    index._db.set_trace_callback(asked.append)
    bank.search("tuna")
    assert [query for query in asked if "FROM files" in query and "JOIN" not in query] == []


def test_of_a_new_record_only_its_folder_is_listed(bank: Bank) -> None:
    record_added(bank.root)
    bank.close()
    asked: list[str] = []
    bank.index._db.set_trace_callback(asked.append)
    bank.search("tuna")
    assert [query for query in asked if "FROM files WHERE lane IN" in query] == []


def test_a_file_that_another_process_took_out_meanwhile_is_found(bank: Bank) -> None:
    """It had found the folder empty: of a disk that was not there for a moment, and came back as it was."""
    with bank.index._writing() as db:
        writing.forget_file(db, f"{bank.root}/sub/c.md")
    assert "notes:sub/c" in found(bank)


@pytest.mark.parametrize("damage", [b"", b"{", b"{}\n", b'{"about": 1}\n' + bytes(64)])
def test_a_damaged_file_is_not_used(bank: Bank, home: Path, damage: bytes) -> None:
    before = found(bank)
    kept(home).write_bytes(damage)
    assert (seen(bank, "notes"), found(bank)) == (None, before)


def test_a_file_that_was_cut_is_not_used(bank: Bank, home: Path) -> None:
    kept(home).write_bytes(kept(home).read_bytes()[:-32])
    assert seen(bank, "notes") is None


def test_that_of_another_index_or_of_a_later_state_is_not_used(bank: Bank) -> None:
    index = bank.index
    index._db.execute("BEGIN")
    index._db.execute("DELETE FROM steps WHERE n = (SELECT max(n) FROM steps)")
    assert seen(bank, "notes") is None
    index._db.execute("ROLLBACK")
    assert seen(bank, "notes") is not None
    bank.close()
    bank.index_file.path.unlink()
    bank.index.refresh(wait=0)
    assert seen(bank, "notes") is None


def test_a_look_writes_nothing(bank: Bank, home: Path) -> None:
    kept(home).unlink()
    with Peek(bank.index_file, bank.present()) as peek:
        assert peek.unread == 0
    assert not [*(home / ".local/state/memlane/indices").glob("*.look")]


def test_it_is_the_users_alone_and_forget_removes_it(bank: Bank, home: Path) -> None:
    path = kept(home)
    assert path.stat().st_mode & 0o777 == 0o600
    bank.forget("notes:a")
    assert not path.exists()


def test_stamps_are_packed_alike_whether_they_were_unpacked_or_not() -> None:
    known = {"a.md": (1, 2, 3, 4), "b.md": (5, -6, 7, 2**62)}
    names, packed = Stamps(known).packed()
    assert names == ["a.md", "b.md"]
    assert Stamps({}, names, packed).packed() == (names, packed)
    again = Stamps({}, names, packed)
    assert again.known == known
    assert again.packed() == (names, packed)
