"""A memory's text cut into chunks that search finds one by one: along its headings, none too small or too large."""

from __future__ import annotations

from itertools import pairwise, takewhile

from memlane.core.markdown import heading, lines_with_code
from memlane.core.values import NamedTuple

SMALL, LARGE = 200, 1500  # characters
HEADING, PATH = 300, 1000  # characters of a heading and of a path: every chunk below it has them, so all would be many


class Chunk(NamedTuple):
    """A piece of a text. `header_path` has its headings, outermost first: "Plan > Goals". Very long ones are cut."""

    header_path: str
    text: str


def chunks(text: str) -> list[Chunk]:
    """The chunks of a text in order; joined, they are the text. The part before the first heading is one, too.

    A section of fewer than SMALL characters is joined with the next, and one of more than LARGE is cut.
    """
    sections = ((clipped(path, PATH), section) for path, section in _merged(_sections(text)))
    pieces = [Chunk(path, piece) for path, section in sections for piece in _cut(section)]
    return pieces or [Chunk("", text)]


def clipped(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _sections(text: str) -> list[tuple[str, str]]:
    trail: list[tuple[int, str]] = []
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line, in_code in lines_with_code(text):
        if not in_code and (found := heading(line)):
            level, title = found[0], clipped(found[1], HEADING)
            trail = [*((depth, name) for depth, name in trail if depth < level), (level, title)]
            sections.append((" > ".join(name for _, name in trail), []))
        sections[-1][1].append(line)
    return [(path, "".join(lines)) for path, lines in sections if lines]


def _merged(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The sections, with small ones joined to the next."""
    merged: list[tuple[str, str]] = []
    paths: list[str] = []
    text = ""
    for path, section in sections:
        paths.append(path)
        text += section
        if len(text) >= SMALL:
            merged.append((_joined(paths), text))
            paths, text = [], ""
    return [*merged, (_joined(paths), text)] if text else merged


def _joined(paths: list[str]) -> str:
    """Several paths as one: what leads to another of them is in that one, and what they begin with is said once.

    "Guide", "Guide > Install" and "Guide > Use" are "Guide > Install + Use".
    """
    own = [path for path, later in pairwise((*paths, "")) if path and not later.startswith(f"{path} > ")]
    result = own[0] if own else ""
    for before, path in pairwise(own):
        names = path.split(" > ")
        shared = sum(takewhile(bool, map(str.__eq__, before.split(" > "), names)))
        result += " + " + " > ".join(names[shared:] or names)
    return result


def _cut(text: str) -> list[str]:
    """Pieces of at most LARGE characters, cut at blank lines where there are any, else at line ends, else anywhere."""
    pieces = []
    while len(text) > LARGE:
        ends = (at + len(mark) for mark in ("\n\n", "\n", " ") if (at := text.rfind(mark, SMALL, LARGE)) >= 0)
        end = next(ends, LARGE)
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text] if text or not pieces else pieces
