"""What a misspelt word of a query means: the nearest word that the bank has.

Misspelt is a plain word that neither the bank nor common English knows. A name that is in the bank is never taken for
another one, nor is anything with digits, capitals or signs in it.
"""

from __future__ import annotations

from memlane.core.patterns import lazily
from memlane.index.encoders import vocabulary
from memlane.index.store import Index
from memlane.index.words import terms

LEAST, LONG = 5, 8  # letters of a word with one mistake in it, and with two
KEPT = 1_000  # misspelt words that are remembered
_WORD = lazily(r"(?<![\w.-])[A-Z]?[a-z]+(?![\w-]|\.\w)")


def nearest(index: Index, known: dict[str, str], query: str, term: str) -> str:
    """The term of the bank that an unknown one of a query was meant to be; "" where it is no misspelt word.

    `known` is what is known of words already, and learns this one.
    """
    word = next((word.lower() for word in _WORD.findall(query) if terms(word) == [term]), "")
    if len(word) < LEAST or word in vocabulary():
        return ""
    if word not in known:
        if len(known) >= KEPT:
            known.clear()
        known[word] = _nearest(index, word, term)
    return known[word]


def _nearest(index: Index, word: str, term: str) -> str:
    most = 1 if len(word) < LONG else 2
    found = [
        (distance, -count, known)
        for known, count in index.terms(term[0], len(term) - most, len(term) + most)
        if len(set(known) ^ set(term)) <= 2 * most and (distance := mistakes(term, known, most)) <= most
    ]
    return min(found)[2] if found else ""


def mistakes(one: str, other: str, most: int) -> int:
    """How many letters were left out, added, changed, or swapped with the next; where these are more than `most`, any
    number above it.
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                least = min(least, previous[j - 2] + 1)
            row.append(least)
        if min(row) > most <= min(before):  # the next rows are made of these two
            return most + 1
    return row[-1]
