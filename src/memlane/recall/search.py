"""Rank memories for a query by words, vectors and neighbours; filter, boost and explain them.

    score  =  (1 - exp(-2 x))  ×  the recency factor  ×  the freshness factor
    x      =  0.8 words + 0.2 cosine, plus a share of the neighbours' x; × 1.4 within a time that the query mentions

words   how much of the query the memory has, 0 … 1: BM25 divided by the most it could be, also for words that no memory
        has. So the fewer of its words the bank knows, the more the vectors count. 70 % is from the memory's best chunk,
        times the part of the query that this chunk has; 30 % from the memory as a whole.
cosine  of the memory's closest chunk, after subtracting what all chunks have in common. With the vectors of a model,
        which say more than those of the built-in table, the shares are equal.
relevance  the probability that the query is about this memory at all: `memlane.recall.relevance`. It does not affect
        the order; prompt blocks drop hits below a threshold.
freshness  below 1 where the code that a memory speaks of has changed or is gone: `memlane.care.fresh`.
A memory that says that something changed stands above the older one on the same thing: `memlane.recall.renewal`.
Neighbours are the memories before and after in a conversation or topic: 0.3 of the next ones, 0.2 of the second next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np

from memlane.core.model import Hit, Memory
from memlane.index.columns import FEW, Array, Columns
from memlane.index.encoders import Encoder
from memlane.index.query_dates import spans
from memlane.index.store import Index
from memlane.index.words import fold, importance, plain_parts
from memlane.recall import renewal
from memlane.recall.query import Query, parse
from memlane.recall.relevance import probabilities
from memlane.recall.unconfirmed import weight

K1, B = 0.9, 0.4  # BM25's
WHOLE = 0.3  # share of the memory as a whole in its words score; the rest is from its best chunk
VECTORS = 0.2  # share of the vectors in the score
MODEL_VECTORS = 0.5  # the same where a model made them rather than the built-in table
NEIGHBOURS = (0.3, 0.2)  # shares of the next memory on either side, and of the second next
DATED = 1.4  # factor for a memory from a time that the query mentions
STEEPNESS = 2.0  # of the curve from x to a score below 1
LEAST_COSINE = 0.10  # a memory without any of the words needs at least this
RESCORED = 1_000  # in a large index, only so many vectors closest by sign, and so many best by words, are compared
BATCH = 2_000  # memories that are read at a time, at most
TIES = 1_000  # of memories with equal score and time, only so many are sorted by id
SCANNED = 5_000  # memories that are searched for a phrase without any indexed term, the best first
EXTRA = 15  # hits beyond the limit, which may overtake those whose code has changed
SUPERSEDED = 0.3  # factor for a memory that another one took the place of
Replaced = Mapping[str, Sequence[str]]  # what took the place of each, the earlier first
Weigh = Callable[[Sequence[Memory]], Mapping[str, float]]  # factors for the scores of some of these memories, by id


class Counts(NamedTuple):
    """How many chunks and memories an index has, and of those how many have each term of a query.

    The rarity of a word decides what it counts. Two banks that are searched together must agree on it, or else any
    word would count for much in the one that is small: each is ranked with what the other one has `beside` it.
    """

    chunks: int = 0
    memories: int = 0
    having: Mapping[str, tuple[int, int]] = MappingProxyType({})


ALONE = Counts()


def search(
    index: Index,
    query: str,
    *,
    limit: int = 5,
    filters: Mapping[str, Any] | None = None,
    recency: tuple[int, float] = (7, 1.2),
    weigh: Weigh | None = None,
    replaced: Replaced = MappingProxyType({}),
    beside: Counts = ALONE,
    now: datetime,
) -> list[Hit]:
    """The best memories for a query, one hit each. Filters apply before the cut; results are deterministic.

    The first 2,000 characters and 200 terms of a query count. Phrases and -words are matched as they are written apart
    from case and accents, also inside words (`"auth.py"` is in `src/auth.py`), but a phrase made of stop words only
    matches whole words. `recency` is (days, factor): newer memories get the factor. `replaced` is what took the place
    of which: it has at least the score of the old one, which falls behind it.
    """
    parsed = parse(query)
    if not parsed.text or limit <= 0:
        return []
    attempts = [parsed]
    if parsed.phrases and query.rstrip().endswith("?"):
        # a question that quotes something: better an answer without the exact words than none
        attempts.append(replace(parsed, phrases=()))
    rest = (filters or {}, recency, weigh, replaced, beside, now)
    hits = (_search(index, attempt, limit, *rest) for attempt in attempts)
    return next(filter(None, hits), [])


def _search(
    index: Index,
    query: Query,
    limit: int,
    filters: Mapping[str, Any],
    recency: tuple[int, float],
    weigh: Weigh | None,
    replaced: Replaced,
    beside: Counts,
    now: datetime,
) -> list[Hit]:
    columns = index.columns()
    if not columns.used:
        return []
    layout = _layout(index, columns)
    allowed = _allowed(index, layout, filters)
    required = [_Phrase.of(index, layout, phrase) for phrase in query.phrases]
    excluded = [_Phrase.of(index, layout, words) for words in query.without]
    for phrase in required:
        if phrase.candidates is not None:
            allowed &= phrase.candidates
    if not allowed.any():
        return []
    parts = _score_parts(index, layout, query, beside, now)
    may_be_found = allowed
    if not required:  # else the phrases are reason enough
        allowed = allowed & ((parts.words.memories > 0) | (parts.cosine >= LEAST_COSINE))
    scores = np.where(allowed, parts.base, 0)
    days, factor = recency
    recent = layout.created > (now - timedelta(days=days + 1)).timestamp()
    scores[recent] *= factor
    relevance = probabilities(index.encoder.name, parts.cosine, parts.words.evidence)
    for old, new in _replaced_rows(index, layout, replaced):
        if may_be_found[new] and allowed[old]:
            allowed[new] = True
            scores[new] = max(scores[new], scores[old])
            relevance[new] = max(relevance[new], relevance[old])
        scores[old] *= SUPERSEDED
    candidates = max(limit + EXTRA, renewal.LOOKED_AT)
    best = _best_rows(index, layout, np.flatnonzero(allowed), scores, candidates, required, excluded)
    freshness = weigh([memory for _, memory in best]) if weigh else {}
    unconfirmed = {row for row, memory in best if memory.unconfirmed}
    for row, memory in best:
        scores[row] *= freshness.get(memory.id, 1.0) * weight(memory, now)
    for old, new in _renewals(index, layout, best[: renewal.LOOKED_AT]):
        may_renew = new not in unconfirmed or old in unconfirmed
        if may_renew and scores[old] > scores[new] >= renewal.LEAST_SCORE * scores[old]:
            scores[new] = np.nextafter(scores[old], np.float32(1))
            relevance[new] = max(relevance[new], relevance[old])
    best.sort(key=lambda entry: -scores[entry[0]])
    hits = []
    for row, memory in best[:limit]:
        pieces = slice(int(layout.start[row]), int(layout.end[row]))
        header, text = _best_piece(index, pieces, parts.of_chunks(pieces), query.phrases)
        why = {
            **parts.explained(row),
            "recency": float(factor) if recent[row] else 1.0,
            "freshness": freshness.get(memory.id, 1.0),
            **({"confirmed": weight(memory, now)} if memory.unconfirmed else {}),
            "relevance": float(relevance[row]),
        }
        why = {name: round(value, 4) for name, value in why.items()}
        hits.append(Hit(memory, round(float(scores[row]), 6), text.strip(), header, why))
    return hits


@dataclass(slots=True)
class _ScoreParts:
    """What the score of each memory is made of, before recency and freshness."""

    words: _WordScores
    chunk_cosines: Array
    vectors_share: float
    cosine: Array
    neighbours: Array
    dated: Array  # whether it is from a time that the query mentions
    base: Array

    def of_chunks(self, pieces: slice) -> Array:
        """How well each of these chunks fits the query."""
        share = self.vectors_share
        scores: Array = (1 - share) * self.words.chunks[pieces] + share * self.chunk_cosines[pieces]
        return scores

    def explained(self, row: int) -> dict[str, float]:
        return {
            "words": float(self.words.memories[row]),
            "words_rank": _rank(self.words.memories, row),
            "covered": float(self.words.covered[row]),
            "evidence": float(self.words.evidence[row]),
            "cosine": float(self.cosine[row]),
            "cosine_rank": _rank(self.cosine, row),
            "neighbours": float(self.neighbours[row]),
            "date": DATED if self.dated[row] else 1.0,
            "base": float(self.base[row]),
        }


def _score_parts(index: Index, layout: _Layout, query: Query, beside: Counts, now: datetime) -> _ScoreParts:
    encoder = index.encoder
    words = _word_scores(index, layout, query.terms, beside)
    chunk_cosines = _cosines(encoder, layout.columns, query.text, words.chunks)
    cosine = np.maximum(layout.best(chunk_cosines), 0)
    share = 0.0
    if encoder.dim:
        share = VECTORS if encoder.name in ("static", "hash") else MODEL_VECTORS
    own = (1 - share) * words.memories + share * cosine
    fused = layout.with_neighbours(own)
    neighbours = fused - own
    dated = np.zeros(len(fused), np.bool_)
    for start, end in spans(query.text, now):
        dated |= (layout.created >= start) & (layout.created < end)
    fused[dated] *= DATED
    return _ScoreParts(words, chunk_cosines, share, cosine, neighbours, dated, -np.expm1(-STEEPNESS * fused))


# -- memories and their chunks


@dataclass(slots=True)
class _Layout:
    """The memories as rows: where the chunks of each begin and end, and which rows are neighbours.

    Made of columns and kept until they change; `state` tells when.
    """

    columns: Columns
    state: tuple[int, int]
    start: Array  # the first chunk of each memory
    end: Array
    row: Array  # of each chunk
    later: Array  # the chunks that are not the first of their memory
    memory: Array  # its number in the index
    created: Array
    alive: Array  # of each chunk
    nearby: list[tuple[float, Array]]  # (share, the neighbour's row for each row); len(start) means none
    norm: Array  # BM25's length norm of each chunk
    whole_norm: Array  # the same of each memory as a whole
    total: tuple[int, int]  # chunks and memories that are alive

    @classmethod
    def of(cls, columns: Columns) -> Self:
        used = columns.used
        memory, alive, length = columns.memory[:used], columns.alive[:used], columns.length[:used]
        first = np.ones(used, np.bool_)
        first[1:] = memory[1:] != memory[:-1]
        start = np.flatnonzero(first)
        end = np.append(start[1:], used)
        row = np.cumsum(first) - 1
        none = len(start)
        before, after = (
            np.append(np.where(chunk >= 0, row[chunk], none), none)
            for chunk in (columns.before[start], columns.after[end - 1])  # neighbours of the first and the last chunk
        )
        nearby = []
        back, ahead = before[:-1], after[:-1]
        for share in NEIGHBOURS:
            nearby += [(share, back), (share, ahead)]
            back, ahead = before[back], after[ahead]
        if not any((rows < none).any() for _, rows in nearby):
            nearby = []
        whole = np.add.reduceat(length, start)
        return cls(
            columns,
            (used, columns.buried),
            start,
            end,
            row,
            np.flatnonzero(~first),
            memory[start],
            columns.created[start],
            alive,
            nearby,
            _norm(length, alive),
            _norm(whole, alive[start]),
            (int(alive.sum()), int(alive[start].sum())),
        )

    def best(self, scores: Array) -> Array:
        """The best score of each memory's chunks."""
        best: Array = scores[self.start]
        np.maximum.at(best, self.row[self.later], scores[self.later])
        return best

    def with_neighbours(self, scores: Array) -> Array:
        """The scores plus a share of each neighbour's."""
        padded = np.append(scores, scores.dtype.type(0))
        total = scores.copy()
        for share, rows in self.nearby:
            total += np.float32(share) * padded[rows]
        return total

    def having(self, index: Index, term: str) -> Array:
        """Whether each memory has a term."""
        has = np.zeros(len(self.start), np.bool_)
        numbers, _ = index.postings(term)
        has[self.row[numbers[numbers < len(self.row)]]] = True
        return has


def _norm(lengths: Array, alive: Array) -> Array:
    mean = float(lengths[alive].mean()) if alive.any() else 1.0
    norm: Array = (K1 * (1 - B + B * lengths / max(mean, 1e-9))).astype(np.float32)
    return norm


_layouts: WeakKeyDictionary[Index, _Layout] = WeakKeyDictionary()


def _layout(index: Index, columns: Columns) -> _Layout:
    known = _layouts.get(index)
    if known is None or known.columns is not columns or known.state != (columns.used, columns.buried):
        known = _layouts[index] = _Layout.of(columns)
    return known


def _allowed(index: Index, layout: _Layout, filters: Mapping[str, Any]) -> Array:
    """Which memories may be found at all."""
    allowed = layout.alive[layout.start]
    matching = index.matching(**filters) if filters else None
    if matching is not None:
        allowed &= np.isin(layout.memory, matching)
    return allowed


def _renewals(index: Index, layout: _Layout, best: Sequence[tuple[int, Memory]]) -> Iterator[tuple[int, int]]:
    """(row of a memory, row of one that tells how it is now), among these."""
    if len(best) < 2 or not index.encoder.dim:
        return iter(())
    chunks = layout.total[0]

    def evidence(shared: set[str]) -> float:
        return sum(_rarity(chunks, len(index.postings(term)[0])) for term in shared) / math.log(1 + max(chunks, 2))

    vectors = renewal.as_floats(layout.columns.rows[layout.start[[row for row, _ in best]]])
    return renewal.renewals(best, layout.created, vectors, evidence)


def _replaced_rows(index: Index, layout: _Layout, replaced: Replaced) -> Iterator[tuple[int, int]]:
    """(row of a memory, row of what took its place), for those that the index has; the earlier ones first."""
    if not replaced:
        return
    numbers = index.numbers({id for old, new in replaced.items() for id in (old, *new)})
    rows = np.flatnonzero(np.isin(layout.memory, list(numbers.values())) & layout.alive[layout.start])
    row_of = {int(layout.memory[row]): int(row) for row in rows}
    at = {id: row_of[number] for id, number in numbers.items() if number in row_of}
    for old, successors in replaced.items():
        for new in successors:
            if old in at and new in at:
                yield at[old], at[new]


@dataclass(slots=True)
class _Phrase:
    """Words that a memory must or must not contain as they are written."""

    flat: str
    whole_words: re.Pattern[str] | None  # for stop words only: "to be" is not in "go to bed"
    candidates: Array | None  # whether each memory has the terms; None where there is no term to go by

    @classmethod
    def of(cls, index: Index, layout: _Layout, words: str) -> Self:
        flat = _flat(words)
        parts = plain_parts(words)
        whole_words = None
        if not parts and re.search(r"\w", flat):
            whole_words = re.compile(rf"(?<!\w){re.escape(flat)}(?!\w)")
        candidates: Array | None = None
        for part in dict.fromkeys(parts):
            has = np.zeros(len(layout.start), np.bool_)
            for alternative in part:
                has |= np.logical_and.reduce([layout.having(index, term) for term in alternative])
            if has.any():  # else it may be a part of longer words
                candidates = has if candidates is None else candidates & has
        return cls(flat, whole_words, candidates)

    def occurs_in(self, text: str) -> bool:
        return self.flat in text and (self.whole_words is None or self.whole_words.search(text) is not None)

    def excludes(self, row: int, memory: Memory) -> bool:
        if self.candidates is not None and not self.candidates[row]:
            return False
        return self.occurs_in(_content(memory)) or self.occurs_in(_flat("\n".join((memory.native_id, *memory.tags))))


# -- words and vectors


@dataclass(slots=True)
class _WordScores:
    """How much of the query each chunk and each memory has, 0 … 1.

    `covered` is the weighted part of the query's words that the memory's best chunk has. Words that no memory has
    count, too: they mean that the query is about something else. `evidence` is not relative to the query: about how
    many words that hardly any other memory has the two have in common.
    """

    chunks: Array
    memories: Array
    covered: Array
    evidence: Array


def counted(index: Index, query: str) -> Counts:
    """What another index has to know of this one, to be searched for the same query."""
    columns = index.columns()
    if not columns.used:
        return ALONE
    layout = _layout(index, columns)
    having = {}
    for term in parse(query).terms:
        numbers, _ = _alive_postings(index, layout, term)
        rows = layout.row[numbers]  # in order, as the numbers are
        having[term] = len(numbers), int(np.count_nonzero(rows[1:] != rows[:-1])) + bool(len(rows))
    return Counts(*layout.total, having)


def _alive_postings(index: Index, layout: _Layout, term: str) -> tuple[Array, Array]:
    numbers, weights = index.postings(term)
    kept = numbers < len(layout.row)
    kept[kept] = layout.alive[numbers[kept]]
    return (numbers, weights) if kept.all() else (numbers[kept], weights[kept])


def _word_scores(index: Index, layout: _Layout, terms: Sequence[str], beside: Counts) -> _WordScores:
    chunks, memories = layout.total[0] + beside.chunks, layout.total[1] + beside.memories
    scores = np.zeros(len(layout.row), np.float32)
    has = np.zeros(len(layout.row), np.float32)
    single = len(layout.start) == len(layout.row)
    whole = scores if single else np.zeros(len(layout.start), np.float32)
    most = 0.0  # the most that a chunk could score, apart from K1 + 1
    total = 0.0  # the same including words that no chunk has
    for term in terms:
        numbers, weights = _alive_postings(index, layout, term)
        other_chunks, other_memories = beside.having.get(term, (0, 0))
        counts = np.float32(importance(term) * _rarity(chunks, len(numbers) + other_chunks))
        total += float(counts)
        if len(numbers) or other_chunks:
            most += float(counts)
        if not len(numbers):
            continue
        scores[numbers] += counts * weights / (weights + layout.norm[numbers])
        has[numbers] += counts
        if not single:
            rows = layout.row[numbers]
            at = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            rows, weights = rows[at], np.add.reduceat(weights, at)
            counts = np.float32(importance(term) * _rarity(memories, len(rows) + other_memories))
            whole[rows] += counts * weights / (weights + layout.whole_norm[rows])
    covered = layout.best(has) / np.float32(total or 1.0)
    evidence = layout.best(scores) / np.float32(math.log(1 + max(chunks, 2)))
    if not most:
        return _WordScores(scores, whole, covered, evidence)
    best = scores * has / np.float32(total * total)
    memory = (1 - WHOLE) * layout.best(best) + whole * np.float32(WHOLE * most / (total * total))
    return _WordScores(best, memory, covered, evidence)


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _cosines(encoder: Encoder, columns: Columns, text: str, words: Array) -> Array:
    """The cosine of each chunk and the query.

    In a large index only for the chunks that are best by the signs of their vectors or by `words`; 0 for the others.
    """
    used = columns.used
    cosines = np.zeros(used, np.float32)
    if not encoder.dim:
        return cosines
    query: Array = encoder.encode_query(text)
    if not query.any():
        return cosines
    mean_square = float(columns.mean @ columns.mean)
    if mean_square:
        # subtract only the query's own part along the mean: a short query has little of what chunks have in common
        query = query - columns.mean * (used / (used + FEW) * float(query @ columns.mean) / mean_square)
        query /= max(float(np.linalg.norm(query)), 1e-9)
    if not len(columns.signs):
        exact: Array = columns.rows[:used] @ query
        return exact
    differing = np.bitwise_count(columns.signs[:used] ^ np.packbits(query > 0).view(np.uint64))
    distance = np.zeros(used, np.uint16)
    for column in range(differing.shape[1]):  # numpy's sum over rows this short takes ten times as long
        distance += differing[:, column]
    most = min(RESCORED, used)
    by_sign = np.argpartition(distance, most - 1)[:most]
    by_words = np.flatnonzero(words)
    if len(by_words) > most:
        by_words = by_words[np.argpartition(-words[by_words], most - 1)[:most]]
    chosen = np.union1d(by_sign, by_words)
    cosines[chosen] = columns.rows[chosen].astype(np.float32) @ query / 127
    return cosines


# -- the hits


def _best_rows(
    index: Index,
    layout: _Layout,
    rows: Array,
    scores: Array,
    limit: int,
    required: Sequence[_Phrase],
    excluded: Sequence[_Phrase],
) -> list[tuple[int, Memory]]:
    """The best of these rows that pass the phrases; with equal scores the newest first, then by id."""
    scores = scores.astype(np.float64).round(6)
    left = SCANNED if required and all(phrase.candidates is None for phrase in required) else len(rows)
    best: list[tuple[int, Memory]] = []
    for batch in _in_order(rows, scores, layout.created, min(limit, BATCH)):
        batch = batch[:left]
        left -= len(batch)
        memories = index.memories(int(number) for number in layout.memory[batch])
        entries = [(int(row), memories[number]) for row in batch if (number := int(layout.memory[row])) in memories]
        entries.sort(key=lambda entry: (-scores[entry[0]], -layout.created[entry[0]], entry[1].id))
        for row, memory in entries:
            text = _content(memory) if required else ""
            if all(phrase.occurs_in(text) for phrase in required) and not any(
                phrase.excludes(row, memory) for phrase in excluded
            ):
                best.append((row, memory))
        if len(best) >= limit or not left:
            break
    return best[:limit]


def _in_order(rows: Array, scores: Array, created: Array, size: int) -> Iterator[Array]:
    """The rows by score, then the newest first, in batches of growing size that keep ties (up to TIES) together."""
    rest = rows[:0]
    if len(rows) > size:
        own = scores[rows]
        least = np.partition(own, -size)[-size]
        rows, rest = rows[own >= least], rows[own < least]
    for part in (rows, rest):
        left = part if len(part) < 2 else part[np.lexsort((-created[part], -scores[part]))]
        while len(left):
            last, more = left[:size][-1], left[size : size + TIES]
            tied = (scores[more] == scores[last]) & (created[more] == created[last])
            end = size + int(np.count_nonzero(tied))
            yield left[:end]
            left = left[end:]
            size = min(max(2 * size, 50), BATCH)


def _rank(scores: Array, row: int) -> int:
    return int(np.count_nonzero(scores > scores[row])) + 1


def _best_piece(index: Index, pieces: slice, scores: Array, phrases: Sequence[str]) -> tuple[str, str]:
    """(header path, text) of the chunk to show: the best that has all phrases, else the best."""
    order: list[int] = [pieces.start + int(at) for at in np.argsort(-scores, kind="stable")]
    if phrases and len(order) > 1:
        flat_phrases = [_flat(phrase) for phrase in phrases]
        for number in order:
            chunk = index.chunk(number)
            text = _flat(" ".join(chunk))
            if all(phrase in text for phrase in flat_phrases):
                return chunk
    return index.chunk(order[0])


def _content(memory: Memory) -> str:
    """What phrases are looked for in."""
    return _flat(f"{memory.title}\n{memory.text}")


def _flat(text: str) -> str:
    return " ".join(fold(text).split())
