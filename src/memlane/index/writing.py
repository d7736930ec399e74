"""Memories on their way into the index: worked out before a transaction, written inside it.

Does not open the file and does not compare it with the disk: that is store.py.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memlane.core.model import Memory
from memlane.index.chunks import chunks
from memlane.index.columns import Array
from memlane.index.encoders import Encoder
from memlane.index.links import links_in
from memlane.index.words import terms

BLOCK = 4096  # chunk numbers per block of postings
ROWS = 256  # rows per block of vectors
WEIGHTS = {"title": 2.0, "tags": 2.0, "header": 1.5, "name": 1.0, "date": 1.0, "text": 1.0}
FILTERS = ("lane", "type", "status", "scope", "project")  # columns of their own


@dataclass(frozen=True, slots=True)
class Prepared:
    """A memory worked out for the index, before any transaction."""

    memory: Memory
    digest: bytes
    data: str
    pieces: list[tuple[str, str, Counter[str]]]
    links: list[tuple[str, str, str]]
    rows: dict[str, Array] = field(default_factory=dict)  # its vectors, by the encoder that made them

    def texts(self) -> list[str]:
        return [embedded_text(self.memory.title, header, text) for header, text, _ in self.pieces]


def prepare(memory: Memory, data: str, digest: bytes) -> Prepared:
    common: Counter[str] = Counter()
    for name, text in (
        ("title", memory.title),
        ("tags", " ".join((*memory.tags, memory.type or ""))),
        ("name", f"{memory.native_id} {memory.scope or ''} {memory.project or ''}"),
        ("date", memory.created_at.strftime("%d %B %Y %A") if memory.created_at else ""),
    ):
        for term in terms(text):
            common[term] = max(common[term], WEIGHTS[name])  # type: ignore[assignment]
    pieces = []
    for header, text in chunks(memory.text):
        counted = Counter(terms(text))
        for term in terms(header):
            counted[term] += WEIGHTS["header"]  # type: ignore[assignment]
        for term, weight in common.items():
            counted[term] += weight
        pieces.append((header, text, counted))
    return Prepared(memory, digest, data, pieces, list(links_in(memory.text)))


class Writer:
    """Adds memories inside one transaction and writes their postings and vectors together."""

    def __init__(self, db: sqlite3.Connection, encoder: Encoder) -> None:
        self._db = db
        self._encoder = encoder
        self._next = db.execute("SELECT max(coalesce(max(n) + 1, 0), ?) FROM chunks", (_buried(db),)).fetchone()[0]
        self._postings: defaultdict[tuple[str, int], bytearray] = defaultdict(bytearray)
        self._vectors: list[tuple[int, Array]] = []

    def add(self, piece: Prepared, order: int) -> None:
        memory = piece.memory
        created = memory.created_at or memory.updated_at
        row = (
            memory.id,
            memory.file,
            piece.digest,
            created.timestamp() if created else None,
            _thread(memory),
            order,
            *(getattr(memory, name) for name in FILTERS),
        )
        marks = ", ".join("?" * len(row))
        n = self._db.execute(f"INSERT INTO memories VALUES (NULL, {marks})", row).lastrowid  # noqa: S608 - marks
        self._db.execute("INSERT INTO shapes VALUES (?, ?)", (n, piece.data))
        self._db.executemany("INSERT INTO tags VALUES (?, ?)", [(n, tag) for tag in memory.tags])
        rows = piece.rows.get(self._encoder.fingerprint)
        for vector, (header, text, counted) in zip(
            rows_of(self._encoder, piece.texts()) if rows is None else rows, piece.pieces, strict=True
        ):
            number = self._next
            self._next += 1
            length = float(sum(counted.values()))
            self._db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", (number, n, header, text, length))
            block, at = divmod(number, BLOCK)
            for term, weight in counted.items():
                self._postings[term, block] += struct.pack("<HB", at, min(round(weight * 4), 255))
            self._vectors.append((number, vector))
        self._db.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", [(n, *link) for link in piece.links])

    def flush(self) -> None:
        self._db.executemany(
            "INSERT INTO postings VALUES (?, ?, ?) "
            "ON CONFLICT (term, block) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)",
            [(term, block, bytes(data)) for (term, block), data in self._postings.items()],
        )
        write_vectors(self._db, self._encoder.dim, self._vectors)


def embedded_text(title: str, header: str, text: str) -> str:
    """What an encoder sees of a chunk."""
    return "\n".join(filter(None, (title, header, text)))


def _buried(db: sqlite3.Connection) -> int:
    """One more than the highest number of a chunk that is gone."""
    found: int = db.execute("SELECT coalesce(max(chunk) + 1, 0) FROM graves").fetchone()[0]
    return found


def _thread(memory: Memory) -> str | None:
    """What memories are neighbours in: a conversation, or a topic."""
    if memory.thread is not None:
        return f"thread {memory.thread}"
    return f"topic {memory.scope}" if memory.lane == "topics" else None


def rows_of(encoder: Encoder, texts: Sequence[str]) -> Array:
    """The vectors of texts as they are stored."""
    rows: Array = np.rint(encoder.encode_texts(texts) * 127).astype(np.int8)
    return rows


def write_vectors(db: sqlite3.Connection, dim: int, vectors: Sequence[tuple[int, Array]]) -> None:
    """Put the vectors of chunks, by their numbers, into their blocks."""
    blocks: defaultdict[int, list[tuple[int, Array]]] = defaultdict(list)
    for number, vector in vectors if dim else ():
        blocks[number // ROWS].append((number % ROWS, vector))
    for block, members in blocks.items():
        found = db.execute("SELECT data FROM vectors WHERE block = ?", (block,)).fetchone()
        old = np.frombuffer(found[0] if found else b"", np.int8).reshape(-1, dim)
        matrix = np.zeros((max(len(old), max(place for place, _ in members) + 1), dim), np.int8)
        matrix[: len(old)] = old
        for place, vector in members:
            matrix[place] = vector
        db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (block, matrix.tobytes()))


def forget(db: sqlite3.Connection, memory: int) -> None:
    db.execute("INSERT INTO graves (chunk) SELECT n FROM chunks WHERE memory = ?", (memory,))
    for table in ("chunks", "links", "tags"):
        db.execute(f"DELETE FROM {table} WHERE memory = ?", (memory,))  # noqa: S608 - fixed names
    for table in ("memories", "shapes"):
        db.execute(f"DELETE FROM {table} WHERE n = ?", (memory,))  # noqa: S608 - fixed names
