"""Search over dated entries (seed 000): queries, what they find, and a block of it for a prompt. Writes nothing.

refresh PRB-042 "clock skew" topic:auth
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from memlane.core.errors import InvalidInput
from memlane.core.invisible import visible
from memlane.core.text import STOP_WORDS
from memlane.lanes.topics import archive, usage
from memlane.lanes.topics.entries import AD_HOC, GENERAL, Entry
from memlane.lanes.topics.pages import Folder

_TRIED = 10  # entries for a block, from the best one on
_PREFIXED = re.compile(r'(?i)(?<!\S)(context|topic|tag|type):(?:"([^"]*)"|(\S+))')
_QUOTED = re.compile(r'"([^"]+)"')
_WORD = re.compile(r"[^\W\d_]+-\d+(?!\w)|\w+")  # PRB-042 is one word


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
    """An entry that a query finds, with its score. `named` says how clearly the query names its topic; `weight` is
    what context and the keywords beyond the topic's name earn.
    """

    entry: Entry
    place: int
    named: int
    weight: int

    @property
    def day(self) -> int:
        return _ordinal(self.entry)


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


def hits_for(folder: Folder, text: str, today: date, include_archive: bool) -> Iterator[Hit]:
    """The entries that a query finds, each with its score, in the order in which they are looked at."""
    query = parse(text)
    stats = usage.read(folder.at(usage.STATS))
    for place, entry in enumerate(_candidates(folder, query, include_archive)):
        if judged := _judged(query, entry):
            named, naming, weight = judged
            uses = usage.uses(stats, f"{entry.topic}/{entry.subtopic}") // 5
            age = max(0, today.toordinal() - _ordinal(entry))
            score = weight + 3 * naming + 2 * bool(named) + math.exp(-0.1 * age) + uses
            yield Hit(replace(entry, score=score), place, named, weight)


def _candidates(folder: Folder, query: Query, include_archive: bool) -> Iterator[Entry]:
    """The entries to look at: the files of topics that the query names first, or only those it demands."""
    paths = [path for path in folder.topic_files() if isinstance(path, str)]
    names = {path: _name_words(*folder.named(path)) for path in paths}
    paths = [path for path in paths if query.tagged or names[path].issuperset(query.topics)]
    for path in sorted(paths, key=lambda path: -len(names[path] & query.words)):
        yield from folder.entries(path)
    if include_archive:
        yield from archive.entries(folder)


def _judged(query: Query, entry: Entry) -> tuple[int, int, int] | None:
    """What an entry earns: for naming its topic, keywords that are also the topic's name, and the weight of the rest.

    None when the query does not find it.
    """
    values = [entry.title, entry.content, *(value for _, value in entry.labels)]
    text = " ".join("\n".join(values).lower().split())
    context = (entry.context or "").lower()
    names = _name_words(entry.topic, entry.subtopic)
    tags = {tag.lower() for tag in entry.tags} if query.tagged else ()
    if not (
        all(phrase in text for phrase in query.phrases)
        and all(part in context for part in query.contexts)
        and names.union(tags).issuperset(query.topics)
        and all(kind == (entry.get("Type") or "").lower() for kind in query.types)
    ):
        return None
    path = f"{entry.topic}/{entry.subtopic}".lower()
    named = len(query.words & names) + 2 * (path in query.whole.split()) + len(query.topics)
    words = {word for word in query.words if _holds(text, word)}
    same_context = bool(query.contexts) or _refers(query, context)
    weight = 3 * (len(words - names) + len(query.phrases)) + 5 * same_context
    return (named, len(words & names), weight) if words or named or weight or query.types else None


def _refers(query: Query, context: str) -> bool:
    """Whether the query names the entry's context: its task reference, or all of it."""
    references = {word for word in _WORD.findall(context) if "-" in word}
    if references & query.words:
        return True
    return len(context) > 2 and context != AD_HOC and f" {' '.join(context.split())} " in f" {query.whole} "


def _holds(text: str, word: str) -> bool:
    """Whether a text has a word, or a longer one that begins with it. Scripts without spaces: anywhere."""
    if word not in text:
        return False
    if not word.isascii():
        return True
    end = "(?![a-z0-9])" if len(word) < 3 or word.isdigit() else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}{end}", text) is not None


def _name_words(topic: str, subtopic: str) -> frozenset[str]:
    """What a query may call a sub-topic."""
    names = [topic.lower(), *([subtopic.lower()] if subtopic != GENERAL else [])]
    parts = {part for name in names for part in re.split(r"[._-]+", name) if part}
    return frozenset({*names, *parts, f"{topic}/{subtopic}".lower()})


def _ordinal(entry: Entry) -> int:
    try:
        return date.fromisoformat(entry.date).toordinal()
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
    for first in range(min(len(entries), _TRIED)):
        best = max(best, block(entries[first : first + _TRIED]), key=lambda block: min(len(block.entries), 2))
        if len(best.entries) >= min(2, limit):
            break
    return best
