"""What was found out about every file of a bank, kept until the file changes: who asks about a whole bank asks here.

    facts = Facts(bank.index_file)
    facts.learn(files, {FORM: look_at})     the files that are new or changed are looked at; the others are known
    facts.rows("SELECT …")                  looked, entries and facts as tables

Kept in the user's state folder, beside the token of the index: whoever only asks changes no byte of a bank, and no bank
that comes from elsewhere brings answers along. Deleting the file loses nothing but time. Light: no NumPy.

looked    every file as it was when it was looked at, and which parts of the work were done then (bits)
entries   one row per memory: what is counted, sorted or compared
facts     what is worth a word: (part, path, kind, id, value). Most files have none
answers   what was worked out from all of this together: it holds until something changes, or it says what of it does
meta      for each part, what its answers depend on besides the files; how often anything has changed
"""

from __future__ import annotations

import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from memlane.core.digests import blake2b
from memlane.core.progress import tell
from memlane.disk import locks
from memlane.disk.names import is_utf8
from memlane.index.seal import COLUMNS, HARMLESS, LOOK, IndexFile, beside

VERSION = 1
BATCH = 500  # files per transaction
YOUNG = 2_000_000_000  # ns; a file that was changed this short a time ago may change again without its times showing it
_TABLES = """
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS looked (path TEXT PRIMARY KEY, lane TEXT, done INT,
                                       size INT, mtime INT, ctime INT, inode INT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS entries (path TEXT, lane TEXT, id TEXT, status TEXT, type TEXT, tags TEXT, title TEXT,
                                        created REAL, updated REAL, shape BLOB, words BLOB, name TEXT,
                                        expires REAL);
    CREATE INDEX IF NOT EXISTS entries_by_path ON entries (path);
    CREATE INDEX IF NOT EXISTS entries_by_id ON entries (id);
    CREATE INDEX IF NOT EXISTS entries_by_name ON entries (name);
    CREATE TABLE IF NOT EXISTS facts (part INT, path TEXT, kind TEXT, id TEXT, value TEXT);
    CREATE INDEX IF NOT EXISTS facts_by_path ON facts (path);
    CREATE INDEX IF NOT EXISTS facts_by_kind ON facts (kind);
    CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, about TEXT, value TEXT) WITHOUT ROWID;
"""
_BITS = 2**64 - 1  # a time before 1970 is below 0
Files = Mapping[str, tuple[str, os.stat_result]]  # the lane ("" for none) and the state of every file, by path


class Found(NamedTuple):
    """What a look at one file found: rows of `entries` without their path, and (kind, id, value) of `facts`."""

    entries: Sequence[tuple[Any, ...]] = ()
    facts: Sequence[tuple[str, str, Any]] = ()


class Part(NamedTuple):
    """A part of the work: `look` is given a lane and a path. `rules` is what it depends on besides the file."""

    bit: int
    label: str
    rules: str
    look: Callable[[str, str], Found]
    of_lanes: bool = True  # the files of no lane have none of it
    has_entries: bool = False


def named(kept: str | bytes) -> str:
    """The path of a file as it is kept: SQLite takes a name that is not UTF-8 only as bytes."""
    return kept if isinstance(kept, str) else os.fsdecode(kept)


def place(file: IndexFile) -> Path | None:
    """Where the facts of a bank are kept; None where they are not."""
    return beside(file, "facts")


def remove(file: IndexFile) -> None:
    """Delete what is known, of a long vault, in some scopes, of texts and by search, too. Raises OSError."""
    if file.token_file is None or not file.token_file.parent.is_dir():
        return
    for path in file.token_file.parent.glob(f"{file.token_file.name}.*"):
        if path.name.endswith((".facts", ".facts-journal", ".vault", f".{HARMLESS}", f".{COLUMNS}", f".{LOOK}")):
            path.unlink(missing_ok=True)


class Facts:
    """The facts of one bank. Where they cannot be kept, or the file is damaged, they are found out again in memory."""

    def __init__(self, file: IndexFile) -> None:
        self._db = _opened(place(file))

    def close(self) -> None:
        self._db.close()

    def rows(self, query: str, *values: Any) -> list[Any]:
        return self._db.execute(query, values).fetchall()

    def remembered(self, name: str, about: str, work_out: Callable[[], str], *, of_files: bool = True) -> str:
        """An answer that was worked out before and still holds: nothing has changed, nor what else it is `about`.

        One that is not `of_files` holds whatever happens to these.
        """
        if of_files:
            about = f"{self._changes()} {about}"
        if (kept := self.kept(name)) and kept[0] == about:
            return str(kept[1])
        value = work_out()
        self.keep(name, about, value)
        return value

    def _changes(self) -> str:
        """How often anything has changed."""
        return str(self.rows("SELECT max(value) FROM meta WHERE key = 'changes'")[0][0])

    def kept(self, name: str) -> tuple[str, Any] | None:
        """What an answer is about, and the answer; None when there is none."""
        with suppress(sqlite3.Error):
            for row in self.rows("SELECT about, value FROM answers WHERE name = ?", name):
                return row[0], row[1]
        return None

    def keep(self, name: str, about: str, value: str | bytes) -> None:
        """Keep an answer. It only saves time: where it cannot be, nothing happens."""
        with suppress(sqlite3.Error):
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (name, about, value))

    def learn(self, files: Files, parts: Sequence[Part], *, all_files: bool) -> None:
        """Look at what is new or changed, as far as these parts of the work go, and drop what is gone.

        Unless these are `all_files`, those that are of no lane are not known to be gone. Raises sqlite3.Error.
        """
        for part in parts:
            self._follow_rules(part)
        in_lane = sum(part.bit for part in parts)
        outside = sum(part.bit for part in parts if not part.of_lanes)
        name, now = f"complete {in_lane} {outside} {all_files}", (self._changes(), _digest(files))
        if self.kept(name) == now:
            return  # as nearly always
        known: dict[str, int] = {}  # files that are as they were, by which parts were done
        complete = 0
        gone: list[tuple[str | bytes]] = []
        rows = self._db.execute("SELECT path, lane, done, size, mtime, ctime, inode FROM looked")
        for kept, lane, done, size, mtime, ctime, inode in rows:
            path = named(kept)
            file = files.get(path)
            if file is None:
                if lane or all_files:
                    gone.append((kept,))
                continue
            own, info = file
            if (
                info.st_mtime_ns == mtime
                and info.st_ctime_ns == ctime
                and info.st_size == size
                and info.st_ino == inode
                and own == lane
            ):
                known[path] = done
                wanted = in_lane if lane else outside
                complete += done & wanted == wanted
        if gone:
            with self._writing() as db:
                for table in ("looked", "entries", "facts"):
                    db.executemany(f"DELETE FROM {table} WHERE path = ?", gone)  # noqa: S608 - fixed names
        if complete == len(files):
            if not gone:
                self.keep(name, *now)
            return
        bits = {True: in_lane, False: outside}
        todo = [path for path, (lane, _) in files.items() if bits[bool(lane)] & ~known.get(path, 0)]
        label = ""
        for start in range(0, len(todo), BATCH):
            some = todo[start : start + BATCH]
            for part in parts:  # a file is read by all of them one after the other: what they share is read once
                due = [path for path in some if part.bit & bits[bool(files[path][0])] & ~known.get(path, 0)]
                if due:
                    label = label or part.label
                    tell(label, start, len(todo))
                    self._write(part, files, [(path, part.look(files[path][0], path)) for path in due], known)
        if todo:
            tell(label, len(todo), len(todo))

    def _write(self, part: Part, files: Files, batch: Sequence[tuple[str, Found]], known: dict[str, int]) -> None:
        settled = time.time_ns() - YOUNG
        with self._writing() as db:
            for path, found in batch:
                lane, info = files[path]
                kept = path if path.isascii() or is_utf8(path) else os.fsencode(path)
                if path not in known:  # it is new or has changed: what was known of it is no longer so
                    for table in ("entries", "facts"):
                        db.execute(f"DELETE FROM {table} WHERE path = ?", (kept,))  # noqa: S608 - fixed names
                known[path] = done = known.get(path, 0) | part.bit
                young = max(info.st_mtime_ns, info.st_ctime_ns) > settled
                stamp = (-1, 0, 0, 0) if young else (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
                db.execute("INSERT OR REPLACE INTO looked VALUES (?, ?, ?, ?, ?, ?, ?)", (kept, lane, done, *stamp))
                db.executemany(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [(kept, *entry) for entry in found.entries],
                )
                db.executemany(
                    "INSERT INTO facts VALUES (?, ?, ?, ?, ?)", [(part.bit, kept, *fact) for fact in found.facts]
                )

    def _follow_rules(self, part: Part) -> None:
        """Drop the answers of a part that depend on something that is not so any more."""
        key = f"rules {part.bit}"
        if self.rows("SELECT value FROM meta WHERE key = ?", key) == [(part.rules,)]:
            return
        with self._writing() as db:
            db.execute("DELETE FROM facts WHERE part = ?", (part.bit,))
            if part.has_entries:
                db.execute("DELETE FROM entries")
            db.execute("UPDATE looked SET done = done & ~?", (part.bit,))
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, part.rules))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which changes what is known."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("INSERT INTO meta VALUES ('changes', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


def _digest(files: Files) -> bytes:
    """What is another one when a file is, or has another lane."""
    hash = blake2b("\0".join(files).encode(errors="surrogatepass"), digest_size=16)
    hash.update("\0".join([lane for lane, _ in files.values()]).encode())
    stamps = array("Q")
    for _, info in files.values():
        stamps.extend((info.st_size, info.st_mtime_ns & _BITS, info.st_ctime_ns & _BITS, info.st_ino))
    hash.update(stamps.tobytes())
    return hash.digest()


def _opened(path: Path | None) -> sqlite3.Connection:
    """The file, made if there is none; one that is damaged or of another version is made anew."""
    for _ in range(2):
        if path is None:
            break
        try:
            return _connected(path)
        except (sqlite3.DatabaseError, OSError) as error:
            if isinstance(error, OSError | sqlite3.OperationalError):
                break  # a lock, a full disk, no permission: it may be sound
            with suppress(OSError):
                os.unlink(path)
    return _prepared(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))


def _connected(path: Path) -> sqlite3.Connection:
    os.makedirs(path.parent, mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=locks.patience.get(), isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        return _prepared(db)
    except BaseException:
        db.close()
        raise


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, VERSION):
        raise sqlite3.DatabaseError("of another version")
    if version == 0:
        db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT")
    return db
