"""Memories in the order of their dates, filtered. Where a limit is given, the index says which files to read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memlane.core.model import Memory
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_IN_INDEX = ("notes", "records")  # lanes whose memories stay as the index has them until their file changes


def date_of(memory: Memory) -> datetime:
    """The date that a memory is listed by; the beginning of time where it has none."""
    return memory.created_at or memory.updated_at or _BEGINNING


def listed(
    bank: Bank,
    limit: int | None,
    lane: str | None,
    tags: Collection[str],
    fields: Mapping[str, Any],
    since: datetime | None,
    until: datetime | None,
    archived: bool,
) -> list[Memory]:
    """The newest memories that have any of the tags, these fields (where they are not None) and a date in between."""
    tags = set(tags)
    fields = {name: value for name, value in fields.items() if value is not None}
    archived = archived or "status" in fields

    def fits(memory: Memory) -> bool:
        return (
            (not tags or not tags.isdisjoint(memory.tags))
            and all(getattr(memory, name) == value for name, value in fields.items())
            and (archived or memory.status != "archived")
            and (since is None or date_of(memory) >= since)
            and (until is None or _BEGINNING < date_of(memory) <= until)
            and not bank.tombstones.held(memory)
        )

    names = (lane,) if lane else NAMES
    indexed = [name for name in names if name in _IN_INDEX] if limit is not None else []
    found = [memory for name in names if name not in indexed for memory in bank.memories(name) if fits(memory)]
    if limit is not None and indexed:
        from memlane.index.peek import Peek

        with Peek(bank.index_file, [one for one in bank.present() if one.name in indexed]) as peek:
            found += peek.first(limit, fits)
    found.sort(key=lambda memory: memory.id)
    found.sort(key=date_of, reverse=True)
    return found if limit is None else found[: max(limit, 0)]
