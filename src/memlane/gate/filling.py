"""The columns of `lookalikes` for very many texts at once, with NumPy: the very bits that each text has by itself.

A text's bits are pairs of a column's number and the text's place. They are set in a table of a few thousand texts, one
byte a bit, which is then packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Pairs = Iterable[tuple[Array, Array]]  # numbers of columns, and the place among the texts at hand of each
AT_ONCE = 4096  # texts, a multiple of 8


def columns(lowest: int, end: int, texts: Sequence[str], pairs: Callable[[Sequence[str]], Pairs]) -> dict[int, int]:
    """The columns from number `lowest` up to but without `end` that any of the texts has a bit in."""
    rows = np.zeros((end - lowest, -(-len(texts) // 8)), np.uint8)
    marked = np.zeros((end - lowest, AT_ONCE), bool)
    flat = marked.reshape(-1)  # one number says which bit: that is quicker than two
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        marked[:] = False
        for numbers, places in pairs(some):
            flat[(numbers - lowest) * AT_ONCE + places] = True
        width = -(-len(some) // 8)
        rows[:, start // 8 : start // 8 + width] = np.packbits(marked[:, : width * 8], axis=1, bitorder="little")
    used = np.flatnonzero(rows.any(axis=1)).tolist()
    return {lowest + at: int.from_bytes(rows[at].tobytes(), "little") for at in used}


def scattered(numbers: Array, places: Array, total: int) -> dict[int, int]:
    """The columns of so many texts from all their pairs, where the numbers of the columns are few and far between."""
    distinct, which = np.unique(numbers, return_inverse=True)
    rows = np.zeros((len(distinct), -(-total // 8)), np.uint8)
    np.bitwise_or.at(rows, (which, places >> 3), (1 << (places & 7)).astype(np.uint8))
    return {
        number: int.from_bytes(row.tobytes(), "little") for number, row in zip(distinct.tolist(), rows, strict=True)
    }


def digits(base: int, values: Array) -> Iterator[tuple[Array, Array]]:
    """The bits of a number that each text has, its lowest digit in column `base`."""
    for digit in range(int(values.max(initial=0)).bit_length()):
        places = np.flatnonzero(values >> digit & 1)
        yield np.full(len(places), base + digit), places


def characters(texts: Sequence[str], group_of: Callable[[str], int]) -> Iterator[tuple[Array, Array]]:
    """(code, text) of every character, group by group, each in the order of the texts. `group_of` gives 16 × group +
    code; groups without a character are passed over by empty arrays.
    """
    joined = "".join(texts)
    chars = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
    table = np.zeros(int(chars.max(initial=0)) + 1, np.uint8)
    for char in set(joined):
        table[ord(char)] = group_of(char)
    coded = table[chars]
    owners = np.repeat(np.arange(len(texts)), np.fromiter(map(len, texts), np.int64, len(texts)))
    groups = coded >> 4
    for group in range(int(groups.max(initial=0)) + 1):
        at = np.flatnonzero(groups == group)
        yield (coded[at] & 15).astype(np.int64), owners[at]


def turns(owners: Array, total: int) -> tuple[Array, Array]:
    """How many entries each owner has, and the how-manieth of its owner each entry is, from 0. Owners are in order."""
    counts = np.bincount(owners, minlength=total)
    return counts, np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)


def counted(texts: Sequence[str]) -> tuple[Array, Array, Array]:
    """(code, text, how often) of every character that a text has. The texts are ASCII."""
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    owners = np.repeat(np.arange(len(texts)), np.fromiter(map(len, texts), np.int64, len(texts)))
    counts = np.bincount(owners * 128 + data, minlength=128 * len(texts)).reshape(-1, 128)
    found, codes = np.nonzero(counts)
    return codes, found, counts[found, codes]


def checksums(texts: Sequence[str], size: int) -> tuple[Array, Array]:
    """(zlib.crc32, text) of every run of `size` characters. The texts are ASCII."""
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    owners = np.repeat(np.arange(len(texts)), sizes)
    starts = np.flatnonzero(np.arange(len(data)) + size <= np.cumsum(sizes)[owners])
    found = np.full(len(starts), 0xFFFFFFFF, np.uint32)
    for at in range(size):
        found = found >> 8 ^ _CRC[(found ^ data[starts + at]) & 0xFF]
    return found ^ 0xFFFFFFFF, owners[starts]


def _crc_table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0xEDB88320, table >> 1).astype(np.uint32)
    return table


_CRC = _crc_table()
