"""A block of entries for a prompt (seed 000). Pure functions, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memlane.core.invisible import visible
from memlane.lanes.topics.entries import Entry

_TRIED = 10  # entries from the best one on


class Embedding(str):
    """A block of Markdown for a prompt, with the entries in it and its size in tokens."""

    entries: tuple[Entry, ...] = ()
    tokens: int = 0


def embedded(
    entries: Sequence[Entry], folder: str, limit: int, max_tokens: int, estimator: Callable[[str], int]
) -> Embedding:
    """The first of these entries, the best first, that fit, each whole and below its source.

    Where the best one alone fills the block, two others say more.
    """

    def block(candidates: Sequence[Entry]) -> Embedding:
        chosen: list[Entry] = []
        text = ""
        for entry in candidates:
            source = f"**Source:** {folder}/{entry.topic}/{entry.subtopic}.md\n"
            piece = source + visible(entry.raw).replace("\r\n", "\n").rstrip() + "\n"
            longer = f"{text}\n{piece}" if text else piece
            if len(chosen) < limit and estimator(longer) <= max_tokens:
                text = longer
                chosen.append(entry)
        embedding = Embedding(text)
        embedding.entries, embedding.tokens = tuple(chosen), estimator(text)
        return embedding

    best = block(())
    for first in range(min(len(entries), _TRIED)):
        best = max(best, block(entries[first : first + _TRIED]), key=lambda block: min(len(block.entries), 2))
        if len(best.entries) >= min(2, limit):
            break
    return best
