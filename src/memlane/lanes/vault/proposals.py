"""What of a vault could be merged or deleted (seed 002). Pure functions: they propose, and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from memlane.core.errors import InvalidInput
from memlane.lanes.vault.checks import noise_signal
from memlane.lanes.vault.record import Record, newest_first, time_of

SHORT_TEXT = 20
STALE_AFTER = timedelta(days=90)


def similar_pairs(records: Iterable[Record], floor: float) -> list[tuple[Record, Record, float]]:
    """(newer, older, score) of records in the same scope whose score is at least the floor, best first.

    The score is the larger of word overlap and sequence ratio. Raises InvalidInput for a floor that is no number.
    """
    from memlane.gate.likeness import alike  # only comparing needs it, and it is slow to import

    if isinstance(floor, bool) or not isinstance(floor, int | float):
        raise InvalidInput("The floor is not a number.", hint="Give a number from 0 to 1.")
    scopes: dict[str, list[Record]] = {}
    for record in sorted(records, key=newest_first):
        scopes.setdefault(record.scope, []).append(record)
    pairs = [
        (group[new], group[old], score)
        for group in scopes.values()
        for new, old, score in alike([record.text for record in group], floor)
    ]
    pairs.sort(key=lambda pair: (-pair[2], newest_first(pair[0]), newest_first(pair[1])))
    return pairs


def stale_registers(records: Iterable[Record], now: datetime) -> Iterator[tuple[Record, datetime]]:
    """The registers without a topic that were not updated for 90 days, each with its last update."""
    for record in records:
        if record.tier == "register" and not record.topic_id:
            updated = time_of(record.updated_at or record.created_at)
            if now - updated > STALE_AFTER:
                yield record, updated


def deletions(records: Sequence[Record], floor: float, now: datetime, by_meaning: bool = False) -> list[dict[str, Any]]:
    """What could go of these records (the newest first), one dictionary with `reason` and `detail` for each.

    A register with a topic is the value of its key: that it is short, or says the same as another, is no reason.
    """
    reasons: dict[str, tuple[Record, str, str]] = {}
    topics: dict[tuple[str, str], Record] = {}
    for record in records:
        if record.tier != "register":
            continue
        if record.topic_id and (newer := topics.setdefault((record.scope, record.topic_id), record)) != record:
            reasons[record.id] = (record, "duplicate_topic", f"{newer.id} is a newer register of the same topic")
        elif signal := noise_signal(record.text, by_meaning=by_meaning):
            reasons[record.id] = (record, "noise", f"contains the journal-only signal {signal!r}")
        elif len(record.text) < SHORT_TEXT and not record.topic_id:
            reasons[record.id] = (record, "short_text", f"{len(record.text)} characters say little")
    for newer, older, score in similar_pairs(records, floor):
        keyed = any(record.tier == "register" and record.topic_id for record in (newer, older))
        if newer.id not in reasons and not keyed:
            reasons.setdefault(older.id, (older, "near_duplicate", f"similar to {newer.id} ({score:.2f})"))
    for record, updated in stale_registers(records, now):
        detail = f"has no topic and was not updated for {(now - updated).days} days"
        reasons.setdefault(record.id, (record, "stale_register", detail))
    return [
        {key: getattr(record, key) for key in ("id", "scope", "tier", "text")} | {"reason": reason, "detail": detail}
        for record, reason, detail in reasons.values()
    ]
