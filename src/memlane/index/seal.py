"""Whether an index file is ours: made here, by this user, with our tables. Any other is never asked for a row.

A bank may come from anywhere, and an index.db in it, too. So each index has a token: random, written into the file when
it is made, and into the user's own state folder, under the real path of the bank. A file that came with a repository, a
copy, a link, or another user's file does not have it. Light: no NumPy.

The index has no write-ahead log, whose shared memory ends the process when somebody truncates it. So a log that lies
beside the index is not ours. A rollback journal is, while somebody writes. One that was left behind, or put there, is
never played back: a connection that only reads refuses to, and a new index is made instead.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memlane.core.digests import sha256
from memlane.core.errors import StorageError
from memlane.core.values import NamedTuple
from memlane.disk import derived

SCHEMA = 12
HARMLESS, COLUMNS, LOOK = "harmless", "columns", "look"  # what `recall.harmless`, `kept_columns` and `kept_look` keep
TABLES = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE files (path TEXT PRIMARY KEY, lane TEXT, size INT, mtime INT, ctime INT, inode INT,
                        mark TEXT) WITHOUT ROWID;
    CREATE TABLE memories (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, file TEXT, digest BLOB,
                           created REAL, thread TEXT, position INT,
                           lane TEXT, type TEXT, status TEXT, scope TEXT, project TEXT);
    CREATE TABLE shapes (n INTEGER PRIMARY KEY, data TEXT);
    CREATE INDEX shapes_with_moments ON shapes (n) WHERE instr(data, '"when": ');
    CREATE INDEX memories_by_file ON memories (file);
    CREATE INDEX memories_by_created ON memories (created);
    CREATE INDEX memories_by_status ON memories (status);
    CREATE INDEX memories_by_thread ON memories (thread);
    CREATE TABLE tags (memory INT, tag TEXT);
    CREATE INDEX tags_by_tag ON tags (tag);
    CREATE INDEX tags_by_memory ON tags (memory);
    CREATE TABLE fields (key TEXT, value, memory INT, PRIMARY KEY (key, value, memory)) WITHOUT ROWID;
    CREATE TABLE expiring (at REAL, memory INT, PRIMARY KEY (at, memory)) WITHOUT ROWID;
    CREATE TABLE chunks (n INTEGER PRIMARY KEY, memory INT, length REAL, passage BLOB, header TEXT,
                         text TEXT);
    CREATE INDEX chunks_by_memory ON chunks (memory, length);
    CREATE TABLE postings (term TEXT, block INT, data BLOB, PRIMARY KEY (term, block)) WITHOUT ROWID;
    CREATE TABLE vectors (block INTEGER PRIMARY KEY, data BLOB);
    CREATE TABLE links (memory INT, target TEXT, edge_type TEXT, context TEXT);
    CREATE INDEX links_by_target ON links (target);
    CREATE INDEX links_by_memory ON links (memory);
    CREATE TABLE graves (n INTEGER PRIMARY KEY AUTOINCREMENT, chunk INT);
    CREATE TABLE steps (n INTEGER PRIMARY KEY, number INT);
"""
STATEMENTS = tuple(statement.strip() for statement in TABLES.split(";") if statement.strip())
_OWN = {"CREATE TABLE sqlite_sequence(name,seq)", *STATEMENTS}
_COMPANIONS = ("-journal", "-wal", "-shm")
_NOT_OURS = ("-wal", "-shm")  # SQLite would read them if they were there
JUST_NOW = 2_000_000_000  # ns; file systems tell times apart that are this far from each other
_PATIENCE = 10.0  # seconds that a process waits while another one makes the index


Identity = tuple[int, int]  # device and inode


class Unfit(sqlite3.DatabaseError):
    """There is no index that can be used. One is made anew."""


class Foreign(Unfit):
    """The file is not an index that was made here by this user."""


class OtherVersion(Unfit):
    """The file was made here, by another version of memlane."""


class IndexFile(NamedTuple):
    """Where a bank's index is, and the file in the user's state folder that has its token.

    Without a place for the token (`token_file` is None) the index is kept in memory.
    """

    path: Path
    token_file: Path | None

    @classmethod
    def of(cls, bank: Path, state: Path | None) -> IndexFile:
        name = sha256(os.fsencode(os.path.realpath(bank))).hexdigest()[:32]
        return cls(bank / "indices" / "index.db", state / "indices" / name if state else None)

    def of_scopes(self, scopes: Iterable[str]) -> IndexFile:
        """Where the index of the memories in some scopes is: beside this one, which has all."""
        name = sha256("\0".join(sorted(scopes)).encode()).hexdigest()[:16]
        return IndexFile(self.path.parent / f"scopes-{name}" / self.path.name, beside(self, f"scopes-{name}"))


def beside(file: IndexFile, name: str) -> Path | None:
    """Where something else that is known of a bank is kept, in the user's state folder; None where it is not."""
    return file.token_file.with_name(f"{file.token_file.name}.{name}") if file.token_file else None


# -- the file


def identity(path: Path) -> Identity:
    """What tells this file from one that takes its place. Raises OSError, and Foreign for what SQLite must not open.

    The file has to be a plain one of this user, in a plain folder, with nothing but such a journal beside it.
    """
    try:
        derived.refuse_database(path)
    except StorageError as error:
        raise Foreign(str(error)) from error
    if not stat.S_ISDIR(os.lstat(path.parent).st_mode):
        raise Foreign("the folder of the index is a link")
    info = _own(os.lstat(path))
    with suppress(FileNotFoundError):
        _own(os.lstat(f"{path}-journal"))
    if any(os.path.lexists(f"{path}{suffix}") for suffix in _NOT_OURS):
        raise Foreign("a log that is not ours lies beside the index")
    return info.st_dev, info.st_ino


def place(folder: str, path: str) -> tuple[int, ...] | None:
    """What changes with a file or anything beside it; None where that may not show, for it just changed."""
    around, file = os.lstat(folder), os.lstat(path)
    if around.st_mtime_ns > time.time_ns() - JUST_NOW:
        return None
    of_folder = (around.st_mode, around.st_ino, around.st_uid, around.st_mtime_ns, around.st_ctime_ns)
    return (*of_folder, file.st_dev, file.st_ino, file.st_mode, file.st_nlink, file.st_uid)


def _own(info: os.stat_result) -> os.stat_result:
    """Raise Foreign unless this is a plain file of this user with one name: what is written goes nowhere else."""
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1 or info.st_uid != os.geteuid():
        raise Foreign("the index is not a plain file of this user")
    return info


def is_anothers(path: Path) -> bool:
    """Whether there is a plain file of another user, who needs it."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_uid != os.geteuid()


def remove(path: Path) -> None:
    """Delete the index and what SQLite keeps beside it; of a link, the link. A folder is renamed. Raises OSError."""
    for name in (f"{path}{suffix}" for suffix in ("", *_COMPANIONS)):
        try:
            if stat.S_ISDIR(os.lstat(name).st_mode):
                os.rename(name, f"{name}.{os.urandom(4).hex()}.aside")
            else:
                os.unlink(name)
        except FileNotFoundError:
            continue


def connected(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """A connection with nothing read yet. `mode` is ro or rw; neither makes a file."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)
    careful(db)
    return db


def careful(db: sqlite3.Connection) -> None:
    """Settings of every connection that need no look into the file."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.set_progress_handler(_let_signals_through, 100_000)


def _let_signals_through() -> int:
    """Go on. Handlers of signals run in Python only: otherwise a hook's deadline would wait for SQLite to return."""
    return 0


def reading(file: IndexFile, timeout: float = 1) -> sqlite3.Connection:
    """The index to read from, checked. Nothing is written, not even beside it. Raises sqlite3.Error."""
    token = _token(file.token_file)
    try:
        known = identity(file.path)
        if not token:
            raise Foreign("the index was not made here")
        db = connected(file.path, "ro", timeout)
        try:
            check(db, token)
            if identity(file.path) != known:
                raise Unfit("the index was replaced meanwhile")
        except BaseException:
            db.close()
            raise
    except OSError as error:
        raise Unfit("there is no index") from error
    return db


def is_older(file: IndexFile) -> bool:
    """Whether it is an index of ours, whole, that another version of memlane has made."""
    try:
        reading(file).close()
    except OtherVersion:
        return True
    except sqlite3.Error:
        pass
    return False


def check(db: sqlite3.Connection, token: str) -> None:
    """Raise Foreign unless the file has this token and exactly our tables; sqlite3.Error when it cannot be read.

    The first part of the token is in the file's header: it is read without a look at tables that may be anybody's.
    """
    if db.execute("PRAGMA application_id").fetchone()[0] != header_of(token):
        raise Foreign("the index was not made here")
    if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
        raise OtherVersion("the index is of another version")
    statements = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if statements != _OWN:
        raise Foreign("the index has other tables than ours")
    if db.execute("SELECT value FROM meta WHERE key = 'token'").fetchone() != (token,):
        raise Foreign("the index was not made here")


def mark(db: sqlite3.Connection) -> tuple[int, int]:
    """What changes in the file's header when other content is copied over it, or somebody changes its tables."""
    header: int = db.execute("PRAGMA application_id").fetchone()[0]
    return header, db.execute("PRAGMA schema_version").fetchone()[0]


def header_of(token: str) -> int:
    """The part of a token that stands in the file's header: 31 bits."""
    return int(token[:8], 16) >> 1


# -- the token


def _token(path: Path | None) -> str:
    """The token in a file of the user's state folder; "" when there is none."""
    if path is None:
        return ""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return _read_token(fd)
    finally:
        os.close(fd)


def _read_token(fd: int) -> str:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
        return ""
    data = os.pread(fd, 33, 0)
    return data.decode() if len(data) == 32 and all(byte in b"0123456789abcdef" for byte in data) else ""


@contextmanager
def making(path: Path) -> Iterator[int]:
    """Be the only one who makes this index: the token's file, made if need be, open and locked. Raises OSError.

    The lock is on a file that no other user can open, so only our own processes can hold it.
    """
    for folder in (path.parent.parent, path.parent):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
        yield fd
    finally:
        os.close(fd)


def new_token(fd: int) -> str:
    """A token that no file has yet, written to the open file of the state folder."""
    token = os.urandom(16).hex()
    os.fchmod(fd, 0o600)
    os.ftruncate(fd, 0)
    os.pwrite(fd, token.encode(), 0)
    return token
