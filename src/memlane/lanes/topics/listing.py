"""The lines of a topic folder's index.md: which sub-topics it lists, and the page with other lines. Pure functions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from memlane.core.markdown import heading
from memlane.core.patterns import lazily
from memlane.core.text import newline_of

_BULLETS = lazily(r"^[-*] `[^\n]*", re.MULTILINE)
_HEADINGS = lazily(r"^ {0,3}#[^\n]*", re.MULTILINE)
_BULLET = lazily(
    r"[-*] `(.+?)`(?: - (.*?))?"
    r"(?: <!-- ((?:(?!<!-- ).)+), entries: ([0-9]{1,9}), archived: ([0-9]{1,9}), newest: (\S+) -->)?[ \t]*"
)


class Listed(NamedTuple):
    """A line of index.md: what a person wrote, and the facts behind it. None: the line has no such tail yet."""

    description: str
    entries: int | None = None
    archived: int | None = None
    newest: str | None = None


def read_index(text: str) -> dict[str, Listed]:
    """The sub-topics of an index by their "topic/subtopic"."""
    lines: dict[str, Listed] = {}
    for name, match, _ in _bullets(text):
        entries, archived = (int(count) if count else None for count in match.group(4, 5))
        lines.setdefault(name, Listed(match[2] or "", entries, archived, match[6]))
    return lines


def edit_index(text: str, changes: Mapping[str, Listed | None]) -> str:
    """The index with these lines set, added in order, or (None) taken out; every other line as it is."""
    newline = newline_of(text)
    rows = _Rows(_bare_rows(text) or ["# Memory Index", "", "## Topics"])
    for name, listed in sorted(changes.items()):
        place = rows.bullets.get(name)
        if listed is None:
            if place is not None:
                rows.drop(place)
        elif place is not None:
            rows.texts[place] = _bullet(name, listed)
        else:
            rows.add(name, _bullet(name, listed))
    return newline.join(rows.all()) + newline


def without_lines(text: str) -> str | None:
    """The text without the lines of sub-topics and the headings above them; None when some are not of our making."""
    known = read_index(text)
    if any(line.entries is None for line in known.values()):
        return None
    if not any(sign in text for sign in ("- `", "* `")):
        return text.removesuffix("\n") + "\n" * bool(text)
    rows: list[str] = []
    seen = 0
    for row in text.removesuffix("\n").split("\n") if text else []:
        listed = row.startswith(("- `", "* `")) and read_index(f"### x\n{row}\n")
        if listed:
            (name,) = listed
            seen += 1
            if rows and (title := heading(rows[-1])) and title[0] == 3:
                if topic_of(title[1]) != name.partition("/")[0]:
                    return None
                rows.pop()
                if rows and not rows[-1].strip():
                    rows.pop()
        else:
            rows.append(row)
    return "".join(f"{row}\n" for row in rows) if seen == len(known) else None


def _bare_rows(text: str) -> list[str]:
    rows = text.removesuffix("\n").split("\n") if text else []
    return [row.rstrip("\r") for row in rows] if "\r" in text else rows


def _bullet(name: str, listed: Listed) -> str:
    return (
        f"- `{name.partition('/')[2]}.md` - {listed.description} <!-- {name}, entries: {listed.entries}, "
        f"archived: {listed.archived}, newest: {listed.newest} -->"
    )


def _bullets(text: str) -> Iterator[tuple[str, re.Match[str], int]]:
    """("topic/subtopic", its parts, line number) of every bullet: named by its tail, else by the heading above it."""
    topic = ""
    number = at = read = 0  # and up to where headings are known
    for found in _BULLETS.finditer(text):
        number += text.count("\n", at, found.start())
        at = found.start()
        match = _BULLET.fullmatch(found[0].rstrip("\r"))
        if match and not match[3]:
            above, read = _HEADINGS.findall(text, read, at), at
            if title := next(filter(None, map(heading, reversed(above))), None):
                topic = topic_of(title[1]) if title[0] == 3 else ""
        if match and (match[3] or topic):
            yield match[3] or f"{topic}/{match[1].removesuffix('.md')}", match, number


def topic_of(title: str) -> str:
    """The topic that a heading of index.md names."""
    return title.strip().lower().replace(" ", "-")


_SECTION_ENDS = (1, "")  # a heading above those of topics comes after every title


class _Rows:
    """The rows of an index as a chain: many are added, in the order of their names, each without a look at all others.

    A row is its number, from 1; 0 stands above the first and below the last. What comes first of several with a greater
    name is found by halving, in the greatest up to each: that is as it was when something is put in before it.
    """

    def __init__(self, rows: Sequence[str]) -> None:
        self.texts = ["", *rows]
        self.below = [*range(1, len(rows) + 1), 0]
        self.above = [len(rows), *range(len(rows))]
        self.gone: set[int] = set()
        self.bullets: dict[str, int] = {}
        self.mates: dict[str, tuple[list[int], list[str]]] = {}  # by topic: its bullets, the greatest name up to each
        for name, _, number in _bullets("\n".join(rows)):
            self.bullets.setdefault(name, number + 1)
            places, greatest = self.mates.setdefault(name.partition("/")[0], ([], []))
            places.append(number + 1)
            greatest.append(max(name, greatest[-1]) if greatest else name)
        self.titles: dict[str, int] = {}
        self.start = -1  # the row of Topics; headings are read when one is needed

    def _read_headings(self) -> None:
        headings = [(row, *found) for row in self._places() if (found := heading(self.texts[row]))]
        self.titles = {shown: row for row, level, shown in reversed(headings) if level == 3}
        self.start = next((row for row, level, shown in headings if (level, shown) == (2, "Topics")), 0)
        rows = [row for row, _, _ in headings]
        later = headings[rows.index(self.start) + 1 :] if self.start else []
        self.later = [row for row, _, _ in later]
        keys = (_SECTION_ENDS if level < 3 else (0, shown.casefold() * (level == 3)) for _, level, shown in later)
        self.greatest = list(accumulate(keys, max))

    def _places(self) -> Iterator[int]:
        row = self.below[0]
        while row:
            yield row
            row = self.below[row]

    def all(self) -> Iterator[str]:
        return (self.texts[row] for row in self._places())

    def drop(self, row: int) -> None:
        self.below[self.above[row]], self.above[self.below[row]] = self.below[row], self.above[row]
        self.gone.add(row)

    def _put(self, text: str, above: int) -> int:
        new, below = len(self.texts), self.below[above]
        self.texts.append(text)
        self.below.append(below)
        self.above.append(above)
        self.below[above] = self.above[below] = new
        return new

    def add(self, name: str, bullet: str) -> None:
        """Put a bullet among those of its topic, or below its topic's heading, which is made where there is none."""
        topic = name.partition("/")[0]
        places, greatest = self.mates.setdefault(topic, ([], []))
        while places and places[-1] in self.gone:
            places.pop(), greatest.pop()
        at = bisect_right(greatest, name)
        below = self.above[places[at]] if at < len(places) else places[-1] if places else self._heading(topic)
        places.insert(at, self._put(bullet, below))
        greatest.insert(at, name)

    def _heading(self, topic: str) -> int:
        """The row of a topic's heading, made where there is none."""
        title = " ".join(word.capitalize() for word in topic.split("-"))
        title = title if topic_of(title) == topic and title == title.strip() else topic
        if self.start < 0:
            self._read_headings()
        if title in self.titles:
            return self.titles[title]
        if not self.start:
            last = self.above[0]
            self.start = self._put("## Topics", self._put("", last) if self.texts[last] else last)
            self.later, self.greatest = [], []
        key = (0, title.casefold())
        at = bisect_right(self.greatest, key)
        above = self.above[self.later[at] if at < len(self.later) else 0]
        while above != self.start and not self.texts[above].strip():
            above = self.above[above]
        row = self._put(f"### {title}", self._put("", above))
        if heading(self.texts[row]) == (3, title):
            self.titles[title] = row
            self.later.insert(at, row)
            self.greatest.insert(at, key)
        else:  # a title with signs that a heading does not show
            self._read_headings()
        return row
