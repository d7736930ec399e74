"""What was distilled from sessions, as private notes with the tag `unconfirmed`, until somebody confirms them.

    .memories/private/distilled/importer-fails-because.md

They are the user's own words and work, so they lie where git is told to leave notes out.
What is there already is not stored again, a text that was deleted never comes back, and one that says something else
than an older candidate in the same words takes its place. What somebody wrote on purpose is never replaced by this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from memlane.core.errors import AlreadyExists, InvalidInput, Refused
from memlane.core.model import UNCONFIRMED, Memory
from memlane.core.text import first_line, slug
from memlane.disk.names import PRIVATE
from memlane.gate.changes import what_is_new
from memlane.gate.likeness import ratio
from memlane.recall.blocks import PINNED
from memlane.recall.similar import look

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.capture.distil.candidates import Candidate

FOLDER = "distilled"
_SAME_FORM = 0.8  # sequence ratio of two texts that say it in the same words
_TYPES = {"fact": "fact", "command": "fact", "open": "plan"}  # a note's own; the kind of a candidate is a tag
_NAMES = 10  # attempts at a name that is not taken


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of candidates: the notes that were written, and how many were known, deleted before, or refused."""

    memories: tuple[Memory, ...] = ()
    known: int = 0
    deleted: int = 0
    refused: int = 0

    def __add__(self, other: Stored) -> Stored:
        counts = (self.known + other.known, self.deleted + other.deleted, self.refused + other.refused)
        return Stored(self.memories + other.memories, *counts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "stored": [memory.to_dict() for memory in self.memories],
            "known": self.known,
            "deleted": self.deleted,
            "refused": self.refused,
        }


def store(bank: Bank, candidates: Iterable[Candidate]) -> Stored:
    """Store candidates as unconfirmed notes. Raises StorageError."""
    done = Stored()
    for candidate in candidates:
        if bank.tombstones.deleted(candidate.text):
            done += Stored(deleted=1)
            continue
        old, known = _there(bank, candidate)
        if known:
            done += Stored(known=1)
            continue
        try:
            memory = _added(bank, candidate, old)
        except (Refused, InvalidInput):
            done += Stored(refused=1)
        else:
            done += Stored(known=1) if memory is None or memory.duplicate else Stored((memory,))
    return done


def store_new(bank: Bank, transcript: str, seconds: float) -> Stored:
    """Store the candidates of what a transcript has got since the last time, as far as it is read in so many seconds.

    Writes notes, and how far it came under `indices/distil/`. Raises NotFound, StorageError, InvalidInput for a file
    that is no transcript.
    """
    from memlane.capture import transcript_file
    from memlane.capture.distil.candidates import distil
    from memlane.capture.distil.session import Session
    from memlane.capture.progress import Progress, place_of

    path = os.path.realpath(transcript)
    place = place_of(bank.root / "indices" / "distil", path)
    with transcript_file.opened(path) as file:
        before = Progress.load(place, file) or Progress()
        session = Session(id=before.thread, cwd=before.cwd, offset=before.offset)
        done = store(bank, distil(path, session=session, deadline=monotonic() + seconds))
        Progress(session.offset, session.id, session.cwd).save(place, file)
    return done


def unconfirmed(bank: Bank) -> list[Memory]:
    """What nobody has confirmed yet, the surest first."""
    found = bank.list(tags=[UNCONFIRMED])
    return sorted(found, key=lambda memory: (-float(memory.fields.get("confidence") or 0), memory.id))


def confirm(bank: Bank, id: str, *, rule: bool = False) -> Memory:
    """Confirm a memory; as a rule, it also goes into every snapshot. Raises NotFound, StorageError."""
    memory = bank.get(id)
    kept = [tag for tag in memory.tags if tag != UNCONFIRMED]
    return bank.update(memory.id, tags=list(dict.fromkeys(["rule", PINNED, *kept])) if rule else kept)


def alike(bank: Bank, memory: Memory) -> Memory | None:
    """The memory that one is most like, to be merged with; None when there is none."""
    likes = (like.memory for like in look(bank, memory.text))
    return next((other for other in likes if other.id != memory.id and other.lane != "records"), None)


def merge(bank: Bank, id: str, into: str) -> Memory:
    """Add the text of one memory to the end of another, and delete the first. Raises NotFound, Refused."""
    memory = bank.get(id)
    merged = bank.append(into, memory.text)
    bank.delete(memory.id)
    return merged


def _there(bank: Bank, candidate: Candidate) -> tuple[str | None, bool]:
    """The id of an older candidate that this one renews or contradicts, and whether there is nothing new in it."""
    for like in look(bank, candidate.text):
        memory = like.memory
        if memory.lane == "records":
            continue
        if like.same or not what_is_new(candidate.text, memory.text):
            return None, True
        if memory.unconfirmed and ratio(candidate.text, memory.text.strip()) >= _SAME_FORM:
            newer = str(memory.created_at or "")[:10] > candidate.date
            return (None, True) if newer else (memory.id, False)
    return None, False


def _added(bank: Bank, candidate: Candidate, old: str | None) -> Memory | None:
    """The note of a candidate; None when there is one that says the same, which the look before may have missed."""
    evidence = {"session": candidate.session, "lines": list(candidate.lines), "uuids": list(candidate.uuids)}
    begun = f"{FOLDER}/{slug(first_line(candidate.text, 60)) or 'candidate'}"
    for name in (begun, *(f"{begun}-{number}" for number in range(2, _NAMES))):
        try:
            return bank.add(
                f"{candidate.text}\n",
                lane="notes",
                tags=[candidate.type, UNCONFIRMED],
                type=_TYPES.get(candidate.type, "observation"),
                created_at=candidate.date or None,
                replaces=old,
                filename=name,
                private=True,
                extra={"confidence": candidate.confidence, **{key: value for key, value in evidence.items() if value}},
            )
        except AlreadyExists:
            if bank.get(f"notes:{PRIVATE}/{name}").text.strip() == candidate.text:
                return None
    raise InvalidInput("There are too many notes of this name.", hint="Rename or delete some.")
