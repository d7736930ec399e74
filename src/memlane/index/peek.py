"""A look at the index without opening it for search: no NumPy, nothing written, some milliseconds.

What has changed on disk since it was indexed is read from the disk, so that the answer is always that of the files;
without an index, or where it turns out damaged, everything is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge, nlargest
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from memlane.core.model import Memory, Problem
from memlane.index.database import marks
from memlane.index.rows import digest, loaded
from memlane.lanes import Lane

Changed = list[tuple[Lane, str, os.stat_result]]
_ROWS = "SELECT m.file, m.digest, s.data FROM memories m JOIN shapes s ON s.n = m.n"
_TAGGED = f"{_ROWS} WHERE m.n IN (SELECT memory FROM tags WHERE tag = ?)"  # noqa: S608 - fixed text
_NEWEST = f"{_ROWS} WHERE m.created IS NOT NULL AND m.status IS NOT 'archived' ORDER BY m.created DESC"
_LISTED = f"{_ROWS} ORDER BY m.created DESC, m.id"  # those without a date come last
_DAMAGE = (sqlite3.Error, ValueError)  # ValueError: what should be text is not


def difference(db: sqlite3.Connection, lanes: Iterable[Lane], names: Collection[str]) -> tuple[Changed, set[str]]:
    """The files of these lanes that are not in the index as they are, and those in it that are gone.

    `names` are the lanes that the index is asked for: those that are there, and those that are not any more.
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


class Look:
    """The memories of some lanes as they are on disk when it is made. Files and index are compared once.

    With `wait`, no more than so many seconds are spent on files that are not indexed, the newest first.
    """

    def __init__(self, index: Path, lanes: Sequence[Lane], wait: float | None = None) -> None:
        self._lanes, self._wait = lanes, wait
        self._found: list[Memory] | None = None
        self._names = {lane.name for lane in lanes}
        self._db: sqlite3.Connection | None = None
        try:
            self._db = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
            changed, gone = difference(self._db, lanes, sorted(self._names))
        except _DAMAGE:  # no index, or one that the next search makes anew
            self._do_without()
        else:
            self._unread = [(lane, path) for lane, path, _ in changed]
            self._outdated = gone | {path for _, path in self._unread}

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def tagged(self, tag: str) -> list[Memory]:
        """The memories with this tag, by id."""
        found = self._asked(
            lambda: [*self._indexed(_TAGGED, tag), *(memory for memory in self._read() if tag in memory.tags)]
        )
        return sorted({memory.id: memory for memory in found}.values(), key=lambda memory: memory.id)

    def first(self, limit: int, wanted: Callable[[Memory], bool]) -> list[Memory]:
        """The newest memories that are wanted, then by id; those without a date come last.

        The index finds them, and their files are read: it keeps a memory as JSON, where a number that is a key is text.
        """

        def question() -> list[Memory]:
            together = merge(self._indexed(_LISTED), sorted(self._read(), key=_place), key=_place)
            return list(islice(filter(wanted, together), max(limit, 0)))

        by_name = {lane.name: lane for lane in self._lanes}
        return [
            item
            for found in self._asked(question)
            for item in by_name[found.lane].parse(found.file)
            if isinstance(item, Memory) and item.id == found.id
        ]

    def newest(self, limit: int) -> list[Memory]:
        """The newest memories that are not archived; those without a date do not count."""
        found = self._asked(lambda: [*islice(self._indexed(_NEWEST), limit), *self._read()])
        dated = [
            (when, memory.id, memory)
            for memory in found
            if (when := memory.created_at or memory.updated_at) and memory.status != "archived"
        ]
        return [memory for _, _, memory in nlargest(limit, dated, key=lambda item: item[:2])]

    def _asked(self, question: Callable[[], list[Memory]]) -> list[Memory]:
        try:
            return question()
        except _DAMAGE:
            if self._db is None:
                raise
            self._do_without()
            return question()

    def _do_without(self) -> None:
        self.close()
        self._found = None
        self._unread = [(lane, path) for lane in self._lanes for path in lane.files() if isinstance(path, str)]
        self._outdated = {path for _, path in self._unread}

    def _indexed(self, query: str, *values: Any) -> Iterator[Memory]:
        """What a query finds among the files that are as they were indexed."""
        if self._db is None:
            return
        for file, known, data in self._db.execute(query, values):
            if file in self._outdated:
                continue
            if digest(data) != known:
                raise sqlite3.DatabaseError("a row is not what was written")
            memory = loaded(data)
            if memory.lane in self._names:
                yield memory

    def _read(self) -> list[Memory]:
        """What stands in the other files, which are read once."""
        if self._found is None:
            self._found = []
            end = None if self._wait is None else monotonic() + self._wait
            for lane, path in self._unread if end is None else sorted(self._unread, key=_changed, reverse=True):
                if end is not None and monotonic() > end:
                    break
                self._found += (item for item in lane.parse(path) if isinstance(item, Memory))
        return self._found


def _changed(file: tuple[Lane, str]) -> float:
    """When a file was changed."""
    try:
        return os.stat(file[1]).st_mtime
    except OSError:
        return 0.0


def _place(memory: Memory) -> tuple[float, str]:
    """Where a memory stands in a list."""
    when = memory.created_at or memory.updated_at
    return (-when.timestamp() if when else float("inf")), memory.id
