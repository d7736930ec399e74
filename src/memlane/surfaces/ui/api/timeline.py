"""What was remembered when, and the bank as it was on a day."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.care.stats import days
from memlane.history import git
from memlane.surfaces.ui.api.search import brief
from memlane.surfaces.ui.asking import Asked, Question, number, text

_MOST = 100  # memories at a time


def timeline(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The memories of the days up to one, the newest first, and how many each day has brought."""
    offset = number(asked, "offset", 0)
    found = bank.list(limit=_MOST + 1, offset=offset, until=text(asked, "day", "") or None)
    counts = {} if offset else days(bank)
    if not offset and (below := bank.under):
        for day, count in days(below).items():
            counts[day] = counts.get(day, 0) + count
    return {
        "days": counts,
        "memories": [brief(memory) for memory in found[:_MOST]],
        "more": offset + _MOST if len(found) > _MOST else None,
        "past": git.top(bank.root) is not None,
    }


def as_of(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The newest memories of the bank as it was at the end of a day, as git knows it."""
    with bank.as_of(text(asked, "day")) as past:
        found = past.list(limit=_MOST)
        return {"memories": [brief(memory) for memory in found], "count": past.stats()["count"]}


READS: dict[str, Question] = {"timeline": timeline, "as-of": as_of}
