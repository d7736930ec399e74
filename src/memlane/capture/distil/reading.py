"""Reading a transcript for the distiller: every passage of what was said, with the signs of its worth. Streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic
from typing import Any, BinaryIO, NamedTuple

from memlane.capture import transcript_file, transcripts
from memlane.capture.distil.features import Place, features
from memlane.capture.distil.passages import Passage, passages
from memlane.capture.distil.session import Run, Said, Session
from memlane.capture.distil.summaries import sections
from memlane.core.progress import tell

_PIECE = 1 << 20  # bytes
_BACK = 1 << 18  # bytes before a place that are read for what was said last
MB = 1_000_000


class Seen(NamedTuple):
    """A passage of what was said, and its signs."""

    passage: Passage
    said: Said
    section: str  # what the section of the summary is about; "" outside of summaries
    part: int  # the number of the section
    signs: dict[str, float]
    against: tuple[str, ...] | None = None  # what of the assistant's words it corrects; None: it is no correction
    sure: bool = False  # it is a candidate, whatever else there is to tell


def read(
    source: str | list[Any], session: Session, kind: str | None = None, deadline: float | None = None
) -> Iterator[Said | Run]:
    """What was said in a transcript, in order, from `session.offset` on and until a deadline of the monotonic clock.

    The transcript is a file, or messages that a client has handed over. `session` is filled on the way. Raises
    NotFound, StorageError, InvalidInput for a file that is no transcript.
    """
    known, begun = 0, session.offset
    for number, value in _objects(source, session):
        for spoken in transcripts.conversation(value, kind):
            known += 1
            yield from session.take(*spoken, number)
        if deadline is not None and monotonic() > deadline:
            break
    if session.offset and not known and not begun and isinstance(source, str):
        raise transcript_file.unknown(source)
    yield from session.finish()


def last_words(source: str, offset: int, kind: str | None = None) -> Said | None:
    """What the assistant said last before this place of a transcript; None where the user has spoken since, or where it
    was said too long before. Raises NotFound, StorageError."""
    session, last = Session(), None
    with transcript_file.opened(source) as file:
        for line in transcript_file.lines(file, max(0, offset - _BACK)):
            if line.end > offset:
                break
            for spoken in transcripts.conversation(line.value, kind) if line.value is not None else ():
                last = _last_of(session.take(*spoken, 0), last)
    return _last_of(session.finish(), last)


def _last_of(spoken: Iterator[Said | Run], last: Said | None) -> Said | None:
    for said in spoken:
        if isinstance(said, Said) and not said.aside:
            last = said if said.role == "assistant" else None
    return last


def _objects(source: str | list[Any], session: Session) -> Iterator[tuple[int, Any]]:
    if isinstance(source, list):
        yield from enumerate(transcripts.objects(source), 1)
        return
    with transcript_file.opened(source) as file:
        yield from _numbered(file, session)


def _numbered(file: BinaryIO, session: Session) -> Iterator[tuple[int, Any]]:
    """The objects of a transcript with their lines; those of one JSON document are counted instead."""
    document = None if session.offset else transcript_file.document(file)
    if document is not None:
        session.offset = os.fstat(file.fileno()).st_size
        yield from enumerate(transcripts.objects(document), 1)
        return
    number = _lines_before(file, session.offset)
    size = os.fstat(file.fileno()).st_size // MB
    for line in transcript_file.lines(file, session.offset):
        tell("reading the session, in MB", line.end // MB, size)
        value = line.value
        if value is None and line.data is not None and not line.data.endswith(b"\n"):
            return  # half a line waits for its other half
        number, session.offset = number + 1, line.end
        if value is not None:
            yield number, value


def _lines_before(file: BinaryIO, offset: int) -> int:
    file.seek(0)
    count = 0
    while offset > 0 and (data := file.read(min(offset, _PIECE))):
        count, offset = count + data.count(b"\n"), offset - len(data)
    return count


def seen(said: Said) -> Iterator[Seen]:
    """The passages of one thing that was said."""
    if said.role == "summary":
        for number, section in enumerate(sections(said.text)):
            for passage in passages(section.text):
                signs = features(passage, Place(said, section.about, 0))
                if section.about != "pending" or "says what to do" not in signs:  # the session went on and did it
                    yield Seen(passage, said, section.about, number, signs)
        return
    for passage in passages(said.text, own=said.role != "assistant"):
        yield Seen(passage, said, "", 0, features(passage, Place(said, "", len(said.text))))
