"""Points in time: now, written as ISO 8601, and read from whatever form somebody used."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memlane.core.patterns import lazily

_MILLISECONDS = 10**11  # an epoch from here on counts milliseconds; in seconds it would be the year 5138
_SPAN = lazily(r"\s*(\d{1,6}(?:\.\d+)?)\s*([smhdw])\s*", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def utc_now() -> datetime:
    return datetime.now(UTC)


def iso(when: datetime | None) -> str | None:
    """ISO 8601 in UTC with a `Z`, to the second unless there is a fraction; naive is UTC, None stays None."""
    return None if when is None else _in_utc(when).isoformat().replace("+00:00", "Z")


def moment(value: Any) -> datetime | None:
    """An aware datetime from an ISO date or time, an epoch in seconds or milliseconds, or a datetime; else None.

    A time without an offset is UTC.
    """
    try:
        if isinstance(value, datetime):
            return _in_utc(value)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, str):
            return _in_utc(datetime.fromisoformat(value.strip()))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if 10**7 <= value < 10**8:  # 20230131: a date without dashes, not 1970
            return moment(str(int(value)))
        seconds = value if value < _MILLISECONDS else value / 1000
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def span(text: str) -> timedelta | None:
    """A length of time that is written like 30d, 12h, 90m, 45s or 2w; else None."""
    match = _SPAN.fullmatch(text)
    return timedelta(**{_UNITS[match[2].lower()]: float(match[1])}) if match else None


def _in_utc(when: datetime) -> datetime:
    if when.tzinfo is UTC:
        return when
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
