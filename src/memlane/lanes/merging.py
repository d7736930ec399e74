"""Merge what two branches made of a Markdown file with front matter: keys one by one, the body line by line.

A change beats a deletion, what one side took out stays out, there are no conflict markers, and swapping the sides gives
the same bytes. What both sides changed stays in both versions, marked. `Unmergeable` where that cannot be promised.
Pure functions, no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from memlane.core import alternatives, three_way
from memlane.core.alternatives import MARK, Versions, united
from memlane.core.dates import moment
from memlane.core.errors import MemlaneError
from memlane.core.front_matter import FrontMatterError, edit_front, find_front, load_front, with_body
from memlane.core.model import Memory
from memlane.core.three_way import merged_value
from memlane.core.values import NamedTuple

CONFLICTS = "conflicts"  # the front-matter key that holds the values that did not win
BY_HAND = "Resolve it in an editor, then `git add` the file."
_LINES = "memlane:versions lines"
_COUNTS = {2: "two", 3: "three", 4: "four"}
_LARGE = 10 * 1024 * 1024
_WORDS = frozenset({"tags", "keywords"})
_UPDATED = ("updated_at", "updated", "last_updated", "modified")


class Unmergeable(MemlaneError):
    """The file cannot be merged by what it means. Nothing was changed."""

    code = "unmergeable"
    exit_code = 5


def decoded(base: bytes, ours: bytes, theirs: bytes) -> tuple[str, str, str]:
    """Base, ours and theirs as text. Raises Unmergeable for what is too large or not UTF-8."""
    if max(map(len, (base, ours, theirs))) > _LARGE:
        raise Unmergeable("The file is too large to be merged by what it means.", hint=BY_HAND)
    try:
        return base.decode(), ours.decode(), theirs.decode()
    except UnicodeDecodeError:
        raise Unmergeable("The file is not UTF-8 text.", hint=BY_HAND) from None


def clashes(data: bytes) -> set[Any]:
    """What a merge has left undecided in a file: texts in versions, and values under `conflicts`."""
    text = data.decode(errors="replace")
    return {*alternatives.found(text), *(line for line in text.splitlines() if line.startswith(f"{CONFLICTS}:"))}


def undecided(memory: Memory) -> str | None:
    """Why a person should look at a memory that a merge has left in several versions; None nearly always."""
    if MARK in memory.text:
        if alternatives.broken(memory.text):
            return f"has {_LINES} that do not belong together; keep what is right and delete those lines"
        count = max(2, alternatives.most(memory.text))
        many = _COUNTS.get(count, count)
        whose = "of different branches or members"
        return f"has {many} versions of a text, {whose}; keep what is right and delete the {_LINES}"
    if memory.fields.get(CONFLICTS) and _is_ours(memory.fields[CONFLICTS]):
        keys = ", ".join(map(str, memory.fields[CONFLICTS]))
        return f"was given several values on different branches ({keys}); choose, then delete the key {CONFLICTS}"
    return None


class Parts(NamedTuple):
    head: str  # front matter with its fences and the empty line, "" when there is none
    source: str
    values: dict[str, Any]
    body: str


Settle = Callable[[dict[str, Any], str, list[Parts]], None]


def document(base: str, ours: str, theirs: str, settle: Settle | None = None) -> str:
    """The merged file. `settle(values, body, sides)` may correct front-matter values that follow from the body.

    Raises Unmergeable.
    """
    newline, texts = three_way.with_same_line_ends(base, ours, theirs)
    mark = "\ufeff" if merged_value(*(text.startswith("\ufeff") for text in texts))[0] else ""
    try:
        parts = [_parts(text.removeprefix("\ufeff")) for text in texts]
        body = three_way.merged(*(part.body for part in parts))
        values = _values(*(part.values for part in parts))
        if settle:
            settle(values, body, parts[1:])
        text = with_body(_head(parts, values), body)
        written = _parts(text)
    except FrontMatterError as error:
        raise Unmergeable(f"The front matter {error}.", hint=BY_HAND) from None
    if (written.body, _present(written.values)) != (body, _present(values)):
        raise Unmergeable("The merged front matter cannot be written.", hint=BY_HAND)
    return (mark + text).replace("\n", newline)


def _parts(text: str) -> Parts:
    front = find_front(text)
    if front is None:
        return Parts("", "", {}, text)
    source = text[front.start : front.end]
    return Parts(text[: front.body], source, load_front(source), text[front.body :])


def _head(parts: list[Parts], values: Mapping[str, Any]) -> str:
    """Front matter with these values: both sides' lines where they fit together, else one side's, edited key by key."""
    sides = [part for part in parts[1:] if part.head]
    if not sides or not _present(values):
        return ""
    side = min(sides, key=lambda part: part.head)
    together = three_way.merged_cleanly(*(part.source for part in parts))
    if together is not None:
        with suppress(FrontMatterError):  # the same key on two lines, for one
            if load_front(together) == values:
                return side.head.replace(side.source, together, 1)
    keys = sorted({*side.values, *values}, key=str)
    return edit_front(side.head, {key: values.get(key) for key in keys if side.values.get(key) != values.get(key)})


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _values(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Front matter key by key. Values that did not win are kept under `conflicts`."""
    sides = (base, ours, theirs)
    later = _later(ours, theirs)
    values: dict[str, Any] = {}
    lost: dict[str, list[Any]] = {}
    foreign = not all(_is_ours(side.get(CONFLICTS)) for side in sides)
    losers = [{} if foreign else side.get(CONFLICTS) or {} for side in sides]
    for key in dict.fromkeys((*base, *sorted((*ours, *theirs, *(key for side in losers for key in side)), key=str))):
        if key == CONFLICTS and not foreign:
            continue
        old, one, two = (side.get(key) for side in sides)
        value, agreed = merged_value(old, one, two)
        if not agreed:
            value = _value(key, old, one, two, later)
        decided = isinstance(value, list) or _date(value) or key == "content_hash"  # of which only one can be right
        losing = (side.get(key, ()) for side in losers)
        before, *after = map(_stated, (None, None, None) if decided else (old, one, two), losing)
        versions = united(before, *after)
        found = [json.loads(way) for (way,) in versions.ways]
        if found and not decided:
            if before not in after:
                value = _value(key, old, one, two, later)
            value = value if value in found else found[-1]
            lost[key] = [item for item in found if versions.again or item != value]
        elif found:
            lost[key] = found
        if value is not None:
            values[key] = value
    lost = {key: lost[key] for key in sorted(lost, key=str) if lost[key]}
    if lost and foreign:
        raise Unmergeable(f"The front matter has a key `{CONFLICTS}` of its own.", hint=BY_HAND)
    if lost:
        values[CONFLICTS] = lost
    return values


def _stated(value: Any, losers: Sequence[Any]) -> Versions:
    """A value and those that it won against. That it stands among them too says that they clashed again."""
    ways = {(_json(item),) for item in (value, *losers) if item is not None}
    return Versions(tuple(sorted(ways)), value is not None and value in losers)


def _is_ours(value: Any) -> bool:
    """Whether a merge may have written this under `conflicts`: a list for each key. What is not there may be."""
    return value is None or (isinstance(value, Mapping) and all(isinstance(items, list) for items in value.values()))


def _value(key: str, base: Any, ours: Any, theirs: Any, later: int) -> Any:
    """What becomes of a value that both sides changed: lists are united, of two dates the later one stays."""
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    if key in _WORDS or isinstance(ours, list):
        old, one, two = (_words(side) for side in (base, ours, theirs))
        if one is not None and two is not None:
            return three_way.interleaved(*three_way.survivors(old or [], one, two), key=str)
    if _date(ours) and _date(theirs):
        return max(ours, theirs, key=lambda side: (_date(side), _json(side)))
    return (ours, theirs)[later] if later >= 0 else max(ours, theirs, key=_json)


def _date(value: Any) -> datetime | None:
    """The moment that a value means; a small number means none."""
    return moment(value) if isinstance(value, str) or (isinstance(value, int) and value > 10**8) else None


def _words(value: Any) -> list[str] | None:
    """A list of text, or a text with commas, each word once; None for anything else."""
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return list(dict.fromkeys(item for item in items if item))


def _later(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> int:
    """Which side says that it was updated later; -1 when neither does."""
    for key in _UPDATED:
        one, two = moment(ours.get(key)), moment(theirs.get(key))
        if one and two and one != two:
            return int(two > one)
    return -1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
