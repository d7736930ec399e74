"""Where a memory of an id is, or would be: also one that is damaged or deleted, which no lane can fetch. Reads only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from memlane.core.errors import InvalidInput, NotFound
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank


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
    name, _, native = id.partition(":")
    name = "notes" if name == "memory" else name
    if name in NAMES and native:
        return _named(bank.lane(name), native)
    places = [place for lane in map(bank.lane, NAMES) if (place := _named(lane, id))]
    return next((place for place in places if place.lane.answers.is_folder and os.path.isfile(place.path)), None)


def _named(lane: Lane, native: str) -> Place | None:
    try:
        return Place(lane, native, lane.answers.path_of(native))
    except ValueError:  # also what a name that cannot be raises
        return None
