"""What has changed on the disk since an open index last looked: only folders with changes are listed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memlane import Bank

LONG_AGO = 1_600_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank of notes in three folders, a vault and topics."""
    (tmp_path / "project").mkdir()
    with Bank.init(tmp_path / "project") as bank:
        bank.add("The vault has a line.", lane="vault")
        bank.add("A topic has a page.", lane="topics", title="days")
    notes = tmp_path / "project/.memories"
    for name in ("a.md", "sub/b.md", "sub/c.md", "sub/deep/d.md", "other/e.md"):
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(f"Note {name} of the bank.\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.md").write_text("Nobody may read this.\n")
    return notes


def new_file(notes: Path) -> None:
    (notes / "sub/new.md").write_text("A new note.\n")


def new_files_in_two_folders(notes: Path) -> None:
    new_file(notes)
    (notes / "new.md").write_text("Another new note.\n")


def new_folder(notes: Path) -> None:
    (notes / "fresh/inner").mkdir(parents=True)
    (notes / "fresh/inner/f.md").write_text("A note in a new folder.\n")


def edited(notes: Path) -> None:
    (notes / "sub/b.md").write_text("Quite another text.\n")


def deleted(notes: Path) -> None:
    (notes / "sub/b.md").unlink()


def renamed(notes: Path) -> None:
    (notes / "sub/b.md").rename(notes / "other/b.md")


def folder_removed(notes: Path) -> None:
    shutil.rmtree(notes / "sub")


def folder_moved(notes: Path) -> None:
    (notes / "sub").rename(notes / "other/sub")


def folder_hidden(notes: Path) -> None:
    (notes / "sub").rename(notes / ".sub")


def file_becomes_a_link_out(notes: Path) -> None:
    (notes / "sub/b.md").unlink()
    (notes / "sub/b.md").symlink_to(notes.parent.parent / "outside/x.md")


def folder_becomes_a_link_out(notes: Path) -> None:
    (notes / "sub").rename(notes.parent.parent / "outside/sub")
    (notes / "sub").symlink_to(notes.parent.parent / "outside/sub")


def link_inside(notes: Path) -> None:
    (notes / "other/link.md").symlink_to(notes / "sub/c.md")


def vault_written_by_another(notes: Path) -> None:
    with Bank.open(notes.parent) as other:
        other.add("The vault has two lines, and this is the second.", lane="vault")


def vault_removed(notes: Path) -> None:
    (notes / "vault.jsonl").unlink()


def topic_by_hand(notes: Path) -> None:
    page = notes / "topics/general/general.md"
    page.write_text(page.read_text().replace("has a page", "has two pages"))


def many_new(notes: Path) -> None:
    for number in range(300):
        (notes / f"other/n{number}.md").write_text(f"Note {number}.\n")


CHANGES = [
    new_file, new_files_in_two_folders, new_folder, edited, deleted, renamed, folder_removed, folder_moved,
    folder_hidden, file_becomes_a_link_out, folder_becomes_a_link_out, link_inside, vault_written_by_another,
    vault_removed, topic_by_hand, many_new,
]  # fmt: skip


def texts(bank: Bank, *, force: bool = False) -> dict[str, str]:
    return bank.index.ask(lambda: {memory.id: memory.text for _, memory in bank.index.every_memory()}, force=force)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_open_index_finds_what_one_finds_that_compares_everything(
    folder: Path, change: Callable[[Path], None]
) -> None:
    with Bank.open(folder.parent) as bank:
        before = texts(bank)
        change(folder)
        found = texts(bank)
        assert found == texts(bank, force=True)
        assert found != before
        assert found == texts(bank)


def test_only_folders_with_changes_are_listed(tmp_path: Path) -> None:
    notes = tmp_path / ".memories"
    with Bank.init(tmp_path) as bank:
        for name in ("sub", "empty"):
            (notes / name).mkdir(parents=True)
        (notes / "sub/a.md").write_text("A note.\n")
        for place in (notes, notes / "sub", notes / "empty"):
            os.utime(place, (LONG_AGO, LONG_AGO))
        texts(bank)
        (notes / "empty/unseen.md").write_text("A note.\n")
        os.utime(notes / "empty", (LONG_AGO, LONG_AGO))  # as if nothing had been written there
        (notes / "sub/seen.md").write_text("A note.\n")
        assert sorted(texts(bank)) == ["notes:sub/a", "notes:sub/seen"]
