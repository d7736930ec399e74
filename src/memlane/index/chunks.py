"""A memory's text cut into pieces that are found one by one: along its headings, none too small or too large."""

from __future__ import annotations

from typing import NamedTuple

from memlane.core.markdown import heading, lines_with_code

SMALL, LARGE = 200, 1500  # characters


class Chunk(NamedTuple):
    """A piece of a text. `header_path` names its headings, outermost first: "Plan > Goals"."""

    header_path: str
    text: str


def chunks(text: str) -> list[Chunk]:
    """The pieces of a text in order; joined they are the text. What stands before the first heading is a piece, too.

    A section of under SMALL characters joins the next one, and one of over LARGE is cut at blank lines.
    """
    found: list[Chunk] = []
    for path, section in _merged(_sections(text)):
        found += (Chunk(path, piece) for piece in _cut(section))
    return found or [Chunk("", text)]


def _sections(text: str) -> list[tuple[str, str]]:
    trail: list[tuple[int, str]] = []
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line, in_code in lines_with_code(text):
        found = None if in_code else heading(line)
        if found:
            level, title = found
            trail = [*((depth, name) for depth, name in trail if depth < level), (level, title)]
            sections.append((" > ".join(name for _, name in trail), []))
        sections[-1][1].append(line)
    return [(path, "".join(lines)) for path, lines in sections if lines]


def _merged(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    merged: list[tuple[str, str]] = []
    waiting = ("", "")
    for path, text in sections:
        paths = " + ".join(filter(None, (waiting[0], path)))
        waiting = (paths, waiting[1] + text)
        if len(waiting[1]) >= SMALL:
            merged.append(waiting)
            waiting = ("", "")
    if waiting[1]:
        merged.append(waiting)
    return merged


def _cut(text: str) -> list[str]:
    """Pieces of at most LARGE characters, cut at blank lines where there are any, else at line ends, else anywhere."""
    pieces = []
    while len(text) > LARGE:
        at = -1
        for mark in ("\n\n", "\n", " "):
            at = text.rfind(mark, SMALL, LARGE)
            if at >= 0:
                at += len(mark)
                break
        at = at if at > 0 else LARGE
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text] if text or not pieces else pieces
