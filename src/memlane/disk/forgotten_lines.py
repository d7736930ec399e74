"""Lines of a text as `memlane.disk.forgotten` compares and hashes them.

Those that tell whose they are have a hash of their own. The others have one under a random salt, which each telling
line of the same memory seals: so nobody can test a guess at a line of few words without one of those, word for word.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

from memlane.core import alternatives
from memlane.core.patterns import lazily
from memlane.disk.forgotten_records import Record

TELLING = 12  # characters; a shorter line does not tell whose it is
MOST_BESIDE = 1024  # other lines that are kept of one memory
_SALT_BYTES = 16
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts that put no space between words
_WORD = lazily(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_ASCII = lazily(r"[a-z0-9]+")
_DATE = lazily(r"\d{4}-\d\d-\d\d\S*|\d\d?:\d\d")


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared: in lower case and NFKC, without invisible characters, and without what
    a merge has written around versions: or whatever two people change at the same time would be like what they changed
    before.
    """
    if alternatives.MARK in text:
        text = alternatives.unmarked(text)
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKC", text) if not _is_unseen(char))
        return _WORD.findall(unicodedata.normalize("NFKC", text.casefold()))
    return _ASCII.findall(text.lower())


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f" or "\U000e0000" <= char <= "\U000e01ef"


def compared(line: str) -> str:
    """A line as it is compared with others; "" where it says nothing."""
    return " ".join(words_of(line))


def lines_in(texts: Iterable[str]) -> list[str]:
    """Every line of these texts that says something, as it is compared."""
    return list(filter(None, dict.fromkeys(compared(line) for text in texts for line in text.splitlines())))


def rows(text: str) -> list[tuple[str, list[str]]]:
    """Each line of a text with its words."""
    return [(line, words_of(line)) for line in text.splitlines()]


def telling(rows: Iterable[tuple[str, list[str]]], least: int = 4) -> Iterator[str]:
    """Lines that tell whose they are: of so many words, or with a number in a short text."""
    for line, words in rows:
        said = " ".join(words)
        is_telling = len(set(words)) >= least or (least <= 4 and re.search(r"\d", _DATE.sub("", line)))
        if is_telling and len(said) >= TELLING:
            yield said


def hashed(key: bytes, text: str, size: int) -> bytes:
    from memlane.core.digests import blake2b

    return blake2b(text.encode(errors="replace"), key=key, digest_size=size).digest()


def line_hash(key: bytes, words: str) -> str:
    return hashed(key, f"line {words}", 12).hex()


def seal(key: bytes, record: Record, lines: Iterable[str], common: Collection[str]) -> None:
    """Let whoever has a telling line of a memory know its other ones again, but for those that are common."""
    salt = os.urandom(_SALT_BYTES)
    by_hash = {line_hash(key, line): line for line in lines}
    others = [line for hash, line in by_hash.items() if hash not in record.lines and line not in common]
    if others:
        record.seals = {hash: _sealed(key, salt, by_hash[hash]) for hash in record.lines if hash in by_hash}
    if record.seals:
        record.beside = set(sorted(beside(key, salt, line) for line in others)[:MOST_BESIDE])


def salts(key: bytes, record: Record, text: str) -> set[bytes]:
    """The salt of a record, where a text has a telling line of it."""
    lines = {line_hash(key, line): line for line in telling(rows(text))} if record.seals else {}
    return {_sealed(key, record.seals[hash], lines[hash]) for hash in lines.keys() & record.seals.keys()}


def beside(key: bytes, salt: bytes, words: str) -> str:
    return hashed(key, f"beside {salt.hex()} {words}", 8).hex()


def _sealed(key: bytes, salt: bytes, words: str) -> bytes:
    """A salt that a line seals; of what is sealed, the salt."""
    return bytes(one ^ two for one, two in zip(salt, hashed(key, f"seal {words}", _SALT_BYTES), strict=False))
