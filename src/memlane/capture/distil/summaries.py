"""The sections of a summary that a client wrote when the context was full, by what they are about. Pure text → data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from memlane.core.patterns import lazily

# What a section is about, and words of its title. The first that fits counts.
_ABOUT = (
    ("errors", r"errors?\b|bugs?\b|fix(?:es|ed)\b"),
    ("users", r"user messages|user (?:feedback|instructions|preferences)|instructions|preferences|constraints"),
    ("problems", r"problem.solving|lessons|learn\w+|discover\w+|findings|gotchas|insights|important (?:notes|context)"),
    ("decisions", r"decisions?"),
    ("concepts", r"concepts|technolog\w+|architecture|background|facts"),
    ("pending", r"pending|remaining|to.?do|open (?:questions|tasks|issues)|unresolved|next steps?"),
    ("", r"current (?:work|state)|progress|accomplished|completed|done|files|code"),  # what a diff says better
    ("request", r"request|intent|goals?|task"),
)
_TITLE = lazily(r"^(?:#{1,4} +|\*\*)?(?:\d{1,2}[.)] +)?(?:\*\*)?([A-Z][\w ,/&'()-]{2,60}?)(?::\*\*|\*\*:?|:)?\s*$")
_NUMBERED = lazily(r"^(?:#{1,4} +)?(?:\*\*)?\d{1,2}[.)] +(?:\*\*)?([A-Z][\w ,/&'()-]{2,60}?)(?:\*\*)?:(?:\*\*)?(?= |$)")
# What the client says to the assistant below the summary.
_END = lazily(
    r"^(?:</summary>|If you need specific details from before|Please continue the conversation)", re.MULTILINE
)
_START = lazily(r"^(?:<summary>|\W*Summary:?\W*)$", re.MULTILINE)


class Section(NamedTuple):
    about: str
    text: str


def sections(summary: str) -> Iterator[Section]:
    """The sections of a summary whose titles say what they are about, without its first, chronological part."""
    if start := _START.search(summary):
        summary = summary[start.end() :]
    if end := _END.search(summary):
        summary = summary[: end.start()]
    about = ""
    lines: list[str] = []
    for line in [*summary.splitlines(), "1. End:"]:
        found = _NUMBERED.match(line) or (not line[:1].isspace() and _TITLE.match(line)) or None
        if found:
            if about and lines:
                yield Section(about, dedent("\n".join(lines)).strip())
            title = found[1].lower()
            about = next((name for name, words in _ABOUT if re.search(rf"\b(?:{words})", title)), "")
            lines = [line[found.end() :].strip()]
        else:
            lines.append(line)
