"""Reading a transcript for the distiller: every passage of what was said, with the signs of its worth. Streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from memlane.capture import transcript_file, transcripts
from memlane.capture.distil.features import Place, features
from memlane.capture.distil.passages import Passage, passages
from memlane.capture.distil.session import Run, Said, Session
from memlane.capture.distil.summaries import sections


class Seen(NamedTuple):
    """A passage of what was said, and its signs."""

    passage: Passage
    said: Said
    section: str  # what the section of the summary is about; "" outside of summaries
    part: int  # the number of the section
    signs: dict[str, float]


def read(path: str, session: Session, kind: str | None = None) -> Iterator[Said | Run]:
    """What was said in a transcript, in order. `session` is filled on the way. Raises NotFound, StorageError,
    InvalidInput for a file that is no transcript."""
    known = objects = 0
    with transcript_file.opened(path) as file:
        for number, value in _numbered(file):
            objects += 1
            for spoken in transcripts.conversation(value, kind):
                known += 1
                yield from session.take(*spoken, number)
    if objects and not known:
        raise transcript_file.unknown(path)
    yield from session.finish()


def _numbered(file: BinaryIO) -> Iterator[tuple[int, Any]]:
    """The objects of a transcript with their lines; those of one JSON document are counted instead."""
    document = transcript_file.document(file)
    if document is None:
        lines = enumerate(transcript_file.lines(file, 0), 1)
        return ((number, value) for number, line in lines if (value := line.value) is not None)
    return enumerate(transcripts.objects(document), 1)


def seen(said: Said) -> Iterator[Seen]:
    """The passages of one thing that was said."""
    if said.role == "summary":
        for number, section in enumerate(sections(said.text)):
            for passage in passages(section.text, own=True):
                yield Seen(passage, said, section.about, number, features(passage, Place(said, section.about, 0)))
        return
    own = said.role != "assistant"
    for passage in passages(said.text, own):
        yield Seen(passage, said, "", 0, features(passage, Place(said, "", len(said.text))))
