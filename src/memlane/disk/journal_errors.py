"""What the errors of a journal's file mean: damage, no place to write, or a reason to refuse a change."""

from __future__ import annotations

import errno
import sqlite3

from memlane.core.errors import Busy, StorageError

_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CIRCUMSTANCES = (*_UNWRITABLE, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM",
                  "SQLITE_INTERRUPT", "SQLITE_MISUSE", "SQLITE_PROTOCOL")  # fmt: skip


def name_of(error: BaseException) -> str:
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


def is_damage(error: BaseException) -> bool:
    """Whether the content of the file is at fault, rather than the disk, a lock or a permission."""
    return isinstance(error, sqlite3.DatabaseError) and name_of(error) not in _CIRCUMSTANCES


def unwritable(error: BaseException) -> str:
    """Why there can be no journal at all; "" for an error that is none of that kind."""
    if isinstance(error, sqlite3.Error):
        return f"its file cannot be written ({error})" if name_of(error) in _UNWRITABLE else ""
    denied = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENOENT)
    if isinstance(error, OSError) and error.errno in denied:
        return f"its folder cannot be written ({error.strerror})"
    return ""


def is_full(error: BaseException) -> bool:
    """Whether a file could not be written because its disk has no room for it."""
    grows = getattr(error, "sqlite_errorname", "") in ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")
    return grows or name_of(error) == "SQLITE_FULL" or getattr(error, "errno", 0) in _NO_ROOM


def refusal(error: BaseException) -> StorageError:
    """What to tell whoever wanted to change something, and did not."""
    name = name_of(error)
    if name in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return Busy("The journal is being written by another program.", hint="Try again.")
    if is_full(error):
        return StorageError(
            "The disk is full: the journal was not written, and nothing was changed.",
            hint="Free some space, then try again.",
            code="disk_full",
        )
    return StorageError(
        f"The journal cannot be written: {error}. Nothing was changed.",
        hint="Check the disk that ~/.local/state/memlane is on.",
    )
