"""What a bank already says that is the same as a text, or much like it: the look before something is written.

The index finds candidates by words, straight from its file, without NumPy and without bringing it up to date; files
that it does not know yet are read, for a moment at most, and remembered while the bank is open. Then texts are compared
as they are on the disk. So a write never waits for an index, and what is missed is a remark, never a memory. Whoever
writes many memories lists the files once for all of them (`steady`), and tells of each (`note`).
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.disk.tombstones import plain
from memlane.disk.walking import Known
from memlane.gate.likeness import overlap, ratio, tokens
from memlane.index.peek import mark_of
from memlane.index.rows import loaded, marks
from memlane.index.seal import mark, reading
from memlane.recall.superseded import there

if TYPE_CHECKING:
    from memlane.bank import Bank

WAIT = 0.15  # seconds for files that are not indexed
WAIT_ONCE = 1.0  # the same, for many texts
TERMS = 16  # the rarest words of a text that are looked up
_POSTINGS = 100_000  # places of these words that are looked at, all those of the rarest among them
CANDIDATES = 30
SHARED, OF_ALL = 0.6, 0.4  # of the smaller text's words, and of the words of both: as much is common to two like texts
ALIKE = 0.8  # or their sequence ratio
_WORTH = 0.25  # of the words of both texts: with fewer in common the sequence ratio is not worth its time
_LONG = 4_000  # characters: beyond that only words are compared
_TOGETHER = 500  # files that the index is asked for at once
_DAMAGE = (sqlite3.Error, ValueError, TypeError, struct.error)
Unread = dict[str, Collection[str] | None]  # by path: of a file that was appended to, the ids of what has changed
Opened = tuple[sqlite3.Connection | None, Unread]
Compared = Callable[[str], tuple[float, bool] | None]  # of a text, how like it is and whether it is the same


class Like(NamedTuple):
    memory: Memory
    score: float
    same: bool


def look(bank: Bank, text: str, *, archived: bool = False) -> list[Like]:
    """What the bank says that is like a text, what is the same first. Bounded; writes nothing."""
    seen = _seen.setdefault(bank, _Seen())
    words, said = tokens(text), bare(text)
    compared = cache(lambda other: _compared(other, text, words, said))  # most are on the disk as they are indexed
    found: dict[str, Like] = {}
    for memory in seen.candidates(bank, text, words, compared):
        if memory.id not in found and compared(memory.text):
            now = there(bank, memory.id)  # as it is on the disk
            if now is None or (now.status == "archived" and not archived):
                continue
            if like := compared(now.text):
                found[now.id] = Like(now, *like)
    return sorted(found.values(), key=lambda like: (not like.same, like.memory.lane == "records", -like.score))


@contextmanager
def steady(bank: Bank) -> Iterator[None]:
    """While many texts are looked up, the files are listed once. What is written meanwhile must be told: `note`."""
    seen = _seen.setdefault(bank, _Seen())
    with seen.opened(bank, WAIT_ONCE) as seen.steady:
        try:
            yield
        finally:
            seen.steady = None


def note(bank: Bank, memory: Memory) -> None:
    """Let the next look know of a memory that was just written, while the files are not listed again."""
    _seen.setdefault(bank, _Seen()).take(memory.file, [memory])


def tagged(bank: Bank, *tags: str) -> list[Memory]:
    """The memories that have one of these tags, as far as they are known to a look; they may have changed since."""
    return list(_seen.setdefault(bank, _Seen()).tagged(bank, frozenset(tags)))


def bare(text: str) -> str:
    """A text as it is compared: without differences of white space, case, and the sign at its end."""
    return plain(text).casefold().rstrip(" .!")


def _compared(other: str, text: str, words: frozenset[str], said: str) -> tuple[float, bool] | None:
    """How like another text is to this one, and whether it is the same; None where it is not like it."""
    if bare(other) == said:
        return 1.0, True
    theirs = tokens(other)
    score = len(words & theirs) / max(len(words | theirs), 1)
    if overlap(words, theirs) >= SHARED and score >= OF_ALL:
        return score, False
    short, long = sorted((len(text), len(other)))
    worth = score >= _WORTH and long <= _LONG and 2 * short >= ALIKE * (short + long)
    if worth and (score := ratio(text, other)) >= ALIKE:
        return score, False
    return None


class _File(NamedTuple):
    """A file that is not in the index as it is: all of its memories, or those that have `changed` since it was."""

    state: tuple[int, int] | None
    memories: list[Memory]
    changed: Collection[str] | None


def _is_current(memory: Memory, unread: Unread) -> bool:
    """Whether a memory is as the index has it."""
    if memory.file not in unread:
        return True
    changed = unread[memory.file]
    return changed is not None and memory.id not in changed


class _Seen:
    """The memories of one bank's files that are not in its index, by word."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._indexed: tuple[tuple[int, ...], Known] = (), Known()  # a state of the index, and the files that it knows
        self._holders: defaultdict[str, set[str]] = defaultdict(set)  # paths of the files that have a word
        self.steady: Opened | None = None

    def candidates(self, bank: Bank, text: str, words: frozenset[str], is_like: Compared) -> Iterator[Memory]:
        if self.steady is not None:
            yield from self._found(*self.steady, text, words, is_like)
            return
        with self.opened(bank) as (db, unread):
            yield from self._found(db, unread, text, words, is_like)

    def tagged(self, bank: Bank, tags: frozenset[str]) -> Iterator[Memory]:
        with nullcontext(self.steady) if self.steady is not None else self.opened(bank) as (db, unread):
            for path in sorted(unread.keys() & self._files.keys()):
                yield from (memory for memory in self._files[path].memories if not tags.isdisjoint(memory.tags))
            if db is not None:
                with suppress(*_DAMAGE):
                    rows = db.execute(f"{_TAGGED} ({marks(tags)}))", tuple(tags))
                    found = (loaded(data, digest) for data, digest in rows)
                    yield from (memory for memory in found if _is_current(memory, unread))

    @contextmanager
    def opened(self, bank: Bank, wait: float = WAIT) -> Iterator[Opened]:
        """The index, if it can be read, and the paths of the files that it does not know as they are."""
        end = monotonic() + wait
        try:
            db = reading(bank.index_file, timeout=WAIT)
        except (sqlite3.Error, MemlaneError, ValueError):
            db = None
        try:
            try:
                unread = self._read(bank, db, end)
            except _DAMAGE:  # the next search mends it
                unread = self._read(bank, None, end)
            yield db, unread
        finally:
            if db is not None:
                db.close()

    def _found(
        self, db: sqlite3.Connection | None, unread: Unread, text: str, words: frozenset[str], is_like: Compared
    ) -> Iterator[Memory]:
        yield from self._of_files(words, unread)
        if db is not None:
            with suppress(*_DAMAGE):
                yield from (memory for memory in _of_index(db, text, is_like) if _is_current(memory, unread))

    def _known(self, db: sqlite3.Connection | None) -> Known:
        """The files that the index knows: all of them at first, then with those that are found to be in it, for as long
        as it has let go of none.
        """
        from memlane.index.database import get_meta

        if db is None:
            return Known()
        state = (*mark(db), int(get_meta(db, "forgotten", 0)))
        as_of, known = self._indexed
        if as_of != state:
            known = Known()
            for (path,) in db.execute("SELECT path FROM files"):
                known.put(str(path))
            self._indexed = state, known
        return known

    def _read(self, bank: Bank, db: sqlite3.Connection | None, end: float) -> Unread:
        """Read the files that the index does not know, until the time is over; return their paths."""
        unread: Unread = {}
        known = self._known(db)
        for lane in bank.present():
            shared = lane.answers.shares_files
            listed = lane.files() if shared else lane.answers.files_without(known)
            paths = [path for path in listed if isinstance(path, str)]
            indexed = _indexed_files(db, paths) if db else {}
            for path in paths:
                if path in indexed and not shared:
                    known.put(path)  # one that was changed by hand is compared as it is now, if it is found
                    continue
                state = _state(path) if shared or path not in self._files else self._files[path].state
                if state is None or indexed.get(path) == state:
                    continue
                if (path not in self._files or self._files[path].state != state) and monotonic() < end:
                    read = lane.answers.read(path, mark_of(db, path) if db else "")
                    memories = list(read.memories)
                    changed = None if read.gone is None else {*read.gone, *(memory.id for memory in memories)}
                    self.take(path, memories, state, changed)
                unread[path] = self._files[path].changed if path in self._files else None
        return unread

    def take(
        self,
        path: str,
        memories: list[Memory],
        state: tuple[int, int] | None = None,
        changed: Collection[str] | None = None,
    ) -> None:
        self._files[path] = _File(state or _state(path), memories, changed)
        if self.steady is not None:
            self.steady[1][path] = changed
        for word in {word for memory in memories for word in tokens(memory.text)}:
            self._holders[word].add(path)

    def _of_files(self, words: frozenset[str], unread: Unread) -> Iterator[Memory]:
        shared = Counter(path for word in words for path in self._holders.get(word, ()) if path in unread)
        for path, _ in shared.most_common(CANDIDATES):
            for memory in self._files[path].memories:
                if 2 * len(words & tokens(memory.text)) >= len(words):
                    yield memory


_seen: WeakKeyDictionary[Bank, _Seen] = WeakKeyDictionary()


def _state(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_size, info.st_mtime_ns


def _indexed_files(db: sqlite3.Connection, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(paths), _TOGETHER):
        some = paths[start : start + _TOGETHER]
        query = f"SELECT path, size, mtime FROM files WHERE path IN ({marks(some)})"  # noqa: S608 - marks
        found |= {path: (size, mtime) for path, size, mtime in db.execute(query, some)}
    return found


_TEXTS = "SELECT n, data ->> 'text' FROM shapes WHERE n IN (SELECT memory FROM chunks WHERE n IN"
_SHAPES = "SELECT s.data, m.digest FROM memories m JOIN shapes s ON s.n = m.n WHERE m.n IN"
_TAGGED = (
    "SELECT s.data, m.digest FROM memories m JOIN shapes s ON s.n = m.n "
    "WHERE m.n IN (SELECT memory FROM tags WHERE tag IN"
)


def _of_index(db: sqlite3.Connection, text: str, is_like: Compared) -> Iterator[Memory]:
    """The memories that are like a text, of those that share most of its rarest words."""
    from memlane.index.database import BLOCK
    from memlane.index.words import query_terms

    terms = query_terms(text)
    sizes = f"SELECT sum(length(data)) / 3, term FROM postings WHERE term IN ({marks(terms)}) GROUP BY term"  # noqa: S608
    chunks: Counter[int] = Counter()
    looked_at = 0
    for size, term in sorted(db.execute(sizes, terms))[:TERMS]:
        if looked_at and looked_at + size > _POSTINGS:
            break
        looked_at += size
        for block, data in db.execute("SELECT block, data FROM postings WHERE term = ?", (term,)):
            chunks.update(block * BLOCK + at for at, _ in struct.iter_unpack("<HB", data))
    numbers = [number for number, _ in chunks.most_common(CANDIDATES)]
    texts = db.execute(f"{_TEXTS} ({marks(numbers)}))", numbers)
    alike = [n for n, other in texts if is_like(str(other))]  # few: the others are not even loaded
    for data, digest in db.execute(f"{_SHAPES} ({marks(alike)})", alike) if alike else ():
        yield loaded(data, digest)
