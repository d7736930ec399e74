"""Memory that nobody has confirmed for long, by the rules of the lanes that have one. Reads only.

Notes, topics and records have no such rule: a note of last year may be as true as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlane.lanes import NAMES
from memlane.lanes.answers import Age

if TYPE_CHECKING:
    from memlane.bank import Bank

BANDS = ("stale", "aging", "fresh")


def ages(bank: Bank) -> list[Age]:
    """Every memory that a rule of staleness applies to, the oldest first; those without a date before all."""
    found = [age for name in NAMES for age in bank.lane(name).answers.ages()]
    return sorted(found, key=lambda age: (age.days is not None, -(age.days or 0), age.id))
