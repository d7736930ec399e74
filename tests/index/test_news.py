"""What has changed on the disk since an open index last looked: only folders with changes are listed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memlane import Bank
from memlane.disk.walking import is_settled
from memlane.index.peek import News, Seen, compared_since, folders_of


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


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_index_that_listens_finds_the_same(folder: Path, change: Callable[[Path], None]) -> None:
    with Bank.open(folder.parent) as bank:
        for _ in range(3):  # the second look begins to listen
            before = texts(bank)
        change(folder)
        found = texts(bank)
        assert found == texts(bank, force=True)
        assert found != before


def test_a_file_that_was_told_of_is_looked_at_alone(folder: Path) -> None:
    with Bank.open(folder.parent) as bank:
        lanes = bank.present()
        wait_until_settled(folder, *folder.rglob("*"))
        texts(bank, force=True)
        seen = Seen(tuple(str(lane.root) for lane in lanes), folders_of(lanes), {})
        new_files_in_two_folders(folder)
        told = {str(folder / "sub/new.md"), str(folder / "sub/.temporary"), str(folder / "elsewhere/x.md")}
        news = seen.news_of(told)
        assert news == News([str(folder / "sub")], [], told)
        found = compared_since(seen, news, bank.index._db, lanes)
        assert found
        assert [path for _, path, _ in found.changed] == [str(folder / "sub/new.md")]
        assert (found.gone, [*found.stamps]) == (set(), [str(folder / "sub/new.md")])


def wait_until_settled(*folders: Path) -> None:
    """What is changed after this gets another time."""
    while not all(is_settled(place.stat().st_ctime_ns, time.time_ns()) for place in folders):
        pass


def test_only_folders_with_changes_are_news(folder: Path) -> None:
    with Bank.open(folder.parent) as bank:
        lanes = bank.present()
        wait_until_settled(folder, *(place for place in folder.rglob("*") if place.is_dir()))
        seen = Seen(tuple(str(lane.root) for lane in lanes), folders_of(lanes), {})
        assert seen.news(lanes) == News([], [])
        new_file(folder)
        assert seen.news(lanes) == News([str(folder / "sub")], [])


def put_back(place: Path, change: Callable[[Path], None]) -> None:
    """Change something in a folder, and set its time to what it was, as programs do that copy or unpack."""
    before = place.stat().st_mtime_ns
    change(place)
    os.utime(place, ns=(before, before))


def new_file_at_the_same_time(notes: Path) -> None:
    put_back(notes / "sub", lambda place: (place / "new.md").write_text("A new note.\n"))


def folder_replaced_by_one_of_the_same_time(notes: Path) -> None:
    def replaced(place: Path) -> None:
        place.rename(notes / ".before")
        shutil.copytree(notes / ".before", place)
        (place / "new.md").write_text("A new note.\n")

    put_back(notes / "sub", replaced)


@pytest.mark.parametrize(
    "change",
    [new_file_at_the_same_time, folder_replaced_by_one_of_the_same_time],
    ids=lambda change: change.__name__,
)
def test_a_folder_whose_time_is_put_back_has_changed(folder: Path, change: Callable[[Path], None]) -> None:
    with Bank.open(folder.parent) as bank:
        wait_until_settled(folder, folder / "sub")
        texts(bank)
        change(folder)
        assert texts(bank)["notes:sub/new"] == "A new note.\n"


def test_folders_that_change_places_with_files_of_one_moment(folder: Path) -> None:
    """Their files have the same sizes and, where they were written one after the other, the same times."""
    one, two = folder / "one", folder / "two"
    for _ in range(1_000):
        for place in (one, two):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        for place, text in ((one, "The first of two.\n"), (two, "A second of two\n\n\n")):
            written = os.open(place / "x.md", os.O_CREAT | os.O_WRONLY)  # not by `open`, whose look makes times finer
            os.write(written, text.encode())
            os.close(written)
        first, second = ((place / "x.md").stat() for place in (one, two))
        if (first.st_size, first.st_mtime_ns, first.st_ctime_ns) == (
            second.st_size, second.st_mtime_ns, second.st_ctime_ns,
        ):  # fmt: skip
            break
    else:
        pytest.skip("the clock of this file system is too fine")
    wait_until_settled(folder, one, two, one / "x.md", two / "x.md")
    with Bank.open(folder.parent) as bank:
        before = texts(bank)
        one.rename(folder / ".three")
        two.rename(one)
        (folder / ".three").rename(two)
        found = texts(bank)
        assert found == {
            **before, "notes:one/x": before["notes:two/x"], "notes:two/x": before["notes:one/x"],
        }  # fmt: skip
        assert {memory.id: memory.text for memory in bank.list(brief=True)}["notes:one/x"] == "A second of two"


def test_a_folder_that_took_the_place_of_another_is_listened_to(folder: Path) -> None:
    with Bank.open(folder.parent) as bank:
        for _ in range(3):
            wait_until_settled(folder, folder / "sub")
            texts(bank)  # from the second look on, it listens
        shutil.copytree(folder / "sub", folder.parent / "copy")
        wait_until_settled(folder.parent / "copy")
        (folder / "sub").rename(folder.parent / "before")
        (folder.parent / "copy").rename(folder / "sub")
        for _ in range(3):
            texts(bank)
        new_file(folder)
        assert texts(bank)["notes:sub/new"] == "A new note.\n"
        edited(folder)
        assert texts(bank)["notes:sub/b"] == "Quite another text.\n"


def by_this_bank(bank: Bank) -> None:
    bank.add("A note that is soon gone.", title="gone")


def by_another(bank: Bank) -> None:
    with Bank.open(bank.root.parent) as other:
        other.add("A note that is soon gone.", title="gone")
        texts(other)


@pytest.mark.parametrize("added", [by_this_bank, by_another], ids=lambda added: added.__name__)
def test_what_was_added_and_removed_between_two_looks_is_gone(folder: Path, added: Callable[[Bank], None]) -> None:
    with Bank.open(folder.parent) as bank:
        before = texts(bank)
        added(bank)
        (folder / "gone.md").unlink()
        assert texts(bank) == before


def test_what_another_took_out_while_it_was_away_is_there_again(folder: Path) -> None:
    with Bank.open(folder.parent) as bank:
        wait_until_settled(folder, folder / "sub", folder / "sub/deep")
        before = texts(bank)
        (folder / "sub").rename(folder / ".sub")
        with Bank.open(folder.parent) as other:
            assert texts(other) != before
        (folder / ".sub").rename(folder / "sub")
        assert texts(bank) == before
