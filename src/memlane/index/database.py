"""The SQLite file of the index: its tables, how it is opened, and which errors mean that it is damaged.

files      what has been indexed, to compare with the disk: path, size, mtime
memories   one row per memory: what filters and sorting need, and a digest of its content
shapes     the memory itself as JSON
chunks     the pieces of each memory
postings   for every term the chunks that contain it, in blocks of BLOCK chunk numbers
vectors    one int8 row per chunk, in blocks of ROWS
links      what each memory links to
graves     the numbers of deleted chunks, which are never used again
meta       single values: the encoder of the vectors, token counts, how often chunks were renumbered
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memlane.core.errors import StorageError

SCHEMA = 2
BLOCK = 4096  # chunk numbers per block of postings
ROWS = 256  # rows per block of vectors
_TABLES = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE files (path TEXT PRIMARY KEY, lane TEXT, size INT, mtime INT) WITHOUT ROWID;
    CREATE TABLE memories (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, file TEXT, digest BLOB,
                           created REAL, thread TEXT, position INT,
                           lane TEXT, type TEXT, status TEXT, scope TEXT, project TEXT);
    CREATE TABLE shapes (n INTEGER PRIMARY KEY, data TEXT);
    CREATE INDEX memories_by_file ON memories (file);
    CREATE INDEX memories_by_created ON memories (created);
    CREATE INDEX memories_by_status ON memories (status);
    CREATE INDEX memories_by_thread ON memories (thread);
    CREATE TABLE tags (memory INT, tag TEXT);
    CREATE INDEX tags_by_tag ON tags (tag);
    CREATE INDEX tags_by_memory ON tags (memory);
    CREATE TABLE chunks (n INTEGER PRIMARY KEY, memory INT, header TEXT, text TEXT, length REAL);
    CREATE INDEX chunks_by_memory ON chunks (memory);
    CREATE TABLE postings (term TEXT, block INT, data BLOB, PRIMARY KEY (term, block)) WITHOUT ROWID;
    CREATE TABLE vectors (block INTEGER PRIMARY KEY, data BLOB);
    CREATE TABLE links (memory INT, target TEXT, edge_type TEXT, context TEXT);
    CREATE INDEX links_by_target ON links (target);
    CREATE INDEX links_by_memory ON links (memory);
    CREATE TABLE graves (n INTEGER PRIMARY KEY AUTOINCREMENT, chunk INT);
"""
_OTHER_VERSION = "the index is of another version"
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")


# -- opening


def open_file(path: Path) -> sqlite3.Connection:
    """Open the index file. A missing one is created; one that is damaged or of another version is replaced.

    Also creates the folder and its .gitignore. Where nothing may be written the index is kept in memory, so that a
    read-only bank can be searched. Raises StorageError for other trouble: a lock, a full disk.
    """
    try:
        os.makedirs(path.parent, exist_ok=True)
        ignore = path.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")  # derived files do not belong in a git history
        return _replacing_damage(path)
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.OperationalError) and _error_name(error) not in _UNWRITABLE:
            raise unusable(error) from error
        print("memlane: the index cannot be written here; it is made in memory", file=sys.stderr)
        return open_in_memory()


def open_in_memory() -> sqlite3.Connection:
    return _connected(":memory:")


def _replacing_damage(path: Path) -> sqlite3.Connection:
    try:
        return _connected(os.fspath(path))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
    remove(path)
    return _connected(os.fspath(path))


def _connected(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        _ensure_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def _ensure_tables(db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA:
        db.execute("SELECT value FROM meta").fetchall()  # raises where the file is damaged
    elif version:
        raise sqlite3.DatabaseError(_OTHER_VERSION)
    else:
        with transaction(db):
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:  # else another process was faster
                for statement in _TABLES.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {SCHEMA}")


def remove(path: Path) -> None:
    """Delete the index file and what SQLite keeps beside it, and say so on stderr."""
    print("memlane: the index is damaged or old and is made anew", file=sys.stderr)
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


# -- errors


def is_damage(error: BaseException) -> bool:
    """Whether the content of the file is at fault, rather than the disk, a lock or a permission."""
    if not isinstance(error, sqlite3.Error):
        return True  # a row that does not decode or a block of the wrong size
    text = str(error)
    return _error_name(error) in ("SQLITE_CORRUPT", "SQLITE_NOTADB") or text == _OTHER_VERSION or "decode" in text


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
