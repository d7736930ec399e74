"""A quick look at the index without opening it for search: no NumPy, nothing written, a few milliseconds.

Files that have changed since they were indexed are read from disk, so the answer is always what the files say. Without
an index of our own (see `seal`), or with a damaged one, all files are read.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from heapq import merge
from itertools import islice
from time import monotonic, time_ns
from typing import Any, TypeVar

from memlane.core.choosing import Filter, Fits, list_order
from memlane.core.digests import blake2b
from memlane.core.errors import StorageError
from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.disk import files, rooted
from memlane.disk.walking import Stamp, Stamps, folder_state, is_settled
from memlane.index import fields, kept_look
from memlane.index.rows import in_thread, loaded, marks, shape
from memlane.index.seal import IndexFile, reading
from memlane.lanes import Lane, Worth, by_worth

T = TypeVar("T")
Row = tuple[int, float | None, str, bytes, str, str]  # of a memory: number, date, id, digest of the JSON, JSON, file
Changed = list[tuple[Lane, str, Stamp]]
Settled = list[tuple[Stamp, str, Stamp]]  # a stamp that lasts, the unchanged file, and the stamp that it had when young
_FEW = 200  # files and folders with changes: more are better compared with everything
_ARCHIVE = ".archive"  # the one hidden folder that a lane reads: that of archived records
_YOUNG = -1  # in place of a ctime: no file has one below 0
_ROWS = (
    "SELECT m.file, m.digest, s.data FROM memories m JOIN shapes s ON s.n = m.n "
    "JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
_NUMBERED = _ROWS.replace("s.data", "m.n", 1)  # to be sorted: all the texts of a bank may not fit into the memory
_HEADS = _ROWS.replace("m.file, m.digest, s.data", "m.n, m.created, m.id, m.digest, s.data, m.file", 1)
NAMES = (
    "SELECT m.id, s.data ->> '$.title', s.data ->> '$.fields.topic_id', m.file, m.lane FROM memories m "
    "JOIN shapes s ON s.n = m.n JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
_WITH_TAGS = (
    "SELECT t.memory, m.created, m.id, t.tag FROM tags t JOIN memories m ON m.n = t.memory "
    "WHERE t.tag IN (SELECT value FROM json_each(?)) AND m.lane IN ({})"
)
_IN_FOLDER = (
    "SELECT path, lane FROM files WHERE path > ? AND path < ? AND NOT instr(substr(path, ?), '/')"  # "0" is next
)
_ODD = ("\u0130", "\u212a")  # letters outside ASCII that have one of ASCII as their small letter
_MANY = 50  # words that a query is narrowed by, at most
_DAMAGE = (sqlite3.Error, ValueError, StorageError)  # ValueError: a value that should be text is not


def look(path: str) -> Stamp:
    """The lasting stamp of a file that is read after this. Raises OSError."""
    looked = time_ns()
    info = os.stat(path)
    return lasting((info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino), looked)


def lasting(of: Stamp, looked: int) -> Stamp:
    """The stamp to remember of a file that is read after this look at it, by time.time_ns().

    One that was changed just before may change again without its times showing it: it gets a stamp that no file has, so
    that it is looked at again later.
    """
    size, changed, became, number = of
    return of if is_settled(became, looked) else (size, changed, _YOUNG, number)


def with_content(kept: Stamp, path: str) -> Stamp:
    """A stamp to be stored. That of a young file stands for its content, in place of its ctime: a number below 0.

    To be asked before the file is read, so that a change in between makes it another one.
    """
    size, changed, became, number = kept
    if became != _YOUNG:
        return kept
    try:
        content = files.read_bytes(path)
    except (OSError, StorageError):
        return kept
    return size, changed, _YOUNG - 1 - (int.from_bytes(blake2b(content, digest_size=7).digest())), number


def mark_of(db: sqlite3.Connection, path: str) -> str:
    """What a file was when it was indexed, so that it can be told what was appended since; "" for most."""
    row = db.execute("SELECT mark FROM files WHERE path = ?", (path,)).fetchone()
    return str(row[0]) if row else ""


def is_young(kept: Stamp) -> bool:
    """Whether the file has to be looked at again, for it was changed just before."""
    return kept[2] < 0


def difference(db: sqlite3.Connection, lanes: Iterable[Lane], names: Collection[str]) -> tuple[Changed, set[str]]:
    """The files of these lanes that are new or changed since they were indexed, and the indexed paths that are gone.

    `names` are the lanes to compare. It may name more than `lanes`: all files of a lane that no longer exists are gone.
    """
    found = compared(db, lanes, names)
    return found.changed, found.gone


class Compared(NamedTuple):
    """The disk beside the index."""

    changed: Changed
    gone: set[str]
    settled: Settled
    stamps: dict[str, Stamp]  # of every file, as it was when it was compared


def compared(db: sqlite3.Connection, lanes: Iterable[Lane], names: Collection[str]) -> Compared:
    """As `difference`, with stamps."""
    query = f"SELECT path, size, mtime, ctime, inode FROM files WHERE lane IN ({marks(names)})"  # noqa: S608 - marks
    known = {path: (size, mtime, ctime, inode) for path, size, mtime, ctime, inode in db.execute(query, tuple(names))}
    return _beside(known, ((lane, path) for lane in lanes for path in lane.files() if isinstance(path, str)))


def _beside(known: dict[str, Stamp], found: Iterable[tuple[Lane, str]]) -> Compared:
    """The files that were found, beside what is known of them; all that is known and not found is gone."""
    changed: Changed = []
    settled: Settled = []
    stamps: dict[str, Stamp] = {}
    stat = os.stat
    looked = time_ns()
    for lane, path in found:
        try:
            info = stat(path)
        except OSError:
            continue
        now = info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino
        before = known.pop(path, None)
        if before == now:  # nearly all; what is indexed with the time of its last change is not young
            stamps[path] = now
            continue
        stamps[path] = kept = lasting(now, looked)
        if before is not None and is_young(before) and with_content((*now[:2], _YOUNG, now[3]), path) == before:
            if not is_young(kept):
                settled.append((kept, path, before))
            continue
        changed.append((lane, path, kept))
    return Compared(changed, set(known), settled, stamps)


class News(NamedTuple):
    """Folders and files that are not as they were; where nothing but what was `told` of was looked at, these files."""

    folders: list[str]
    files: list[str]
    told: Collection[str] | None = None


class Seen(NamedTuple):
    """What the disk was like at a look: every file, and every folder that can get one.

    A file that is made, deleted or renamed changes its folder; one that is written changes itself. So two looks that
    find the same stamps find the same files, and the second need not list a folder: a few milliseconds for thousands.
    """

    roots: tuple[str, ...]
    folders: dict[str, tuple[int, int]]
    files: dict[str, Stamps]  # by folder

    @property
    def size(self) -> int:
        """How many files there are."""
        return sum(map(len, self.files.values()))

    def are_roots(self, lanes: Iterable[Lane]) -> bool:
        """Whether the lanes are where they were."""
        return self.roots == _roots(lanes)

    def news(self, lanes: Iterable[Lane]) -> News | None:
        """What has changed since; None where that is so much that everything is better compared."""
        return self._news() if self.are_roots(lanes) else None

    def _news(self) -> News | None:
        folders, found = [], list[str]()
        try:
            for path, state in self.folders.items():
                info = os.stat(path)
                if (info.st_ino, info.st_ctime_ns) != state:
                    folders.append(path)
            for folder, kept in self.files.items():
                found += (f"{folder}/{name}" for name in kept.altered(folder))
                if len(found) > _FEW:
                    return None
        except OSError:
            return None
        return News(folders, found) if len(folders) + len(found) <= _FEW else None

    def news_of(self, told: Collection[str]) -> News | None:
        """The same of some files alone, and of their folders."""
        if len(told) > _FEW:
            return None
        folders = {path: self.folders[path] for path in map(os.path.dirname, told) if path in self.folders}
        some = Seen(self.roots, folders, by_folder({path: stamp for path in told if (stamp := self.stamp(path))}))
        news = some._news()
        return news and news._replace(told=told)

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a file; None for one that was not there."""
        folder, _, name = path.rpartition("/")
        return self.files[folder].known.get(name) if folder in self.files else None

    def of(self, lanes: Sequence[Lane]) -> Seen | None:
        """The part of it that some lanes have; None where it does not know them.

        A lane may lie in the folder of another, and be a file there: what is inside the nearest root is that lane's.
        """
        wanted = _roots(lanes)
        if wanted == self.roots:
            return self
        if not {*wanted} <= {*self.roots}:
            return None
        own = {folder for folder in {*self.folders, *self.files} if _nearest(folder, self.roots) in wanted}
        some = {folder: stamps for folder, stamps in self.files.items() if folder in own}
        for root in self.roots:  # those that are a file
            folder, name = os.path.split(root)
            if folder in self.files and name in self.files[folder] and (root in wanted) != (folder in own):
                if root in wanted:
                    some.setdefault(folder, Stamps({})).known[name] = self.files[folder].known[name]
                else:
                    some[folder] = some[folder].without(name)
        return self._replace(folders={folder: self.folders[folder] for folder in own & self.folders.keys()}, files=some)


def by_folder(stamps: Mapping[str, Stamp]) -> dict[str, Stamps]:
    """Stamps by path, as `Seen` has them."""
    found: dict[str, dict[str, Stamp]] = {}
    for path, stamp in stamps.items():
        folder, _, name = path.rpartition("/")
        if folder not in found:
            found[folder] = {}
        found[folder][name] = stamp
    return {folder: Stamps(known) for folder, known in found.items()}


def _nearest(folder: str, roots: Iterable[str]) -> str:
    """Which of these a folder is inside of, or is itself: the innermost; "" for none."""
    return max((root for root in roots if f"{folder}/".startswith(f"{root}/")), key=len, default="")


def kept_from(index: IndexFile, db: sqlite3.Connection, lanes: Sequence[Lane]) -> Seen | None:
    """What an earlier process saw of these lanes, if the index still has all of it; None where nobody knows."""
    kept = kept_look.load(index, db)
    return Seen(*kept).of(lanes) if kept else None


def compared_since(seen: Seen, news: News, db: sqlite3.Connection, lanes: Sequence[Lane]) -> Compared | None:
    """As `compared`, by what has changed since a look; None where everything must be compared.

    Only the folders with changes are listed. That tells of all of them, but for folders that have come or gone, and for
    a lane that cannot tell its files by looking into one folder. `seen` becomes what the disk is like now. What others
    have indexed or taken out since, and what we have noted ourselves, only the index knows.

    Where files were told of, these alone are looked at, and their folder stays one with changes until the next look.
    """
    found: dict[str, Lane] = {}
    before: set[str] = set()
    indexed: set[str] = set()
    for root in {*news.files}.intersection(seen.roots):  # a lane that is one file
        lane = next(lane for lane in lanes if os.fspath(lane.root) == root)
        found |= {path: lane for path in lane.files() if isinstance(path, str)}
        before.add(root)
        indexed.add(root)
    for folder in {*news.folders, *map(os.path.dirname, {*news.files} - before)}:
        try:
            state = folder_state(folder)
        except OSError:
            return None
        query, values = _IN_FOLDER, [f"{folder}/", f"{folder}0", len(folder) + 2]
        some, names = None, None
        if news.told is not None:
            some = {path for path in news.told if os.path.dirname(path) == folder and path not in seen.roots}
            names = {*map(os.path.basename, some)}
            query, values = f"SELECT path, lane FROM files WHERE path IN ({marks(some)})", [*some]  # noqa: S608 - marks
        rows = db.execute(query, values).fetchall()  # before it is listed
        listings = ((lane, lane.answers.files_in(folder, names)) for lane in lanes)
        owner, listed = next((one for one in listings if one[1] is not None), (None, None))
        if owner is None or listed is None:
            return None
        if some is None:
            inner = {path for path in seen.folders if os.path.dirname(path) == folder and path not in seen.roots}
            if {*listed[1]} != {path for path in inner if not path.endswith((".md", f"/{_ARCHIVE}"))}:
                return None
            known_names = seen.files[folder].known if folder in seen.files else ()
            some = {f"{folder}/{name}" for name in known_names}.difference(seen.roots)
            seen.folders[folder] = state
        found |= dict.fromkeys(listed[0], owner)
        before.update(filter(seen.stamp, some))
        indexed |= {path for path, lane in rows if lane == owner.name}
    sure = (before & indexed).difference(news.files)
    unsure = [path for path in found if path not in sure]
    missing = (before | indexed) - found.keys()
    if len(unsure) + len(missing) > _FEW:
        return None
    paths = [*unsure, *missing]
    query = f"SELECT path, size, mtime, ctime, inode FROM files WHERE path IN ({marks(paths)})"  # noqa: S608 - marks
    known = {path: (size, mtime, ctime, inode) for path, size, mtime, ctime, inode in db.execute(query, paths)}
    now = _beside(known, ((found[path], path) for path in unsure))
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder in seen.files:
            seen.files[folder].known.pop(name, None)
    for folder, stamps in by_folder(now.stamps).items():
        seen.files.setdefault(folder, Stamps({})).known.update(stamps.known)
    return now


def folders_of(lanes: Iterable[Lane]) -> dict[str, tuple[int, int]]:
    """The folders of these lanes, each with its state; to be asked before the files are compared."""
    found = {}
    for root in _roots(lanes):
        inside = [*rooted.folders(root, ("indices",)), f"{root}/{_ARCHIVE}"] if os.path.isdir(root) else []
        for folder in inside or [os.path.dirname(root)]:
            with suppress(OSError):
                found[folder] = folder_state(folder)
    return found


def _roots(lanes: Iterable[Lane]) -> tuple[str, ...]:
    return tuple(os.fspath(lane.root) for lane in lanes)


def count_tagged(index: IndexFile, tag: str) -> int | None:
    """How many memories had a tag when the bank was last indexed, without archived ones; None without an index.

    No file is looked at: the quickest answer there is, and a little behind.
    """
    query = (
        "SELECT count(DISTINCT m.n) FROM tags t JOIN memories m ON m.n = t.memory "
        "WHERE t.tag = ? AND m.status IS NOT 'archived'"
    )
    try:
        with closing(reading(index)) as db:
            return int(db.execute(query, (tag,)).fetchone()[0])
    except _DAMAGE:
        return None


def _difference(index: IndexFile, db: sqlite3.Connection, lanes: Sequence[Lane]) -> tuple[Changed, set[str]]:
    """As `difference`: by what an earlier process saw, if that can be."""
    seen = kept_from(index, db, lanes)
    news = seen and seen._news()
    if seen and news:
        found = compared_since(seen, news, db, lanes) if news.folders or news.files else Compared([], set(), [], {})
        if found:
            return found.changed, found.gone
    return difference(db, lanes, [lane.name for lane in lanes])


class Peek:
    """The memories of some lanes as they are on disk when it is made. Files and index are compared once.

    With `wait`, at most so many seconds are spent on files that are not indexed, the newest first.
    """

    def __init__(self, index: IndexFile, lanes: Sequence[Lane], wait: float | None = None) -> None:
        self._lanes, self._wait = {lane.name: lane for lane in lanes}, wait
        self._read_memories: list[Memory] | None = None
        self._unread: list[tuple[Lane, str]] = []
        self._newer: dict[str, Memory | None] = {}  # by id, of files that were appended to; None for what is gone
        self._db: sqlite3.Connection | None = None
        try:
            self._db = reading(index)
            changed, gone = _difference(index, self._db, lanes)
            for lane, path, _ in changed:
                mark = mark_of(self._db, path)
                if mark and (read := lane.answers.read(path, mark)).gone is not None:
                    self._newer |= {**dict.fromkeys(read.gone), **{memory.id: memory for memory in read.memories}}
                else:
                    self._unread.append((lane, path))
        except _DAMAGE:  # no index, or one that the next search replaces
            self._give_up_index()
        else:
            self._outdated = gone | {path for _, path in self._unread}

    def __enter__(self) -> Peek:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def tagged(self, *tags: str) -> list[Memory]:
        """The memories with one of these tags, by id."""
        query = f"{_ROWS} WHERE m.n IN (SELECT memory FROM tags WHERE tag IN ({marks(tags)}))"  # noqa: S608 - marks
        wanted = {*tags}
        memories = self.answer(
            lambda: [*self._indexed(query, *tags), *(memory for memory in self.read() if wanted & {*memory.tags})]
        )
        return sorted({memory.id: memory for memory in memories}.values(), key=lambda memory: memory.id)

    def holding(self, texts: Collection[str]) -> list[Memory]:
        """The memories with one of these texts anywhere in them, where JSON writes it as it is."""

        def has(data: str) -> bool:
            return any(text in data for text in texts)

        query = f"{_ROWS} WHERE m.lane IN ({marks(self._lanes)})"
        return self.answer(
            lambda: [
                *self._indexed(query, *self._lanes, fits=has),
                *(memory for memory in self.read() if has(shape(memory)[0])),
            ]
        )

    def with_moments(self) -> list[Memory]:
        """The memories that say when they apply. The table has an index for this very question, word for word."""
        query = f"{_ROWS} WHERE instr(s.data, '\"when\": ')"
        found = self.answer(lambda: [*self._indexed(query), *(memory for memory in self.read() if memory.fields)])
        return [memory for memory in found if "when" in memory.fields]

    def first(
        self, fits: Fits, words: Collection[str] = (), limit: int | None = None, among: Filter | None = None
    ) -> list[Memory]:
        """The memories that fit; with a limit the newest, then by id, those without a date last.

        `words` are in small letters: what has none of them anywhere may be left out, and so may what is not `among`
        those that a filter lets pass.
        """
        clauses, values = [f"m.lane IN ({marks(self._lanes)})"], list[Any](self._lanes)
        if words and len(words) <= _MANY and all(word.isascii() for word in words):
            having = ["instr(lower(s.data), ?)"] * len(words) + ["instr(s.data, ?)"] * len(_ODD)
            clauses.append(f"({' OR '.join(having)})")
            values += (*words, *_ODD)
        for clause, wanted in _conditions(among) if among else ():
            clauses.append(clause)
            values += wanted
        where = f" WHERE {' AND '.join(clauses)}"

        def question() -> list[Memory]:
            if limit is None:
                return [*filter(fits, self._indexed(f"{_ROWS}{where}", *values)), *filter(fits, self.read())]
            indexed = self._indexed(f"{_NUMBERED}{where} ORDER BY m.created DESC, m.id", *values)
            newest_first = merge(indexed, sorted(self.read(), key=list_order), key=list_order)
            return list(islice(filter(fits, newest_first), max(limit, 0)))

        return self.answer(question)

    def rows(self, among: Filter) -> Iterable[Row]:
        """The rows of the memories that may be among those that a filter lets pass, but for what `read` has. Unread:
        whether one is what was written, `loaded` tells.
        """
        clauses, values = [f"m.lane IN ({marks(self._lanes)})"], list[Any](self._lanes)
        for clause, wanted in _conditions(among):
            clauses.append(clause)
            values += wanted
        query = f"{_HEADS} WHERE {' AND '.join(clauses)}"
        rows = self._db.execute(query, values) if self._db else ()
        if not self._outdated and not self._newer:  # a generator takes a tenth of the time that a row takes
            return rows
        return (row for row in rows if row[-1] not in self._outdated and row[2] not in self._newer)

    def ending(self) -> set[int]:
        """The numbers of the rows of memories that end to count at a time, or have."""
        return {n for (n,) in self._db.execute("SELECT memory FROM expiring")} if self._db else set()

    def numbered(self, numbers: Sequence[int]) -> dict[str, Memory]:
        """The memories of rows, by id; without those that are gone by now."""
        query = f"{_ROWS} WHERE m.n IN ({marks(numbers)})"
        return {memory.id: memory for memory in self._indexed(query, *numbers)}

    def worth_most(self, fits: Fits, worth: Worth, limit: int | None = None) -> list[Memory]:
        """The memories that fit and whose tags are worth something, most first, then the newest, then by id."""

        def question() -> list[Memory]:
            rows = self._db.execute("SELECT DISTINCT tag FROM tags") if self._db else ()
            tags = json.dumps([tag for (tag,) in rows if worth((tag,))])
            found: dict[tuple[float, str, int], list[str]] = {}
            for n, created, id, tag in (
                self._db.execute(_WITH_TAGS.format(marks(self._lanes)), (tags, *self._lanes)) if self._db else ()
            ):
                found.setdefault((float("inf") if created is None else -created, id, n), []).append(tag)
            ranked = sorted((-worth(own), *place) for place, own in found.items())
            numbered = (self._indexed(f"{_ROWS} WHERE m.n = ?", n) for *_, n in ranked)
            indexed = (memory for memories in numbered for memory in memories if fits(memory))
            best = islice(indexed, None if limit is None else max(limit, 0))
            return by_worth([*best, *filter(fits, self.read())], worth)[:limit]

        return self.answer(question)

    def names(self) -> list[tuple[str, str, str | None]]:
        """(id, title, topic of a vault's register) of every memory."""

        def question() -> list[tuple[str, str, str | None]]:
            rows = self._db.execute(NAMES) if self._db else ()
            known = [
                (id, title, topic)
                for id, title, topic, file, lane in rows
                if file not in self._outdated and lane in self._lanes and id not in self._newer
            ]
            return known + [(memory.id, memory.title, memory.fields.get("topic_id")) for memory in self.read()]

        return self.answer(question)

    def scopes(self) -> set[tuple[str, str]]:
        """(lane, scope) of every memory that has a scope."""

        def question() -> set[tuple[str, str]]:
            known = {(memory.lane, memory.scope) for memory in self.read() if memory.scope}
            if self._db is not None:
                query = f"SELECT DISTINCT file, lane, scope FROM memories WHERE id NOT IN ({marks(self._newer)})"  # noqa: S608
                for file, lane, scope in self._db.execute(query, tuple(self._newer)):
                    if scope and lane in self._lanes and file not in self._outdated:
                        known.add((lane, scope))
            return known

        return self.answer(question)

    @property
    def unread(self) -> int:
        """How many files are read because the index does not know them as they are."""
        return len(self._unread)

    def answer(self, question: Callable[[], T]) -> T:
        """The answer to a question; where the index turns out to be damaged, from the files alone."""
        try:
            return question()
        except _DAMAGE:
            if self._db is None:
                raise
            self._give_up_index()
            return question()

    def _give_up_index(self) -> None:
        self.close()
        self._read_memories = None
        self._newer = {}
        self._unread = [(lane, path) for lane in self._lanes.values() for path in lane.files() if isinstance(path, str)]
        self._outdated = {path for _, path in self._unread}

    def _indexed(self, query: str, *values: Any, fits: Callable[[str], bool] | None = None) -> Iterator[Memory]:
        """What a query finds among the files that have not changed since they were indexed, and `fits` of its JSON."""
        if self._db is None:
            return
        for file, known, data in self._db.execute(query, values):
            if file in self._outdated:
                continue
            if isinstance(data, int):
                row = self._db.execute("SELECT data FROM shapes WHERE n = ?", (data,)).fetchone()
                data = str(row[0]) if row else ""
            if fits and not fits(data):
                continue
            memory = loaded(data, known)
            if memory.lane in self._lanes and memory.id not in self._newer:
                yield memory

    def read(self) -> list[Memory]:
        """The memories of the other files, which are read once."""
        if self._read_memories is None:
            self._read_memories = [memory for memory in self._newer.values() if memory]
            end = None if self._wait is None else monotonic() + self._wait
            for lane, path in self._unread if end is None else sorted(self._unread, key=_mtime, reverse=True):
                if end is not None and monotonic() > end:
                    break
                self._read_memories += (item for item in lane.parse(path) if isinstance(item, Memory))
        return self._read_memories


def _conditions(among: Filter) -> Iterator[tuple[str, Sequence[Any]]]:
    """Conditions on the table of memories that whatever passes a filter fulfils, each with its values."""
    if not among.archived:
        yield "m.status IS NOT 'archived'", ()
    if among.tags:
        yield f"m.n IN (SELECT memory FROM tags WHERE tag IN ({marks(among.tags)}))", sorted(among.tags)  # noqa: S608
    for name, value in among.equal:
        if name in ("type", "status", "scope", "project"):
            yield f"m.{name} = ?", (value,)
        elif name == "thread":
            yield "m.thread = ?", (in_thread(value),)
    if among.first:
        yield "m.created >= ?", (among.first.timestamp() - 1,)  # a moment more: the filter itself is exact
    if among.last:
        yield "m.created <= ?", (among.last.timestamp() + 1,)
    yield from fields.clauses(among.where, "m.n")


def _mtime(file: tuple[Lane, str]) -> float:
    try:
        return os.stat(file[1]).st_mtime
    except OSError:
        return 0.0
