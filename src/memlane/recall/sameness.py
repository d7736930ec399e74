"""Which of the memories that a block is made of say the same, so that one of them is enough. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from memlane.core.model import Memory
from memlane.core.text import remembered_whole
from memlane.gate import likeness

_ALIKE = 0.8  # least sequence ratio of two memories that say the same


class Alike:
    """Which of the memories in a block may say the same as another one, without comparing it with each.

    Of two that say the same, one has at most so many words of its own as `_spare` says. So of one more of its words
    than that, whichever they are, the other has one: each is filed under all of its words, and under those few.
    """

    def __init__(self) -> None:
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        self._by_few: defaultdict[str, list[int]] = defaultdict(list)
        self._wordless: list[int] = []
        self._end = 0

    def put(self, place: int, memory: Memory) -> None:
        """A memory has taken a place. What was in it before may be named as well."""
        self._end = max(self._end, place + 1)
        words = _words(_plain(memory.text))
        for word in self._few(words):
            self._by_few[word].append(place)
        for word in words:
            self._by_word[word].append(place)
        if not words:
            self._wordless.append(place)

    def places(self, memory: Memory) -> Iterable[int]:
        """The places to look at, in order."""
        words = _words(_plain(memory.text))
        if not words:
            return range(self._end)
        found = {*self._wordless}
        for word in self._few(words):
            found.update(self._by_word.get(word, ()))
        for word in self._by_few.keys() & words:
            found.update(self._by_few[word])
        return sorted(found)

    def _few(self, words: frozenset[str]) -> list[str]:
        """The rarest so far of a text's words."""
        few = _spare(len(words)) + 1
        new = words.difference(self._by_word)  # mostly enough, and then nothing has to be counted
        if len(new) >= few:
            return [*new][:few]
        return sorted(words, key=lambda word: len(self._by_word.get(word, ())))[:few]


def _spare(size: int) -> int:
    """How many words of its own a text of so many may have, and say the same."""
    return size // 30


def says_the_same(a: Memory, b: Memory) -> bool:
    """Whether showing one of two memories is enough: they are nearly equal, and one has no word that the other lacks.

    In a long text, one word in thirty may differ. Where each has a word of its own, both are shown: that word may be
    what matters ("Tuesday", "30 seconds").
    """
    text_a, text_b = _plain(a.text), _plain(b.text)
    if text_a == text_b:
        return True
    size_a, size_b = len(text_a), len(text_b)
    if max(size_a, size_b) >= 4000 or 2 * min(size_a, size_b) < _ALIKE * (size_a + size_b):
        return False
    words_a, words_b = _words(text_a), _words(text_b)
    own_words = min(len(words_a - words_b), len(words_b - words_a))
    return own_words <= _spare(min(len(words_a), len(words_b))) and likeness.ratio(text_a, text_b) >= _ALIKE


@remembered_whole(2_000)  # a memory is compared with many
def _plain(text: str) -> str:
    return " ".join(text.split()).lower()


@remembered_whole(2_000)
def _words(text: str) -> frozenset[str]:
    return likeness.tokens(text)
