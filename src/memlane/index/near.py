"""Pairs of memories whose vectors are close, of the whole bank. Known pairs are kept; only what is new is compared.

The vector of a memory is the mean of its chunks'. A memory that is written again has another number in the index, so
that the memories beyond the last number that was compared are the new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from memlane.core.dates import utc_now
from memlane.core.progress import tell
from memlane.index.columns import Array
from memlane.index.facts import Facts
from memlane.index.store import Index

PAIR = np.dtype([("first", "<u4"), ("second", "<u4"), ("cosine", "<f4")])  # two numbers of memories
MOST = 10_000_000  # pairs that are kept; in a bank that says one thing over and over again there are more
_AT_ONCE = 1 << 23  # pairs of vectors that are compared at once


def pairs(index: Index, least: float) -> Iterator[Array]:
    """Every pair with a cosine over `least`, as arrays of PAIR, among the memories that are there now."""
    alive = [n for (n,) in index.rows("SELECT n FROM memories")]
    layout = index.rows("SELECT value FROM meta WHERE key IN ('token', 'packed', 'encoder') ORDER BY key")
    about, last = f"{layout!r} {least!r}", max(alive, default=0)
    facts = Facts(index.file)
    try:
        known, upto = _known(facts, about)
        there = np.zeros(max(last, upto) + 1, bool)
        there[alive] = True
        known = known[there[known["first"]] & there[known["second"]]]
        yield known
        if upto >= last:
            return
        parts, room = [known], MOST - len(known)
        for part in close(*_vectors(index), upto, least):
            yield part
            room -= len(part)
            parts = [*parts, part] if room >= 0 else []
        if room >= 0:
            facts.keep("near", f"{about} {last}", np.concatenate(parts).tobytes())
    finally:
        facts.close()


def lasting(index: Index, type: str | None) -> Array:
    """By number, whether a memory is of a type (None: any), and neither archived nor expired."""
    ((last,),) = index.rows("SELECT coalesce(max(n), 0) FROM memories")
    query = (
        "SELECT n FROM memories WHERE status IS NOT 'archived' AND coalesce(type = ?, ? IS NULL) "
        "AND n NOT IN (SELECT memory FROM expiring WHERE at <= ?)"
    )
    may = np.zeros(last + 1, bool)
    may[[n for (n,) in index.rows(query, type, type, utc_now().timestamp())]] = True
    return may


def _known(facts: Facts, about: str) -> tuple[Array, int]:
    """The pairs that were found before, and the last number that was compared."""
    kept = facts.kept("near")
    if kept is None or kept[0].rpartition(" ")[0] != about:
        return np.zeros(0, PAIR), 0
    return np.frombuffer(kept[1], PAIR), int(kept[0].rpartition(" ")[2])


def close(numbers: Array, vectors: Array, upto: int, least: float) -> Iterator[Array]:
    """The pairs with a cosine over `least` of a vector beyond a number with any other. The numbers are in order."""
    first_new = int(np.searchsorted(numbers, upto, side="right"))
    total = len(numbers) - first_new
    at_once = max(_AT_ONCE // max(len(numbers), 1), 1)
    for start in range(first_new, len(numbers), at_once):
        tell("comparing", start - first_new, total)
        end = min(start + at_once, len(numbers))
        cosines = vectors[start:end] @ vectors[:end].T
        rows, others = np.nonzero(cosines > least)
        earlier = others < rows + start  # each pair once, and none with itself
        rows, others = rows[earlier], others[earlier]
        part = np.zeros(len(rows), PAIR)
        part["first"], part["second"] = numbers[others], numbers[rows + start]
        part["cosine"] = cosines[rows, others]
        yield part
    if total > 0:
        tell("comparing", total, total)


def _vectors(index: Index) -> tuple[Array, Array]:
    """The numbers of all memories that have a vector, in order, and those vectors, scaled to length 1."""
    columns = index.columns()
    chunks = np.flatnonzero(columns.alive)
    owners = columns.memory[chunks]
    order = np.argsort(owners, kind="stable")
    chunks, owners = chunks[order], owners[order]
    numbers, starts = np.unique(owners, return_index=True)
    stored = index.vectors()
    if not len(numbers) or not stored.shape[1]:
        return np.zeros(0, np.int64), np.zeros((0, stored.shape[1]), np.float32)
    sums: Any = np.add.reduceat(stored[chunks].astype(np.float32), starts, axis=0)
    lengths = np.linalg.norm(sums, axis=1)
    some = lengths > 0
    return numbers[some], sums[some] / lengths[some, None]
