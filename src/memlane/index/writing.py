"""Memories on their way into the index: worked out before a transaction, written inside it.

Does not open the file and does not compare it with the disk: that is `store`.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memlane.core import triggers
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.core.values import dataclass, field
from memlane.index import fields
from memlane.index.chunks import chunks
from memlane.index.columns import Array
from memlane.index.database import BLOCK, ROWS
from memlane.index.encoders import Encoder
from memlane.index.links import links_of
from memlane.index.rows import FILTERS, in_thread, marks, shape
from memlane.index.words import terms
from memlane.lanes import Lane

HEADER_WEIGHT = 1.5  # of a term in a chunk's headings; one in its text has 1
TITLE_WEIGHT = TAGS_WEIGHT = 2.0


class Piece(NamedTuple):
    """A chunk with its terms and how much each of them counts."""

    header: str
    text: str
    weights: dict[str, float]


@dataclass
class Entry:
    """A memory to be indexed. Its pieces are worked out when they are first needed, its vectors by `embed`."""

    memory: Memory
    data: str
    digest: bytes
    vectors: dict[str, Array] = field(default_factory=dict)  # by the fingerprint of the encoder that made them

    @classmethod
    def of(cls, memory: Memory) -> Entry:
        return cls(memory, *shape(memory))

    @cached_property
    def pieces(self) -> list[Piece]:
        memory = self.memory
        common: dict[str, float] = {}  # terms that every chunk of the memory has
        for text, weight in (
            (memory.title, TITLE_WEIGHT),
            (" ".join((*memory.tags, memory.type or "")), TAGS_WEIGHT),
            (also_known_as(memory), TITLE_WEIGHT),
            (f"{memory.native_id} {memory.scope or ''} {memory.project or ''}", 1.0),
            (scope.removeprefix("file:") if (scope := memory.scope or "").startswith("file:") else "", TITLE_WEIGHT),
            (memory.created_at.strftime("%d %B %Y %A") if memory.created_at else "", 1.0),
        ):
            for term in terms(text):
                common[term] = max(common.get(term, 0.0), weight)
        pieces = []
        for header, text in chunks(visible(memory.text)):  # a soft hyphen must not hide a word
            weights: defaultdict[str, float] = defaultdict(float, Counter(terms(text)))
            for term in terms(header):
                weights[term] += HEADER_WEIGHT
            for term, weight in common.items():
                weights[term] += weight
            pieces.append(Piece(header, text, weights))
        pieces += (Piece("", when, dict(Counter(terms(when)))) for when in triggers.of(memory.fields))
        return pieces

    def embed(self, encoder: Encoder) -> Array:
        """The vectors of the pieces, made once for each encoder."""
        if encoder.fingerprint not in self.vectors:
            texts = [embedded_text(self.memory.title, piece.header, piece.text) for piece in self.pieces]
            self.vectors[encoder.fingerprint] = stored_vectors(encoder, texts)
        return self.vectors[encoder.fingerprint]


class ReadFile(NamedTuple):
    """A file of a lane as it was read, with all its memories."""

    lane: Lane
    path: str
    info: os.stat_result
    entries: list[Entry]


class Writer:
    """Adds memories inside one transaction; `flush` writes their postings and vectors together at its end."""

    def __init__(self, db: sqlite3.Connection, encoder: Encoder) -> None:
        self._db = db
        self._encoder = encoder
        self._next = db.execute(
            "SELECT max(coalesce(max(n), -1), (SELECT coalesce(max(chunk), -1) FROM graves)) + 1 FROM chunks"
        ).fetchone()[0]
        self._postings: defaultdict[tuple[str, int], bytearray] = defaultdict(bytearray)
        self._vectors: list[tuple[int, Array]] = []

    def replace_file(self, file: ReadFile) -> None:
        """Bring the rows of a file up to date: write what is new or changed, delete what it no longer holds."""
        rows = self._db.execute("SELECT id, n, digest FROM memories WHERE file = ?", (file.path,))
        old = {id: (n, digest) for id, n, digest in rows}
        for entry in file.entries:
            n, digest = old.pop(entry.memory.id, (None, None))
            if digest == entry.digest:
                continue
            if n is None:  # perhaps it was in another file before
                moved = self._db.execute("SELECT n FROM memories WHERE id = ?", (entry.memory.id,)).fetchone()
                n = moved[0] if moved else None
            if n is not None:
                forget(self._db, n)
            self.add(entry, file.info.st_mtime_ns)
        for n, _ in old.values():
            forget(self._db, n)
        row = (file.path, file.lane.name, file.info.st_size, file.info.st_mtime_ns)
        self._db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)

    def add(self, entry: Entry, position: int) -> None:
        """Write one memory. `position` orders the memories of a thread that have the same date."""
        memory = entry.memory
        created = memory.created_at or memory.updated_at
        row = (
            memory.id,
            memory.file,
            entry.digest,
            created.timestamp() if created else None,
            _thread(memory),
            position,
            *(getattr(memory, name) for name in FILTERS),
        )
        n = self._db.execute(f"INSERT INTO memories VALUES (NULL, {marks(row)})", row).lastrowid  # noqa: S608 - marks
        self._db.execute("INSERT INTO shapes VALUES (?, ?)", (n, entry.data))
        self._db.executemany("INSERT INTO tags VALUES (?, ?)", [(n, tag) for tag in memory.tags])
        fields.add(self._db, n, memory)
        for vector, (header, text, weights) in zip(entry.embed(self._encoder), entry.pieces, strict=True):
            number = self._next
            self._next += 1
            length = float(sum(weights.values()))
            self._db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", (number, n, header, text, length))
            block, at = divmod(number, BLOCK)
            for term, weight in weights.items():
                self._postings[term, block] += struct.pack("<HB", at, min(round(weight * 4), 255))
            self._vectors.append((number, vector))
        self._db.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", [(n, *link) for link in links_of(memory)])

    def flush(self) -> None:
        self._db.executemany(
            "INSERT INTO postings VALUES (?, ?, ?) "
            "ON CONFLICT (term, block) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)",
            [(term, block, bytes(data)) for (term, block), data in self._postings.items()],
        )
        write_vectors(self._db, self._encoder.dim, self._vectors)


def _thread(memory: Memory) -> str | None:
    """The conversation or topic in which memories are neighbours."""
    if memory.thread is not None:
        return in_thread(memory.thread)
    return f"topic {memory.scope}" if memory.lane == "topics" else None


def also_known_as(memory: Memory) -> str:
    """Other words that somebody may look for it by: its own field `aka`, one text or a list."""
    words = memory.fields.get("aka", "")
    return " ".join(map(str, words)) if isinstance(words, list | tuple) else str(words)


def embedded_text(title: str, header: str, text: str) -> str:
    """What an encoder sees of a chunk."""
    return "\n".join(filter(None, (title, header, text)))


def stored_vectors(encoder: Encoder, texts: Sequence[str]) -> Array:
    """The vectors of texts in the form in which they are stored: int8."""
    vectors: Array = np.rint(encoder.encode_texts(texts) * 127).astype(np.int8)
    return vectors


def write_vectors(db: sqlite3.Connection, dim: int, vectors: Sequence[tuple[int, Array]]) -> None:
    """Write (chunk number, vector) pairs into their blocks."""
    blocks: defaultdict[int, list[tuple[int, Array]]] = defaultdict(list)
    for number, vector in vectors if dim else ():
        blocks[number // ROWS].append((number % ROWS, vector))
    for block, members in blocks.items():
        row = db.execute("SELECT data FROM vectors WHERE block = ?", (block,)).fetchone()
        old = np.frombuffer(row[0] if row else b"", np.int8).reshape(-1, dim)
        matrix = np.zeros((max(len(old), max(place for place, _ in members) + 1), dim), np.int8)
        matrix[: len(old)] = old
        for place, vector in members:
            matrix[place] = vector
        db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (block, matrix.tobytes()))


def forget(db: sqlite3.Connection, memory: int) -> None:
    """Delete a memory and bury the numbers of its chunks."""
    db.execute("INSERT INTO graves (chunk) SELECT n FROM chunks WHERE memory = ?", (memory,))
    fields.forget(db, memory)
    for table in ("chunks", "links", "tags"):
        db.execute(f"DELETE FROM {table} WHERE memory = ?", (memory,))  # noqa: S608 - fixed names
    for table in ("memories", "shapes"):
        db.execute(f"DELETE FROM {table} WHERE n = ?", (memory,))  # noqa: S608 - fixed names


def forget_file(db: sqlite3.Connection, path: str) -> None:
    """Delete a file and all its memories."""
    for (n,) in db.execute("SELECT n FROM memories WHERE file = ?", (path,)).fetchall():
        forget(db, n)
    db.execute("DELETE FROM files WHERE path = ?", (path,))
