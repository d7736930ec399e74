"""Which programs somebody has let in on the consent page: under what name, for what, and until when.

Kept in a database in the user's configuration folder, so that a restart of the server ends no session. It holds hashes
of tokens, never a token, and each is for one bank. A renewal spends the token that it was asked for with; whoever comes
with a spent one has it from somewhere it should not be, and then nobody keeps the connection.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from memlane.config import tokens
from memlane.config.places import user_file
from memlane.core.access import Access
from memlane.core.errors import ConfigError, InvalidInput
from memlane.disk import state

FILE = "oauth.db"
DAYS = 90  # that a connection lasts before somebody has to allow it again
HOUR = 3600  # seconds that an access token is good for
LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels, so no words, and nothing that is mistaken for something else
NUMBER = 8  # letters of a request's number
CODE = 12  # letters of its code, which are 57 bits: a thousand guesses a second find one in millions of years
_TABLES = """
CREATE TABLE IF NOT EXISTS sealing (key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS granted (
    id INTEGER PRIMARY KEY, bank TEXT NOT NULL, name TEXT NOT NULL, client TEXT NOT NULL, allowed TEXT NOT NULL,
    scopes TEXT NOT NULL, resource TEXT NOT NULL, made INTEGER NOT NULL, ends INTEGER NOT NULL, UNIQUE (bank, name));
CREATE TABLE IF NOT EXISTS token (
    hash BLOB PRIMARY KEY, granted INTEGER NOT NULL REFERENCES granted ON DELETE CASCADE,
    kind TEXT NOT NULL, allowed TEXT NOT NULL, ends INTEGER NOT NULL) WITHOUT ROWID;
"""
_GRANT = "granted.name, granted.client, token.allowed, granted.scopes, granted.resource, granted.made, granted.ends"


class Grant(NamedTuple):
    """What a program may do: one of `memlane.core.access.RIGHTS`, in these scopes, or in all where none is named."""

    name: str
    client: str
    right: str
    scopes: tuple[str, ...]
    resource: str
    made: int  # seconds since 1970
    ends: int  # of the token that was shown, or of the connection


class Tokens(NamedTuple):
    """What a program is handed, and nobody keeps."""

    access: str
    refresh: str


def opened(bank: Path) -> Grants:
    """The connections to a bank of this user's. Raises ConfigError without a home folder, OSError, sqlite3.Error."""
    place = user_file()
    if place is None:
        raise ConfigError("There is no home folder to keep connections in.", hint="Set HOME or XDG_CONFIG_HOME.")
    return Grants(place.parent, bank)


def listed(bank: Path) -> list[tokens.Token]:
    """The connections to a bank, as the named tokens are listed; none where no program was ever let in."""
    if not _is_there():
        return []
    with closing(opened(bank)) as kept:
        return [
            tokens.Token(
                Access(each.name, each.right, each.scopes or None), _moment(each.made), _moment(each.ends), "active"
            )
            for each in kept.list()
        ]


def end(bank: Path, name: str) -> bool:
    """End a connection to a bank, now. Whether there was one of that name."""
    if not _is_there():
        return False
    with closing(opened(bank)) as kept:
        return kept.remove(name)


def _is_there() -> bool:
    place = user_file()
    return place is not None and os.path.exists(place.parent / FILE)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class Grants:
    """The connections to a bank. Raises sqlite3.Error when the file cannot be read or written."""

    def __init__(self, folder: Path, bank: Path, clock: Callable[[], float] = time.time) -> None:
        self._bank, self._clock = os.path.realpath(bank), clock
        self._lock = Lock()
        state.claim(folder, FILE)  # so that only the user can read it
        self._db = sqlite3.connect(folder / FILE, timeout=5, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_TABLES)
        with self._writing() as db:
            if not db.execute("SELECT 1 FROM sealing").fetchone():
                db.execute("INSERT INTO sealing VALUES (?)", (secrets.token_bytes(32),))
        self.key: bytes = self._db.execute("SELECT key FROM sealing").fetchone()[0]

    def code(self, number: str) -> str:
        """The code that lets a program in by the request of this number: only who can read the key can know it.

        Raises InvalidInput for what cannot be a number.
        """
        plain = letters(number)
        if len(plain) != NUMBER or not set(plain) <= set(LETTERS):
            raise InvalidInput("That is not the number of a request.", hint="Copy it from the page in the browser.")
        mark = hmac.digest(self.key, f"code:{self._bank}:{plain}".encode(), hashlib.sha256)
        left, code = int.from_bytes(mark), ""
        while len(code) < CODE:
            left, letter = divmod(left, len(LETTERS))
            code += LETTERS[letter]
        return code

    def add(self, name: str, client: str, right: str, scopes: Iterable[str], resource: str) -> tuple[str, Tokens]:
        """Let a program in. Returns the name of the connection, with a number when it was taken, and its tokens."""
        now = int(self._clock())
        ends = now + DAYS * 86400
        with self._writing() as db:
            taken = {each for (each,) in db.execute("SELECT name FROM granted WHERE bank = ?", (self._bank,))}
            taken |= {each.access.name for each in tokens.listed(Path(self._bank))}  # a name is whose words it are
            free = next(each for each in _numbered(name) if each not in taken)
            added = db.execute(
                "INSERT INTO granted (bank, name, client, allowed, scopes, resource, made, ends)"
                " VALUES (?,?,?,?,?,?,?,?)",
                (self._bank, free, client, right, " ".join(scopes), resource, now, ends),
            )
            return free, self._handed(db, int(added.lastrowid or 0), right, ends, right)

    def renewed(self, refresh: str, right: str) -> Tokens | None:
        """New tokens for a refresh token, which is spent then; None when it is not good, or not any more."""
        with self._writing() as db:
            found = db.execute(
                "SELECT granted.id, granted.allowed, granted.ends FROM token JOIN granted ON granted.id = token.granted"
                " WHERE hash = ? AND kind = 'refresh' AND token.ends > ? AND bank = ?",
                (_hash(refresh), self._clock(), self._bank),
            ).fetchone()
            if not found:
                return None
            id, allowed, ends = found
            db.execute("UPDATE token SET kind = 'spent' WHERE hash = ?", (_hash(refresh),))
            return self._handed(db, id, allowed, ends, right)

    def by_access(self, token: str) -> Grant | None:
        """What this access token is good for at this moment."""
        return self._shown(token, "access")

    def by_refresh(self, token: str) -> Grant | None:
        """The same of a refresh token."""
        return self._shown(token, "refresh")

    def by_spent(self, token: str) -> Grant | None:
        """The connection that a refresh token was of before it was used."""
        return self._shown(token, "spent")

    def remove(self, name: str) -> bool:
        """End a connection: none of its tokens is good any more. Whether there was one of that name."""
        with self._writing() as db:
            return db.execute("DELETE FROM granted WHERE bank = ? AND name = ?", (self._bank, name)).rowcount > 0

    def list(self) -> list[Grant]:
        """The connections, the oldest first."""
        with self._lock:
            rows = self._db.execute(
                "SELECT name, client, allowed, scopes, resource, made, ends FROM granted WHERE ends > ? AND bank = ?"
                " ORDER BY id",
                (self._clock(), self._bank),
            ).fetchall()
        return [_grant(row) for row in rows]

    def close(self) -> None:
        self._db.close()

    def _handed(self, db: sqlite3.Connection, id: int, right: str, ends: int, of_access: str) -> Tokens:
        now = int(self._clock())
        db.execute("DELETE FROM granted WHERE ends <= ?", (now,))
        db.execute("DELETE FROM token WHERE ends <= ?", (now,))
        tokens = Tokens("mla_" + secrets.token_urlsafe(32), "mlr_" + secrets.token_urlsafe(32))
        rows = [
            (_hash(tokens.access), id, "access", of_access, min(now + HOUR, ends)),
            (_hash(tokens.refresh), id, "refresh", right, ends),
        ]
        db.executemany("INSERT INTO token VALUES (?,?,?,?,?)", rows)
        return tokens

    def _shown(self, token: str, kind: str) -> Grant | None:
        with self._lock:
            row = self._db.execute(
                f"SELECT {_GRANT}, token.ends FROM token JOIN granted ON granted.id = token.granted"  # noqa: S608
                " WHERE hash = ? AND kind = ? AND token.ends > ? AND bank = ?",
                (_hash(token), kind, self._clock(), self._bank),
            ).fetchone()
        return _grant((*row[:6], row[7])) if row else None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One change, whole or not at all."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def new_number() -> str:
    """A number for a request to let a program in, by which a person finds its code."""
    return "".join(secrets.choice(LETTERS) for _ in range(NUMBER))


def spaced(plain: str) -> str:
    """A number or a code as it is shown: BCDF-GHJK."""
    return "-".join(plain[at : at + 4] for at in range(0, len(plain), 4))


def letters(typed: str) -> str:
    """A number or a code as it was meant, however it was typed."""
    return "".join(char for char in typed.upper() if char.isalnum())


def _grant(row: tuple[str, str, str, str, str, int, int]) -> Grant:
    name, client, right, scopes, resource, made, ends = row
    return Grant(name, client, right, tuple(scopes.split()), resource, made, ends)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _hash(token: str) -> bytes:
    """A token has 256 random bits: nobody finds it by its hash, so the hash need not be slow."""
    return hashlib.sha256(token.encode(errors="replace")).digest()
