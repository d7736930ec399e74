"""The file of a journal: a SQLite database in the user's state folder, one for a project's bank wherever it lies.

    ~/.local/state/memlane/journal/3f9a….db       named after the path where the bank was first met
    ~/.local/state/memlane/journal/banks.jsonl    which other paths belong to it: {"bank":"/home/…","name":"3f9a…",…}

A bank that was moved is found by its folder's number on the disk, a clone or a linked work tree on this machine by the
git repository that it belongs to; that is looked up once, when a path is met for the first time. The tables:

texts      every content once, compressed, by its hash
places     the folders that the bank has or had
changes    one row for each command, tool call or verb
files      one row for each file that it changed: see journal.Row

WAL, one transaction before each change: one fsync, any number of processes, and a kill or a loss of power leaves whole
transactions alone. What is deleted is overwritten (secure_delete); but a page from which rows were moved to another one
keeps copies of them, so that after a purge all pages are written anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from memlane.disk import journal, journal_errors, journal_place, journal_writers, locks, packing
from memlane.disk.journal import By, Change, Entry, Group, Row

FOLDER = "journal"
ASIDE = ".damaged"
_SCHEMA = 1
_ROUNDS = 16  # a quarter of what is left goes in each
_EVIDENCE = 50  # files that are compared to tell whether a folder is a bank that was moved
_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02
_TABLES = """
CREATE TABLE texts (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE places (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE changes (
    number INTEGER PRIMARY KEY, first INTEGER NOT NULL, at REAL NOT NULL, place INTEGER NOT NULL, surface TEXT,
    client TEXT, session TEXT, verb TEXT, ids TEXT, steps TEXT, branch TEXT, undoes INTEGER, done INTEGER, undone TEXT);
CREATE TABLE files (
    row INTEGER PRIMARY KEY, change INTEGER NOT NULL, place INTEGER NOT NULL, step INTEGER,
    name TEXT NOT NULL, kind TEXT NOT NULL, before BLOB, after BLOB, at INTEGER, size INTEGER, other TEXT);
CREATE INDEX files_by_name ON files (name, place, row);
CREATE TABLE meta (key TEXT PRIMARY KEY, value)
"""
_CHANGES = (
    "SELECT number, at, path, surface, client, session, verb, ids, steps, branch, undoes, done, undone "
    "FROM changes JOIN places ON places.id = changes.place "
    "WHERE EXISTS (SELECT 1 FROM files WHERE row >= first AND change = number)"
)
_ENTRIES = "SELECT row, change, step, name, kind, before, after, at, size, other FROM files WHERE "
_WITHOUT_FILES = (  # but not the last one, or its number would be given out again
    "DELETE FROM changes WHERE number NOT IN (SELECT change FROM files) AND number < (SELECT max(number) FROM changes)"
)
_GONE = b"forgotten"  # in the place of a hash: the content is not kept any more
left: list[JournalFile] = []  # connections of a parent process, which must not be closed here


# -- which file


def opened(folder: str, home: str, commit_of: Callable[[str], str], *, make: bool) -> JournalFile | None:
    """The journal of the bank at `home`; None when there is none yet and none is to be made.

    Raises sqlite3.Error, OSError.
    """
    own = journal_place.name_of(home)
    path = os.path.join(folder, f"{own}.db")
    if os.path.lexists(path):
        file = JournalFile(path, home)
        if not file.is_known():  # it was moved away and back
            _follow(file, home, journal_place.registry(folder))
        return file
    known = journal_place.registry(folder)
    if home not in known:
        if not make and not known:
            return None
        found = _met(folder, home, known, commit_of if make else journal_place.unasked)  # git is asked only once
        if found.name == own and not make:
            return None
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        journal_place.append(folder, found)
    else:
        found = known[home]
    path = os.path.join(folder, f"{found.name}.db")
    if not os.path.lexists(path):
        if not make:
            return None
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return JournalFile(path, home)


def _follow(file: JournalFile, home: str, known: dict[str, journal_place.Bank]) -> None:
    """Let the place that this folder had before be this one."""
    number = journal_place.number_of(home)
    for other in known.values():
        if number and other.folder == number and not os.path.lexists(other.bank) and file.is_at(home, other.bank):
            file.rename_place(home, other.bank)
            return


def _met(
    folder: str, home: str, known: dict[str, journal_place.Bank], commit_of: Callable[[str], str]
) -> journal_place.Bank:
    """A bank that was not met at this path before: its own journal, or that of the bank it was moved or cloned from."""
    number = journal_place.number_of(home)
    top, common = journal_place.repository(home)
    below = os.path.relpath(home, top) if top else ""
    commit = commit_of(top) if top else ""
    bank = journal_place.Bank(home, journal_place.name_of(home), number, common, commit, below)
    for other in known.values():
        path = os.path.join(folder, f"{other.name}.db")
        if number and other.folder == number and not os.path.lexists(other.bank) and os.path.isfile(path):
            file = JournalFile(path, other.bank)
            try:
                if file.is_at(home, other.bank):
                    file.rename_place(home, other.bank)
                    return bank._replace(name=other.name)
            finally:
                file.close()
    for other in known.values():
        if common and other.common == common and other.below == below:
            return bank._replace(name=other.name)
    for other in known.values():
        if commit and other.below == below and (other.commit or journal_place.commit_now(other, commit_of)) == commit:
            return bank._replace(name=other.name)
    return bank


# -- the file


class JournalFile:
    """An open journal, for the bank at one place. Raises sqlite3.Error, OSError."""

    def __init__(self, path: str, home: str) -> None:
        self.path, self.home = path, home
        self.beside = ""  # the folder of another place of the bank that files of this one lie in
        self._place = 0
        self._head: str | None = None  # the file that names the branch; "" outside of git
        try:
            self._db = self._connected()
        except sqlite3.DatabaseError as error:
            if not journal_errors.is_damage(error):
                raise
            self.put_aside()
            self._db = self._connected()

    def _connected(self) -> sqlite3.Connection:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(self.path, flags, 0o600))  # SQLite would make it readable to others
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA busy_timeout = 1000")
            if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                db.execute("PRAGMA journal_mode = WAL")
            if db.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:
                _make_tables(db)
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA wal_autocheckpoint = 250")  # what is written over syncs quicker than what grows
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        self._db.close()

    def put_aside(self) -> None:
        """Give a damaged file another name, for somebody to look at; a new one is made in its place."""
        stamp = f"{int(time.time())}-{os.urandom(3).hex()}"
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.rename(self.path + suffix, f"{self.path[:-3]}-{stamp}{ASIDE}{suffix}")

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """One write transaction; without `durable`, a loss of power may lose it."""
        db = self._db
        if not durable:
            db.execute("PRAGMA synchronous = NORMAL")
        try:
            self._retried("BEGIN IMMEDIATE")
            try:
                yield db
                self._retried("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        finally:
            if not durable:
                db.execute("PRAGMA synchronous = FULL")

    def _retried(self, statement: str) -> None:
        """SQLite waits in steps that are long for transactions this short."""
        pause, until = _PAUSE, locks.deadline()
        while True:
            try:
                self._db.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if journal_errors.name_of(error) != "SQLITE_BUSY" or time.monotonic() > until:
                    raise
            if pause == _PAUSE:
                locks.tell_waiting()
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    # -- recording

    def _here(self, db: sqlite3.Connection) -> int:
        """The number of this place; 0 when nothing was changed here yet."""
        if not self._place:
            row = db.execute("SELECT id FROM places WHERE path = ?", (self.home,)).fetchone()
            self._place = row[0] if row else 0
        return self._place

    def begin(self, db: sqlite3.Connection, group: Group) -> int:
        """Write down a new change, and return its number."""
        place = self._here(db)
        if not place:
            place = db.execute("INSERT INTO places (path) VALUES (?)", (self.home,)).lastrowid or 0
        first = (db.execute("SELECT max(row) FROM files").fetchone()[0] or 0) + 1
        values = (
            first, time.time(), place, *group.by[:3], group.verb, json.dumps(list(group.ids)), "{}", self._branch(),
            group.undoes, int(group.alone), "",
        )  # fmt: skip
        marks = ", ".join("?" * len(values))
        number = db.execute(f"INSERT INTO changes VALUES (NULL, {marks})", values).lastrowid or 0  # noqa: S608 - marks
        journal_writers.hold(self.path, number)  # before anybody else sees it
        group.held.append((self.path, number))
        return number

    def _branch(self) -> str:
        if self._head is None:
            top, _ = journal_place.repository(self.home)
            self._head = os.path.join(journal_place.git_folder(top), "HEAD") if top else ""
        return journal_place.branch_in(self._head) if self._head else ""

    def insert(self, db: sqlite3.Connection, number: int, step: int, row: Row) -> int:
        before, after = (None if data is None else self._stored(db, data) for data in (row.before, row.after))
        place, name, other = self._filed(db, row)
        values = (number, place, step, name, row.kind, before, after, row.at, row.size, other)
        return db.execute("INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0

    def _filed(self, db: sqlite3.Connection, row: Row) -> tuple[int, str, str]:
        """The place that a file belongs to, and its names there. One that lies in another place of the bank, as what
        is captured in a linked work tree does, is that place's: there it outlives this one.
        """
        if not (self.beside and row.name.startswith("../")):
            return self._here(db), row.name, row.other
        names = [row.name, row.other] if row.kind in (journal.OUT, journal.IN) else [row.name]
        paths = [os.path.normpath(os.path.join(self.home, name)) for name in names]
        if not all(path.startswith(self.beside + os.sep) for path in paths):
            return self._here(db), row.name, row.other
        db.execute("INSERT OR IGNORE INTO places (path) VALUES (?)", (self.beside,))
        place = db.execute("SELECT id FROM places WHERE path = ?", (self.beside,)).fetchone()[0]
        name, other = [*(os.path.relpath(path, self.beside) for path in paths), row.other][:2]
        return place, name, other

    def _stored(self, db: sqlite3.Connection, data: bytes) -> bytes:
        hash = journal.hashed(data)
        if not db.execute("SELECT 1 FROM texts WHERE hash = ?", (hash,)).fetchone():
            db.execute("INSERT INTO texts VALUES (?, ?)", (hash, packing.packed(data)))
        return hash

    def last_size(self, db: sqlite3.Connection, name: str) -> tuple[int, float]:
        """How large a file is as far as the journal knows (0 where it knows nothing), and since when in seconds."""
        query = (
            "SELECT files.size, changes.at FROM files JOIN changes ON number = change "
            "WHERE name = ? AND files.place = ? ORDER BY row DESC LIMIT 1"
        )
        row = db.execute(query, (name, self._here(db))).fetchone()
        return (row[0], abs(time.time() - row[1])) if row else (0, 0.0)

    def retract(self, rows: Sequence[int]) -> None:
        """Take out what did not happen."""
        with self.transaction(durable=False) as db:
            db.executemany("DELETE FROM files WHERE row = ?", [(row,) for row in rows])

    def finish(self, number: int, group: Group) -> None:
        values = (json.dumps(list(group.ids)), json.dumps(group.steps), number)
        with self.transaction(durable=False) as db:
            db.execute("UPDATE changes SET done = 1, ids = ?, steps = ? WHERE number = ?", values)

    def mark(self, number: int, undone: str) -> None:
        with self.transaction() as db:
            db.execute("UPDATE changes SET undone = ? WHERE number = ?", (undone, number))

    # -- reading

    def changes(self, *, here: bool, since: int, upto: int | None, limit: int | None) -> list[Change]:
        where, values = " AND number BETWEEN ? AND ?", [since + 1, self._last() if upto is None else upto]
        if here:
            where += " AND changes.place = ?"
            values.append(self._here(self._db))
        query = f"{_CHANGES}{where} ORDER BY number DESC LIMIT ?"
        return [_change(row) for row in self._db.execute(query, (*values, -1 if limit is None else limit))]

    def _last(self) -> int:
        return self._db.execute("SELECT max(number) FROM changes").fetchone()[0] or 0

    def over(self, since: int) -> int:
        last = self._last()  # first: what comes later has a greater number
        held = journal_writers.first(self.path, since, last)
        return held - 1 if held else last

    def reaches(self, since: int) -> bool:
        query = "SELECT count(*), max(number), total(undone = ?) FROM changes WHERE number > ?"
        count, last, dropped = self._db.execute(query, (journal.DROPPED, since)).fetchone()
        return not dropped and count == (last or since) - since

    def get(self, number: int) -> Change | None:
        row = self._db.execute(f"{_CHANGES} AND number = ?", (number,)).fetchone()
        return _change(row) if row else None

    def entries(self, where: str, values: Sequence[Any]) -> list[Entry]:
        return [Entry(*row) for row in self._db.execute(f"{_ENTRIES}{where} ORDER BY row", tuple(values))]

    def entries_of(self, number: int) -> list[Entry]:
        where = "row >= (SELECT first FROM changes WHERE number = ?1) AND change = ?1"
        found = self.entries(where, (number,))
        query = (
            "SELECT row, there.path, here.path FROM files JOIN changes ON number = change JOIN places there "
            "ON there.id = files.place JOIN places here ON here.id = changes.place "
            "WHERE row >= first AND number = ? AND files.place != changes.place"
        )
        filed = {row: (there, here) for row, there, here in self._db.execute(query, (number,))}
        return [_as_seen(entry, *filed[entry.row]) if entry.row in filed else entry for entry in found]

    def text(self, hash: bytes) -> bytes | None:
        row = self._db.execute("SELECT data FROM texts WHERE hash = ?", (hash,)).fetchone()
        return _plain(row[0]) if row else None

    def heads(self, place: str) -> dict[str, Entry]:
        latest = "SELECT max(row) FROM files WHERE place = (SELECT id FROM places WHERE path = ?) GROUP BY name"
        query = f"{_ENTRIES}row IN ({latest})"
        return {row[3]: Entry(*row) for row in self._db.execute(query, (place,))}

    def latest(self, limit: int) -> list[tuple[Entry, str]]:
        newest = "SELECT row, name FROM files WHERE place = ? ORDER BY row DESC LIMIT ?"
        found = self.entries(
            f"row IN (SELECT max(row) FROM ({newest}) GROUP BY name)",  # noqa: S608 - fixed text
            (self._here(self._db), limit),
        )
        branches = dict(self._db.execute("SELECT number, branch FROM changes ORDER BY number DESC LIMIT ?", (limit,)))
        return [(entry, branches.get(entry.change, "")) for entry in found]

    def places(self) -> list[str]:
        return [path for (path,) in self._db.execute("SELECT path FROM places")]

    def said(self, about: str, now: str | None) -> str:
        key = f"{about} {self._here(self._db)}"
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if now is not None:
            with self.transaction(durable=False) as db:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, now))
        return row[0] if row else ""

    def rows_of(
        self, names: Sequence[str], *, here: bool = True, place: str | None = None, upto: int | None = None
    ) -> list[Entry]:
        marks = ", ".join("?" * len(names))
        where, values = f"name IN ({marks})", list[Any](names)
        if place is not None:
            where += " AND place = (SELECT id FROM places WHERE path = ?)"
            values.append(place)
        elif here:
            where += " AND place = ?"
            values.append(self._here(self._db))
        if upto is not None:
            where += " AND row <= ?"
            values.append(upto)
        return self.entries(where, values)

    def knows(self, name: str, hash: bytes, place: str) -> bool:
        query = (
            "SELECT 1 FROM files WHERE name = ?1 AND (before = ?2 OR after = ?2) "
            "AND place = (SELECT id FROM places WHERE path = ?3) LIMIT 1"
        )
        return bool(self._db.execute(query, (name, hash, place)).fetchone())

    # -- forgetting

    def pairs(self) -> list[tuple[str, bytes]]:
        """Every file's name with each of its contents."""
        query = (
            "SELECT name, before FROM files WHERE before NOT NULL "
            "UNION SELECT name, after FROM files WHERE after NOT NULL"
        )
        return list(self._db.execute(query))

    def asides(self) -> list[str]:
        folder, name = os.path.split(self.path)
        begin = name[:-3] + "-"
        return [os.path.join(folder, each) for each in os.listdir(folder) if each.startswith(begin) and ASIDE in each]

    def purge(self, without: Callable[[str, bytes], bytes | None], ids: Collection[str]) -> bool:
        known: dict[tuple[str, bytes], bytes | None] = {}
        for name, hash in self.pairs():  # before the transaction: lanes are asked, which takes time
            data = self.text(hash)
            if data is not None and (kept := without(name, data)) != data:
                known[name, hash] = kept
        with self.transaction() as db:
            for (name, hash), kept in known.items():
                put = _GONE if kept is None else self._stored(db, kept)
                db.execute("UPDATE files SET before = ? WHERE name = ? AND before = ?", (put, name, hash))
                db.execute("UPDATE files SET after = ? WHERE name = ? AND after = ?", (put, name, hash))
            empty = journal.hashed(b"")
            nothing = "(before IS NULL OR before = ?1) AND (after IS NULL OR after = ?1)"
            db.execute(f"DELETE FROM files WHERE {nothing}", (_GONE,))  # noqa: S608 - fixed text
            db.execute("DELETE FROM files WHERE kind = ? AND after = ? AND other != 'new'", (journal.APPEND, empty))
            db.execute(_WITHOUT_FILES)
            for number, named, steps in db.execute("SELECT number, ids, steps FROM changes").fetchall():
                if any(json.dumps(id) in f"{named}{steps}" for id in ids):
                    kept_ids = [id for id in json.loads(named) if id not in ids]
                    kept_steps = {step: pair for step, pair in json.loads(steps).items() if pair[0] not in ids}
                    values = (json.dumps(kept_ids), json.dumps(kept_steps), number)
                    db.execute("UPDATE changes SET ids = ?, steps = ? WHERE number = ?", values)
            self._collect(db)
        for path in self.asides():  # they cannot be read, and may hold it, too
            os.unlink(path)
        self._retried("VACUUM")
        return self._truncate()

    def _collect(self, db: sqlite3.Connection) -> None:
        """Delete the texts that nothing refers to."""
        used = "SELECT before FROM files WHERE before NOT NULL UNION SELECT after FROM files WHERE after NOT NULL"
        db.execute(f"DELETE FROM texts WHERE hash NOT IN ({used})")  # noqa: S608 - fixed text

    def _truncate(self) -> bool:
        """Bring everything into the database itself and empty the write-ahead log; whether that was possible."""
        pause, until = _PAUSE, locks.deadline()
        while self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return True

    # -- where it is

    def is_known(self) -> bool:
        """Whether anything was changed at this place."""
        return bool(self._here(self._db))

    def is_at(self, home: str, before: str) -> bool:
        """Whether the files of a place lie at another one now: a number on the disk may be given out again."""
        newest = sorted(self.heads(before).values(), key=lambda entry: entry.row, reverse=True)[:_EVIDENCE]
        for entry in newest:
            with suppress(OSError):
                with open(os.path.join(home, entry.name), "rb") as file:
                    data = file.read()
                if entry.after == journal.hashed(data) or (entry.kind == journal.APPEND and entry.size == len(data)):
                    return True
        return False

    def rename_place(self, home: str, before: str) -> None:
        with self.transaction() as db:
            db.execute("UPDATE OR IGNORE places SET path = ? WHERE path = ?", (home, before))

    def move(self, home: str) -> None:
        """The bank was moved from this place to another, which is the same from now on."""
        folder, name = os.path.split(self.path)
        known = journal_place.registry(folder).get(self.home) or journal_place.Bank(self.home, name[:-3])
        number = journal_place.number_of(home)
        journal_place.append(folder, known._replace(bank=home, name=name[:-3], folder=number))
        self.rename_place(home, self.home)

    # -- bounds

    def prune(self, max_bytes: int, days: int) -> None:
        """See journal.Journal.prune."""
        if days:
            query = "SELECT max(number) FROM changes WHERE at < ? AND undone != ?"
            self._drop(self._db.execute(query, (time.time() - days * 86400, journal.DROPPED)).fetchone()[0])
        for _ in range(_ROUNDS):
            if self._bytes() <= max_bytes:
                return
            query = (
                "SELECT number FROM changes WHERE undone != ?1 ORDER BY number LIMIT 1 "
                "OFFSET (SELECT count(*) / 4 FROM changes WHERE undone != ?1)"
            )
            row = self._db.execute(query, (journal.DROPPED,)).fetchone()
            self._drop(row[0] if row else None)

    def _bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _drop(self, upto: int | None) -> None:
        """Forget the changes up to this one; of every file, what it was then stays, unless a later one is kept."""
        if upto is None:
            return
        logs = (journal.APPEND, journal.CUT, journal.SEEN)
        with self.transaction() as db:
            query = "SELECT place, name, max(row) FROM files WHERE change <= ? GROUP BY place, name"
            bases = []
            for place, name, row in db.execute(query, (upto,)).fetchall():
                rows = self.entries("name = ? AND place = ? AND row <= ?", (name, place, row))
                if rows[-1].kind in logs and (data := journal.content(rows, self.text)) is not None:
                    values = (journal.SEEN, self._stored(db, data), len(data), row)
                    update = "UPDATE files SET kind = ?, before = NULL, after = ?, at = 0, size = ? WHERE row = ?"
                    db.execute(update, values)
                    bases.append(row)
            db.execute("CREATE TEMP TABLE bases (row INTEGER PRIMARY KEY)")
            db.executemany("INSERT INTO bases VALUES (?)", [(row,) for row in bases])
            db.execute(
                "DELETE FROM files WHERE change <= ? AND row NOT IN (SELECT max(row) FROM files GROUP BY place, name) "
                "AND row NOT IN bases",
                (upto,),
            )
            db.execute("DROP TABLE bases")
            db.execute(_WITHOUT_FILES)
            db.execute("UPDATE changes SET undone = ? WHERE number <= ?", (journal.DROPPED, upto))
            self._collect(db)


def _make_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:  # else another process was first
        for statement in _TABLES.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_SCHEMA}")
    db.execute("COMMIT")


def _as_seen(entry: Entry, there: str, here: str) -> Entry:
    """An entry of a file that lies in another place, as its change has called it."""
    name = os.path.relpath(os.path.join(there, entry.name), here)
    if entry.kind in (journal.OUT, journal.IN):
        return entry._replace(name=name, other=os.path.relpath(os.path.join(there, entry.other), here))
    return entry._replace(name=name)


def _change(row: tuple[Any, ...]) -> Change:
    number, at, path, surface, client, session, verb, ids, steps, branch, undoes, done, undone = row
    named = {int(step): tuple(pair) for step, pair in json.loads(steps or "{}").items()}
    return Change(
        number, at, path, By(surface, client, session), verb, tuple(json.loads(ids or "[]")),
        tuple((str(id), str(action)) for id, action in named.values()), branch, undoes, bool(done), undone,
    )  # fmt: skip


def _plain(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise sqlite3.DatabaseError(f"a text is damaged: {error}") from None
