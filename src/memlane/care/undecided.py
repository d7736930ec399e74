"""What a merge has left in two versions, and a person's word on which one is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlane.core.alternatives import decided, found
from memlane.core.errors import InvalidInput
from memlane.core.model import Memory, plain
from memlane.exchange import editing
from memlane.lanes import edited
from memlane.lanes.merging import CONFLICTS
from memlane.recall import address

if TYPE_CHECKING:
    from memlane.bank import Bank


def texts(memory: Memory) -> list[str]:
    """The versions of a passage of a memory's text, at the first place that has several."""
    return [way for part in found(memory.text)[:1] for way in map("\n".join, part.ways)]


def values(memory: Memory) -> dict[str, list[Any]]:
    """The values of each field that was given several: the one that it has now, then the others.

    Where they clashed again, the one that it has stands among the others too.
    """
    given = memory.fields.get(CONFLICTS)
    if not isinstance(given, dict):
        return {}
    now = {**plain(memory.fields), **{name: getattr(memory, name) for name in ("title", "type", "status", "scope")}}
    return {
        key: [now.get(key), *(other for other in plain(others) if other != now.get(key))]
        for key, others in given.items()
        if isinstance(others, list)
    }


def keep_text(bank: Bank, id: str, number: int) -> Memory:
    """Keep one version, from 1, of the first passage that has several; with 0, all of them. Raises as `editing.save`,
    and InvalidInput where there is no such version.
    """
    page = editing.opened(bank, id)
    text = decided(page.text, number)
    if text == page.text:
        raise InvalidInput("There is no such version.", hint="Look at it again: it has changed.")
    return editing.save(bank, page, text, by_person=True)


def keep_value(bank: Bank, id: str, key: str, number: int) -> Memory:
    """Let a field have one of its `values`, from 0. Raises as `keep_text`."""
    memory = address.get(bank, id)
    known = values(memory)
    if not 0 <= number < len(known.get(key, ())):
        raise InvalidInput("There is no such value.", hint="Look at it again: it has changed.")
    page = editing.opened(bank, id)
    left = {name: others for name, others in memory.fields[CONFLICTS].items() if name != key}
    chosen = {key: known[key][number]} if number else {}
    return editing.save(bank, page, edited(page.text, {**chosen, CONFLICTS: left or None}), by_person=True)
