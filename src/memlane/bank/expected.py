"""Changing a memory only while it says what the caller has read: compare and swap, by `Memory.version`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memlane import gate
from memlane.core.errors import Conflict, NotFound
from memlane.disk import locks
from memlane.lanes import Lane
from memlane.recall.leaving import shown

if TYPE_CHECKING:
    from memlane.bank import Bank


@contextmanager
def expecting(bank: Bank, lane: Lane, native: str, version: str | None) -> Iterator[None]:
    """Raise Conflict inside if a memory has another version than this one at the moment when it is to be changed.

    It is looked at under the lock that the lane takes for the change, so that nobody comes in between. None expects
    nothing.
    """
    if version is None:
        yield
        return
    places = {os.path.realpath(place) for place in (lane.fetch(native).file, lane.root)}

    def look(path: str) -> None:
        if os.path.realpath(path) in places:
            locks.once_locked.set(None)  # what the lane writes next is ours
            _compare(bank, lane, native, version)

    token = locks.once_locked.set(look)
    try:
        yield
    finally:
        locks.once_locked.reset(token)


def _compare(bank: Bank, lane: Lane, native: str, version: str) -> None:
    try:
        [memory] = shown(bank, [lane.fetch(native)])  # as the caller saw it: without secrets
    except NotFound:
        memory = None
    if memory is None or memory.version != version:
        id = gate.shown(f"{lane.name}:{native}")
        now = f"It has the version {memory.version} now" if memory else "It is gone"
        raise Conflict(
            f"{id} is not as it was expected: {now}. Nothing was written.",
            hint="Read it again, and change what is there now.",
            version=memory.version if memory else None,
        )
