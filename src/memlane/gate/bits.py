"""Columns of bits: ints with one bit per text, so that one `&` or `|` works on all texts at once.

Numbers, one per text, are lists of columns with the lowest digit first; sums and comparisons go digit by digit.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest


def rows(texts: Sequence[str], bits: Callable[[str], Iterable[int]]) -> dict[int, int]:
    """The columns of these texts, each with the bits that it has."""
    rows: defaultdict[int, bytearray] = defaultdict(lambda: bytearray(len(texts) // 8 + 1))
    for slot, text in enumerate(texts):
        at, bit = slot >> 3, 1 << (slot & 7)
        for number in bits(text):
            rows[number][at] |= bit
    return {number: int.from_bytes(row, "little") for number, row in rows.items()}


def digits(base: int, value: int) -> Iterator[int]:
    """The columns that store a text's number."""
    return (base + digit for digit in range(value.bit_length()) if value >> digit & 1)


def total(columns: Iterable[int]) -> list[int]:
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


def plus(a: list[int], b: list[int]) -> list[int]:
    carry, number = 0, []
    for x, y in zip_longest(a, b, fillvalue=0):
        either = x ^ y
        number.append(either ^ carry)
        carry = x & y | carry & either
    return [*number, carry] if carry else number


def at_least(a: list[int], b: list[int], everywhere: int) -> int:
    """Where a >= b."""
    result = everywhere
    for x, y in zip_longest(a, b, fillvalue=0):
        differ = x ^ y
        result = (result | differ) ^ differ | x & differ
    return result


def bucket(text: str, buckets: int) -> int:
    """The same in every process, unlike Python's own hash: columns may be kept."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % buckets
