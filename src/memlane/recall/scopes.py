"""Scopes: for whom, or for what, a memory is. Which there are, and what may be seen in some of them. Reads only.

`user:alice`, `agent:reviewer`, `area:database`, `file:src/auth.py`: any name will do. A note, a vault record and a
record (its `applies_to`) have a scope; a memory without one, and one that is `global`, is seen in all of them. The
topic of an entry and the layer of a file are places rather than scopes: they count where somebody asks for one of them.
A name that ends with `*` stands for all scopes that begin like it: `team/alice/*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memlane.core.errors import InvalidInput
from memlane.core.model import Memory
from memlane.core.values import dataclass
from memlane.gate import shown
from memlane.index.peek import Peek
from memlane.recall import under

if TYPE_CHECKING:
    from memlane.bank import Bank

EVERYWHERE = "global"
PLACES = ("topics", "layers")  # lanes in which every memory has a place instead of a scope
_SHOWN = 12  # names in a hint


@dataclass(frozen=True, slots=True)
class Seen:
    """What may be seen in some scopes. `narrowed` are the lanes of which they name a place."""

    scopes: tuple[str, ...]
    narrowed: tuple[str, ...] = ()

    def __call__(self, memory: Memory) -> bool:
        if memory.scope is None or memory.scope == EVERYWHERE:
            return True
        return memory.scope in self.scopes or (memory.lane in PLACES and memory.lane not in self.narrowed)

    @property
    def row_values(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """For the index: scopes, and lanes whatever the scope, of which a memory with a scope has one."""
        return (EVERYWHERE, *self.scopes), tuple(lane for lane in PLACES if lane not in self.narrowed)


def seen(bank: Bank, scopes: str | Sequence[str] | None, wait: float | None = None) -> Seen | None:
    """What may be seen in these scopes, or in those of the profile; None means everything. Raises InvalidInput."""
    if scopes is None and not bank.profile.scopes:
        return None
    known = _known(bank, wait)
    names = bank.profile.scopes if scopes is None else tuple(_meant(bank, scopes, known))
    return Seen(names, tuple(lane for lane in PLACES if any((lane, name) in known for name in names)))


def these(bank: Bank, scopes: str | Sequence[str] | None) -> tuple[Bank, frozenset[str] | None]:
    """The bank that scopes ask about, and the scopes as they are written there; None for any. Raises InvalidInput."""
    at, rest = under.asked(bank, scopes)
    return at, None if rest is None else frozenset(_meant(at, rest, _known(at)))


def spelt(bank: Bank, scope: str | None, lane: str | None = None) -> str | None:
    """A scope as it is written in memories (of a lane): the case need not be right. Raises InvalidInput for one that
    there is not.
    """
    if scope is None:
        return None
    [name] = _names([scope])
    return _spelt(bank, name, {pair for pair in _known(bank) if lane in (None, pair[0])}, lane)


def is_used(bank: Bank, scope: str) -> bool:
    """Whether a memory of this bank has the scope."""
    with Peek(bank.index_file, bank.present()) as peek:
        return any(name == scope for _, name in peek.scopes())


def _names(scopes: Any) -> tuple[str, ...]:
    names = (scopes,) if isinstance(scopes, str) else scopes
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInput("The scopes are not names.", hint='Give them as ["shared", "user:alice"].')
    return tuple(name.strip() for name in names)


def _meant(bank: Bank, scopes: str | Sequence[str], known: set[tuple[str, str]]) -> Iterator[str]:
    """The scopes that some names stand for, as they are written in memories. Raises InvalidInput."""
    for name in _names(scopes):
        if name.endswith("*"):
            yield from sorted({scope for _, scope in known if scope.startswith(name[:-1])})
        else:
            yield _spelt(bank, name, known)


def _known(bank: Bank, wait: float | None = None) -> set[tuple[str, str]]:
    """(lane, scope) of all memories, the user's as well."""
    known = set()
    for one in filter(None, (bank, bank.under)):
        with Peek(one.index_file, one.present(), wait) as peek:
            known |= peek.scopes()
    return known


def _spelt(bank: Bank, name: str, known: set[tuple[str, str]], lane: str | None = None) -> str:
    # scopes that somebody has named count even while nothing is stored in them
    named = [bank.vault.default_scope, *bank.vault.scopes] if lane in (None, "vault") else []
    named += [*bank.profile.scopes, EVERYWHERE] if lane is None else []
    named = list(filter(bank.access.covers, named))
    places = {scope for place, scope in known if place in PLACES}
    there = [*dict.fromkeys((*named, *sorted({scope for _, scope in known} - places), *sorted(places)))]
    if name in there:
        return name
    for scope in there:
        if scope.lower() == name.lower():
            return scope
    more = f", and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
    said = f"Use one of: {', '.join(map(shown, there[:_SHOWN]))}{more}." if there else "No memory has one."
    raise InvalidInput(f"There is no scope {shown(name)!r} here.", hint=said)
