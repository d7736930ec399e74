"""Memories of a bank in the order of their dates, filtered. The index says which files to read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memlane.core.choosing import Filter, Fits, fitting, last_of, list_order
from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.core.where import where_given
from memlane.gate import Guard
from memlane.index.fields import NOTHING, Asked
from memlane.lanes import NAMES, Worth
from memlane.recall import scopes, under
from memlane.recall.leaving import each_without_secrets
from memlane.recall.superseded import marked

if TYPE_CHECKING:
    from memlane.bank import Bank

IN_INDEX = ("notes", "vault", "records")  # lanes whose memories stay as the index has them until their file changes
FAR = 1e11  # seconds from 1970; no memory's date is before that by as many, and none after it is exact in the index
_FEW = 100  # changed files that are read for an answer; with more, the index is brought up to date first


def chosen(
    bank: Bank,
    *,
    limit: int | None = None,
    offset: int = 0,
    lane: str | None = None,
    scope: str | Sequence[str] | None = None,
    thread: str | None = None,
    where: Mapping[str, Any] | None = None,
    expired: bool = False,
    brief: bool = False,
    **filters: Any,
) -> list[Memory]:
    """As `Bank.list`, but with whole texts, and with the secrets that the files have: see `guards`."""
    at, named = scopes.these(bank, scope)
    asked = Asked(where_given(where), thread, expired)
    fits = fitting(**filters, scopes=named, thread=thread, where=asked.where)
    last, first = None if limit is None else last_of(limit, offset), last_of(0, offset)
    found = _in_both(at, last, lane, fits, asked, brief=brief)[first:]
    return found if at is bank else [under.as_users(memory) for memory in found]


class Whole(NamedTuple):
    """A list of all that fits, however much that is: of one bank, and by what the index has columns for."""

    lanes: Collection[str]
    fits: Filter
    expired: bool
    offset: int

    @property
    def between(self) -> tuple[float, float]:
        """What has a date from the one to the other, and fulfils the filter's conditions in the index, fits."""
        first, last = self.fits.first, self.fits.last
        return first.timestamp() + 1 if first else -FAR, last.timestamp() - 1 if last else FAR


def whole(
    bank: Bank,
    *,
    limit: int | None = None,
    offset: int = 0,
    lane: str | None = None,
    scope: str | Sequence[str] | None = None,
    thread: str | None = None,
    where: Mapping[str, Any] | None = None,
    expired: bool = False,
    **filters: Any,
) -> Whole | None:
    """What `chosen` is asked for, if that is such a list; else None."""
    if limit is not None or scope is not None or where or bank.under is not None or bank.index_file.token_file is None:
        return None
    fits = fitting(**filters, thread=thread)
    return Whole((lane,) if lane else NAMES, fits, expired, last_of(0, offset))


def guards(bank: Bank) -> dict[bool, Guard]:
    """What memories that a bank lists must not be shown with: those of its own, and (True) those of the user's."""
    below = bank.under
    return {False: bank.guard, True: (below or bank).guard}


def clean(bank: Bank, memories: Sequence[Memory]) -> list[Memory]:
    """Memories that a bank lists, without their secrets."""
    by_owner = guards(bank) if memories else {}
    groups = {
        users: iter(each_without_secrets(bank, guard, [one for one in memories if bool(one.owner) is users]))
        for users, guard in by_owner.items()
    }
    return [next(groups[bool(memory.owner)]) for memory in memories]


def _in_both(
    bank: Bank, limit: int | None, lane: str | None, fits: Filter, asked: Asked, *, brief: bool
) -> list[Memory]:
    """The newest memories that fit, of the bank and of the user's own below it."""
    own = listed(bank, limit, lane, fits, asked, brief=brief)
    below = bank.under
    if below is None:
        return marked(bank, own)
    stays_out = under.hidden(bank, own)
    theirs = listed(below, limit, lane, fits, asked, stays_out, brief=brief)
    found = sorted([*marked(bank, own), *map(under.as_users, marked(below, theirs))], key=list_order)
    return found if limit is None else found[: max(limit, 0)]


def listed(
    bank: Bank,
    limit: int | None,
    lane: str | None,
    fits: Filter,
    asked: Asked = NOTHING,
    stays_out: Fits = lambda _: False,
    *,
    brief: bool = False,
) -> list[Memory]:
    """The newest memories that fit, are to be seen and do not stay out. The index narrows by the filter.

    What is `brief` is as the index has it: no file is read that has not changed since.
    """
    unseen = bank.unseen(expired=asked.expired)

    def may_show(memory: Memory) -> bool:
        return fits(memory) and not stays_out(memory) and not unseen(memory)

    names = (lane,) if lane else NAMES
    some = limit is not None or fits.narrows or brief  # else every file is read anyway
    indexed = [name for name in names if name in IN_INDEX] if some else []
    found = [memory for name in names if name not in indexed for memory in bank.memories(name) if may_show(memory)]
    if indexed:
        from memlane.index.peek import Peek

        with Peek(bank.index_file, [one for one in bank.present() if one.name in indexed]) as peek:
            newest = peek.first(may_show, limit=limit, among=fits)
        as_it_is = NAMES if brief else ("vault",)  # that is JSON in its file as well
        found += (memory for memory in newest if memory.lane in as_it_is)
        found += (
            item
            for memory in newest
            if memory.lane not in as_it_is
            for item in bank.lane(memory.lane).parse(memory.file)  # as JSON, a key that is a number has become text
            if isinstance(item, Memory) and item.id == memory.id
        )
    found.sort(key=list_order)
    return found if limit is None else found[: max(limit, 0)]


def memories(
    bank: Bank,
    lane: str,
    fits: Fits,
    words: Collection[str] = (),
    limit: int | None = None,
    worth: Worth | None = None,
) -> list[Memory]:
    """What the own search of a lane ranks: see `memlane.lanes.Memories`. From the index, and as the files are now."""
    from memlane.index.peek import Peek

    present = [one for one in bank.present() if one.name == lane]
    if not present:
        return []

    def answer(peek: Peek) -> list[Memory]:
        return peek.worth_most(fits, worth, limit) if worth else peek.first(fits, words, limit)

    with Peek(bank.index_file, present) as peek:
        if peek.unread <= _FEW or bank.index_file.token_file is None:
            return answer(peek)
    with suppress(MemlaneError):  # then the files are read
        bank.index.ask(lambda: None, force=True)
    with Peek(bank.index_file, present) as peek:
        return answer(peek)
