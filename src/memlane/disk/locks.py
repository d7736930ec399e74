"""Taking a lock with a deadline: whoever may read a file can hold its lock, and may never let go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import ContextVar

from memlane.core.errors import Busy

try:
    import fcntl
except ImportError:
    raise ImportError("memlane runs on Linux and macOS; on Windows, use it inside WSL.") from None

PATIENCE = 10.0  # seconds a writer waits for a lock
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02

patience: ContextVar[float] = ContextVar("patience", default=PATIENCE)  # of this thread; a hook has less
once_locked: ContextVar[Callable[[str], None] | None] = ContextVar("once_locked", default=None)  # see `files.locked`
on_wait: ContextVar[Callable[[], None] | None] = ContextVar("on_wait", default=None)  # called when a lock is not free


def deadline(wait: float | None = None) -> float:
    """When to give up, on time.monotonic's clock."""
    return time.monotonic() + (patience.get() if wait is None else wait)


def take(fd: int, path: str, until: float) -> None:
    """Lock an open file for ourselves alone. Raises Busy at the deadline, OSError where there are no locks."""
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            left = until - time.monotonic()
        if left <= 0:
            holder = _holder(os.fstat(fd))
            raise Busy(
                f"{os.path.basename(path)} is being written by {holder or 'another program'}.",
                hint="Try again. If that program hangs, end it." if holder else "Try again.",
            )
        if pause == _FIRST_PAUSE:
            tell_waiting()
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def tell_waiting() -> None:
    """We are about to wait for somebody: whoever need not wait for us may go on."""
    if tell := on_wait.get():
        tell()


def _holder(info: os.stat_result) -> str:
    """The process that holds the lock, as far as Linux tells: `process 4711 (python)`."""
    device = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
        pid = next(row[4] for row in rows if row[1] == "FLOCK" and row[5] == device and int(row[4]) > 0)
    except (OSError, ValueError, IndexError, StopIteration):
        return ""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read(64).decode(errors="replace")
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({''.join(filter(str.isprintable, name))})"
