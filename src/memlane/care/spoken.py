"""The words of a session that a memory was distilled from; `deciding.evidence` says where they are.

They are read from the transcript that the client has kept, with what was said before and after; where that is gone,
from the records of the session. Reads only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from memlane.capture import clients
from memlane.capture.distil.reading import read
from memlane.capture.distil.session import Run, Said, Session
from memlane.core.errors import MemlaneError
from memlane.core.values import dataclass

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.core.model import Memory

PATIENCE = 2.0  # seconds for reading a transcript
_SHOWN, _BEFORE = 1600, 500  # characters of something that was said, and of them before the words that were kept
_WORDS = 200  # of a memory, by which it is found in what was said


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said: by the `role` user, assistant, summary or command. `line` is where in the transcript, 0
    for a record; `marks` are the stretches of the text that the memory repeats; `own` is what it was distilled from,
    and the rest is what was said around it."""

    role: str
    text: str
    line: int
    own: bool
    marks: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        marks = [list(each) for each in self.marks]
        return {"role": self.role, "text": self.text, "line": self.line, "own": self.own, "marks": marks}


def spoken(bank: Bank, memory: Memory) -> list[Spoken]:
    """What a memory was distilled from, in the order it was said; [] when that is not to be had any more."""
    session, lines = memory.fields.get("session"), memory.fields.get("lines")
    if not isinstance(session, str) or not session:
        return []
    numbers = {number for number in lines if isinstance(number, int)} if isinstance(lines, list) else set()
    return list(_in_transcript(bank, memory, session, numbers)) or _in_records(bank, memory, session)


def _in_transcript(bank: Bank, memory: Memory, session: str, numbers: set[int]) -> Iterator[Spoken]:
    past = clients.of_session(bank.config, session) if numbers else None
    if past is None:
        return
    source = list(clients.messages(past)) if past.session else past.path
    before: Said | Run | None = None
    own = False
    with suppress(MemlaneError):  # a transcript that cannot be read any more
        for said in read(source, Session(), deadline=monotonic() + PATIENCE):
            was, own = own, not numbers.isdisjoint(said.lines)
            if own and before and not was:
                yield _shown(before, memory, own=False)
            if own or was:
                yield _shown(said, memory, own=own)
            elif min(said.lines, default=0) > max(numbers):
                return
            before = None if own or was else said


def _in_records(bank: Bank, memory: Memory, session: str) -> list[Spoken]:
    """The records of a session that hold the words of a memory."""
    records = bank.list(lane="records", thread=session)
    found = [_cut(record.text, memory, "assistant", 0, own=True) for record in reversed(records)]
    return [each for each in found if each.marks]


def _shown(said: Said | Run, memory: Memory, *, own: bool) -> Spoken:
    role, text = ("command", said.command) if isinstance(said, Run) else (said.role, said.text)
    return _cut(text, memory, role, min(said.lines, default=0), own=own)


def _cut(text: str, memory: Memory, role: str, line: int, *, own: bool) -> Spoken:
    """A text, no longer than is read at a glance, with the words of the memory in it."""
    words = [re.escape(word) for word in memory.text.split()[:_WORDS]]
    found = re.search(r"\s+".join(words), text) if own and words else None
    start = max(found.start() - _BEFORE, 0) if found else 0
    end = max(start + _SHOWN, found.end() if found else 0)
    first, last = "…" if start else "", "…" if end < len(text) else ""
    by = len(first) - start
    marks = ((found.start() + by, found.end() + by),) if found else ()
    return Spoken(role, f"{first}{text[start:end]}{last}", line, own, marks)
