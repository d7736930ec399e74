"""A quick look at the index without opening it for search: no NumPy, nothing written, a few milliseconds.

Files that have changed since they were indexed are read from disk, so the answer is always what the files say. Without
an index of our own (see `seal`), or with a damaged one, all files are read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge, nlargest
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from memlane.core.errors import StorageError
from memlane.core.model import Memory, Problem
from memlane.index.rows import loaded, marks
from memlane.index.seal import IndexFile, reading
from memlane.lanes import Lane

T = TypeVar("T")
Changed = list[tuple[Lane, str, os.stat_result]]
_ROWS = (
    "SELECT m.file, m.digest, s.data FROM memories m JOIN shapes s ON s.n = m.n "
    "JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
_TAGGED = f"{_ROWS} WHERE m.n IN (SELECT memory FROM tags WHERE tag = ?)"  # noqa: S608 - fixed text
_NEWEST = f"{_ROWS} WHERE m.created IS NOT NULL AND m.status IS NOT 'archived' ORDER BY m.created DESC"
_LISTED = f"{_ROWS} ORDER BY m.created DESC, m.id"  # those without a date come last
_NAMES = (
    "SELECT m.file, m.lane, m.id, s.data ->> '$.title', s.data ->> '$.fields.topic_id' FROM memories m "
    "JOIN shapes s ON s.n = m.n JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
_DAMAGE = (sqlite3.Error, ValueError, StorageError)  # ValueError: a value that should be text is not


def difference(db: sqlite3.Connection, lanes: Iterable[Lane], names: Collection[str]) -> tuple[Changed, set[str]]:
    """The files of these lanes that are new or changed since they were indexed, and the indexed paths that are gone.

    `names` are the lanes to compare. It may name more than `lanes`: all files of a lane that no longer exists are gone.
    """
    query = f"SELECT path, size, mtime FROM files WHERE lane IN ({marks(names)})"  # noqa: S608 - marks
    known = {row[0]: row for row in db.execute(query, tuple(names))}
    changed: Changed = []
    stat, take = os.stat, known.pop
    for lane in lanes:
        for path in lane.files():
            if isinstance(path, Problem):
                continue
            try:
                info = stat(path)
            except OSError:
                continue
            row = take(path, None)
            if row is None or row[1] != info.st_size or row[2] != info.st_mtime_ns:
                changed.append((lane, path, info))
    return changed, set(known)


class Peek:
    """The memories of some lanes as they are on disk when it is made. Files and index are compared once.

    With `wait`, at most so many seconds are spent on files that are not indexed, the newest first.
    """

    def __init__(self, index: IndexFile, lanes: Sequence[Lane], wait: float | None = None) -> None:
        self._lanes, self._wait = {lane.name: lane for lane in lanes}, wait
        self._read_memories: list[Memory] | None = None
        self._db: sqlite3.Connection | None = None
        try:
            self._db = reading(index)
            changed, gone = difference(self._db, lanes, sorted(self._lanes))
        except _DAMAGE:  # no index, or one that the next search replaces
            self._give_up_index()
        else:
            self._unread = [(lane, path) for lane, path, _ in changed]
            self._outdated = gone | {path for _, path in self._unread}

    def __enter__(self) -> Peek:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def tagged(self, tag: str) -> list[Memory]:
        """The memories with this tag, by id."""
        memories = self._answer(
            lambda: [*self._indexed(_TAGGED, tag), *(memory for memory in self._read() if tag in memory.tags)]
        )
        return sorted({memory.id: memory for memory in memories}.values(), key=lambda memory: memory.id)

    def first(self, limit: int, fits: Callable[[Memory], bool]) -> list[Memory]:
        """The newest memories that fit, then by id; those without a date come last.

        The index finds them, and then their files are read: as JSON, a key that is a number would have become text.
        """

        def question() -> list[Memory]:
            newest_first = merge(self._indexed(_LISTED), sorted(self._read(), key=_list_order), key=_list_order)
            return list(islice(filter(fits, newest_first), max(limit, 0)))

        return [
            item
            for memory in self._answer(question)
            for item in self._lanes[memory.lane].parse(memory.file)
            if isinstance(item, Memory) and item.id == memory.id
        ]

    def names(self) -> list[tuple[str, str, str | None]]:
        """(id, title, topic of a vault's register) of every memory."""

        def question() -> list[tuple[str, str, str | None]]:
            rows = self._db.execute(_NAMES) if self._db else ()
            known = [row[2:] for row in rows if row[0] not in self._outdated and row[1] in self._lanes]
            return known + [(memory.id, memory.title, memory.fields.get("topic_id")) for memory in self._read()]

        return self._answer(question)

    def newest(self, limit: int) -> list[Memory]:
        """The newest memories that have a date and are not archived."""
        memories = self._answer(lambda: [*islice(self._indexed(_NEWEST), limit), *self._read()])
        dated = [
            (when, memory.id, memory)
            for memory in memories
            if (when := memory.created_at or memory.updated_at) and memory.status != "archived"
        ]
        return [memory for _, _, memory in nlargest(limit, dated, key=lambda item: item[:2])]

    def _answer(self, question: Callable[[], list[T]]) -> list[T]:
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
        self._unread = [(lane, path) for lane in self._lanes.values() for path in lane.files() if isinstance(path, str)]
        self._outdated = {path for _, path in self._unread}

    def _indexed(self, query: str, *values: Any) -> Iterator[Memory]:
        """What a query finds among the files that have not changed since they were indexed."""
        if self._db is None:
            return
        for file, known, data in self._db.execute(query, values):
            if file in self._outdated:
                continue
            memory = loaded(data, known)
            if memory.lane in self._lanes:
                yield memory

    def _read(self) -> list[Memory]:
        """The memories of the other files, which are read once."""
        if self._read_memories is None:
            self._read_memories = []
            end = None if self._wait is None else monotonic() + self._wait
            for lane, path in self._unread if end is None else sorted(self._unread, key=_mtime, reverse=True):
                if end is not None and monotonic() > end:
                    break
                self._read_memories += (item for item in lane.parse(path) if isinstance(item, Memory))
        return self._read_memories


def _mtime(file: tuple[Lane, str]) -> float:
    try:
        return os.stat(file[1]).st_mtime
    except OSError:
        return 0.0


def _list_order(memory: Memory) -> tuple[float, str]:
    """The sort key of a list: newest first, then by id, those without a date last."""
    when = memory.created_at or memory.updated_at
    return (-when.timestamp() if when else float("inf")), memory.id
