"""What of a memory a hit shows: the sentences that say most about the query, and where its words are in them."""

from __future__ import annotations

from collections.abc import Iterator

from memlane.core.model import Hit
from memlane.index.words import query_terms, spans
from memlane.lanes.vault.record import one_line
from memlane.recall.blocks import telling


def snippet(hit: Hit, query: str, size: int) -> str:
    """About so many characters of what was found, in one line; "" where the title says it already."""
    said = telling(one_line(hit.content or hit.memory.text), query, size)
    return "" if said.strip("# ") == one_line(hit.memory.title) else said


def marked(text: str, query: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, in order, each with whether it is a word that the query asks for, in any form of it."""
    asked, at = set(query_terms(query)), 0
    for start, end in spans(text, asked):
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < len(text):
        yield text[at:], False
