"""Which memory an id names, and where it is or would be: also one that is damaged or deleted. Reads only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from memlane.core.errors import InvalidInput, NotFound
from memlane.gate import shown
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank


def split(id: str) -> tuple[str, str]:
    """The lane's name ("" where the id names none) and the native id. Raises InvalidInput."""
    if not isinstance(id, str) or not id.strip():
        raise InvalidInput("There is no id.", hint="`memlane list` shows the ids.")
    name, colon, native = id.partition(":")
    if colon and name == "memory":  # seed 003's own form
        return "notes", native
    return (name, native) if colon and name in NAMES else ("", id)


def locate(bank: Bank, id: str) -> tuple[Lane, str]:
    """The lane and native id of an id. Without a lane's name, the one lane that has it. Raises NotFound."""
    name, native = split(id)
    if name:
        return bank.lane(name), native
    found = [lane for lane in map(bank.lane, NAMES) if _has(lane, native)]
    if not found:
        raise NotFound(f"There is no memory {shown(id)}.", hint="`memlane list` shows the ids.")
    if len(found) > 1:
        names = ", ".join(f"{lane.name}:{native}" for lane in found)
        raise InvalidInput(f"{native} is in several lanes.", hint=f"Name one: {names}.")
    return found[0], native


def _has(lane: Lane, native: str) -> bool:
    try:
        lane.fetch(native)
    except (NotFound, InvalidInput):
        return False
    return True


class Place(NamedTuple):
    lane: Lane
    native: str
    path: str

    @property
    def id(self) -> str:
        return f"{self.lane.name}:{self.native}"


def find(bank: Bank, id: str) -> Place:
    """The place of an id. Raises NotFound when there is neither a memory nor a file of that name."""
    try:
        memory = bank.get(id)
        return Place(bank.lane(memory.lane), memory.native_id, memory.file)
    except (NotFound, InvalidInput):
        place = named(bank, id)
        if place is None or place.lane.answers.shares_files or not os.path.isfile(place.path):
            raise
        return place


def named(bank: Bank, id: str) -> Place | None:
    """The place that an id names, whether or not anything is there now; None when no such name can be."""
    name, native = split(id)
    if name and native:
        return _named(bank.lane(name), native)
    places = [place for lane in map(bank.lane, NAMES) if (place := _named(lane, id))]
    return next((place for place in places if place.lane.answers.is_folder and os.path.isfile(place.path)), None)


def _named(lane: Lane, native: str) -> Place | None:
    try:
        return Place(lane, native, lane.answers.path_of(native))
    except ValueError:  # also what a name that cannot be raises
        return None
