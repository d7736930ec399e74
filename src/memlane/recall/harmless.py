"""Texts that were looked at before, and had no secret, or nothing that reads like instructions, in them.

Whether a text has any depends on nothing but the text and the rules. The rules are hundreds of patterns and words: to
load those that a few short memories need takes longer than to read these memories. So what passed is noted, as a keyed
hash, in the user's state folder beside the token of the index: a hook that shows what was shown before loads none of
them. No bank brings such a file along, and deleting it loses nothing but time.
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
    from pathlib import Path

    from memlane.bank import Bank
    from memlane.core.model import Memory

MOST = 64 * 1024  # bytes of the file; then it begins anew
_SOURCES = ("core", "gate", "gate/secrets")  # where the rules are written
_kept: dict[Path, tuple[bytes, set[bytes]]] = {}  # by place: the key and what is noted


def passing(bank: Bank, check: str, texts: Sequence[str], look: Callable[[str], bool]) -> list[bool]:
    """Whether each text passes a check: by a note from before, else by a look, which is noted.

    `check` names the check and all that it depends on besides the text and our own rules.
    """
    from memlane.index.seal import HARMLESS, beside

    place, edition = beside(bank.index_file, HARMLESS), _edition()
    if place is None or not edition:
        return list(map(look, texts))
    key, known = _read(place)
    kind = f"{edition}\0{check}\0"
    marks = [blake2b((kind + text).encode("utf-8", "surrogatepass"), key=key, digest_size=16) for text in texts]
    names = [mark.hexdigest().encode() for mark in marks]
    passed = [name in known or look(text) for name, text in zip(names, texts, strict=True)]
    if new := {name for name, passes in zip(names, passed, strict=True) if passes} - known:
        known |= new
        _note(place, key, new)
    return passed


def suspicious(bank: Bank, memory: Memory) -> tuple[str, ...]:
    """As `memory.suspicious`."""
    (passes,) = passing(bank, "instructions", [memory.words], lambda _: not memory.suspicious)
    return () if passes else memory.suspicious


def _note(place: Path, key: bytes, marks: set[bytes]) -> None:
    """Add marks to the file, whose first line is the key. It only saves time: where it cannot be, nothing happens."""
    with suppress(OSError):
        lines = marks if place.exists() else [key.hex().encode(), *marks]
        if state.append(place.parent, place.name, b"\n".join(lines)) > MOST:
            state.remove([os.fspath(place)])
            del _kept[place]


def _read(place: Path) -> tuple[bytes, set[bytes]]:
    """The key and the marks of a file; of one that is not there or damaged, a new key."""
    if place not in _kept:
        lines: list[bytes] = []
        with suppress(OSError):
            lines = state.Opened(os.fspath(place)).read(0, 2 * MOST).split()
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
    return " ".join((f"{sys.hexversion}", *stamps))
