"""Search over dated entries (seed 000): queries, what they find, and a block of it for a prompt. No I/O.

refresh PRB-042 "clock skew" topic:auth
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

from memlane.core.errors import InvalidInput
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.text import STOP_WORDS
from memlane.lanes.topics import usage
from memlane.lanes.topics.entries import AD_HOC, GENERAL, Entry

TRIED = 10  # entries for a block, from the best one on
_PREFIXED = lazily(r'(?i)(?<!\S)(context|topic|tag|type):(?:"([^"]*)"|(\S+))')
_QUOTED = lazily(r'"([^"]+)"')
_LABELS = lazily(r"(?m)^\*\*[^\W\d_][^*:\n]{0,39}?:\*\*")  # the labels of an entry, as `Memory.text` has them
_WORD = lazily(r"[^\W\d_]+-\d+(?!\w)|\w+")  # PRB-042 is one word


class Query(NamedTuple):
    """A query in parts, all in small letters. What is not `words` or `whole` must match."""

    words: frozenset[str]
    phrases: tuple[str, ...]
    contexts: tuple[str, ...]
    topics: tuple[str, ...]
    tagged: bool  # `tag:` may also name a tag of the entry itself
    types: tuple[str, ...]
    whole: str


class Hit(NamedTuple):
    """A memory that a query finds, with its score. `named` says how clearly the query names its topic; `weight` is
    what context and the keywords beyond the topic's name earn. Among equals, the smaller `place` comes first.
    """

    memory: Memory
    score: float
    named: int
    weight: int
    day: int
    place: tuple[bool, int, str, str]


def parse(query: str) -> Query:
    """A query in its parts. Raises InvalidInput when it is not text."""
    if not isinstance(query, str):
        raise InvalidInput("The query is not text.", hint="Give some words.")
    query = query.lower()
    given: dict[str, list[str]] = {"context": [], "topic": [], "tag": [], "type": []}
    for match in _PREFIXED.finditer(query):
        given[match[1]].append((match[2] or match[3] or "").strip())
    rest = _PREFIXED.sub(" ", query)
    phrases = tuple(" ".join(phrase.split()) for phrase in _QUOTED.findall(rest))
    rest = _QUOTED.sub(" ", rest)
    words = frozenset(_WORD.findall(rest))
    return Query(
        words - STOP_WORDS or words,
        phrases,
        tuple(given["context"]),
        (*given["topic"], *given["tag"]),
        bool(given["tag"]),
        tuple(given["type"]),
        " ".join(rest.split()),
    )


def needed(query: Query) -> frozenset[str]:
    """Words of which every entry that the query finds has at least one somewhere; none where that cannot be said."""
    if query.phrases or query.contexts or query.topics or query.types:
        return frozenset()
    return query.words | {word for word in query.whole.split() if "/" in word}


def hits_for(query: Query, memories: Iterable[Memory], today: date, stats: Mapping[str, Any]) -> Iterator[Hit]:
    """The memories that a query finds, each with its score. `stats` says how often each sub-topic was loaded."""
    for memory in memories:
        if judged := _judged(query, memory):
            named, naming, weight, place = judged
            day = _ordinal(memory)
            uses = usage.uses(stats, memory.scope or "") // 5
            score = weight + 3 * naming + 2 * bool(named) + math.exp(-0.1 * max(0, today.toordinal() - day)) + uses
            yield Hit(memory, score, named, weight, day, place)


def _judged(query: Query, memory: Memory) -> tuple[int, int, int, tuple[bool, int, str, str]] | None:
    """What a memory earns: for naming its topic, keywords that are also the topic's name, and the weight of the rest;
    and its place among equals: archived ones last, sub-topics first whose name the query has most of.

    None when the query does not find it.
    """
    topic, subtopic = memory.fields["topic"], memory.fields["subtopic"]
    names = _name_words(topic, subtopic)
    tags = {tag.lower() for tag in memory.tags} if query.tagged else ()
    if not names.union(tags).issuperset(query.topics):
        return None
    said = (memory.title, _LABELS.sub(" ", memory.text), *memory.tags[2:], memory.type or "", memory.thread or "")
    text = " ".join("\n".join(said).lower().split())
    context = (memory.fields.get("context") or "").lower()
    if not (
        all(phrase in text for phrase in query.phrases)
        and all(part in context for part in query.contexts)
        and all(kind == (memory.type or "").lower() for kind in query.types)
    ):
        return None
    known = len(query.words & names)
    named = known + 2 * (f"{topic}/{subtopic}".lower() in query.whole.split()) + len(query.topics)
    words = {word for word in query.words if _holds(text, word)}
    same_context = bool(query.contexts) or _refers(query, context)
    weight = 3 * (len(words - names) + len(query.phrases)) + 5 * same_context
    if not (words or named or weight or query.types):
        return None
    return named, len(words & names), weight, (memory.status == "archived", -known, topic, subtopic)


def _refers(query: Query, context: str) -> bool:
    """Whether the query names the entry's context: its task reference, or all of it."""
    shared = query.words.intersection(_WORD.findall(context))
    if any("-" in word for word in shared):
        return True
    whole = len(context) > 2 and context != AD_HOC and f" {' '.join(context.split())} " in f" {query.whole} "
    return whole and bool(shared)


def _holds(text: str, word: str) -> bool:
    """Whether a text has a word, or a longer one that begins with it. Scripts without spaces: anywhere."""
    if word not in text:
        return False
    if not word.isascii():
        return True
    end = "(?![a-z0-9])" if len(word) < 3 or word.isdigit() else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}{end}", text) is not None


@lru_cache(10_000)
def _name_words(topic: str, subtopic: str) -> frozenset[str]:
    """What a query may call a sub-topic."""
    names = [topic.lower(), *([subtopic.lower()] if subtopic != GENERAL else [])]
    parts = {part for name in names for part in re.split(r"[._-]+", name) if part}
    return frozenset({*names, *parts, f"{topic}/{subtopic}".lower()})


def _ordinal(memory: Memory) -> int:
    try:
        return date.fromisoformat(memory.fields["date"]).toordinal()
    except ValueError:
        return 0


# -- for a prompt


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
    for first in range(min(len(entries), TRIED)):
        best = max(best, block(entries[first : first + TRIED]), key=lambda block: min(len(block.entries), 2))
        if len(best.entries) >= min(2, limit):
            break
    return best
