"""The search of a bank: what `search.py` ranks, without what is held back or belongs to other scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memlane.core.dates import utc_now
from memlane.core.model import Hit
from memlane.recall import scopes
from memlane.recall.scopes import Seen
from memlane.recall.search import search
from memlane.recall.superseded import marked_hits

if TYPE_CHECKING:
    from memlane.bank import Bank


def found(
    bank: Bank,
    query: str,
    limit: int,
    filters: Mapping[str, Any],
    scope: str | Sequence[str] | Seen | None,
    wait: float | None,
) -> list[Hit]:
    """As `Bank.search`."""
    seen = scope if isinstance(scope, Seen | None) else scopes.seen(bank, scope, wait)
    watch = bank.watching()
    options: dict[str, Any] = {
        "filters": {**filters, "visible": seen and seen.row_values},
        "recency": (bank.config["memory.recency_boost_days"], bank.config["memory.recency_boost_factor"]),
        "weigh": watch.weights if watch else None,
        "replaced": bank.replaced.all_successors(),
        "now": utc_now(),
    }
    held = bank.tombstones.held if bank.tombstones.any() else lambda _: None
    fetched = limit
    while True:  # what is held back leaves its place to others
        hits = bank.index.ask(lambda: search(bank.index, query, limit=fetched, **options), wait=wait)  # noqa: B023
        shown = [hit for hit in hits if not held(hit.memory)]
        if len(shown) >= limit or len(hits) < fetched:
            return marked_hits(bank, shown[: max(limit, 0)])
        fetched *= 2
