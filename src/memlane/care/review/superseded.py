"""Memories that a newer one replaces or contradicts by its own words, that share its title, or that something which was
said in a session would take the place of.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain

from memlane import __version__
from memlane.care.distilled import INSTEAD_OF
from memlane.care.review.reading import (
    ALIKE_SHORT,
    ARCHIVE,
    FEW,
    LOOK,
    Item,
    Reading,
    by_age,
    changed_at,
    is_newer,
    words_of,
)
from memlane.core.model import UNCONFIRMED, Memory

RELATED = 0.3  # of the words of the smaller text, for two texts of one title to be about the same
_OLD = r"(?:(?:the|our|my|this|old|older|previous|earlier|former|note|plan|memory|decision|entry|rule)\s+){0,3}"
_ACTIVE = r"(?:supersed(?:es|ed|ing)|replac(?:es|ed|ing)|obsolet(?:es|ed)|deprecat(?:es|ed))"
_PASSIVE = r"(?:superseded|replaced|obsoleted|deprecated|made\s+obsolete)\s+by"
_LINK = r"\[\[\s*(?P<node>[^\[\]|\n]+?)\s*(?=[|\]])"
_TYPED = re.compile(rf"{_LINK}\|\s*type:SUPERSEDES")
_SAID = {
    direction: re.compile(rf"\b{words}\s+{_OLD}{_LINK}", re.IGNORECASE)
    for direction, words in (("by", _PASSIVE), ("this", _ACTIVE))
}
_DOUBT = re.compile(
    r"(?:\b(?:not|never|cannot|nothing|would|could|should|might|may|will|if|unless|before|to|be)|n['’]t)\s+(?:\w+\s+)?$"
)


def superseded(reading: Reading) -> Iterator[Item]:
    items: list[Item] = []
    for source, links in reading.links.items():
        for node, edge, context in links:
            target = reading.target(node, source) if node.startswith("memory:") else None
            if target is None or target == source:
                continue
            here, there = reading.find(source), reading.find(target)
            if here is None or there is None:
                continue
            stated = _stated(context, node)
            if stated or edge == "SUPERSEDES":
                items += _replaced(reading, *((here, there) if stated == "by" else (there, here)), stated)
            elif edge == "CONTRADICTS":
                older, newer, when = by_age(there, here)
                options = (("rm", older.id), ("rm", newer.id), ("edit", older.id))
                items.append(reading.item(older, f"contradicts {newer.id}{when}", *options, others=(newer.id,)))
    items += _same_title(reading, {(item.id, item.others) for item in items})
    items += _proposed(reading)
    yield from sorted(items, key=lambda item: (not item.safe, item.id))


def _stated(context: str, node: str) -> str:
    """Whether the words right before a link say that this replaces that ("this"), or is replaced "by" it; else ""."""
    if any(match["node"] == node for match in _TYPED.finditer(context)):
        return "this"
    for direction, words in _SAID.items():
        for match in words.finditer(context):
            about = match["node"].lower() == node.lower()
            if about and (direction == "by" or not _DOUBT.search(context[: match.start()].lower())):
                return direction
    return ""


def _replaced(reading: Reading, old: Memory, new: Memory, stated: str) -> Iterator[Item]:
    if is_newer(old, new):
        return  # it may have been rewritten since the other spoke of it
    sure = bool(stated) and old.lane == "notes" and is_newer(new, old)
    reason = {
        "this": f"{new.id} says that it replaces this",
        "by": f"says that {new.id} replaces it",
    }.get(stated, f"{new.id} speaks of replacing this")
    option = ("update", old.id, "--status", "archived") if old.lane == "notes" else ("rm", old.id)
    yield reading.item(old, reason, option, action=ARCHIVE if sure else LOOK, others=(new.id,))


def _proposed(reading: Reading) -> Iterator[Item]:
    """Memories that something which was distilled from a session would take the place of, if somebody says so."""
    for new in reading.chosen("tags LIKE ?", f'%"{UNCONFIRMED}"%'):
        old = reading.find(str(new.fields.get(INSTEAD_OF))) if new.unconfirmed else None
        if old is not None:
            keys = [("review", "--only", "unconfirmed", "--key", key, new.id) for key in "tkx"]
            reason = f"{new.id}, of a session, says otherwise, or that it is done"
            yield reading.item(old, reason, *keys, others=(new.id,))


def _same_title(reading: Reading, known: set[tuple[str, tuple[str, ...]]]) -> Iterator[Item]:
    """Notes and entries that a newer one of the same title, about the same thing, may have replaced.

    `known` are the pairs that other items speak of already. Memories of one title are read again when one of them has
    changed, come or gone.
    """
    titled: defaultdict[str, set[str]] = defaultdict(set)
    shapes: defaultdict[str, bytes] = defaultdict(bytes)  # what each is like, by id
    rows = reading.known.entries("title, shape", "status IS NOT 'archived' AND lane IN ('notes', 'topics')")
    for path, id, title, shape in rows:
        title = " ".join(title.casefold().split())
        if " " in title and any(map(str.isalpha, title)) and reading.counts(path, id):
            titled[title].add(id)
            shapes[id] += shape
    before = _unpacked(reading.known.kept("titles"))
    found: dict[str, list[tuple[str, str, str]]] = {}
    for ids in sorted(sorted(ids) for ids in titled.values() if len(ids) > 1):
        about = "\0".join((__version__, *ids)).encode(errors="replace") + b"".join(map(shapes.__getitem__, ids))
        key = blake2b(about, digest_size=16).hexdigest()
        found[key] = before[key] if key in before else _replaced_by_title(reading, ids)
    if found.keys() != before.keys():
        reading.known.keep("titles", json.dumps(found).encode())
    for id, title, newest in chain.from_iterable(found.values()):
        if (id, (newest,)) not in known:
            reason = f"has the same title as {newest}, which is newer"
            yield Item(id, LOOK, reason, title, others=(newest,), options=(reading.command("rm", id),))


def _unpacked(data: bytes | None) -> dict[str, list[tuple[str, str, str]]]:
    """What was kept; nothing where it is not as it was written."""
    try:
        kept = json.loads(data or b"{}")
        return {key: [(id, title, newest) for id, title, newest in rows] for key, rows in kept.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _replaced_by_title(reading: Reading, ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """(id, title, id of the newest) of those of one title that the newest of them may have replaced."""
    group = [memory for memory in map(reading.find, ids) if memory]
    if len(group) < 2 or None in map(changed_at, group):
        return []
    newest = max(group, key=lambda memory: (str(changed_at(memory)), memory.id))
    theirs = words_of(newest)
    found = []
    for memory in group:
        own = words_of(memory)
        small, shared = min(len(own), len(theirs)), len(own & theirs)
        related = small >= FEW and shared >= RELATED * small
        near = shared >= ALIKE_SHORT * len(own | theirs)  # reported as a duplicate
        if related and not near and is_newer(newest, memory):
            found.append((memory.id, memory.title, newest.id))
    return found
