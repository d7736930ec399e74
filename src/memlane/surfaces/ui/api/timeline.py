"""What was remembered when, and the bank as it was on a day."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.care.stats import days
from memlane.core.dates import iso
from memlane.history import git
from memlane.surfaces.ui.api.search import brief
from memlane.surfaces.ui.asking import Asked, Question, number, text

_PAGE, _MOST = 100, 800  # memories at first, and at most


def timeline(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The memories of the days up to one, the newest first, and how many each day has brought.

    Where there are more, `more` is the limit to ask for next, and `older`, after the last, the day to go on from.
    """
    limit = number(asked, "limit", _PAGE, _MOST)
    found = bank.list(limit=limit + 1, until=text(asked, "day", "") or None)
    counts = days(bank)
    if below := bank.under:
        for day, count in days(below).items():
            counts[day] = counts.get(day, 0) + count
    return {
        "days": counts,
        "memories": [brief(memory) for memory in found[:limit]],
        "more": min(2 * limit, _MOST) if limit < min(len(found), _MOST) else None,
        "older": (iso(found[-1].created_at or found[-1].updated_at) or "")[:10] if len(found) > _MOST else "",
        "past": git.top(bank.root) is not None,
    }


def as_of(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The newest memories of the bank as it was at the end of a day, as git knows it."""
    with bank.as_of(text(asked, "day")) as past:
        found = past.list(limit=_PAGE)
        return {"memories": [brief(memory) for memory in found], "count": past.stats()["count"]}


READS: dict[str, Question] = {"timeline": timeline, "as-of": as_of}
