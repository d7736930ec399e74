"""How alike two texts are, and which of many is like a new one without comparing with each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_STOP_WORDS = frozenset(
    "a an and are as at be by for from has have in is it its of on or that the this to was were will with".split()
)
_WORD = re.compile(r"[^\W_]+")
_FEW = 3


def tokens(text: str) -> frozenset[str]:
    """The words of a text in lower case, letters and digits of any script, without the commonest English ones."""
    return frozenset(_WORD.findall(text.lower())) - _STOP_WORDS


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Shared words by the smaller set; 0 when one of them is too small to say anything."""
    if len(a) < _FEW or len(b) < _FEW:
        return 0.0
    return len(a & b) / min(len(a), len(b))


def ratio(new: str, old: str) -> float:
    """difflib's ratio of two texts, ignoring case."""
    return SequenceMatcher(None, new.lower(), old.lower()).ratio()


def ratio_bound(a: str, b: str) -> float:
    """At least ratio(a, b), and much cheaper: its matching blocks are a common subsequence of the two.

    The longest common subsequence, one bit per character of `b` (Hyyrö 2004).
    """
    a, b = a.lower(), b.lower()
    if not a or not b:
        return 1.0 if a == b else 0.0
    places: dict[str, int] = {}
    for at, char in enumerate(b):
        places[char] = places.get(char, 0) | 1 << at
    rest = full = (1 << len(b)) - 1
    for char in a:
        if match := rest & places.get(char, 0):
            rest = (rest + match | rest - match) & full
    return 2.0 * (len(b) - rest.bit_count()) / (len(a) + len(b))


class Lookalikes:
    """Texts by key, to ask which one a new text is too much like."""

    def __init__(self, ratio_from: float, overlap_from: float) -> None:
        self.ratio_from, self.overlap_from = ratio_from, overlap_from
        self._texts: dict[str, tuple[str, frozenset[str]]] = {}

    def add(self, key: str, text: str) -> None:
        self._texts[key] = (text, tokens(text))

    def fill(self, texts: Iterable[tuple[str, str]]) -> None:
        for key, text in texts:
            self.add(key, text)

    def remove(self, key: str) -> None:
        self._texts.pop(key, None)

    def find(self, text: str) -> tuple[str, float] | None:
        """(key, score) of the first text added that is a near-duplicate of this one."""
        words = tokens(text)
        for key, (old, old_words) in self._texts.items():
            score = overlap(words, old_words)
            if score >= self.overlap_from:
                return key, score
            if ratio_bound(text, old) >= self.ratio_from and (score := ratio(text, old)) >= self.ratio_from:
                return key, score
        return None
