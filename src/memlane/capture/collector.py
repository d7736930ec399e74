"""Putting the messages of a transcript together, and storing those worth keeping.

A message is kept when it has at least two lines, and two lines and a third of its words are its own: words that repeat
memory which was put before the model do not count. So memory never feeds on itself. Decides nothing about secrets:
that is the gate of the lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.capture import repetition, transcripts
from memlane.capture.progress import Progress
from memlane.capture.scope import relative, scope_of
from memlane.capture.transcripts.entry import Entry
from memlane.core.dates import iso, moment
from memlane.core.digests import blake2b
from memlane.core.errors import InvalidInput, NotFound, Refused
from memlane.core.model import Draft, Memory
from memlane.core.values import NamedTuple
from memlane.disk import journal
from memlane.lanes.records.record import to_memory

if TYPE_CHECKING:
    from memlane.lanes.records.store import RecordLane

_SHOWN = 10_000  # marks of injected memory that are remembered per transcript
_SAID = 1000  # messages of a transcript that are recognised by their ids


class Kept(NamedTuple):
    """The head of a captured record."""

    id: str
    occurred_at: str
    applies_to: str
    subject: str


class _Message:
    """A message whose blocks are being collected. `start` is where its first line begins."""

    def __init__(self, start: int, first: Entry) -> None:
        self.start, self.key, self.at, self.skip = start, first.key, first.at, first.skip
        self._parts = [first.text]

    def add(self, text: str) -> None:
        """Add a block. A client that writes a message again while it grows repeats the words so far, and more."""
        if text.startswith(self._parts[-1]):
            self._parts[-1] = text
        elif text not in self._parts:
            self._parts.append(text)

    @property
    def text(self) -> str:
        return "\n".join(self._parts)


class Collector:
    """One pass over a transcript. Takes what its lines say, stores whole messages as records, and counts.

    With `dry_run`, stores nothing. `progress` moves on as messages are stored; saving it is left to the caller.
    """

    def __init__(self, lane: RecordLane, project: Path | None, progress: Progress, dry_run: bool = False) -> None:
        self.lane, self.project, self.progress, self.dry_run = lane, project, progress, dry_run
        self.lines = self.recognised = self.known = self.refused = 0
        self.skipped: Counter[str] = Counter()
        self.kept: list[Kept] = []
        self.memories: list[Memory] = []
        self._message: _Message | None = None
        self._new_marks: list[int] = []  # shown after the last words of the message, which cannot repeat them
        self._tail, self._resumed_at = progress.tail, progress.offset
        progress.tail = ""

    def take(self, lines: Iterable[tuple[dict[str, Any], Entry | None]], start: int, marked: bool = True) -> None:
        """Take the objects of a line that begins at `start`. `marked`: it may hold memory that was injected."""
        progress = self.progress
        for line, entry in lines:
            self.lines += 1
            self.recognised += entry is not None
            entry = entry or Entry()
            if entry.thread and entry.thread != progress.thread:
                progress.thread = _harmless(entry.thread)
            if entry.cwd and entry.cwd != progress.cwd:
                progress.cwd = _harmless(entry.cwd)
            progress.aside = progress.aside or entry.aside
            if marked and not entry.text:
                self._new_marks += repetition.marks_of_blocks(line)
            if entry.skip == "sidechain" or progress.aside:  # may stand between the blocks of a message
                if entry.text:
                    self.skipped["sidechain"] += 1
                continue
            if entry.asked or self._is_another(entry):
                self.close()
            if entry.text or not self._message:
                self._remember_shown()
            if entry.asked:
                self._look_for_objections(line)
                progress.files = []
                progress.asked = True
            if entry.text and progress.asked:
                progress.asked = False
                progress.turns += 1
            if entry.text and self._message:
                self._message.add(entry.text)
            elif entry.text:
                self._message = _Message(start, entry)
            progress.edits += bool(entry.files)
            for name in entry.files:
                self._touch(name)

    def show(self, texts: Iterable[str]) -> None:
        """Treat these texts as memory that was put before the model."""
        self._new_marks += [mark for text in texts for mark in repetition.marks(text)]
        self._remember_shown()

    def finish(self, offset: int) -> None:
        """The end, for now: store the last message as it is, and read it again next time, as it may have grown."""
        self._move_to(offset)
        self.progress.tail = self.close()

    def stop(self, offset: int) -> bool:
        """Stop before the end: a message that is not stored yet is read again next time. False when the next capture
        would start where this one did, and so never get any further."""
        self._move_to(offset)
        return self.progress.offset != self._resumed_at

    def close(self) -> str:
        """Store the message that was put together, if it is worth keeping. Returns its record's id, else ""."""
        message, self._message = self._message, None
        if message is None:
            return ""
        text = message.text
        if why := self._objection(message, text):
            self.skipped[why] += 1
            return ""
        when = self._first_said(message, text)
        scope = scope_of(text, self.progress.files)
        draft = Draft(text, scope=scope, thread=self.progress.thread or None, fields={"occurred_at": when})
        try:
            journal.step()
            record, new = self.lane.capture_message(draft, dry_run=self.dry_run)
        except Refused:
            self.refused += 1
            return ""
        except InvalidInput:
            self.skipped["invalid"] += 1
            return ""
        self.progress.last = record.id
        if new:
            self.memories.append(to_memory(record))
            self.kept.append(Kept(f"records:{record.id}", record.occurred_at, record.applies_to, record.subject))
            self._set_first_half_aside(message, text)
        else:
            self.known += 1
        return record.id

    # -- one message

    def _is_another(self, entry: Entry) -> bool:
        """Whether an entry begins another message; results of tools, which have neither key nor text, do not."""
        same = self._message is not None and entry.key != "" and entry.key == self._message.key
        return (entry.key != "" or entry.text != "") and not same

    def _objection(self, message: _Message, text: str) -> str:
        """Why a message is not kept; "" when it is."""
        if message.skip:
            return message.skip
        if sum(bool(line.strip()) for line in text.splitlines()) < 2:
            return "single_line"
        if moment(message.at) is None:
            return "no_timestamp"
        if repetition.quotes(text) or repetition.repeats(text, self.progress.shown.keys()):
            return "injected"
        return ""

    def _first_said(self, message: _Message, text: str) -> str:
        """When a message was first said: a client that resumes a session may write it again with the time of that."""
        when = message.at if isinstance(message.at, str) else str(iso(moment(message.at)))
        if not message.key:
            return when
        said = self.progress.said
        mark = blake2b(f"{message.key}\0{text}".encode(errors="replace"), digest_size=8).hexdigest()
        when = said.setdefault(mark, when)
        if len(said) > _SAID:
            del said[next(iter(said))]
        return when

    def _set_first_half_aside(self, message: _Message, text: str) -> None:
        """Move the record of a message that was stored before it was complete to the trash."""
        if not self._tail or message.start != self._resumed_at or self.dry_run:
            return
        before, self._tail = self.lane.get(self._tail), ""
        if before is not None and text.startswith(before.content):
            with suppress(NotFound):  # another capture was first
                self.lane.set_aside(before.id)

    # -- what is remembered

    def _look_for_objections(self, line: dict[str, Any]) -> None:
        """Mark the last record of the turn that is over, if the user objects to it."""
        last, self.progress.last = self.progress.last, ""
        record = self.lane.get(last) if last and not self.dry_run else None
        if record is None:
            return
        from memlane.capture.distil.passages import typed
        from memlane.capture.distil.session import users_own
        from memlane.capture.objections import is_objected
        from memlane.lanes.records.store import mark_objected

        for _, _, parts in transcripts.conversation(line):
            prompt = "\n".join(users_own(part.text) for part in parts if part.role == "user")
            if is_objected(record.content, typed(prompt)):
                journal.step()
                with suppress(NotFound):  # somebody deleted it meanwhile
                    mark_objected(record)

    def _move_to(self, offset: int) -> None:
        """Let the next capture start here, or at the message that is not stored yet."""
        if not self._message:
            self._remember_shown()
        self.progress.offset = self._message.start if self._message else offset

    def _remember_shown(self) -> None:
        """Remember the memory that was put before the model; the oldest is forgotten when there is too much."""
        if self._new_marks:
            shown = self.progress.shown
            shown.update(dict.fromkeys(self._new_marks))
            self._new_marks = []
            for mark in list(shown)[:-_SHOWN]:
                del shown[mark]

    def _touch(self, name: str) -> None:
        """Remember that the turn changed a file of the project."""
        path = relative(name, self.project, self.progress.cwd)
        changed = self.progress.files
        if path not in changed and len(changed) < 2 and _harmless(path):
            changed.append(path)


@lru_cache(64)
def _harmless(name: str) -> str:
    """A name that may be remembered between two captures; "" when it looks like a secret."""
    return name if name and gate.redacted(name) == name else ""
