"""What cannot fit into the rest of a budget, told without writing it. For our own estimate of tokens alone. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from memlane.core.model import Memory

_UNSURE = bytes((*range(33), 127))  # blanks may be cut off, and control characters go
_AROUND = len("- []\n")


def left(tokens: int, budget: int) -> int:
    """How many characters a block of so many tokens may still get, at most: four are a token."""
    return 4 * (budget - tokens) + 3


def least(memory: Memory, texts: Collection[str]) -> int:
    """So many characters at least an entry adds to a block that has the memory's id and one of these texts in it."""
    return _shown(memory.id) + min(map(_shown, texts)) + _AROUND


def _shown(text: str) -> int:
    """How many characters of a text are shown whatever is around them; escaping only makes it longer."""
    if "\x1b" in text:  # a colour code goes with the letters in it
        return 0
    return len(text.encode("ascii", "ignore").translate(None, _UNSURE))
