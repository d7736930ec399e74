"""Text to search terms, in any language.

Words are folded (case, accents, width) and English ones stemmed. Identifiers, paths and versions are indexed whole and
in parts: `src/auth.py`, `getUserName`, `v2.3.1`. Scripts without spaces between words (Chinese, Japanese, Thai …)
become overlapping pairs of characters, so that any two adjacent characters of a query find them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Set
from itertools import chain
from typing import TypeVar

from Stemmer import Stemmer

from memlane.core.patterns import lazily

# Also question words and auxiliaries: most questions have them, and they say nothing about the answer.
STOP_WORDS = frozenset(
    """a about after again all also am an and any are aren as at be because been before being but by can cannot could
    couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn have haven having
    he her here hers herself him himself his how i if in into is isn it its itself just ll m me more most my myself no
    nor not now of off on once only or other our ours out over own re s same she should so some such t than that the
    their theirs them themselves then there these they this those through to too under until up ve very was wasn we
    were what when where which while who whom why will with would you your yours""".split()
)
# Words that ask rather than tell: how many, how long ago, what was said. Many questions have them and few answers do.
_ASKING = """many much long often old total number amount ago past last next recent recently current currently today
    yesterday tomorrow day week month year time hour minute first two three four five six ever usually
    tell told remind know think mention say said talk discuss discussion conversation chat suggest suggestion recommend
    recommendation advice help please want like kind type thing something anything someone name called different
    new get got go went make made use take took happen""".split()
ASKING_WEIGHT = 0.4
_MOST_KNOWN = 100_000  # pieces of text whose terms are remembered
_LONG = 100  # characters; a longer piece is a key or a blob, which comes but once
QUERY_CHARACTERS, QUERY_TERMS = 2_000, 200  # of a longer query, only the beginning counts
_PIECE = lazily(r"[^\W_]+(?:[._/'’+#@:-]+[^\W_]+|_+[^\W_]+)*[+#]{0,2}|[^\W_]+")
_PART = lazily(r"[^\W_]+")
_CAMEL = lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
_UNSPACED = lazily(
    "["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"  # kana and Han
    "\uac00-\ud7af\U00020000-\U0003ffff"  # Hangul, rare Han
    "]+"
)
_stem_short, _stem_long = Stemmer("english", 50_000).stemWord, Stemmer("english", 0).stemWord  # which remembers none


def _stem(word: str) -> str:
    stem: str = _stem_short(word) if len(word) <= _LONG else _stem_long(word)
    return stem


_WEAK = frozenset(map(_stem, _ASKING))


T = TypeVar("T")


class Remembered(dict[str, tuple[T, ...]]):
    """What a function made of words, each asked for once: in indexing, most of them were there before.

    Long ones are not remembered, and at `most` words all are forgotten.
    """

    def __init__(self, of: Callable[[str], tuple[T, ...]], most: int = _MOST_KNOWN) -> None:
        self._of, self._most = of, most

    def __missing__(self, word: str) -> tuple[T, ...]:
        found = self._of(word)
        if len(word) <= _LONG:
            if len(self) >= self._most:
                self.clear()
            self[word] = found
        return found


def terms(text: str) -> list[str]:
    """The terms of a text to be indexed, repeated as often as they occur. Stop words are left out."""
    if not text:
        return []
    result = list(chain.from_iterable(map(_known.__getitem__, _PIECE.findall(text))))
    if not text.isascii():
        for run in _UNSPACED.findall(text):
            result += fold(run) if len(run) > 1 else ""  # people search for single characters, too
    return result


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query, at most QUERY_TERMS; its stop words count if it has nothing else."""
    text = shortened(text)
    distinct = dict.fromkeys(term for piece in _PIECE.findall(text) for term in _known[piece])
    return list(distinct or dict.fromkeys(_stem(fold(word)) for word in _PART.findall(text)))[:QUERY_TERMS]


def spans(text: str, asked: Set[str]) -> Iterator[tuple[int, int]]:
    """Where in a text the words are that have one of these terms, in order; of a script without spaces, the pairs."""
    for piece in _PIECE.finditer(text):
        runs = [] if piece[0].isascii() else list(_UNSPACED.finditer(piece[0]))
        if not runs:
            if not asked.isdisjoint(_known[piece[0]]):
                yield piece.span()
            continue
        for run in runs:
            end = 0
            for at in range(len(run[0])):
                size = next((size for size in (2, 1) if fold(run[0][at : at + size]) in asked), 0)
                if size and at + size > end:
                    yield piece.start() + run.start() + max(at, end), piece.start() + run.start() + at + size
                    end = at + size


def shortened(query: str) -> str:
    """The first QUERY_CHARACTERS of a query, cut between two words if possible."""
    if len(query) <= QUERY_CHARACTERS:
        return query
    cut = query[: QUERY_CHARACTERS + 1].rsplit(None, 1)
    return cut[0][:QUERY_CHARACTERS] if cut else ""


def plain_parts(text: str) -> list[tuple[tuple[str, ...], ...]]:
    """The terms that any text must have that contains this one. Of each part, all terms of one alternative.

    Unlike `terms` it has no joined forms: for `auth.py` it has `auth` and `py`, not `authpy`, since the text may have
    `src/auth.py`. Stop words are left out. `UserName` has two alternatives: a word of its own, or `user` and `name` as
    in `getUserName`.
    """
    return list(chain.from_iterable(map(_known_parts.__getitem__, _PART.findall(text))))


def _parts_of(word: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The parts of one word, see `plain_parts`."""
    parts: list[tuple[tuple[str, ...], ...]] = []
    at = 0
    for run in () if word.isascii() else _UNSPACED.finditer(word):
        parts += _alternatives(word[at : run.start()])
        parts.append((tuple(_unspaced(run[0])),))
        at = run.end()
    return (*parts, *_alternatives(word[at:]))


_known_parts: Remembered[tuple[tuple[str, ...], ...]] = Remembered(_parts_of)


def _alternatives(part: str) -> list[tuple[tuple[str, ...], ...]]:
    word = fold(part)
    if not word or word in STOP_WORDS:
        return []
    whole = (_stem(word) if word.isascii() else word,)
    humps = tuple(_stem(hump) for hump in _humps(part) if hump not in STOP_WORDS)
    return [(whole, humps) if humps else (whole,)]


def importance(term: str) -> float:
    """How much a term of a query counts, apart from its rarity."""
    return ASKING_WEIGHT if term in _WEAK else 1.0


def fold(text: str) -> str:
    """The text in lower case, without accents, and with full-width characters as plain ones."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c))).casefold()


def _is_word(piece: str) -> bool:
    """Whether it is a word that is one term."""
    return piece.isalpha() and (piece.islower() or piece.istitle() or len(piece) == 1)


def _terms_of(piece: str) -> tuple[str, ...]:
    """The terms of one unbroken piece of text."""
    if piece.isascii() and (piece.isdigit() or _is_word(piece)):
        word = piece.lower()
        return () if word in STOP_WORDS else (_stem(word),)
    if not piece.isascii() and _UNSPACED.search(piece):
        return tuple(_unspaced(piece))
    parts = _PART.findall(piece)
    result = []
    for part in parts:
        word = fold(part)
        if word not in STOP_WORDS:
            result.append(_stem(word) if word.isascii() else word)
        result += [_stem(hump) for hump in _humps(part) if hump not in STOP_WORDS]
    if len(parts) > 1 and not (len(parts) == 2 and len(parts[1]) <= 2 and "'" in piece):  # not "don't", "Ann's"
        joined = "".join(map(fold, parts))  # get_user_names is getUserNames
        result.append(_stem(joined) if joined.isascii() else joined)
    elif piece[-1] in "+#":
        result.append(fold(piece))  # C++, C#
    return tuple(result)


_known: Remembered[str] = Remembered(_terms_of)


def _humps(part: str) -> list[str]:
    """The words of a camelCase name in lower case; [] for any other word."""
    if not part.isascii() or part.islower() or part.isupper():
        return []
    humps = _CAMEL.findall(part)
    return [hump.lower() for hump in humps] if len(humps) > 1 else []


def _unspaced(piece: str) -> list[str]:
    """Pairs of adjacent characters in runs without spaces, and the terms between those runs."""
    result: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(piece):
        if run.start() > at:
            result += _terms_of(piece[at : run.start()])
        chars = fold(run[0])
        result += [chars] if len(chars) == 1 else [chars[i : i + 2] for i in range(len(chars) - 1)]
        at = run.end()
    return [*result, *_terms_of(piece[at:])] if at < len(piece) else result
