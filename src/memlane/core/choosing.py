"""Which memories somebody asks for: the filters that every list and search takes, and the order of a list. No I/O."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memlane.core.dates import iso, moment, span, utc_now
from memlane.core.errors import InvalidInput
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.values import dataclass
from memlane.core.where import Where, fits_where, where_given

Fits = Callable[[Memory], bool]
Expiry = datetime | date | timedelta | str | None
_SCOPE = lazily(r"[^\s,](?:[^\x00-\x1f\x7f-\x9f\u2028\u2029,]{0,198}[^\s,])?")
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories somebody asks for; call it with one. The index reads it to ask for no others."""

    tags: frozenset[str] = frozenset()  # any of them
    equal: tuple[tuple[str, str], ...] = ()  # fields, and the value that each must have
    first: datetime | None = None
    last: datetime | None = None
    archived: bool = False
    scopes: frozenset[str] | None = None  # one of them; None for any or none
    where: Where = ()

    @property
    def narrows(self) -> bool:
        """Whether it asks for less than all that is not archived."""
        return bool(self.tags or self.equal or self.first or self.last or self.where or self.scopes is not None)

    def __call__(self, memory: Memory) -> bool:
        return (
            (self.archived or memory.status != "archived")
            and (not self.tags or not self.tags.isdisjoint(memory.tags))
            and (self.scopes is None or memory.scope in self.scopes)
            and all(getattr(memory, name) == value for name, value in self.equal)
            and (self.first is None or date_of(memory) >= self.first)
            and (self.last is None or _BEGINNING < date_of(memory) <= self.last)
            and (not self.where or fits_where(self.where, memory.fields))
        )


def fitting(
    *,
    tags: Sequence[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    archived: bool = False,
    where: Mapping[str, Any] | Where | None = None,
    scopes: Collection[str] | None = None,
    **equal: str | None,
) -> Filter:
    """Whether a memory has any of the tags, one of the scopes, these values (`type`, `status`, `scope`, `project`,
    `thread`; None is no filter), a date in between, and fields that are as `where` says (see `memlane.core.where`).
    Archived ones only when they are asked for. Raises InvalidInput.
    """
    wanted = {name: value for name, value in equal.items() if value is not None}
    first, last = date_given(since, "since"), date_given(until, "until", end_of_day=True)
    for name, value in wanted.items():
        if not isinstance(value, str):
            raise InvalidInput(f"The {name} is not text.", hint="Give a string.")
    archived = archived or "status" in wanted
    conditions = where if isinstance(where, tuple) else where_given(where)
    among = None if scopes is None else frozenset(scopes)
    return Filter(frozenset(tags_of(tags)), tuple(wanted.items()), first, last, archived, among, conditions)


def date_of(memory: Memory) -> datetime:
    """The date that a memory is listed by; the beginning of time where it has none."""
    return memory.created_at or memory.updated_at or _BEGINNING


def list_order(memory: Memory) -> tuple[float, str]:
    """The sort key of a list: newest first, then by id, those without a date last."""
    when = memory.created_at or memory.updated_at
    return (-when.timestamp() if when else float("inf")), memory.id


def last_of(limit: int, offset: int) -> int:
    """Where a page of so many ends that begins after so many others. Raises InvalidInput."""
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise InvalidInput("The offset is not a whole number from 0 on.", hint="0 is the default.")
    return min(offset + max(limit, 0), sys.maxsize)


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags from a list, or from one string with commas. Raises InvalidInput."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Sequence | set | frozenset) or not all(isinstance(item, str) for item in items):
        raise InvalidInput("Tags must be text.", hint='Give them as ["auth", "plan"].')
    return tuple(dict.fromkeys(word for item in items if (word := item.strip())))


def scope_given(value: str | None) -> str | None:
    """A scope that a memory may have, as a caller gave it. Raises InvalidInput."""
    if value is not None and (not isinstance(value, str) or not _SCOPE.fullmatch(value)):
        raise InvalidInput(
            "A scope is a name on one line, without commas, of at most 200 characters.",
            hint="Name it like user:alice, agent:reviewer, area:database or file:src/auth.py.",
        )
    return value


def expiry_given(value: Expiry) -> str | None:
    """When something stops counting, as a file has it: a moment, or so long from now on. Raises InvalidInput."""
    given: Any = value
    if value is None:
        return None
    length = span(value) if isinstance(value, str) else value
    try:
        found = utc_now() + length if isinstance(length, timedelta) else moment(value)
    except OverflowError:
        found = None
    if found is None or isinstance(given, int | float):
        raise InvalidInput("expires is not a time.", hint="Write it like 30d, 12h, 2025-01-15 or 2025-01-15T10:30:00Z.")
    return iso(found)


def date_given(value: datetime | str | None, name: str, *, end_of_day: bool = False) -> datetime | None:
    """A date from what a caller gave; a bare day means its start, or its end where that is what is meant.

    Raises InvalidInput.
    """
    if value is None or (isinstance(value, str) and not value):
        return None
    found = moment(value)
    if found is None:
        raise InvalidInput(f"{name} is not a date.", hint="Write it like 2025-01-15 or 2025-01-15T10:30:00Z.")
    if end_of_day and isinstance(value, str) and len(value.strip()) <= 10:
        return found.replace(hour=23, minute=59, second=59, microsecond=999999)
    return found
