"""Memories made ready for the index: their chunks, what each term counts in each, and vectors.

Needs no index and no disk, so that another process can do it (`building`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from memlane.core import triggers
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.index.chunks import chunks
from memlane.index.columns import Array
from memlane.index.encoders import Encoder, StaticEncoder
from memlane.index.words import terms

AT_ONCE = 2_000_000  # bytes of memories that are prepared together: in memory they take forty times as much
# What a term counts, in quarters: so they are stored.
TEXT, HEADER = 4, 6
TITLE = TAGS = AKA = 8
PLACED = np.dtype([("at", "<u4"), ("weight", "u1")])  # a posting, `at` a chunk of those that were prepared together
_WEIGHTS = [bytes([min(weight, 255)]) for weight in range(256)]


class Prepared(NamedTuple):
    """The chunks of some memories, numbered from 0 on."""

    counts: list[int]  # of the chunks of each memory
    chunks: list[tuple[str, str, float]]  # headings, text, length
    postings: dict[str, bytearray]  # of each term, as PLACED
    vectors: Array  # int8, one row per chunk
    tokens: Array  # how often each token occurs in the texts; empty where the encoder has none


def prepare(memories: Sequence[Memory], encoder: Encoder) -> Prepared:
    counts: list[int] = []
    rows: list[tuple[str, str, float]] = []
    passages = []
    postings: defaultdict[str, bytearray] = defaultdict(bytearray)
    for memory in memories:
        first = len(rows)
        for header, text, weights in _pieces(memory):
            at = len(rows).to_bytes(4, "little")
            for term, weight in weights.items():
                postings[term] += at + _WEIGHTS[min(255, weight)]
            rows.append((header, text, sum(weights.values()) / 4))
            passages.append((memory.title, header, text))
        counts.append(len(rows) - first)
    vectors, tokens = _embedded(encoder, passages)
    return Prepared(counts, rows, dict(postings), vectors, tokens)


def _pieces(memory: Memory) -> Iterator[tuple[str, str, dict[str, int]]]:
    """(headings, text, what each term counts) of the chunks of a memory, of which there may be very many."""
    common: dict[str, int] = {}  # terms that every chunk of the memory has
    for text, weight in (
        (memory.title, TITLE),
        (" ".join((*memory.tags, memory.type or "")), TAGS),
        (_also_known_as(memory), AKA),
        (f"{memory.native_id} {memory.scope or ''} {memory.project or ''}", TEXT),
        (scope.removeprefix("file:") if (scope := memory.scope or "").startswith("file:") else "", TITLE),
    ):
        for term in terms(text):
            if common.get(term, 0) < weight:
                common[term] = weight
    if memory.created_at:
        for term in _date_terms(memory.created_at.strftime("%d %B %Y %A")):
            common.setdefault(term, TEXT)
    for header, text in chunks(visible(memory.text)):  # a soft hyphen must not hide a word
        weights = _counted(text)
        for term in terms(header):
            weights[term] = weights.get(term, 0) + HEADER
        for term, weight in common.items():
            weights[term] = weights.get(term, 0) + weight
        yield header, text, weights
    for when in triggers.of(memory.fields):
        yield "", when, _counted(when)


def _counted(text: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for term in terms(text):
        weights[term] = weights.get(term, 0) + TEXT
    return weights


@lru_cache(maxsize=4096)
def _date_terms(date: str) -> tuple[str, ...]:
    return tuple(terms(date))


def _also_known_as(memory: Memory) -> str:
    """Other words that somebody may look for it by: its own field `aka`, one text or a list."""
    words = memory.fields.get("aka", "")
    return " ".join(map(str, words)) if isinstance(words, list | tuple) else str(words)


def _embedded(encoder: Encoder, passages: Sequence[tuple[str, str, str]]) -> tuple[Array, Array]:
    if isinstance(encoder, StaticEncoder):
        vectors, counts = encoder.encode_passages([(f"{title}\n{header}", text) for title, header, text in passages])
        return stored(vectors), counts
    texts = [embedded_text(*passage) for passage in passages]
    return stored(encoder.encode_texts(texts)), np.zeros(0, np.int64)


def embedded_text(title: str, header: str, text: str) -> str:
    """What an encoder sees of a chunk."""
    return "\n".join(filter(None, (title, header, text)))


def stored(vectors: Array) -> Array:
    """Vectors in the form in which they are stored: int8."""
    rows: Array = np.rint(vectors * 127).astype(np.int8)
    return rows
