"""A folder as a remote: what lies in it, killed and stopped writers, damage, members who mean harm."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import tree
from memlane.core.errors import StorageError
from memlane.exchange.remotes import SHARED, Conflict, Remote, TooLarge, Unreachable, folder, opened

MOST = 1 << 20


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    (tmp_path / "drive").mkdir()
    return tmp_path / "drive"


@pytest.fixture
def remote(drive: Path) -> Remote:
    return opened(drive.as_uri())


def put(remote: Remote, path: str, data: bytes = b"text", expected: str | None = None) -> str:
    return remote.put(path, data, expected, scope=SHARED, author="")


def content(remote: Remote, path: str) -> bytes | None:
    found = remote.get(path, SHARED, MOST)
    return found and found[1]


def home_of(drive: Path, path: str) -> Path:
    name = folder._name(path, SHARED)
    return drive / "default" / name[:2] / name


def drive_of(remote: Remote) -> str:
    assert isinstance(remote, folder.FolderRemote)
    return remote.root


def seen(remote: Remote) -> list[str]:
    return sorted(entry.path for page, _ in remote.changes("") for entry in page)


def test_what_was_replaced_is_gone_from_the_folder(remote: Remote, drive: Path) -> None:
    version = put(remote, "a.md", b"an old secret")
    version = put(remote, "a.md", b"a newer secret", version)
    remote.delete("a.md", version, scope=SHARED, author="")
    left = tree(drive)
    assert len(left) == 1
    assert b"secret" not in b"".join(left.values())


def test_what_a_killed_writer_left_is_removed_by_the_next(remote: Remote, drive: Path) -> None:
    """Killed after its rename: the older version is still there."""
    version = put(remote, "a.md", b"an old secret")
    kept = home_of(drive, "a.md") / "1"
    moved = drive / "kept"
    os.rename(kept, moved)
    kept.mkdir()
    os.link(moved / "entry", kept / "entry")
    put(remote, "a.md", b"new", version)
    assert not kept.exists()
    os.rename(moved, kept)
    assert content(remote, "a.md") == b"new"
    list(opened(str(drive)).changes(""))
    assert b"secret" not in b"".join(tree(drive).values())


def test_what_was_left_half_written_is_removed_a_day_later(remote: Remote, drive: Path) -> None:
    put(remote, "a.md")
    old, young = drive / "default/new/0001", drive / "default/new/0002"
    for one in (old, young):
        one.mkdir()
        (one / "entry").write_bytes(b"half")
    os.utime(old, (1, 1))
    put(opened(drive.as_uri()), "b.md")
    assert (old.exists(), young.exists()) == (False, True)
    assert seen(remote) == ["a.md", "b.md"]


@pytest.mark.parametrize("others", [1, 2, 20])
def test_a_writer_who_was_stopped_for_long_comes_too_late(
    remote: Remote, drive: Path, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is free again, because those who came meanwhile have removed their older versions."""
    version = put(remote, "a.md", b"first")
    rename = os.rename

    def stopped(source: Any, target: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "rename", rename)
        other, last = opened(str(drive)), version
        for number in range(others):
            last = put(other, "a.md", f"by others {number}".encode(), last)
        rename(source, target, **options)

    put(remote, "b.md")
    monkeypatch.setattr(os, "rename", stopped)
    with pytest.raises(Conflict):
        put(remote, "a.md", b"too late", version)
    assert content(remote, "a.md") == f"by others {others - 1}".encode()
    assert b"too late" not in b"".join(tree(drive).values())


def test_a_writer_whose_version_was_taken_up_at_once_has_not_failed(
    remote: Remote, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = put(remote, "a.md", b"first")
    rename = os.rename

    def overtaken(source: Any, target: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "rename", rename)
        rename(source, target, **options)
        other = opened(str(drive))
        for number in range(3):
            found = other.get("a.md", SHARED, MOST)
            assert found
            put(other, "a.md", found[1] + b" and %d" % number, found[0].version)

    put(remote, "b.md")
    monkeypatch.setattr(os, "rename", overtaken)
    put(remote, "a.md", b"second", version)
    assert content(remote, "a.md") == b"second and 0 and 1 and 2"


def test_a_file_system_that_overwrites_folders_is_refused(
    remote: Remote, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "rename", lambda *_, **__: None)
    with pytest.raises(StorageError, match="overwrite another") as refused:
        put(remote, "a.md")
    assert refused.value.hint
    assert tree(drive) == {}


def test_a_drive_that_is_not_mounted_is_not_taken_for_an_empty_one(remote: Remote, drive: Path) -> None:
    version = put(remote, "a.md")
    *_, (_, cursor) = remote.changes("")
    os.rename(drive / "default", drive.parent / "kept")
    for call in (
        lambda: list(remote.changes(cursor)),
        lambda: remote.watch(cursor, 0),
        lambda: put(remote, "a.md", b"new", version),
    ):
        with pytest.raises(Unreachable, match="nothing of this bank any more"):
            call()
    assert list(drive.iterdir()) == []
    drive.rmdir()
    with pytest.raises(Unreachable, match="it is not there"):
        put(remote, "b.md")
    assert not drive.exists()


def test_what_is_made_may_be_used_by_whoever_may_use_the_folder(remote: Remote, drive: Path) -> None:
    drive.chmod(0o2770)
    put(remote, "a.md")
    modes = {path: path.stat().st_mode & 0o770 for path in drive.rglob("*")}
    assert {modes[path] for path in modes if path.is_dir()} == {0o770}
    assert {modes[path] for path in modes if path.is_file()} == {0o660}


def test_a_folder_without_permission_says_so(remote: Remote, drive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(StorageError, match="No permission") as told:
        put(remote, "a.md")
    assert told.value.code == "no_permission"


# -- damage and harm


@pytest.mark.parametrize(
    "data",
    [
        b"", b"no line end", b"\xff\xfe\n", b"[]\n", b"{}\n", b'{"path": 1, "scope": 2, "author": 3, "marks": 4}\n',
        b'{"path": "../../x", "scope": "shared", "author": "", "marks": ["a"], "deleted": false}\nx',
        b'{"path": "b.md", "scope": "shared", "author": "", "marks": ["a"], "deleted": false}\nof another name',
        b'{"path": "a.md", "scope": "shared", "author": "", "marks": [], "deleted": false}\nx',
        b"[" * 8000 + b"\n",
    ],
)  # fmt: skip
def test_a_damaged_entry_is_passed_over_and_can_be_put_again(remote: Remote, drive: Path, data: bytes) -> None:
    version = put(remote, "a.md", b"first")
    put(remote, "c.md")
    (home_of(drive, "a.md") / "1" / "entry").write_bytes(data)
    again = opened(str(drive))
    assert seen(again) == ["c.md"]
    assert again.get("a.md", SHARED, MOST) is None
    with pytest.raises(Conflict):
        put(again, "a.md", b"second", version)
    put(again, "a.md", b"second")
    assert seen(again) == ["a.md", "c.md"]


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """What no link in a shared folder may lead to."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "entry").write_bytes(b"private")
    (place / "1").mkdir()
    (place / "1/entry").write_bytes(b"private")
    before = tree(place)
    yield place
    assert tree(place) == before


@pytest.mark.parametrize("what", ["entry", "version", "home", "group"])
def test_links_in_the_folder_are_not_followed(remote: Remote, drive: Path, outside: Path, what: str) -> None:
    put(remote, "a.md", b"first")
    home = home_of(drive, "a.md")
    at = {"entry": home / "1/entry", "version": home / "1", "home": home, "group": home.parent}[what]
    os.rename(at, drive / "aside")
    at.symlink_to(outside / "entry" if what == "entry" else outside / "1" if what == "version" else outside)
    again = opened(str(drive))
    assert seen(again) == []
    with suppress(Unreachable):
        assert again.get("a.md", SHARED, MOST) is None
    with suppress(Unreachable):
        put(again, "a.md", b"second")


def test_a_pipe_in_the_folder_is_not_waited_for(remote: Remote, drive: Path) -> None:
    put(remote, "a.md", b"first")
    entry = home_of(drive, "a.md") / "1/entry"
    entry.unlink()
    os.mkfifo(entry)
    assert opened(str(drive)).get("a.md", SHARED, MOST) is None


def test_a_huge_entry_is_not_read(remote: Remote, drive: Path) -> None:
    put(remote, "a.md", b"first")
    os.truncate(home_of(drive, "a.md") / "1/entry", 10**10)
    with pytest.raises(TooLarge):
        opened(str(drive)).get("a.md", SHARED, MOST)


def test_names_that_are_not_ours_are_passed_over(remote: Remote, drive: Path) -> None:
    put(remote, "a.md")
    (drive / "default/notes.txt").write_text("hello")
    (drive / "default/zz").mkdir()
    (drive / "default/zz/not hex").mkdir()
    (home_of(drive, "a.md") / "007").mkdir()
    (home_of(drive, "a.md") / "9").mkdir()
    assert seen(opened(str(drive))) == ["a.md"]


def test_what_an_entry_says_of_itself_is_cut(remote: Remote, drive: Path) -> None:
    """Each is kept while a folder is listed: what is made to be large must not take memory."""
    put(remote, "a.md")
    entry = home_of(drive, "a.md") / "1" / "entry"
    said = json.loads(entry.read_bytes().partition(b"\n")[0])
    said |= {"author": "m" * 1000, "lineage": "x" * 3000, "marks": [*said["marks"], *("m" * 8 for _ in range(200))]}
    entry.write_bytes(json.dumps(said).encode() + b"\ntext")
    found = remote.get("a.md", SHARED, MOST)
    assert found is not None
    assert (len(found[0].author), len(found[0].lineage), found[1]) == (200, 2000, b"text")
    assert len(put(remote, "a.md", b"more", found[0].version)) > 0
    described = json.loads((home_of(drive, "a.md") / "2" / "entry").read_bytes().partition(b"\n")[0])
    assert len(described["marks"]) == 65


def test_a_short_file_is_opened_once_to_be_listed_and_fetched(remote: Remote) -> None:
    texts = {f"{number}.md": b"text %d" % number for number in range(10)} | {"long.md": b"word " * 4000}
    for path, data in texts.items():
        put(remote, path, data)
    listed = opened(drive_of(remote))
    read: list[str] = []
    counting = [True]
    sys.addaudithook(lambda event, args: read.append(args[0]) if counting and event == "open" else None)
    try:
        found = [each for page, _ in listed.changes("") for each in listed.get_many(page)]
    finally:
        counting.clear()
    assert {entry.path: data for entry, data in found} == texts
    assert read.count("entry") == len(texts) + 1


def test_a_long_list_is_read_again_instead_of_being_kept(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(folder, "_MOST_KNOWN", 3)
    for number in range(10):
        put(remote, f"{number}.md")
    entries = [entry for page, _ in remote.changes("") for entry in page]
    assert sorted(entry.path for entry in entries) == [f"{number}.md" for number in range(10)]
    alone = {entry.path for entry, _ in remote.get_many(entries)}
    assert all(content(remote, entry.path) == b"text" for entry in entries if entry.path not in alone)
    assert [entry for page, _ in remote.changes("") for entry in page] == entries


def test_what_a_full_drive_did_not_take_is_not_left_on_it(remote: Remote, drive: Path) -> None:
    put(remote, "small.md")
    before = tree(drive)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))  # as full as a test can make it
    try:
        with pytest.raises(Unreachable):
            put(remote, "large.md", b"a" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert tree(drive) == before
