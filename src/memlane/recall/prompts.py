"""Which memories a prompt gets: the snapshot for every prompt, the context for one. How they look is `blocks.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput
from memlane.core.model import Memory
from memlane.core.text import estimate
from memlane.index.peek import Peek
from memlane.recall.blocks import CANDIDATES, PINNED, Block, Composer
from memlane.recall.listing import date_of

if TYPE_CHECKING:
    from memlane.bank import Bank

Count = Callable[[str], int]


def snapshot(
    bank: Bank,
    scopes: str | Sequence[str] | None,
    budget: int | None,
    recent: int,
    count: Count | None,
    wait: float | None,
) -> Block:
    """As `Bank.snapshot`."""
    if not bank.profile.enabled:
        return Block.of("")
    visible = _scopes(bank, scopes)
    present = {lane.name: lane for lane in bank.present()}
    vault = [memory for memory in bank.memories("vault") if memory.scope in visible] if "vault" in present else []
    vault.sort(key=lambda memory: (memory.type or "", date_of(memory), memory.id))
    canon = [memory for memory in vault if memory.fields["tier"] == "canon"]
    registers = [memory for memory in vault if memory.fields["tier"] == "register" and memory.fields["topic_id"]]
    names = ("notes", "topics", "records") if recent > 0 else ("notes",)
    held = bank.tombstones.held
    with Peek(bank.index_file, [lane for name, lane in present.items() if name in names], wait) as peek:
        tagged = [memory for memory in peek.tagged(PINNED) if memory.lane == "notes" and not held(memory)]
        pinned = [memory for memory in tagged if memory.status != "archived"]
        newest = [memory for memory in peek.newest(recent + len(pinned)) if memory not in pinned][:recent]
        newest = [memory for memory in newest if not held(memory)]
    composer = _composer(bank, count, [*canon, *registers, *pinned, *newest])
    return composer.snapshot(canon, registers, pinned, newest, budget)


def context(
    bank: Bank,
    query: str,
    budget: int,
    scopes: str | Sequence[str] | None,
    without: Collection[str],
    least: float,
    count: Count | None,
    wait: float | None,
) -> Block:
    """As `Bank.context`."""
    if not isinstance(budget, int) or budget < 0:
        raise InvalidInput("The budget is not a number of tokens.", hint="1000 is the default.")
    visible = _scopes(bank, scopes)

    def may_show(memory: Memory) -> bool:
        return (memory.lane != "vault" or memory.scope in visible) and memory.id not in without

    fetched = CANDIDATES + len(without)
    while True:  # what must not be shown leaves its place to others
        hits = bank.search(query, limit=fetched, wait=wait)
        shown = [hit for hit in hits if may_show(hit.memory)]
        if len(shown) >= CANDIDATES or len(hits) < fetched:
            break
        fetched *= 2
    shown = [hit for hit in shown[:CANDIDATES] if hit.why["relevance"] >= least]
    return _composer(bank, count, [hit.memory for hit in shown]).context(shown, budget, bank.profile.max_items)


def _scopes(bank: Bank, scopes: str | Sequence[str] | None) -> tuple[str, ...]:
    """The vault scopes that a block shows. Raises InvalidInput."""
    if scopes is None:
        return bank.profile.scopes
    names = (scopes,) if isinstance(scopes, str) else scopes
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInput("The scopes are not names.", hint='Give them as ["shared", "orion"].')
    return tuple(names)


def _composer(bank: Bank, count: Count | None, memories: Sequence[Memory]) -> Composer:
    root = bank.config.project or bank.root
    return Composer(root, utc_now().date(), count or estimate, bank.changed_code(memories), bank.origins(memories))
