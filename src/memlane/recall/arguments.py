"""What callers give the bank's verbs, checked: tags, dates, queries. Raises InvalidInput; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.disk import files


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags from a list, or from one string with commas."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Sequence | set | frozenset) or not all(isinstance(item, str) for item in items):
        raise InvalidInput("Tags must be text.", hint='Give them as ["auth", "plan"].')
    return tuple(dict.fromkeys(word for item in items if (word := item.strip())))


def check_query(query: Any, limit: Any, **words: Any) -> None:
    """Raise InvalidInput for arguments of the wrong type."""
    if not isinstance(query, str):
        raise InvalidInput("The query is not text.", hint="Give a string.")
    if not isinstance(limit, int):
        raise InvalidInput("The limit is not a whole number.", hint="5 is the default.")
    for name, value in words.items():
        if not isinstance(value, str | None):
            raise InvalidInput(f"The {name} is not text.", hint="Give a string.")
    files.encoded(" ".join([query, *filter(None, words.values())]).replace("\0", " "))


def date_given(value: datetime | str | None, name: str, *, end_of_day: bool = False) -> datetime | None:
    """A date from what a caller gave; a bare day means its start, or its end where that is what is meant."""
    if value is None or (isinstance(value, str) and not value):
        return None
    found = moment(value)
    if found is None:
        raise InvalidInput(f"{name} is not a date.", hint="Write it like 2025-01-15 or 2025-01-15T10:30:00Z.")
    if end_of_day and isinstance(value, str) and len(value.strip()) <= 10:
        return found.replace(hour=23, minute=59, second=59, microsecond=999999)
    return found
