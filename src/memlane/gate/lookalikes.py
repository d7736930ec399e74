"""Which of very many texts is too much like a new one, without comparing it with each.

`Lookalikes.find` gives the verdict of a plain loop over all texts, but sooner: it keeps bit columns, ints with one bit
per text, so that one `&` or `|` works on all texts at once, and sums and comparisons go digit by digit, as on paper.
Two bounds that every near-duplicate meets leave a handful of texts for the exact measures of `likeness`.

Knows nothing of the vault, and keeps nothing on disk: whoever does gives the columns back as a `Base`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import chain, count, pairwise
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from memlane.gate.bits import at_least, bucket, digits, plus, rows, total
from memlane.gate.likeness import FEW, ROUNDING, Row, lengths_allow, overlap, ratio, tokens

if TYPE_CHECKING:
    from memlane.gate.filling import Pairs

MANY = 4000  # texts from which on the columns are built at once, for the first question
SOME = 250  # of these, on a shelf: fewer are built sooner one by one


class Base(NamedTuple):
    """Texts that were added before, and whose columns are kept: they are read when they are needed."""

    shelves: Shelves
    turns: Mapping[str, int]  # of these and perhaps other keys: the order in which they were added
    text: Callable[[str], str]


class Lookalikes:
    """Texts by key, to ask which one a new text is a near-duplicate of.

    The columns are built once they pay off: a process that asks once or twice (a command, a hook) is answered sooner
    by looking at each text.
    """

    def __init__(self, ratio_from: float, overlap_from: float, patience: int = 4, base: Base | None = None) -> None:
        self.ratio_from, self.overlap_from = ratio_from, overlap_from
        self._texts: dict[str, tuple[int, str]] = {}
        self._base = base
        self._turn = count(len(base.turns) if base else 0)
        self._patience = patience  # how many questions are answered without columns: building costs as much as these
        self._shelves = Shelves(ratio_from, overlap_from)

    def fill(self, texts: Iterable[tuple[str, str]]) -> None:
        """Add many texts at once; none is in the base, which may know their turns."""
        known = self._base.turns if self._base else {}
        self._texts = {key: (known[key] if key in known else next(self._turn), text) for key, text in texts}
        if len(self._texts) >= MANY:
            self._patience = 0  # NumPy builds the columns sooner than all texts are looked at

    def add(self, key: str, text: str) -> None:
        """Add a text. Another one of the same key is replaced, and this one takes its turn."""
        if self._is_in_base(key):
            if self.text(key) == text:
                return
            turn = self._base.turns[key] if self._base else 0
        else:
            turn = self._texts[key][0] if key in self._texts else next(self._turn)
        self._take_off(key)
        self._texts[key] = turn, text
        if self._patience < 0:
            self._shelves.add(key, text)
            self._tidy()

    def remove(self, key: str) -> None:
        self._take_off(key)
        self._texts.pop(key, None)
        self._tidy()

    def find(self, text: str, unless: Callable[[str, str], bool] | None = None) -> tuple[str, float] | None:
        """(key, score) of the text that was added first of those that are near-duplicates of this one.

        Those for which `unless(key, text)` is true do not count.
        """
        return next((like for like in self._alike(text) if not (unless and unless(like[0], self.text(like[0])))), None)

    def text(self, key: str) -> str:
        return self._texts[key][1] if key in self._texts or not self._base else self._base.text(key)

    def _alike(self, text: str) -> Iterator[tuple[str, float]]:
        if self.overlap_from <= 0:
            yield from ((key, 0.0) for key in self._texts)
            return
        words, lowered = tokens(text), text.lower()
        row = Row([lowered], len(lowered) // 8 + 1)
        for key in self._candidates(text):
            old = self.text(key)
            if (score := overlap(words, tokens(old))) >= self.overlap_from:
                yield key, score
                continue
            low = old.lower()
            if lengths_allow(len(lowered), len(low), self.ratio_from) and next(row.bounds(low)) >= self.ratio_from:
                score = ratio(text, old)
                if score >= self.ratio_from:
                    yield key, score

    def _candidates(self, text: str) -> Iterable[str]:
        """The keys to look at, in the order in which they were added."""
        based = self._base.shelves.candidates(text) if self._base else set[str]()
        if self._patience >= 0:
            self._patience -= 1
            if self._patience >= 0:
                return sorted({*self._texts, *based}, key=self._turn_of)
            self._build()
        return sorted(self._shelves.candidates(text) | based, key=self._turn_of)

    def _turn_of(self, key: str) -> int:
        return self._texts[key][0] if key in self._texts or not self._base else self._base.turns[key]

    def _is_in_base(self, key: str) -> bool:
        return self._base is not None and self._base.shelves.has(key)

    def _take_off(self, key: str) -> None:
        """Take a text out of the columns."""
        if self._base and self._is_in_base(key):
            self._base.shelves.remove(key, self._base.text(key))
        elif key in self._texts and self._patience < 0:
            self._shelves.remove(key, self.text(key))

    def shelves(self) -> Shelves:
        """The columns of all texts, to be kept. This is of no use afterwards."""
        if self._patience >= 0:
            self._build()
        if self._base is None:
            return self._shelves
        for columns, others in zip(self._base.shelves.columns, self._shelves.columns, strict=True):
            columns.joined(others)
        return self._base.shelves

    def _tidy(self) -> None:
        if self._shelves.mostly_gone():
            self._build()

    def _build(self) -> None:
        self._shelves = Shelves(self.ratio_from, self.overlap_from)
        self._shelves.fill([(key, text) for key, (_, text) in self._texts.items()])


class Shelves:
    """The columns of many texts: by their words, and by their characters on shelves for texts of similar length."""

    def __init__(self, ratio_from: float, overlap_from: float) -> None:
        self._words = _Words(overlap_from)
        self._by_length: list[_Shelf] = [
            *(_Short(ratio_from, low, high) for low, high in pairwise(_LENGTHS)),
            _Long(ratio_from, _LENGTHS[-1], 1 << 62),
        ]

    @property
    def columns(self) -> list[Columns]:
        return [self._words, *self._by_length]

    def fill(self, texts: Sequence[tuple[str, str]]) -> None:
        at_once = len(texts) >= MANY
        self._words.fill(texts, at_once=at_once)
        by_shelf: defaultdict[_Shelf, list[tuple[str, str]]] = defaultdict(list)
        for entry in texts:
            by_shelf[self._shelf(entry[1])].append(entry)
        for shelf, own in by_shelf.items():
            shelf.fill(own, at_once=at_once and len(own) >= SOME)

    def add(self, key: str, text: str) -> None:
        self._words.add(key, text)
        self._shelf(text).add(key, text)

    def has(self, key: str) -> bool:
        return self._words.has(key)

    def remove(self, key: str, text: str) -> None:
        self._words.remove(key)
        self._shelf(text).remove(key)

    def mostly_gone(self) -> bool:
        """Whether most of the texts were removed, so that it pays to build the columns anew."""
        return self._words.mostly_gone()

    def candidates(self, text: str) -> set[str]:
        """The keys of all texts that may be near-duplicates of this one."""
        return {key for columns in self.columns for key in columns.candidates(text)}

    def _shelf(self, text: str) -> _Shelf:
        return self._by_length[bisect_right(_LENGTHS, len(text.lower())) - 1]


# -- bit columns

_DIGITS = 24
_NEED, _SHARE, _SPARE = (-place * _DIGITS for place in (1, 2, 3))  # columns of a text's own numbers


class Slots:
    """Which text has which bit."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys = list(keys)
        self._slots = {key: slot for slot, key in enumerate(self._keys)}

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, slot: int) -> str:
        return self._keys[slot]

    def keys(self) -> list[str]:
        """The keys of all texts, those that were removed included, whose keys may be empty."""
        return self._keys

    def slot(self, key: str) -> int | None:
        return self._slots.get(key)

    def append(self, key: str) -> None:
        self._slots[key] = len(self._keys)
        self._keys.append(key)


class Columns:
    """Columns of bits, one bit per text. A subclass says which bits a text has, and asks for candidates."""

    def __init__(self) -> None:
        self._columns: dict[int, int] = {}
        self._kept: Collection[int] = ()  # the numbers of columns that are loaded when they are needed
        self._load: Callable[[int], int] = int
        self._slots = Slots()
        self.alive = 0

    def bits(self, text: str) -> Iterable[int]:
        """The numbers of the columns in which a text has its bit."""
        raise NotImplementedError

    def candidates(self, text: str) -> Iterator[str]:
        """The keys of the texts that may be near-duplicates of this one."""
        raise NotImplementedError

    def fill(self, texts: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        self._slots = Slots(key for key, _ in texts)
        self.alive = (1 << len(texts)) - 1
        own = [text for _, text in texts]
        self._columns = self.filled_at_once(own) if at_once else rows(own, self.bits)

    def filled_at_once(self, texts: Sequence[str]) -> dict[int, int]:
        """The columns of very many texts, with NumPy."""
        raise NotImplementedError

    def take(self, slots: Slots, load: Callable[[int], int], numbers: Collection[int], alive: int) -> None:
        """Use columns that were kept: `load` gives the one of a number."""
        self._slots, self._load, self._kept, self.alive = slots, load, numbers, alive

    def add(self, key: str, text: str) -> None:
        bit = 1 << len(self._slots)
        self._slots.append(key)
        self.alive |= bit
        for number in self.bits(text):
            self._columns[number] = self._column(number) | bit

    def has(self, key: str) -> bool:
        slot = self._slots.slot(key)
        return slot is not None and bool(self.alive >> slot & 1)

    def remove(self, key: str) -> None:
        if (slot := self._slots.slot(key)) is not None:
            self.alive &= ~(1 << slot)

    def mostly_gone(self) -> bool:
        return len(self._slots) > 2 * self.alive.bit_count() + 64

    def keys_by_slot(self) -> list[str]:
        """The keys in the order of their bits, those that were removed included: see `alive`."""
        return self._slots.keys()

    def content(self) -> Iterator[tuple[int, int]]:
        """The columns by number."""
        return ((number, self._column(number)) for number in {*self._columns, *self._kept})

    def joined(self, others: Columns) -> Columns:
        """These columns, and those of other texts behind them. Both are of no use of their own afterwards."""
        size = len(self._slots)
        for number, column in others.content():
            self._columns[number] = self._column(number) | column << size
        self._slots = Slots([*self.keys_by_slot(), *others.keys_by_slot()])
        self.alive |= others.alive << size
        return self

    def keys(self, bits: int) -> Iterator[str]:
        """The keys of the texts whose bits are set."""
        bits &= self.alive
        while bits:
            lowest = bits & -bits
            yield self._slots.key(lowest.bit_length() - 1)
            bits ^= lowest

    def _column(self, number: int) -> int:
        column = self._columns.get(number, 0)
        if not column and number in self._kept:
            column = self._columns[number] = self._load(number)
        return column

    # Numbers, one per text, are lists of columns with the lowest digit first.

    def _number(self, value: int) -> list[int]:
        return [self.alive if value >> digit & 1 else 0 for digit in range(value.bit_length())]

    def _stored(self, base: int) -> list[int]:
        number = [self._column(base + digit) for digit in range(_DIGITS)]
        while number and not number[-1]:
            number.pop()
        return number


# -- word overlap

_BUCKETS = 2048


def _word_bucket(word: str) -> int:
    return bucket(word, _BUCKETS)


class _Buckets(dict[str, int]):
    """The bucket of each word that was asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = found = _word_bucket(word)
        return found


class _Words(Columns):
    """Texts that may share enough words. Words fall into buckets, so that columns stay few; that only adds bits."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self._least = least

    def bits(self, text: str) -> Iterator[int]:
        words = tokens(text)
        if len(words) >= FEW:
            yield from set(map(_word_bucket, words))
            yield from digits(_NEED, self._need(len(words)))

    def filled_at_once(self, texts: Sequence[str]) -> dict[int, int]:
        import numpy as np

        from memlane.gate import filling

        number, need = _Buckets().__getitem__, cache(self._need)

        def pairs(some: Sequence[str]) -> Pairs:
            sets = [words if len(words) >= FEW else () for words in map(tokens, some)]
            sizes = np.fromiter(map(len, sets), np.int64, len(sets))
            yield (
                np.fromiter(map(number, chain.from_iterable(sets)), np.int64, int(sizes.sum())),
                np.repeat(np.arange(len(sets)), sizes),
            )
            yield from filling.digits(_NEED, np.array([need(len(words)) if words else 0 for words in sets]))

        return filling.columns(_NEED, _BUCKETS, texts, pairs)

    def candidates(self, text: str) -> Iterator[str]:
        words = tokens(text)
        if len(words) < FEW or not self.alive:
            return
        shared = total(self._column(_word_bucket(word)) for word in words)
        # An old text of fewer than three words has no bit anywhere: it shares none, and at least one is needed.
        enough_for_new = at_least(shared, self._number(self._need(len(words))), self.alive)
        needed = self._stored(_NEED)
        enough_for_old = at_least(shared, needed, self.alive) & reduce(or_, needed, 0)
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


class _Shelf(Columns):
    """Texts of similar length, from `low` up to but without `high` characters."""

    def __init__(self, least: float, low: int, high: int) -> None:
        super().__init__()
        self._least, self._low, self.high = least, low, high

    def candidates(self, text: str) -> Iterator[str]:
        """The keys of the texts whose ratio to this one may be large enough."""
        text = text.lower()
        nearest = min(max(len(text), self._low), self.high - 1)
        if self.alive and lengths_allow(len(text), nearest, self._least):
            yield from self.keys(self._may_match(text))

    def _may_match(self, text: str) -> int:
        raise NotImplementedError

    def _own_share(self, text: str) -> int:
        """2 M has to reach the least ratio times both lengths; this is the old text's share of it, rounded down."""
        return max(math.floor(self._least * len(text) - ROUNDING), 0)

    def _enough(self, matching: list[int], text: str) -> int:
        """Where 2 M, with at most so many matching characters, reaches the old text's share and the new one's."""
        share = max(math.ceil(self._least * len(text) - ROUNDING), 0)
        return at_least([0, *matching], plus(self._stored(_SHARE), self._number(share)), self.alive)


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
            yield from digits(_SPARE - group * _DIGITS, max(len(codes) - self._depth, 0))
        yield from digits(_SHARE, self._own_share(text))

    def filled_at_once(self, texts: Sequence[str]) -> dict[int, int]:
        import numpy as np

        from memlane.gate import filling

        def group_of(char: str) -> int:
            group, code = self._code(char)
            return group * _CODES + code

        def pairs(some: Sequence[str]) -> Pairs:
            for group, (codes, owners) in enumerate(filling.characters(some, group_of)):
                sizes, places = filling.turns(owners, len(some))
                within = places < self._depth
                numbers = (group * self._depth + places[within]) * _CODES + codes[within]
                yield numbers, owners[within]
                yield from filling.digits(_SPARE - group * _DIGITS, np.maximum(sizes - self._depth, 0))
            yield from filling.digits(_SHARE, np.array([self._own_share(text) for text in some]))

        lowest = _SPARE - (_GROUPS - 1) * _DIGITS
        lowered = [text.lower() for text in texts]
        return filling.columns(lowest, _GROUPS * self._depth * _CODES, lowered, pairs)

    def _may_match(self, text: str) -> int:
        matching: list[int] = []
        for group, codes in enumerate(self._strings(text)):
            matching = plus(matching, self._stored(_SPARE - group * _DIGITS))
            matching = plus(matching, total(self._common(group, codes)))
        return self._enough(matching, text)

    def _common(self, group: int, codes: list[int]) -> list[int]:
        """Columns that count the longest common subsequence with each text's string of this group.

        The usual table of lengths, kept as the steps between neighbouring cells, which are 0 or 1.
        """
        base = group * self._depth * _CODES
        rows = {
            code: [self._column(base + place * _CODES + code) for place in range(self._depth)] for code in set(codes)
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
        yield from self._rare_bits(text)
        yield from digits(_SHARE, self._own_share(text))

    def _rare_bits(self, lowered: str) -> Iterator[int]:
        often = _often(len(lowered))
        return _rare({char: times for char, times in Counter(lowered).items() if times <= often})

    def _rare_at_once(self, lowered: Sequence[str]) -> dict[int, int]:
        import numpy as np

        from memlane.gate import filling

        numbers, places = [], []
        for start in range(0, len(lowered), filling.AT_ONCE):
            some = lowered[start : start + filling.AT_ONCE]
            plain = [at for at, text in enumerate(some) if text.isascii()]
            codes, owners, times = filling.counted([some[at] for at in plain])
            rare = times <= np.array([_often(len(some[at])) for at in plain], np.int64)[owners]
            codes, owners, times = codes[rare], np.array(plain, np.int64)[owners[rare]], times[rare]
            _, turns = filling.turns(np.repeat(np.arange(len(codes)), times), len(codes))
            numbers.append(np.repeat(_RARE + codes * _RARE_TIMES, times) + turns)
            places.append(np.repeat(owners, times) + start)
            for at in {*range(len(some))}.difference(plain):
                own = np.fromiter(self._rare_bits(some[at]), np.int64)
                numbers.append(own)
                places.append(np.full(len(own), start + at))
        return filling.scattered(np.concatenate(numbers), np.concatenate(places), len(lowered))

    def filled_at_once(self, texts: Sequence[str]) -> dict[int, int]:
        import numpy as np

        from memlane.gate import filling

        def pairs(some: Sequence[str]) -> Pairs:
            plain = [at for at, text in enumerate(some) if text.isascii()]
            found, owners = filling.checksums([some[at] for at in plain], _GRAM)
            yield (found % _GRAM_BUCKETS).astype(np.int64), np.array(plain, np.int64)[owners]
            for at in {*range(len(some))}.difference(plain):
                numbers = np.fromiter(_grams(some[at]), np.int64)
                yield numbers, np.full(len(numbers), at)
            yield from filling.digits(_SHARE, np.array([self._own_share(text) for text in some]))

        lowered = [text.lower() for text in texts]
        return filling.columns(_SHARE, _GRAM_BUCKETS, lowered, pairs) | self._rare_at_once(lowered)

    def _may_match(self, text: str) -> int:
        rare = [column for number in _rare(Counter(text)) if (column := self._column(number))]
        grams = [self._column(number) for number in _grams(text)]
        return self._enough(total(grams + [*rare, self.alive] * (_GRAM - 1)), text)


def _often(size: int) -> int:
    """How often a character may occur in a text of this size and be rare, as in difflib: more makes it "popular"."""
    return size // 100 + 1


def _grams(text: str) -> Iterator[int]:
    """The column of each run of `_GRAM` characters."""
    return (bucket(text[at : at + _GRAM], _GRAM_BUCKETS) for at in range(len(text) - _GRAM + 1))


def _rare(counts: dict[str, int]) -> Iterator[int]:
    """Columns that say "this character's code occurs at least so many times"."""
    codes: Counter[int] = Counter()
    for char, times in counts.items():
        codes[ord(char) % _RARE_CODES] += times
    for code, times in codes.items():
        base = _RARE + code * _RARE_TIMES
        yield from range(base, base + times)
