"""Dated entries (seed 000) as text: parse and render them, and edit the archive around them.

    ## 2025-01-10: Refresh fails after a clock change
    **Context:** PRB-042
    **Problem:** What went wrong
    **Solution:** How fixed
    **Code:**
    ```
    refresh(skew=60)
    ```
    ---

A value may hold anything. A line of it that would read as part of the format gets a backslash in front, which
Markdown shows as the line itself and the parser takes away again; code stands in a fence longer than any inside.
Pure functions, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from memlane.core.patterns import lazily
from memlane.core.text import first_line, newline_of
from memlane.core.values import dataclass, field

GENERAL = "general"  # the sub-topic of a topic that names none
AD_HOC = "ad-hoc"  # the context of an entry that names none
LABELS = ("Context", "Problem", "Solution", "Code")
_SPELT = {label.casefold(): label for label in LABELS}
_ALSO = ("Process", "Benefits", "Integration", "Key Insights", "Results", "Application")  # found in real files
MAX_TITLE = 80

_LINE = lazily(r"[^\n]*\n|[^\n]+")
_DATED = lazily(r" {0,3}##[ \t]+([0-9]{4}-[0-9]{2}-[0-9]{2})(?![\w-])[ \t]*(?:[:–—-][ \t]*)?(.*)")
_NAME = r"[^\W\d_][^*:\n]{0,39}?"
_LABEL = lazily(rf"\*\*({_NAME})[ \t]*(?::[ \t]*\*\*|\*\*[ \t]*:)[ \t]*(.*)")
_SECTION = lazily(rf"(?i)###[ \t]+({'|'.join((*LABELS, *_ALSO))})[ \t]*:?[ \t]*")
_FENCE = lazily(rf"(\*\*{_NAME}(?::[ \t]*\*\*|\*\*[ \t]*:)[ \t]*)? {{0,3}}(`{{3,}}|~{{3,}})(.*)")
_MARKED = lazily(
    r"( {0,3})\\*(?="
    r"##[ \t]+[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-])"
    r"|---[ \t]*$"
    rf"|\*\*{_NAME}[ \t]*(?::[ \t]*\*\*|\*\*[ \t]*:)"
    rf"|(?i:###[ \t]+(?:{'|'.join((*LABELS, *_ALSO))})[ \t]*:?[ \t]*$)"
    r"|```|~~~|<{7}(?!<)|>{7}(?!>))"
)
_CONFLICT = lazily(r"(?:<{7}|>{7})(?:[ \t].*)?")  # seven = alone may underline a heading
_BLOCK = lazily(r"[`~#>|+*\\-]|[0-9]+[.)]\s")  # a first line that must not follow its label on the same line
_ORIGIN = lazily(r"(?<![^\n])<!-- subtopic: (\S+) -->[ \t]*\r?\n?\Z")
_MARK = lazily(r"^<!-- subtopic: (\S+) -->[ \t]*\r?\n(?=##[ \t]+[0-9])", re.MULTILINE)
_SENTENCE = lazily(r"(?<=[.!?])\s|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Entry:
    """One dated entry. Equal when they say the same; where it stands, its bytes and its score do not count."""

    date: str
    title: str
    labels: tuple[tuple[str, str], ...] = ()  # as they stand in the file, unknown ones too
    content: str = ""  # text before the first label
    topic: str = field(default="", compare=False)
    subtopic: str = field(default="", compare=False)
    path: str = field(default="", compare=False)
    raw: str = field(default="", compare=False, repr=False)
    score: float = field(default=0.0, compare=False)
    id: str = field(default="", compare=False)  # "topics:…"; "" where nobody has asked for it

    def get(self, name: str) -> str | None:
        """The value of a label, whatever its case."""
        return next((value for label, value in self.labels if label.casefold() == name.casefold()), None)

    @property
    def context(self) -> str | None:
        return self.get("Context")

    @property
    def problem(self) -> str | None:
        return self.get("Problem")

    @property
    def solution(self) -> str | None:
        return self.get("Solution")

    @property
    def code(self) -> str | None:
        return self.get("Code")

    @property
    def tags(self) -> tuple[str, ...]:
        """Topic and sub-topic first, then the entry's own tags."""
        own = (tag.strip() for tag in (self.get("Tags") or "").split(","))
        return (self.topic, self.subtopic, *dict.fromkeys(filter(None, own)))

    @property
    def text(self) -> str:
        """Everything below the heading, as Markdown."""
        return _body(self).rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        """The shape for JSON."""
        head = {name: getattr(self, name) for name in ("topic", "subtopic", "date", "title")}
        values = {name.lower(): self.get(name) for name in LABELS}
        more = {"labels": dict(self.labels), "text": self.text, "path": self.path, "score": round(self.score, 6)}
        return {"id": self.id or None, **head, **values, **more}


class Document(NamedTuple):
    """A topic file in pieces that add up to it byte for byte: preamble, entries (newest first), footer."""

    head: str
    raws: tuple[str, ...]
    tail: str

    @property
    def text(self) -> str:
        return "".join((self.head, *self.raws, self.tail))

    def keeping(self, raws: Sequence[str]) -> Document:
        """With these entries, and no blank lines behind the last one, which another entry may have followed before."""
        return self._replace(raws=(*raws[:-1], line(raws[-1])) if raws and not self.tail else tuple(raws))

    def without(self, number: int) -> Document:
        return self.keeping((*self.raws[:number], *self.raws[number + 1 :]))


# -- reading


def split(text: str) -> Document:
    """Cut a file at its dated headings outside code. Text after the last entry's closing line is the footer."""
    starts: list[int] = []
    if "##" not in text:
        return Document(text, (), "")
    place = int(text.startswith("\ufeff"))
    for row, opaque in _rows(text[place:], labels=True):
        if not opaque and "##" in row[:5] and _DATED.fullmatch(row.rstrip("\r\n")):
            starts.append(place)
        place += len(row)
    raws = [text[start:end] for start, end in pairwise((*starts, len(text)))]
    head = text[: starts[0]] if starts else text
    tail = ""
    if raws:
        end = _end(raws[-1])
        raws[-1], tail = raws[-1][:end], raws[-1][end:]
    return Document(head, tuple(raws), tail)


def _end(raw: str) -> int:
    """Where the last entry ends: after its closing line, unless more of the entry follows that."""
    rows = _rows(raw, labels=True)
    closed = max((number for number, (row, opaque) in enumerate(rows, 1) if not opaque and _closes(row)), default=0)
    rest = rows[closed:]
    goes_on = any(not opaque and _label(row) for row, opaque in rest)
    has_footer = closed and not goes_on and any(row.strip() for row, _ in rest)
    return sum(len(row) for row, _ in rows[:closed]) if has_footer else len(raw)


def parse(raw: str, topic: str = "", subtopic: str = "", path: str = "") -> Entry:
    """One entry from its text, which begins with its heading; where it stands is for the caller to say."""
    text = raw.replace("\r\n", "\n") if newline_of(raw) == "\r\n" else raw
    first, *rows = _rows(text, labels=True)
    dated = _DATED.fullmatch(first[0].rstrip("\n"))
    if dated is None:
        raise ValueError("an entry begins with its dated heading")
    while rows and not rows[-1][0].strip():
        rows.pop()
    if rows and not rows[-1][1] and _closes(rows[-1][0]):
        rows.pop()
    content, labels = _fields(rows)
    return Entry(dated[1], dated[2].strip(), labels, content, topic, subtopic, path, raw)


def fields(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """(free text, labels) of what a caller wrote: a text without one of the seed's labels is all free text."""
    rows = _rows(plain(text), labels=True)
    content, labels = _fields(rows)
    own = {label.casefold() for label in LABELS}
    return (content, labels) if any(name.casefold() in own for name, _ in labels) else (plain(text), ())


def _fields(rows: Sequence[tuple[str, bool]]) -> tuple[str, tuple[tuple[str, str], ...]]:
    parts: list[tuple[str, list[str]]] = [("", [])]
    for row, opaque in rows:
        if not opaque and (label := _label(row)):
            parts.append((label[0], [label[1] + "\n"]))
        else:
            parts[-1][1].append(row)
    values = [(name, _decoded("".join(lines)).strip()) for name, lines in parts]
    return values[0][1], tuple((name, _unfenced(value) if name == "Code" else value) for name, value in values[1:])


def _label(row: str) -> tuple[str, str] | None:
    """(name, rest of the line) of a line that begins a field."""
    if row.startswith("**") and (match := _LABEL.fullmatch(row.rstrip("\r\n"))):
        return _canonical(match[1].rstrip()), match[2]
    if row.startswith("###") and (match := _SECTION.fullmatch(row.rstrip("\r\n"))):
        return _canonical(match[1]), ""
    return None


def _canonical(name: str) -> str:
    return _SPELT.get(name.casefold(), name)


def conflict(text: str) -> int | None:
    """The line of the first marker that a merge has left outside code, if there is one."""
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return None
    for number, (row, opaque) in enumerate(_rows(text, labels=True), 1):
        if not opaque and row[0] in "<>" and _CONFLICT.fullmatch(row.rstrip("\r\n")):
            return number
    return None


def _closes(row: str) -> bool:
    return row.rstrip(" \t\r\n") == "---"


class _Fence(NamedTuple):
    """A line that may open or close a code block; a label may stand before it."""

    sign: str
    size: int
    labelled: bool
    opens: bool
    closes: bool


def _fence(row: str) -> _Fence | None:
    match = _FENCE.match(row)
    if match is None:
        return None
    closes = not match[1] and not match[3].strip()
    return _Fence(match[2][0], len(match[2]), bool(match[1]), _opens(match), closes)


def _rows(text: str, *, labels: bool) -> list[tuple[str, bool]]:
    """Each line, and whether it is inside a fenced code block.

    A fence that never closes is a line like any other, so that it cannot hide the entries below it.
    With `labels`, a fence may also open on a label's own line.
    """
    rows = _LINE.findall(text)
    if "```" not in text and "~~~" not in text:
        return [(row, False) for row in rows]
    known = {row: _fence(row) for row in set(rows) if "```" in row or "~~~" in row}  # most stand there many times
    fences = list(map(known.get, rows))
    longest = {"`": 0, "~": 0}
    closing = []  # for each line, the longest closing fence of its kind below it
    for fence in reversed(fences):
        closing.append(longest[fence.sign] if fence else 0)
        if fence and fence.closes and fence.size > longest[fence.sign]:
            longest[fence.sign] = fence.size
    result = []
    inside: _Fence | None = None
    for row, fence, closer in zip(rows, fences, reversed(closing), strict=True):
        opaque = inside is not None
        if inside:
            if fence and fence.closes and fence.sign == inside.sign and fence.size >= inside.size:
                inside = None
        elif fence and fence.opens and (labels or not fence.labelled) and closer >= fence.size:
            inside = fence
            opaque = not fence.labelled
        result.append((row, opaque))
    return result


def _opens(fence: re.Match[str]) -> bool:
    return not (fence[2][0] == "`" and "`" in fence[3])


def open_fence(text: str) -> str:
    """The fence that a text opens and does not close, or ""."""
    rows = _rows(text, labels=True)
    for (row, opaque), (_, inside) in pairwise((*rows, ("", False))):
        if not opaque and not inside and (match := _FENCE.match(row)) and _opens(match):
            return match[2]
    return ""


# -- writing


def render(entry: Entry, newline: str = "\n") -> str:
    """An entry as it is stored, closing line included. parse(render(entry)) == entry."""
    text = f"## {entry.date}: {entry.title}".rstrip() + "\n" + _body(entry) + "---\n"
    return text.replace("\n", newline)


def _body(entry: Entry) -> str:
    lines = [_encoded(entry.content) + "\n"] if entry.content else []
    for name, value in entry.labels:
        shown = _encoded(_fenced(value) if name == "Code" else value)
        own_line = "\n" in shown and _BLOCK.match(shown)
        lines.append(f"**{name}:**{'' if not shown else chr(10) if own_line else ' '}{shown}\n")
    return "".join(lines)


def plain(value: str) -> str:
    """A value as entries hold it: lines end in one way, no blank lines around."""
    return value.replace("\r\n", "\n").replace("\r", "\n").strip()


def with_label(labels: tuple[tuple[str, str], ...], name: str, value: str) -> tuple[tuple[str, str], ...]:
    """The labels with one of them set, at its place in the seed's order when it is new; "" takes it out."""
    present = [label for label, _ in labels]
    new = ((name, value),) if value else ()
    if name in present:
        place = present.index(name)
        return (*labels[:place], *new, *labels[place + 1 :])
    earlier = LABELS[: LABELS.index(name)] if name in LABELS else present
    place = next((number for number, label in enumerate(present) if label not in earlier), len(present))
    return (*labels[:place], *new, *labels[place:])


def is_known_label(name: str) -> bool:
    """Whether a label of this name is one that the seed, or files written by its users, have."""
    return label_name(name) in (*LABELS, *_ALSO)


def label_name(name: str) -> str | None:
    """The label of a field's name (`key_insights` is "Key Insights"), or None when it cannot be one."""
    name = " ".join(name.replace("_", " ").split())
    name = name.title() if name.islower() else name
    return _canonical(name) if re.fullmatch(_NAME, name) else None


def title_of(text: str) -> str:
    """A title for a text without one: its first sentence."""
    sentence = _SENTENCE.split(" ".join(first_line(text, 1000).split()), maxsplit=1)[0]
    if len(sentence) > MAX_TITLE:
        return sentence[: MAX_TITLE - 3].rstrip() + "..."
    return sentence.rstrip(".。")


def _encoded(value: str) -> str:
    if "\n" not in value and not _MARKED.match(value):
        return value
    return "".join(
        _MARKED.sub(r"\g<0>\\", row, count=1) if not opaque and _MARKED.match(row) else row
        for row, opaque in _rows(value, labels=False)
    )


def _decoded(value: str) -> str:
    if "\\" not in value:
        return value

    def bare(row: str) -> str:
        match = _MARKED.match(row)
        return row[: match.end() - 1] + row[match.end() :] if match and match[0].endswith("\\") else row

    return "".join(row if opaque else bare(row) for row, opaque in _rows(value, labels=False))


def _fenced(code: str) -> str:
    """Code in a fence of its own, unless it is a fenced block that names its language."""
    head, _, rest = code.partition("\n")
    if re.fullmatch(r"(?:`{3,}[^`\r]*|~{3,}[^\r]*)", head) and head.strip("`~").strip() and "\r" not in code:
        fence = head[: len(head) - len(head.lstrip(head[0]))]
        if _is_closed(rest, fence) and code == code.strip():
            return code
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}"


def _unfenced(value: str) -> str:
    head, _, rest = value.partition("\n")
    fence = head.rstrip()
    if re.fullmatch("`{3,}|~{3,}", fence) and _is_closed(rest, fence):
        return rest.rpartition("\n")[0]
    return value


def _is_closed(rest: str, fence: str) -> bool:
    """Whether the last line, and no line before it, closes a fence."""
    rows = rest.split("\n")
    closing = re.compile(rf" {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t\r]*")
    return bool(closing.fullmatch(rows[-1])) and not any(map(closing.fullmatch, rows[:-1]))


# -- the archive


def archive_mark(subtopic: str) -> str:
    """The comment above an archived entry: the archive's path has no sub-topic."""
    return f"<!-- subtopic: {subtopic} -->\n"


def archived(text: str) -> list[tuple[str, str]]:
    """(sub-topic, entry's text) of an archive file, newest first."""
    entries = []
    subtopic = ""
    place = 0
    for origin in (*_MARK.finditer(text), None):  # also inside code: a fence left open hides nothing from here
        document = split(text[place : origin.start() if origin else len(text)])
        for number, raw in enumerate(document.raws):
            last = document.tail if number == len(document.raws) - 1 else ""
            entries.append((subtopic if number == 0 else "", raw + last))
        if origin:
            subtopic, place = origin[1], origin.end()
    return entries


def archive_head(text: str) -> str:
    """What stands above the first archived entry and its mark."""
    if text.startswith("<!-- subtopic: "):  # our own have no preamble, and archives grow
        return ""
    return _ORIGIN.sub("", split(text).head)


def add_archived(text: str, subtopic: str, raws: Sequence[str]) -> str:
    """The archive file with these entries above those it has, their text unchanged."""
    head = archive_head(text)
    rest = text[len(head) :]
    if head and not head.endswith("\n"):
        head += "\n"
    added = "\n".join(archive_mark(subtopic) + line(raw) for raw in raws)
    return head + added + ("\n" + rest if rest else "")


def archived_headings(text: str, subtopic: str) -> list[tuple[str, str]]:
    """(date, title) of a sub-topic's archived entries, newest first. Reads headings only: archives grow."""
    mark = re.compile(rf"^<!-- subtopic: {re.escape(subtopic)} -->[ \t]*\r?\n([^\n]*)", re.MULTILINE)
    dated = (_DATED.fullmatch(line.rstrip("\r")) for line in mark.findall(text))
    return [(match[1], match[2].strip()) for match in dated if match]


def line(raw: str) -> str:
    """An entry's text with exactly one line end behind it."""
    return raw.rstrip("\r\n") + newline_of(raw)
