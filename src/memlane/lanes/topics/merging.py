"""Merge what two branches made of a topic file, an archive or index.md: entries are united. Pure functions.

An entry that both changed in different ways stays twice, the second one marked; counts in index.md are added up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from memlane.core.markdown import heading
from memlane.core.three_way import (
    MARK,
    interleaved,
    merged,
    merged_cleanly,
    merged_value,
    survivors,
    with_same_line_ends,
)
from memlane.lanes.merging import BY_HAND, Unmergeable
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Listed
from memlane.lanes.topics.pages import opened

_TWICE = f"{MARK}: two branches changed this entry; keep one of the two and delete this line -->"
_ORIGIN = re.compile(r"<!-- subtopic: \S+ -->[ \t]*\n\Z")


class _Entry(NamedTuple):
    """An entry of a topic file or archive. `base` is its number in the base, or -1; then it is known by its text."""

    base: int
    raw: str
    number: int


def topic(base: str, ours: str, theirs: str) -> str:
    """A topic file with the entries of both, the newest first. An entry that one side pruned or deleted stays away,
    unless the other changed it.
    """
    newline, texts = with_same_line_ends(base, ours, theirs)
    if any(map(text_of.conflict, texts)):
        raise Unmergeable("The file has unresolved merge-conflict markers.", hint=BY_HAND)
    first, left, right = map(text_of.split, texts)
    old = [raw.rstrip("\n") for raw in first.raws]
    one, two = ([raw.rstrip("\n") for raw in side.raws] for side in (left, right))
    shared = set(one) & set(two)
    sides = (_known(old, one, shared), _known(old, two, shared))
    now = [dict(zip(known, raws, strict=True)) for known, raws in zip(sides, (one, two), strict=True)]
    final: dict[_Entry, list[str]] = {}
    for entry in {*sides[0], *sides[1]}:
        raws = [side.get(entry, "") for side in now]
        if entry.base < 0:
            final[entry] = [entry.raw]
        elif all(raws):
            final[entry] = _entry(old[entry.base], raws[0], raws[1])
        else:
            changed = next(filter(None, raws))
            final[entry] = [] if changed == old[entry.base] else [changed]

    def place(entry: _Entry) -> tuple[Any, ...]:
        raw = final[entry][0]
        return -_day(raw), raw

    kept = [[entry for entry in side if final[entry]] for side in sides]
    raws = [raw for entry in interleaved(kept[0], kept[1], key=place) for raw in final[entry]]
    head, tail = (
        merged(*parts) for parts in ((first.head, left.head, right.head), (first.tail, left.tail, right.tail))
    )
    if raws and tail.strip() and not raws[-1].endswith("\n---"):
        raws[-1] += "\n---"
    text = (opened(head, "\n") if raws else head) + "\n".join(raw + "\n" for raw in raws) + tail
    found = text_of.split(text)
    if [raw.rstrip("\n") for raw in found.raws] != raws or found.tail.strip() != tail.strip():
        raise Unmergeable("The entries cannot be told apart after a merge.", hint=BY_HAND)
    return text if newline == "\n" else text.replace("\n", newline)


def _known(old: Sequence[str], raws: Sequence[str], shared: Collection[str]) -> list[_Entry]:
    """The entries of a side by what they were in the base: those of the same text, then those of the same heading.

    The oldest comes first, as new entries are put on top. What both sides have and the base has not is new.
    """
    found: list[int] = [-1] * len(raws)
    left = dict(reversed(list(enumerate(old))))
    for key in (str, _heading):
        places: dict[Any, list[int]] = {}
        for number, raw in left.items():
            places.setdefault(key(raw), []).append(number)
        for number, raw in reversed(list(enumerate(raws))):
            if found[number] < 0 and places.get(key(raw)) and (key is str or raw not in shared):
                found[number] = places[key(raw)].pop(0)
                del left[found[number]]
    seen: Counter[str] = Counter()
    entries = []
    for number, raw in zip(found, raws, strict=True):
        entries.append(_Entry(number, "", 0) if number >= 0 else _Entry(-1, raw, seen[raw]))
        seen[raw] += number < 0
    return entries


def _heading(raw: str) -> tuple[str, str]:
    entry = text_of.parse(raw)
    return entry.date, entry.title


def _day(raw: str) -> int:
    return int(text_of.parse(raw).date.replace("-", ""))


def _entry(base: str, ours: str, theirs: str) -> list[str]:
    """An entry that both sides have: as one of them changed it, both changes in one, or both entries."""
    value, agreed = merged_value(base, ours, theirs)
    if agreed:
        return [value]
    both = merged_cleanly(base, ours, theirs)
    if both is not None and len(text_of.split(both).raws) == 1 and _heading(both) == _heading(base):
        return [both]
    first, second = sorted((ours, theirs))
    top, _, rest = second.partition("\n")
    return [first, second if _TWICE in second else f"{top}\n{_TWICE}\n{rest}".rstrip("\n")]


def archive(base: str, ours: str, theirs: str) -> str:
    """An archive file with the entries of both, the newest first."""
    newline, texts = with_same_line_ends(base, ours, theirs)
    found = [text_of.archived(text) for text in texts]
    first, left, right = ([_Archived(*item) for item in _counted(items)] for items in found)
    order = interleaved(*survivors(first, left, right), key=lambda item: (-_day(item.raw), item.subtopic, item.raw))
    heads = [_above(text, items) for text, items in zip(texts, found, strict=True)]
    head = merged(*heads)
    head += "\n" * bool(head and not head.endswith("\n"))
    text = head + "\n".join(
        (text_of.archive_mark(item.subtopic) if item.subtopic else "") + item.raw + "\n" for item in order
    )
    if [(name, raw.rstrip("\n")) for name, raw in text_of.archived(text)] != [(one.subtopic, one.raw) for one in order]:
        raise Unmergeable("The archived entries cannot be told apart after a merge.", hint=BY_HAND)
    return text if newline == "\n" else text.replace("\n", newline)


class _Archived(NamedTuple):
    subtopic: str
    raw: str
    number: int


def _counted(items: Sequence[tuple[str, str]]) -> Iterable[tuple[str, str, int]]:
    seen: Counter[tuple[str, str]] = Counter()
    for subtopic, raw in items:
        item = (subtopic, raw.rstrip("\n"))
        yield *item, seen[item]
        seen[item] += 1


def _above(text: str, items: Sequence[tuple[str, str]]) -> str:
    """What stands above the first archived entry and its mark."""
    head = text[: text.index(items[0][1])] if items else text
    return _ORIGIN.sub("", head) if items and items[0][0] else head


# -- index.md


def index(base: str, ours: str, theirs: str) -> str:
    """index.md with the lines of both. Counts are added up; `memlane topics reindex` counts again."""
    newline, texts = with_same_line_ends(base, ours, theirs)
    bare = [_without_lines(text) for text in texts]
    if any(text is None for text in bare):  # written by hand, in a way of its own
        return merged(base, ours, theirs)
    first, left, right = map(text_of.read_index, texts)
    lines = {
        name: line
        for name in {*left, *right}
        if (line := _listed(first.get(name), left.get(name), right.get(name))) is not None
    }
    text = text_of.edit_index(merged(*(text or "" for text in bare)), lines)
    if text_of.read_index(text) != lines:
        return merged(base, ours, theirs)
    return text if newline == "\n" else text.replace("\n", newline)


def _without_lines(text: str) -> str | None:
    """The text without the lines of sub-topics and the headings above them; None when some are not of our making."""
    known = text_of.read_index(text)
    if any(line.entries is None for line in known.values()):
        return None
    rows: list[str] = []
    seen = 0
    for row in text.removesuffix("\n").split("\n") if text else []:
        name = next(iter(text_of.read_index(f"### x\n{row}\n")), None) if row[:3] in ("- `", "* `") else None
        if name is not None:
            seen += 1
            if rows and (found := heading(rows[-1])) and found[0] == 3:
                if found[1].strip().lower().replace(" ", "-") != name.partition("/")[0]:
                    return None
                rows.pop()
                if rows and not rows[-1].strip():
                    rows.pop()
        else:
            rows.append(row)
    return "".join(f"{row}\n" for row in rows) if seen == len(known) else None


def _listed(base: Listed | None, ours: Listed | None, theirs: Listed | None) -> Listed | None:
    value, agreed = merged_value(base, ours, theirs)
    if agreed or ours is None or theirs is None:
        return value if agreed else ours or theirs  # a change beats a deletion
    was = base or Listed("", 0, 0, "")
    entries, archived = (
        max(0, (mine or 0) + (other or 0) - (old or 0))
        for mine, other, old in ((ours[1], theirs[1], was[1]), (ours[2], theirs[2], was[2]))
    )
    description, agreed = merged_value(was.description, ours.description, theirs.description)
    if not agreed:  # a person's description stands beside old facts; ours follows the newest entry
        sides = sorted((ours, theirs), key=lambda side: (side[1:] == was[1:], side.newest or "", side.description))
        description = sides[-1].description
    return Listed(description, entries, archived, max(ours.newest or "-", theirs.newest or "-"))
