"""A look at the index without opening it for search: no NumPy, nothing written, a few milliseconds.

What has changed on disk since it was indexed is read from the disk, so that the answer is always that of the files;
without an index everything is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from heapq import nlargest
from itertools import islice
from pathlib import Path

from memlane.index.shapes import loaded
from memlane.lanes import Lane
from memlane.model import Memory, Problem

Changed = list[tuple[Lane, str, os.stat_result]]


def difference(db: sqlite3.Connection, lanes: Iterable[Lane]) -> tuple[Changed, set[str]]:
    """The files of these lanes that are not in the index as they are, and those in it that are gone."""
    lanes = list(lanes)
    marks = ", ".join("?" * len(lanes))
    query = f"SELECT path, size, mtime FROM files WHERE lane IN ({marks})"  # noqa: S608 - marks
    known = {path: (size, mtime) for path, size, mtime in db.execute(query, [lane.name for lane in lanes])}
    changed: Changed = []
    for lane in lanes:
        for path in lane.files():
            if isinstance(path, Problem):
                continue
            try:
                info = os.stat(path)
            except OSError:
                continue
            if known.pop(path, None) != (info.st_size, info.st_mtime_ns):
                changed.append((lane, path, info))
    return changed, set(known)


def tagged(index: Path, lane: Lane, tag: str) -> list[Memory]:
    """The memories of a lane with this tag, by id."""
    query = "SELECT m.file, s.data FROM tags t JOIN memories m ON m.n = t.memory JOIN shapes s ON s.n = m.n WHERE "
    found = _read(index, [lane], query + "t.tag = ? AND m.lane = ?", (tag, lane.name))
    return sorted({memory.id: memory for memory in found if tag in memory.tags}.values(), key=lambda memory: memory.id)


def newest(index: Path, lanes: Sequence[Lane], limit: int) -> list[Memory]:
    """The newest memories of these lanes that are not archived; those without a date never count."""
    marks = ", ".join("?" * len(lanes))
    query = (
        "SELECT m.file, s.data FROM memories m JOIN shapes s ON s.n = m.n WHERE m.created IS NOT NULL "  # noqa: S608
        f"AND m.status IS NOT 'archived' AND m.lane IN ({marks}) ORDER BY m.created DESC"
    )
    found = _read(index, lanes, query, [lane.name for lane in lanes], limit)
    dated = ((memory.created_at or memory.updated_at, memory) for memory in found if memory.status != "archived")
    best = nlargest(limit, ((when, memory.id, memory) for when, memory in dated if when is not None))
    return [memory for _, _, memory in best]


def _read(
    index: Path, lanes: Sequence[Lane], query: str, values: Sequence[str], limit: int | None = None
) -> Iterator[Memory]:
    """What a query finds among the files that are as they were indexed, then what stands in the others."""
    try:
        with closing(sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as db:
            db.execute("BEGIN")
            changed, gone = difference(db, lanes)
            elsewhere = [(lane, path) for lane, path, _ in changed]
            outdated = gone | {path for _, path in elsewhere}
            rows = (loaded(data) for file, data in db.execute(query, values) if file not in outdated)
            indexed = list(islice(rows, limit))
    except (sqlite3.Error, ValueError, KeyError, TypeError):  # no index, or one that the next search makes anew
        indexed = []
        elsewhere = [(lane, path) for lane in lanes for path in lane.files() if isinstance(path, str)]
    yield from indexed
    for lane, path in elsewhere:
        yield from (item for item in lane.parse(path) if isinstance(item, Memory))
