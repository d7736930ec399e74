"""What the assistant said, kept as records: whole messages of a client's transcript, each stored once.

A message is what shares one message id in the transcript; its text blocks are joined by a line end. It is kept when
it has at least two lines, and of what it says, two lines and a third of the words are its own: words that repeat
memory which was put before the model do not count. So memory never feeds on itself.

How far a transcript was read is remembered under the bank's `indices/capture/`. That is derived: without it, the
transcript is read again from its beginning, and every message that is already there is recognised.

Does not know the formats (`memlane.capture.transcripts`), and decides nothing about secrets: that is the lane's gate.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from memlane import gate
from memlane.capture import repetition, transcripts
from memlane.capture.transcripts import KINDS
from memlane.capture.transcripts.entry import Entry
from memlane.core.dates import iso, moment
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, Refused, StorageError
from memlane.core.model import Draft
from memlane.disk import files

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes.records.store import RecordLane

MAX_LINE = 16 * 1024 * 1024  # bytes; a longer line is a tool's output, not something that was said
MAX_DOCUMENT = 64 * 1024 * 1024  # bytes of a transcript that is one JSON value: it has to be read at once
_BUFFER = 1 << 20
_SHOWN = 10_000  # marks of injected memory that are remembered per transcript
_SAID = 1000  # messages of a transcript that are known again by their ids
_PRINT = 1024  # bytes at either end of what was read, by which a transcript is known again


# -- what comes out


class Kept(NamedTuple):
    """The head of a captured record."""

    id: str
    occurred_at: str
    applies_to: str
    subject: str


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of a transcript. `known` were stored before; `skipped` counts by reason; `complete` is False
    when the time was up before the end, and the next capture goes on from there."""

    records: tuple[Kept, ...] = ()
    known: int = 0
    refused: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict, hash=False)
    complete: bool = True

    @property
    def captured(self) -> int:
        return len(self.records)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(record.id for record in self.records)

    def __add__(self, other: Captured) -> Captured:
        reasons = dict.fromkeys((*self.skipped, *other.skipped))
        return Captured(
            self.records + other.records,
            self.known + other.known,
            self.refused + other.refused,
            {why: self.skipped.get(why, 0) + other.skipped.get(why, 0) for why in reasons},
            self.complete and other.complete,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "captured": self.captured,
            "known": self.known,
            "refused": self.refused,
            "skipped": dict(self.skipped),
            "complete": self.complete,
            "ids": list(self.ids),
            "records": [record._asdict() for record in self.records],
        }


# -- reading a transcript


def capture(
    bank: Bank,
    transcript: str | Path,
    *,
    kind: str | None = None,
    dry_run: bool = False,
    seconds: float | None = None,
    advance: Callable[[int], object] | None = None,
) -> Captured:
    """Store what is new in a transcript as records of the bank.

    Writes a record per message, and how far it came. With `dry_run`, writes nothing and reads from the beginning.
    With `seconds`, stops after that long. `advance` hears how many bytes were read.
    Raises NotFound, InvalidInput for what is no transcript, StorageError.
    """
    return capture_into(
        bank.records,
        transcript,
        progress=None if dry_run else bank.root / "indices" / "capture",
        project=bank.config.project,
        kind=kind,
        dry_run=dry_run,
        seconds=seconds,
        advance=advance,
    )


def capture_messages(bank: Bank, messages: Sequence[Any], *, thread: str = "", shown: Iterable[str] = ()) -> Captured:
    """As `capture`, for messages that a client hands over instead of a file: objects of any kind it can read.

    `shown` are texts that were put before the model without being among the messages: those it does not keep again.
    """
    reading = _Reading(bank.records, bank.config.project, _State(), dry_run=False)
    reading.state.thread = thread
    reading.show(shown)
    reading.take(transcripts.entries(list(messages)), 0)
    reading.close()
    return reading.result()


def capture_into(
    lane: RecordLane,
    transcript: str | Path,
    *,
    progress: Path | None = None,
    project: Path | None = None,
    kind: str | None = None,
    dry_run: bool = False,
    seconds: float | None = None,
    advance: Callable[[int], object] | None = None,
) -> Captured:
    """As `capture`, for a lane by itself. Without a `progress` folder, the transcript is read from its beginning."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput("There is no such kind of transcript.", hint=f"Use one of: {', '.join(KINDS)}.")
    deadline = time.monotonic() + seconds if seconds is not None else None
    path = os.path.realpath(transcript)
    with _opened(path) as file:
        place = progress / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json" if progress else None
        before = _resumed(place, file)
        reading = _Reading(lane, project, before or _State(), dry_run)
        document = _document(file) if before is None else None
        if document is not None:
            reading.take(transcripts.entries(document, kind), 0)
            reading.close()
            reading.state.offset = os.fstat(file.fileno()).st_size
        else:
            _read_lines(file, reading, kind, deadline, advance)
        if before is None and reading.lines and not reading.recognised:
            raise InvalidInput(
                f"{gate.shown(os.path.basename(path))} is not a transcript that memlane can read.",
                hint=f"It reads: {', '.join(KINDS)}; --from names one.",
            )
        if place:
            _remember(place, reading.state, file)
    return reading.result()


def _read_lines(
    file: BinaryIO,
    reading: _Reading,
    kind: str | None,
    deadline: float | None,
    advance: Callable[[int], object] | None,
) -> None:
    """Take line by line what stands in the file after the offset; half a line at the end waits for its other half."""
    end = reading.state.offset
    for start, end, line in _lines(file, reading.state.offset):
        value = _parsed(line) if line and line.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else None
        if line is not None and not isinstance(value, dict) and not line.endswith(b"\n"):
            reading.finish(start)
            return
        if line is None:
            reading.skip("too_long")
        elif isinstance(value, dict):
            reading.take(transcripts.entries(value, kind), start, marked=b"memlane" in line)
        elif line.strip():
            reading.lines += 1
            reading.skip("unreadable")
        if advance:
            advance(end - start)
        if deadline is not None and time.monotonic() > deadline and reading.stop(end):
            return
    reading.finish(end)


def _lines(file: BinaryIO, offset: int) -> Iterator[tuple[int, int, bytes | None]]:
    """(start, end, line) for every line; None in place of one that is too long. One without an end comes last."""
    file.seek(offset)
    while line := file.readline(MAX_LINE):
        start, offset = offset, offset + len(line)
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            yield start, offset, line
            continue
        del line
        while (line := file.readline(_BUFFER)) and not line.endswith(b"\n"):
            offset += len(line)
        if not line:
            return
        offset += len(line)
        yield start, offset, None


def _document(file: BinaryIO) -> Any:
    """The value of a transcript that is one JSON document over several lines; None when it has a value per line."""
    file.seek(0)
    first = file.readline(MAX_LINE)
    if len(first) == MAX_LINE or os.fstat(file.fileno()).st_size > MAX_DOCUMENT:
        return None
    if first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"", b"[", b"{") or isinstance(_parsed(first), dict):
        return None
    return _parsed(first + file.read())


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"There is no transcript {gate.shown(name)}.", hint="Check the path.") from None
    except OSError as error:
        raise StorageError(
            f"{gate.shown(name)} cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidInput(f"{gate.shown(name)} is not a file.", hint="Give the transcript itself.")
    with os.fdopen(fd, "rb", _BUFFER) as file:
        yield file


# -- putting messages together


class _State:
    """How far a transcript was read, and what of the part before still matters. `tail` is the record of the last
    message, which may not have been complete when it was stored; reading goes on at that message."""

    def __init__(self) -> None:
        self.offset = 0
        self.thread = ""
        self.cwd = ""
        self.aside = False
        self.files: list[str] = []  # changed in this turn; two are as good as many
        self.shown: list[int] = []  # marks of injected memory, the oldest first
        self.said: dict[str, str] = {}  # mark of a message and its id → when it was first said
        self.tail = ""


class _Message:
    """A message whose blocks are being collected. `start` is where its first line begins."""

    def __init__(self, start: int, first: Entry) -> None:
        self.start, self.key, self.at, self.skip = start, first.key, first.at, first.skip
        self.parts = [first.text]

    def add(self, text: str) -> None:
        """One more block. A client that writes a message again while it grows says the same words, and more."""
        if text.startswith(self.parts[-1]):
            self.parts[-1] = text
        elif text not in self.parts:
            self.parts.append(text)


class _Reading:
    """One pass over a transcript: takes what its lines say, puts whole messages into the lane, counts."""

    def __init__(self, lane: RecordLane, project: Path | None, state: _State, dry_run: bool) -> None:
        self.lane, self.project, self.state, self.dry_run = lane, project, state, dry_run
        self.lines = self.recognised = 0
        self._message: _Message | None = None
        self._shown = set(state.shown)
        self._shown_since: list[int] = []  # after the last words of the message: it cannot repeat those
        self._tail, self._resumed_at = state.tail, state.offset
        state.tail = ""
        self._kept: list[Kept] = []
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._complete = True

    def result(self) -> Captured:
        counts = self._counts
        return Captured(tuple(self._kept), counts["known"], counts["refused"], dict(self._skipped), self._complete)

    def take(self, lines: Iterable[tuple[dict[str, Any], Entry | None]], start: int, marked: bool = True) -> None:
        """Take the objects of a line that begins at `start`. `marked`: it may hold memory that was injected."""
        state = self.state
        for line, entry in lines:
            self.lines += 1
            self.recognised += entry is not None
            entry = entry or Entry()
            if entry.thread and entry.thread != state.thread:
                state.thread = _harmless(entry.thread)
            if entry.cwd and entry.cwd != state.cwd:
                state.cwd = _harmless(entry.cwd)
            state.aside = state.aside or entry.aside
            if marked and not entry.text:
                self._shown_since += repetition.marks_of_blocks(line)
            if entry.skip == "sidechain" or state.aside:  # may stand between the blocks of a message
                self._skipped["sidechain"] += entry.text != ""
                continue
            if self._message and (entry.asked or self._is_another(entry)):
                self.close()
            if entry.text or not self._message:
                self._show()
            if entry.asked:
                state.files = []
            if entry.text and self._message:
                self._message.add(entry.text)
            elif entry.text:
                self._message = _Message(start, entry)
            for name in entry.files:
                self._touch(name)

    def _is_another(self, entry: Entry) -> bool:
        """Whether an entry begins another message; results of tools, which say nothing here, do not."""
        same = self._message is not None and entry.key != "" and entry.key == self._message.key
        return (entry.key != "" or entry.text != "") and not same

    def show(self, texts: Iterable[str]) -> None:
        """Take texts for memory that was put before the model."""
        self._shown_since += [mark for text in texts for mark in repetition.marks(text)]
        self._show()

    def skip(self, why: str) -> None:
        self._skipped[why] += 1

    def finish(self, offset: int) -> None:
        """The end, for now. The last message is stored as it is, and read again next time: it may have grown."""
        if not self._message:
            self._show()
        self.state.offset = self._message.start if self._message else offset
        self.state.tail = self.close()

    def stop(self, offset: int) -> bool:
        """Time is up: what is not stored yet is read again next time. False when that would lead nowhere."""
        if not self._message:
            self._show()
        self.state.offset = self._message.start if self._message else offset
        self._complete = self.state.offset == self._resumed_at
        return not self._complete

    def close(self) -> str:
        """Store the message that was put together, if it deserves it. Returns its record's id, else ""."""
        message, self._message = self._message, None
        if message is None:
            return ""
        text = "\n".join(message.parts)
        if why := self._objection(message, text):
            self.skip(why)
            return ""
        when = self._first_said(message, text)
        scope = scope_of(text, self.state.files)
        draft = Draft(text, scope=scope, thread=self.state.thread or None, fields={"occurred_at": when})
        try:
            record, new = self.lane.capture_message(draft, dry_run=self.dry_run)
        except Refused:
            self._counts["refused"] += 1
            return ""
        except InvalidInput:
            self.skip("invalid")
            return ""
        if new:
            self._kept.append(Kept(f"records:{record.id}", record.occurred_at, record.applies_to, record.subject))
            self._put_aside(message, text)
        else:
            self._counts["known"] += 1
        return record.id

    def _first_said(self, message: _Message, text: str) -> str:
        """When a message was said. A client that resumes a session may write it again, with the time of that."""
        when = message.at if isinstance(message.at, str) else str(iso(moment(message.at)))
        if not message.key:
            return when
        said = self.state.said
        mark = hashlib.blake2b(f"{message.key}\0{text}".encode(errors="replace"), digest_size=8).hexdigest()
        when = said.setdefault(mark, when)
        if len(said) > _SAID:
            del said[next(iter(said))]
        return when

    def _objection(self, message: _Message, text: str) -> str:
        """Why a message is not kept; "" when it is."""
        if message.skip:
            return message.skip
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            return "single_line"
        if moment(message.at) is None:
            return "no_timestamp"
        if repetition.quotes(text) or repetition.repeats(text, self._shown):
            return "injected"
        return ""

    def _put_aside(self, message: _Message, text: str) -> None:
        """Move the record of a message that was stored before it was complete to the trash."""
        if not self._tail or message.start != self._resumed_at or self.dry_run:
            return
        before, self._tail = self.lane.get(self._tail), ""
        if before is not None and text.startswith(before.content):
            with suppress(NotFound):  # another capture was first
                self.lane.set_aside(before.id)

    def _show(self) -> None:
        """Remember the memory that was put before the model."""
        shown = self.state.shown
        for mark in self._shown_since:
            if mark not in self._shown:
                self._shown.add(mark)
                shown.append(mark)
        self._shown_since = []
        for mark in shown[:-_SHOWN]:
            self._shown.discard(mark)
        del shown[:-_SHOWN]

    def _touch(self, name: str) -> None:
        path = relative(name, self.project, self.state.cwd)
        known = self.state.files
        if path not in known and len(known) < 2 and _harmless(path):
            known.append(path)


@lru_cache(64)
def _harmless(name: str) -> str:
    """A name that is remembered between two captures; "" when it looks like a secret."""
    return name if name and gate.redacted(name) == name else ""


# -- what a message applies to

_NAMED = re.compile(r"\b(?:in|file|at)\s+[`\"']?((?:[\w@.-]+/)*[\w@-][\w@.-]+\.([A-Za-z]{1,4}))\b(?!/)")
_NO_FILES = frozenset({"com", "org", "net", "io", "dev", "ai", "app"})
_AREA = re.compile(
    r"\b(?:in|for|of) the ([^\W\d_][\w-]*) (?:component|module|service|subsystem|layer)\b", re.IGNORECASE
)
_VAGUE = frozenset(
    "following same above below new old first second last next other main whole entire each this".split()
)


def scope_of(text: str, changed: Sequence[str] = ()) -> str:
    """`file:PATH` when the turn changed one file, or changed none and the text names one; `area:NAME` when it names
    one component, module, service, subsystem or layer; else `global`."""
    if len(changed) == 1:
        return f"file:{changed[0]}"
    named = {name for name, suffix in _NAMED.findall(text) if not _is_brand(name, suffix)}
    if not changed and len(named) == 1:
        return f"file:{named.pop()}"
    areas = {word.lower() for word in _AREA.findall(text)} - _VAGUE
    return f"area:{areas.pop()}" if len(areas) == 1 else "global"


def _is_brand(name: str, suffix: str) -> bool:
    """`example.com` and `Node.js` look like files."""
    return "/" not in name and (suffix.lower() in _NO_FILES or (suffix == "js" and name[0].isupper()))


def relative(name: str, project: Path | None, cwd: str) -> str:
    """A file's path from the project's folder, else from the session's; "" for one that lies in neither."""
    windows = bool(_DRIVE.match(name) or _DRIVE.match(cwd))
    name, cwd = (word.replace("\\", "/") if windows else word for word in (name, cwd))
    full = posixpath.normpath(name if _is_absolute(name) else posixpath.join(cwd, name))
    homes = [os.fspath(project), os.path.realpath(project)] if project else []
    for home in (*homes, cwd):
        if home and full.startswith(home.rstrip("/") + "/"):
            return full[len(home.rstrip("/")) + 1 :]
    return "" if _is_absolute(full) or full.split("/")[0] in ("..", ".", "~") else full


_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def _is_absolute(name: str) -> bool:
    return name.startswith("/") or bool(_DRIVE.match(name))


# -- how far a transcript was read


def _resumed(place: Path | None, file: BinaryIO) -> _State | None:
    """Where the last capture stopped; None when there was none, or when this is not the transcript it read."""
    if place is None:
        return None
    try:
        saved = json.loads(files.read_text(os.fspath(place)))
        state = _State()
        for name, default in vars(state).items():
            if type(saved[name]) is not type(default):
                return None
            setattr(state, name, saved[name])
        return state if state.offset > 0 and _print(file, state.offset) == saved["print"] else None
    except (OSError, ValueError, TypeError, KeyError, StorageError):
        return None


def _remember(place: Path, state: _State, file: BinaryIO) -> None:
    data = json.dumps({"print": _print(file, state.offset), **vars(state)}).encode()
    try:
        if files.read_bytes(os.fspath(place)) == data:
            return
    except (OSError, StorageError):
        ignore = place.parent.parent / ".gitignore"
        with suppress(AlreadyExists):
            files.create(os.fspath(ignore), b"*\n")
    files.replace(os.fspath(place), data)


def _print(file: BinaryIO, offset: int) -> str:
    """A hash of both ends of what was read: a transcript that was replaced, cut or rewritten has another one."""
    file.seek(0)
    head = file.read(min(_PRINT, offset))
    file.seek(max(offset - _PRINT, 0))
    return hashlib.sha256(head + file.read(min(_PRINT, offset))).hexdigest()[:32]
