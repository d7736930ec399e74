"""Memories that another one took the place of: still readable, below the new one, and never without a mark.

What was said is in `memlane.disk.replaced`; here it is worked out what holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from memlane.core.errors import MemlaneError
from memlane.core.model import Hit, Memory
from memlane.core.values import replace

if TYPE_CHECKING:
    from memlane.bank import Bank


def marked(bank: Bank, memories: Iterable[Memory]) -> list[Memory]:
    """The memories, with what took their place and whose place they took."""
    memories = list(memories)
    links = bank.replaced.links()
    if not links:
        return memories
    new = {id for ids in links.values() for id in ids}
    return [_marked(bank, memory) if memory.id in links or memory.id in new else memory for memory in memories]


def marked_hits(bank: Bank, hits: Sequence[Hit]) -> list[Hit]:
    memories = marked(bank, (hit.memory for hit in hits))
    return [replace(hit, memory=memory) for hit, memory in zip(hits, memories, strict=True)]


def _marked(bank: Bank, memory: Memory) -> Memory:
    olds = tuple(old for old in bank.replaced.predecessors(memory.id) if there(bank, old))
    return replace(memory, superseded_by=current(bank, memory.id), replaces=olds)


def current(bank: Bank, id: str) -> str | None:
    """The memory that now stands in the place of this one; None when it stands there itself."""
    return next((new for new in reversed(bank.replaced.successors(id)) if there(bank, new)), None)


def there(bank: Bank, id: str) -> Memory | None:
    """The memory of an id, unless it is gone, held back or expired."""
    try:
        name, _, native = id.partition(":")
        memory = bank.lane(name).fetch(native)
    except (MemlaneError, OSError):
        return None
    return None if bank.unseen()(memory) else memory


def in_place(bank: Bank, groups: Sequence[Sequence[Memory]], may_show: Callable[[Memory], bool]) -> list[list[Memory]]:
    """Groups of memories for a block, with what took the place of a memory instead of it.

    Where that may not be shown, the memory stays, with its mark.
    """
    if not bank.replaced.links():
        return [list(group) for group in groups]
    shown = {memory.id for group in groups for memory in group}
    result: list[list[Memory]] = []
    for group in groups:
        result.append([])
        for memory in marked(bank, group):
            if memory.superseded_by in shown:
                continue
            new = there(bank, memory.superseded_by) if memory.superseded_by else None
            if new is not None and may_show(new):
                shown.add(new.id)
                memory = new
            result[-1].append(memory)
    return result
