"""Versions that stand side by side in a text because several branches changed the same lines:

    **Version 1 of 2** <!-- memlane:versions -->

    Deploys go out on Mondays.

    **Version 2 of 2** <!-- memlane:versions -->

    Deploys go out on Tuesdays.

    <!-- memlane:versions end -->

A text is a list of segments: lines, and `Versions`, each of which is one value whatever is in it. So no merge can cut
such a block in two, put one into another, or leave a version without its mark. Lines that do not make a whole block,
as after a slip of the hand, are lines like any other, and `broken` finds them. Pure functions, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count
from operator import ne
from typing import TypeVar

from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.core.values import NamedTuple

MARK = "<!-- memlane:versions"
_HEAD = lazily(rf"\*\*Version ([0-9]{{1,9}}) of ([0-9]{{1,9}})\*\* {MARK} -->\s*")
_END = lazily(rf"{MARK} end( again)? -->\s*")
_DEEPEST, _MOST = 8, 100  # blocks in one another, versions in a block: more were made to keep a reader busy

Lines = tuple[str, ...]
T = TypeVar("T")


class Versions(NamedTuple):
    """What a part of a text may say: each way once, in a fixed order. A settled part has one, a deleted one none.

    `again` tells versions that were settled in different ways, and so stand side by side once more, from those that
    nobody has touched: as values they would be equal, and a merge would take them for unchanged.
    """

    ways: tuple[Lines, ...]
    again: bool = False


Segment = str | Versions


# -- reading and writing


def unmarked(text: str) -> str:
    """A text without the lines that stand around versions."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if MARK not in line or not (_HEAD.fullmatch(line) or _END.fullmatch(line)))


def without(text: str, is_gone: Callable[[str], bool]) -> str:
    """A text without some of its lines, and without the versions of which nothing is left."""
    result: list[Segment] = []
    is_cut = False  # whether what is here was just taken out: of the empty lines around it one is enough
    for segment in read(text.split("\n")):
        if isinstance(segment, Versions):
            left = (tuple(trimmed([line for line in way if not is_gone(line)])) for way in segment.ways)
            ways = tuple(dict.fromkeys(filter(None, left)))
            result += [segment] if ways == segment.ways else segments_of(Versions(ways, segment.again))
        elif is_gone(segment):
            is_cut = True
            continue
        elif not (is_cut and _is_empty(segment) and (not result or _is_empty(result[-1]))):
            result.append(segment)
        is_cut = False
    return "\n".join(written(result[:-1] if is_cut and result and _is_empty(result[-1]) else result))


def read(lines: Iterable[str]) -> list[Segment]:
    """The lines as segments. A block inside a version, as older merges left some, adds its versions to those around."""
    lines = list(lines)
    if MARK not in "\n".join(lines):
        return [*lines]
    result: list[Segment] = []
    open_blocks: list[list[tuple[str, list[Segment]]]] = []  # of each version its heading and what is below it
    for line in lines:
        head = _HEAD.fullmatch(line) if MARK in line else None
        end = _END.fullmatch(line) if MARK in line else None
        if head and open_blocks and int(head[1]) > 1:
            open_blocks[-1].append((line, []))
        elif head and len(open_blocks) < _DEEPEST:
            open_blocks.append([(line, [])])
        elif end and open_blocks:
            block = open_blocks.pop()
            around = open_blocks[-1][-1][1] if open_blocks else result
            versions = _versions(block, again=bool(end[1]))
            around += [versions] if versions else [*_loose(block), line]
        else:
            (open_blocks[-1][-1][1] if open_blocks else result).append(line)
    for block in open_blocks:
        result += _loose(block)
    return result


def _versions(block: Sequence[tuple[str, list[Segment]]], *, again: bool) -> Versions | None:
    """The versions of a block; None where its headings are not 1 of n to n of n."""
    size = len(block)
    numbers = [match.groups() for head, _ in block if (match := _HEAD.fullmatch(head))]
    if not 1 < size <= _MOST or [(int(n), int(of)) for n, of in numbers] != [(n, size) for n in range(1, size + 1)]:
        return None
    ways = {way for _, segments in block for way in ways_of(segments).ways}
    return Versions(tuple(sorted(ways)), again) if len(ways) <= _MOST else None


def _loose(block: Iterable[tuple[str, list[Segment]]]) -> list[Segment]:
    return [segment for head, segments in block for segment in (head, *segments)]


def written(segments: Iterable[Segment]) -> list[str]:
    """The segments as lines."""
    segments = list(segments)
    if {*map(type, segments)} <= {str}:
        return [*map(str, segments)]
    lines: list[str] = []
    for segment in segments:
        if isinstance(segment, str):
            lines.append(segment)
        elif len(segment.ways) < 2:
            lines += [line for way in segment.ways for line in way]
        else:
            for number, way in enumerate(segment.ways, 1):
                lines += [f"**Version {number} of {len(segment.ways)}** {MARK} -->", "", *way, ""]
            lines.append(f"{MARK} end{' again' * segment.again} -->")
    return lines


def most(text: str) -> int:
    """How many versions the part of a text has that has most; 0 where nothing is in versions."""
    return max((len(segment.ways) for segment in found(text)), default=0)


def found(text: str) -> list[Versions]:
    """Every part of a text that is in versions."""
    return [segment for segment in read(text.split("\n")) if isinstance(segment, Versions)] if MARK in text else []


def decided(text: str, number: int) -> str:
    """The text with one version, from 1, of the first part that has several; with 0, with all of them, one below the
    other. As it is where there is no such version.
    """
    newline = newline_of(text)
    segments = read(text.replace(newline, "\n").split("\n"))
    at = next((at for at, segment in enumerate(segments) if isinstance(segment, Versions)), None)
    block = None if at is None else segments[at]
    if at is None or not isinstance(block, Versions) or not 0 <= number <= len(block.ways):
        return text
    kept = [line for way in (block.ways if number == 0 else block.ways[number - 1 : number]) for line in ("", *way)]
    return newline.join(written([*segments[:at], *kept[1:], *segments[at + 1 :]]))


def broken(text: str) -> bool:
    """Whether a text has lines of such a block that do not make a whole one."""
    return MARK in text and any(isinstance(segment, str) and MARK in segment for segment in read(text.split("\n")))


# -- as values


def ways_of(segments: Sequence[Segment]) -> Versions:
    """What a stretch of segments may say, from its first line to its last.

    With several blocks in it, the first way has the first version of each, and so on: every version is in one of them.
    """
    blocks = [segment for segment in segments if isinstance(segment, Versions)]
    ways = set()
    for number in range(max((len(block.ways) for block in blocks), default=1)):
        lines: list[str] = []
        for segment in segments:
            if isinstance(segment, Versions):
                lines += segment.ways[min(number, len(segment.ways) - 1)] if segment.ways else ()
            elif not _HEAD.fullmatch(segment) and not _END.fullmatch(segment):  # loose ones would break a new block
                lines.append(segment)
        ways.add(tuple(trimmed(lines)))
    return Versions(tuple(sorted(ways - {()})), any(block.again for block in blocks))


def united(base: Versions, ours: Versions, theirs: Versions) -> Versions:
    """What both sides say, given what they began with. The order in which several sides are united does not matter.

    What one side settled is settled if the other left it alone; if the other changed it too, it stands beside that.
    Versions that one side only adds to are still those that the other has settled.
    """
    if base in (ours, theirs):
        return theirs if ours == base else ours
    ways = set(ours.ways) & set(theirs.ways)
    changed = False  # whether somebody did more than add
    for side in (ours, theirs):
        only_added = set(side.ways) >= set(base.ways) and side.again == base.again
        ways |= set(side.ways) - set(base.ways) if only_added else set(side.ways)
        changed |= not only_added
    kept = _longest(ways)
    again = kept >= set(base.ways) and not base.again if changed else base.again
    return Versions(tuple(sorted(kept)), again and len(kept) > 1)


def _longest(ways: Iterable[Lines]) -> set[Lines]:
    """The ways without those whose lines another one has too, in the same order: it goes on where they stop."""
    filled: dict[Lines, Lines] = {}
    for way in sorted(ways):
        filled[tuple(line for line in way if line.strip())] = way
    return {way for lines, way in filled.items() if not any(_has(other, lines) for other in filled if other != lines)}


def _has(lines: Lines, part: Lines) -> bool:
    rest = iter(lines)
    return len(part) < len(lines) and all(line in rest for line in part)


def segments_of(versions: Versions) -> list[Segment]:
    """The versions as segments: paragraphs that all of them begin or end with stand once, outside the block."""
    ways = versions.ways
    if len(ways) < 2:
        return [line for way in ways for line in way]
    start = _same_paragraphs(ways)
    head, ways = ways[0][:start], tuple(way[start:] for way in ways)
    end = _same_paragraphs([way[::-1] for way in ways])
    tail, ways = ways[0][len(ways[0]) - end :], tuple(way[: len(way) - end] for way in ways)
    return [*head, Versions(tuple(sorted(tuple(trimmed(way)) for way in ways)), versions.again), *tail]


def _same_paragraphs(ways: Sequence[Lines]) -> int:
    """How many lines all begin with, up to and with the last empty one."""
    same = same_start(ways)
    while same and ways[0][same - 1].strip():
        same -= 1
    return same


def same_start(sequences: Sequence[Sequence[object]]) -> int:
    """How many items all of them begin with."""
    first = sequences[0]
    sizes = (next(compress(count(), map(ne, first, other)), min(len(first), len(other))) for other in sequences[1:])
    return min(sizes, default=len(first))


def trimmed(segments: Sequence[T]) -> list[T]:
    """The segments without empty lines at either end."""
    start, end = 0, len(segments)
    while start < end and _is_empty(segments[start]):
        start += 1
    while start < end and _is_empty(segments[end - 1]):
        end -= 1
    return list(segments[start:end])


def _is_empty(segment: object) -> bool:
    return isinstance(segment, str) and not segment.strip()
