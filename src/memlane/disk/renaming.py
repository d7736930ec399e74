"""Giving a file a new name only if that name is free, in one step.

A hard link to the new name and an unlink of the old one would be two steps: what an editor saves under the old name in
between would be deleted. Linux and macOS can do it in one, by calls that Python does not have.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # the file system has no hard links
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_RENAME_NOREPLACE, _RENAME_EXCL = 1, 4  # Linux, macOS


def to_free_name(here: int, old: str, there: int, new: str) -> None:
    """Rename `old` in one open folder to `new` in another. Raises OSError, FileExistsError when the name is taken."""
    error = errno.ENOSYS
    if rename := _system_call():
        sys.audit("os.rename", old, new, here, there)
        error = rename(here, old, there, new)
    if error in _CANNOT:
        _in_two_steps(here, old, there, new)
    elif error:
        raise OSError(error, os.strerror(error), old)


@cache
def _system_call() -> Callable[[int, str, int, str], int] | None:
    """renameat2 or renameatx_np as a function that returns 0 or an errno; None where the system has neither."""
    import ctypes

    name, flag = ("renameatx_np", _RENAME_EXCL) if sys.platform == "darwin" else ("renameat2", _RENAME_NOREPLACE)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def rename(here: int, old: str, there: int, new: str) -> int:
        return 0 if call(here, os.fsencode(old), there, os.fsencode(new), flag) == 0 else ctypes.get_errno()

    return rename


def _in_two_steps(here: int, old: str, there: int, new: str) -> None:
    """Link and unlink, unless somebody saved the file in between; a kill in between leaves it at both names."""
    try:
        os.link(old, new, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=there))
        os.replace(old, new, src_dir_fd=here, dst_dir_fd=there)
        return
    with suppress(FileNotFoundError):
        now = os.stat(old, dir_fd=here, follow_symlinks=False)
        if os.path.samestat(now, os.stat(new, dir_fd=there, follow_symlinks=False)):
            os.unlink(old, dir_fd=here)
