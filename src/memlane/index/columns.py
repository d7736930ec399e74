"""What an open bank keeps in memory of its index: arrays with one entry per chunk, read from the file and kept current.

Reads the file and writes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import chain, pairwise
from typing import Any

import numpy as np

from memlane.core.values import NamedTuple, dataclass, field
from memlane.core.where import Where
from memlane.index import fields
from memlane.index.database import BLOCK, ROWS
from memlane.index.rows import FILTERS, marks

EXACT = 5_000  # up to this many vectors are compared one and all; beyond, signs alone choose the candidates first
FEW = 50  # chunks; the mean of fewer vectors is mostly chance
MANY = 2_000  # changes; with more, reading everything again is simpler than applying them one by one
TOGETHER = 512  # vectors that are scaled at a time: as many as a processor has at hand
SPARSE = 1_000  # numbers per chunk; `store._pack` renumbers long before
POSTING = np.dtype([("at", "<u2"), ("weight", "u1")])
TAGS = 100  # tags that were asked for, whose memories are kept
ASKED = 32  # questions about fields and conversations whose answers are kept
_FILTERS = ", ".join(f"m.{name}" for name in FILTERS)
Array = np.ndarray[Any, Any]


class Labels(NamedTuple):
    """What every memory has in one column of the table `memories`, as a number for each value, by chunk."""

    numbers: dict[str | None, int]
    codes: Array

    def put(self, chunk: int, value: str | None) -> None:
        self.codes[chunk] = self.numbers.setdefault(value, len(self.numbers))

    def among(self, values: Iterable[str | None]) -> Array:
        """Whether each chunk's memory has one of these values."""
        wanted = np.zeros(len(self.numbers) + 1, np.bool_)
        wanted[[self.numbers[value] for value in values if value in self.numbers]] = True
        return wanted[self.codes]


@dataclass(slots=True)
class Columns:
    """One entry per chunk, by chunk number. `alive` tells which chunks exist; the arrays have room for more.

    `rows` are the vectors minus `mean` (what they all have in common), scaled to length 1: as float32 up to EXACT
    chunks, beyond that as int8 with their `signs` for a first pass, 64 of them a number, place by place.

    What filters ask for is read when one first does: `labels`, `tagged` and `asked`.
    """

    used: int  # chunk numbers given out so far
    buried: int  # the last row of the table `graves` that is taken into account
    memory: Array  # the number of the memory it belongs to
    length: Array
    created: Array  # as a time stamp, -inf where there is no date
    alive: Array
    before: Array  # the neighbouring chunks in the same memory, conversation or topic; -1 for none
    after: Array
    mean: Array
    rows: Array
    signs: Array
    labels: dict[str, Labels] = field(default_factory=dict)
    tagged: dict[str, Array] = field(default_factory=dict)  # whether each chunk's memory has a tag
    asked: dict[tuple[Where, str | None], Array] = field(default_factory=dict)  # the same of fields and conversations

    @property
    def changes(self) -> int:
        """How many there were: chunks that were added, and chunks that were deleted."""
        return self.used + self.buried

    def put_vectors(self, start: int, vectors: Array) -> None:
        """Set the vectors of the chunks from number `start` on; `vectors` as they are in the file."""
        exact = not len(self.signs)
        for offset in range(0, len(vectors), TOGETHER):
            some = vectors[offset : offset + TOGETHER]
            place = slice(start + offset, start + offset + len(some))
            part = np.divide(some, np.float32(127), out=self.rows[place] if exact else None, dtype=np.float32)
            part -= self.mean
            part /= np.maximum(np.sqrt(np.einsum("ij,ij->i", part, part)), 1e-9)[:, None]
            if not exact:
                self.signs[:, place] = np.packbits(part > 0, axis=1).view(np.uint64).T
                part *= np.float32(127)
                self.rows[place] = np.rint(part, out=part)


def _empty(used: int, buried: int, mean: Array) -> Columns:
    room = used + used // 8 + 256
    exact = room <= EXACT or len(mean) % 64 != 0
    return Columns(
        used=used,
        buried=buried,
        memory=np.full(room, -1, np.int64),
        length=np.zeros(room, np.float32),
        created=np.full(room, -np.inf),
        alive=np.zeros(room, np.bool_),
        before=np.full(room, -1, np.int64),
        after=np.full(room, -1, np.int64),
        mean=mean,
        rows=np.zeros((room, len(mean)), np.float32 if exact else np.int8),
        signs=np.zeros((0 if exact else len(mean) // 64, room), np.uint64),
    )


def read_columns(db: sqlite3.Connection, dim: int) -> Columns:
    """The columns of all chunks in the file. `dim` is the encoder's."""
    buried = db.execute("SELECT coalesce(max(n), 0) FROM graves").fetchone()[0]
    chunks = _read_rows(db, "SELECT n, memory, length FROM chunks INDEXED BY chunks_by_memory")
    numbers = chunks[:, 0].astype(np.int64)
    used = int(numbers[-1]) + 1 if len(numbers) else 0
    if used > SPARSE * (len(numbers) + SPARSE):
        raise ValueError("a chunk has a number that was never given out")
    alive = np.zeros(used, np.bool_)
    alive[numbers] = True
    columns = _empty(used, buried, _mean(db, dim, alive))
    columns.memory[numbers], columns.length[numbers], columns.alive[numbers] = chunks[:, 1], chunks[:, 2], True
    memories = _read_rows(db, "SELECT n, ifnull(created, -1e999) FROM memories INDEXED BY memories_by_created")
    columns.created[numbers] = memories[np.searchsorted(memories[:, 0], chunks[:, 1]), 1]
    continued = numbers[:-1][chunks[:-1, 1] == chunks[1:, 1]]  # the chunks of a memory have successive numbers
    columns.after[continued], columns.before[continued + 1] = continued + 1, continued
    _chain(db, columns, used)
    for start in range(0, used, BLOCK):  # block by block: all at once would take twice the memory
        columns.put_vectors(start, read_vectors(db, dim, start, min(start + BLOCK, used)))
    return columns


def _read_rows(db: sqlite3.Connection, query: str) -> Array:
    """Rows of numbers, by the first of them, asked from an index that has them all: nothing else is read."""
    cursor = db.execute(query)
    rows = np.fromiter(chain.from_iterable(cursor), np.float64).reshape(-1, len(cursor.description))
    return rows[np.argsort(rows[:, 0])]


def _mean(db: sqlite3.Connection, dim: int, alive: Array) -> Array:
    """What the vectors have in common. FEW keeps it small where there are so few chunks that it is mostly chance."""
    total = np.zeros(dim, np.int64)
    for start in range(0, len(alive), BLOCK):
        end = min(start + BLOCK, len(alive))
        vectors, living = read_vectors(db, dim, start, end), alive[start:end]
        total += (vectors if living.all() else vectors[living]).sum(axis=0, dtype=np.int64)
    return (total / (int(alive.sum()) + FEW) / 127).astype(np.float32)


def extend_columns(db: sqlite3.Connection, dim: int, columns: Columns) -> bool:
    """Apply what was added and deleted since; False, and no change, when reading everything again is simpler."""
    added = db.execute(
        f"SELECT c.n, c.memory, c.length, m.created, m.thread, {_FILTERS} "  # noqa: S608 - fixed names
        "FROM chunks c JOIN memories m ON m.n = c.memory WHERE c.n >= ? ORDER BY c.n LIMIT ?",
        (columns.used, MANY + 1),
    ).fetchall()
    graves = db.execute(
        "SELECT n, chunk FROM graves WHERE n > ? ORDER BY n LIMIT ?", (columns.buried, MANY + 1)
    ).fetchall()
    used = max(columns.used, added[-1][0] + 1 if added else 0)
    if len(added) > MANY or len(graves) > MANY or used > len(columns.memory):
        return False
    columns.put_vectors(columns.used, read_vectors(db, dim, columns.used, used))
    previous = -1
    for n, memory, length, created, _, *values in added:
        columns.memory[n], columns.length[n], columns.alive[n] = memory, length, True
        columns.created[n] = -np.inf if created is None else created
        if previous >= 0 and columns.memory[previous] == memory:
            columns.before[n], columns.after[previous] = previous, n
        previous = n
        for name, value in zip(FILTERS, values, strict=True):
            if name in columns.labels:
                columns.labels[name].put(n, value)
    if added:
        columns.asked.clear()
    if columns.tagged:
        query = "SELECT t.tag, c.n FROM chunks c JOIN tags t ON t.memory = c.memory WHERE c.n >= ?"
        for tag, n in db.execute(query, (columns.used,)):
            if tag in columns.tagged:
                columns.tagged[tag][n] = True
    for _, chunk in graves:
        if chunk >= used:
            continue  # it came and went since
        columns.alive[chunk] = False
        before, after = int(columns.before[chunk]), int(columns.after[chunk])
        if before >= 0:
            columns.after[before] = after
        if after >= 0:
            columns.before[after] = before
        columns.before[chunk] = columns.after[chunk] = -1
    if threads := {row[4] for row in added if row[4] is not None}:
        _chain(db, columns, used, threads)
    columns.used = used
    columns.buried = graves[-1][0] if graves else columns.buried
    return True


def passing(
    db: sqlite3.Connection,
    columns: Columns,
    any_archived: bool,
    *,
    tags: Sequence[str] = (),
    since: float | None = None,
    until: float | None = None,
    archived: bool = False,
    visible: tuple[Sequence[str], Sequence[str]] | None = None,
    asked: fields.Asked = fields.NOTHING,
    now: datetime | None = None,
    **equal: str | None,
) -> Array | None:
    """Whether the memory of each chunk passes these filters; None when all do.

    `equal` are some of FILTERS and the value each must have; None is no filter. `visible` are scopes and lanes: a
    memory with a scope must have one of these scopes or be of one of these lanes. What has expired by `now` does not
    pass, unless it is asked for.
    """

    def among(name: str, *values: str | None) -> Array:
        return labels(db, columns, name).among(values)

    passed = [among(name, value) for name, value in equal.items() if value is not None]
    if since is not None:
        passed.append(columns.created >= since)
    if until is not None:
        passed.append((columns.created <= until) & (columns.created > -np.inf))
    if any_archived and not archived and equal.get("status") is None:
        passed.append(~among("status", "archived"))
    if tags:
        passed.append(np.logical_or.reduce([tagged(db, columns, tag) for tag in tags]))
    if visible:
        scopes, lanes = visible
        passed.append(among("scope", None, *scopes) | among("lane", *lanes))
    if (found := having(db, columns, asked)) is not None:
        passed.append(found)
    if now is not None and not asked.expired and (over := fields.over(db, now)):
        passed.append(~np.isin(columns.memory, over))
    return np.logical_and.reduce(passed)[: columns.used] if passed else None


def labels(db: sqlite3.Connection, columns: Columns, name: str) -> Labels:
    """What every memory has in one column of the table."""
    if name not in columns.labels:
        rows = db.execute(f"SELECT n, {name} FROM memories ORDER BY n").fetchall()  # noqa: S608 - one of FILTERS
        numbers: dict[str | None, int] = {}
        codes = np.zeros(len(rows) + 1, np.int32)  # the last one for the chunks of memories that are gone
        codes[:-1] = [numbers.setdefault(value, len(numbers)) for _, value in rows]
        columns.labels[name] = Labels(numbers, codes[np.searchsorted([n for n, _ in rows], columns.memory)])
    return columns.labels[name]


def tagged(db: sqlite3.Connection, columns: Columns, tag: str) -> Array:
    """Whether each chunk's memory has a tag."""
    if tag not in columns.tagged:
        if len(columns.tagged) >= TAGS:
            columns.tagged.clear()
        having = [n for (n,) in db.execute("SELECT memory FROM tags WHERE tag = ?", (tag,))]
        columns.tagged[tag] = np.isin(columns.memory, np.array(having, np.int64))
    return columns.tagged[tag]


def having(db: sqlite3.Connection, columns: Columns, asked: fields.Asked) -> Array | None:
    """Whether each chunk's memory has what is asked of it; None where that is nothing."""
    key = asked.where, asked.thread
    if key not in columns.asked:
        found = fields.numbers(db, asked)
        if found is None:
            return None
        if len(columns.asked) >= ASKED:
            columns.asked.clear()
        columns.asked[key] = np.isin(columns.memory, np.array(found, np.int64))
    return columns.asked[key]


def _chain(db: sqlite3.Connection, columns: Columns, used: int, threads: Collection[str] = ()) -> None:
    """Make the chunks of these threads (default: of all) each other's neighbours, in the order of their memories."""
    which = f"IN ({marks(threads)})" if threads else "IS NOT NULL"
    rows = db.execute(
        "SELECT c.n, m.thread FROM memories m CROSS JOIN chunks c ON c.memory = m.n "  # noqa: S608 - marks
        f"WHERE m.thread {which} AND c.n < ? ORDER BY m.thread, m.created, m.position, m.n, c.n",
        (*threads, used),
    ).fetchall()
    numbers = np.array([n for n, _ in rows], np.int64)
    same_thread = np.array([row[1] == following[1] for row, following in pairwise(rows)], np.bool_)
    columns.before[numbers] = columns.after[numbers] = -1
    columns.before[numbers[1:][same_thread]] = numbers[:-1][same_thread]
    columns.after[numbers[:-1][same_thread]] = numbers[1:][same_thread]


def read_vectors(db: sqlite3.Connection, dim: int, start: int, end: int) -> Array:
    """The vectors of the chunks from `start` to before `end` as int8; zeros where the file has none."""
    vectors = np.zeros((max(end - start, 0), dim), np.int8)
    if dim:
        blocks = (start // ROWS, end // ROWS)
        for block, data in db.execute("SELECT block, data FROM vectors WHERE block BETWEEN ? AND ?", blocks):
            part = np.frombuffer(data, np.int8).reshape(-1, dim)
            first, last = max(block * ROWS, start), min(block * ROWS + len(part), end)
            if first < last:
                vectors[first - start : last - start] = part[first - block * ROWS : last - block * ROWS]
    return vectors


def read_postings(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, tuple[Array, Array]]:
    """(chunk numbers, weights) of each of these terms."""
    blocks: dict[str, list[tuple[int, bytes]]] = {term: [] for term in terms}
    query = f"SELECT term, block, data FROM postings WHERE term IN ({marks(terms)}) ORDER BY term, block"  # noqa: S608
    for term, block, data in db.execute(query, tuple(terms)):
        blocks[term].append((block, data))
    return {term: _posted(found) for term, found in blocks.items()}


def _posted(blocks: Sequence[tuple[int, bytes]]) -> tuple[Array, Array]:
    """(chunk numbers, weights) of a term, from its blocks."""
    if not blocks:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    posted = np.frombuffer(b"".join(data for _, data in blocks), POSTING)
    numbers = posted["at"].astype(np.int64)
    numbers += np.repeat([block * BLOCK for block, _ in blocks], [len(data) // POSTING.itemsize for _, data in blocks])
    return numbers, posted["weight"].astype(np.float32) / 4
