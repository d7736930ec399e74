"""What a query says: its terms, "quoted phrases" that must occur, and -words and -"phrases" that must not."""

from __future__ import annotations

from functools import lru_cache

from memlane.core.patterns import lazily
from memlane.core.values import dataclass
from memlane.index.languages import english
from memlane.index.words import query_terms, shortened


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: its terms, "quoted phrases" that must occur, and -words and -"phrases" that must not."""

    text: str
    terms: tuple[str, ...]
    phrases: tuple[str, ...]
    without: tuple[str, ...]


_NOT_PHRASE = lazily(r'(?:^|(?<=\s))-"([^"]*)"')
_PHRASE = lazily(r'"([^"]*)"')
_NOT_WORD = lazily(r"(?:^|(?<=\s))-(\w[\w./+#@:'’-]*)")


def parse(query: str) -> Query:
    return _parsed(shortened(query))


@lru_cache(256)  # what is searched for is asked about in several ways: for a list, for a prompt, in a bank below
def _parsed(rest: str) -> Query:
    without = _NOT_PHRASE.findall(rest)
    rest = _NOT_PHRASE.sub(" ", rest)
    phrases = [phrase.strip() for phrase in _PHRASE.findall(rest) if phrase.strip()]
    rest = _PHRASE.sub(" ", rest)
    without += (word.rstrip("./@:'’-") for word in _NOT_WORD.findall(rest))
    rest = _NOT_WORD.sub(" ", rest)
    text = " ".join((*phrases, rest)).strip()
    if others := english(text):
        text = " ".join((text, *others))
    return Query(text, tuple(query_terms(text)), tuple(phrases), tuple(word for word in without if word.strip()))
