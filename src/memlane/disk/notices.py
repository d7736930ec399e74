"""Whether anything was written in some folders since we began to listen, as the kernel tells: it costs one call.

Linux alone tells (inotify). Elsewhere, and where the user has no room for more watches, nothing is heard, and whoever
asks has to look at the files. Nor is everything told: not what another machine writes on a shared disk, nor what is
written through another hard link. So what is heard saves most looks, and does not replace them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

MOST = 1_000  # folders that are listened to
_OPTIONS = 0x800 | 0x80000  # IN_NONBLOCK | IN_CLOEXEC
# IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_PLAIN = 0x1000000 | 0x2000000  # IN_ONLYDIR | IN_DONT_FOLLOW


class Notices:
    """What the kernel has to tell of some folders; not of those below them. To be closed."""

    def __init__(self, fd: int) -> None:
        self._fd, self._process = fd, os.getpid()

    def quiet(self) -> bool:
        """Whether nothing has changed since the last time that this was asked, or since the beginning."""
        if self._fd < 0 or self._process != os.getpid():  # a fork shares what is told with its parent
            return False
        quiet = True
        while True:  # all that was told
            try:
                os.read(self._fd, 65536)
            except BlockingIOError:
                return quiet
            except OSError:
                return False
            quiet = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def listen(folders: Collection[str]) -> Notices | None:
    """Begin to listen to these folders; None where that cannot be."""
    if sys.platform != "linux" or len(folders) > MOST:
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1") or (fd := libc.inotify_init1(_OPTIONS)) < 0:
        return None
    notices = Notices(fd)
    if any(libc.inotify_add_watch(fd, os.fsencode(folder), _CHANGES | _PLAIN) < 0 for folder in folders):
        notices.close()
        return None
    return notices
