"""Writing to the tables of the index, inside a transaction of the caller's.

Does not open the file, does not compare it with the disk, and does not work out what is written: that is `preparing`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.disk.walking import Stamp
from memlane.index import closeness, fields
from memlane.index.columns import POSTING, Array
from memlane.index.database import BLOCK, ROWS, get_meta, set_meta
from memlane.index.encoders import Encoder, StaticEncoder
from memlane.index.links import links_of
from memlane.index.peek import Settled, mark_of
from memlane.index.preparing import AT_ONCE, PLACED, Prepared, prepare
from memlane.index.rows import FILTERS, in_thread, loaded, marks, shape

_TOGETHER = 1_000  # memories that are renumbered at a time


class Chunk(NamedTuple):
    """A piece of a memory."""

    title: str  # the memory's
    header: str
    text: str


class Entry(NamedTuple):
    """A memory to be written, as JSON as well. `position` orders those of a thread that have the same date."""

    memory: Memory
    data: str
    digest: bytes
    position: int

    @classmethod
    def of(cls, memory: Memory, position: int) -> Entry:
        return cls(memory, *shape(memory), position)


class ReadFile(NamedTuple):
    """A file of a lane that was read to its end, with the ids of all its memories; or, where `gone` says which of them
    are not there any more, of those that have changed `since` it had another mark. `before` is the stamp that it had in
    the index when it was read; None for a file that was not there.
    """

    path: str
    lane: str
    stamp: Stamp
    ids: Collection[str]
    mark: str = ""
    before: Stamp | None = None
    gone: Collection[str] | None = None
    since: str = ""


class Unit(NamedTuple):
    """What is written in one transaction: memories that are new or changed, each once, and the files that end here."""

    entries: list[Entry]
    files: list[ReadFile]


def write(db: sqlite3.Connection, unit: Unit, prepared: Prepared) -> set[str]:
    """Bring the rows of files up to date: write what is new or changed, delete what they no longer hold.

    Returns the paths of which nothing was written: another process has indexed them anew since they were read.
    """
    entries = unit.entries
    outrun = {file.path for file in unit.files if _is_outrun(db, file)}
    files = [file for file in unit.files if file.path not in outrun]
    ids = {file.path: file.ids for file in files if file.gone is None}
    query = f"SELECT n, id, file FROM memories WHERE file IN ({marks(ids)})"  # noqa: S608 - marks
    gone = [n for n, id, file in db.execute(query, tuple(ids)) if id not in ids[file]]
    for file in files:
        query = f"SELECT n FROM memories WHERE file = ? AND id IN ({marks(file.gone or ())})"  # noqa: S608 - marks
        gone += (n for (n,) in db.execute(query, (file.path, *file.gone))) if file.gone else ()
    query = f"SELECT id, n, digest FROM memories WHERE id IN ({marks(entries)})"  # noqa: S608 - marks
    found = db.execute(query, [entry.memory.id for entry in entries])
    there = {id: (n, digest) for id, n, digest in found}
    fresh = []
    for entry in entries:
        n, digest = there.get(entry.memory.id, (None, None))
        fresh.append(digest != entry.digest and entry.memory.file not in outrun)  # else another process has written it
        if fresh[-1] and n is not None:
            gone.append(n)
    forget(db, gone)
    _add(db, entries, fresh, prepared)
    begun = {entry.memory.file for entry in entries} - {file.path for file in unit.files}
    db.executemany("UPDATE files SET mark = '' WHERE path = ?", [(path,) for path in begun])  # a kill may come now
    db.executemany(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(file.path, file.lane, *file.stamp, file.mark) for file in files],
    )
    return outrun


def _is_outrun(db: sqlite3.Connection, file: ReadFile) -> bool:
    """Whether another process has indexed the file since: perhaps as it became after it was read here."""
    if file.gone is not None and mark_of(db, file.path) != file.since:
        return True
    return stamp_of(db, file.path) not in (file.before, file.stamp)


def stamp_of(db: sqlite3.Connection, path: str) -> Stamp | None:
    """The stamp with which a file is in the index; None for one that is not."""
    found: Stamp | None = db.execute("SELECT size, mtime, ctime, inode FROM files WHERE path = ?", (path,)).fetchone()
    return found


def _add(db: sqlite3.Connection, entries: Sequence[Entry], fresh: Sequence[bool], prepared: Prepared) -> None:
    """Write memories, without those that are not fresh. What was prepared of those belongs to chunks that do not exist:
    their numbers are buried, so that no other chunk is given them."""
    number = db.execute("SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'memories'").fetchone()[0]
    first = db.execute(
        "SELECT max(coalesce(max(n), -1), (SELECT coalesce(max(chunk), -1) FROM graves)) + 1 FROM chunks"
    ).fetchone()[0]
    memories, shapes, tags, chunks, links = [], [], [], [], []
    at = 0
    for entry, new, count in zip(entries, fresh, prepared.counts, strict=True):
        if new:
            memory = entry.memory
            memories.append((number, *_row(entry)))
            shapes.append((number, entry.data))
            tags += [(number, tag) for tag in memory.tags]
            if memory.fields:
                fields.add(db, number, memory)
            links += [(number, *link) for link in links_of(memory)]
            chunks += [(first + at + k, number, *prepared.chunks[at + k]) for k in range(count)]
            number += 1
        else:
            db.executemany("INSERT INTO graves (chunk) VALUES (?)", [(first + at + k,) for k in range(count)])
        at += count
    tables: dict[str, list[Any]] = {
        "memories": memories, "shapes": shapes, "tags": tags, "chunks": chunks, "links": links,
    }  # fmt: skip
    for table, rows in tables.items():
        if rows:
            db.executemany(f"INSERT INTO {table} VALUES ({marks(rows[0])})", rows)  # noqa: S608 - fixed names
    _write_postings(db, first, prepared.postings)
    write_vectors(db, np.arange(first, first + len(prepared.chunks)), prepared.vectors)


def _row(entry: Entry) -> tuple[object, ...]:
    memory = entry.memory
    created = memory.created_at or memory.updated_at
    when = created.timestamp() if created else None
    filters = (getattr(memory, name) for name in FILTERS)
    return memory.id, memory.file, entry.digest, when, _thread(memory), entry.position, *filters


def _thread(memory: Memory) -> str | None:
    """The conversation or topic in which memories are neighbours."""
    if memory.thread is not None:
        return in_thread(memory.thread)
    return f"topic {memory.scope}" if memory.lane == "topics" else None


def _write_postings(db: sqlite3.Connection, first: int, postings: dict[str, bytearray]) -> None:
    """Add postings, in which the chunk 0 means the number `first`, to their blocks."""
    placed = np.frombuffer(b"".join(postings.values()), PLACED)
    blocks, places = np.divmod(placed["at"].astype(np.int64) + first, BLOCK)
    rows = np.empty(len(placed), POSTING)
    rows["at"], rows["weight"] = places, placed["weight"]
    data, width = rows.tobytes(), POSTING.itemsize
    ends = np.cumsum([len(own) // PLACED.itemsize for own in postings.values()], dtype=np.int64)
    is_cut = np.zeros(len(placed) + 1, bool)  # `np.unique` and those that call it would load `numpy.ma`
    is_cut[ends] = True
    is_cut[1:-1] |= np.diff(blocks) != 0  # a piece is of one term and one block
    cuts = np.flatnonzero(is_cut)
    starts = np.concatenate([cuts[:0], [0], cuts[:-1]])[: len(cuts)].astype(np.int64)
    terms, which = list(postings), np.searchsorted(ends, starts, side="right")
    columns = (column.tolist() for column in (which, blocks[starts], starts, cuts))
    pieces = [
        (terms[at], block, data[low * width : high * width]) for at, block, low, high in zip(*columns, strict=True)
    ]
    pieces.sort()  # neighbours in the file one after the other
    db.executemany(
        "INSERT INTO postings VALUES (?, ?, ?) "
        "ON CONFLICT (term, block) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)",
        pieces,
    )


def write_vectors(db: sqlite3.Connection, numbers: Array, vectors: Array) -> None:
    """Write the vectors of chunks, whose numbers ascend, into their blocks."""
    dim = vectors.shape[1]
    for block in sorted({*(numbers // ROWS).tolist()}) if dim else ():
        low, high = np.searchsorted(numbers, [block * ROWS, (block + 1) * ROWS])
        places = numbers[low:high] % ROWS
        row = db.execute("SELECT data FROM vectors WHERE block = ?", (block,)).fetchone()
        old = np.frombuffer(row[0] if row else b"", np.int8).reshape(-1, dim)
        matrix = np.zeros((max(len(old), int(places[-1]) + 1), dim), np.int8)
        matrix[: len(old)] = old
        matrix[places] = vectors[low:high]
        db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (block, matrix.tobytes()))


def forget(db: sqlite3.Connection, memories: Iterable[int]) -> None:
    """Delete memories and bury the numbers of their chunks."""
    numbers = [(n,) for n in memories]
    if not numbers:
        return
    db.executemany("INSERT INTO graves (chunk) SELECT n FROM chunks WHERE memory = ?", numbers)
    for (n,) in numbers:
        fields.forget(db, n)
    for table in ("chunks", "links", "tags"):
        db.executemany(f"DELETE FROM {table} WHERE memory = ?", numbers)  # noqa: S608 - fixed names
    for table in ("memories", "shapes"):
        db.executemany(f"DELETE FROM {table} WHERE n = ?", numbers)  # noqa: S608 - fixed names


def forget_file(db: sqlite3.Connection, path: str) -> None:
    """Delete a file and all its memories. That is counted, for those who remember which files there were."""
    forget(db, [n for (n,) in db.execute("SELECT n FROM memories WHERE file = ?", (path,)).fetchall()])
    db.execute("DELETE FROM files WHERE path = ?", (path,))
    set_meta(db, forgotten=get_meta(db, "forgotten", 0) + 1)


def renew_stamps(db: sqlite3.Connection, settled: Settled) -> None:
    """Other stamps for indexed files, unless they were indexed anew meanwhile."""
    which = "path = ? AND size = ? AND mtime = ? AND ctime = ? AND inode = ?"
    rows = [(*stamp, path, *before) for stamp, path, before in settled]
    db.executemany(f"UPDATE files SET size = ?, mtime = ?, ctime = ?, inode = ? WHERE {which}", rows)  # noqa: S608 - fixed


def digests_of(db: sqlite3.Connection, path: str) -> dict[str, bytes]:
    """The digests of the memories of a file, by id."""
    return dict(db.execute("SELECT id, digest FROM memories WHERE file = ?", (path,)))


def chunk_numbers(db: sqlite3.Connection) -> Array:
    """The numbers of all chunks, ascending."""
    return np.fromiter((n for (n,) in db.execute("SELECT n FROM chunks ORDER BY n")), np.int64)


def read_chunks(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
    """Some chunks, by number."""
    rows = db.execute(
        "SELECT c.n, s.data ->> 'title', c.header, c.text FROM chunks c JOIN shapes s ON s.n = c.memory "  # noqa: S608
        f"WHERE c.n IN ({marks(numbers)}) ORDER BY c.n",
        numbers,
    )
    return {n: Chunk(*rest) for n, *rest in rows}


def read_passages(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """The same, each as a passage for a closer look."""
    query = f"SELECT n, passage FROM chunks WHERE n IN ({marks(numbers)})"  # noqa: S608 - marks
    return dict(db.execute(query, numbers).fetchall())


def write_passages(db: sqlite3.Connection, passages: Mapping[int, bytes]) -> None:
    db.executemany("UPDATE chunks SET passage = ? WHERE n = ?", [(data, n) for n, data in passages.items()])


def chunk_counts(db: sqlite3.Connection) -> tuple[int, int]:
    """How many chunks there are, nearly, and how many numbers were given out. Does not look at all of them."""
    buried, last = db.execute("SELECT count(*), coalesce(max(chunk), -1) FROM graves").fetchone()
    used = max(db.execute("SELECT coalesce(max(n), -1) FROM chunks").fetchone()[0], last) + 1
    return max(used - buried, 0), used


def all_tokens(db: sqlite3.Connection, encoder: StaticEncoder) -> Array:
    """How often each token of the encoder occurs in all chunks."""
    rows = db.execute("SELECT passage FROM chunks")
    total = closeness.counted((), encoder)
    while some := rows.fetchmany(_TOGETHER):
        total += closeness.counted((passage for (passage,) in some), encoder)
    return total


def renumber(db: sqlite3.Connection, encoder: Encoder) -> None:
    """Number all chunks from 0 on, and forget the deleted ones."""
    last = db.execute("SELECT coalesce(max(n), 0) FROM memories").fetchone()[0]
    for table in ("chunks", "postings", "vectors", "links", "tags", "fields", "expiring", "graves"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
    after = 0
    query = (
        "SELECT m.n, s.data, m.position FROM memories m JOIN shapes s ON s.n = m.n WHERE m.n > ? AND m.n <= ? "
        "ORDER BY m.n LIMIT ?"
    )
    while rows := _some(db.execute(query, (after, last, _TOGETHER))):
        after = rows[-1][0]
        entries = [Entry.of(loaded(data), position) for _, data, position in rows]
        for table in ("memories", "shapes"):
            db.executemany(f"DELETE FROM {table} WHERE n = ?", [(n,) for n, _, _ in rows])  # noqa: S608 - fixed names
        _add(db, entries, [True] * len(entries), prepare([entry.memory for entry in entries], encoder))
    set_meta(db, packed=get_meta(db, "packed", 0) + 1)


def _some(found: sqlite3.Cursor) -> list[Any]:
    """The first of these memories, as many as are prepared together."""
    rows, size = [], 0
    with closing(found):
        for row in found:
            rows.append(row)
            size += len(row[1])
            if size >= AT_ONCE:
                break
    return rows
