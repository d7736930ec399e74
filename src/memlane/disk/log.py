"""Append-only files of lines that many processes write: read only what is new, rewrite without losing a line.

Appending is files.append_lines, without a lock. `rewrite` is for compaction alone:

    lock the file → read it → write the new file → link the old one as `<name>.old` → rename
    → copy the lines that reached the old file meanwhile → delete `<name>.old`

After each write, files.append_lines checks whether the name still means the same file, and appends again if not. So a
line is either in the old file before the copying, or its writer sees the new file. A kill, Ctrl-C or a deadline between
the rename and the copying leaves `<name>.old`, which readers read too and the next rewrite takes in. A line may arrive
twice; that is harmless, because reading a line twice changes nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from memlane.core.errors import NotFound
from memlane.core.values import dataclass
from memlane.disk import files, journal, rooted
from memlane.disk.walking import is_settled

BOM = b"\xef\xbb\xbf"
OLD = ".old"
REJECTED = ".rejected"
_CHUNK = 1 << 20
_YOUNG = -1  # in place of a ctime: no file has one below 0


@dataclass(slots=True)
class Position:
    """How far a file has been read, and what tells that it is still the same file."""

    stamp: tuple[int, ...] = ()  # what `_stamp` says of it
    offset: int = 0
    checksum: int = 0


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a file, the last one being what follows the last line end; without the BOM of some editors.

    A BOM may stand before any line: somebody may have appended one file to another.
    """
    lines = data.split(b"\n")
    return [line.removeprefix(BOM) for line in lines] if BOM in data else lines


def read_lines(path: str) -> list[bytes]:
    """Every line of the file, after those that an interrupted rewrite left. No file, no lines. Raises OSError."""
    data, _ = read_new(path, Position())
    return [*split_lines(read_old(path)), *split_lines(data)]


# As `json.loads`, but of what is no JSON it says only that it is none.
_scanned = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def json_of(line: bytes | str, otherwise: Any = None) -> Any:
    """The JSON value of a line; `otherwise` when it is not JSON."""
    try:
        text = line if isinstance(line, str) else line.removeprefix(BOM).decode(errors="surrogatepass")
        text = text.strip(" \t\n\r")
        value, end = _scanned(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return otherwise
    return value if end == len(text) else otherwise


def read_new(path: str, at: Position, *, verify: bool = False, trusting: bool = False) -> tuple[bytes, bool]:
    """(what was appended since the last call, False), or (the whole content, True) when it is another file now.

    Moves `at` to the end of what is returned. A missing file reads as empty. Raises OSError.
    Where the file is not as it was, all that was read before is compared: somebody may have edited it, and others have
    appended since. `verify` compares it in any case. `trusting` is for a file that nobody edits.
    """
    looked = time.time_ns()
    try:
        stamp = _stamp(os.stat(path), looked)
    except FileNotFoundError:
        known = bool(at.stamp)
        at.stamp, at.offset, at.checksum = (), 0, 0
        return b"", known
    if stamp == at.stamp and stamp[-1] != _YOUNG and not verify:
        return b"", False
    with rooted.opened(path, os.O_RDONLY) as fd:
        stamp = _stamp(os.fstat(fd), looked)  # before it is read: what comes meanwhile is looked at the next time
        known = stamp[:2] == at.stamp[:2] and _still_begins(fd, at, trusting)
        start = at.offset if known else 0
        data = _read(fd, start)
        at.stamp, at.offset = stamp, start + len(data)
        at.checksum = zlib.crc32(data, at.checksum if known else 0)
        return data, not known


def _stamp(info: os.stat_result, looked: int) -> tuple[int, ...]:
    """What changes with a file: its place, size and times. One that was just changed may change again without them."""
    became = info.st_ctime_ns if is_settled(info.st_ctime_ns, looked) else _YOUNG
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, became


def _still_begins(fd: int, at: Position, trusting: bool) -> bool:
    """Whether the file still begins with what was read of it."""
    return os.fstat(fd).st_size >= at.offset and (trusting or _checksum(fd, at.offset) == at.checksum)


def _checksum(fd: int, size: int) -> int:
    """The checksum of the beginning of a file, piece by piece: none of it is kept."""
    checksum = at = 0
    while chunk := os.pread(fd, min(_CHUNK, size - at), at):
        checksum = zlib.crc32(chunk, checksum)
        at += len(chunk)
    return checksum


def read_old(path: str) -> bytes:
    """The old file that an interrupted rewrite left; empty nearly always. Raises OSError."""
    return read_all(files.real(path) + OLD)


def read_all(path: str) -> bytes:
    """The whole file; empty when there is none. Raises OSError, StorageError above MAX_LOG_BYTES."""
    with suppress(FileNotFoundError), rooted.opened(path, os.O_RDONLY) as fd:
        return _read(fd, 0)
    return b""


def rewrite(
    path: str,
    change: Callable[[bytes], tuple[bytes, bytes]],
    is_whole: Callable[[bytes], bool],
    recorded: Callable[[str, bytes, bytes], AbstractContextManager[None]] = journal.writing,
    *,
    keep_old: bool = True,
) -> None:
    """Replace the content by change(content) -> (kept lines, rejected lines), while others go on appending.

    `is_whole` tells whether a last line without a line end is complete: editors leave such lines. Without `keep_old`,
    a kill leaves no line that should be gone, and may lose one that somebody appends at this very moment.
    Rejected lines are appended to `<name>.rejected`. Raises NotFound when there is no such file, StorageError.
    """
    files.refuse_read_only(path)
    path = files.real(path)
    name = os.path.basename(path)
    with files.locked(path), files.storage(path), rooted.folder(os.path.dirname(path)) as at:
        _fold_in_old(path, at)
        with rooted.opened(path, os.O_RDONLY) as source:
            data = _read(source, 0)
            whole = data.rfind(b"\n") + 1
            if is_whole(split_lines(data[whole:])[-1]):
                whole = len(data)
            kept, rejected = change(data[:whole])
            if rejected:
                files.append_lines(path + REJECTED, rejected)
            temp = files.write_temp(at, kept, stat.S_IMODE(os.fstat(source).st_mode))
            with _locked_in_place(at, temp, name, source, recorded(path, data, kept), keep_old=keep_old):
                with files.in_place(path):
                    os.fsync(at)
                late = _read(source, whole)
                end = late.rfind(b"\n") + 1
                if late[:end].strip():
                    files.append_lines(path, late[:end])
                if late[end:].strip():  # torn: its writer died, or will append again
                    files.append_lines(path + REJECTED, late[end:] + b"\n")
                files.unlink(at, name + OLD)


@contextmanager
def _locked_in_place(
    at: int, temp: str, name: str, source: int, recorded: AbstractContextManager[None], *, keep_old: bool
) -> Iterator[None]:
    """Rename the new file to its name, and lock it: the next rewriter must wait until the late lines are copied.

    An error or a signal may come just after the rename. From then on the late lines may stand in the old file alone, so
    its link goes only while the name still means the old file, which `source` is open on.
    """
    try:
        successor = os.open(temp, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except BaseException:
        os.unlink(temp, dir_fd=at)
        raise
    try:
        fcntl.flock(successor, fcntl.LOCK_EX)  # nobody else knows it yet
        try:
            if keep_old:
                _keep_old(at, name)
            with recorded:
                os.rename(temp, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            files.unlink(at, temp)
            if os.path.samestat(os.stat(name, dir_fd=at, follow_symlinks=False), os.fstat(source)):
                files.unlink(at, name + OLD)
            raise
        yield
    finally:
        os.close(successor)


def cut(path: str, start: int, data: bytes, *, gone: bool) -> bool:
    """Take these bytes off the end of a file, where they begin at `start`; whether they were its end.

    With `gone`, a file that is empty then is removed. What others append meanwhile stays. Raises StorageError.
    """

    def change(found: bytes) -> tuple[bytes, bytes]:
        if len(found) != start + len(data) or not found.endswith(data):
            raise _Other
        return found[:start], b""

    def recorded(path: str, before: bytes, after: bytes) -> AbstractContextManager[None]:
        return journal.cutting(path, start, data, gone=gone)

    try:
        rewrite(path, change, lambda _: True, recorded, keep_old=False)
    except (_Other, NotFound):
        return False
    if gone and not read_all(path):
        with journal.paused():  # it is part of the cut
            files.remove(path)
    return True


class _Other(Exception):
    """The file ends with something else."""


def _keep_old(at: int, name: str) -> None:
    try:
        os.link(name, name + OLD, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
    except OSError as error:  # without hard links, only a kill at this very moment could lose a late line
        if error.errno not in files.NO_LINKS:
            raise


def _fold_in_old(path: str, at: int) -> None:
    with suppress(OSError):
        if os.path.samefile(path, path + OLD):  # a kill came just before the rename
            os.unlink(os.path.basename(path) + OLD, dir_fd=at)
    left = read_old(path)
    if left:
        files.append_lines(path, left if left.endswith(b"\n") else left + b"\n")
    files.unlink(at, os.path.basename(path) + OLD)


def _read(fd: int, start: int) -> bytes:
    """The rest of a file, nearly always in one piece. Raises StorageError above MAX_LOG_BYTES."""
    size = os.fstat(fd).st_size
    files.refuse_size(size, files.MAX_LOG_BYTES)
    chunks = []
    while chunk := os.pread(fd, max(size - start, _CHUNK), start):
        chunks.append(chunk)
        start += len(chunk)
        files.refuse_size(start, files.MAX_LOG_BYTES)
    return b"".join(chunks)


def remove_lines(path: str, is_dropped: Callable[[bytes], bool]) -> None:
    """Take lines out of a file that nobody appends to meanwhile; one with no line left is removed."""
    lines = [line for line in split_lines(read_all(path)) if line.strip() and not is_dropped(line)]
    files.replace(path, b"".join(line + b"\n" for line in lines)) if lines else files.remove(path)
