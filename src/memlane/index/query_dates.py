"""The times that a query mentions: "8 May 2023", "2024-05", "last March", "early in June", "since April", "last week".

English and ISO dates. A vague time becomes a generous span: search prefers memories from it but drops no others. A
month without a year is the last one that has begun, and needs a word before it: "may" and "march" are other words, too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from memlane.core.patterns import lazily

Span = tuple[float, float]  # time stamps, the end not included
Times = tuple[datetime, datetime]

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_COUNTS = "zero one two three four five six seven eight nine ten".split()
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_MONTH = "|".join(_MONTHS)
_UNIT = "day|week|month|year"
_COUNT = rf"\d{{1,3}}|an?|few|{'|'.join(_COUNTS)}"
_LEAD = rf"(?P<lead>since|after)\ (?:the\ )?|(?:(?P<third>{'|'.join(_THIRDS)})(?:\ (?:of|in)|-)?\ ?(?:the\ )?)"
_TIME = lazily(
    rf"""\b(?:{_LEAD})?(?:
      (?P<iso>\d{{4}}-\d\d(?:-\d\d)?)
    | (?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\ of)?\ )?(?P<month>{_MONTH})
      (?:\ (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)?,?\ (?:of\ )?(?P<year>\d{{4}})
    | (?P<count>{_COUNT})\ (?P<ago>{_UNIT})s?\ ago
    | (?:last|past)\ (?:(?P<last>{_COUNT})\ )?(?P<unit>{_UNIT})s?
    | this\ (?P<this>week|month|year)
    | (?P<word>yesterday|today)
    | (?:(?<=since\ )|(?<=after\ )|(?<=early\ )|(?<=mid-)|(?<=mid\ )|(?<=late\ )
      |(?:in|last|this|during|of|on|from|by|until|before)\ )
      (?:(?P<named>{_MONTH})\b(?!,?\ (?:of\ )?\d)|(?P<weekday>{"|".join(_WEEKDAYS)})|(?P<whole>(?:19|20)\d\d)(?!-))
    )\b""",
    re.VERBOSE,
)


def spans(query: str, now: datetime) -> list[Span]:
    """The times that a query mentions."""
    found: list[Span] = []
    text = query.lower()
    if not any(word in text for word in (*_DAYS, *_MONTHS)) and not any(map(str.isdigit, text)):
        return found  # most queries mention none, and do without the pattern
    for match in _TIME.finditer(text):
        try:
            start, end = _times(match, now)
        except (ValueError, OverflowError):  # no such day
            continue
        if match["third"] and timedelta(days=25) < end - start < timedelta(days=70):
            start, end = _third(match["third"], start, end)
        found.append((start.timestamp(), (max(now, end) if match["lead"] else end).timestamp()))
    return found


def _times(match: re.Match[str], now: datetime) -> Times:
    if match["iso"] or match["year"]:
        return _exact(match)
    if match["named"]:
        month = _MONTHS.index(match["named"]) + 1
        return _month(now.year - (month > now.month), month)
    if match["whole"]:
        return _day(int(match["whole"]), 1, 1), _day(int(match["whole"]) + 1, 1, 1)
    midnight = _day(now.year, now.month, now.day)
    if match["weekday"]:
        start = midnight - timedelta(days=(now.weekday() - _WEEKDAYS.index(match["weekday"])) % 7 or 7)
        return start, start + timedelta(days=1)
    if match["word"]:
        return now - timedelta(days=2 if match["word"] == "yesterday" else 1), now
    if match["this"]:
        days = {"week": now.weekday(), "month": now.day - 1, "year": now.timetuple().tm_yday - 1}
        return midnight - timedelta(days=days[match["this"]]), now
    if match["ago"]:
        unit = timedelta(days=_DAYS[match["ago"]])
        middle = now - _count(match["count"]) * unit
        return middle - unit / 2, middle + unit / 2
    if match["third"] and match["unit"] == "month":  # a part of last month is not a part of the last 60 days
        before = _day(now.year, now.month, 1) - timedelta(days=1)
        return _month(before.year, before.month)
    return now - _count(match["last"] or "two") * timedelta(days=_DAYS[match["unit"]]), now


def _exact(match: re.Match[str]) -> Times:
    year, month, day = match["year"], match["month"], match["day"] or match["day2"]
    if match["iso"]:
        year, month, day = [*match["iso"].split("-"), None][:3]
    number = int(month) if match["iso"] else _MONTHS.index(month) + 1
    if not day:
        return _month(int(year), number)
    start = _day(int(year), number, int(day))
    return start, start + timedelta(days=1)


def _month(year: int, month: int) -> Times:
    start = _day(year, month, 1)
    after = start + timedelta(days=31)
    return start, _day(after.year, after.month, 1)


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _third(name: str, start: datetime, end: datetime) -> Times:
    """The first, middle or last part of a time, generously."""
    part = (end - start) / 3
    middle = start + _THIRDS[name] * part
    return max(start, middle - part / 4), min(end, middle + part * 5 / 4)


def _count(word: str) -> int:
    if word.isdecimal():
        return int(word)
    return {"a": 1, "an": 1, "few": 3}.get(word) or _COUNTS.index(word)
