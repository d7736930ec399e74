"""An append-only file of lines that many processes write: read only what is new, rewrite without losing a line.

Appending is files.append_lines, without a lock. `rewrite` is for compaction alone:

    lock the file → read it → write the successor → keep the old file under `<name>.old` → rename
    → carry over the lines that reached the old file meanwhile → drop `<name>.old`

Whoever appends looks, after his write, whether the name still means the file he wrote to, and appends again if
not. So a line is in the old file before the carrying over, or its writer sees the new file. A kill between rename
and carrying over leaves `<name>.old`, which readers read first and the next rewrite folds in. A line may arrive
twice; that is harmless, because a line that is read twice says the same thing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from memlane.disk import files

BOM = b"\xef\xbb\xbf"
OLD = ".old"
REJECTED = ".rejected"
_PROBE = 64


@dataclass(slots=True)
class Position:
    """How far a file has been read, and how to notice that it is no longer the same file."""

    file: tuple[int, int] = (0, 0)
    offset: int = 0
    changed: int = 0
    probe: bytes = b""
    checksum: int = 0


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a file, and what stands after the last line end; without the BOM that some editors write.

    A BOM stands at the start of a file, and wherever somebody appended one file to another.
    """
    lines = data.split(b"\n")
    return [line.removeprefix(BOM) for line in lines] if BOM in data else lines


def read_new(path: str, at: Position, verify: bool = False) -> tuple[bytes, bool]:
    """(what was appended since the last call, False), or (the whole content, True) when the file is another one now.

    An edit in place that leaves the file's size and its last bytes as they were, followed by an append, looks like
    the append alone; `verify` compares all that was read before, and finds it.
    Moves `at` to the end of what is returned. A file that is not there reads as empty. Raises OSError.
    """
    try:
        info = os.stat(path)
    except FileNotFoundError:
        fresh = at.offset > 0 or at.file != (0, 0)
        at.file, at.offset, at.changed, at.probe, at.checksum = (0, 0), 0, 0, b"", 0
        return b"", fresh
    same = (info.st_dev, info.st_ino) == at.file and info.st_size == at.offset and info.st_mtime_ns == at.changed
    if same and not verify:
        return b"", False
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EISDIR, "is not a file", path)
        known = (info.st_dev, info.st_ino) == at.file and _still_begins(fd, info.st_size, at, verify)
        start = at.offset if known else 0
        data = _read(fd, start)
        info = os.fstat(fd)  # again: what was appended while reading is part of the data
        at.file, at.offset, at.changed = (info.st_dev, info.st_ino), start + len(data), info.st_mtime_ns
        at.probe = data[-_PROBE:] if len(data) >= _PROBE else ((at.probe if known else b"") + data)[-_PROBE:]
        at.checksum = zlib.crc32(data, at.checksum if known else 0)
        return data, not known
    finally:
        os.close(fd)


def _still_begins(fd: int, size: int, at: Position, verify: bool) -> bool:
    """Whether the file still begins with what was read of it."""
    if verify:
        return size >= at.offset and zlib.crc32(_read(fd, 0)[: at.offset]) == at.checksum
    return size > at.offset and os.pread(fd, len(at.probe), at.offset - len(at.probe)) == at.probe


def read_old(path: str) -> bytes:
    """What an interrupted rewrite left to be carried over; empty nearly always."""
    try:
        fd = os.open(os.path.realpath(path) + OLD, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return _read(fd, 0)
    finally:
        os.close(fd)


def rewrite(path: str, change: Callable[[bytes], tuple[bytes, bytes]], is_whole: Callable[[bytes], bool]) -> None:
    """Replace the content by change(content) -> (kept lines, rejected lines), while others go on appending.

    `is_whole` says of a last line without a line end whether it is complete all the same, as editors leave it.
    Rejected lines are appended to `<name>.rejected`. Raises NotFound when there is no such file, StorageError.
    """
    path = os.path.realpath(path)
    with files.locked(path), files.storage(path):
        _fold_in_old(path)
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = _read(source, 0)
            whole = data.rfind(b"\n") + 1
            if is_whole(split_lines(data[whole:])[-1]):
                whole = len(data)
            kept, rejected = change(data[:whole])
            if rejected:
                files.append_lines(path + REJECTED, rejected)
            temp = files.write_temp(os.path.dirname(path), kept, stat.S_IMODE(os.fstat(source).st_mode))
            try:
                successor = os.open(temp, os.O_RDONLY | os.O_CLOEXEC)
            except BaseException:
                os.unlink(temp)
                raise
            try:
                # The next rewriter must wait for the new file too, until the lines are carried over.
                fcntl.flock(successor, fcntl.LOCK_EX)
                try:
                    _keep_old(path)
                    os.rename(temp, path)
                except BaseException:
                    with suppress(FileNotFoundError):
                        os.unlink(temp)
                    with suppress(FileNotFoundError):
                        os.unlink(path + OLD)
                    raise
                files.sync_folder(os.path.dirname(path))
                late = _read(source, whole)
                end = late.rfind(b"\n") + 1
                if late[:end].strip():
                    files.append_lines(path, late[:end])
                if late[end:].strip():  # torn: a write that died, or one whose writer will append again
                    files.append_lines(path + REJECTED, late[end:] + b"\n")
                with suppress(FileNotFoundError):
                    os.unlink(path + OLD)
            finally:
                os.close(successor)
        finally:
            os.close(source)


def _keep_old(path: str) -> None:
    try:
        os.link(path, path + OLD)
    except OSError as error:  # without hard links, only a kill at this very moment could lose a late line
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise


def _fold_in_old(path: str) -> None:
    left = read_old(path)
    if left:
        files.append_lines(path, left if left.endswith(b"\n") else left + b"\n")
    with suppress(FileNotFoundError):
        os.unlink(path + OLD)


def _read(fd: int, start: int) -> bytes:
    chunks = []
    while chunk := os.pread(fd, 1 << 24, start):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


def remove_lines(path: str, is_dropped: Callable[[bytes], bool]) -> None:
    """Take lines out of a file that nobody appends to meanwhile; one with no line left is removed."""
    with open(path, "rb") as file:
        lines = [line for line in split_lines(file.read()) if line.strip() and not is_dropped(line)]
    files.replace(path, b"".join(line + b"\n" for line in lines)) if lines else files.remove(path)
