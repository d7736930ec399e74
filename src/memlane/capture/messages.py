"""Capture: what the assistant said, kept as records. Whole messages of a client's transcript, each stored once.

A message is everything that shares one message id in the transcript; its text blocks are joined by a line end. Which
messages are kept is decided in `collector`; the formats are known to `transcripts` alone.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from memlane.capture import transcript_file, transcripts
from memlane.capture.collector import Collector, Kept
from memlane.capture.progress import Progress, place_of
from memlane.capture.transcripts import KINDS
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.model import Memory
from memlane.core.values import dataclass, field

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes.records.store import RecordLane


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of a transcript. `known` messages were stored before; `skipped` counts the others by reason;
    `complete` is False when the time was up before the end: the next capture goes on from there. `turns` and `edits`
    count what the whole session had, as far as it was read: turns in which the assistant said something, and calls of
    tools that change files.
    """

    records: tuple[Kept, ...] = ()
    known: int = 0
    refused: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict, hash=False)
    complete: bool = True
    memories: tuple[Memory, ...] = field(default=(), repr=False, compare=False)  # the records as such
    turns: int = 0
    edits: int = 0

    @property
    def captured(self) -> int:
        return len(self.records)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(record.id for record in self.records)

    def __add__(self, other: Captured) -> Captured:
        return Captured(
            self.records + other.records,
            self.known + other.known,
            self.refused + other.refused,
            dict(Counter(self.skipped) + Counter(other.skipped)),
            self.complete and other.complete,
            self.memories + other.memories,
            self.turns + other.turns,
            self.edits + other.edits,
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

    Writes a record per message, what the code was that it speaks of, and how far it came under `indices/capture/`.
    With `dry_run`, writes nothing and reads from the beginning. With `seconds`, stops after that long. Calls `advance`
    with the number of bytes just read.
    Raises NotFound, InvalidInput for a file that is no transcript, StorageError.
    """
    done = capture_into(
        bank.records,
        transcript,
        progress=None if dry_run else bank.root / "indices" / "capture",
        project=bank.config.code,
        kind=kind,
        dry_run=dry_run,
        seconds=seconds,
        advance=advance,
    )
    return done if dry_run else _anchored(bank, done)


def capture_messages(bank: Bank, messages: Sequence[Any], *, thread: str = "", shown: Iterable[str] = ()) -> Captured:
    """As `capture`, for messages that a client hands over instead of a file: objects of any kind it can read.

    `shown` are texts that were put before the model without being among the messages; repeating them is not kept.
    """
    collector = Collector(bank.records, bank.config.code, Progress(thread=thread))
    collector.show(shown)
    collector.take(transcripts.entries(list(messages)), 0)
    collector.close()
    return _anchored(bank, _result(collector))


def _anchored(bank: Bank, done: Captured) -> Captured:
    """Note what the code was that new records speak of. They are stored: where that fails, `fresh` tries again."""
    if watch := bank.watch_of(done.memories):
        with suppress(MemlaneError, OSError):
            watch.anchor_said(done.memories)
    return done


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
    """As `capture`, for a lane by itself. Without a `progress` folder, reads the transcript from its beginning."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput("There is no such kind of transcript.", hint=f"Use one of: {', '.join(KINDS)}.")
    deadline = time.monotonic() + seconds if seconds is not None else None
    path = os.path.realpath(transcript)
    place = place_of(progress, path) if progress else None
    complete = True
    with transcript_file.opened(path) as file:
        before = Progress.load(place, file) if place else None
        collector = Collector(lane, project, before or Progress(), dry_run)
        document = transcript_file.document(file) if before is None else None
        if document is not None:
            collector.take(transcripts.entries(document, kind), 0)
            collector.close()
            collector.progress.offset = os.fstat(file.fileno()).st_size
        else:
            complete = _take_lines(file, collector, kind, deadline, advance)
        if before is None and collector.lines and not collector.recognised:
            raise transcript_file.unknown(path)
        if place:
            collector.progress.save(place, file)
    return _result(collector, complete)


def _take_lines(
    file: BinaryIO,
    collector: Collector,
    kind: str | None,
    deadline: float | None,
    advance: Callable[[int], object] | None,
) -> bool:
    """Take the lines after the offset; half a line at the end waits for its other half. False when time was up."""
    end = collector.progress.offset
    for line in transcript_file.lines(file, end):
        value, data = line.value, line.data
        if value is None and data is not None and not data.endswith(b"\n"):
            break
        end = line.end
        if data is None:
            collector.skipped["too_long"] += 1
        elif value is not None:
            collector.take(transcripts.entries(value, kind), line.start, marked=b"memlane" in data)
        elif data.strip():
            collector.lines += 1
            collector.skipped["unreadable"] += 1
        if advance:
            advance(end - line.start)
        if deadline is not None and time.monotonic() > deadline and collector.stop(end):
            return False
    collector.finish(end)
    return True


def _result(collector: Collector, complete: bool = True) -> Captured:
    counts = (collector.known, collector.refused, dict(collector.skipped), complete)
    progress = collector.progress
    return Captured(tuple(collector.kept), *counts, tuple(collector.memories), progress.turns, progress.edits)
