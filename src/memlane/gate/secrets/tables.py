"""Columns of passwords: Markdown tables and CSV whose heading names a credential.

In a table the name stands above the value, out of the reach of `assignments`.
"""

from __future__ import annotations

from collections.abc import Iterator

from memlane.gate.secrets.assignments import places
from memlane.gate.secrets.decoys import is_generated, is_marked_whole, is_password, is_random
from memlane.gate.secrets.rule import exact, pattern

_HEADING = (
    r"(?:[\w ]{0,20}[ _])?(?:(?P<password>pass(?:word|wort|phrase|code|wd)?|pwd|pw|psk)|secret|token|api[ _-]?key)"
)
_RULE_LINE = r"\n[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*\|[-|: \t]*(?=\n|\Z)"
_RULE_MARKS = ("-|", "- |", "-:|", "-: |")
_CSV_HEAD = r"\"?[\w -]{1,30}\"?(?:[,;\t]\"?[\w -]{1,30}\"?){1,20}(?=\n|\Z)"
_CSV_MARKS = (",pass", "pass,", "word,", ";pass", "word;", "\tpass", "word\t")
# How many rows are read below one heading.
_ROWS = 200


def find(text: str, lowered: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield (rule, description, start, end) of each cell that holds a secret below a heading that says so."""
    done = 0  # no row is read twice, however many headings a text holds
    if "|" in text and any(mark in text for mark in _RULE_MARKS):
        for line in pattern(_RULE_LINE).finditer(text):
            head = max(done, text.rfind("\n", 0, line.start()) + 1)
            columns = _columns(text[head : line.start()], "|")
            for found in _cells(text, line.end() + 1, columns, "|") if line.start() >= done else ():
                done = found[3]
                yield found
    done = 0
    if "pass" in lowered and any(mark in lowered for mark in _CSV_MARKS):
        lines = (lowered.rfind("\n", max(0, at - 200), at) + 1 for at in places(lowered, "pass", 4))
        for line in filter(None, (pattern(_CSV_HEAD).match(text, start) for start in sorted(set(lines)))):
            sign = next(sign for sign in ",;\t" if sign in line[0])
            for found in _cells(text, line.end() + 1, _columns(line[0], sign), sign) if line.start() >= done else ():
                done = found[3]
                yield found


def _columns(head: str, sign: str) -> dict[int, bool]:
    """The columns that hold secrets, and whether these are passwords."""
    headings = enumerate(pattern(_HEADING).fullmatch(cell.strip(' \t*`"')) for cell in head[:1000].split(sign))
    return {number: bool(heading["password"]) for number, heading in headings if heading}


def _cells(text: str, body: int, columns: dict[int, bool], sign: str) -> Iterator[tuple[str, str, int, int]]:
    for _ in range(_ROWS if columns else 0):
        end = text.find("\n", body)
        end = len(text) if end < 0 else end
        row = text[body : min(end, body + 4000)]
        if sign not in row or not row.strip("|-: \t") or (sign != "|" and _columns(row, sign)):
            return  # the table ends, or the next begins
        at = body
        for number, cell in enumerate(row.split(sign)):
            value = cell.strip(' \t*`"\r')
            if number in columns and _is_secret(value, columns[number]):
                begin = at + cell.index(value)
                yield "table-secret", "secret in a table", begin, begin + len(value)
            at += len(cell) + 1
        body = end + 1


def _is_secret(value: str, password: bool) -> bool:
    if len(value) < 6 or is_marked_whole(value) or exact(r"\s").search(value):
        return False
    digit = bool(exact(r"\d").search(value))
    return is_random(value) or (password and (is_generated(value) or (digit and is_password(value))))
