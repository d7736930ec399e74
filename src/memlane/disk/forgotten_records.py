"""What `memlane.disk.forgotten` keeps of a forgotten memory, and which of them a text would bring back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memlane.core.values import dataclass, field

FEWEST = 5  # different words; fewer tell nothing, except under the same id
SHARE = 8  # one of so many shingles, and at least four, are enough
BUCKETS = 1024


@dataclass(slots=True)
class Record:
    """A line of the file about a forgotten memory."""

    name: str
    day: str
    id: str
    alone: bool
    wholes: set[str]
    lines: set[str]
    passages: list[tuple[int, int]]  # how many words, and the buckets as bits
    shingles: set[str]
    spared: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)  # the other lines, under a salt
    seals: dict[str, bytes] = field(default_factory=dict)  # the salt, for whoever has a telling line, by its hash

    def to_line(self) -> dict[str, Any]:
        return {
            "name": self.name, "day": self.day, "id": self.id, "alone": self.alone, "wholes": sorted(self.wholes),
            "lines": sorted(self.lines), "passages": [[size, _spelt(bag)] for size, bag in self.passages],
            "shingles": sorted(self.shingles), "spared": sorted(self.spared), "beside": sorted(self.beside),
            "seals": {line: seal.hex() for line, seal in sorted(self.seals.items())},
        }  # fmt: skip


class Index:
    """Records by what tells that one of them is back."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.by_id: defaultdict[str, list[Record]] = defaultdict(list)
        self.by_whole: defaultdict[str, list[Record]] = defaultdict(list)
        self.by_line: defaultdict[str, list[Record]] = defaultdict(list)
        self.by_shingle: defaultdict[str, list[Record]] = defaultdict(list)
        self._passages: list[tuple[int, int, int, Record]] = []
        for record in records:
            self.by_id[record.id].append(record)
            for whole in record.wholes:
                self.by_whole[whole].append(record)
            for line in record.lines:
                self.by_line[line].append(record)
            for shingle in record.shingles:
                self.by_shingle[shingle].append(record)
            for size, bag in record.passages:
                if bag.bit_count() >= FEWEST:
                    self._passages.append((size, bag, most(bag), record))

    def close_to(self, windows: Windows) -> Iterator[tuple[Record, tuple[int, int]]]:
        """The passages that a text has most words of, close together."""
        for size, bag, least, record in self._passages:
            if windows.have(size, bag, least):
                yield record, (size, bag)


class Windows:
    """A text's buckets, and those of every stretch of it that is a little longer than a passage."""

    def __init__(self, buckets: Sequence[int]) -> None:
        self._buckets = buckets
        self._all = united(buckets)
        self._made: dict[int, list[int]] = {}

    def have(self, size: int, bag: int, least: int) -> bool:
        """Whether some stretch has at least so many buckets of a passage of `size` words."""
        if (self._all & bag).bit_count() < least:
            return False
        if size not in self._made:
            self._made[size] = list(self._of(size))
        return any((window & bag).bit_count() >= least for window in self._made[size])

    def _of(self, size: int) -> Iterator[int]:
        step = max(size // 4, 1)
        blocks = [united(self._buckets[at : at + step]) for at in range(0, len(self._buckets), step)]
        width = -(-(size + size // 4) // step) + 1
        for at in range(max(len(blocks) - width, 0) + 1):
            yield united(blocks[at : at + width])


def most(bag: int) -> int:
    """How many buckets of a passage make a text the same: all but one of a few, 7 of 10 of many."""
    count = bag.bit_count()
    return count - 1 if count < 8 else -(-count * 7 // 10)


def enough(record: Record) -> int:
    """How many shingles of a long text make another one the same."""
    return max(len(record.shingles) // SHARE, 4)


def half(bag: int) -> int:
    """How many do under the same id."""
    return max(-(-bag.bit_count() // 2), min(bag.bit_count(), 2))


def united(bits: Iterable[int]) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found


def _spelt(bag: int) -> str:
    return "".join(f"{number:03x}" for number in range(BUCKETS) if bag >> number & 1)


def read_bag(text: str) -> int:
    return united(1 << int(text[at : at + 3], 16) for at in range(0, len(text), 3))
