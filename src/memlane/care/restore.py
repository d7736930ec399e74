"""Bring back what was archived or deleted, to its place in its lane."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.model import Memory
from memlane.history import versions
from memlane.recall import address

if TYPE_CHECKING:
    from memlane.bank import Bank


def restore(bank: Bank, id: str, version: str | None = None) -> Memory:
    """Keep what is held back, take what is archived out of the archive, or recover what was deleted last, here or
    by somebody else with whom the bank is shared.

    With a version, see `versions.restore`. Raises NotFound, and AlreadyExists where its place is taken.
    """
    if version is not None:
        return versions.restore(bank, id, version)
    with suppress(NotFound, InvalidInput):
        memory = address.get(bank, id)
        if bank.tombstones.held(memory):
            return replace(memory, remarks=bank.tombstones.keep(memory))
        if memory.expired(utc_now()):
            return _kept(bank, memory)
        if memory.status == "archived":
            return _recovered(bank, memory.lane, memory.native_id, memory.file)
    try:
        place = address.in_trash(bank, id)
    except NotFound as error:
        if bank.access.scopes is not None:
            raise  # the journal tells of all scopes
        return _taken(bank, id, error)
    return _recovered(bank, place.lane.name, place.native)


def _taken(bank: Bank, id: str, error: NotFound) -> Memory:
    """A memory that a sync took away, because somebody else deleted it: the journal has it."""
    with suppress(NotFound, InvalidInput):
        if version := versions.before_removal(bank, id):
            return versions.restore(bank, id, version)
    raise error


def _kept(bank: Bank, memory: Memory) -> Memory:
    """A memory that has expired, without the time that it did."""
    kept = bank.lane(memory.lane).revise(memory.native_id, {"expires": None})
    bank.wrote(memory.lane, kept.file)
    return replace(kept, remarks=(*kept.remarks, "it had expired, and does not any more"))


def _recovered(bank: Bank, lane: str, native: str, *left: str) -> Memory:
    """A memory that is back in its place; `left` are files that it has gone from."""
    memory = bank.lane(lane).recover(native)
    for file in (*left, memory.file):
        bank.wrote(lane, file)
    if memory.expired(utc_now()):
        memory = _kept(bank, memory)
    why = bank.held(memory)  # it says what was forgotten since
    return replace(memory, remarks=(*memory.remarks, why)) if why else memory
