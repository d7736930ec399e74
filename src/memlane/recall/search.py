"""Rank memories for a query by words, vectors and neighbours; filter, boost and explain them.

    score  =  (1 - exp(-2 x))  ×  the recency factor  ×  the freshness factor
    x      =  0.8 words + 0.2 cosine + closer, plus a share of the neighbours' x; × 1.4 within a time that the query
              mentions

words   how much of the query the memory has, 0 … 1: BM25 divided by the most it could be, also for words that no memory
        has. So the fewer of its words the bank knows, the more the vectors count. 70 % is from the memory's best chunk,
        times the part of the query that this chunk has; 30 % from the memory as a whole.
cosine  of the memory's closest chunk, after subtracting what all chunks have in common. With the vectors of a model,
        which say more than those of the built-in table, the shares are equal.
closer  for the best 30 so far: 0.15 of the cosine of the nearest sentence, and 0.3 of how much of the query's words
        the chunk has, or has words of near meaning for, above what the middle one of the 30 has. By the built-in
        table, also beside a model, where words count half as much.
relevance  the probability that the query is about this memory at all: `memlane.recall.relevance`. It does not affect
        the order; prompt blocks drop hits below a threshold.
freshness  below 1 where the code that a memory speaks of has changed or is gone: `memlane.care.fresh`.
A memory that says that something changed stands above the older one on the same thing: `memlane.recall.renewal`.
Neighbours are the memories before and after in a conversation or topic: 0.3 of the next ones, 0.2 of the second next. A
short memory that stands alone has those of the three best as neighbours that are on the same subject: 0.3 of one, times
the cosine of the two.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from memlane.core.model import Hit, Memory
from memlane.core.values import NamedTuple, dataclass, replace
from memlane.index import closeness
from memlane.index.columns import FEW, Array, Columns
from memlane.index.encoders import Encoder, StaticEncoder, built_in
from memlane.index.query_dates import spans
from memlane.index.store import Index
from memlane.index.words import importance
from memlane.index.writing import Chunk
from memlane.recall import renewal
from memlane.recall.companions import from_companions
from memlane.recall.layout import TIES, Layout, best_of, layout_of, least_of_best
from memlane.recall.phrases import Phrase, content, flat
from memlane.recall.query import Query, parse
from memlane.recall.relevance import probabilities
from memlane.recall.spelling import nearest
from memlane.recall.unconfirmed import weight

WHOLE = 0.3  # share of the memory as a whole in its words score; the rest is from its best chunk
VECTORS = 0.2  # share of the vectors in the score
CLOSER = 30  # memories that are looked at closely: the best so far
SENTENCE = 0.15  # what the cosine of the nearest sentence adds to x, for those
NEAR_WORDS = 0.3  # what words of near meaning add to x, for those, above what the middle one of them has
MODEL_NEAR_WORDS = 0.15  # the same beside the vectors of a model, which know more of meaning
MODEL_VECTORS = 0.5  # the same where a model made them rather than the built-in table
DATED = 1.4  # factor for a memory from a time that the query mentions
STEEPNESS = 2.0  # of the curve from x to a score below 1
LEAST_COSINE = 0.10  # a memory without any of the words needs at least this
RESCORED = 1_000  # in a large index, only so many vectors closest by sign, and so many best by words, are compared
BATCH = 2_000  # memories that are read at a time, at most
SCANNED = 5_000  # memories that are searched for a phrase without any indexed term, the best first
EXTRA, FEWER = 15, 5  # hits beyond the limit, which may overtake those whose code has changed, or that are unconfirmed
SPARE = 4  # times as many as are asked for are scored: a row may turn out to have no memory any more
ROUNDING = 1e-5  # more than the rounding of scores can make a difference
SUPERSEDED = 0.3  # factor for a memory that another one took the place of
_OUT = np.float32(-1)  # the score of what is not to be found
_COUNTED = 8  # ranks: for more, sorting takes less time than counting
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
    layout = layout_of(index, columns)
    allowed = layout.passing(index, filters, now)
    required = [Phrase.of(index, layout, phrase) for phrase in query.phrases]
    excluded = [Phrase.of(index, layout, words) for words in query.without]
    for phrase in required:
        if phrase.candidates is not None:
            allowed = allowed & phrase.candidates
    if not allowed.any():
        return []
    parts = _score_parts(index, layout, query, allowed, beside, now)
    may_be_found = allowed
    if not required:  # else the phrases are reason enough
        allowed = allowed & parts.found
        allowed[parts.helped] = True
    days, factor = recency
    since = (now - timedelta(days=days + 1)).timestamp()
    scores = np.full(len(allowed), _OUT)
    replaced_rows = list(_replaced_rows(index, layout, replaced))
    candidates = max(limit + (EXTRA if weigh else FEWER), renewal.LOOKED_AT)
    in_question = np.flatnonzero(allowed)
    if not (required or excluded or replaced_rows):  # else any of them may be among the best
        in_question = parts.perhaps_best(in_question, SPARE * candidates, factor)
    scores[in_question] = parts.base(in_question)
    if layout.newest > since:
        scores[np.flatnonzero(layout.created > since)] *= np.float32(factor)
    relevance: dict[int, float] = {}

    def relevant(row: int) -> float:
        if row not in relevance:
            relevance[row] = parts.relevance([row])[0]
        return relevance[row]

    for old, new in replaced_rows:
        if may_be_found[new] and allowed[old]:
            allowed[new] = True
            scores[new] = max(scores[new], scores[old])
            relevance[new] = max(relevant(new), relevant(old))
        scores[old] *= SUPERSEDED
    best = _best_rows(index, layout, scores, candidates, required, excluded)
    if not best:
        return []
    freshness = weigh([memory for _, memory in best]) if weigh else {}
    unconfirmed = {row for row, memory in best if memory.unconfirmed}
    for row, memory in best:
        if (changed := freshness.get(memory.id, 1.0) * weight(memory, now)) != 1:
            scores[row] *= changed
    for old, new in _renewals(index, layout, best[: renewal.LOOKED_AT]):
        may_renew = new not in unconfirmed or old in unconfirmed
        if may_renew and scores[old] > scores[new] >= renewal.LEAST_SCORE * scores[old]:
            scores[new] = np.nextafter(scores[old], np.float32(1))
            relevance[new] = max(relevant(new), relevant(old))
    order = scores.take([row for row, _ in best]).tolist()
    found = [best[at] for at in sorted(range(len(best)), key=lambda at: -order[at])[:limit]]
    rows = [row for row, _ in found]
    unsure = [row for row in rows if row not in relevance]
    relevance.update(zip(unsure, parts.relevance(unsure), strict=True))
    newest, final = layout.created.take(rows).tolist(), scores.take(rows).tolist()
    hits = []
    for (row, memory), why, created, score in zip(found, parts.explained(rows), newest, final, strict=True):
        why["recency"] = round(float(factor), 4) if created > since else 1.0
        why["freshness"] = round(freshness.get(memory.id, 1.0), 4)
        if memory.unconfirmed:
            why["confirmed"] = weight(memory, now)
        why["relevance"] = round(relevance[row], 4)
        piece = _best_piece(index, parts, row, query.phrases)
        hits.append(Hit(memory, round(score, 6), piece.text.strip(), piece.header, why))
    return hits


@dataclass(slots=True)
class _ScoreParts:
    """What the score of each memory is made of, before recency and freshness."""

    encoder: Encoder
    words: _WordScores
    chunk_cosines: Array
    vectors_share: float
    cosine: Array
    closer: dict[int, float]  # what a closer look adds, to those that got one
    own: Array  # words, cosine and a closer look
    fused: Array  # the same with the neighbours' share
    helped: Array  # the rows that have a share of one on the same subject
    found: Array  # whether it has a word of the query, or is near enough to it
    dated: Array | None  # whether it is from a time that the query mentions; None where it mentions none

    def of_chunks(self, pieces: slice) -> Array:
        """How well each of these chunks fits the query."""
        return _of_chunks(self.words.chunks[pieces], self.chunk_cosines[pieces], self.vectors_share)

    def base(self, rows: Array) -> Array:
        """The scores of these memories."""
        scores: Array = -np.expm1(-STEEPNESS * self._x(rows))
        return scores

    def perhaps_best(self, rows: Array, count: int, factor: float) -> Array:
        """Those of these memories that may be among the best so many, of which some have their score times `factor`.

        That takes a fraction of the time that all their scores take.
        """
        x = self._x(rows)
        least = -math.expm1(-STEEPNESS * least_of_best(x, count)) * min(1.0, factor) / max(1.0, factor)
        return rows.compress(x >= -math.log1p(-max(least - ROUNDING, 0.0)) / STEEPNESS)

    def _x(self, rows: Array) -> Array:
        x: Array = self.fused.take(rows)
        if self.dated is not None:
            x *= np.where(self.dated.take(rows), np.float32(DATED), np.float32(1))
        return x

    def relevance(self, rows: Sequence[int]) -> list[float]:
        """The probability that the query is about each of these memories at all."""
        at = np.array(rows, np.intp)
        found: list[float] = probabilities(self.encoder.name, self.cosine.take(at), self.words.evidence(at)).tolist()
        return found

    def explained(self, rows: Sequence[int]) -> list[dict[str, float]]:
        """What the score of each of these memories is made of, rounded for people."""
        at = np.array(rows, np.intp)
        words, cosine = self.words.memories.take(at), self.cosine.take(at)
        parts = {
            "words": _rounded(words),
            "words_rank": _ranks(self.words.memories, words),
            "covered": _rounded(self.words.covered(at)),
            "evidence": _rounded(self.words.evidence(at)),
            "cosine": _rounded(cosine),
            "cosine_rank": _ranks(self.cosine, cosine),
            "closer": [round(self.closer.get(row, 0.0), 4) for row in rows],
            "neighbours": _rounded(self.fused.take(at) - self.own.take(at)),
            "date": [1.0] * len(rows) if self.dated is None else np.where(self.dated[at], DATED, 1.0).tolist(),
            "base": _rounded(self.base(at)),
        }
        return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]


def _rounded(values: Array) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def _ranks(values: Array, some: Array) -> list[int]:
    """Which place each of some values has among all."""
    own = some.tolist()
    above = values[values > min(own)]  # nearly all of a large bank is below them
    if len(own) > _COUNTED:
        above.sort()
        ranks: list[int] = (len(above) + 1 - np.searchsorted(above, some, "right")).tolist()
        return ranks
    return [int(np.count_nonzero(above > value)) + 1 for value in own]


def _of_chunks(words: Array, cosines: Array, share: float) -> Array:
    scores: Array = (1 - share) * words + share * cosines
    return scores


def _score_parts(
    index: Index, layout: Layout, query: Query, allowed: Array, beside: Counts, now: datetime
) -> _ScoreParts:
    encoder = index.encoder
    words = _word_scores(index, layout, query, beside)
    vector = _query_vector(encoder, layout, query.text)
    chunk_cosines = _cosines(layout.columns, vector, words.chunks)
    cosine = np.maximum(layout.best(chunk_cosines), 0)
    share = 0.0
    if encoder.dim:
        share = VECTORS if encoder.name in ("static", "hash") else MODEL_VECTORS
    own = (1 - share) * words.memories + share * cosine
    dated: Array | None = None
    for start, end in spans(query.text, now):
        within = (layout.created >= start) & (layout.created < end)
        dated = within if dated is None else dated | within
    so_far = layout.with_neighbours(own) * allowed
    if dated is not None:
        so_far *= np.where(dated, np.float32(DATED), np.float32(1))
    closer: dict[int, float] = {}
    best = best_of(so_far, CLOSER)
    if encoder.dim and encoder.name != "hash" and len(best):
        chunks, ends = layout.start[best], layout.end[best]
        for at in np.flatnonzero(ends - chunks > 1):
            pieces = slice(chunks[at], ends[at])
            chunks[at] += np.argmax(_of_chunks(words.chunks[pieces], chunk_cosines[pieces], share))
        added = _looked_at_closely(index, layout, query, vector, chunks.tolist())
        own[best] += added
        closer = dict(zip(best.tolist(), added.tolist(), strict=True))
    fused = layout.with_neighbours(own)
    found = (words.memories > 0) | (cosine >= LEAST_COSINE)
    helped, given = from_companions(layout, fused, allowed, found, renewal.same_subject(encoder.name))
    if len(helped):
        fused = fused.copy()
        fused[helped] += given
        helped = helped[fused.take(helped) > own.take(helped)]
    return _ScoreParts(encoder, words, chunk_cosines, share, cosine, closer, own, fused, helped, found, dated)


def _looked_at_closely(index: Index, layout: Layout, query: Query, vector: Array, chunks: Sequence[int]) -> Array:
    """What a closer look at these chunks adds to each; by the built-in table, also for a model."""
    encoder, mean, share = index.encoder, layout.columns.mean, NEAR_WORDS
    if not isinstance(encoder, StaticEncoder):
        encoder, share = built_in(), MODEL_NEAR_WORDS
        vector, mean = encoder.encode_query(query.text), np.zeros(encoder.dim, np.float32)
    sentences, words = closeness.look(encoder, query.text, vector, mean, layout.total[0], index.passages(chunks))
    usual = 0.0 if mean.any() else _middle(sentences)  # what texts have in common is not subtracted
    added: Array = SENTENCE * np.maximum(sentences - usual, 0) + share * np.maximum(words - _middle(words), 0)
    return added


def _middle(values: Array) -> Array:
    """The median, without what numpy's costs."""
    values = np.sort(values)
    middle: Array = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return middle


def _renewals(index: Index, layout: Layout, best: Sequence[tuple[int, Memory]]) -> Iterator[tuple[int, int]]:
    """(row of a memory, row of one that tells how it is now), among these."""
    if len(best) < 2 or not layout.columns.rows.shape[1]:
        return iter(())
    chunks = layout.total[0]

    def evidence(shared: set[str]) -> float:
        found = layout.posted(index, sorted(shared))
        return sum(_rarity(chunks, len(posted.chunks)) for posted in found) / math.log(1 + max(chunks, 2))

    def vectors() -> Array:
        return renewal.as_floats(layout.columns.rows, layout.start[[row for row, _ in best]])

    return renewal.renewals(best, layout.created, vectors, evidence, renewal.same_subject(index.encoder.name))


def _replaced_rows(index: Index, layout: Layout, replaced: Replaced) -> Iterator[tuple[int, int]]:
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


# -- words and vectors


@dataclass(slots=True)
class _WordScores:
    """How much of the query each chunk and each memory has, 0 … 1."""

    chunks: Array
    memories: Array
    sums: Array  # of each chunk, what the words count that it has, by how often it has them
    has: Array  # of each chunk, what the words count that it has
    total: float  # what all words of the query count
    most: float  # what the rarest possible word counts
    layout: Layout

    def covered(self, rows: Array) -> Array:
        """The weighted part of the query's words that the best chunk of each memory has.

        Words that no memory has count, too: they mean that the query is about something else.
        """
        return self._best(self.has, rows) / np.float32(self.total or 1.0)

    def evidence(self, rows: Array) -> Array:
        """Not relative to the query: about how many words that hardly any other memory has the two have in common."""
        return self._best(self.sums, rows) / np.float32(self.most)

    def _best(self, scores: Array, rows: Array) -> Array:
        """The best score of each memory's chunks."""
        starts = self.layout.start.take(rows)
        best: Array = scores.take(starts)
        if self.layout.single:
            return best
        ends = self.layout.end.take(rows).tolist()
        for at, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            if end - start > 1:
                best[at] = scores[start:end].max()
        return best

    def pieces(self, row: int) -> slice:
        """The chunks of a memory."""
        return slice(int(self.layout.start[row]), int(self.layout.end[row]))


def counted(index: Index, query: str) -> Counts:
    """What another index has to know of this one, to be searched for the same query."""
    columns = index.columns()
    if not columns.used:
        return ALONE
    layout = layout_of(index, columns)
    terms = parse(query).terms
    posted = zip(terms, layout.posted(index, terms), strict=True)
    return Counts(*layout.total, {term: (len(each.chunks), len(each.rows)) for term, each in posted})


def _word_scores(index: Index, layout: Layout, query: Query, beside: Counts) -> _WordScores:
    chunks, memories = layout.total[0] + beside.chunks, layout.total[1] + beside.memories
    scores = np.zeros(len(layout.row), np.float32)
    has = np.zeros(len(layout.row), np.float32)
    single = layout.single
    whole = scores if single else np.zeros(len(layout.start), np.float32)
    most = 0.0  # the most that a chunk could score, apart from K1 + 1
    total = 0.0  # the same including words that no chunk has
    for term, posted in zip(query.terms, layout.posted(index, query.terms), strict=True):
        other_chunks, other_memories = beside.having.get(term, (0, 0))
        if not len(posted.chunks) and not other_chunks and (meant := nearest(index, layout.meant, query.text, term)):
            [posted] = layout.posted(index, [meant])
        factor = importance(term)
        counts = np.float32(factor * _rarity(chunks, len(posted.chunks) + other_chunks))
        total += float(counts)
        if len(posted.chunks) or other_chunks:
            most += float(counts)
        if not len(posted.chunks):
            continue
        scores[posted.chunks] += counts * posted.shares
        has[posted.chunks] += counts
        if not single:
            counts = np.float32(factor * _rarity(memories, len(posted.rows) + other_memories))
            whole[posted.rows] += counts * posted.row_shares
    rarest = math.log(1 + max(chunks, 2))
    if not most:
        return _WordScores(scores, whole, scores, has, total, rarest, layout)
    best = scores * has
    best /= np.float32(total * total)
    memory = (1 - WHOLE) * layout.best(best)
    memory += whole * np.float32(WHOLE * most / (total * total))
    return _WordScores(best, memory, scores, has, total, rarest, layout)


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _query_vector(encoder: Encoder, layout: Layout, text: str) -> Array:
    """The vector of a query, without what all chunks have in common; zeros where there is nothing to compare."""
    query: Array = encoder.encode_query(text)
    mean, mean_square, chunks = layout.columns.mean, layout.mean_square, layout.total[0]
    if mean_square and query.any():
        # subtract only the query's own part along the mean: a short query has little of what chunks have in common
        query = query - mean * (chunks / (chunks + FEW) * float(query @ mean) / mean_square)
        query /= max(float(np.sqrt(query @ query)), 1e-9)
    return query


def _cosines(columns: Columns, query: Array, words: Array) -> Array:
    """The cosine of each chunk and the query.

    In a large index only for the chunks that are best by the signs of their vectors or by `words`; 0 for the others.
    """
    used = columns.used
    cosines = np.zeros(used, np.float32)
    if not query.any():
        return cosines
    if not len(columns.signs):
        exact: Array = columns.rows[:used] @ query
        return exact
    signs = np.packbits(query > 0).view(np.uint64)
    distance = np.add.reduce(np.bitwise_count(columns.signs[:, :used] ^ signs[:, None]), axis=0, dtype=np.uint16)
    most = min(RESCORED, used)
    last = bisect_left(range(len(query) + 1), most, key=lambda far: int(np.count_nonzero(distance <= far)))
    chosen = distance < last
    chosen[np.flatnonzero(distance == last)[: most - np.count_nonzero(chosen)]] = True
    least = least_of_best(words, most)
    by_words = words > least
    if least:
        by_words[np.flatnonzero(words == least)[: most - np.count_nonzero(by_words)]] = True
    rows = np.flatnonzero(chosen | by_words)
    cosines[rows] = columns.rows.take(rows, axis=0).astype(np.float32) @ query / 127
    return cosines


# -- the hits


def _best_rows(
    index: Index,
    layout: Layout,
    scores: Array,
    limit: int,
    required: Sequence[Phrase],
    excluded: Sequence[Phrase],
) -> list[tuple[int, Memory]]:
    """The best rows that pass the phrases; with equal scores the newest first, then by id. A score below 0 is out."""
    left = SCANNED if required and all(phrase.candidates is None for phrase in required) else len(scores)
    best: list[tuple[int, Memory]] = []
    for batch, rounded in _in_order(scores, layout.created, min(limit, BATCH)):
        batch = batch[:left]
        left -= len(batch)
        numbers = layout.memory[batch].tolist()
        memories = index.memories(numbers)
        order = zip((-rounded).tolist(), (-layout.created[batch]).tolist(), batch.tolist(), numbers, strict=False)
        entries = [(score, when, memories[n].id, row, memories[n]) for score, when, row, n in order if n in memories]
        for *_, row, memory in sorted(entries, key=itemgetter(0, 1, 2)):
            text = content(memory) if required else ""
            if all(phrase.occurs_in(text) for phrase in required) and not any(
                phrase.excludes(row, memory) for phrase in excluded
            ):
                best.append((row, memory))
        if len(best) >= limit or not left:
            break
    return best[:limit]


def _in_order(scores: Array, created: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """The rows by score, then the newest first, in batches of growing size that keep ties (up to TIES) together.

    Each with its scores, rounded as they are shown.
    """
    least = round(least_of_best(scores, size), 6)
    for floor, is_first in ((max(least - 1e-6, 0.0), True), (0.0, False)):
        left = np.flatnonzero(scores >= floor)
        rounded = scores.take(left).astype(np.float64).round(6)
        part = np.flatnonzero((rounded >= least) == is_first)
        left, rounded = left.take(part), rounded.take(part)
        if len(left) > 1:
            order = np.lexsort((-created.take(left), -rounded))
            left, rounded = left.take(order), rounded.take(order)
        while len(left):
            end = size
            if len(left) > size:
                more = slice(size, size + TIES)
                tied = (rounded[more] == rounded[size - 1]) & (created[left[more]] == created[left[size - 1]])
                end += int(np.count_nonzero(tied))
            yield left[:end], rounded[:end]
            left, rounded = left[end:], rounded[end:]
            size = min(max(2 * size, 50), BATCH)


def _best_piece(index: Index, parts: _ScoreParts, row: int, phrases: Sequence[str]) -> Chunk:
    """The chunk to show: the best that has all phrases, else the best."""
    pieces = parts.words.pieces(row)
    if pieces.stop - pieces.start == 1:
        return index.chunks([pieces.start])[0]
    order = [pieces.start + int(at) for at in np.argsort(-parts.of_chunks(pieces), kind="stable")]
    if phrases:
        flat_phrases = [flat(phrase) for phrase in phrases]
        for chunk in index.chunks(order):
            text = flat(f"{chunk.header} {chunk.text}")
            if all(phrase in text for phrase in flat_phrases):
                return chunk
    return index.chunks(order[:1])[0]
