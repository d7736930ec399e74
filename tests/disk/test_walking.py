"""Files that are known, and folders that are therefore not listed again."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from memlane.disk import walking
from memlane.disk.walking import JUST_NOW, PACKED, PACKED_SIZE, Known, Stamps, folder_state

LONG_AGO = 1_600_000_000


def unknown(root: Path, known: Known) -> list[str]:
    return [os.path.relpath(str(path), root) for path in walking.walk(root, known=known)]


def two_folders(root: Path) -> Known:
    """A bank with a file in each of two folders, which is known, and that nobody has changed for long."""
    known = Known()
    (root / "sub").mkdir()
    for path in (root / "a.md", root / "sub/b.md"):
        path.write_text("x")
        known.put(str(path))
    for folder in (root, root / "sub"):
        os.utime(folder, (LONG_AGO, LONG_AGO))
    return known


def test_only_what_is_not_known_is_found(tmp_path: Path) -> None:
    known = two_folders(tmp_path)
    assert unknown(tmp_path, known) == []
    (tmp_path / "c.md").write_text("x")
    (tmp_path / "sub/d.md").write_text("x")
    (tmp_path / "sub/new").mkdir()
    (tmp_path / "sub/new/e.md").write_text("x")
    assert unknown(tmp_path, known) == ["c.md", "sub/d.md", "sub/new/e.md"]


def test_a_folder_that_has_not_changed_since_is_not_listed(tmp_path: Path) -> None:
    known = two_folders(tmp_path)
    while JUST_NOW in map(folder_state, (tmp_path, tmp_path / "sub")):
        pass
    assert unknown(tmp_path, known) == []
    (tmp_path / "sub/d.md").write_text("x")
    assert known.below(str(tmp_path)) == [str(tmp_path / "sub")]
    assert known.below(str(tmp_path / "sub")) is None


def test_a_folder_whose_time_was_put_back_is_listed(tmp_path: Path) -> None:
    known = two_folders(tmp_path)
    while JUST_NOW in map(folder_state, (tmp_path, tmp_path / "sub")):
        pass
    assert unknown(tmp_path, known) == []
    (tmp_path / "sub/d.md").write_text("x")
    os.utime(tmp_path / "sub", (LONG_AGO, LONG_AGO))
    assert unknown(tmp_path, known) == ["sub/d.md"]


def test_a_folder_with_an_unknown_file_is_listed_until_that_is_known(tmp_path: Path) -> None:
    known = two_folders(tmp_path)
    (tmp_path / "sub/d.md").write_text("x")
    os.utime(tmp_path / "sub", (LONG_AGO, LONG_AGO))
    assert unknown(tmp_path, known) == unknown(tmp_path, known) == ["sub/d.md"]
    known.put(str(tmp_path / "sub/d.md"))
    assert unknown(tmp_path, known) == []


def test_a_folder_that_was_changed_just_now_is_listed_again(tmp_path: Path) -> None:
    known = two_folders(tmp_path)
    (tmp_path / "c.txt").write_text("x")
    before = os.stat(tmp_path)
    assert unknown(tmp_path, known) == []
    (tmp_path / "d.md").write_text("x")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))  # within the same tick of the clock
    assert unknown(tmp_path, known) == ["d.md"]


@pytest.mark.parametrize("packed", [True, False])
def test_stamps_tell_what_is_no_longer_as_it_was(tmp_path: Path, packed: bool) -> None:
    names = ["a.md", "b.md", "c.md", "d.md"]
    known = {}
    for name in names:
        (tmp_path / name).write_text("x")
        info = (tmp_path / name).stat()
        known[name] = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
    numbers = b"".join(struct.pack(PACKED, *stamp) for stamp in known.values())
    assert len(numbers) == len(names) * PACKED_SIZE
    stamps = Stamps({}, names, numbers) if packed else Stamps(dict(known))
    assert stamps.altered(str(tmp_path)) == []
    assert "d.md" in stamps
    fewer = stamps.without("b.md").without("d.md")
    assert "d.md" not in fewer
    (tmp_path / "b.md").write_text("xy")
    assert stamps.altered(str(tmp_path)) == ["b.md"]
    (tmp_path / "c.md").unlink()
    assert stamps.altered(str(tmp_path)) == ["b.md", "c.md"]
    assert fewer.altered(str(tmp_path)) == ["c.md"]
    assert fewer.known == {name: known[name] for name in ("a.md", "c.md")}
    assert stamps.known == known
    assert stamps.altered(str(tmp_path)) == ["b.md", "c.md"]
    with pytest.raises(FileNotFoundError):
        stamps.altered(str(tmp_path / "nowhere"))
