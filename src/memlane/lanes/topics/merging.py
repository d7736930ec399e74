"""Merge what two branches made of a topic file, an archive or index.md: entries are united. Pure functions.

An entry that both changed in different ways is one entry that has both versions; counts in index.md are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from memlane.core import three_way
from memlane.core.three_way import interleaved, merged, merged_value
from memlane.lanes.merging import BY_HAND, Unmergeable
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics import listing
from memlane.lanes.topics.listing import Listed
from memlane.lanes.topics.pages import opened

T = TypeVar("T", bound=Hashable)
Key = int | tuple[str, int]  # an entry's number in the base; a new one is known by its text and its number among equals


def topic(base: str, ours: str, theirs: str) -> str:
    """A topic file with the entries of both, the newest first. An entry that one side pruned or deleted stays away,
    unless the other changed it.
    """
    newline, texts = three_way.with_same_line_ends(base, ours, theirs)
    if any(map(text_of.conflict, texts)):
        raise Unmergeable("The file has unresolved merge-conflict markers.", hint=BY_HAND)
    documents = [text_of.split(text) for text in texts]
    old, one, two = ([raw.rstrip("\n") for raw in document.raws] for document in documents)
    shared = set(one) & set(two)
    left, right = (dict(zip(_keys(old, raws, shared), raws, strict=True)) for raws in (one, two))
    final: dict[Key, str] = {}
    for key in {*left, *right}:
        if not isinstance(key, int):
            final[key] = key[0]
        elif key in left and key in right:
            final[key] = _entry(old[key], left[key], right[key])
        else:
            changed = left.get(key) or right[key]
            final[key] = "" if changed == old[key] else changed
    kept = [[key for key in side if final[key]] for side in (left, right)]
    order = interleaved(kept[0], kept[1], key=lambda key: (-_day(final[key]), final[key]))
    raws = [final[key] for key in order]
    head = merged(*(document.head for document in documents))
    tail = merged(*(document.tail for document in documents))
    if raws and tail.strip() and not raws[-1].endswith("\n---"):
        raws[-1] += "\n---"
    text = (opened(head, "\n") if raws else head) + "\n".join(raw + "\n" for raw in raws) + tail
    again = text_of.split(text)
    if [raw.rstrip("\n") for raw in again.raws] != raws or again.tail.strip() != tail.strip():
        raise Unmergeable("The entries cannot be told apart after a merge.", hint=BY_HAND)
    return text.replace("\n", newline)


def _keys(old: Sequence[str], raws: Sequence[str], shared: Collection[str]) -> list[Key]:
    """The entries of a side by what they were in the base: those of the same text, then those of the same heading.

    The oldest comes first, as new entries are put on top. What both sides have and the base has not is new.
    """
    keys: dict[int, Key] = {}
    left = dict(reversed(list(enumerate(old))))
    for alike in (str, _heading):
        places: dict[Any, list[int]] = {}
        for number, raw in left.items():
            places.setdefault(alike(raw), []).append(number)
        for number, raw in reversed(list(enumerate(raws))):
            if number not in keys and places.get(alike(raw)) and (alike is str or raw not in shared):
                keys[number] = place = places[alike(raw)].pop(0)
                del left[place]
    new = [number for number in range(len(raws)) if number not in keys]
    keys |= zip(new, _numbered(raws[number] for number in new), strict=True)
    return [keys[number] for number in range(len(raws))]


def _numbered(items: Iterable[T]) -> list[tuple[T, int]]:
    """Each item with its number among those equal to it."""
    seen: Counter[T] = Counter()
    numbered = []
    for item in items:
        numbered.append((item, seen[item]))
        seen[item] += 1
    return numbered


def _heading(raw: str) -> tuple[str, str]:
    entry = text_of.parse(raw)
    return entry.date, entry.title


def _day(raw: str) -> int:
    return int(text_of.parse(raw).date.replace("-", ""))


def _entry(base: str, ours: str, theirs: str) -> str:
    """An entry that both sides have: as one of them changed it, both changes in one, or both versions of its text."""
    value, agreed = merged_value(base, ours, theirs)
    if agreed:
        return str(value)
    both = three_way.merged_cleanly(base, ours, theirs)
    if both is not None and len(text_of.split(both).raws) == 1 and _heading(both) == _heading(base):
        return both
    tops, bodies = zip(*((*raw.split("\n", 1), "")[:2] for raw in (base, ours, theirs)), strict=True)
    body = three_way.merged_whole(*(text.removesuffix("---") for text in bodies)).rstrip("\n")
    return "\n".join(filter(None, (min(tops[1:]), body, "---")))


def archive(base: str, ours: str, theirs: str) -> str:
    """An archive file with the entries of both, the newest first."""
    newline, texts = three_way.with_same_line_ends(base, ours, theirs)
    sides = [_numbered(_archived(text)) for text in texts]
    both = three_way.survivors(*sides)
    order = [item for item, _ in interleaved(*both, key=lambda numbered: (-_day(numbered[0][1]), *numbered[0]))]
    head = merged(*map(text_of.archive_head, texts))
    head += "\n" * bool(head and not head.endswith("\n"))
    text = head + "\n".join(f"{text_of.archive_mark(name) if name else ''}{raw}\n" for name, raw in order)
    if _archived(text) != order:
        raise Unmergeable("The archived entries cannot be told apart after a merge.", hint=BY_HAND)
    return text.replace("\n", newline)


def _archived(text: str) -> list[tuple[str, str]]:
    return [(subtopic, raw.rstrip("\n")) for subtopic, raw in text_of.archived(text)]


# -- index.md


def index(base: str, ours: str, theirs: str) -> str:
    """index.md with the lines of both. Counts are added up; `memlane topics reindex` counts again."""
    newline, texts = three_way.with_same_line_ends(base, ours, theirs)
    bare = [listing.without_lines(text) for text in texts]
    if any(text is None for text in bare):  # written by hand, in a way of its own
        return merged(base, ours, theirs)
    first, left, right = map(listing.read_index, texts)
    both = {name: _listed(first.get(name), left.get(name), right.get(name)) for name in {*left, *right}}
    lines = {name: line for name, line in both.items() if line is not None}
    text = listing.edit_index(merged(*(text or "" for text in bare)), lines)
    if listing.read_index(text) != lines:
        return merged(base, ours, theirs)
    return text.replace("\n", newline)


def _listed(base: Listed | None, ours: Listed | None, theirs: Listed | None) -> Listed | None:
    value, agreed = merged_value(base, ours, theirs)
    if agreed or ours is None or theirs is None:
        return value if agreed else ours or theirs  # a change beats a deletion
    was = base or Listed("", 0, 0, "")
    counts = zip(ours[1:3], theirs[1:3], was[1:3], strict=True)
    entries, archived = (max(0, (mine or 0) + (other or 0) - (old or 0)) for mine, other, old in counts)
    description, agreed = merged_value(was.description, ours.description, theirs.description)
    if not agreed:  # a person's description stands beside old facts; ours follows the newest entry
        sides = sorted((ours, theirs), key=lambda side: (side[1:] == was[1:], side.newest or "", side.description))
        description = sides[-1].description
    return Listed(description, entries, archived, max(ours.newest or "-", theirs.newest or "-"))
