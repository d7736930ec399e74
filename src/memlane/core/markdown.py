"""Markdown as lines: which are fenced code, which are headings. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memlane.core.patterns import lazily

_LINE = lazily(r"[^\n]*\n|[^\n]+")  # str.splitlines also splits at form feeds and U+2028
_FENCE = lazily(r" {0,3}(`{3,}|~{3,})(.*)")
_TITLE = lazily(r"^# +([^\r\n]+)", re.MULTILINE)
_RULE = frozenset("|:- \t")  # below the head of a table
_HEADING = lazily(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line with its line end, and whether it is part of a fenced code block (fences included)."""
    fence = ""
    for line in _LINE.findall(text):
        match = _FENCE.match(line) if line.lstrip(" ")[:3] in ("```", "~~~") else None
        if fence:
            yield line, True
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            yield line, True
        else:
            yield line, False


def heading(line: str) -> tuple[int, str] | None:
    """(level, text) of an ATX heading line."""
    if "#" not in line[:4]:
        return None
    match = _HEADING.match(line.rstrip("\r\n"))
    return (len(match[1]), match[2] or "") if match else None


def first_heading(text: str) -> str | None:
    """The text of the first level-1 heading outside code."""
    match = _TITLE.search(text)
    if match and any(text.find(fence, 0, match.start()) >= 0 for fence in ("```", "~~~")):  # then it may be in code
        titles = (_TITLE.match(line) for line, in_code in lines_with_code(text) if not in_code)
        match = next(filter(None, titles), None)
    return match[1].strip(" \t#") or None if match else None


def heads(text: str, stays: Callable[[str], bool]) -> Iterator[str]:
    """Lines that are needed by others which stay: their headings, the heads of their tables, and fences of code."""
    below = [False] * 7  # of each level: whether something stays below it
    in_table = over_rule = False  # whether a row stays below, and whether the next line has the rule of a table below
    for line in reversed(text.splitlines()):
        found = heading(line)
        if found:
            if below[found[0]]:
                yield line
            below[found[0] :] = [False] * (7 - found[0])
        elif _FENCE.match(line) or (over_rule and in_table):
            yield line
        elif stays(line) and not over_rule:
            below = [True] * 7
        in_table = "|" in line and (in_table or (stays(line) and not found))
        over_rule = "|" in line and "-" in line and _RULE.issuperset(line)
