"""The memories of an index as rows: what ranking needs to know of each, made of the index's columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from memlane.core.values import NamedTuple, dataclass, field
from memlane.index.columns import Array, Columns
from memlane.index.store import Index

K1, B = 0.9, 0.4  # BM25's
TIES = 1_000  # of memories that are equal, only so many are looked at together
NEIGHBOURS = (0.3, 0.2)  # shares of the next memory on either side, and of the second next
PASSED = 8  # filters that were asked with last, of which it is kept what passes them
KEPT = 500_000  # postings that are kept, of the terms asked for last: some 15 MB
_FEW_ROWS = 64
_SORTED = 1_000  # scores: sorting so many takes no longer than choosing which to sort


class Posted(NamedTuple):
    """The chunks that have a term, as far as they exist, and how much of what it can count there; then of memories."""

    chunks: Array
    shares: Array
    rows: Array
    row_shares: Array


class Passed(NamedTuple):
    """Whether each memory passes some filters, from one moment to another: then one expires."""

    rows: Array
    since: float
    until: float


@dataclass(slots=True)
class Layout:
    """The memories as rows: where the chunks of each begin and end, and which rows are neighbours.

    Made of columns and kept until they change; `state` tells when.
    """

    columns: Columns
    state: tuple[int, int]
    start: Array  # the first chunk of each memory
    end: Array
    row: Array  # of each chunk
    single: bool  # whether every memory has one chunk
    several: Array  # the rows of the memories that have more
    pieces: Array  # their chunks
    cuts: Array  # where those of each begin
    memory: Array  # its number in the index
    created: Array
    newest: float  # the last of these
    alive: Array  # of each chunk
    living: Array  # of each memory
    nearby: list[tuple[float, Array]]  # (share, the neighbour's row for each row); len(start) means none
    alone: Array  # whether it is one chunk, and no neighbour of any
    norm: Array  # BM25's length norm of each chunk
    whole_norm: Array  # the same of each memory as a whole
    total: tuple[int, int]  # chunks and memories that are alive
    mean_square: float  # of what the vectors have in common
    kept: dict[str, Posted] = field(default_factory=dict)  # the terms asked for last
    room: int = KEPT  # for more of them
    meant: dict[str, str] = field(default_factory=dict)  # what misspelt words were taken for
    passed: dict[str, Passed] = field(default_factory=dict)  # by filters

    @classmethod
    def of(cls, columns: Columns) -> Self:
        used = columns.used
        memory, alive, length = columns.memory[:used], columns.alive[:used], columns.length[:used]
        first = np.ones(used, np.bool_)
        first[1:] = memory[1:] != memory[:-1]
        start = np.flatnonzero(first)
        end = np.append(start[1:], used)
        row = np.cumsum(first) - 1
        none = len(start)
        size = end - start
        several = np.flatnonzero(size > 1)
        first_of, last_of = (
            columns.before.take(start),
            columns.after.take(end - 1),
        )  # neighbours of the first and the last chunk
        nearby: list[tuple[float, Array]] = []
        alone = size == 1
        if (first_of >= 0).any() or (last_of >= 0).any():  # else there is no conversation and no topic
            before, after = (np.append(np.where(chunk >= 0, row[chunk], none), none) for chunk in (first_of, last_of))
            alone &= (before[:-1] == none) & (after[:-1] == none)
            back, ahead = before[:-1], after[:-1]
            for share in NEIGHBOURS:
                nearby += [(share, back), (share, ahead)]
                back, ahead = before[back], after[ahead]
        whole = np.add.reduceat(length, start)
        sizes = size[several]
        return cls(
            columns,
            (used, columns.buried),
            start,
            end,
            row,
            none == used,
            several,
            np.flatnonzero((size > 1).take(row)),
            np.cumsum(sizes) - sizes,
            memory[start],
            columns.created[start],
            float(columns.created[:used].max(initial=-np.inf)),
            alive,
            alive[start],
            nearby,
            alone,
            _norm(length, alive),
            _norm(whole, alive[start]),
            (int(alive.sum()), int(alive[start].sum())),
            float(columns.mean @ columns.mean),
        )

    def best(self, scores: Array) -> Array:
        """The best score of each memory's chunks; not to be changed, since it may be what was given."""
        if self.single:
            return scores
        best: Array = scores.take(self.start)
        best[self.several] = np.maximum.reduceat(scores.take(self.pieces), self.cuts)
        return best

    def with_neighbours(self, scores: Array) -> Array:
        """The scores plus a share of each neighbour's; not to be changed, since it may be what was given."""
        if not self.nearby:
            return scores
        padded = np.append(scores, scores.dtype.type(0))
        total = scores.copy()
        for share, rows in self.nearby:
            total += np.float32(share) * padded[rows]
        return total

    def posted(self, index: Index, terms: Sequence[str]) -> list[Posted]:
        """Where each of these terms is."""
        if unknown := [term for term in terms if term not in self.kept]:
            found = index.postings(unknown)
            new = {term: self._posted(*found[term]) for term in unknown}
            known = {term: self.kept.pop(term) for term in terms if term not in new}
            self.kept |= known | new  # last, so that they stay
            self.room -= sum(map(_room, new.values()))
            while self.room < 0 and len(self.kept) > len(terms):
                self.room += _room(self.kept.pop(next(iter(self.kept))))
        return [self.kept[term] for term in terms]

    def _posted(self, chunks: Array, weights: Array) -> Posted:
        if self.total[0] < len(self.row) or (len(chunks) and chunks[-1] >= len(self.row)):
            kept = chunks < len(self.row)
            kept[kept] = self.alive[chunks[kept]]
            chunks, weights = chunks[kept], weights[kept]
        shares = weights / (weights + self.norm[chunks])
        if self.single or not len(chunks):
            return Posted(chunks, shares, chunks, shares)
        rows = self.row[chunks]  # in order, as the chunks are
        at = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        rows, whole = rows[at], np.add.reduceat(weights, at)
        return Posted(chunks, shares, rows, whole / (whole + self.whole_norm[rows]))

    def passing(self, index: Index, filters: Mapping[str, Any], now: datetime) -> Array:
        """Whether each memory may be found by a question with these filters; not to be changed.

        Who asks again mostly asks with the same ones, so that the last answers are kept.
        """
        if not filters:
            return self.living
        asked, moment = repr(filters), now.timestamp()
        known = self.passed.pop(asked, None)
        if known is None or not known.since <= moment < known.until:
            passing = index.passing({**filters, "now": now})
            rows = self.living if passing is None else self.living & passing[self.start]
            [(end,)] = index.rows("SELECT min(at) FROM expiring WHERE at > ?", moment)
            known = Passed(rows, moment, math.inf if end is None else end)
            if len(self.passed) >= PASSED:
                self.passed.pop(next(iter(self.passed)))
        self.passed[asked] = known  # last, so that it stays
        return known.rows

    def having(self, index: Index, term: str) -> Array:
        """Whether each memory has a term."""
        has = np.zeros(len(self.start), np.bool_)
        has[self.posted(index, [term])[0].rows] = True
        return has


def _room(posted: Posted) -> int:
    """How many postings a term counts for: four arrays take room even where they are empty."""
    return len(posted.chunks) + 64


def least_of_best(scores: Array, count: int) -> float:
    """The last of so many best scores; 0 where fewer are above 0.

    Most of a large bank fits a query equally badly, and numpy's partition is slow where many are equal. So the best of
    every few rows come first: what is below the last of so many of those is not looked at again.
    """
    if len(scores) <= count:
        return 0.0
    few = min(len(scores) // (4 * count), _FEW_ROWS)
    if few > 1 and len(scores) > _SORTED:
        groups = np.sort(scores[: len(scores) // few * few].reshape(few, -1).max(axis=0))
        bound = max(float(groups[-count]), 0.0)
        scores = scores[scores > bound]
        if len(scores) < count:
            return bound
    return max(float(np.sort(scores)[-count]), 0.0)


def _norm(lengths: Array, alive: Array) -> Array:
    mean = float(lengths[alive].mean()) if alive.any() else 1.0
    norm: Array = (K1 * (1 - B + B * lengths / max(mean, 1e-9))).astype(np.float32)
    return norm


_layouts: WeakKeyDictionary[Index, Layout] = WeakKeyDictionary()


def layout_of(index: Index, columns: Columns) -> Layout:
    known = _layouts.get(index)
    if known is None or known.columns is not columns or known.state != (columns.used, columns.buried):
        known = _layouts[index] = Layout.of(columns)
    return known


def best_of(scores: Array, count: int, floor: float = 1e-30) -> Array:
    """The rows with the best scores from `floor` on; all that are equal to the last, or none where these are many."""
    least = max(least_of_best(scores, count), floor)
    rows = np.flatnonzero(scores >= least)
    return rows if len(rows) <= TIES else np.flatnonzero(scores > least)
