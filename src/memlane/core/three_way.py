"""Three-way merge of texts and sequences: two changed copies become one, given the base that both began as.

Nothing that either side added is lost, no conflict marker is written, and swapping the sides changes nothing.
Lines that both sides changed in different ways are kept in all versions (`memlane.core.alternatives`), and versions
that an earlier merge left are merged as one value.

Pure functions, no I/O. `memlane.history.merge` knows what the texts mean.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from heapq import merge
from itertools import pairwise, takewhile
from typing import Any, TypeVar

from memlane.core.alternatives import (
    Lines,
    Segment,
    Versions,
    found,
    read,
    same_start,
    segments_of,
    trimmed,
    united,
    ways_of,
    written,
)
from memlane.core.text import newline_of
from memlane.core.values import NamedTuple

_TELLING = 30  # characters of a paragraph that is not written twice by chance
_MAX_PAIRS = 4_000_000  # pairs of lines that difflib may compare; a longer stretch counts as rewritten

T = TypeVar("T", bound=Hashable)


class _Edit(NamedTuple):
    """One side has `segments` in place of base[start:end]."""

    start: int
    end: int
    segments: list[Segment]


# -- values and sequences


def merged_value(base: Any, ours: Any, theirs: Any) -> tuple[Any, bool]:
    """(the value, True) where at most one side changed it or both agree; (None, False) where they differ."""
    if ours == theirs or theirs == base:
        return ours, True
    return (theirs, True) if ours == base else (None, False)


def survivors(base: Sequence[T], ours: Sequence[T], theirs: Sequence[T]) -> tuple[list[T], list[T]]:
    """Each side without the items that the other one removed."""
    removed = set(base) - (set(ours) & set(theirs))
    return [item for item in ours if item not in removed], [item for item in theirs if item not in removed]


def interleaved(ours: Sequence[T], theirs: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Both sequences in one: shared items keep their place; between them, the smaller `key` of both sides goes first.

    No item may occur twice on one side. Sides that order their shared items differently are sorted by `key`.
    """
    common = set(ours) & set(theirs)
    shared = [item for item in ours if item in common]
    if shared != [item for item in theirs if item in common]:
        return sorted({*ours, *theirs}, key=key)
    same = same_start((ours, theirs))
    result = shared[:same]
    for number, gaps in enumerate(zip(_gaps(ours[same:], common), _gaps(theirs[same:], common), strict=True), same):
        result += merge(*gaps, key=key) if all(gaps) else gaps[0] or gaps[1]
        result += shared[number : number + 1]
    return result


def _gaps(items: Sequence[T], common: set[T]) -> list[list[T]]:
    """The items before, between and after the common ones."""
    gaps: list[list[T]] = [[]]
    for item in items:
        if item in common:
            gaps.append([])
        else:
            gaps[-1].append(item)
    return gaps


# -- texts


def merged(base: str, ours: str, theirs: str) -> str:
    """Both texts in one.

    Where each side added something at the same place, both additions stay, in a fixed order; where one changed what
    the other deleted, the change stays; where both changed the same lines, both versions stay, each under a heading.
    Of two orders of the same paragraphs one stays; one that both sides have put into different places stands once.
    """
    return _merged(base, ours, theirs, _merged_paragraphs)


def merged_cleanly(base: str, ours: str, theirs: str) -> str | None:
    """As `merged`; None where that leaves something in versions that neither side had."""
    text = merged(base, ours, theirs)
    return text if {*found(text)} <= {*found(ours), *found(theirs)} else None


def merged_whole(base: str, ours: str, theirs: str) -> str:
    """As `merged`, for texts that make sense as a whole alone: what both sides changed stays in whole versions."""
    return _merged(base, ours, theirs, lambda *sides: [united(*map(ways_of, sides))])


def _merged(base: str, ours: str, theirs: str, merge: Callable[..., list[Segment]]) -> str:
    newline, texts = with_same_line_ends(base, ours, theirs)
    base, ours, theirs = texts
    ended = merged_value(*(text.endswith("\n") for text in (base, ours or theirs, theirs or ours)))[0]
    lines = written(merge(*(read(_lines(text)) for text in texts)))
    return newline.join(lines) + newline * bool(ended and lines)


def with_same_line_ends(base: str, ours: str, theirs: str) -> tuple[str, tuple[str, str, str]]:
    """(line end for the result, the texts with "\\n" alone): converting the line ends of a file changes no line."""
    ends = [newline_of(text) if "\n" in text else None for text in (base, ours, theirs)]
    if "\r\n" not in ends:
        return "\n", (base, ours, theirs)
    newline = merged_value(*ends)[0] or "\n"
    return newline, (_unix(base), _unix(ours), _unix(theirs))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


# -- paragraphs


def _merged_paragraphs(base: list[Segment], ours: list[Segment], theirs: list[Segment]) -> list[Segment]:
    """The segments of both. Members who hand each other what they merged would else add to it for ever."""
    if base in (ours, theirs):
        return theirs if ours == base else ours
    one, two = (Counter(_plain(side)) for side in (ours, theirs))
    result = _merged_segments(base, ours, theirs)
    surplus = Counter(_plain(result)) - (one | two)
    for start, end in reversed(list(_paragraphs(result)) if surplus else []):
        paragraph = tuple(result[start:end])
        both = one[paragraph], two[paragraph]
        if surplus[paragraph] > 0 and min(both) > 0 and (max(both) > 1 or _is_telling(paragraph)):
            surplus[paragraph] -= 1
            above = _empty(result[:start][::-1])
            del result[start - above : end]
    same = one == two and _ways_in(ours) == _ways_in(theirs)
    return min(ours, theirs, key=written) if same and not one & surplus else result


def _plain(segments: list[Segment]) -> list[tuple[Segment, ...]]:
    return [tuple(segments[start:end]) for start, end in _paragraphs(segments)]


def _paragraphs(segments: list[Segment]) -> Iterator[tuple[int, int]]:
    """Where each paragraph begins and ends. Versions are none, and a block of code is one, whatever is in it."""
    start, fence = None, ""
    for at, segment in enumerate(segments):
        line = segment.strip() if isinstance(segment, str) else ""
        if start is not None and not line and not fence:
            yield start, at
            start = None
        elif start is None and line:
            start = at
        if line.startswith(("```", "~~~")) and fence in ("", line[:3]):
            fence = "" if fence else line[:3]
    if start is not None:
        yield start, len(segments)


def _is_telling(paragraph: tuple[Segment, ...]) -> bool:
    """Whether nobody writes this twice by chance: a word alone may belong in two places."""
    return sum(len(line) for line in paragraph if isinstance(line, str)) >= _TELLING


# -- segments


def _merged_segments(base: list[Segment], ours: list[Segment], theirs: list[Segment]) -> list[Segment]:
    result: list[Segment] = []
    done = 0  # how many segments of the base are dealt with
    only = ""  # which side alone changed the stretch before, if one did
    for start, end, our_edits, their_edits in _stretches(_edits(base, ours), _edits(base, theirs)):
        result += base[done:start]
        mine, yours = (_applied(base, start, end, edits) for edits in (our_edits, their_edits))
        only_before = only if done == start else ""
        only = "" if our_edits and their_edits else "ours" if our_edits else "theirs"
        if only_before and only and only_before != only:  # a squash may have brought lines over already
            repeated = _overlap(result, mine if our_edits else yours)
            mine, yours = mine[repeated:], yours[repeated:]
        if not their_edits or mine == yours:
            result += mine
        elif not our_edits:
            result += yours
        elif start == end and base and not _ways_in(mine) & _ways_in(yours):
            result += _both_additions(*sorted((mine, yours), key=written))
        else:
            result += _all_versions(base[start:end], mine, yours)
        done = end
    return result + base[done:]


def _stretches(ours: list[_Edit], theirs: list[_Edit]) -> list[tuple[int, int, list[_Edit], list[_Edit]]]:
    """(start, end, our edits, their edits) of each stretch of the base that somebody changed.

    Edits that overlap share a stretch, and so do two additions at one place; edits that merely touch do not.
    """
    stretches: list[tuple[int, int, list[_Edit], list[_Edit]]] = []
    edits = [(edit.start, edit.end, 0, edit) for edit in ours] + [(edit.start, edit.end, 1, edit) for edit in theirs]
    for _, _, side, edit in sorted(edits):
        if stretches:
            start, end, *sides = stretches[-1]
            if edit.start < end or (edit.start == edit.end == start == end):
                sides[side].append(edit)
                stretches[-1] = (start, max(end, edit.end), sides[0], sides[1])
                continue
        stretches.append((edit.start, edit.end, [] if side else [edit], [edit] if side else []))
    return stretches


def _applied(base: list[Segment], start: int, end: int, edits: list[_Edit]) -> list[Segment]:
    """base[start:end] as one side has it."""
    result: list[Segment] = []
    for edit in edits:
        result += base[start : edit.start] + edit.segments
        start = edit.end
    return result + base[start:end]


def _both_additions(one: list[Segment], two: list[Segment]) -> list[Segment]:
    """Two additions at one place, one after the other; what both begin with, or what overlaps, stands once."""
    if _is_within(two, one):
        return one
    if _is_within(one, two):
        return two
    forward, backward = _overlap(one, two), _overlap(two, one)
    if forward or backward:  # one continues where the other ends
        return one + two[forward:] if forward >= backward else two + one[backward:]
    same = same_start([one, two])
    same -= _empty(one[:same][::-1])  # each keeps the empty line above it
    return one + two[same:]


def _is_within(part: list[Segment], whole: list[Segment]) -> bool:
    """Whether the one says nothing that the other does not: a version of something is said too."""
    return not part or "\n".join(("", *written(part), "")) in "\n".join(("", *written(whole), ""))


def _ways_in(segments: list[Segment]) -> set[Lines]:
    return {way for segment in segments if isinstance(segment, Versions) for way in segment.ways}


def _overlap(one: list[Segment], two: list[Segment]) -> int:
    """How many segments end the one and begin the other; 0 when they are all empty lines."""
    size = min(len(one), len(two))
    both = [*two[:size], None, *one[len(one) - size :]]
    same = [0] * len(both)  # Knuth-Morris-Pratt: how many up to here repeat the beginning of the list
    for at in range(1, len(both)):
        length = same[at - 1]
        while length and both[at] != both[length]:
            length = same[length - 1]
        same[at] = length + (both[at] == both[length])
    return same[-1] if trimmed(two[: same[-1]]) else 0


# -- versions


def _all_versions(base: list[Segment], ours: list[Segment], theirs: list[Segment]) -> list[Segment]:
    """What both sides made of a stretch, in as many versions as it takes."""
    before, one, two = (ways_of(stretch) for stretch in (base, ours, theirs))
    versions = united(before, one, two)
    as_they_are = [stretch for stretch, side in ((ours, one), (theirs, two)) if side == versions]
    if as_they_are:  # one side says all of it already
        return min(as_they_are, key=written)
    left = [stretch for stretch in (ours, theirs) if trimmed(stretch)]
    above = min((_empty(stretch) for stretch in left), default=0)
    below = min((_empty(stretch[::-1]) for stretch in left), default=0)
    return [*[""] * above, *segments_of(versions), *[""] * below]


def _empty(segments: list[Segment]) -> int:
    """How many empty lines come first."""
    return sum(1 for _ in takewhile(lambda segment: isinstance(segment, str) and not segment.strip(), segments))


# -- what a side changed


def _edits(base: list[Segment], side: list[Segment]) -> list[_Edit]:
    """The edits that turn the base into this side, from first to last."""
    edits: list[_Edit] = []
    old = new = 0  # the first segments of base and side that are not dealt with
    for old_match, new_match in [*_same_segments(base, side), (len(base), len(side))]:
        if old_match > old or new_match > new:
            edit = _Edit(old, old_match, side[new:new_match])
            edits.append(_moved_up(base, edit, edits[-1].end if edits else 0))
        old, new = old_match + 1, new_match + 1
    return edits


def _same_segments(one: list[Segment], two: list[Segment]) -> list[tuple[int, int]]:
    """Pairs of places at which both have the same segment.

    Compared are the lines, those inside of versions too: so versions are found to be at the place of the lines, or of
    the other versions, that they came from, and not at that of lines which happen to stand beside them.
    """
    if {*map(type, one), *map(type, two)} <= {str}:
        return _matches(one, two)
    numbers: dict[Segment, int] = {}
    (lines, places), (other_lines, other_places) = _flat(one, numbers), _flat(two, numbers)
    pairs: list[tuple[int, int]] = []
    for x, y in dict.fromkeys((places[here], other_places[there]) for here, there in _matches(lines, other_lines)):
        if (not pairs or (x > pairs[-1][0] and y > pairs[-1][1])) and one[x] == two[y]:
            pairs.append((x, y))
    return pairs


def _flat(segments: list[Segment], numbers: dict[Segment, int]) -> tuple[list[Hashable], list[int]]:
    """(all lines, of each the place of its segment). An empty line inside of versions is like none outside of them."""
    lines: list[Hashable] = []
    places: list[int] = []
    for place, segment in enumerate(segments):
        inside: list[Hashable] = [segment]
        if isinstance(segment, Versions):
            number = numbers.setdefault(segment, len(numbers))
            rows = [line for way in segment.ways for line in way]
            inside = [line if line.strip() else (number, at) for at, line in enumerate(rows)]
        lines += inside
        places += [place] * len(inside)
    return lines, places


def _moved_up(base: list[Segment], edit: _Edit, least: int) -> _Edit:
    """The same addition or deletion, as high up as its segments allow but not above `least`.

    Which of several equal places a comparison reports is chance; so both sides report the same one, and a paragraph
    has the empty line above it in its own edit.
    """
    start, end, added = edit
    while start > least and not added and base[start - 1] == base[end - 1]:
        start, end = start - 1, end - 1
    turned = 0  # how many segments have come from the end to the front
    while start > least and start == end and added and base[start - 1] == added[-1 - turned % len(added)]:
        start, end, turned = start - 1, end - 1, turned + 1
    if turned:
        cut = len(added) - turned % len(added)
        added = added[cut:] + added[:cut]
    return _Edit(start, end, added)


def _matches(one: Sequence[Hashable], two: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of places at which both have the same line: patience diff, with difflib where no line is unique."""
    matches: list[tuple[int, int]] = []
    pending = [(0, len(one), 0, len(two))]
    while pending:
        low, high, start, end = pending.pop()
        size = same_start((one[low:high], two[start:end]))
        matches += zip(range(low, low + size), range(start, start + size), strict=True)
        low, start = low + size, start + size
        size = same_start((one[low:high][::-1], two[start:end][::-1]))
        high, end = high - size, end - size
        matches += zip(range(high, high + size), range(end, end + size), strict=True)
        if low == high or start == end:
            continue
        anchors = _anchors(one[low:high], two[start:end])
        if anchors:
            edges = [(low - 1, start - 1), *((low + x, start + y) for x, y in anchors), (high, end)]
            matches += edges[1:-1]
            pending += [(x + 1, next_x, y + 1, next_y) for (x, y), (next_x, next_y) in pairwise(edges)]
        elif (high - low) * (end - start) <= _MAX_PAIRS:
            matcher = SequenceMatcher(None, one[low:high], two[start:end], autojunk=False)
            for x, y, size in matcher.get_matching_blocks():
                matches += [(low + x + n, start + y + n) for n in range(size)]
    return sorted(matches)


def _anchors(one: Sequence[Hashable], two: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of places of lines that occur once in each: the longest chain that has the same order in both."""
    counts, other_counts = Counter(one), Counter(two)
    places = {line: place for place, line in enumerate(two) if other_counts[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(one) if counts[line] == 1 and line in places]
    ends: list[int] = []  # for each length of chain, the smallest place in `two` at which one ends
    last: list[int] = []  # the number of the pair that ends it
    before: list[int] = []  # for each pair, the number of the pair before it in its chain
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
