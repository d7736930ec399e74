"""The SQLite file of the index: how it is opened and made, and which errors mean that it is damaged. Its tables:

files      what has been indexed, to compare with the disk: path, size, mtime, ctime, inode; and what a long file was
           when it was read (`mark`), which tells whether it has only been appended to since
memories   one row per memory: what filters and sorting need, and a digest of its content
shapes     the memory itself as JSON
tags       one row per tag of a memory
fields     one row per value in a memory's fields, under its dotted key
expiring   when those memories end to count that say so
chunks     the pieces of each memory, also in the form in which `closeness` looks at them
postings   for every term the chunks that contain it, in blocks of BLOCK chunk numbers
vectors    one int8 row per chunk, in blocks of ROWS
links      what each memory links to
graves     the numbers of deleted chunks, which are never used again
steps      what tells the states of the index from each other: see `steps`
meta       single values: the token that `seal` compares, the encoder of the vectors, token counts, how often chunks
           were renumbered, and how often a file was taken out of `files`
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memlane.core.errors import StorageError
from memlane.disk import derived, locks
from memlane.index import seal, steps
from memlane.index.seal import SCHEMA, Identity, IndexFile

BLOCK = 4096  # chunk numbers per block of postings
ROWS = 256  # rows per block of vectors
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_CIRCUMSTANCES = (*_UNWRITABLE, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM",
                  "SQLITE_INTERRUPT", "SQLITE_MISUSE")  # fmt: skip
_REPLACED = ("SQLITE_READONLY_DBMOVED", "SQLITE_READONLY_ROLLBACK")


# -- opening


def open_file(file: IndexFile) -> tuple[sqlite3.Connection, Identity | None]:
    """Open the index, and say which file it is. One that is missing, damaged or not ours is made anew.

    Also creates the folder and its .gitignore. Where nothing may be written, or the file is another user's, the index
    is kept in memory, so that any bank can be searched. Raises StorageError for other trouble: a lock, a full disk.
    """
    if file.token_file is None:
        return open_in_memory(), None
    try:
        if opened := _opened(file):
            return opened
        if not seal.is_anothers(file.path):
            return _made(file, file.token_file)
    except (OSError, StorageError, seal.Foreign, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.OperationalError) and _error_name(error) not in _UNWRITABLE:
            raise unusable(error) from error
    print("memlane: the index cannot be written here; it is made in memory", file=sys.stderr)
    return open_in_memory(), None


def open_in_memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    seal.careful(db)
    _make_tables(db, "")
    return db


def _opened(file: IndexFile) -> tuple[sqlite3.Connection, Identity] | None:
    """The index as it is; None when it has to be made. Raises sqlite3.Error, OSError."""
    try:
        seal.reading(
            file, timeout=locks.patience.get()
        ).close()  # refuses what is not ours, before anything could be written
        known = seal.identity(file.path)
    except (sqlite3.Error, FileNotFoundError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        return None
    for path in (file.path, file.path.parent):
        if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    return _connected(file.path), known


def _connected(path: Path) -> sqlite3.Connection:
    db = seal.connected(path, "rw", timeout=locks.patience.get())
    try:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_spill = OFF")  # others can read until the commit
    except BaseException:
        db.close()
        raise
    return db


def _made(file: IndexFile, token_file: Path) -> tuple[sqlite3.Connection, Identity]:
    """A new index, unless another process has just made one. Raises sqlite3.Error, OSError."""
    with seal.making(token_file) as held:
        if opened := _opened(file):
            return opened
        if file.path.parent.is_symlink():  # SQLite would follow it, wherever it leads by then
            raise seal.Foreign("the folder of the index is a link")
        derived.prepare(file.path.parent)
        if os.path.lexists(file.path) and not seal.is_older(file):
            print("memlane: the index is damaged or not made here, and is made anew", file=sys.stderr)
        seal.remove(file.path)
        token = seal.new_token(held)
        os.close(os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        known = seal.identity(file.path)
        db = _connected(file.path)
        try:
            _make_tables(db, token)
        except BaseException:
            db.close()
            raise
        return db, known


def _make_tables(db: sqlite3.Connection, token: str) -> None:
    with transaction(db):
        for statement in seal.STATEMENTS:
            db.execute(statement)
        set_meta(db, token=token)
        steps.take(db)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute(f"PRAGMA application_id = {seal.header_of(token or '0')}")


def give_up(file: IndexFile, known: Identity | None) -> None:
    """Delete an index that turned out to be damaged, unless another process has replaced it already."""
    if known is None or file.token_file is None:
        return
    with suppress(OSError, seal.Unfit), seal.making(file.token_file):
        if seal.identity(file.path) == known:
            print("memlane: the index is damaged and is made anew", file=sys.stderr)
            seal.remove(file.path)


# -- waiting for other processes


@contextmanager
def waiting(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Wait for others only so long inside."""
    before = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")


def tell_busy(db: sqlite3.Connection) -> None:
    """Say that we are about to wait, if another process is writing."""
    if locks.on_wait.get() is None or db.in_transaction:
        return
    try:
        with waiting(db, 0), transaction(db):
            pass
    except sqlite3.Error:
        locks.tell_waiting()


def is_busy(error: sqlite3.Error) -> bool:
    return _error_name(error) == "SQLITE_BUSY"


# -- errors


def is_damage(error: BaseException) -> bool:
    """Whether the content of the file is at fault, rather than the disk, a lock or a permission."""
    if not isinstance(error, sqlite3.Error):
        return True  # a row that does not decode or a block of the wrong size
    if getattr(error, "sqlite_errorname", "") in _REPLACED:
        return True
    known = _error_name(error)
    return known not in _CIRCUMSTANCES if known else isinstance(error, seal.Unfit) or "decode" in str(error)


def unusable(error: BaseException) -> StorageError:
    return StorageError(
        f"The index cannot be used: {error}.", hint="Try again; if that does not help, delete the folder `indices`."
    )


def _error_name(error: BaseException) -> str:
    """SQLite's name of an error without its details: SQLITE_READONLY_DIRECTORY is SQLITE_READONLY."""
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


# -- access


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: committed at the end, rolled back on any error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself rolls back when the disk is full
            db.execute("ROLLBACK")
        raise


def get_meta(db: sqlite3.Connection, key: str, default: Any = None) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


def set_meta(db: sqlite3.Connection, **values: Any) -> None:
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())
