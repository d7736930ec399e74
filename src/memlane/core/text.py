"""Plain text: its line ends, first line, slug, keywords, size in tokens, and the texts in a value. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

from memlane.core.patterns import lazily

_ALIKE = 0.6  # difflib's ratio of names that may be meant for each other
_ALLOWED = lazily(r"(?:memlane:allow|gitleaks:allow|pragma: ?allowlist secret)\b")
_TELLING = 3  # characters of a name that tell something when they are part of another


_LONG = 4_000  # characters of a text that is not kept itself
_KEPT = 2_000_000  # characters of the long texts that are kept all the same
_WIDE = lazily("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff]")

T = TypeVar("T")


def remembered(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """As `functools.lru_cache`, for a function of a text and a few values. A long text is known by its hash: thousands
    of long notes, each asked about once, would fill the memory.
    """

    def made(work: Callable[..., T]) -> Callable[..., T]:
        of_short = lru_cache(most)(work)

        @lru_cache(most)
        def of_long(text: _Hashed, *more: Hashable) -> T:
            return work(text.release(), *more)

        @wraps(work)
        def asked(text: str, *more: Hashable) -> T:
            return of_short(text, *more) if len(text) <= _LONG else of_long(_Hashed(text), *more)

        return asked

    return made


def remembered_whole(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """As `functools.lru_cache`, for a function that makes something as long of a text. Long ones are kept, too, for
    they are asked about again at once, but only as many as take little.
    """

    def made(work: Callable[[str], T]) -> Callable[[str], T]:
        of_short = lru_cache(most)(work)
        of_long: dict[str, T] = {}

        @wraps(work)
        def asked(text: str) -> T:
            if len(text) <= _LONG:
                return of_short(text)
            if (known := of_long.get(text)) is not None:
                return known
            value = work(text)
            if sum(map(len, [*of_long, text])) > _KEPT:  # there are never many
                of_long.clear()
            if len(text) <= _KEPT:
                of_long[text] = value
            return value

        return asked

    return made


class _Hashed:
    """A text that equals those with the same hash, whether or not it is still held."""

    def __init__(self, text: str) -> None:
        from hashlib import blake2b

        self._text, self._digest = text, blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other._digest == self._digest

    def release(self) -> str:
        text, self._text = self._text, ""
        return text


def newline_of(text: str) -> str:
    """The line end a text uses, judged by its first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def joined(text: str, addition: str) -> str:
    """The text, an empty line, the addition; all in the line ends of the text."""
    newline = newline_of(text)
    if newline != "\n":
        addition = addition.replace("\r\n", "\n").replace("\n", newline)
    return text.rstrip() + newline * 2 + addition


def slug(text: str, limit: int = 60) -> str:
    """A file-name form of a title: lower-case words of any script joined by dashes; "" when nothing is left."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold().replace("'", ""))
    result = ""
    for word in words:
        longer = f"{result}-{word}" if result else word
        if len(longer.encode()) > limit:
            break
        result = longer
    if not result and words:
        result = words[0].encode()[:limit].decode(errors="ignore")
    return unicodedata.normalize("NFC", result.replace("_", "-").strip("-"))


def first_line(text: str, limit: int = 200) -> str:
    """The first line with words in it, cut with `...`, without Markdown's heading and list marks.

    Nor has it the mark that allows what is on the line: that is for whoever reads the file, and not for a title.
    """
    for line in text.splitlines():
        if mark := _ALLOWED.search(line):
            line = line[: mark.start()].rstrip().rstrip("<!-/#;%(")
        if bare := line.strip().lstrip("#>*-+ \t").strip():
            bare = f"**{bare}" if "**" in bare and f"**{bare}" in line else bare  # bold, and no mark of a list
            return bare if len(bare) <= limit else bare[: limit - 3] + "..."
    return ""


def nearest(wanted: str, names: Iterable[tuple[str, Iterable[str]]], limit: int = 3) -> list[str]:
    """The keys of those names that look most like this one, the best first: (key, its names) each."""
    from difflib import SequenceMatcher

    given = slug(wanted, 200).removesuffix("-md")
    matcher = SequenceMatcher(None, b=given, autojunk=False)
    best: dict[str, float] = {}
    for key, spellings in names if given else ():
        for name in {slug(spelling, 200) for spelling in spellings}:
            matcher.set_seq1(name)
            likeness = 0.0
            if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
                likeness = matcher.ratio()
            if min(len(given), len(name)) >= _TELLING and (given in name or name in given):
                likeness = max(likeness, _ALIKE)
            if likeness >= _ALIKE:
                best[key] = max(likeness, best.get(key, 0.0))
    return sorted(best, key=lambda key: (-best[key], key))[:limit]


_ASCII = bytes(range(128))
STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before being but by can could did do does doing done
    for from get got had has have having he her here him his how i if in into is it its just let like me more most
    my no nor not now of off on one only or other our out over own said same she should so some such than that the
    their them then there these they this those through to too under up us use used using very was way we were what
    when where which while who will with would you your""".split()
)


def keywords(text: str, limit: int = 5) -> list[str]:
    """The words a text repeats most, in any script; stop words, numbers and very short Latin words are left out.

    Never empty for a text that has any letter or digit.
    """
    words = re.findall(r"\w+(?:-\w+)*", unicodedata.normalize("NFC", text).lower())
    counts: dict[str, int] = {}
    for word in words:
        word = word.strip("_-")[:50]
        if word in STOP_WORDS or word.isdigit() or (len(word) < 3 and word.isascii()) or not word:
            continue
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts, key=lambda word: -counts[word])  # stable: first mention first among equals
    return ranked[:limit] or [word[:50] for word in words[:1]]


def estimate(text: str) -> int:
    """About how many tokens a model needs: one for four characters, one for each Chinese, Japanese, Korean or emoji."""
    wide = 0 if text.isascii() else _wide(_beyond_ascii(text))
    return -(-(len(text) + 3 * wide) // 4)


def _beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII; as bytes, the others are taken out at once."""
    return text.encode(errors="surrogatepass").translate(None, _ASCII).decode(errors="surrogatepass")


def _wide(text: str) -> int:
    """How many characters are Chinese, Japanese, Korean or emoji."""
    if not any("\u1100" <= char <= "\u11ff" or char >= "\u2e80" for char in set(text)):
        return 0  # accents, dashes and arrows: compiling the pattern takes milliseconds
    return len(_WIDE.findall(text))


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a value of lists and mappings, such as parsed JSON, with the mappings' keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings_in(key)
            yield from strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)
