"""What is kept in memory of all chunks while a bank is open: arrays with one entry per chunk. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT = 20_000  # vectors that are compared exactly; of more, only those that a first pass by signs brings up
FEW = 50  # chunks whose mean says nothing yet
Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Columns:
    """What is kept in memory of all chunks, one entry each. `alive` says which count; there is room for more.

    `rows` are the vectors without what they have in common (`mean`), of length 1: exact up to EXACT chunks, beyond
    that as int8, with their `signs` for a first pass.
    """

    used: int
    buried: int
    memory: Array
    length: Array
    created: Array  # as a time stamp, -inf where there is no date
    alive: Array
    before: Array
    after: Array
    mean: Array
    rows: Array
    signs: Array

    def put_vectors(self, at: int, vectors: Array) -> None:
        """Take the vectors of the chunks from number `at` on, as they stand in the file."""
        for start in range(0, len(vectors), 8192):
            part = vectors[start : start + 8192].astype(np.float32)
            part /= np.float32(127)
            part -= self.mean
            part /= np.maximum(np.sqrt(np.einsum("ij,ij->i", part, part)), 1e-9)[:, None]
            place = slice(at + start, at + start + len(part))
            if len(self.signs):
                self.signs[place] = np.packbits(part > 0, axis=1).view(np.uint64)
                part *= np.float32(127)
                self.rows[place] = np.rint(part, out=part)
            else:
                self.rows[place] = part


def empty_columns(used: int, buried: int, mean: Array) -> Columns:
    room = used + used // 8 + 256
    exact = room <= EXACT or len(mean) % 64 != 0
    return Columns(
        used,
        buried,
        np.full(room, -1, np.int64),
        np.zeros(room, np.float32),
        np.full(room, -np.inf),
        np.zeros(room, np.bool_),
        np.full(room, -1, np.int64),
        np.full(room, -1, np.int64),
        mean,
        np.zeros((room, len(mean)), np.float32 if exact else np.int8),
        np.zeros((0 if exact else room, len(mean) // 64), np.uint64),
    )
