"""The search of a bank and of the user's own below it: what `search.py` ranks, without what is held back, belongs to
other scopes, or is said by the project already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from memlane.core.choosing import list_order
from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput
from memlane.core.model import Hit, Memory
from memlane.recall import scopes, under
from memlane.recall.leaving import without_secrets
from memlane.recall.scopes import Seen
from memlane.recall.search import ALONE, Counts, counted, search
from memlane.recall.superseded import marked_hits

if TYPE_CHECKING:
    from memlane.bank import Bank


ORDERS = ("best", "time")
BEST, ALL = 5, 200  # hits, unless somebody says how many: the best, and all that are about it
ALL_WORDS = 0.99  # of the query: a memory that has them is about it, whatever else it says
ABOUT = 0.05  # least probability of what is listed as being about something


def limit_of(limit: int | None, order: str, offset: int = 0) -> int:
    """How many hits an order has. Raises InvalidInput for one that there is none of."""
    if order not in ORDERS:
        raise InvalidInput("There is no such order.", hint=f"Use one of: {', '.join(ORDERS)}.")
    if offset and order == "time":
        raise InvalidInput("By time, there are no pages.", hint="It is all that is about the query: leave offset out.")
    return (ALL if order == "time" else BEST) if limit is None else limit


def ordered(hits: list[Hit], order: str) -> list[Hit]:
    """The hits as they are; by time, those that are about what was asked for, the newest first, without a date last."""
    if order != "time":
        return hits
    about = [hit for hit in hits if hit.relevance >= ABOUT or hit.why["covered"] >= ALL_WORDS]
    return sorted(about, key=lambda hit: list_order(hit.memory))


def found(
    bank: Bank,
    query: str,
    limit: int,
    filters: Mapping[str, Any],
    scope: str | Sequence[str] | Seen | None,
    wait: float | None,
) -> list[Hit]:
    """As `Bank.search`."""
    if not isinstance(scope, Seen | None):
        at, scope = under.asked(bank, scope)
        if at is not bank:
            return [under.of_hit(hit) for hit in found(at, query, limit, filters, scope, wait)]
        scope = scopes.seen(bank, scope, wait)
    ends = None if wait is None else monotonic() + wait

    def left() -> float | None:
        return None if ends is None else max(ends - monotonic(), 0.0)

    options: dict[str, Any] = {
        "filters": {**filters, "visible": scope and scope.row_values},
        "recency": (bank.config["memory.recency_boost_days"], bank.config["memory.recency_boost_factor"]),
        "now": utc_now(),
    }
    below = bank.under
    if below is None:
        return _found(bank, query, limit, options, wait)[0]
    theirs = below.index.ask(lambda: counted(below.index, query), wait=left())
    own, counts = _found(bank, query, limit, {**options, "beside": theirs}, left())
    stays_out = under.hidden(bank, [hit.memory for hit in own])
    users, _ = _found(below, query, limit, {**options, "beside": counts}, None, stays_out)
    both = [*own, *map(under.of_hit, without_secrets(below, users))]
    return sorted(both, key=lambda hit: -hit.score)[: max(limit, 0)]


def _found(
    bank: Bank,
    query: str,
    limit: int,
    options: Mapping[str, Any],
    wait: float | None,
    stays_out: Callable[[Memory], bool] | None = None,
) -> tuple[list[Hit], Counts]:
    """The hits of one bank, and what another one beside it has to know of it.

    With `stays_out`, of the user's bank below another, whose index was asked just now.
    """
    watch = bank.watching()
    more: dict[str, Any] = {"weigh": watch.weights if watch else None, "replaced": bank.replaced.all_successors()}
    unseen = bank.unseen(expired=True)  # the index knows what has expired
    fetched = limit
    while True:  # what is held back leaves its place to others

        def asked() -> tuple[list[Hit], Counts]:
            counts = counted(bank.index, query) if "beside" in options and not stays_out else ALONE
            return search(bank.index, query, limit=fetched, **options, **more), counts  # noqa: B023

        hits, counts = bank.index.ask(asked, wait=wait, look=stays_out is None, in_passing=True)
        shown = [hit for hit in hits if not unseen(hit.memory) and not (stays_out and stays_out(hit.memory))]
        if len(shown) >= limit or len(hits) < fetched:
            shown = shown[: max(limit, 0)]
            return marked_hits(bank, shown) if more["replaced"] else shown, counts
        fetched *= 2
