"""What was written in some folders since we began to listen, as the kernel tells: it costs one call.

Linux alone tells (inotify). Elsewhere, and where the user has no room for more watches, nothing is heard, and whoever
asks has to look at the files. Nor is everything told: not what another machine writes on a shared disk, nor what is
written through another hard link. So what is heard saves most looks, and does not replace them.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress

MOST = 1_000  # folders that are listened to
_OPTIONS = 0x800 | 0x80000  # IN_NONBLOCK | IN_CLOEXEC
# IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
# IN_ISDIR, IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED; and IN_Q_OVERFLOW: there was too much to tell
_OF_FOLDERS = 0x40000000 | 0x400 | 0x800 | 0x2000 | 0x8000 | 0x4000
_EVENT = struct.Struct("iIII")  # which folder, what, which other event belongs to it, bytes of the name that follows
_PLAIN = 0x1000000 | 0x2000000  # IN_ONLYDIR | IN_DONT_FOLLOW


class Notices:
    """What the kernel has to tell of some folders; not of those below them. Ends with the object.

    It tells of the folders that were there, under whatever names, and not of others that took their places: once a
    folder came, went or was moved, it is `lost`, and somebody has to begin anew.
    """

    def __init__(self, fd: int, folders: Mapping[int, str]) -> None:
        self._fd, self._process, self._of = (
            fd,
            os.getpid(),
            folders,
        )  # by the number that stands for each in what is told
        self.folders = frozenset(folders.values())
        self.lost = False

    def told(self) -> set[str] | None:
        """The files that have changed since the last call; None where nobody can say which."""
        files: set[str] = set()
        while not self.lost and self.ours and (told := self._read()):
            at = 0
            while at < len(told):
                folder, what, _, length = _EVENT.unpack_from(told, at)
                at += _EVENT.size + length
                self.lost = self.lost or bool(what & _OF_FOLDERS) or not length
                name = told[at - length : at].rstrip(b"\0")
                files.add(f"{self._of.get(folder)}/{os.fsdecode(name)}")
        return files if self.ours and not self.lost else None

    @property
    def ours(self) -> bool:
        """Whether we began to listen: a fork shares what is told with its parent, and must not take it away."""
        return self._process == os.getpid()

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 65536)
        except BlockingIOError:
            return b""

    def __del__(self) -> None:
        os.close(self._fd)


def anew(known: Notices | None, folders: Collection[str]) -> Notices | None:
    """Begin to listen to these folders, or go on without what was told so far; None where that cannot be."""
    if known is not None and known.folders == frozenset(folders) and known.told() is not None:
        return known
    return listen(folders)


def listen(folders: Collection[str]) -> Notices | None:
    """Begin to listen to these folders; None where that cannot be."""
    if sys.platform != "linux" or len(folders) > MOST:
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1") or (fd := libc.inotify_init1(_OPTIONS)) < 0:
        return None
    numbers = {libc.inotify_add_watch(fd, os.fsencode(folder), _CHANGES | _PLAIN): folder for folder in folders}
    notices = Notices(fd, numbers)
    return notices if min(numbers, default=0) >= 0 else None


def last_written(root: str) -> tuple[int, int]:
    """How many folders there are at a place, without hidden ones, and when the last of them was changed; of a file,
    when that was. A look that costs little and misses what is written into a file that stays where it is."""
    times = []
    pending = [root]
    while pending:
        path = pending.pop()
        with suppress(OSError):  # it is gone, or not ours to read
            times.append(os.lstat(path).st_mtime_ns)
            with os.scandir(path) as entries:
                pending += [
                    entry.path
                    for entry in entries
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
                ]
    return len(times), max(times, default=0)
