"""What this machine knows of a bank's remotes: one SQLite file per bank in the user's state folder, readable by the
user alone.

    ~/.local/state/memlane/sync/3f9a….db        named after the bank's real path

remotes    name, address, which lanes and scopes, whether all its members are the user's own machines, how far we read
files      of each file: the remote's version and a hash of its content there (`seen`), the content that both sides had
           in common as it was written here (`base`), what was held back of it (`held`) or is not sent (`unsent`), and
           what the file looked like (`stamp`) when there was nothing more to send; whose changes are in what the remote
           has (`lineage`)
lineages   of each file here: what it held when it was last looked at, and whose changes are in that
parts      of files with many memories: every version that was ever here, as a hash, the lineage of the content that it
           came with, and whether it is here now
counted    of each file: the numbers that changes were given here, and those that somebody else gave under our name;
           of the file "", the names that this bank had before. A row for each change, of about 50 bytes, is never
           dropped: whoever was away for long brings old numbers, which would look like somebody else's
intents    merges that are being written, so that after a kill nothing is merged twice
sending    what is being sent, so that after a connection broke we know what we sent ourselves
bank       up to what this bank was cleared of what others forgot
outdated   lanes whose derived file has to be made anew

It lies outside the project: a clone must not name a place that memory is sent to. Losing it loses no memory; files that
differ on both sides are then merged without a common base.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from memlane import config
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.disk import files, journal_errors, locks, packing
from memlane.exchange.remotes import SHARED

FOLDER = "sync"
_TABLES = """
CREATE TABLE remotes (
    name TEXT PRIMARY KEY, url TEXT NOT NULL, lanes TEXT NOT NULL, scopes TEXT NOT NULL, mine INTEGER NOT NULL,
    author TEXT NOT NULL, cursor TEXT NOT NULL DEFAULT '', gate TEXT NOT NULL DEFAULT '', at TEXT NOT NULL DEFAULT '',
    failed TEXT NOT NULL DEFAULT '');
CREATE TABLE files (
    remote TEXT NOT NULL, scope TEXT NOT NULL, path TEXT NOT NULL, version TEXT NOT NULL, seen BLOB NOT NULL,
    held TEXT NOT NULL, unsent TEXT NOT NULL, stamp TEXT NOT NULL, base BLOB, UNIQUE (remote, scope, path));
CREATE TABLE sending (
    remote TEXT NOT NULL, scope TEXT NOT NULL, path TEXT NOT NULL, seen BLOB NOT NULL, held TEXT NOT NULL, base BLOB,
    UNIQUE (remote, scope, path));
CREATE TABLE bank (forgotten BLOB NOT NULL);
CREATE TABLE lineages (path TEXT PRIMARY KEY, seen BLOB NOT NULL, lineage TEXT NOT NULL);
CREATE TABLE intents (
    remote TEXT NOT NULL, scope TEXT NOT NULL, path TEXT NOT NULL, version TEXT NOT NULL, seen BLOB NOT NULL,
    held TEXT NOT NULL, after BLOB NOT NULL, lineage TEXT NOT NULL, base BLOB, UNIQUE (remote, scope, path));
"""
_SINCE_2 = """
ALTER TABLE sending ADD COLUMN lineage TEXT NOT NULL DEFAULT '';
CREATE TABLE parts (path TEXT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (path, hash)) WITHOUT ROWID
"""
_SINCE_3 = "CREATE TABLE IF NOT EXISTS outdated (lane TEXT PRIMARY KEY)"
_SINCE_4 = """
ALTER TABLE parts ADD COLUMN lineage TEXT NOT NULL DEFAULT '';
ALTER TABLE parts ADD COLUMN here INTEGER NOT NULL DEFAULT 0
"""

_AS_IT_CAME = b""  # in the place of a base that is just what is written
_SINCE_5 = """
CREATE TABLE counted (
    path TEXT NOT NULL, member TEXT NOT NULL, count INTEGER NOT NULL, given INTEGER NOT NULL,
    PRIMARY KEY (path, member, count)) WITHOUT ROWID;
DELETE FROM lineages WHERE path = ''
"""  # a new name: which numbers were given under the old one is not known
# from the beginning: what a copy of a disk was called that is brought back before its first sync is known then
_SINCE_6 = "INSERT OR IGNORE INTO lineages VALUES ('', x'', lower(hex(randomblob(3))))"
_SINCE_7 = "ALTER TABLE files ADD COLUMN lineage TEXT NOT NULL DEFAULT ''"
_SCHEMA = (_TABLES, _SINCE_2, _SINCE_3, _SINCE_4, _SINCE_5, _SINCE_6, _SINCE_7)


@dataclass(frozen=True, slots=True)
class Settings:
    """A remote as the user added it. No `lanes` means all of them; new files go to the first of the `scopes`."""

    name: str
    url: str
    lanes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = (SHARED,)
    mine: bool = False
    author: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lanes": list(self.lanes), "scopes": list(self.scopes)}


class Noted(NamedTuple):
    """How far we are with a remote: where to go on, the rules of the gate then, the last sync that was whole, and why
    the last one was not.
    """

    cursor: str = ""
    gate: str = ""
    at: str = ""
    failed: str = ""


@dataclass(slots=True)
class Known:
    """What is known of one file at a remote. `version` is "" where it was never there, `seen` b"" where it is not;
    `lineage` is that of the content there, `common` says whether both sides had something in common.
    """

    scope: str
    path: str
    version: str = ""
    seen: bytes = b""
    held: str = ""
    unsent: str = ""
    stamp: str = ""
    lineage: str = ""
    common: bool = False


class Version(NamedTuple):
    """A version of a memory that a file had here: the lineage of the content that it came with, last if it came back,
    and whether it is here now.
    """

    lineage: str
    here: bool


class Intent(NamedTuple):
    """A merge that is being written: what is known once it is, what stands for that content, and its lineage."""

    known: Known
    packed: bytes | None
    after: bytes
    lineage: str

    def base(self, written: bytes | None) -> bytes | None:
        """What both sides have in common once this is written."""
        if self.packed == _AS_IT_CAME:
            return written
        return None if self.packed is None else zlib.decompress(self.packed)


def digest(data: bytes | None) -> bytes:
    """What stands for a content; b"" for none."""
    return b"" if data is None else sha256(data).digest()


def path_of(bank: Path) -> Path:
    """The file of a bank's remotes, there or not. Raises ConfigError without a home folder."""
    name = sha256(os.fsencode(os.path.realpath(bank))).hexdigest()[:32]
    return config.user_state() / FOLDER / f"{name}.db"


def moved(before: Path, bank: Path) -> None:
    """A bank that `before` was the file of is here now, and keeps its remotes. Raises StorageError."""
    after = path_of(bank)
    if os.path.lexists(before) and not os.path.lexists(after):
        with closing(sqlite3.connect(before)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        files.move(os.fspath(before), os.fspath(after))


@contextmanager
def opened(bank: Path) -> Iterator[State | None]:
    """The state of a bank; None when it has no remotes, or there is no home folder. Raises StorageError."""
    if _there(bank) is None:
        yield None
        return
    with made(bank) as state:
        yield state


@contextmanager
def made(bank: Path) -> Iterator[State]:
    """The state of a bank, which may be a new one. Raises StorageError, ConfigError."""
    path = path_of(bank)
    try:
        state = State(path)
    except sqlite3.Error as error:
        raise _damaged(path, error) from error
    try:
        yield state
    except sqlite3.Error as error:
        raise _damaged(state.path, error) from error
    finally:
        state.close()


def _there(bank: Path) -> Path | None:
    with suppress(MemlaneError):
        path = path_of(bank)
        return path if os.path.lexists(path) else None
    return None


def _damaged(path: Path, error: sqlite3.Error) -> StorageError:
    if journal_errors.is_full(error):
        return StorageError(
            f"The disk that {path.parent.parent} is on is full.",
            hint="Free some space, then try again.",
            code="disk_full",
        )
    return StorageError(
        "What is known of this bank's remotes cannot be read or written.",
        hint=f"Check the disk. If the file is damaged, delete it and add the remotes again: {path}",
    )


class State:
    """The open file. Every write is one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        files.make_folder(os.fspath(path.parent.parent), private=True)
        files.make_folder(os.fspath(path.parent), private=True)
        with files.storage(os.fspath(path)):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
        self.db = sqlite3.connect(path, timeout=locks.patience.get(), isolation_level=None, check_same_thread=False)
        try:
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.execute("PRAGMA secure_delete = ON")
            if self._version() < len(_SCHEMA):
                with self.transaction():  # somebody else may have been quicker
                    for statements in _SCHEMA[self._version() :]:
                        for statement in statements.split(";"):
                            self.db.execute(statement)
                    self.db.execute(f"PRAGMA user_version = {len(_SCHEMA)}")
        except BaseException:
            self.db.close()
            raise

    def _version(self) -> int:
        return int(self.db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written inside is written as a whole; inside of another one, together with that."""
        if self.db.in_transaction:
            yield
            return
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    # -- remotes

    def remotes(self) -> list[Settings]:
        rows = self.db.execute("SELECT name, url, lanes, scopes, mine, author FROM remotes ORDER BY name")
        return [
            Settings(name, url, tuple(json.loads(lanes)), tuple(json.loads(scopes)), bool(mine), author)
            for name, url, lanes, scopes, mine, author in rows
        ]

    def remote(self, name: str) -> Settings:
        """The remote of this name. Raises NotFound."""
        for each in self.remotes():
            if each.name == name:
                return each
        raise no_remote(name)

    def add(self, new: Settings) -> None:
        """Raises AlreadyExists."""
        values = (new.name, new.url, json.dumps(new.lanes), json.dumps(new.scopes), new.mine, new.author)
        try:
            self.db.execute(
                "INSERT INTO remotes (name, url, lanes, scopes, mine, author) VALUES (?, ?, ?, ?, ?, ?)", values
            )
        except sqlite3.IntegrityError:
            hint = f"Choose another name, or `memlane sync remove {new.name}` first."
            raise AlreadyExists("There is a remote of this name.", hint=hint) from None

    def remove(self, name: str) -> None:
        """Forget a remote and all that is known of its files. Raises NotFound."""
        with self.transaction():
            if self.db.execute("DELETE FROM remotes WHERE name = ?", (name,)).rowcount == 0:
                raise no_remote(name)
            self.db.execute("DELETE FROM files WHERE remote = ?", (name,))
            self.db.execute("DELETE FROM intents WHERE remote = ?", (name,))
            self.db.execute("DELETE FROM sending WHERE remote = ?", (name,))

    def noted(self, name: str) -> Noted:
        """How far we are with a remote."""
        row = self.db.execute("SELECT cursor, gate, at, failed FROM remotes WHERE name = ?", (name,)).fetchone()
        return Noted(*row) if row else Noted()

    def note(self, name: str, **what: str) -> None:
        """Note some of what `Noted` has."""
        noted = self.noted(name)._replace(**what)
        self.db.execute("UPDATE remotes SET cursor = ?, gate = ?, at = ?, failed = ? WHERE name = ?", (*noted, name))

    # -- files

    def files(self, remote: str) -> Iterator[Known]:
        rows = self.db.execute(
            "SELECT scope, path, version, seen, held, unsent, stamp, lineage, base IS NOT NULL FROM files "
            "WHERE remote = ?",
            (remote,),
        )
        return (Known(*row) for row in rows.fetchall())

    def base(self, remote: str, scope: str, path: str) -> bytes | None:
        """What both sides had in common, as it was written here; None where nothing was."""
        row = self.db.execute(
            "SELECT base FROM files WHERE remote = ? AND scope = ? AND path = ?", (remote, scope, path)
        ).fetchone()
        return zlib.decompress(row[0]) if row and row[0] is not None else None

    def save(self, remote: str, known: Known, base: bytes | None) -> None:
        """Note what is known of a file, and that no merge of it is being written any more."""
        known.common = base is not None
        with self.transaction():
            self.db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    remote, known.scope, known.path, known.version, known.seen, known.held, known.unsent, known.stamp,
                    _packed(base), known.lineage,
                ),
            )  # fmt: skip
            which = (remote, known.scope, known.path)
            self.db.execute("DELETE FROM intents WHERE remote = ? AND scope = ? AND path = ?", which)
            self.db.execute("DELETE FROM sending WHERE remote = ? AND scope = ? AND path = ?", which)

    def stamp(self, remote: str, stamps: Iterable[Known]) -> None:
        """Note what these files look like now, all else being as it was."""
        with self.transaction():
            self.db.executemany(
                "UPDATE files SET stamp = ? WHERE remote = ? AND scope = ? AND path = ?",
                [(known.stamp, remote, known.scope, known.path) for known in stamps],
            )

    def drop(self, remote: str, scope: str, path: str) -> None:
        """The remote has nothing of a file, and what we sent is not there either."""
        with self.transaction():
            for table in ("files", "sending"):
                which = f"DELETE FROM {table} WHERE remote = ? AND scope = ? AND path = ?"  # noqa: S608
                self.db.execute(which, (remote, scope, path))

    def rebase(self, path: str, clean: Callable[[bytes], bytes | None]) -> None:
        """Let `clean` take out of every base of a file what must not stay; what was being merged is merged again.

        `shred` has to follow.
        """
        self.db.execute("DELETE FROM intents WHERE path = ?", (path,))
        self.db.execute("DELETE FROM sending WHERE path = ?", (path,))
        rows = self.db.execute("SELECT rowid, base FROM files WHERE path = ? AND base IS NOT NULL", (path,)).fetchall()
        for rowid, packed in rows:
            base = zlib.decompress(packed)
            left = clean(base) or b""
            if left != base:
                self.db.execute("UPDATE files SET base = ?, stamp = '' WHERE rowid = ?", (_packed(left), rowid))

    def shred(self) -> None:
        """Let nothing stay in the file of what was deleted: SQLite leaves copies in pages that rows were moved out of,
        and the log has what they were.
        """
        self.db.execute("VACUUM")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- what was forgotten

    @property
    def forgotten(self) -> bytes:
        """What stands for all that was forgotten when this bank was last cleared of it."""
        row = self.db.execute("SELECT forgotten FROM bank").fetchone()
        return row[0] if row else b""

    @forgotten.setter
    def forgotten(self, value: bytes) -> None:
        with self.transaction():
            self.db.execute("DELETE FROM bank")
            self.db.execute("INSERT INTO bank VALUES (?)", (value,))

    # -- derived files

    def outdated(self) -> list[str]:
        """The lanes whose derived file has to be made anew."""
        return [lane for (lane,) in self.db.execute("SELECT lane FROM outdated")]

    def set_outdated(self, lane: str, is_outdated: bool) -> None:
        change = "INSERT OR IGNORE INTO outdated VALUES (?)" if is_outdated else "DELETE FROM outdated WHERE lane = ?"
        self.db.execute(change, (lane,))

    # -- where contents come from

    @cached_property
    def me(self) -> str:
        """What this bank is called in lineages."""
        return self.lineage("")[1]

    def take_new_name(self) -> None:
        """Be called something else in lineages from now on."""
        with self.transaction():
            self.count("", self.me, 0)
            self.set_lineage("", b"", os.urandom(3).hex())
        self.__dict__.pop("me", None)

    @property
    def called(self) -> set[str]:
        """What this bank is called in lineages, and what it was called before."""
        return {self.me, *self.names("")}

    def count(self, path: str, member: str, number: int, *, given: bool = True) -> None:
        """Note the number that a change was `given` here, or somebody else has given under that name."""
        self.db.execute("INSERT OR IGNORE INTO counted VALUES (?, ?, ?, ?)", (path, member, number, given))

    def is_counted(self, path: str, member: str, number: int) -> bool:
        """Whether a number was given here, or is none that is new of somebody else's."""
        return bool(
            self.db.execute(
                "SELECT EXISTS (SELECT 1 FROM counted WHERE path = ? AND member = ? "
                "AND (count = ? OR (count > ? AND NOT given)))",
                (path, member, number, number),
            ).fetchone()[0]
        )

    def names(self, path: str) -> set[str]:
        """What this bank was called when it gave numbers to changes of a file."""
        rows = self.db.execute("SELECT DISTINCT member FROM counted WHERE path = ? AND given", (path,))
        return {member for (member,) in rows}

    def lineage(self, path: str) -> tuple[bytes, str]:
        """(what stands for the content that a file had, the lineage of that)."""
        row = self.db.execute("SELECT seen, lineage FROM lineages WHERE path = ?", (path,)).fetchone()
        return row or (b"", "")

    def set_lineage(self, path: str, seen: bytes, lineage: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO lineages VALUES (?, ?, ?)", (path, seen, lineage))

    # -- versions of memories in a file of many

    def had(self, path: str) -> dict[bytes, Version]:
        """Every version of a memory that a file ever had here, by what stands for it."""
        rows = self.db.execute("SELECT hash, lineage, here FROM parts WHERE path = ?", (path,))
        return {hash: Version(lineage, bool(here)) for hash, lineage, here in rows}

    def has(self, path: str, new: Mapping[bytes, str], gone: Iterable[bytes]) -> None:
        """Note what stands for memories that a file has here now, each with its lineage, and for those that went."""
        with self.transaction():
            self.db.executemany(
                "INSERT OR REPLACE INTO parts VALUES (?, ?, ?, 1)", [(path, hash, new[hash]) for hash in new]
            )
            self.db.executemany(
                "UPDATE parts SET here = 0 WHERE path = ? AND hash = ?", [(path, hash) for hash in gone]
            )

    # -- merges that are being written

    def intend(self, remote: str, known: Known, base: bytes | None, after: bytes | None, lineage: str) -> None:
        """Note, before a file is written, what is known once it has this content.

        What is written as it came is not kept here, too: whoever finds it written has it.
        """
        facts = (remote, known.scope, known.path, known.version, known.seen, known.held)
        as_it_came = base is not None and base == after
        values = (*facts, digest(after), lineage, _AS_IT_CAME if as_it_came else _packed(base))
        self.db.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def intents(self, remote: str) -> list[Intent]:
        """What was not finished."""
        rows = self.db.execute(
            "SELECT scope, path, version, seen, held, base, after, lineage FROM intents WHERE remote = ?", (remote,)
        ).fetchall()
        return [
            Intent(Known(scope, path, version, seen, held), base, after, lineage)
            for scope, path, version, seen, held, base, after, lineage in rows
        ]

    def settle(self, remote: str) -> None:
        self.db.execute("DELETE FROM intents WHERE remote = ?", (remote,))

    def send(self, remote: str, known: Known, base: bytes | None, lineage: str) -> None:
        """Note, before a file is sent, what both sides have in common once it has arrived, and its lineage."""
        values = (remote, known.scope, known.path, known.seen, known.held, _packed(base), lineage)
        self.db.execute("INSERT OR REPLACE INTO sending VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def unheard(self, remote: str) -> list[tuple[str, str]]:
        """The scopes and names of what was sent without our being told that it arrived."""
        return self.db.execute("SELECT scope, path FROM sending WHERE remote = ?", (remote,)).fetchall()

    def sent(self, remote: str, scope: str, path: str) -> tuple[bytes, str, bytes | None] | None:
        """What we sent last and were not told that it arrived: what stands for it, its lineage, and what would be in
        common then.
        """
        row = self.db.execute(
            "SELECT seen, lineage, base FROM sending WHERE remote = ? AND scope = ? AND path = ?", (remote, scope, path)
        ).fetchone()
        return None if row is None else (row[0], row[1], None if row[2] is None else zlib.decompress(row[2]))


def _packed(base: bytes | None) -> bytes | None:
    return None if base is None else packing.packed(base)


def no_remote(name: str) -> NotFound:
    return NotFound("There is no remote of this name.", hint="`memlane sync status` lists them.")


def refuse_name(name: str) -> None:
    """Raise InvalidInput for what cannot be the name of a remote."""
    plain = name.replace("-", "").replace("_", "")
    if not plain.isalnum() or not plain.isascii() or len(name) > 40 or name in ("add", "now", "status", "remove"):
        raise InvalidInput(
            "That cannot be the name of a remote.",
            hint="Use letters, digits and dashes, as in home-2; add, now, remove and status are words of the command.",
        )
