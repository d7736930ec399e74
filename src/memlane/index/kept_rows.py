"""What an open bank has read of its index: memories, chunks and passages, kept by their numbers.

A memory's number never becomes another's, so that what was read of it stays true. Chunks may be renumbered all
together. What is kept is bounded: at its limit, it is forgotten and begun anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from memlane.core.model import Memory
from memlane.index.rows import SHAPES, loaded, marks
from memlane.index.writing import Chunk, read_chunks, read_passages

MEMORIES, LENGTH = 4_000, 16_000_000  # how many, and the characters of them all
CHUNKS, PASSAGES = 4_000, 20_000  # some 5 MB each
T = TypeVar("T")


class KeptRows:
    def __init__(self) -> None:
        self._memories: dict[int, Memory] = {}
        self._length = 0
        self._chunks: dict[int, Chunk] = {}
        self._passages: dict[int, bytes] = {}

    def forget_chunks(self) -> None:
        """Their numbers may have become others'."""
        self._chunks, self._passages = {}, {}

    def memories(self, db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Memory]:
        """Of these memories, those that are there."""
        wanted = list(numbers)
        if unknown := [n for n in wanted if n not in self._memories]:
            if len(self._memories) > MEMORIES or self._length > LENGTH:
                self._memories, self._length, unknown = {}, 0, wanted
            for n, data, digest in db.execute(f"{SHAPES} WHERE s.n IN ({marks(unknown)})", unknown):
                self._memories[n] = loaded(data, digest)
                self._length += len(data)
        return {n: self._memories[n] for n in wanted if n in self._memories}

    def chunks(self, db: sqlite3.Connection, numbers: Sequence[int]) -> list[Chunk]:
        """These chunks. Raises KeyError for one that is not there."""
        return _rows(self._chunks, numbers, CHUNKS, partial(read_chunks, db))

    def passages(self, db: sqlite3.Connection, numbers: Sequence[int]) -> list[bytes]:
        """The passages of these chunks. Raises KeyError for one that is not there."""
        return _rows(self._passages, numbers, PASSAGES, partial(read_passages, db))


def _rows(kept: dict[int, T], numbers: Sequence[int], most: int, read: Callable[[list[int]], dict[int, T]]) -> list[T]:
    """Rows by number: those that are kept, and the others as they are read."""
    if unknown := [n for n in numbers if n not in kept]:
        if len(kept) > most:
            kept.clear()
            unknown = list(numbers)
        kept |= read(unknown)
    return [kept[n] for n in numbers]
