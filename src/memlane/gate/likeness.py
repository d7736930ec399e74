"""How alike two texts are, and which pairs of a collection are similar: `alike` lists them all.

Which one of very many a new text is too much like is up to `lookalikes`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import compress
from operator import le

from memlane.core.patterns import lazily
from memlane.core.progress import tell

_STOP_WORDS = frozenset(
    "a an and are as at be by for from has have in is it its of on or that the this to was were will with".split()
)
_WORD = lazily(r"[^\W_]+")
# Of ASCII, each letter and digit in lower case, and a space for everything else.
_SPACED = bytes(ord(char.lower()) if (char := chr(code)).isalnum() and code < 128 else 32 for code in range(256))
FEW = 3  # with fewer words an overlap says nothing
ROUNDING = 1e-6
_ONES = bytes(code.bit_count() for code in range(256))
_NARROW = 31  # bytes whose bits are counted in one


def tokens(text: str) -> frozenset[str]:
    """The words of a text in lower case, letters and digits of any script, without the commonest English ones."""
    if text.isascii():  # twice as quick, and most are
        return frozenset(text.encode().translate(_SPACED).decode().split()) - _STOP_WORDS
    return frozenset(_WORD.findall(text.lower())) - _STOP_WORDS


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of the smaller set's words that both have; 0 when one of them is too small to say anything."""
    if len(a) < FEW or len(b) < FEW:
        return 0.0
    return len(a & b) / min(len(a), len(b))


def ratio(new: str, old: str) -> float:
    """difflib's ratio of two texts, ignoring case."""
    from difflib import SequenceMatcher

    return SequenceMatcher(None, new.lower(), old.lower()).ratio()


def lengths_allow(a: int, b: int, least: float) -> bool:
    """Whether the ratio of texts of these lengths can reach `least`."""
    return 2 * min(a, b) >= least * (a + b) - ROUNDING


class Row:
    """Texts side by side in one int, to bound their ratios to another text all at once.

    The bound is 2 × longest common subsequence / both lengths, a whole row of the usual table at once (Hyyrö 2004).
    Each text has a field of `width` bytes, whose highest bit is free, so that no carry reaches the next field.
    """

    def __init__(self, texts: Sequence[str], width: int) -> None:
        self._width, self._lengths = width, [len(text) for text in texts]
        self._bytes = width * len(texts)
        rows: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(self._bytes))
        for field, text in enumerate(texts):
            for bit, char in enumerate(text, field * width * 8):
                rows[char][bit >> 3] |= 1 << (bit & 7)
        self._places = {char: int.from_bytes(row, "little") for char, row in rows.items()}
        self._limits: tuple[tuple[int, float], list[int]] = (-1, 0.0), []  # for texts of one size, as they come sorted
        self._full = sum(((1 << size) - 1) << field * width * 8 for field, size in enumerate(self._lengths))

    def bounds(self, text: str, first: int = 0) -> Iterator[float]:
        """The largest ratio that is possible with each text of the row, from place `first` on."""
        data, width = self._rest(text), self._width
        for field in range(first, len(self._lengths)):
            size = self._lengths[field]
            missing = int.from_bytes(data[field * width : (field + 1) * width], "little").bit_count()
            yield _bound(size, missing, len(text))

    def reaching(self, text: str, least: float, first: int = 0) -> Iterator[tuple[int, float]]:
        """Those of the `bounds` that reach `least`, with their places: much quicker, as nearly none do."""
        if self._width > _NARROW:
            places = enumerate(self.bounds(text, first), first)
            return ((field, most) for field, most in places if most >= least)
        ones, width, size = self._rest(text).translate(_ONES), self._width, len(text)
        # the sums of all fields at once, a byte for each
        total = sum(int.from_bytes(ones[at::width], "little") for at in range(width))
        missing = total.to_bytes(len(self._lengths), "little")
        if self._limits[0] != (size, least):
            most = {own: _most_missing(own, size, least) for own in {*self._lengths}}
            self._limits = (size, least), [most[own] for own in self._lengths]
        found = compress(range(len(missing)), map(le, missing, self._limits[1]))
        return ((field, _bound(self._lengths[field], missing[field], size)) for field in found if field >= first)

    def _rest(self, text: str) -> bytes:
        """The table's last row: the bits of what is missing from the common subsequences."""
        rest, full, place = self._full, self._full, self._places.get
        for char in text:
            if match := rest & place(char, 0):
                rest = (rest + match | rest - match) & full
        return rest.to_bytes(self._bytes, "little")


def _bound(size: int, missing: int, other: int) -> float:
    return 2.0 * (size - missing) / (size + other) if size + other else 1.0


def _most_missing(size: int, other: int, least: float) -> int:
    """How much may be missing so that the bound still reaches `least`; -1 when nothing may."""
    missing = min(int(max(size - least * (size + other) / 2, 0)) + 1, size)  # one more, because of rounding
    while missing >= 0 and _bound(size, missing, other) < least:
        missing -= 1
    return missing


# -- all pairs


def alike(texts: Sequence[str], least: float, new: Collection[int] | None = None) -> Iterator[tuple[int, int, float]]:
    """(place, later place, score) of all pairs whose score reaches `least`, in no order; of those alone that have one
    of the places `new` in them, where these are given.

    The score is the larger of word overlap and sequence ratio, which is ratio(text, later text).
    """
    from difflib import SequenceMatcher

    new = range(len(texts)) if new is None else {*new}
    if not new:
        return iter(())
    words = [tokens(text) for text in texts]
    lowered = [text.lower() for text in texts]
    scores = dict(_overlapping(words, least, new))
    matcher = SequenceMatcher()
    for at, later, most in sorted(_maybe_alike(lowered, least, new), key=lambda pair: pair[1]):
        score = overlap(words[at], words[later])
        if most > score:
            matcher.set_seqs(lowered[at], lowered[later])  # remembers its analysis while the later text is the same
            score = max(score, matcher.ratio())
        if score >= least:
            scores[at, later] = score
    return ((at, later, score) for (at, later), score in scores.items())


def _overlapping(
    words: Sequence[frozenset[str]], least: float, new: Collection[int]
) -> Iterator[tuple[tuple[int, int], float]]:
    """The pairs that share a word and overlap enough."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at in sorted(range(len(words)), key=lambda at: at in new):  # the new ones last: all others are filed by then
        shared: Counter[int] = Counter()
        for word in words[at]:
            if at in new:
                shared.update(places[word])
            places[word].append(at)
        for other, times in shared.items():
            small = min(len(words[at]), len(words[other]))
            if small >= FEW and times / small >= least:
                yield (min(at, other), max(at, other)), times / small


_ROW = 1 << 13  # bytes
_MANY = 20_000  # pairs that take a while


def _maybe_alike(lowered: Sequence[str], least: float, new: Collection[int]) -> Iterator[tuple[int, int, float]]:
    """The pairs whose ratio may be large enough, with a bound of it: rows of new texts, with each other text.

    Tells how far it is, since very many take minutes.
    """
    by_size = sorted(range(len(lowered)), key=lambda at: len(lowered[at]))
    others = [at for at in by_size if at not in new]
    by_size = [at for at in by_size if at in new]
    end = len(by_size)
    done, total = 0, end * (end - 1) // 2 + end * len(others)
    while end:
        largest = len(lowered[by_size[end - 1]])
        width = largest // 8 + 1
        # much shorter ones would waste most of their fields
        short = bisect_left(by_size, largest * 3 // 4, hi=end - 1, key=lambda at: len(lowered[at]))
        start = max(end - max(_ROW // width, 1), short)
        members = by_size[start:end]
        row = Row([lowered[at] for at in members], width)
        smallest = len(lowered[members[0]])
        for place, at in enumerate((*by_size[:end], *others)):
            first = max(place - start + 1, 0) if place < end else 0  # a pair within the row is met once
            done += len(members) - first
            if total >= _MANY:
                tell("comparing", done, total)
            size = len(lowered[at])
            nearest = min(max(size, smallest), largest)
            if not lengths_allow(size, nearest, least):
                continue
            for field, most in row.reaching(lowered[at], least, first):
                yield min(at, members[field]), max(at, members[field]), most
        end = start
