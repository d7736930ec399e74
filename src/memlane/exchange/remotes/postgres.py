"""A PostgreSQL database as a remote: version 13 or newer, as it comes, or what speaks its language.

One row holds one file; its `number` is taken from the row of its bank. Taking a number locks that row until the change
is committed, so numbers become visible in their order. With a sequence they would not: whoever had seen 2 would never
see 1, if that was committed later.

Each change is one statement, so a member who is killed or cut off cannot leave the bank locked. The notice that
wakes the others carries the number alone, because everybody in a database may listen.

Who may read and write which scope is checked by the database (row-level security): everybody the scope `shared`, and a
scope that has the name of a role whoever is a member of that role. The tables' owner sees everything. The scope is part
of the key, so that a refusal does not tell whether there is a file of that name in a scope of somebody else.
"""

from __future__ import annotations

import hashlib
import os
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, unquote

from memlane.core.errors import InvalidInput, MemlaneError, StorageError
from memlane.exchange.remotes import (
    LONGEST,
    Entry,
    New,
    TooLarge,
    Unreachable,
    checked,
    conflict,
    emptied,
    not_installed,
)

try:
    import psycopg
    from psycopg import errors
except ImportError as error:
    raise not_installed("PostgreSQL", "postgres", "psycopg[binary]") from error

PATIENCE = 60.0  # seconds that one statement may take
GRACE = 5.0  # seconds more, for the server to say so itself
CONNECTING = 10  # seconds
POLL = 5.0  # seconds between looks: a notice does not come through every proxy
_PAGE = 1000
_TRIES = 30  # where the server wants a change to be tried again, as a serializable one does

SCHEMA = """\
create schema if not exists memlane;
create table if not exists memlane.bank (name text primary key, number bigint not null);
create table if not exists memlane.file (
  bank text not null, scope text not null, path text not null, number bigint not null, version text not null,
  content bytea, author text not null, lineage text not null default '', primary key (bank, scope, path));
create index if not exists file_bank_number on memlane.file (bank, number);
alter table memlane.file enable row level security;
drop policy if exists by_scope on memlane.file;
create policy by_scope on memlane.file
  using (scope = 'shared' or exists (select 1 from pg_roles where rolname = scope and pg_has_role(oid, 'member')))
  with check (scope = 'shared' or exists (select 1 from pg_roles where rolname = scope and pg_has_role(oid, 'member')));
"""

_NUMBERED = """\
with numbered as (
  insert into memlane.bank as bank values (%(bank)s, %(count)s)
  on conflict (name) do update set number = bank.number + %(count)s returning bank.number),
"""
_NEW = """\
given as (
  select * from unnest(%(paths)s::text[], %(contents)b::bytea[], %(lineages)s::text[])
  with ordinality as given (path, content, lineage, place)),
changed as (
  insert into memlane.file (bank, scope, path, number, version, content, author, lineage)
  select %(bank)s, %(scope)s, path, number - %(count)s + place, (number - %(count)s + place)::text || '-' || %(mark)s,
    content, %(author)s, lineage
  from numbered, given
  on conflict (bank, scope, path) do nothing returning path, number, version)
"""
_NEXT = """\
changed as (
  update memlane.file as file
  set number = numbered.number, version = numbered.number::text || '-' || %(mark)s,
      content = %(content)s, author = %(author)s, lineage = %(lineage)s
  from numbered
  where file.bank = %(bank)s and file.scope = %(scope)s and file.path = %(path)s and file.version = %(expected)s
  returning file.path, file.number, file.version)
"""
# A member can write what our own statements never would: what is longer than ours is cut, not fetched.
_SAID = f"""\
left(path, {LONGEST + 1}), left(scope, {LONGEST + 1}), left(version, 100), coalesce(octet_length(content), 0),
  content is null, left(author, 200)"""
_CHANGES = f"""\
select number, {_SAID} from memlane.file
where bank = %s and number > %s order by number limit %s
"""  # noqa: S608
_FILE = f"""\
select {_SAID}, left(lineage, 2000),
  case when octet_length(content) <= %s then content end
from memlane.file where bank = %s and scope = %s and path = %s
"""  # noqa: S608
_FILES = f"""\
select {_SAID}, left(lineage, 2000), content
from memlane.file join unnest(%s::text[], %s::text[], %s::bigint[]) as listed (scope, path, size) using (scope, path)
where bank = %s and (content is null or octet_length(content) <= size)
"""  # noqa: S608
_THERE = """\
select bank.number, file.number, left(file.version, 100) from memlane.bank as bank
left join memlane.file as file on file.bank = bank.name and file.scope = %s and file.path = %s
where bank.name = %s
"""
_NEWS = "select exists (select 1 from memlane.file where bank = %s and number > %s)"
_TOLD = "select path, version, (select pg_notify(%(channel)s, max(number)::text)::text from changed) from changed"
_UNTOLD = "select path, version from changed"


def setup(*members: str) -> str:
    """The SQL that prepares a database, for somebody who may: the tables, and the rights of these roles."""
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in members)
    rights = f"""\
grant usage on schema memlane to {names};
grant select, insert, update on memlane.bank, memlane.file to {names};
"""
    return SCHEMA + (rights if members else "")


class PostgresRemote:
    """See `remotes.Remote`. It connects when it is first used, and again when the connection was lost."""

    def __init__(self, url: str, bank: str) -> None:
        try:
            settings = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise InvalidInput(
                "This is no address of a PostgreSQL database.", hint="Write postgresql://USER@HOST/DATABASE."
            ) from None
        self._place = f"The database {settings.get('dbname', '')} at {settings.get('host', 'this machine')}"
        self._settings: dict[str, Any] = {
            "connect_timeout": CONNECTING, "tcp_user_timeout": int(PATIENCE * 1000), "application_name": "memlane",
            "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, **settings,
            "client_encoding": "UTF8",  # else a database of SQL_ASCII, or PGCLIENTENCODING, decides what a path is
        }  # fmt: skip
        self._bank = bank
        self._channel = "memlane_" + hashlib.sha256(bank.encode()).hexdigest()[:16]
        self._connection: Any = None
        self._watching: Any = None  # apart, so that waiting for news keeps nobody from writing
        self._notifies = True
        self._ready = False

    # -- reading

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        if cursor and self._is_brought_back(cursor):
            cursor = ""
            yield [], cursor
        while True:
            rows = self._asked(_CHANGES, (self._bank, _number(cursor), _PAGE))
            entries = [Entry(*row[1:]) for row in rows]
            if rows:
                cursor = _cursor(rows[-1][0], entries[-1])
            yield entries, cursor
            if len(rows) < _PAGE:
                return

    def _is_brought_back(self, cursor: str) -> bool:
        """Whether the database is from before what we saw of it: from a backup. It has not come so far, or the file
        that was changed last then is an older one now. Others may have changed it again since, which is in what comes.
        """
        number, (version, *file) = _number(cursor), [*map(unquote, cursor.split(" ")[1:])] or ["", "", ""]
        rows = self._asked(_THERE, (*file, self._bank))
        if not rows:
            raise emptied(self._place)
        [(last, at, now)] = rows
        is_older = at is None or at < number or (at == number and now != version)
        return last < number or (bool(version) and is_older)

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        rows = self._asked(_FILE, (most, self._bank, checked("scope", scope), checked("path", path)))
        if not rows:
            return None
        *described, content = rows[0]
        entry = Entry(*described)
        if content is None and not entry.deleted:
            raise TooLarge(f"{path} has {entry.size} bytes at the remote.", hint="Make it smaller there.")
        return entry, bytes(content or b"")

    def get_many(self, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        asked = [[each.scope for each in listed], [each.path for each in listed], [each.size for each in listed]]
        rows = self._asked(_FILES, (*asked, self._bank))
        return [(Entry(*described), bytes(content or b"")) for *described, content in rows]

    def watch(self, cursor: str, seconds: float) -> bool:
        end, losses = time.monotonic() + seconds, 0
        if not self._ready:
            self._prepared()
        while True:
            try:
                if self._watching is None or not _lives(self._watching):
                    _close(self._watching)
                    self._watching = self._connect()
                    self._listen(self._watching)
                with _in_time(self._watching):
                    (news,) = self._watching.execute(_NEWS, (self._bank, _number(cursor))).fetchone()
                left = end - time.monotonic()
                if news or left <= 0:
                    return bool(news)
                for _ in self._watching.notifies(timeout=min(left, POLL), stop_after=1):
                    pass
            except psycopg.Error as error:
                had, self._watching = self._watching, None
                losses += 1
                if had is None or not _is_lost(had, error) or losses > 2:
                    _close(had)
                    raise self._told(error) from error

    def keeps_history(self) -> bool:
        return False

    def close(self) -> None:
        _close(self._connection)
        _close(self._watching)
        self._connection = self._watching = None

    # -- writing

    def put(self, path: str, data: bytes, expected: str | None, *, scope: str, author: str, lineage: str = "") -> str:
        if expected is not None:
            return self._replaced(path, data, expected, scope, author, lineage)
        for _, version in self.put_many([New(path, scope, data, lineage)], author=author):
            return version
        raise conflict(path)

    def put_many(self, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        for scope in dict.fromkeys(each.scope for each in new):  # one that is refused does not stop the others
            files = {checked("path", each.path): each for each in new if each.scope == scope}
            said = {
                "paths": list(files), "contents": [each.data for each in files.values()],
                "lineages": [each.lineage for each in files.values()], "count": len(files),
            }  # fmt: skip
            yield from ((files[path], version) for path, version in self._changed(_NEW, said, scope, author))

    def delete(self, path: str, expected: str, *, scope: str, author: str, lineage: str = "") -> str:
        return self._replaced(path, None, expected, scope, author, lineage)

    def _replaced(self, path: str, content: bytes | None, expected: str, scope: str, author: str, lineage: str) -> str:
        said = {
            "path": checked("path", path), "content": content, "expected": expected, "lineage": lineage, "count": 1,
        }  # fmt: skip
        for _, version in self._changed(_NEXT, said, scope, author):
            return version
        raise conflict(path)

    def _changed(self, how: str, said: dict[str, Any], scope: str, author: str) -> list[tuple[str, str]]:
        """(path, new version) of each file that was changed."""
        said |= {
            "bank": self._bank, "scope": checked("scope", scope), "author": author.replace("\0", ""),
            "channel": self._channel, "mark": os.urandom(6).hex(),
        }  # fmt: skip
        self._prepared()
        told = _TOLD if self._notifies else _UNTOLD
        return [(row[0], row[1]) for row in self._asked(_NUMBERED + how + told, said, again=False)]

    # -- the connection

    def _asked(self, sql: str, values: Any, again: bool = True) -> list[tuple[Any, ...]]:
        """The rows of one statement. Where the connection was lost it is made anew and the statement sent `again`;
        one that changes something is not, if it may have been carried out.
        """
        for attempt in range(_TRIES):
            connection = self._prepared()
            try:
                with _in_time(connection):
                    return list(connection.execute(sql, values, binary=True))  # as text, contents take twice the bytes
            except (errors.SerializationFailure, errors.DeadlockDetected) as error:
                failure: psycopg.Error = error
                time.sleep(random.uniform(0, 0.02 * (attempt + 1)))  # noqa: S311
            except psycopg.Error as error:
                lost = _is_lost(connection, error)
                if lost:
                    _close(connection)
                    self._connection = None
                undone = again or error.sqlstate is not None  # a server that still says why has not done it
                if not (lost and undone and attempt < 2):
                    raise self._told(error, unknown=lost and not undone) from error
                failure = error
        raise self._told(failure) from failure

    def _prepared(self) -> Any:
        """A connection that lives, to a database that has the tables."""
        if self._connection is None or not _lives(self._connection):
            _close(self._connection)
            self._connection = connection = None
            try:
                connection = self._connect()
                if not self._ready:
                    self._set_up(connection)
                    self._listen(connection, only_try=True)
            except BaseException as error:
                _close(connection)
                if isinstance(error, psycopg.Error):
                    raise self._told(error) from error
                raise
            self._connection, self._ready = connection, True
        return self._connection

    def _connect(self) -> Any:
        # what is prepared on one connection is not there on the next behind a proxy that pools them
        connection = psycopg.connect(**self._settings, autocommit=True, prepare_threshold=None)
        with suppress(errors.FeatureNotSupported):
            connection.execute(f"set statement_timeout = {int(PATIENCE * 1000)}")
        return connection

    def _set_up(self, connection: Any) -> None:
        """Make the tables where they are missing. Two members who do so at once get in each other's way once."""
        for _ in range(10):
            try:
                connection.execute("select 1 from memlane.file limit 0")
                return
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                pass
            try:
                with _in_time(connection), connection.transaction():
                    connection.execute(SCHEMA)
                return
            except (errors.UniqueViolation, errors.DuplicateObject, errors.DuplicateTable, errors.DuplicateSchema,
                    errors.InternalError_, errors.SerializationFailure, errors.DeadlockDetected):  # fmt: skip
                time.sleep(random.uniform(0, 0.1))  # noqa: S311
        raise StorageError(f"{self._place} could not be prepared.", hint="Try again.")

    def _listen(self, connection: Any, only_try: bool = False) -> None:
        """Ask to be told of changes. Databases that cannot tell are looked at from time to time instead."""
        try:
            connection.execute(f"listen {self._channel}")
            if only_try:
                connection.execute(f"unlisten {self._channel}")
        except (errors.FeatureNotSupported, errors.SyntaxError, errors.UndefinedFunction):
            self._notifies = False

    def _told(self, error: Any, unknown: bool = False) -> MemlaneError:
        """The error as a sentence with a next step. What the driver says is not repeated but for its first line."""
        if isinstance(error, errors.InsufficientPrivilege):
            me = self._settings.get("user") or "ROLE"
            if "row-level security" in str(error):
                return StorageError(
                    "The database does not let you write into this scope.",
                    hint="Ask for membership of the role that has the scope's name, or choose another scope.",
                    code="no_permission",
                )
            return StorageError(
                f"{self._place} does not let you use memlane's tables, or make them.",
                hint=f"Somebody who may has to run this there once:\n\n{setup(str(me))}",
                code="no_permission",
            )
        if unknown:
            return Unreachable(
                f"{self._place} broke off during a write, which may have arrived.",
                hint="Read it again to find out.",
            )
        if isinstance(error, errors.DiskFull):
            return StorageError(f"{self._place} has a full disk.", hint="Free some space there.", code="disk_full")
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."
        if isinstance(error, psycopg.OperationalError):
            return Unreachable(
                f"{self._place} cannot be reached: {why}",
                hint="Check that it runs, the network, and the password in ~/.pgpass or PGPASSWORD.",
            )
        return StorageError(f"{self._place} says: {why}", hint="Ask who looks after it.")


@contextmanager
def _in_time(connection: Any) -> Iterator[None]:
    """Cut the connection when an answer takes longer than the server itself would let it: then nobody is there."""
    done = threading.Event()

    def cut() -> None:
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
            if not done.is_set():
                line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(PATIENCE + GRACE, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


def _lives(connection: Any) -> bool:
    """Whether the server has not hung up: then a write need not be sent into the void, and its outcome is known."""
    if connection.closed:
        return False
    try:
        connection.pgconn.consume_input()  # what the server said last
        connection.pgconn.consume_input()  # whether it has hung up
    except psycopg.Error:
        return False
    return bool(connection.pgconn.status == psycopg.pq.ConnStatus.OK)


def _is_lost(connection: Any, error: Any) -> bool:
    return bool(connection.closed) or isinstance(error, (errors.AdminShutdown, errors.CrashShutdown))


def _cursor(number: int, last: Entry) -> str:
    """Up to which change a reader has come, and of which file that one was."""
    said = (last.version, last.scope, last.path)
    told = [quote(word, safe="") for word in said] if all(0 < len(word) <= LONGEST for word in said) else []
    return " ".join([str(number), *told])


def _number(cursor: str) -> int:
    number = cursor.partition(" ")[0]
    return int(number) if number.isascii() and number.isdigit() else 0


def _close(connection: Any) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()
