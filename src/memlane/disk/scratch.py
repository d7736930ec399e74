"""Private folders that last no longer than the process that made them: files of the past, a passing index.

They lie in the user's state folder (`scratch/`), open to the user alone. The process holds a lock on its folder. What a
killed one has left is not locked any more: the next one removes it, and `memlane doctor` names it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

from memlane.core.errors import StorageError
from memlane.disk import files

NAME = "scratch"
_ODD_NAMES = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP)


class Scratch:
    """A folder of this process. It is removed when nobody holds this object any more, or by `remove`."""

    def __init__(self, state: Path, what: str) -> None:
        """Make it, below the user's state folder, and clear away what dead processes have left. Raises StorageError."""
        home = os.path.join(state, NAME)
        with files.storage(home):
            os.makedirs(state, 0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(home, 0o700)
            info = os.lstat(home)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise StorageError(f"{home} is not a folder of yours.", hint="Move it out of the way.")
        with files.locked(home), files.storage(home):
            _clear(home)
            self.path = Path(os.path.realpath(mkdtemp(prefix=f"{what}-", dir=home)))  # 0700
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.remove = finalize(self, _remove, self.path, fd)  # a second call does nothing
            with suppress(OSError):  # without working locks, nobody else gets this one either
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: Path, fd: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(fd)


def left(state: Path) -> list[str]:
    """The folders whose process is gone. Changes nothing."""
    home = os.path.join(state, NAME)
    found = []
    for path in _folders(home):
        with _ownerless(path) as dead:
            if dead:
                found.append(path)
    return found


def clear(state: Path) -> None:
    """Remove the folders whose process is gone."""
    home = os.path.join(state, NAME)
    if os.path.isdir(home) and not os.path.islink(home):
        with files.locked(home):
            _clear(home)


def _clear(home: str) -> None:
    for path in _folders(home):
        with _ownerless(path) as dead:
            if dead:
                shutil.rmtree(path, ignore_errors=True)


def _folders(home: str) -> list[str]:
    if os.path.islink(home):
        return []
    try:
        with os.scandir(home) as listed:
            return sorted(entry.path for entry in listed if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


@contextmanager
def _ownerless(path: str) -> Iterator[bool]:
    """Whether nobody has the lock of a folder; nobody gets it in the meantime."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def write(folder: Path, contents: Iterable[tuple[str, bytes]]) -> list[str]:
    """Write files (a relative path that `names.path_problem` allows, and bytes) for their owner alone.

    They are not synced: nothing here needs to survive a loss of power. Never follows a link and never replaces a file.
    Returns the paths that this file system cannot hold beside the others. Raises StorageError.
    """
    odd = []
    for path, data in contents:
        *folders, name = path.split("/")
        place = os.fspath(folder)
        try:
            for part in folders:
                place = os.path.join(place, part)
                with suppress(FileExistsError):
                    os.mkdir(place, 0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(os.path.join(place, name), flags, 0o600), "wb") as file:
                file.write(data)
        except OSError as error:
            if error.errno not in _ODD_NAMES:
                with files.storage(name):
                    raise
            odd.append(path)
    return odd


def empty(folder: Path) -> None:
    """Remove everything in a folder: empty folders, too, through which whoever reads the next file would walk."""
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)
