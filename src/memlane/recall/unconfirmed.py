"""What was distilled from sessions and nobody has confirmed: how much it counts, the less the longer it was not said.

It counts for less than what was written on purpose, from the first day. From `KEPT` days on after it was last said in a
session it counts for less every day, and from `FADED` days on for half. When it has been here for as long, too,
`memlane review` proposes to remove it. Confirming ends that, and being said again in another session begins it anew.
Both are in the note itself (its tags, and `seen`), as the files are the truth: reading a memory writes nothing, so that
it was read does not count.
"""

from __future__ import annotations

from datetime import datetime

from memlane.core.dates import moment
from memlane.core.model import Memory

AT_FIRST = 0.8  # what a score is multiplied by
KEPT, FADED = 30, 180  # days


def last_said(memory: Memory) -> datetime | None:
    """When it was last said in a session."""
    return moment(memory.fields.get("seen")) or memory.created_at or memory.updated_at


def days_untouched(memory: Memory, now: datetime) -> int:
    """The days since it was last said, or since it was distilled, if that was later."""
    return _days(max(filter(None, (last_said(memory), moment(memory.fields.get("distilled")))), default=None), now)


def _days(since: datetime | None, now: datetime) -> int:
    return max((now - since).days, 0) if since else 0


def weight(memory: Memory, now: datetime) -> float:
    """What the score of a memory is multiplied by: 1 unless nobody has confirmed it."""
    if not memory.unconfirmed:
        return 1.0
    faded = (_days(last_said(memory), now) - KEPT) / (FADED - KEPT)
    return round(AT_FIRST * (1 - 0.5 * min(max(faded, 0.0), 1.0)), 4)
