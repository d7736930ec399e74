"""What the kernel tells of the bank's folders saves the look at every file, and misses nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memlane import Bank
from memlane.disk import notices

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


@pytest.mark.parametrize("change", ["make", "write", "append", "rename", "delete", "touch"])
def test_every_change_is_told_once_with_the_file(tmp_path: Path, change: str) -> None:
    file = tmp_path / "a.md"
    file.write_text("one")
    heard = notices.listen([os.fspath(tmp_path)])
    assert heard
    assert heard.told() == set()
    match change:
        case "make":
            (tmp_path / "b.md").write_text("")
        case "write":
            file.write_text("two")
        case "append":
            with file.open("a") as stream:
                stream.write("more")
        case "rename":
            file.rename(tmp_path / "c.md")
        case "delete":
            file.unlink()
        case "touch":
            os.utime(file, (1, 1))
    names = {"make": ["b.md"], "rename": ["a.md", "c.md"]}.get(change, ["a.md"])
    assert (heard.told(), heard.told()) == ({os.fspath(tmp_path / name) for name in names}, set())


def test_nobody_can_say_what_changed_once_a_folder_came(tmp_path: Path) -> None:
    heard = notices.listen([os.fspath(tmp_path)])
    assert heard
    (tmp_path / "new").mkdir()
    (tmp_path / "a.md").write_text("one")
    assert (heard.told(), heard.told(), heard.lost) == (None, None, True)


def test_reading_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    heard = notices.listen([os.fspath(tmp_path)])
    (tmp_path / "a.md").read_text()
    assert heard
    assert heard.told() == set()


def test_a_folder_that_is_not_there_cannot_be_heard(tmp_path: Path) -> None:
    assert notices.listen([os.fspath(tmp_path / "gone")]) is None


def test_a_fork_leaves_what_is_told_to_its_parent(tmp_path: Path) -> None:
    heard = notices.listen([os.fspath(tmp_path)])
    assert heard
    (tmp_path / "a.md").write_text("one")
    child = os.fork()
    if not child:
        os._exit(heard.told() is not None)
    assert (os.waitpid(child, 0)[1], heard.told()) == (0, {os.fspath(tmp_path / "a.md")})


def test_a_warm_bank_sees_every_edit_by_hand_at_once(tmp_path: Path) -> None:
    """Also in a folder that was made since, and after the file was renamed."""
    bank = Bank.init(tmp_path)
    notes = tmp_path / ".memories"
    found = []

    def search(word: str) -> list[str]:
        for _ in range(3):  # the second look begins to listen, and the third is saved
            hits = [hit.memory.id for hit in bank.search(f'"{word}"')]
        return hits

    search("nothing")
    (notes / "a.md").write_text("The quokka eats.")
    found.append(search("quokka"))
    (notes / "a.md").write_text("The wombat eats.")
    found.append(search("wombat"))
    (notes / "deep").mkdir()
    (notes / "deep" / "b.md").write_text("The wombat sleeps.")
    found.append(search("sleeps"))
    (notes / "a.md").rename(notes / "c.md")
    found.append(search("eats"))
    (notes / "c.md").unlink()
    found.append(search("wombat"))
    assert found == [["notes:a"], ["notes:a"], ["notes:deep/b"], ["notes:c"], ["notes:deep/b"]]
