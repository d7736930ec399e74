"""Rank what the index has for a query: words, vectors and neighbours, fused, filtered, boosted, explained.

    score = 1 / (1 + exp(-(0.55 z(words) + 0.45 z(vectors))))  ×  the recency factor

z(x) is how many standard deviations a chunk lies above the mean of all chunks. Before that, each side adds a share of
what the neighbours of a chunk scored: the chunks before and after it in a file, a topic or a conversation are evidence
for each other. A memory's score is that of its best chunk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from memlane.index.store import Columns, Index
from memlane.index.words import fold, query_terms
from memlane.model import Hit, Memory

K1, B = 0.9, 0.4
VECTORS = 0.45  # share of the vectors in the score
NEIGHBOUR_WORDS, NEIGHBOUR_VECTORS = 0.3, 0.3
LEAST_COSINE = 0.20  # a chunk without any of the words counts from here on
RESCORED = 2_000
Scores = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart: its terms, "quoted phrases" that must occur, and -words that must not."""

    text: str
    terms: tuple[str, ...]
    phrases: tuple[str, ...]
    without: tuple[str, ...]


def parse(query: str) -> Query:
    phrases = [phrase.strip() for phrase in re.findall(r'"([^"]+)"', query) if phrase.strip()]
    rest = re.sub(r'"[^"]*"', " ", query)
    without = re.findall(r"(?:^|\s)-(\w[\w./-]*)", rest)
    rest = re.sub(r"(^|\s)-\w[\w./-]*", " ", rest)
    text = " ".join((*phrases, rest)).strip()
    excluded = [term for word in without for term in query_terms(word)]
    return Query(text, tuple(query_terms(text)), tuple(map(_flat, phrases)), tuple(excluded))


def search(
    index: Index,
    query: str,
    *,
    limit: int = 5,
    filters: Mapping[str, Any] | None = None,
    recency: tuple[int, float] = (7, 1.2),
    now: datetime,
) -> list[Hit]:
    """The best memories for a query, one hit each. Filters apply before the cut; results are deterministic."""
    asked = parse(query)
    if not asked.text or limit <= 0:
        return []
    columns = index.columns()
    alive = columns.alive
    if filters:
        matching = index.matching(**filters)
        if matching is not None:
            alive = alive & np.isin(columns.memory, matching)
    if not alive.any():
        return []
    words = _word_scores(index, columns, asked.terms)
    for term in asked.without:
        numbers, _ = index.postings(term)
        alive = alive.copy()
        alive[numbers[numbers < len(alive)]] = False
    cosines = _cosines(index, columns, asked.text)
    candidates = np.flatnonzero(alive & ((words > 0) | (cosines >= LEAST_COSINE)))
    if not len(candidates):
        return []
    by_words = _z(_with_neighbours(words, columns, NEIGHBOUR_WORDS), columns.alive)
    by_vectors = _z(_with_neighbours(cosines, columns, NEIGHBOUR_VECTORS), columns.alive)
    share = VECTORS if cosines.any() else 0.0
    fused = (1 - share) * by_words + share * by_vectors
    best = _best_chunks(candidates, fused, columns, limit * 2 + 10, asked, index)
    found = index.memories(int(columns.memory[chunk]) for chunk in best)
    hits = []
    for chunk in best:
        memory = found.get(int(columns.memory[chunk]))
        if memory is None:
            continue
        base = 1 / (1 + math.exp(-float(fused[chunk])))
        factor = _recency(memory, recency, now)
        header, text = index.chunk(int(chunk))
        why = {
            "words": round(float(words[chunk]), 4),
            "words_z": round(float(by_words[chunk]), 4),
            "cosine": round(float(cosines[chunk]), 4),
            "vectors_z": round(float(by_vectors[chunk]), 4),
            "base": round(base, 4),
            "recency": factor,
        }
        hits.append(Hit(memory, round(base * factor, 6), text.strip(), header, why))
    hits.sort(key=lambda hit: (-hit.score, hit.memory.id))
    return hits[:limit]


def _word_scores(index: Index, columns: Columns, terms: Sequence[str]) -> Scores:
    """BM25 of every chunk."""
    scores = np.zeros(len(columns.memory))
    total = max(int(columns.alive.sum()), 1)
    mean = float(columns.length[columns.alive].mean()) if columns.alive.any() else 1.0
    for term in terms:
        numbers, weights = index.postings(term)
        kept = numbers < len(scores)
        numbers, weights = numbers[kept], weights[kept]
        kept = columns.alive[numbers]
        numbers, weights = numbers[kept], weights[kept]
        if len(numbers):
            rarity = math.log(1 + (total - len(numbers) + 0.5) / (len(numbers) + 0.5))
            norm = K1 * (1 - B + B * columns.length[numbers] / mean)
            scores[numbers] += rarity * weights * (K1 + 1) / (weights + norm)
    return scores


def _cosines(index: Index, columns: Columns, text: str) -> Scores:
    """How close every chunk is to the query, once what all chunks have in common is taken away."""
    size = len(columns.memory)
    if not index.encoder.dim or not size:
        return np.zeros(size)
    asked = index.encoder.encode_query(text)
    if not asked.any():
        return np.zeros(size)
    asked = asked - columns.mean
    asked = asked / max(float(np.linalg.norm(asked)), 1e-9)
    if not len(columns.signs):
        return (columns.rows @ asked).astype(np.float64) * columns.alive
    signs = np.packbits(asked > 0).view(np.uint64)
    apart = np.bitwise_count(columns.signs ^ signs).sum(axis=1)
    # the angle between two vectors shows in how many of their signs differ
    scores = np.cos(np.pi * apart / index.encoder.dim)
    nearest = np.argpartition(-scores, RESCORED)[:RESCORED]
    scores[nearest] = columns.rows[nearest].astype(np.float32) @ asked / 127
    return scores * columns.alive


def _with_neighbours(scores: Scores, columns: Columns, share: float) -> Scores:
    """Each chunk's score and a share of that of the chunks before and after it."""
    padded = np.append(scores, 0.0)  # -1, no neighbour, is the last place
    return scores + share * (padded[columns.before] + padded[columns.after])


def _z(scores: Scores, alive: np.ndarray[Any, np.dtype[np.bool_]]) -> Scores:
    known = scores[alive]
    spread = float(known.std())
    return (scores - float(known.mean())) / spread if spread > 1e-12 else np.zeros(len(scores))


def _best_chunks(
    candidates: np.ndarray[Any, Any], fused: Scores, columns: Columns, most: int, asked: Query, index: Index
) -> list[int]:
    """The best chunk of each of the best memories; a chunk that lacks a quoted phrase does not count."""
    best: dict[int, int] = {}
    for chunk in candidates[np.lexsort((candidates, -fused[candidates]))]:
        memory = int(columns.memory[chunk])
        if memory in best:
            continue
        if asked.phrases and not _has_phrases(index, int(chunk), asked.phrases):
            continue
        best[memory] = int(chunk)
        if len(best) >= most:
            break
    return list(best.values())


def _has_phrases(index: Index, chunk: int, phrases: Sequence[str]) -> bool:
    text = _flat(" ".join(index.chunk(chunk)))
    return all(phrase in text for phrase in phrases)


def _flat(text: str) -> str:
    return " ".join(fold(text).split())


def _recency(memory: Memory, recency: tuple[int, float], now: datetime) -> float:
    days, factor = recency
    created = memory.created_at
    return factor if created is not None and (now - created) / timedelta(days=1) < days + 1 else 1.0
