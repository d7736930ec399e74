"""The journal: what every change to a bank replaced and what it left, on stable storage before the change is made.

    with journal.change("update", "notes:deploy"):       what is written inside is one change, whoever writes it
        …

It lies in the user's state folder, out of the reach of `git clean` and of `rm -rf` in the project: see
`memlane.disk.journal_file`. `memlane.disk.files` tells it of every change to the files of a bank that this process has
opened (`keep`), except those under `indices/`. Without a place to write it, changes are made all the same, and
`Journal.absent` says why there is none; when the disk is full, they are refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from memlane.core.errors import StorageError
from memlane.core.values import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from memlane.disk.journal_file import JournalFile

WRITE, OUT, IN, APPEND, CUT, SEEN = "write", "out", "in", "append", "cut", "seen"  # the kinds of rows
DROPPED = "dropped"  # of a change that is too old: parts of it are not kept any more
_AGAIN = 30.0  # seconds after which a journal that could not be written is tried again
_AT_ONCE = 8  # open files
_EVERY = 64  # changes between two looks at the journal's size
_SAME_TIME = 10.0  # seconds; two processes that append to one file within them may not know of each other
T = TypeVar("T")


class By(NamedTuple):
    """Who makes changes: the surface (cli, mcp, hook, python), the client's name, and its session.

    `users` says that this surface is the user's own hand: what is written by it counts as the user's word. `author` is
    somebody else, where it is known who: new notes say so.
    """

    surface: str
    client: str = ""
    session: str = ""
    users: bool = False
    author: str = ""


_PYTHON = By("python", users=True)  # a program answers for what it writes
by: ContextVar[By] = ContextVar("by", default=_PYTHON)  # of this thread
_group: ContextVar[Group | None] = ContextVar("group", default=None)
_paused: ContextVar[bool] = ContextVar("paused", default=False)
_open: list[Journal] = []
_kept: dict[str, tuple[Journal, str]] = {}  # by folder or file: whose it is, and what it is called there


class Row(NamedTuple):
    """One change of one file, as it is written down. `before` and `after` are whole contents, None where there is no
    file; of an append or a cut, `after` or `before` are the bytes at `at`, and `other` is "new" where the file itself
    comes or goes with them. Of the two rows of a move, `other` is the other name.
    """

    name: str
    kind: str
    before: bytes | None = None
    after: bytes | None = None
    at: int = 0
    size: int = 0
    other: str = ""


class Entry(NamedTuple):
    """A row as it is read: `before` and `after` are hashes for `Journal.text`."""

    row: int
    change: int
    step: int
    name: str
    kind: str
    before: bytes | None
    after: bytes | None
    at: int
    size: int
    other: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a command, a tool call, a verb. `place` is the bank's folder; `undone` is "", "undone", "partly", or
    DROPPED for one that is too old to be taken back.
    """

    number: int
    at: float
    place: str
    by: By
    verb: str
    ids: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]  # id and action, of a plan
    branch: str
    undoes: int
    done: bool
    undone: str

    @property
    def id(self) -> str:
        """What `undo` takes."""
        return f"c{self.number}"


@dataclass(slots=True)
class Group:
    """A change that is being made. `undoes` is the number of the change that it takes back."""

    verb: str
    by: By
    ids: dict[str, None]
    undoes: int = 0
    alone: bool = False  # a single write that nobody announced
    steps: dict[int, tuple[str, str]] = field(default_factory=dict)
    step: int = 0
    numbers: dict[tuple[Journal, int], int] = field(default_factory=dict)
    held: list[tuple[str, int]] = field(default_factory=list)  # see `journal_writers`

    def begin(self, id: str, action: str) -> None:
        """What is changed from here on belongs together: it is taken back as a whole or not at all."""
        self.step += 1
        if id:
            self.steps[self.step] = (id, action)

    def number(self, journal: Journal) -> int:
        """The number that this change has in a journal; 0 when nothing was changed there."""
        return next((number for (own, _), number in self.numbers.items() if own is journal), 0)

    def close(self) -> None:
        """Write down that all is done, and which memories it was about."""
        for (journal, made), number in self.numbers.items():
            journal.finish(made, number, self)

    def end(self, keep: int = 0) -> None:
        """Nothing more comes, whether all is done or not; in the journals after the first `keep`."""
        if self.held[keep:]:
            from memlane.disk import journal_writers

            while self.held[keep:]:
                journal_writers.let_go(*self.held.pop())


@contextmanager
def change(verb: str, *ids: str, undoes: int = 0, joins: bool = True) -> Iterator[Group]:
    """Everything that this thread changes inside is one change; inside of another one, it is a step of that.

    Without `joins`, it is always one of its own.
    """
    outer = _group.get() if joins else None
    if outer is not None:
        outer.ids |= dict.fromkeys(ids)
        outer.step += 1
        yield outer
        outer.step += 1
        return
    group = Group(verb, by.get(), dict.fromkeys(ids), undoes)
    token = _group.set(group)
    try:
        yield group
        group.close()
    finally:
        _group.reset(token)
        group.end()


@contextmanager
def acting(
    surface: str, client: str = "", session: str = "", *, users: bool = False, author: str = ""
) -> Iterator[None]:
    """What is changed inside is changed by this surface, for this client and session; by the user's hand or not."""
    token = by.set(By(surface, client[:80], session[:80], users, author))
    try:
        yield
    finally:
        by.reset(token)


@contextmanager
def unattended() -> Iterator[None]:
    """What is written inside was found somewhere, and is not the user's word, whoever had it written."""
    token = by.set(by.get()._replace(users=False))
    try:
        yield
    finally:
        by.reset(token)


def step(id: str = "", action: str = "") -> None:
    """What is changed from here on belongs together; outside of a change, it means nothing."""
    if group := _group.get():
        group.begin(id, action)


def about(*ids: str) -> None:
    """The change that is being made is about these memories."""
    if group := _group.get():
        group.ids |= dict.fromkeys(ids)


@contextmanager
def paused() -> Iterator[None]:
    """Nothing that is written inside is recorded: what is removed for good leaves no trace here."""
    token = _paused.set(True)
    try:
        yield
    finally:
        _paused.reset(token)


# -- what `files` tells


def keep(places: Mapping[str, str], journal: Journal | None) -> None:
    """Record what is changed in these folders and files from now on, in this process; with None, nothing.

    Each comes with the name that the journal has for it.
    """
    for place, name in places.items():
        for path in {place, os.path.realpath(place)}:
            if journal is None:
                _kept.pop(path, None)
            else:
                _kept[path] = (journal, name)


def kept_by(path: str) -> tuple[Journal, str] | None:
    """The journal that a file's changes go to, and its name there."""
    if not _kept or _paused.get():
        return None
    path = path if path[:1] == "/" else os.path.abspath(path)
    end = len(path)
    while end > 0:
        if found := _kept.get(path[:end]):
            journal, name = found
            rest = path[end + 1 :]
            if rest == "indices" or rest.startswith("indices/") or "/indices/" in rest:
                return None
            return (journal, f"{name}/{rest}" if name and rest else name or rest) if journal.wanted else None
        end = path.rfind("/", 0, end)
    return None


def records(path: str) -> bool:
    """Whether a change to this file is recorded, so that its content has to be known."""
    return kept_by(path) is not None


@contextmanager
def writing(path: str, before: bytes | None, after: bytes | None) -> Iterator[None]:
    """A file gets this content inside, or is removed (None). Raises StorageError; then it must not be done."""
    known = kept_by(path)
    if known is None or before == after:
        yield
        return
    journal, name = known
    with journal.recorded(Row(name, WRITE, before, after, size=len(after or b""))):
        yield


@contextmanager
def moving(source: str, target: str, data: bytes) -> Iterator[None]:
    """A file with this content gets another name inside."""
    here, there = kept_by(source), kept_by(target)
    if here and there and here[0] is there[0]:
        journal, name, other = here[0], here[1], there[1]
        with journal.recorded(Row(name, OUT, data, other=other), Row(other, IN, None, data, 0, len(data), name)):
            yield
    else:
        with writing(source, data, None), writing(target, None, data):
            yield


@contextmanager
def appending(path: str, fd: int, at: int, data: bytes) -> Iterator[None]:
    """These bytes are written inside at the end of a log, which is open and has `at` bytes; one of none is new."""
    known = kept_by(path)
    if known is None:
        yield
        return
    journal, name = known
    row = Row(name, APPEND, None, data, at, at + len(data), "" if at else "new")
    with journal.recorded(row, base=lambda: _whole(fd, at)):
        yield


def _whole(fd: int, size: int) -> bytes:
    chunks = []
    start = 0
    while start < size and (chunk := os.pread(fd, min(size - start, 1 << 24), start)):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


@contextmanager
def cutting(path: str, at: int, data: bytes, *, gone: bool) -> Iterator[None]:
    """These bytes at the end of a log are taken off inside. `gone`: the file goes with them."""
    known = kept_by(path)
    if known is None:
        yield
        return
    journal, name = known
    with journal.recorded(Row(name, CUT, data, None, at, at, "new" if gone else "")):
        yield


# -- the journal of a bank


def of(folder: str, home: str, **options: Any) -> Journal:
    """The journal of the bank at `home`, the one that this process has already."""
    known = _kept.get(home)
    if known and known[0].folder == folder and known[0].home == home and known[0].wanted:
        return known[0]
    return Journal(folder, home, **options)


class Journal:
    """The journal of one bank. Its file is opened with the first change or question; threads may share it.

    `home` is the bank's folder without links; `commit_of` asks git for the first commit of a folder's repository;
    `beside` is the folder of another place of the bank, where files of this one lie.
    """

    def __init__(
        self,
        folder: str,
        home: str,
        commit_of: Callable[[str], str],
        max_bytes: int = 256 * 1024 * 1024,
        days: int = 0,
        beside: str = "",
    ) -> None:
        self.folder, self.home = folder, home
        self.absent = ""  # why there is no journal
        self.max_bytes, self.days, self.beside = max_bytes, days, beside
        self._commit_of = commit_of
        self._file: JournalFile | None = None
        self._made = 0  # how often the file was opened: a number counts only in the file that gave it
        self._lock = RLock()
        self._pid = 0
        self._again = 0.0

    @property
    def wanted(self) -> bool:
        """Whether it is of any use to tell it something. What was in the way may be gone after a while."""
        if self.absent and time.monotonic() > self._again:
            self.absent = ""
        return not self.absent

    @property
    def path(self) -> str:
        """The journal's file; "" when there is none."""
        return self._do(lambda file: file.path, "")

    def close(self) -> None:
        with self._lock:
            if self._file is not None and self._pid == os.getpid():
                self._file.close()
            self._file = None

    def _opened(self, *, make: bool = False) -> JournalFile | None:
        from memlane.disk import journal_file

        if self._file is not None and self._pid != os.getpid():
            journal_file.left.append(self._file)  # of the parent: closing it here would take its locks away
            self._file = None
        if self._file is None and not self.absent:
            self._file = journal_file.opened(self.folder, self.home, self._commit_of, make=make)
            self._pid = os.getpid()
            self._made += 1
            if self._file is not None:
                self._file.beside = self.beside
                _in_use(self)
        return self._file

    def _do(self, work: Callable[[JournalFile], T], otherwise: T, *, make: bool = False) -> T:
        """Do something with the open file. A damaged one is put aside first, once. Raises StorageError, Busy."""
        import sqlite3

        from memlane.disk import journal_errors

        with self._lock:
            for attempt in range(2):
                file = None
                try:
                    file = self._opened(make=make)
                    if file is not None:
                        return work(file)
                    return otherwise
                except (sqlite3.Error, OSError) as error:
                    if journal_errors.is_damage(error) and file is not None and not attempt:
                        self.close()
                        file.put_aside()
                    elif why := journal_errors.unwritable(error):
                        self.close()
                        self.absent, self._again = why, time.monotonic() + _AGAIN
                        return otherwise
                    else:
                        raise journal_errors.refusal(error) from error
            return otherwise

    # -- recording

    @contextmanager
    def recorded(self, *rows: Row, base: Callable[[], bytes] | None = None) -> Iterator[list[int]]:
        """The rows are on stable storage while the change is made; when it fails, they are taken out again. Of several
        changes, the caller may name those that failed (`retract`), by what this yields for each row.

        `base` reads the log that a row is appended to, where the journal does not know all of it.
        """
        group = _group.get() or Group(rows[0].kind, by.get(), {}, alone=True)
        noted: list[int] = []
        try:
            noted = self._do(lambda file: self._record(file, group, rows, base), [], make=True)
            yield noted
        except Exception:  # and not Ctrl-C, which may come when it is done
            self.retract(noted)
            raise
        finally:
            if group.alone:
                group.end()

    def retract(self, noted: Sequence[int]) -> None:
        """Take out rows of what did not happen, as well as that can be done."""
        if noted:
            with suppress(StorageError):
                self._do(lambda file: file.retract(noted), None)

    def _record(
        self, file: JournalFile, group: Group, rows: Sequence[Row], base: Callable[[], bytes] | None
    ) -> list[int]:
        known, held = group.numbers.get((self, self._made), 0), len(group.held)
        noted = []
        try:
            with file.transaction() as db:
                number = known or file.begin(db, group)
                for row in rows:
                    if base:
                        size, age = file.last_size(db, row.name)
                        if size > row.at and age < _SAME_TIME:  # somebody else's lines are on their way to the disk
                            row = row._replace(size=size + len(row.after or b""))
                        elif size != row.at:
                            seen = Row(row.name, SEEN, None, base(), 0, row.at)
                            noted.append(file.insert(db, number, group.step, seen))
                    noted.append(file.insert(db, number, group.step, row))
        except BaseException:
            group.end(keep=held)  # the number goes to somebody else
            raise
        group.numbers[self, self._made] = number
        return noted

    def finish(self, made: int, number: int, group: Group) -> None:
        """The change is complete. What cannot be noted of that is not worth failing for."""
        with suppress(StorageError):
            if made == self._made:
                self._do(lambda file: file.finish(number, group), None)
            if number % _EVERY == 0:
                self.prune()

    def prune(self) -> None:
        """Drop what is too old or too much; the newest version of every file stays. Raises StorageError."""
        self._do(lambda file: file.prune(self.max_bytes, self.days), None)

    # -- reading

    def changes(
        self, *, here: bool = False, since: int = 0, upto: int | None = None, limit: int | None = None
    ) -> list[Change]:
        """The changes that a file was changed by, the newest first: of all places of this bank, or made `here`."""
        return self._do(lambda file: file.changes(here=here, since=since, upto=upto, limit=limit), [])

    def over(self, since: int) -> int:
        """The number up to which all changes are over, well or not; `since` where the one after it is being made."""
        return self._do(lambda file: file.over(since), since)

    def reaches(self, since: int) -> bool:
        """Whether everything that was changed after the change of this number is still here."""
        return self._do(lambda file: file.reaches(since), False)

    def get(self, number: int) -> Change | None:
        return self._do(lambda file: file.get(number), None)

    def entries(self, number: int) -> list[Entry]:
        """What a change did, in its order."""
        return self._do(lambda file: file.entries_of(number), [])

    def text(self, hash: bytes | None) -> bytes | None:
        """A content; None when it is not kept any more."""
        return None if hash is None else self._do(lambda file: file.text(hash), None)

    def mark(self, number: int, undone: str) -> None:
        """Note that a change was taken back ("undone", "partly") or stands again ("")."""
        self._do(lambda file: file.mark(number, undone), None)

    def heads(self, place: str | None = None) -> dict[str, Entry]:
        """The last entry of every file that was changed here, or at another place of the bank."""
        return self._do(lambda file: file.heads(place or self.home), {})

    def latest(self, limit: int) -> list[tuple[Entry, str]]:
        """The last entries of the files that were changed here lately, each with the branch of that time."""
        none: list[tuple[Entry, str]] = []
        return self._do(lambda file: file.latest(limit), none)

    def places(self) -> list[str]:
        """The folders that the bank has or had."""
        return self._do(lambda file: file.places(), [])

    def said(self, about: str, now: str | None = None) -> str:
        """What was said last about something, "" for nothing; with `now`, that is what is said from then on."""
        return self._do(lambda file: file.said(about, now), "")

    def rows_of(self, names: Iterable[str], *, here: bool = False) -> list[Entry]:
        """Every entry of files of these names, the oldest first."""
        listed = list(names)
        return self._do(lambda file: file.rows_of(listed, here=here), [])

    def knows(self, name: str, hash: bytes | None, place: str) -> bool:
        """Whether a file had this content at some time, at this place."""
        return hash is not None and self._do(lambda file: file.knows(name, hash, place), False)

    def content(self, name: str, upto: int | None = None, place: str | None = None) -> bytes | None:
        """What a file was after its last entry, or after entry `upto`; None where there was no file."""
        return self._do(lambda file: content(file.rows_of([name], place=place, upto=upto), file.text), None)

    def move(self, home: str) -> None:
        """The bank was moved to another folder, whose journal this is now. Raises StorageError."""
        self._do(lambda file: file.move(home), None)
        self.close()

    # -- forgetting

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Every file's name with each content or piece of it that is kept."""
        none: list[tuple[str, bytes]] = []
        pairs = self._do(lambda file: file.pairs(), none)
        for name, hash in pairs:
            if (data := self.text(hash)) is not None:
                yield name, data

    def purge(self, without: Callable[[str, bytes], bytes | None], ids: Collection[str]) -> bool:
        """Put without(name, content) in the place of every content, None: drop it; and take out these ids.

        Nothing of what was there stays in the file. Whether that is certain: another program may be reading it.
        """
        return self._do(lambda file: file.purge(without, ids), True)

    def asides(self) -> list[str]:
        """The files of damaged journals of this bank that were put aside."""
        return self._do(lambda file: file.asides(), [])


def _in_use(journal: Journal) -> None:
    """Close the files of other banks that were opened long ago: a process may open many banks."""
    if journal in _open:
        _open.remove(journal)
    _open.append(journal)
    while len(_open) > _AT_ONCE:
        _open.pop(0).close()


def content(entries: Iterable[Entry], text: Callable[[bytes], bytes | None]) -> bytes | None:
    """What a file is after these entries of it, the oldest first."""
    found: bytes | None = None
    for entry in entries:
        if entry.kind == APPEND:
            found = (found or b"") + (text(entry.after or b"") or b"")
        elif entry.kind == CUT:
            cut = text(entry.before or b"") or b""
            found = (found or b"").removesuffix(cut)
            found = None if entry.other == "new" and not found else found
        elif entry.kind == SEEN:
            found = text(entry.after or b"")
        else:
            found = None if entry.after is None else text(entry.after)
    return found


def branch_of(home: str) -> str:
    """The branch that is checked out around a folder; the commit where none is; "" outside of git."""
    from memlane.disk import journal_place

    return journal_place.branch_of(home)


def hashed(data: bytes) -> bytes:
    """What a content is known by."""
    from memlane.core.digests import blake2b

    return blake2b(data, digest_size=16).digest()
