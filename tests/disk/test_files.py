"""Files that nothing can lose: durable writes, locks, walking."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import tree
from memlane import AlreadyExists, InvalidInput, NotFound, Problem, StorageError
from memlane.core.errors import Busy
from memlane.disk import files, renaming, trash, walking

NOW = datetime(2025, 1, 10, 14, 30, 22, tzinfo=UTC)


# -- writing


def test_create_makes_folders_and_leaves_no_temp_file(tmp_path: Path) -> None:
    files.create(str(tmp_path / "a/b/c.md"), b"text")
    assert tree(tmp_path) == {"a/b/c.md": b"text"}


def test_create_never_replaces(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"old")
    with pytest.raises(AlreadyExists):
        files.create(str(tmp_path / "a.md"), b"new")
    assert tree(tmp_path) == {"a.md": b"old"}


def test_many_threads_create_one_name_once(tmp_path: Path) -> None:
    won: list[int] = []

    def attempt(number: int) -> None:
        try:
            files.create(str(tmp_path / "a.md"), str(number).encode())
        except AlreadyExists:
            return
        won.append(number)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree(tmp_path) == {"a.md": str(won[0]).encode()}
    assert len(won) == 1


def test_create_works_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*args: object, **kwargs: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    files.create(str(tmp_path / "a.md"), b"text")
    with pytest.raises(AlreadyExists):
        files.create(str(tmp_path / "a.md"), b"other")
    assert trash.put(str(tmp_path / "a.md"), tmp_path, NOW) == str(tmp_path / ".trash/a_20250110_143022.md")
    assert tree(tmp_path) == {".trash/a_20250110_143022.md": b"text"}


def test_replace_keeps_the_mode_and_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.md"
    real.write_bytes(b"old")
    real.chmod(0o640)
    (tmp_path / "link.md").symlink_to(real)
    files.replace(str(tmp_path / "link.md"), b"new")
    assert real.read_bytes() == b"new"
    assert (tmp_path / "link.md").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("call", [files.create, files.replace, files.append_lines])
def test_a_write_syncs_the_file_and_its_folder(tmp_path: Path, call: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without these two an acknowledged write is lost with the power."""
    synced = []
    fsync = os.fsync

    def record(fd: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record)
    call(str(tmp_path / "new.md"), b"text\n")  # type: ignore[operator]
    assert synced == [False, True]


@pytest.mark.parametrize(
    ("call", "done", "after"),
    [
        (lambda at: files.create(f"{at}/new.md", b"a\n"), "new.md was written", {"new.md": b"a\n", "old.md": b"old\n"}),
        (lambda at: files.replace(f"{at}/old.md", b"new\n"), "old.md was written", {"old.md": b"new\n"}),
        (lambda at: files.append_lines(f"{at}/b.md", b"a\n"), "b.md was written", {"b.md": b"a\n", "old.md": b"old\n"}),
        (lambda at: files.append_lines(f"{at}/old.md", b"a\n"), "old.md was written", {"old.md": b"old\na\n"}),
        (lambda at: files.move(f"{at}/old.md", f"{at}/new.md"), "old.md was moved", {"new.md": b"old\n"}),
        (lambda at: files.remove(f"{at}/old.md"), "old.md was deleted", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("why", [errno.EIO, errno.ENOSPC])
def test_where_only_the_last_sync_failed_the_error_does_not_ask_for_a_second_try(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Path], None],
    done: str,
    after: dict[str, bytes],
    why: int,
) -> None:
    (tmp_path / "old.md").write_bytes(b"old\n")
    fsync = os.fsync

    def fail(fd: int) -> None:
        if tree(tmp_path) == after:  # the change is made
            raise OSError(why, os.strerror(why))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as caught:
        call(tmp_path)
    assert str(caught.value) == f"{done}, but that may not survive a loss of power: {os.strerror(why)}."
    assert caught.value.code == "not_durable"
    assert tree(tmp_path) == after


def test_new_folders_are_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    files.create(str(tmp_path / "a/b/c.md"), b"text")
    assert [path for path in synced if os.path.isdir(path)] == [
        str(tmp_path),
        str(tmp_path / "a"),
        str(tmp_path / "a/b"),
    ]


def test_a_file_behind_a_link_is_synced_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/real.md").write_bytes(b"old")
    (tmp_path / "b/link.md").symlink_to(tmp_path / "a/real.md")
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    files.replace(str(tmp_path / "b/link.md"), b"new")
    assert synced[-1] == str(tmp_path / "a")


def test_a_file_has_its_whole_content_from_the_moment_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at after every system call that writes: the name is absent, or old, or whole."""
    path = tmp_path / "a.md"
    data = b"x" * 100_000
    seen: set[bytes | None] = set()
    write = os.write

    def slowly(fd: int, piece: bytes) -> int:
        written = write(fd, piece[:40_000])
        seen.add(path.read_bytes() if path.exists() else None)
        return written

    monkeypatch.setattr(os, "write", slowly)
    files.create(str(path), data)
    files.replace(str(path), b"y" * 100_000)
    assert seen == {None, data}
    assert path.read_bytes() == b"y" * 100_000


@pytest.mark.parametrize("call", [files.create, files.replace, files.append_lines])
def test_a_folder_where_a_file_is_expected_is_an_error(tmp_path: Path, call: object) -> None:
    (tmp_path / "a.md").mkdir()
    with pytest.raises((StorageError, AlreadyExists)):
        call(str(tmp_path / "a.md"), b"text\n")  # type: ignore[operator]
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("call", [files.create, files.replace, files.append_lines])
def test_a_file_where_a_folder_is_expected_is_an_error(tmp_path: Path, call: object) -> None:
    (tmp_path / "a").write_bytes(b"x")
    with pytest.raises(StorageError):
        call(str(tmp_path / "a/b.md"), b"text\n")  # type: ignore[operator]
    assert tree(tmp_path) == {"a": b"x"}


def test_appending_closes_off_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":')
    files.append_lines(str(path), b'{"c":3}\n')
    assert path.read_bytes() == b'{"a":1}\n{"b":\n{"c":3}\n'


def test_what_the_disk_takes_only_the_beginning_of_is_blanked_out(tmp_path: Path) -> None:
    """A limit on the size of files cuts the second line off; nothing of it is left, and the third stands by itself."""
    path = tmp_path / "log.jsonl"
    code = (
        "import resource, sys; from memlane import StorageError; from memlane.disk import files\n"
        "files.append_lines(sys.argv[1], b'{\"a\":1}\\n')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (12, resource.RLIM_INFINITY))\n"
        "try: files.append_lines(sys.argv[1], b'{\"b\":2}\\n')\n"
        "except StorageError as error: print(error.code)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "files.append_lines(sys.argv[1], b'{\"c\":3}\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("disk_full\n", "")
    assert path.read_bytes() == b'{"a":1}\n    \n{"c":3}\n'


def test_appending_follows_a_file_that_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction between our write and our return must not swallow the line."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"old\n")
    fsync, calls = os.fsync, []

    def replace_once(fd: int) -> None:
        fsync(fd)
        if not calls:
            calls.append(fd)
            (tmp_path / "new").write_bytes(b"compacted\n")
            os.replace(tmp_path / "new", path)

    monkeypatch.setattr(os, "fsync", replace_once)
    files.append_lines(str(path), b"line\n")
    assert path.read_bytes() == b"compacted\nline\n"


@pytest.mark.parametrize(
    ("text", "message"), [("a\0b", "NUL"), ("lone \ud800", "not valid Unicode"), ("x" * (files.MAX_BYTES + 1), "bytes")]
)
def test_text_that_cannot_be_stored_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        files.encoded(text)


# -- locks


def test_a_lock_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound), files.locked(str(tmp_path / "gone.md")):
        pass


def test_read_modify_write_under_a_lock_loses_nothing(tmp_path: Path) -> None:
    """Each holder replaces the file, so the lock must follow the name and not the old file."""
    path = str(tmp_path / "count")
    files.create(path, b"0")

    def count() -> None:
        for _ in range(25):
            with files.locked(path):
                files.replace(path, str(int(files.read_bytes(path)) + 1).encode())

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read_bytes(path) == b"200"


def test_a_lock_that_is_never_let_go_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """A reader can hold it, too: somebody else's stopped process must not hang ours."""
    path = tmp_path / "a.md"
    path.write_bytes(b"text")
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(Busy) as busy, files.locked(str(path), wait=0.05):
            pass
    who = f"process {os.getpid()} (" if sys.platform == "linux" else "another program"
    assert str(busy.value).startswith(f"a.md is being written by {who}")
    with files.locked(str(path), wait=0):
        pass


# -- moving


@pytest.mark.parametrize("system", [True, False])
def test_a_move_does_not_replace(tmp_path: Path, system: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not system:
        monkeypatch.setattr(renaming, "_system_call", lambda: None)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(name)
    with pytest.raises(AlreadyExists):
        files.move(str(tmp_path / "a.md"), str(tmp_path / "b.md"))
    files.move(str(tmp_path / "a.md"), str(tmp_path / "sub/c.md"))
    with pytest.raises(NotFound):
        files.move(str(tmp_path / "a.md"), str(tmp_path / "d.md"))
    assert tree(tmp_path) == {"b.md": b"b.md", "sub/c.md": b"a.md"}


def test_what_an_editor_saves_during_a_move_in_two_steps_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renaming, "_system_call", lambda: None)
    (tmp_path / "a.md").write_text("old")
    link = os.link

    def save_after(*args: object, **options: object) -> None:
        link(*args, **options)  # type: ignore[arg-type]
        (tmp_path / "swap").write_text("saved")
        os.replace(tmp_path / "swap", tmp_path / "a.md")

    monkeypatch.setattr(os, "link", save_after)
    files.move(str(tmp_path / "a.md"), str(tmp_path / "b.md"))
    assert tree(tmp_path) == {"a.md": b"saved", "b.md": b"old"}


# -- reading and walking


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "big.md", "wb") as big:
        big.truncate(files.MAX_BYTES + 1)
    with pytest.raises(StorageError, match="bytes"):
        files.read_bytes(str(tmp_path / "big.md"))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(OSError, match="not a regular file"):
        files.read_bytes(str(tmp_path / "pipe.md"))


def test_walking_passes_over_what_is_not_memory(tmp_path: Path) -> None:
    for name in ("b.md", "a.md", "sub/c.md", ".git/x.md", ".trash/x.md", "indices/x.md", "skip/x.md", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [os.path.relpath(str(path), tmp_path) for path in walking.walk(tmp_path, skip=[str(tmp_path / "skip")])]
    assert found == ["a.md", "b.md", "sub/c.md"]


def test_walking_follows_links_only_to_files_inside(tmp_path: Path) -> None:
    root = tmp_path / "bank"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("x")
    (root / "sub/real.md").write_text("x")
    (root / "in.md").symlink_to(root / "sub/real.md")
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "loop").symlink_to(root)
    (root / "gone.md").symlink_to(root / "nothing.md")
    found = list(walking.walk(root))
    assert [os.path.relpath(path, root) for path in found if isinstance(path, str)] == ["in.md", "sub/real.md"]
    assert [(item.path.name, item.why) for item in found if isinstance(item, Problem)] == [
        ("gone.md", "is a link to nothing"),
        ("out.md", "is a link out of the bank and not followed"),
    ]


def test_walking_reports_what_looks_like_memory_and_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".secret.md").write_text("x")
    (tmp_path / "folder.md").mkdir()
    assert [(str(item.path.name), item.why) for item in walking.walk(tmp_path) if isinstance(item, Problem)] == [
        (".secret.md", "is hidden and not read; rename it without the leading dot"),
        ("folder.md", "is a folder where a file is expected"),
    ]


def test_walking_reports_what_an_old_interrupted_write_left(tmp_path: Path) -> None:
    for name, age in ((".memlane-1-aa.tmp", 7200), (".memlane-2-bb.tmp", 0)):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert [item.path.name for item in walking.walk(tmp_path) if isinstance(item, Problem)] == [".memlane-1-aa.tmp"]
