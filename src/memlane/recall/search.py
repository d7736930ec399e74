"""Rank what the index has for a query: words, vectors and neighbours, fused, filtered, boosted, explained.

    score  =  (1 - exp(-2 x))  ×  the recency factor  ×  the freshness factor
    x      =  0.8 words + 0.2 cosine, and a share of what the neighbours have; × 1.4 in the time that the query names

words   how much of the query the memory has, 0 … 1: BM25 as a part of the most it could be for this query. 70 % from
        the memory's best chunk, times the part of the query that this chunk has; 30 % from the memory as a whole.
cosine  of the memory's nearest chunk, once what all chunks have in common is taken away.
        A model's cosines say more than those of the built-in table: for them it is 0.6 and 0.4.
relevance  how likely it is that the query is about this memory at all: half of it is the part of the query's words that
        the memory has (`covered`), half the cosine. It does not order the hits; blocks may leave out those below a cut.
freshness  below 1 where the code that a memory speaks of has changed or is gone: `memlane.care.fresh`.
The neighbours are the memories before and after in a conversation or a topic: 0.3 of the next, 0.2 of the second next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from memlane.core.model import Hit, Memory
from memlane.index.columns import FEW, Columns
from memlane.index.encoders import Encoder
from memlane.index.query_dates import spans
from memlane.index.store import Index
from memlane.index.words import fold, importance, plain_parts, query_terms, shortened

K1, B = 0.9, 0.4
WHOLE = 0.3  # share of the memory as a whole in what its words score; the rest is its best chunk's
VECTORS = 0.2  # share of the vectors in the score
MODEL_VECTORS = 0.4  # and where a model made them, rather than a table
NEIGHBOURS = (0.3, 0.2)  # shares of the next memory on either side, and of the second next
DATED = 1.4  # for a memory of the time that the query names
STEEPNESS = 2.0  # of the way from x to a score below 1
LEAST_COSINE = 0.20  # a memory without any of the words counts from here on
RESCORED = 1_000  # in a large index, the vectors nearest by their signs, and those of the best by words, are compared
BATCH = 2_000  # memories that are read at a time, at most
TIES = 1_000  # more than this many of the same score and time are not sorted by name
LOOKED = 5_000  # memories that are searched for a phrase that has no word to go by, the best first
WEIGHED = 15  # hits more than asked for, which may pass those whose code has changed
Array = np.ndarray[Any, Any]
Weigh = Callable[[Sequence[Memory]], Mapping[str, float]]  # what the scores of some of these are multiplied by


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart: its terms, "quoted phrases" that must occur, and -words, -"phrases" that must not."""

    text: str
    terms: tuple[str, ...]
    phrases: tuple[str, ...]
    without: tuple[str, ...]


_NOT_PHRASE = re.compile(r'(?:^|(?<=\s))-"([^"]*)"')
_PHRASE = re.compile(r'"([^"]*)"')
_NOT_WORD = re.compile(r"(?:^|(?<=\s))-(\w[\w./+#@:'’-]*)")


def parse(query: str) -> Query:
    rest = shortened(query)
    without = _NOT_PHRASE.findall(rest)
    rest = _NOT_PHRASE.sub(" ", rest)
    phrases = [phrase.strip() for phrase in _PHRASE.findall(rest) if phrase.strip()]
    rest = _PHRASE.sub(" ", rest)
    without += (word.rstrip("./@:'’-") for word in _NOT_WORD.findall(rest))
    rest = _NOT_WORD.sub(" ", rest)
    text = " ".join((*phrases, rest)).strip()
    return Query(text, tuple(query_terms(text)), tuple(phrases), tuple(word for word in without if word.strip()))


def search(
    index: Index,
    query: str,
    *,
    limit: int = 5,
    filters: Mapping[str, Any] | None = None,
    recency: tuple[int, float] = (7, 1.2),
    weigh: Weigh | None = None,
    now: datetime,
) -> list[Hit]:
    """The best memories for a query, one hit each. Filters apply before the cut; results are deterministic.

    Of a query, the first 2,000 characters and 200 terms count. A phrase or -word is looked for as it is written, but
    for case and accents, within words too (`"auth.py"` is in `src/auth.py`); one of stop words only as whole words.
    """
    asked = parse(query)
    if not asked.text or limit <= 0:
        return []
    hits = _search(index, asked, limit, filters or {}, recency, weigh, now)
    if not hits and asked.phrases and query.rstrip().endswith("?"):
        # a question that quotes something: better an answer without the exact words than none
        hits = _search(index, replace(asked, phrases=()), limit, filters or {}, recency, weigh, now)
    return hits


def _search(
    index: Index,
    asked: Query,
    limit: int,
    filters: Mapping[str, Any],
    recency: tuple[int, float],
    weigh: Weigh | None,
    now: datetime,
) -> list[Hit]:
    columns = index.columns()
    if not columns.used:
        return []
    layout = _layout(index, columns)
    allowed = _allowed(index, layout, filters)
    wanted = [_Wording.of(index, layout, phrase) for phrase in asked.phrases]
    unwanted = [_Wording.of(index, layout, words) for words in asked.without]
    for wording in wanted:
        if wording.likely is not None:
            allowed &= wording.likely
    if not allowed.any():
        return []
    found = _words(index, layout, asked.terms)
    encoder = index.encoder
    cosines = _cosines(encoder, columns, asked.text, found.chunks)
    near = np.maximum(layout.best(cosines), 0)
    share = _vectors_share(encoder)
    own = (1 - share) * found.memories + share * near
    fused = layout.with_neighbours(own)
    nearby = fused - own
    dated = np.zeros(len(fused), np.bool_)
    for start, end in spans(asked.text, now):
        dated |= (layout.created >= start) & (layout.created < end)
    fused[dated] *= DATED
    base = -np.expm1(-STEEPNESS * fused)
    days, factor = recency
    recent = layout.created > (now - timedelta(days=days + 1)).timestamp()
    if not wanted:  # else the phrases are reason enough
        allowed &= (found.memories > 0) | (near >= LEAST_COSINE)
    scores = np.where(allowed, base, 0)
    scores[recent] *= factor
    looked = limit + WEIGHED if weigh else limit
    best = _first(index, layout, np.flatnonzero(allowed), scores, looked, wanted, unwanted)
    weights = weigh([memory for _, memory in best]) if weigh else {}
    if weights:
        for row, memory in best:
            scores[row] *= weights.get(memory.id, 1.0)
        best.sort(key=lambda entry: -scores[entry[0]])
    hits = []
    for row, memory in best[:limit]:
        pieces = slice(int(layout.start[row]), int(layout.end[row]))
        chunk = _best_piece(index, pieces, (1 - share) * found.chunks[pieces] + share * cosines[pieces], asked.phrases)
        header, text = index.chunk(chunk)
        why = {
            "words": float(found.memories[row]),
            "words_rank": _rank(found.memories, row),
            "covered": float(found.covered[row]),
            "cosine": float(near[row]),
            "cosine_rank": _rank(near, row),
            "neighbours": float(nearby[row]),
            "date": DATED if dated[row] else 1.0,
            "base": float(base[row]),
            "recency": float(factor) if recent[row] else 1.0,
            "freshness": weights.get(memory.id, 1.0),
            "relevance": float(found.covered[row] + near[row]) / 2,
        }
        why = {name: round(value, 4) for name, value in why.items()}
        hits.append(Hit(memory, round(float(scores[row]), 6), text.strip(), header, why))
    return hits


# -- the memories that the chunks belong to


@dataclass(slots=True)
class _Layout:
    """The memories as rows: where the chunks of each begin and end, which rows are neighbours, and what words need."""

    columns: Columns
    state: tuple[int, int]
    start: Array
    end: Array
    row: Array  # of each chunk
    later: Array  # the chunks that are not the first of their memory
    memory: Array
    created: Array
    alive: Array  # of each chunk
    nearby: list[tuple[float, Array]]  # (share, rows); len(start) stands for none
    norm: Array  # BM25's, of each chunk
    whole_norm: Array  # and of each memory as a whole
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
            np.append(np.where(at >= 0, row[at], none), none)
            for at in (columns.before[start], columns.after[end - 1])  # those of its first and last chunk
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


@dataclass(slots=True)
class _Wording:
    """Words that a memory must or must not contain as they are written."""

    flat: str
    whole: re.Pattern[str] | None  # of stop words only: "to be" is not in "go to bed"
    likely: Array | None  # the memories that have the terms; None where there is no term to go by

    @classmethod
    def of(cls, index: Index, layout: _Layout, words: str) -> Self:
        flat = _flat(words)
        parts = plain_parts(words)
        whole = None
        if not parts and re.search(r"\w", flat):
            whole = re.compile(rf"(?<!\w){re.escape(flat)}(?!\w)")
        likely: Array | None = None
        for part in dict.fromkeys(parts):
            has = np.zeros(len(layout.start), np.bool_)
            for alternative in part:
                has |= np.logical_and.reduce([layout.having(index, term) for term in alternative])
            if has.any():  # else it may be a part of other words
                likely = has if likely is None else likely & has
        return cls(flat, whole, likely)

    def within(self, text: str) -> bool:
        return self.flat in text and (self.whole is None or self.whole.search(text) is not None)

    def rules_out(self, row: int, memory: Memory) -> bool:
        if self.likely is not None and not self.likely[row]:
            return False
        return self.within(_shown(memory)) or self.within(_flat("\n".join((memory.native_id, *memory.tags))))


# -- words and vectors


@dataclass(slots=True)
class _Found:
    """How much of the query each chunk and each memory has, 0 … 1.

    `covered` is the part of the query's words, by weight, that the memory's best chunk has. Words that no memory has
    count, too: they make a query that is about something else.
    """

    chunks: Array
    memories: Array
    covered: Array


def _words(index: Index, layout: _Layout, terms: Sequence[str]) -> _Found:
    chunks, memories = layout.total
    scores = np.zeros(len(layout.row), np.float32)
    has = np.zeros(len(layout.row), np.float32)
    single = len(layout.start) == len(layout.row)
    whole = scores if single else np.zeros(len(layout.start), np.float32)
    most = 0.0  # what a chunk could score at most, but for K1 + 1
    asked = 0.0  # the same with the words that no chunk has
    for term in terms:
        numbers, weights = index.postings(term)
        kept = numbers < len(scores)
        kept[kept] = layout.alive[numbers[kept]]
        if not kept.all():
            numbers, weights = numbers[kept], weights[kept]
        counts = np.float32(importance(term) * _rarity(chunks, len(numbers)))
        asked += float(counts)
        if not len(numbers):
            continue
        most += float(counts)
        scores[numbers] += counts * weights / (weights + layout.norm[numbers])
        has[numbers] += counts
        if not single:
            rows = layout.row[numbers]
            at = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            rows, weights = rows[at], np.add.reduceat(weights, at)
            counts = np.float32(importance(term) * _rarity(memories, len(rows)))
            whole[rows] += counts * weights / (weights + layout.whole_norm[rows])
    covered = layout.best(has) / np.float32(asked or 1.0)
    if not most:
        return _Found(scores, whole, covered)
    best = scores * has / np.float32(most * most)
    return _Found(best, (1 - WHOLE) * layout.best(best) + whole * np.float32(WHOLE / most), covered)


def _vectors_share(encoder: Encoder) -> float:
    if not encoder.dim:
        return 0.0
    return VECTORS if encoder.name in ("static", "hash") else MODEL_VECTORS


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _cosines(encoder: Encoder, columns: Columns, text: str, words: Array) -> Array:
    """How close the chunks are to the query. In a large index only of those that either side brings up; else 0."""
    used = columns.used
    none = np.zeros(used, np.float32)
    if not encoder.dim:
        return none
    asked: Array = encoder.encode_query(text)
    if not asked.any():
        return none
    shared = float(columns.mean @ columns.mean)
    if shared:
        # of the query, only what lies along it: short as it is, most of what chunks have in common it never had
        asked = asked - columns.mean * (used / (used + FEW) * float(asked @ columns.mean) / shared)
        asked /= max(float(np.linalg.norm(asked)), 1e-9)
    if not len(columns.signs):
        near: Array = columns.rows[:used] @ asked
        return near
    differing = np.bitwise_count(columns.signs[:used] ^ np.packbits(asked > 0).view(np.uint64))
    apart = np.zeros(used, np.uint16)
    for column in range(differing.shape[1]):  # a sum over rows this short takes numpy ten times as long
        apart += differing[:, column]
    most = min(RESCORED, used)
    closest = np.argpartition(apart, most - 1)[:most]
    having = np.flatnonzero(words)
    if len(having) > most:
        having = having[np.argpartition(-words[having], most - 1)[:most]]
    wanted = np.zeros(used, np.bool_)
    wanted[closest] = wanted[having] = True
    chosen = np.flatnonzero(wanted)
    none[chosen] = columns.rows[chosen].astype(np.float32) @ asked / 127
    return none


# -- the hits


def _first(
    index: Index,
    layout: _Layout,
    rows: Array,
    scores: Array,
    limit: int,
    wanted: Sequence[_Wording],
    unwanted: Sequence[_Wording],
) -> list[tuple[int, Memory]]:
    """The best of the rows that have all that is wanted; of the same score, the newest first, then by their id."""
    scores = scores.astype(np.float64).round(6)
    left = LOOKED if wanted and all(wording.likely is None for wording in wanted) else len(rows)
    found: list[tuple[int, Memory]] = []
    for some in _in_order(rows, scores, layout.created, min(limit, BATCH)):
        some = some[:left]
        left -= len(some)
        memories = index.memories(int(number) for number in layout.memory[some])
        here = [(int(row), memories[number]) for row in some if (number := int(layout.memory[row])) in memories]
        here.sort(key=lambda entry: (-scores[entry[0]], -layout.created[entry[0]], entry[1].id))
        for row, memory in here:
            text = _shown(memory) if wanted else ""
            if all(wording.within(text) for wording in wanted) and not any(
                wording.rules_out(row, memory) for wording in unwanted
            ):
                found.append((row, memory))
        if len(found) >= limit or not left:
            break
    return found[:limit]


def _in_order(rows: Array, scores: Array, created: Array, many: int) -> Iterator[Array]:
    """The rows by score, then the newest first, in batches that do not part those alike in both, up to TIES."""
    rest = rows[:0]
    if len(rows) > many:
        own = scores[rows]
        least = np.partition(own, -many)[-many]
        rows, rest = rows[own >= least], rows[own < least]
    for part in (rows, rest):
        left = part if len(part) < 2 else part[np.lexsort((-created[part], -scores[part]))]
        while len(left):
            last, more = left[:many][-1], left[many : many + TIES]
            tied = (scores[more] == scores[last]) & (created[more] == created[last])
            end = many + int(np.count_nonzero(tied))
            yield left[:end]
            left = left[end:]
            many = min(max(2 * many, 50), BATCH)


def _rank(scores: Array, row: int) -> int:
    return int(np.count_nonzero(scores > scores[row])) + 1


def _best_piece(index: Index, pieces: slice, scores: Array, phrases: Sequence[str]) -> int:
    """The chunk to show: the best that has the phrases, else the best."""
    order: list[int] = [pieces.start + int(at) for at in np.argsort(-scores, kind="stable")]
    if phrases and len(order) > 1:
        wanted = [_flat(phrase) for phrase in phrases]
        for chunk in order:
            text = _flat(" ".join(index.chunk(chunk)))
            if all(phrase in text for phrase in wanted):
                return chunk
    return order[0]


def _shown(memory: Memory) -> str:
    return _flat(f"{memory.title}\n{memory.text}")


def _flat(text: str) -> str:
    return " ".join(fold(text).split())
