"""Search over dated entries (seed 000): a query in parts, and what it finds in one entry. Pure functions, no I/O.

    refresh PRB-042 "clock skew" topic:auth

Which entries are looked at, and how recency and use count, is the lane's business.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from memlane.core.errors import InvalidInput
from memlane.core.text import STOP_WORDS
from memlane.lanes.topics.entries import Entry

GENERAL = "general"
AD_HOC = "ad-hoc"

_PREFIXED = re.compile(r'(?i)(?<!\S)(context|topic|tag|type):(?:"([^"]*)"|(\S+))')
_QUOTED = re.compile(r'"([^"]+)"')
_WORD = re.compile(r"[^\W\d_]+-\d+(?!\w)|\w+")  # PRB-042 is one word


class Asked(NamedTuple):
    """A query in parts, all in small letters. What is not `words` or `whole` must match."""

    words: frozenset[str]
    phrases: tuple[str, ...]
    contexts: tuple[str, ...]
    topics: tuple[str, ...]
    tagged: bool  # `tag:` may also name a tag of the entry itself
    types: tuple[str, ...]
    whole: str


class Hit(NamedTuple):
    """An entry judged. `naming` keywords are also the topic's name; `weight` is what the others and context earn."""

    entry: Entry
    place: int
    relevant: bool
    named: int = 0
    naming: int = 0
    weight: int = 0


def asked(query: str) -> Asked:
    """A query in its parts. Raises InvalidInput when it is not text."""
    if not isinstance(query, str):
        raise InvalidInput("The query is not text.", hint="Give some words.")
    query = query.lower()
    given: dict[str, list[str]] = {"context": [], "topic": [], "tag": [], "type": []}
    for found in _PREFIXED.finditer(query):
        given[found[1]].append((found[2] or found[3] or "").strip())
    rest = _PREFIXED.sub(" ", query)
    phrases = tuple(" ".join(found.split()) for found in _QUOTED.findall(rest))
    rest = _QUOTED.sub(" ", rest)
    words = _WORD.findall(rest)
    return Asked(
        frozenset(word for word in words if word not in STOP_WORDS) or frozenset(words),
        phrases,
        tuple(given["context"]),
        (*given["topic"], *given["tag"]),
        bool(given["tag"]),
        tuple(given["type"]),
        " ".join(rest.split()),
    )


def judged(query: Asked, entry: Entry, place: int) -> Hit:
    """What the query finds in an entry."""
    values = [entry.title, entry.content, *(value for _, value in entry.labels)]
    text = " ".join("\n".join(values).lower().split())
    context = (entry.context or "").lower()
    names = name_words(entry.topic, entry.subtopic)
    tags = {tag.lower() for tag in tags_of(entry)}
    if not (
        all(phrase in text for phrase in query.phrases)
        and all(wanted in context for wanted in query.contexts)
        and all(name in names or (query.tagged and name in tags) for name in query.topics)
        and all(kind == (entry.get("Type") or "").lower() for kind in query.types)
    ):
        return Hit(entry, place, relevant=False)
    path = f"{entry.topic}/{entry.subtopic}".lower()
    named = len(query.words & names) + 2 * (path in query.whole.split()) + len(query.topics)
    found = {word for word in query.words if _holds(text, word)}
    same_context = bool(query.contexts) or _refers(query, context)
    weight = 3 * (len(found - names) + len(query.phrases)) + 5 * same_context
    relevant = bool(found or named or weight or query.types)
    return Hit(entry, place, relevant, named, len(found & names), weight)


def _refers(query: Asked, context: str) -> bool:
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


def name_words(topic: str, subtopic: str) -> frozenset[str]:
    """What a query may call a sub-topic."""
    names = [topic.lower(), *([subtopic.lower()] if subtopic != GENERAL else [])]
    parts = {part for name in names for part in re.split(r"[._-]+", name) if part}
    return frozenset({*names, *parts, f"{topic}/{subtopic}".lower()})


def ordinal(entry: Entry) -> int:
    try:
        return date.fromisoformat(entry.date).toordinal()
    except ValueError:
        return 0


def tags_of(entry: Entry) -> tuple[str, ...]:
    """Topic and sub-topic first, then the entry's own tags."""
    own = [tag.strip() for tag in (entry.get("Tags") or "").split(",")]
    return (entry.topic, entry.subtopic, *dict.fromkeys(tag for tag in own if tag))
