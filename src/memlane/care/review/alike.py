"""Which memories say nearly the same as another, of a whole bank. What was found is kept, and only what has changed
since is compared with the rest.

Memories are taken by the number of their words, then by id. Each is matched with the one before it that shares most of
its words, of those that are not matched themselves: so a text that is there many times stands for all of them. Words
are numbers here, the first eight bytes of a digest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
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
            of[place], share[place] = self._best(place, shares, np.flatnonzero((shares > 0) & earlier & (of == NONE)))
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

    def _best(self, place: int, shares: Array, others: Array) -> tuple[int, float]:
        """The one of these that shares most, the first of several; what it is a sibling of does not count."""
        for at in np.lexsort((self._order[others], -shares[others])):
            if not self._are_siblings(place, int(others[at])):
                return int(others[at]), float(shares[others[at]])
        return NONE, 0.0

    def all(self) -> Matches:
        """The matches, all of them worked out anew.

        Two such texts must share some of their rarest words, so only those are looked up; and a text that is like an
        earlier one is not compared again. So the cost grows with the number of texts, not with its square.
        """
        of, share = self._found
        of[:], share[:] = np.where(self._compared, NONE, APART), 0.0
        chosen = np.flatnonzero(self._compared)
        _, dense, counts = np.unique(self._known.words, return_inverse=True, return_counts=True)
        rarity = np.argsort(np.argsort(counts, kind="stable"))[dense]  # the rarest word is 0
        starts, sizes = self._ends - self._known.sizes, self._known.sizes.tolist()
        holders: defaultdict[int, list[int]] = defaultdict(list)  # the texts with this rare word
        needed: dict[int, int] = {}  # how many rare words of it another text must share
        for place in map(int, chosen[np.argsort(self._order[chosen])]):
            own = np.sort(rarity[starts[place] : self._ends[place]]).tolist()
            enough = float(self._enough[place])
            least = ceil(enough * len(own) - 1e-9)  # words that both must have
            needed[place] = min(FEW, least)
            rarest = own[: len(own) - least + needed[place]]
            shared_rare = Counter(other for word in rarest for other in holders[word])
            words, shares = {*own}, {}
            for other in [other for other, times in shared_rare.items() if times >= needed[other]]:
                if sizes[other] < least:
                    continue  # it has fewer words than they must have in common
                common = len(words.intersection(rarity[starts[other] : self._ends[other]].tolist()))
                share_of_both = common / (len(own) + sizes[other] - common)
                if share_of_both >= enough:
                    shares[other] = share_of_both
            for other in sorted(shares, key=lambda other: (-shares[other], self._order[other])):
                if not self._are_siblings(place, other):
                    of[place], share[place] = other, shares[other]
                    break
            else:
                for word in rarest:
                    holders[word].append(place)
        return self._found
