"""Which changes are being made at this moment: each is locked for as long as whoever makes it lives.

    ~/.local/state/memlane/journal/3f9a….lock     empty: byte 17 of it is locked while change c17 is being made

The system takes the locks of a process away when it ends, however it ends. They are the process's own: one that it
forks has none of them, and a question from inside does not see them, so they are noted here, too. Closing the file
anywhere in a process gives up all its locks on it, so only this module opens it.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_WAIT = 0.5  # seconds; a number that was given back may be locked for a moment still
_DARWIN = sys.platform == "darwin"
_FLOCK = "qqihh" if _DARWIN else "hhqqi"  # struct flock: start, length, process, kind, whence; or the last two first
_guard = Lock()
_held: dict[str, tuple[int, set[int]]] = {}  # by path: the open file, and the changes that this process makes


def path_of(journal: str) -> str:
    """The file beside a journal that its writers lock."""
    return f"{os.path.realpath(journal).removesuffix('.db')}.lock"


def hold(journal: str, number: int) -> None:
    """This process makes this change, until `let_go` or its end. Raises OSError."""
    with _guard:
        path = path_of(journal)
        known = _held.get(path)
        fd, numbers = known or (_opened(path), set())
        try:
            _lock(fd, number)
            numbers.add(number)
            _held[path] = fd, numbers
        finally:
            if not numbers:
                os.close(fd)


def _lock(fd: int, number: int) -> None:
    until = time.monotonic() + _WAIT
    while True:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            return
        except (BlockingIOError, PermissionError):  # of a journal that was put aside, if it stays: that does no harm
            if time.monotonic() > until:
                return
        time.sleep(0.001)


def let_go(journal: str, number: int) -> None:
    """This change is over, well or not."""
    with _guard:
        path = path_of(journal)
        fd, numbers = _held.get(path, (-1, set[int]()))
        if number in numbers:
            numbers.remove(number)
            if numbers:
                fcntl.lockf(fd, fcntl.LOCK_UN, 1, number)
            else:
                del _held[path]
                os.close(fd)


def first(journal: str, since: int, upto: int) -> int:
    """The first change after `since` and up to `upto` that somebody is making; 0 when there is none. Raises OSError."""
    with _guard, _open(path_of(journal)) as (fd, numbers):
        found = min((number for number in numbers if since < number <= upto), default=0)
        last = found - 1 if found else upto
        while last > since and (other := _locked(fd, since + 1, last)):
            found, last = other, other - 1
    return found


@contextmanager
def _open(path: str) -> Iterator[tuple[int, set[int]]]:
    if known := _held.get(path):
        yield known
        return
    fd = _opened(path)
    try:
        yield fd, set()
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _locked(fd: int, begin: int, end: int) -> int:
    """A change of these that another process has locked; 0 when there is none."""
    place, kind = (begin, end - begin + 1, 0), (fcntl.F_WRLCK, os.SEEK_SET)
    asked = (*place, *kind) if _DARWIN else (*kind, *place)
    told = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(_FLOCK, *asked)))
    start, sort = (told[0], told[3]) if _DARWIN else (told[2], told[0])
    return 0 if sort == fcntl.F_UNLCK else max(start, begin)


def _forked() -> None:
    """What is held is the parent's."""
    global _guard
    _guard = Lock()
    for fd, _ in _held.values():
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_forked)
