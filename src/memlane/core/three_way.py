"""Two changed copies of a text, or of any sequence, become one again, given what both began as.

Nothing that either side added is lost, no conflict marker is written, and swapping the sides changes nothing.
Lines that both sides changed in different ways stand one version after the other:

    **Version 1 of 2** <!-- memlane:versions -->

    Deploys go out on Tuesdays.

    **Version 2 of 2** <!-- memlane:versions -->

    Deploys go out on Mondays.

    <!-- memlane:versions end -->

Pure functions, no I/O. What the text means is the business of `memlane.history.merge`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from memlane.core.text import newline_of

MARK = "<!-- memlane:versions"
_HEAD = re.compile(r"\*\*Version [0-9]+ of [0-9]+\*\* <!-- memlane:versions -->")
_END = f"{MARK} end -->"
_THOROUGH = 4_000_000  # pairs of lines that difflib may compare; beyond that a stretch counts as rewritten

T = TypeVar("T", bound=Hashable)


class _Edit(NamedTuple):
    """What one side made of base[start:end]."""

    start: int
    end: int
    lines: list[str]


# -- sequences


def three_way(base: Any, ours: Any, theirs: Any) -> tuple[Any, bool]:
    """(the value, True) where at most one side changed it or both agree; (None, False) where they differ."""
    if ours == theirs or theirs == base:
        return ours, True
    return (theirs, True) if ours == base else (None, False)


def survivors(base: Sequence[T], ours: Sequence[T], theirs: Sequence[T]) -> tuple[list[T], list[T]]:
    """Both sides without what the other one took out."""
    gone = set(base) - (set(ours) & set(theirs))
    return [item for item in ours if item not in gone], [item for item in theirs if item not in gone]


def woven(ours: Sequence[T], theirs: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Both sequences in one. What both have keeps its place; what stands between goes by `key`, each side in order.

    No item occurs twice on one side. Sides that order what they share differently are sorted by `key`.
    """
    shared = set(ours) & set(theirs)
    if [item for item in ours if item in shared] != [item for item in theirs if item in shared]:
        return sorted({*ours, *theirs}, key=key)
    result: list[T] = []
    left, right = list(ours), list(theirs)
    one = two = 0
    while one < len(left) or two < len(right):
        first = left[one] if one < len(left) and left[one] not in shared else None
        second = right[two] if two < len(right) and right[two] not in shared else None
        if first is None and second is None:  # both stand at the same shared item
            result.append(left[one])
            one, two = one + 1, two + 1
        elif second is None or (first is not None and key(first) <= key(second)):
            result.append(left[one])
            one += 1
        else:
            result.append(second)
            two += 1
    return result


# -- texts


def merged(base: str, ours: str, theirs: str) -> str:
    """Both texts in one. Where each added something at the same place, both additions stay, in a fixed order;
    where one changed what the other deleted, the change stays; where both changed the same lines, both versions.
    """
    newline, texts = unified(base, ours, theirs)
    ended = three_way(*(text.endswith("\n") for text in texts))[0]
    text = "\n".join(_merged(*map(_lines, texts))) + "\n" * bool(ended)
    return text if newline == "\n" else text.replace("\n", newline)


def unified(base: str, ours: str, theirs: str) -> tuple[str, tuple[str, str, str]]:
    """(line end of the result, the texts with one kind of line end): a file that was converted has not changed."""
    ends = [newline_of(text) if "\n" in text else None for text in (base, ours, theirs)]
    if "\r\n" not in ends:
        return "\n", (base, ours, theirs)
    newline = three_way(*ends)[0] or "\n"
    return newline, (_unix(base), _unix(ours), _unix(theirs))


def settled(base: str, ours: str, theirs: str) -> str | None:
    """As `merged`; None where both sides changed the same lines."""
    text = merged(base, ours, theirs)
    return text if text.count(MARK) <= max(ours.count(MARK), theirs.count(MARK)) else None


def _merged(base: list[str], ours: list[str], theirs: list[str]) -> list[str]:
    result: list[str] = []
    at = 0
    alone = ""  # whose the stretch before this one is, when it is only one side's
    for start, end, left, right in _stretches(_edits(base, ours), _edits(base, theirs)):
        result += base[at:start]
        one, two = (_applied(base, start, end, edits) for edits in (left, right))
        before, alone = alone if at == start else "", "" if left and right else "left" if left else "right"
        if before and alone and before != alone:  # what was brought over earlier, by a squash or a pick, stands once
            same = _overlap(result, one if left else two)
            one, two = one[same:], two[same:]
        if not right or one == two:
            result += one
        elif not left:
            result += two
        else:
            result += _added(*sorted((one, two))) if start == end and base else _versions(one, two)
        at = end
    return result + base[at:]


def _overlap(end: list[str], start: list[str]) -> int:
    """How many lines the one ends and the other begins with; empty ones alone do not count."""
    size = min(len(end), len(start))
    lines = [*start[:size], None, *end[len(end) - size :]]
    same = [0] * len(lines)  # how many lines up to here are those that the list begins with: no look back twice
    for at in range(1, len(lines)):
        length = same[at - 1]
        while length and lines[at] != lines[length]:
            length = same[length - 1]
        same[at] = length + (lines[at] == lines[length])
    return same[-1] if _bare(start[: same[-1]]) else 0


def _stretches(left: list[_Edit], right: list[_Edit]) -> list[tuple[int, int, list[_Edit], list[_Edit]]]:
    """(start, end, edits of the one, edits of the other) of each stretch of the base that somebody changed.

    Edits that merely touch do not meet; two additions at one place do.
    """
    found: list[tuple[int, int, list[_Edit], list[_Edit]]] = []
    every = sorted(
        [(edit.start, edit.end, 0, edit) for edit in left] + [(edit.start, edit.end, 1, edit) for edit in right]
    )
    for start, end, side, edit in every:
        if found:
            first, last, *sides = found[-1]
            if start < last or (start == end == first == last):
                sides[side].append(edit)
                found[-1] = (first, max(last, end), sides[0], sides[1])
                continue
        found.append((start, end, [edit] if side == 0 else [], [edit] if side else []))
    return found


def _applied(base: list[str], start: int, end: int, edits: list[_Edit]) -> list[str]:
    """base[start:end] as one side has it."""
    result: list[str] = []
    for edit in edits:
        result += base[start : edit.start]
        result += edit.lines
        start = edit.end
    return result + base[start:end]


def _added(one: list[str], two: list[str]) -> list[str]:
    """Two additions at one place, one after the other; what both begin with stands once."""
    same = next((n for n, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two)))
    if _within(two, one):
        return one
    if _within(one, two):
        return two
    if ahead := max(_overlap(one, two), _overlap(two, one)):  # one of them goes on where the other ends
        return one + two[ahead:] if _overlap(one, two) == ahead else two + one[ahead:]
    while same and not one[same - 1].strip():
        same -= 1  # the empty line above each stays with it
    return one + two[same:]


def _within(part: list[str], whole: list[str]) -> bool:
    return not part or "\n".join(("", *part, "")) in "\n".join(("", *whole, ""))


def _versions(one: list[str], two: list[str]) -> list[str]:
    """Both versions of lines, below a heading each; those of an earlier merge are taken up among them."""
    one, two = sorted((one, two))
    if not _bare(one) or not _bare(two):
        return one if _bare(one) else two
    same = 0
    while same < min(len(one), len(two)) and one[same] == two[same] and not _HEAD.fullmatch(one[same]):
        same += 1
    head, one, two = one[:same], one[same:], two[same:]
    same = 0
    while same < min(len(one), len(two)) and one[-1 - same] == two[-1 - same] != _END:
        same += 1
    tail, one, two = one[len(one) - same :], one[: len(one) - same], two[: len(two) - same]
    if not _bare(one) or not _bare(two):
        return [*head, *(one if _bare(one) else two), *tail]
    texts = sorted({tuple(_bare(lines)) for side in (one, two) for lines in _split_versions(side)})
    result = []
    for number, lines in enumerate(texts, 1):
        result += [f"**Version {number} of {len(texts)}** {MARK} -->", "", *lines, ""]
    return [*_blank_before(head), *result, _END, *_blank_after(tail)]


def _blank_before(lines: list[str]) -> list[str]:
    return [*lines, ""] if lines and lines[-1].strip() else lines


def _blank_after(lines: list[str]) -> list[str]:
    return ["", *lines] if lines and lines[0].strip() else lines


def _split_versions(lines: list[str]) -> list[list[str]]:
    """The versions that an earlier merge has left, when that is all there is; else the lines as one version."""
    lines = _bare(lines)
    if _END not in lines or lines.index(_END) < len(lines) - 1 or not _HEAD.fullmatch(lines[0]):
        return [lines]
    found: list[list[str]] = []
    for line in lines[:-1]:
        if _HEAD.fullmatch(line):
            found.append([])
        else:
            found[-1].append(line)
    return found


def _bare(lines: list[str]) -> list[str]:
    """The lines without empty ones around."""
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return lines[kept[0] : kept[-1] + 1] if kept else []


# -- lines


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _edits(base: list[str], side: list[str]) -> list[_Edit]:
    """What a side changed, from the front to the back."""
    edits: list[_Edit] = []
    at = place = 0
    for old, new in [*_matching(base, side), (len(base), len(side))]:
        if old > at or new > place:
            edits.append(_upwards(base, _Edit(at, old, side[place:new]), edits[-1].end if edits else 0))
        at, place = old + 1, new + 1
    return edits


def _upwards(base: list[str], edit: _Edit, least: int) -> _Edit:
    """An addition or deletion that could as well stand higher, as high as it can: so a paragraph has the empty line
    above it on its own side, whichever of two a comparison has found."""
    start, end, lines = edit
    while start > least and not lines and base[start - 1] == base[end - 1]:
        start, end = start - 1, end - 1
    turned = 0  # how many of the lines have come from the end to the front
    while start > least and start == end and lines and base[start - 1] == lines[-1 - turned % len(lines)]:
        start, end, turned = start - 1, end - 1, turned + 1
    if turned:
        cut = len(lines) - turned % len(lines)
        lines = lines[cut:] + lines[:cut]
    return _Edit(start, end, lines)


def _matching(one: list[str], two: list[str]) -> list[tuple[int, int]]:
    """The lines that are the same in both, as pairs of places: what is unique in both first, then what lies between."""
    found: list[tuple[int, int]] = []
    pending = [(0, len(one), 0, len(two))]
    while pending:
        low, high, start, end = pending.pop()
        while low < high and start < end and one[low] == two[start]:
            found.append((low, start))
            low, start = low + 1, start + 1
        while low < high and start < end and one[high - 1] == two[end - 1]:
            high, end = high - 1, end - 1
            found.append((high, end))
        if low == high or start == end:
            continue
        anchors = _anchors(one[low:high], two[start:end])
        if anchors:
            edges = [(low - 1, start - 1), *((low + x, start + y) for x, y in anchors), (high, end)]
            found += edges[1:-1]
            pending += [(x + 1, nx, y + 1, ny) for (x, y), (nx, ny) in pairwise(edges)]
        elif (high - low) * (end - start) <= _THOROUGH:
            matcher = SequenceMatcher(None, one[low:high], two[start:end], autojunk=False)
            for x, y, size in matcher.get_matching_blocks():
                found += [(low + x + n, start + y + n) for n in range(size)]
    return sorted(found)


def _anchors(one: list[str], two: list[str]) -> list[tuple[int, int]]:
    """Lines that occur once in each, as many as stand in the same order."""
    often, others = Counter(one), Counter(two)
    places = {line: place for place, line in enumerate(two) if others[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(one) if often[line] == 1 and line in places]
    tops: list[int] = []
    rows: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(tops, place)
        tops[at : at + 1] = [place]
        rows[at : at + 1] = [number]
        before.append(rows[at - 1] if at else -1)
    chain = []
    number = rows[-1] if rows else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
