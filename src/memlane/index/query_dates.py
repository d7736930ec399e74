"""The times that a query mentions: "on 8 May 2023", "in May 2023", "two weeks ago", "last month", "yesterday".

English and ISO dates. A vague time becomes a generous span: search prefers memories from it but drops no others.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

Span = tuple[float, float]  # time stamps, the end not included

_MONTHS = "january february march april may june july august september october november december".split()
_COUNTS = "zero one two three four five six seven eight nine ten".split()
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_EXACT = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?{_MONTH}(?: (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)?,? "
    r"(?:of )?(?P<year>\d{4})\b|\b(?P<iso>\d{4}-\d\d(?:-\d\d)?)\b"
)
_COUNT = rf"\d{{1,3}}|an?|few|{'|'.join(_COUNTS)}"
_UNIT = "day|week|month|year"
_RELATIVE = re.compile(
    rf"\b(?:(?P<count>{_COUNT}) (?P<ago>{_UNIT})s? ago"
    rf"|(?:last|past) (?:(?P<last>{_COUNT}) )?(?P<unit>{_UNIT})s?|(?P<word>yesterday|today))\b"
)


def spans(query: str, now: datetime) -> list[Span]:
    """The times that a query mentions."""
    query = query.lower()
    times = [_exact(match) for match in _EXACT.finditer(query)]
    times += (_relative(match, now) for match in _RELATIVE.finditer(query))
    return [(start.timestamp(), end.timestamp()) for start, end in filter(None, times)]


def _exact(match: re.Match[str]) -> tuple[datetime, datetime] | None:
    year, month, day = match["year"], match["month"], match["day"] or match["day2"]
    if match["iso"]:
        year, month, day = [*match["iso"].split("-"), None][:3]
    else:
        month = str(_MONTHS.index(month) + 1)
    try:
        first = date(int(year), int(month), int(day or 1))
        after = first + timedelta(days=1) if day else (first + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        return None
    start, end = (datetime(at.year, at.month, at.day, tzinfo=UTC) for at in (first, after))
    return start, end


def _relative(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    if match["word"]:
        return now - timedelta(days=2 if match["word"] == "yesterday" else 1), now
    try:
        if match["ago"]:
            unit = timedelta(days=_DAYS[match["ago"]])
            middle = now - _count(match["count"]) * unit
            return middle - unit / 2, middle + unit / 2
        return now - _count(match["last"] or "two") * timedelta(days=_DAYS[match["unit"]]), now
    except OverflowError:
        return None


def _count(word: str) -> int:
    if word.isdecimal():
        return int(word)
    return {"a": 1, "an": 1, "few": 3}.get(word) or _COUNTS.index(word)
