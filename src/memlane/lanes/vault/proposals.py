"""What of a vault could be merged or deleted (seed 002). Pure functions: they propose, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memlane.core.digests import blake2b
from memlane.core.errors import InvalidInput
from memlane.lanes.vault.checks import noise_signal
from memlane.lanes.vault.record import Record, newest_first, time_of

if TYPE_CHECKING:
    from memlane.lanes.answers import Kept

SHORT_TEXT = 20
STALE_AFTER = timedelta(days=90)
_MANY = 300  # records; fewer are compared in no time
_NAME = "vault pairs"  # of what is kept
_FORM = 1  # another number when something else is kept


def similar_pairs(
    records: Iterable[Record], floor: float, known: Kept | None = None
) -> list[tuple[Record, Record, float]]:
    """(newer, older, score) of records in the same scope whose score is at least the floor, best first.

    The score is the larger of word overlap and sequence ratio. With `known`, what was found is kept there if there are
    many records, and only those that are new or changed are compared the next time. Raises InvalidInput for a floor
    that is no number.
    """
    from memlane.gate.likeness import alike  # only comparing needs it, and it is slow to import

    if isinstance(floor, bool) or not isinstance(floor, int | float):
        raise InvalidInput("The floor is not a number.", hint="Give a number from 0 to 1.")
    order = sorted(records, key=newest_first)
    known = known if len(order) >= _MANY else None
    keys = [_key(record) for record in order] if known is not None else []
    before, found = _unpacked(known.kept(_NAME), floor) if known is not None else ([], [])
    where = {key: place for place, key in enumerate(keys)}
    at = [where.get(key) for key in before]  # unchanged records are still in the same order
    both = ((at[newer], at[older], score) for newer, older, score in found)
    pairs = [(newer, older, score) for newer, older, score in both if newer is not None and older is not None]
    scopes: dict[str, list[int]] = {}
    for place, record in enumerate(order):
        scopes.setdefault(record.scope, []).append(place)
    compared = {place for place in at if place is not None}
    for group in scopes.values():
        new = [number for number, place in enumerate(group) if place not in compared]
        texts = [order[place].text for place in group]
        pairs += ((group[newer], group[older], score) for newer, older, score in alike(texts, floor, new))
    if known is not None and keys != before:
        known.keep(_NAME, json.dumps([_FORM, floor, keys, pairs]).encode())
    pairs.sort(key=lambda pair: (-pair[2], pair[0], pair[1]))
    return [(order[newer], order[older], score) for newer, older, score in pairs]


def _key(record: Record) -> str:
    """What is another one when the record has to be compared again."""
    said = "\0".join((record.id, record.created_at, record.scope, record.text))
    return blake2b(said.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _unpacked(data: bytes | None, floor: float) -> tuple[list[str], list[tuple[int, int, float]]]:
    """The keys of the records that were compared, and the pairs that were found; nothing where it is of no use."""
    with suppress(ValueError, TypeError):
        form, least, keys, pairs = json.loads(data or b"")
        if (form, least) == (_FORM, floor):
            return keys, pairs
    return [], []


def stale_registers(records: Iterable[Record], now: datetime) -> Iterator[tuple[Record, datetime]]:
    """The registers without a topic that were not updated for 90 days, each with its last update."""
    for record in records:
        if record.tier == "register" and not record.topic_id:
            updated = time_of(record.updated_at or record.created_at)
            if now - updated > STALE_AFTER:
                yield record, updated


def deletions(
    records: Sequence[Record], floor: float, now: datetime, by_meaning: bool = False, known: Kept | None = None
) -> list[dict[str, Any]]:
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
    for newer, older, score in similar_pairs(records, floor, known):
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
