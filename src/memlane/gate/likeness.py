"""How alike two texts are, and which of very many is too much like a new one without comparing it with each.

`alike` lists all similar pairs of a collection. `Lookalikes.find` gives the verdict of a plain loop over all texts, but
sooner: it keeps bit columns, ints with one bit per text, so that one `&` or `|` works on all texts at once, and sums
and comparisons go digit by digit, as on paper. Two bounds that every near-duplicate meets leave a handful of texts for
the exact measures.

Knows nothing of the vault, and keeps nothing on disk.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import count, pairwise, zip_longest
from operator import or_

from memlane.core.patterns import lazily

_STOP_WORDS = frozenset(
    "a an and are as at be by for from has have in is it its of on or that the this to was were will with".split()
)
_WORD = lazily(r"[^\W_]+")
_FEW = 3  # with fewer words an overlap says nothing
_ROUNDING = 1e-6


def tokens(text: str) -> frozenset[str]:
    """The words of a text in lower case, letters and digits of any script, without the commonest English ones."""
    return frozenset(_WORD.findall(text.lower())) - _STOP_WORDS


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of the smaller set's words that both have; 0 when one of them is too small to say anything."""
    if len(a) < _FEW or len(b) < _FEW:
        return 0.0
    return len(a & b) / min(len(a), len(b))


def ratio(new: str, old: str) -> float:
    """difflib's ratio of two texts, ignoring case."""
    from difflib import SequenceMatcher

    return SequenceMatcher(None, new.lower(), old.lower()).ratio()


def _lengths_allow(a: int, b: int, least: float) -> bool:
    """Whether the ratio of texts of these lengths can reach `least`."""
    return 2 * min(a, b) >= least * (a + b) - _ROUNDING


class _Row:
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
        self._full = sum(((1 << size) - 1) << field * width * 8 for field, size in enumerate(self._lengths))

    def bounds(self, text: str, first: int = 0) -> Iterator[float]:
        """The largest ratio that is possible with each text of the row, from place `first` on."""
        rest, full, place = self._full, self._full, self._places.get
        for char in text:
            if match := rest & place(char, 0):
                rest = (rest + match | rest - match) & full
        data, width = rest.to_bytes(self._bytes, "little"), self._width
        for field in range(first, len(self._lengths)):
            size = self._lengths[field]
            missing = int.from_bytes(data[field * width : (field + 1) * width], "little").bit_count()
            yield 2.0 * (size - missing) / (size + len(text)) if size + len(text) else 1.0


# -- all pairs


def alike(texts: Sequence[str], least: float) -> Iterator[tuple[int, int, float]]:
    """(place, later place, score) of all pairs whose score reaches `least`, in no order.

    The score is the larger of word overlap and sequence ratio, which is ratio(text, later text).
    """
    from difflib import SequenceMatcher

    words = [tokens(text) for text in texts]
    lowered = [text.lower() for text in texts]
    scores = dict(_overlapping(words, least))
    matcher = SequenceMatcher()
    for at, later, most in sorted(_maybe_alike(lowered, least), key=lambda pair: pair[1]):
        score = overlap(words[at], words[later])
        if most > score:
            matcher.set_seqs(lowered[at], lowered[later])  # remembers its analysis while the later text is the same
            score = max(score, matcher.ratio())
        if score >= least:
            scores[at, later] = score
    return ((at, later, score) for (at, later), score in scores.items())


def _overlapping(words: Sequence[frozenset[str]], least: float) -> Iterator[tuple[tuple[int, int], float]]:
    """The pairs that share a word and overlap enough."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at in range(len(words) - 1, -1, -1):
        shared: Counter[int] = Counter()
        for word in words[at]:
            shared.update(places[word])
            places[word].append(at)
        for later, times in shared.items():
            small = min(len(words[at]), len(words[later]))
            if small >= _FEW and times / small >= least:
                yield (at, later), times / small


_ROW = 1 << 13  # bytes


def _maybe_alike(lowered: Sequence[str], least: float) -> Iterator[tuple[int, int, float]]:
    """The pairs whose ratio may be large enough, with a bound of it."""
    by_size = sorted(range(len(lowered)), key=lambda at: len(lowered[at]))
    end = len(by_size)
    while end:
        width = len(lowered[by_size[end - 1]]) // 8 + 1
        start = max(end - max(_ROW // width, 1), 0)
        members = by_size[start:end]
        row = _Row([lowered[at] for at in members], width)
        smallest = len(lowered[members[0]])
        for place, at in enumerate(by_size[:end]):
            size = len(lowered[at])
            if size < smallest and not _lengths_allow(size, smallest, least):
                continue
            first = max(place - start + 1, 0)  # a pair within the row is met once
            for other, most in zip(members[first:], row.bounds(lowered[at], first), strict=True):
                if most >= least:
                    yield min(at, other), max(at, other), most
        end = start


# -- one new text against many


class Lookalikes:
    """Texts by key, to ask which one a new text is a near-duplicate of.

    The columns are built once they pay off: a process that asks once or twice (a command, a hook) is answered sooner
    by looking at each text.
    """

    def __init__(self, ratio_from: float, overlap_from: float, patience: int = 4) -> None:
        self.ratio_from, self.overlap_from = ratio_from, overlap_from
        self._texts: dict[str, tuple[int, str]] = {}
        self._turn = count()
        self._patience = patience  # how many questions are answered without columns: building costs as much as these
        self._words = _Words(overlap_from)
        self._shelves: list[_Shelf] = [
            *(_Short(ratio_from, low, high) for low, high in pairwise(_LENGTHS)),
            _Long(ratio_from, _LENGTHS[-1], 1 << 62),
        ]

    def fill(self, texts: Iterable[tuple[str, str]]) -> None:
        """Add many texts to an empty collection at once."""
        self._texts = {key: (next(self._turn), text) for key, text in texts}

    def add(self, key: str, text: str) -> None:
        self.remove(key)
        self._texts[key] = next(self._turn), text
        if self._patience < 0:
            self._words.add(key, text)
            self._shelf(text).add(key, text)

    def remove(self, key: str) -> None:
        if key in self._texts:
            _, text = self._texts.pop(key)
            if self._patience < 0:
                self._words.remove(key)
                self._shelf(text).remove(key)

    def find(self, text: str, unless: Callable[[str, str], bool] | None = None) -> tuple[str, float] | None:
        """(key, score) of the text that was added first of those that are near-duplicates of this one.

        Those for which `unless(key, text)` is true do not count.
        """
        return next((like for like in self._alike(text) if not (unless and unless(like[0], self.text(like[0])))), None)

    def text(self, key: str) -> str:
        return self._texts[key][1]

    def _alike(self, text: str) -> Iterator[tuple[str, float]]:
        if self.overlap_from <= 0:
            yield from ((key, 0.0) for key in self._texts)
            return
        words, lowered = tokens(text), text.lower()
        row = _Row([lowered], len(lowered) // 8 + 1)
        for key in self._candidates(text):
            _, old = self._texts[key]
            if (score := overlap(words, tokens(old))) >= self.overlap_from:
                yield key, score
                continue
            low = old.lower()
            if _lengths_allow(len(lowered), len(low), self.ratio_from) and next(row.bounds(low)) >= self.ratio_from:
                score = ratio(text, old)
                if score >= self.ratio_from:
                    yield key, score

    def _candidates(self, text: str) -> Iterable[str]:
        """The keys to look at, in the order in which they were added."""
        if self._patience >= 0:
            self._patience -= 1
            if self._patience >= 0:
                return list(self._texts)
            self._build()
        keys = set(self._words.candidates(text))
        for shelf in self._shelves:
            keys.update(shelf.candidates(text))
        return sorted(keys, key=self._texts.__getitem__)

    def _build(self) -> None:
        entries = [(key, text) for key, (_, text) in self._texts.items()]
        self._words.fill(entries)
        by_shelf: defaultdict[_Shelf, list[tuple[str, str]]] = defaultdict(list)
        for entry in entries:
            by_shelf[self._shelf(entry[1])].append(entry)
        for shelf, own in by_shelf.items():
            shelf.fill(own)

    def _shelf(self, text: str) -> _Shelf:
        size = len(text.lower())
        return next(shelf for shelf in self._shelves if size < shelf.high)


# -- bit columns

_DIGITS = 24
_NEED, _SHARE, _SPARE = (-place * _DIGITS for place in (1, 2, 3))  # columns of a text's own numbers


class _Columns:
    """Columns of bits, one bit per text. A subclass says which bits a text has, and asks for candidates."""

    def __init__(self) -> None:
        self._columns: dict[int, int] = {}
        self._slots: list[tuple[str, str] | None] = []
        self._slot_of: dict[str, int] = {}
        self._alive = 0

    def bits(self, text: str) -> Iterable[int]:
        """The numbers of the columns in which a text has its bit."""
        raise NotImplementedError

    def fill(self, texts: Sequence[tuple[str, str]]) -> None:
        self._slots = list(texts)
        self._slot_of = {key: slot for slot, (key, _) in enumerate(texts)}
        self._alive = (1 << len(texts)) - 1
        rows: defaultdict[int, bytearray] = defaultdict(lambda: bytearray(len(texts) // 8 + 1))
        for slot, (_, text) in enumerate(texts):
            at, bit = slot >> 3, 1 << (slot & 7)
            for number in self.bits(text):
                rows[number][at] |= bit
        self._columns = {number: int.from_bytes(row, "little") for number, row in rows.items()}

    def add(self, key: str, text: str) -> None:
        bit = 1 << len(self._slots)
        self._slot_of[key] = len(self._slots)
        self._slots.append((key, text))
        self._alive |= bit
        for number in self.bits(text):
            self._columns[number] = self._columns.get(number, 0) | bit

    def remove(self, key: str) -> None:
        slot = self._slot_of.pop(key)
        self._slots[slot] = None
        self._alive ^= 1 << slot
        if len(self._slots) > 2 * len(self._slot_of) + 64:
            self.fill([entry for entry in self._slots if entry])

    def keys(self, bits: int) -> Iterator[str]:
        """The keys of the texts whose bits are set."""
        bits &= self._alive
        while bits:
            lowest = bits & -bits
            if entry := self._slots[lowest.bit_length() - 1]:
                yield entry[0]
            bits ^= lowest

    # Numbers, one per text, are lists of columns with the lowest digit first.

    def _number(self, value: int) -> list[int]:
        return [self._alive if value >> digit & 1 else 0 for digit in range(value.bit_length())]

    def _stored(self, base: int) -> list[int]:
        number = [self._columns.get(base + digit, 0) for digit in range(_DIGITS)]
        while number and not number[-1]:
            number.pop()
        return number


def _digits(base: int, value: int) -> Iterator[int]:
    """The columns that store a text's number."""
    return (base + digit for digit in range(value.bit_length()) if value >> digit & 1)


def _total(columns: Iterable[int]) -> list[int]:
    """How many of the columns have each text's bit. Three columns of a digit become one and a carry."""
    number, digit = [], list(columns)
    while digit:
        carries = []
        while len(digit) > 1:
            a, b, c = digit.pop(), digit.pop(), digit.pop() if digit else 0
            either = a ^ b
            digit.append(either ^ c)
            carries.append(a & b | either & c)
        number += digit
        digit = carries
    return number


def _plus(a: list[int], b: list[int]) -> list[int]:
    carry, number = 0, []
    for x, y in zip_longest(a, b, fillvalue=0):
        either = x ^ y
        number.append(either ^ carry)
        carry = x & y | carry & either
    return [*number, carry] if carry else number


def _at_least(a: list[int], b: list[int], everywhere: int) -> int:
    """Where a >= b."""
    result = everywhere
    for x, y in zip_longest(a, b, fillvalue=0):
        differ = x ^ y
        result = (result | differ) ^ differ | x & differ
    return result


# -- word overlap

_BUCKETS = 2048


class _Words(_Columns):
    """Texts that may share enough words. Words fall into buckets, so that columns stay few; that only adds bits."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self._least = least

    def bits(self, text: str) -> Iterator[int]:
        words = tokens(text)
        if len(words) >= _FEW:
            yield from {hash(word) % _BUCKETS for word in words}
            yield from _digits(_NEED, self._need(len(words)))

    def candidates(self, text: str) -> Iterator[str]:
        words = tokens(text)
        if len(words) < _FEW or not self._slot_of:
            return
        shared = _total(self._columns.get(hash(word) % _BUCKETS, 0) for word in words)
        # An old text of fewer than three words has no bit anywhere: it shares none, and at least one is needed.
        enough_for_new = _at_least(shared, self._number(self._need(len(words))), self._alive)
        needed = self._stored(_NEED)
        enough_for_old = _at_least(shared, needed, self._alive) & reduce(or_, needed, 0)
        yield from self.keys(enough_for_new | enough_for_old)

    def _need(self, size: int) -> int:
        """The least number of shared words that makes two sets alike when the smaller one has this size."""
        least = max(math.floor(self._least * size) - 1, 1)
        return next(need for need in count(least) if need / size >= self._least or need > size)


# -- sequence ratio
#
# The ratio is 2 M / (length of both), M being the characters in matching blocks. The blocks follow each other in both
# texts, so that M is at most the length of the longest common subsequence.

_LENGTHS = (0, 20, 40, 80, 130, 200)


class _Shelf(_Columns):
    """Texts of similar length, from `low` up to but without `high` characters."""

    def __init__(self, least: float, low: int, high: int) -> None:
        super().__init__()
        self._least, self._low, self.high = least, low, high

    def candidates(self, text: str) -> Iterator[str]:
        """The keys of the texts whose ratio to this one may be large enough."""
        text = text.lower()
        nearest = min(max(len(text), self._low), self.high - 1)
        if self._slot_of and _lengths_allow(len(text), nearest, self._least):
            yield from self.keys(self._may_match(text))

    def _may_match(self, text: str) -> int:
        raise NotImplementedError

    def _own_share(self, text: str) -> int:
        """2 M has to reach the least ratio times both lengths; this is the old text's share of it, rounded down."""
        return max(math.floor(self._least * len(text) - _ROUNDING), 0)

    def _enough(self, matching: list[int], text: str) -> int:
        """Where 2 M, with at most so many matching characters, reaches the old text's share and the new one's."""
        share = max(math.ceil(self._least * len(text) - _ROUNDING), 0)
        return _at_least([0, *matching], _plus(self._stored(_SHARE), self._number(share)), self._alive)


# Common characters, the commonest first; the others are numbered as Unicode does.
_COMMON = " etaoinsrhldcumgypwfbvk.,'-0123456789xjqz:/()_\"!?;=#*+<>[]{}@&%$|~^`\\\n"
_GROUPS, _CODES = 5, 16


class _Short(_Shelf):
    """Shorter than 200 characters: the longest common subsequence, of all texts at once.

    The alphabet is dealt out to a few groups. A common subsequence is made of one common subsequence per group, so
    that the sum of the longest of each is a bound, and the shorter strings take a fraction of the work. Columns say
    "the 7th character of this group has this code". A group has few codes, so that characters share them, and places
    beyond `_depth` count as matched: both only raise the bound.
    """

    def __init__(self, least: float, low: int, high: int) -> None:
        super().__init__(least, low, high)
        self._depth = high * 23 // (20 * _GROUPS) + 2
        self._coded: dict[str, tuple[int, int]] = {}

    def bits(self, text: str) -> Iterator[int]:
        text = text.lower()
        for group, codes in enumerate(self._strings(text)):
            base = group * self._depth * _CODES
            for place, code in enumerate(codes[: self._depth]):
                yield base + place * _CODES + code
            yield from _digits(_SPARE - group * _DIGITS, max(len(codes) - self._depth, 0))
        yield from _digits(_SHARE, self._own_share(text))

    def _may_match(self, text: str) -> int:
        matching: list[int] = []
        for group, codes in enumerate(self._strings(text)):
            matching = _plus(matching, self._stored(_SPARE - group * _DIGITS))
            matching = _plus(matching, _total(self._common(group, codes)))
        return self._enough(matching, text)

    def _common(self, group: int, codes: list[int]) -> list[int]:
        """Columns that count the longest common subsequence with each text's string of this group.

        The usual table of lengths, kept as the steps between neighbouring cells, which are 0 or 1.
        """
        base = group * self._depth * _CODES
        rows = {
            code: [self._columns.get(base + place * _CODES + code, 0) for place in range(self._depth)]
            for code in set(codes)
        }
        steps = [0] * self._depth
        for code in codes:
            left = 0
            for place, same in enumerate(rows[code]):
                above = steps[place]
                most = above | left | same
                steps[place] = most ^ left
                left = most ^ above
        return steps

    def _strings(self, lowered: str) -> list[list[int]]:
        """The text as one string of codes per group."""
        strings: list[list[int]] = [[] for _ in range(_GROUPS)]
        coded = self._coded
        for char in lowered:
            if char not in coded:
                coded[char] = self._code(char)
            group, code = coded[char]
            strings[group].append(code)
        return strings

    def _code(self, char: str) -> tuple[int, int]:
        """Back and forth over the groups, so that each gets its share of the common characters."""
        number = _COMMON.find(char)
        turn, group = divmod(ord(char) if number < 0 else number, _GROUPS)
        return (_GROUPS - 1 - group if turn % 2 else group), turn % _CODES


_GRAM, _GRAM_BUCKETS = 4, 4096
_RARE = 1 << 16
_RARE_CODES, _RARE_TIMES = 256, 2048


class _Long(_Shelf):
    """From 200 characters, where difflib starts a block only at a character that is rare in the old text.

    A block is extended as far as it goes, so that the next one begins after characters that differ: besides one
    at the very start, each block has a rare character of its own. With n rare characters in common there are at
    most n + 1 blocks, which hold M - (q - 1)(n + 1) runs of q characters, all of them common to both texts. Here q is
    `_GRAM`.
    """

    def bits(self, text: str) -> Iterator[int]:
        text = text.lower()
        yield from set(_grams(text))
        often = len(text) // 100 + 1  # as in difflib: more makes a character "popular"
        yield from _rare({char: times for char, times in Counter(text).items() if times <= often})
        yield from _digits(_SHARE, self._own_share(text))

    def _may_match(self, text: str) -> int:
        rare = [self._columns[number] for number in _rare(Counter(text)) if number in self._columns]
        grams = [self._columns.get(number, 0) for number in _grams(text)]
        return self._enough(_total(grams + [*rare, self._alive] * (_GRAM - 1)), text)


def _grams(text: str) -> Iterator[int]:
    """The column of each run of `_GRAM` characters."""
    return (hash(text[at : at + _GRAM]) % _GRAM_BUCKETS for at in range(len(text) - _GRAM + 1))


def _rare(counts: dict[str, int]) -> Iterator[int]:
    """Columns that say "this character's code occurs at least so many times"."""
    codes: Counter[int] = Counter()
    for char, times in counts.items():
        codes[ord(char) % _RARE_CODES] += times
    for code, times in codes.items():
        base = _RARE + code * _RARE_TIMES
        yield from range(base, base + times)
