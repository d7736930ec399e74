"""Which memories say nearly the same as another, of a whole bank. What was found is kept, and only what has changed
since is compared with the rest.

Memories are taken by the number of their words, then by id. Each is matched with the one before it that shares most of
its words, of those that are not matched themselves: so a text that is there many times stands for all of them. Words
are numbers here, the first eight bytes of a digest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache, cached_property
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from memlane.care.review.reading import ALIKE, ALIKE_SHORT, FEW, SHORT

Array = np.ndarray[Any, Any]
MOST = 300  # memories that are compared with all others one by one; of more, the rare words are looked up
NONE, APART = -1, -2  # in place of a match: it has none; it is not compared
_FORM = 1  # another number when something else is kept
_AT_ONCE = 500  # texts whose bits are set together


@cache
def number(word: str) -> int:
    """A word as a number."""
    return int.from_bytes(blake2b(word.encode(errors="replace"), digest_size=8).digest(), "little")


class Texts(NamedTuple):
    """What is compared of many memories: an entry of each array, and in `words` as many as `sizes` says."""

    keys: Array  # the memory as it is: another number when it changes
    same: Array  # of the whole text, blanks aside
    sizes: Array
    words: Array

    def chosen(self, which: Array) -> Texts:
        return Texts(self.keys[which], self.same[which], self.sizes[which], self.words[np.repeat(which, self.sizes)])

    def joined(self, others: Texts) -> Texts:
        return Texts(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


class Matches(NamedTuple):
    """Of each memory, the place of the one that it is matched with, or NONE or APART, and the share of words."""

    of: Array
    share: Array


def texts(keys: list[int], same: list[int], sizes: list[int], words: Any) -> Texts:
    return Texts(np.array(keys, "<u8"), np.array(same, "<u8"), np.array(sizes, "<i8"), np.array(words, "<u8"))


def packed(known: Texts, found: Matches) -> bytes:
    """All of it, to be kept."""
    head = np.array([_FORM, len(known.keys), len(known.words)], "<i8")
    return b"".join(np.ascontiguousarray(part).tobytes() for part in (head, *known, found.of, found.share))


def unpacked(data: bytes | None) -> tuple[Texts, Matches]:
    """What was kept; nothing where it is not as it was written."""
    form, count, size = np.frombuffer(data, "<i8", 3).tolist() if data and len(data) >= 24 else (0, 0, 0)
    if data is None or form != _FORM or len(data) != 24 + 40 * count + 8 * size:
        return texts([], [], [], []), Matches(np.zeros(0, "<i8"), np.zeros(0, "<f8"))
    parts, at = [], 24
    for kind, length in (("<u8", count), ("<u8", count), ("<i8", count), ("<u8", size), ("<i8", count), ("<f8", count)):
        parts.append(np.frombuffer(data, kind, length, at))
        at += 8 * length
    return Texts(*parts[:4]), Matches(*parts[4:])


def matched(
    known: Texts, before: Matches, compared: Array, rank: Array, are_siblings: Callable[[int, int], bool]
) -> Matches:
    """The matches of all texts that are `compared`, of which some were matched before.

    `rank` is the order of their ids; siblings are never matched.
    """
    work = _Work(known, Matches(before.of.copy(), before.share.copy()), compared, rank, are_siblings)
    return work.few() or work.all()


class _Work:
    def __init__(
        self, known: Texts, found: Matches, compared: Array, rank: Array, are_siblings: Callable[[int, int], bool]
    ) -> None:
        self._known, self._found, self._compared, self._are_siblings = known, found, compared, are_siblings
        self._order = known.sizes << 32 | rank
        self._ends = np.cumsum(known.sizes)
        self._enough = np.where(known.sizes <= SHORT, ALIKE_SHORT, ALIKE)

    def _words(self, place: int) -> Array:
        end = int(self._ends[place])
        return self._known.words[end - int(self._known.sizes[place]) : end]

    def few(self) -> Matches | None:
        """The matches when few have changed; None when there are too many of them."""
        of, share = self._found
        compared = self._compared
        was_first = (of == NONE) & compared
        lost = (of >= 0) & ~compared[np.maximum(of, 0)]  # what it was matched with is no longer there
        due = np.flatnonzero(compared & ((of == APART) | lost))
        of[~compared], share[~compared] = APART, 0.0
        if len(due) > MOST:
            return None
        waiting = [(int(self._order[place]), int(place)) for place in due]
        heapify(waiting)
        planned = {place for _, place in waiting}
        of[due] = APART
        for _ in range(MOST):
            if not waiting:
                return self._found
            _, place = heappop(waiting)
            shares = self._shares(place)
            earlier = self._order < self._order[place]
            others = np.flatnonzero((shares > 0) & earlier & (of == NONE))
            of[place], share[place] = self._best(place, others, shares[others])
            later: Any = ()
            if of[place] == NONE and not was_first[place]:
                later = np.flatnonzero((shares > 0) & ~earlier & ((of == NONE) | (shares >= share)))
            elif of[place] != NONE and was_first[place]:
                later = np.flatnonzero(of == place)
            for other in map(int, later):
                if other not in planned:
                    planned.add(other)
                    heappush(waiting, (int(self._order[other]), other))
        return None

    def _shares(self, place: int) -> Array:
        """The share of words that each other has in common with one, 0 where it is too small."""
        own, sizes = np.sort(self._words(place)), self._known.sizes
        at = np.minimum(np.searchsorted(own, self._known.words), len(own) - 1)
        sums = np.concatenate([[0], np.cumsum(own[at] == self._known.words)])
        common = sums[self._ends] - sums[self._ends - sizes]
        shares: Array = common / np.maximum(sizes + sizes[place] - common, 1)
        enough = np.where(self._order > self._order[place], self._enough, self._enough[place])
        shares[(shares < enough) | ~self._compared] = 0.0
        shares[place] = 0.0
        return shares

    def _best(self, place: int, others: Array, shares: Array) -> tuple[int, float]:
        """The one of these that shares most, the first of several; what it is a sibling of does not count."""
        for at in np.lexsort((self._order[others], -shares)):
            if not self._are_siblings(place, int(others[at])):
                return int(others[at]), float(shares[at])
        return NONE, 0.0

    def all(self) -> Matches:
        """The matches, all of them worked out anew.

        Two such texts must share some of their rarest words, so those are looked up; and a text that is like an
        earlier one is not compared again. Where texts are made of few words, rare ones are in thousands of them: then
        it is sooner to look at a few bits of each text. Either way only what may be alike is compared word by word.
        """
        of, share = self._found
        of[:], share[:] = np.where(self._compared, NONE, APART), 0.0
        chosen = np.flatnonzero(self._compared)
        chosen = chosen[np.argsort(self._order[chosen])]
        _, dense, counts = np.unique(self._known.words, return_inverse=True, return_counts=True)
        rarity = np.argsort(np.argsort(counts, kind="stable"))[dense]  # the rarest word is 0
        starts, sizes = self._ends - self._known.sizes, self._known.sizes
        holders: defaultdict[int, list[int]] = defaultdict(list)  # the texts with this rare word
        needed: dict[int, int] = {}  # how many rare words of it another text must share
        earlier = _Earlier(dense, starts[chosen], sizes[chosen])
        is_own = np.zeros(len(counts), bool)
        for row, place in enumerate(chosen.tolist()):
            own = np.sort(rarity[starts[place] : self._ends[place]])
            enough = float(self._enough[place])
            least = ceil(enough * len(own) - 1e-9)  # words that both must have
            needed[place] = min(FEW, least)
            rarest = own[: len(own) - least + needed[place]].tolist()
            if sum(len(holders[word]) for word in rarest) > earlier.effort(least):
                others = chosen[earlier.near(row, least, enough)]
            else:
                shared_rare = Counter(other for word in rarest for other in holders[word])
                found = [other for other, times in shared_rare.items() if times >= needed[other]]
                others = np.array(found, np.int64)
                others = others[sizes[others] >= least]  # with fewer, they cannot have as many in common
            if len(others):
                is_own[own] = True
                at = _spread(starts[others], sizes[others])
                common = np.add.reduceat(is_own[rarity[at]], np.cumsum(sizes[others]) - sizes[others], dtype=np.int64)
                is_own[own] = False
                shares = common / (len(own) + sizes[others] - common)
                like = shares >= enough
                of[place], share[place] = self._best(place, others[like], shares[like])
            if of[place] == NONE:
                earlier.add(row)
                for word in rarest:
                    holders[word].append(place)
        return self._found


class _Earlier:
    """The texts that others may be matched with, so far, as bits: a word is one of them, and several words share it.

    Texts are known by their row, in the order in which they are taken: the shortest first.
    """

    def __init__(self, words: Array, starts: Array, sizes: Array) -> None:
        self._words, self._starts, self._sizes = words, starts, sizes
        self._rows = np.empty(len(sizes), np.int64)
        self._lengths: list[int] = []  # of each of them
        self._filled = 0  # so many of them are in the columns
        typical = float(np.median(sizes)) if len(sizes) else 0.0
        self._width = next((width for width in (4, 16, 64) if 16 * width >= typical), 128)  # times 64 bits

    def effort(self, least: int) -> float:
        """What `near` costs, in entries of a list that are counted meanwhile."""
        return 500 + 50 * self._width + (len(self._lengths) - bisect_left(self._lengths, least)) * self._width / 32

    def add(self, row: int) -> None:
        self._rows[len(self._lengths)] = row
        self._lengths.append(int(self._sizes[row]))

    def near(self, row: int, least: int, enough: float) -> Array:
        """The rows of those of at least so many words that may be alike: every one that is, and few others."""
        begin, end = bisect_left(self._lengths, least), len(self._lengths)
        self._columns[:, self._filled : end] = self._bits[self._rows[self._filled : end]].T
        self._filled = end
        both = np.zeros(end - begin, np.uint16)
        for column, own in zip(self._columns, self._bits[row], strict=True):
            both += np.bitwise_count(column[begin:end] & own)
        # A bit that only one of them has is a word that the other has not.
        size = int(self._sizes[row])
        rest = size - int(self._counts[row])
        may = np.flatnonzero(both >= max(least - rest, 0))
        rows = self._rows[begin:end][may]
        sizes, common = self._sizes[rows], both[may].astype(np.int64)
        most = common + np.minimum(rest, sizes - self._counts[rows])
        near: Array = rows[most >= enough * (size + sizes - most) - 1e-9]
        return near

    @cached_property
    def _bits(self) -> Array:
        bits = np.empty((len(self._sizes), self._width), "<u8")
        for start in range(0, len(bits), _AT_ONCE):
            sizes = self._sizes[start : start + _AT_ONCE]
            has = np.zeros((len(sizes), 64 * self._width), bool)
            words = self._words[_spread(self._starts[start : start + _AT_ONCE], sizes)]
            has[np.repeat(np.arange(len(sizes)), sizes), words % (64 * self._width)] = True
            bits[start : start + _AT_ONCE] = np.packbits(has, axis=1).view("<u8")
        return bits

    @cached_property
    def _columns(self) -> Array:
        return np.empty((self._width, len(self._sizes)), "<u8")

    @cached_property
    def _counts(self) -> Array:
        counts: Array = np.bitwise_count(self._bits).sum(1, dtype=np.int64)
        return counts


def _spread(starts: Array, sizes: Array) -> Array:
    """The places of all words of these texts, one text after the other."""
    places: Array = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    return places
