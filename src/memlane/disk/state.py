"""Small files of lines in the user's state folder: only the user can read them, and they are appended to in one write.

Not for memories: nothing is recorded or awaited here, and what a power cut takes of a log is no loss.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.disk import files

if TYPE_CHECKING:
    import mmap

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def append(state: str | os.PathLike[str], name: str, line: bytes) -> int:
    """Add a line to a file of the state folder, and return how long the file was before. Raises OSError."""
    fd = os.open(_path(state, name), _APPEND, 0o600)
    try:
        size = os.fstat(fd).st_size
        os.fchmod(fd, 0o600)
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        os.write(fd, b"\n" * torn + line + b"\n")
        return size
    finally:
        os.close(fd)


def claim(state: str | os.PathLike[str], name: str) -> bool:
    """Make an empty file in the state folder; False when it is there already, whoever was first. Raises OSError."""
    try:
        os.close(os.open(_path(state, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


def write(state: str | os.PathLike[str], name: str, data: bytes, kept: int) -> None:
    """Write a file of the state folder, or remove it when there is no content; of those beside it, the newest are kept.

    Raises OSError, StorageError.
    """
    if not data:
        remove([os.path.join(state, name)])
        return
    path = _path(state, name)
    replace(path, data)
    remove(newest(os.path.dirname(path))[kept:])


def _path(state: str | os.PathLike[str], name: str) -> str:
    """The path of a file of the state folder, in folders that only the user can read."""
    path = os.path.join(state, name)
    for folder in dict.fromkeys((os.fspath(state), os.path.dirname(path))):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_mode & 0o077:
            os.chmod(folder, 0o700)  # an older memlane left it open to others
    return path


def can_write(path: str) -> bool:
    """Whether such a file can be written, its folder being made: to be asked before much work goes into its content."""
    with suppress(OSError):
        return os.access(os.path.dirname(_path(os.path.dirname(path), os.path.basename(path))), os.W_OK)
    return False


def replace(path: str | os.PathLike[str], data: bytes) -> None:
    """Put another content into such a file, or remove it when there is none. Raises OSError, StorageError."""
    if data:
        files.replace(os.fspath(path), data)
        os.chmod(path, 0o600)
    else:
        os.unlink(path)


def mapped(path: str | os.PathLike[str]) -> mmap.mmap:
    """The content of such a file, which is only ever replaced; what is changed in it stays in this process.

    Raises OSError, ValueError.
    """
    import mmap

    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return mmap.mmap(fd, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(fd)


class Opened:
    """Such a file, open to read pieces of it: they are of one file, even if another takes its place. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._fd, size, at)

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def latest(folder: str | os.PathLike[str]) -> tuple[str, int] | None:
    """The file of a folder that was written last, and when, in nanoseconds; None when there is none."""
    with suppress(OSError):
        for path in newest(folder)[:1]:
            return path, os.stat(path).st_mtime_ns
    return None


def newest(folder: str | os.PathLike[str]) -> list[str]:
    """The files of a folder, the last changed one first; none where there is no such folder."""
    found: list[tuple[float, str]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.stat().st_mtime, entry.path))
    return [path for _, path in sorted(found, reverse=True)]


def remove(paths: list[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
