"""Memory that nobody has confirmed for long, by the rules of the lanes that have one.

    layers    the `Last Updated` line: fresh up to 30 days, aging up to 90, then stale (seed 004)
    vault     a register without a topic that was not updated for 90 days is stale (seed 002)

Notes, topics and records have no such rule: a note of last year may be as true as ever. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memlane.bank import Bank
from memlane.lanes.layers.entries import LAYERS
from memlane.lanes.vault.record import time_of
from memlane.lanes.vault.store import STALE_AFTER

BANDS = ("stale", "aging", "fresh")


@dataclass(frozen=True, slots=True)
class Age:
    """How old a memory is. `updated_at` and `days` are None where nothing says when it was last updated."""

    id: str
    band: str
    updated_at: str | None
    days: int | None

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "staleness": self.band, "updated_at": self.updated_at, "days": self.days}


def ages(bank: Bank) -> list[Age]:
    """Every memory that a rule of staleness applies to, the oldest first; those without a date before all."""
    found = [
        Age(f"layers:{item['id']}", band, item["updatedAt"], item["daysSinceUpdate"])
        for band, items in bank.layers.get_staleness_report().items()
        for item in items
        if item["id"].partition("/")[0] in LAYERS
    ]
    now = bank.vault.clock()
    for record in bank.vault.recall_memories():
        if record.tier == "register" and not record.topic_id:
            when = time_of(record.updated_at or record.created_at)
            if now - when > STALE_AFTER:
                found.append(Age(f"vault:{record.id}", "stale", str(when.date()), (now - when).days))
    return sorted(found, key=lambda age: (age.days is not None, -(age.days or 0), age.id))
