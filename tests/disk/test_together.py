"""Many new files at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, StorageError
from memlane.disk import files, journal, together
from memlane.history.undo import undo


def paths(top: Path, *names: str) -> dict[str, bytes]:
    return {str(top / name): f"text of {name}".encode() for name in names}


def test_all_are_there_in_folders_that_are_made(tmp_path: Path) -> None:
    wanted = paths(tmp_path, *(f"{number % 7}/deep/{number}.md" for number in range(300)))
    assert together.create_all(wanted) == set(wanted)
    assert tree(tmp_path) == {os.path.relpath(path, tmp_path): data for path, data in wanted.items()}


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes(b"somebody else's")
    made = together.create_all(paths(tmp_path, "a.md", "b.md", "c.md"))
    assert made == {str(tmp_path / "a.md"), str(tmp_path / "c.md")}
    assert tree(tmp_path)["b.md"] == b"somebody else's"


def test_what_cannot_be_made_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    (tmp_path / "outside").mkdir()
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/link").symlink_to(tmp_path / "outside")
    files.take_root(tmp_path / "bank")
    wanted = paths(tmp_path, "bank/a.md", "bank/link/b.md", "file/c.md", f"bank/{'x' * 300}.md")
    assert together.create_all(wanted) == {str(tmp_path / "bank/a.md")}
    assert list((tmp_path / "outside").iterdir()) == []


def test_nothing_is_made_below_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    files.set_read_only(tmp_path, StorageError("No."))
    try:
        assert together.create_all(paths(tmp_path, "a.md")) == set()
    finally:
        files.set_read_only(tmp_path, None)
    assert tree(tmp_path) == {}


def test_a_system_without_nameless_files_leaves_them_to_be_made_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    assert together.create_all(paths(tmp_path, "a.md")) == set()
    assert tree(tmp_path) == {}


def test_the_journal_has_what_was_made_and_nothing_else(bank: Bank) -> None:
    """Somebody makes `first.md` when its content is written already, and has no name yet."""

    def meanwhile(path: str, data: bytes | None) -> None:
        if path.endswith("last.md"):
            (bank.root / "first.md").write_bytes(b"somebody else's")

    token = files.on_write.set(meanwhile)
    try:
        with journal.change("import"):
            made = together.create_all(paths(bank.root, "first.md", "second.md", "last.md"))
    finally:
        files.on_write.reset(token)
    assert made == {str(bank.root / "second.md"), str(bank.root / "last.md")}
    assert bank.journal
    change = bank.journal.changes()[0]
    assert [entry.name for entry in bank.journal.entries(change.number)] == ["second.md", "last.md"]
    undo(bank, change.id)
    assert [path.name for path in bank.root.glob("*.md")] == ["first.md"]


WRITER = """
import sys
from memlane.disk import together
for batch in range(1000):
    together.create_all({f"{sys.argv[1]}/{batch}-{number}.md": b"whole" * 100 for number in range(100)})
    print(batch, flush=True)
"""


def test_a_killed_writer_leaves_whole_files_and_every_batch_that_it_told_of(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        told = [int(writer.stdout.readline()) for _ in range(3)]
        os.kill(writer.pid, signal.SIGKILL)
        told += map(int, writer.stdout.read().split())
    left = tree(tmp_path)
    assert set(left.values()) == {b"whole" * 100}
    assert {f"{batch}-{number}.md" for batch in told for number in range(100)} <= set(left)
