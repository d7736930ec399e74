"""Columns of passwords: Markdown tables and CSV whose heading names a credential.

In a table the name stands above the value, out of the reach of `assignments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from memlane.sensitive import proofs
from memlane.sensitive.decoys import is_placeholder, is_random

_HEADING = re.compile(
    r"(?:[\w ]{0,20}[ _])?(?:(?P<password>pass(?:word|wort|phrase|code|wd)?|pwd|pw|psk)|secret|token|api[ _-]?key)",
    re.IGNORECASE,
)


@cache
def _rule_line() -> re.Pattern[str]:
    return re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*\|[-|: \t]*$", re.MULTILINE)


@cache
def _csv_head() -> re.Pattern[str]:
    return re.compile(r"^(?=[^\n]{0,200}pass)\"?[\w -]{1,30}\"?(?:[,;\t]\"?[\w -]{1,30}\"?){1,20}$", re.M | re.IGNORECASE)


def find(text: str, lowered: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield (rule, description, start, end) of each cell that holds a secret below a heading that says so."""
    if "|-" in text or "| -" in text or "|:-" in text or "| :-" in text:
        for line in _rule_line().finditer(text):
            head = text.rfind("\n", 0, max(0, line.start() - 1)) + 1
            yield from _column(text, head, line.start() - 1, line.end() + 1, "|")
    if any(mark in lowered for mark in (",pass", "pass,", "word,", ";pass", "word;", "\tpass", "word\t")):
        for line in _csv_head().finditer(text):
            sign = next(sign for sign in ",;\t" if sign in line[0])
            yield from _column(text, line.start(), line.end(), line.end() + 1, sign)


def _column(text: str, head: int, head_end: int, body: int, sign: str) -> Iterator[tuple[str, str, int, int]]:
    columns = {}
    for number, cell in enumerate(text[head : max(head, head_end)][:1000].split(sign)):
        heading = _HEADING.fullmatch(cell.strip(" \t*`\""))
        if heading:
            columns[number] = bool(heading["password"])
    while columns and body < len(text):
        end = text.find("\n", body)
        end = len(text) if end < 0 else end
        row = text[body:end]
        if sign not in row:
            return
        at = body
        for number, cell in enumerate(row[:4000].split(sign)):
            value = cell.strip(" \t*`\"\r")
            if number in columns and _is_secret(value, columns[number]):
                begin = at + cell.index(value)
                yield "table-secret", "secret in a table", begin, begin + len(value)
            at += len(cell) + 1
        body = end + 1


def _is_secret(value: str, password: bool) -> bool:
    if len(value) < 6 or is_placeholder(value) or re.search(r"\s", value):
        return False
    return is_random(value) or (password and bool(re.search(r"\d", value)) and proofs.cli_password(value))
