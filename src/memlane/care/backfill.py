"""Learning from past sessions: what is worth remembering of the transcripts that clients have kept of a project.

Each session goes the way that hooks take when one ends (`distilled.store_new`): where the reading stopped is
remembered, so that an interruption loses nothing, a second run goes on, and a hook does not begin anew.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from memlane import config
from memlane.capture import clients
from memlane.capture.clients import Past
from memlane.capture.distil.candidates import distil
from memlane.capture.distil.session import Session
from memlane.capture.progress import Progress, place_of
from memlane.capture.transcript_file import opened
from memlane.care.distilled import FOLDER, Stored, store, store_new
from memlane.core.errors import MemlaneError
from memlane.core.model import UNCONFIRMED, Memory
from memlane.core.values import dataclass, field
from memlane.disk import files
from memlane.disk.names import PRIVATE
from memlane.disk.scratch import Scratch

if TYPE_CHECKING:
    from memlane.bank import Bank

BEST = 10


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of past sessions: how many were read and how many could not be, and what was stored."""

    read: int = 0
    failed: int = 0
    stored: Stored = field(default_factory=Stored)

    def __add__(self, other: Learned) -> Learned:
        return Learned(self.read + other.read, self.failed + other.failed, self.stored + other.stored)

    def to_dict(self) -> dict[str, Any]:
        return {"read": self.read, "failed": self.failed, **self.stored.to_dict()}


def unread(bank: Bank) -> list[Past]:
    """The past sessions of a bank's project that hold something new, the oldest first. `size` is how much of it."""
    found = ((one, _left(bank, one)) for one in clients.past(bank.config))
    return [one._replace(size=size) for one, size in found if size]


def counted(past: Iterable[Past]) -> dict[str, tuple[int, int]]:
    """How many sessions there are of each client, and how many bytes that is."""
    counts, sizes = Counter[str](), Counter[str]()
    for one in past:
        counts[one.client] += 1
        sizes[one.client] += one.size
    return {client: (counts[client], sizes[client]) for client in sorted(counts)}


def learn(bank: Bank, past: Iterable[Past], advance: Callable[[int], object]) -> Learned:
    """Distil sessions one by one, and store what is worth it as unconfirmed notes. Calls `advance` with the bytes done.

    Writes notes, and how far it came under `indices/distil/`. One that cannot be read is counted and passed over.
    """
    total = Learned()
    for one in past:
        try:
            total += Learned(read=1, stored=_of_database(bank, one) if one.session else store_new(bank, one.path, inf))
        except MemlaneError:
            total += Learned(failed=1)
        advance(one.size)
    return total


def _of_database(bank: Bank, one: Past) -> Stored:
    """As `store_new`, for a session that has no file of its own: it is written to a passing one, for the user alone."""
    scratch = Scratch(config.user_state(), "session")
    try:
        path = os.path.join(scratch.path, "session.jsonl")
        files.create(path, b"".join(json.dumps(line).encode() + b"\n" for line in clients.messages(one)))
        reading = Session()
        done = store(bank, distil(path, kind="opencode", session=reading), reading.done)
    finally:
        scratch.remove()
    files.replace(_mark(bank, one), b"{}\n")
    return done


def best(bank: Bank, learned: Learned) -> list[Memory]:
    """The surest of what was learned and is still there: a later session may have said it anew."""
    ids = {memory.id for memory in learned.stored.memories}
    found = [one for one in bank.list(tags=[UNCONFIRMED]) if one.id in ids and not one.superseded_by]
    return sorted(found, key=lambda one: (-float(one.fields.get("confidence") or 0), one.id))[:BEST]


def place(bank: Bank) -> str:
    """The folder of what was learned."""
    return os.path.join(bank.lane("notes").root, PRIVATE, FOLDER)


def _left(bank: Bank, one: Past) -> int:
    """The bytes of a transcript that were not read yet; 0 as well when it has not changed since it was last read."""
    mark = _mark(bank, one)
    with suppress(OSError, MemlaneError):
        if os.stat(mark).st_mtime >= one.changed:
            return 0
        if one.session:
            return one.size
        with opened(one.path) as file:
            before = Progress.load(mark, file)
            return one.size - before.offset if before else one.size
    return one.size


def _mark(bank: Bank, one: Past) -> str:
    """The file that says how far a session was read."""
    session = f"#{one.session}" if one.session else ""
    return place_of(bank.root / "indices" / "distil", f"{os.path.realpath(one.path)}{session}")
