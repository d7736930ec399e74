"""Memories made ready for the index: their chunks, what each term counts in each, and vectors.

Needs no index and no disk, so that another process can do it (`building`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from memlane.core import triggers
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.index import closeness
from memlane.index.chunks import HEADING, chunks, clipped
from memlane.index.columns import Array
from memlane.index.encoders import Encoder, StaticEncoder, built_in
from memlane.index.words import terms

COMMON = 1_000  # characters of a title, of tags, … that count in every chunk of a memory
AT_ONCE = 2_000_000  # bytes of memories that are prepared together: in memory they take forty times as much
# What a term counts, in quarters: so they are stored.
TEXT, HEADER = 4, 6
TITLE = TAGS = AKA = 8
PLACED = np.dtype([("at", "<u4"), ("weight", "u1")])  # a posting, `at` a chunk of those that were prepared together
_WEIGHTS = [bytes([min(weight, 255)]) for weight in range(256)]


class Prepared(NamedTuple):
    """The chunks of some memories, numbered from 0 on."""

    counts: list[int]  # of the chunks of each memory
    chunks: list[tuple[float, bytes, str, str]]  # length, passage, headings, text: as they are stored
    postings: dict[str, bytearray]  # of each term, as PLACED
    vectors: Array  # int8, one row per chunk
    tokens: Array  # how often each token occurs in the texts; empty where the encoder has none


def prepare(memories: Sequence[Memory], encoder: Encoder) -> Prepared:
    counts: list[int] = []
    lengths: list[float] = []
    passages: list[tuple[str, str, str]] = []
    postings: defaultdict[str, bytearray] = defaultdict(bytearray)
    for memory in memories:
        first = len(lengths)
        for header, text, weights in _pieces(memory):
            at = len(lengths).to_bytes(4, "little")
            for term, weight in weights.items():
                postings[term] += at + _WEIGHTS[min(255, weight)]
            lengths.append(sum(weights.values()) / 4)
            passages.append((memory.title, header, text))
        counts.append(len(lengths) - first)
    vectors, packed = embedded(encoder, passages)
    rows = [
        (length, data, header, text) for length, data, (_, header, text) in zip(lengths, packed, passages, strict=True)
    ]
    tokens = closeness.counted(packed, encoder) if isinstance(encoder, StaticEncoder) else np.zeros(0, np.int64)
    return Prepared(counts, rows, dict(postings), vectors, tokens)


def _pieces(memory: Memory) -> Iterator[tuple[str, str, dict[str, int]]]:
    """(headings, text, what each term counts) of the chunks of a memory, of which there may be very many."""
    said = (
        (memory.title, TITLE),
        (" ".join((*memory.tags, memory.type or "")), TAGS),
        (_also_known_as(memory), AKA),
        (f"{memory.native_id} {memory.scope or ''} {memory.project or ''}", TEXT),
        (scope.removeprefix("file:") if (scope := memory.scope or "").startswith("file:") else "", TITLE),
    )
    common: dict[str, int] = {}  # terms that every chunk of the memory has
    once: dict[str, int] = {}  # terms that only the first has: in each of many, those of a long title would be too many
    for text, weight in said:
        _raise(common, terms(text[:COMMON]), weight)
        if len(text) > COMMON and text not in memory.text:
            _raise(once, terms(text), weight)
    if memory.created_at:
        for term in _date_terms(memory.created_at.strftime("%d %B %Y %A")):
            common.setdefault(term, TEXT)
    for header, text in chunks(visible(memory.text)):  # a soft hyphen must not hide a word
        weights = _counted(text)
        for term in terms(header):
            weights[term] = weights.get(term, 0) + HEADER
        for term, weight in common.items():
            weights[term] = weights.get(term, 0) + weight
        for term, weight in once.items():
            if term not in common:
                weights[term] = weights.get(term, 0) + weight
        once = {}
        yield header, text, weights
    for when in triggers.of(memory.fields):
        yield "", when, _counted(when)


def _raise(weights: dict[str, int], found: Iterable[str], weight: int) -> None:
    for term in found:
        if weights.get(term, 0) < weight:
            weights[term] = weight


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


def embedded(encoder: Encoder, chunks: Sequence[tuple[str, str, str]]) -> tuple[Array, list[bytes]]:
    """The vectors of chunks, each given by title, headings and text; and each as a passage for a closer look, which is
    made by the built-in table whatever the encoder. Encoders without meaning have none.
    """
    chunks = [(clipped(title, HEADING), header, text) for title, header, text in chunks]
    if encoder.name in ("none", "hash"):
        return stored(encoder.encode_texts([embedded_text(*chunk) for chunk in chunks])), [b""] * len(chunks)
    if isinstance(encoder, StaticEncoder):
        vectors, passages = closeness.passages(encoder, chunks)
        return stored(vectors), passages
    _, passages = closeness.passages(built_in(), chunks)
    return stored(encoder.encode_texts([embedded_text(*chunk) for chunk in chunks])), passages


def embedded_text(title: str, header: str, text: str) -> str:
    """What an encoder sees of a chunk."""
    return "\n".join(filter(None, (title, header, text)))


def stored(vectors: Array) -> Array:
    """Vectors in the form in which they are stored: int8."""
    rows: Array = np.rint(vectors * 127).astype(np.int8)
    return rows
