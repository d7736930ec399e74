"""Texts that were looked at before, and had no secret, or nothing that reads like instructions, in them.

Whether a text has any depends on nothing but the text and the rules. The rules are hundreds of patterns and words: to
load those that a few short memories need takes longer than to read these memories. So what passed is noted, as a keyed
hash, in the user's state folder beside the token of the index: a hook that shows what was shown before loads none of
them. Who asks about very many at once has a file of its own for them, which no hook reads. No bank brings such a file
along, and deleting it loses nothing but time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from memlane.core.digests import blake2b
from memlane.disk import rooted, state

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.core.model import Memory

MANY = 100  # texts of one question that are noted apart
MOST, MOST_OF_MANY = 64 * 1024, 16 * 1024 * 1024  # bytes of a file; then it begins anew
MOST_APART = {"pages": 4 * 1024 * 1024}  # of one that is noted anew, all of it, after every deletion
_MARK = 33  # bytes of a line of such a file
_SOURCES = ("core", "gate", "gate/secrets")  # where the rules are written
_MANY_PLAIN, _LONG = 2_000, 4_000  # texts without instructions that are remembered, and characters of the longest
_plain: set[str] = set()
_kept: dict[str, tuple[bytes, set[bytes]]] = {}  # by place: the key and what is noted


def passing(
    bank: Bank, check: str, texts: Sequence[str], look: Callable[[str], bool], *, apart: str = ""
) -> list[bool]:
    """Whether each text passes a check: by a note from before, else by a look, which is noted.

    `check` names the check and all that it depends on besides the text and our own rules. `apart` names a file of its
    own for what no hook asks.
    """
    from memlane.index.seal import HARMLESS

    apart = apart or ("many" if len(texts) >= MANY else "")
    name, most = (f"{apart}.{HARMLESS}", MOST_APART.get(apart, MOST_OF_MANY)) if apart else (HARMLESS, MOST)
    token, edition = bank.index_file.token_file, _edition()
    if token is None or not edition:
        return list(map(look, texts))
    place = f"{token}.{name}"  # as `seal.beside` says, without what a Path costs for each text
    key, known = _read(place, most)
    own = blake2b(f"{edition}\0{check}".encode("utf-8", "surrogatepass"), key=key).digest()
    marks = (blake2b(text.encode("utf-8", "surrogatepass"), key=own, digest_size=16) for text in texts)
    names = [mark.hexdigest().encode() for mark in marks]
    passed = [name in known or look(text) for name, text in zip(names, texts, strict=True)]
    if not known.issuperset(names) and (
        new := {name for name, passes in zip(names, passed, strict=True) if passes} - known
    ):
        known |= new
        _note(place, most, key, new)
    return passed


def suspicious(bank: Bank, memory: Memory) -> tuple[str, ...]:
    """As `memory.suspicious`."""
    words = memory.words
    if words in _plain:  # who asks again sees much of the same
        return ()
    (passes,) = passing(bank, "instructions", [words], lambda _: not memory.suspicious)
    if not passes:
        return memory.suspicious
    if len(_plain) >= _MANY_PLAIN:
        _plain.clear()
    if len(words) <= _LONG:
        _plain.add(words)
    return ()


def _note(place: str, most: int, key: bytes, marks: set[bytes]) -> None:
    """Add marks to the file, whose first line is the key. It only saves time: where it cannot be, nothing happens."""
    with suppress(OSError):
        lines = marks if os.path.exists(place) else [key.hex().encode(), *marks]
        if state.append(*os.path.split(place), b"\n".join(lines)) > most:
            state.remove([place])  # the next process begins anew; this one knows what it has seen
            if len(_kept.get(place, (key, marks))[1]) * _MARK > 4 * most:
                _kept.pop(place, None)


def _read(place: str, most: int) -> tuple[bytes, set[bytes]]:
    """The key and the marks of a file; of one that is not there or damaged, a new key."""
    if place not in _kept:
        lines: list[bytes] = []
        with suppress(OSError):
            lines = state.Opened(place).read(0, 2 * most).split()
        try:
            key = bytes.fromhex(lines[0].decode())[:64]
        except (LookupError, ValueError):
            key = os.urandom(16)
        _kept[place] = key, {*lines[1:]}
    return _kept[place]


@cache
def _edition() -> str:
    """What is another one when a rule has changed; "" where that cannot be told."""
    home = os.path.dirname(os.path.dirname(__file__))
    try:
        files = [one for folder in _SOURCES for one in rooted.states_in(os.path.join(home, folder))]
    except OSError:  # not a folder, but a zip file
        return ""
    stamps = (
        f"{name} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}" for name, info in files if name.endswith(".py")
    )
    return blake2b(" ".join((f"{sys.hexversion}", *stamps)).encode(), digest_size=16).hexdigest()
