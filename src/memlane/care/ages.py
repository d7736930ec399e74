"""Memory that nobody has confirmed for long, by the rules of the lanes that have one. Reads only.

Notes, topics and records have no such rule: a note of last year may be as true as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlane.lanes import NAMES
from memlane.lanes.answers import Age

if TYPE_CHECKING:
    from memlane.bank import Bank

BANDS = ("stale", "aging", "fresh")


def ages(bank: Bank) -> list[Age]:
    """Every memory that a rule of staleness applies to: those without a date first, then the oldest first."""
    found = [age for name in NAMES for age in bank.lane(name).answers.ages()]
    return sorted(found, key=lambda age: (age.days is not None, -(age.days or 0), age.id))


def stale(bank: Bank) -> Iterator[tuple[str, str]]:
    """The id of every stale memory, and why it is stale."""
    for age in ages(bank):
        if age.band == "stale":
            since = f"was not updated for {age.days} days"
            yield age.id, since if age.days is not None else "does not say when it was updated"
