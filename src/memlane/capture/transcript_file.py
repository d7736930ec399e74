"""A transcript as a file: found in a folder, opened without waiting, read as a stream of JSON lines or as one JSON
document."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from memlane import gate
from memlane.core.errors import InvalidInput, NotFound, StorageError
from memlane.core.values import NamedTuple

MAX_LINE = 16 * 1024 * 1024  # bytes; a longer line is a tool's output, not something that was said
MAX_DOCUMENT = 64 * 1024 * 1024  # bytes of a transcript that is one JSON value: it has to be read at once
_BUFFER = 1 << 20
_BLANK = b"\xef\xbb\xbf \t\r\n"


class Line(NamedTuple):
    """One line of a transcript, from byte `start` to byte `end`. `data` is None when it is too long to be read."""

    start: int
    end: int
    data: bytes | None

    @property
    def value(self) -> dict[str, Any] | None:
        """The JSON object on the line; None when there is none."""
        value = _parsed(self.data) if self.data and self.data.lstrip(_BLANK)[:1] == b"{" else None
        return value if isinstance(value, dict) else None


def within(path: str) -> list[str]:
    """The file itself, or every file of a folder that may be a transcript, in the order of their names. Raises
    InvalidInput when a folder has none."""
    if not os.path.isdir(path):
        return [path]
    found = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith((".jsonl", ".json"))
    ]
    if not found:
        why = f"There are no transcripts in {gate.shown(os.path.basename(os.path.abspath(path)))}."
        raise InvalidInput(why, hint="A transcript is a file that ends in .jsonl or .json.")
    return sorted(found)


def unknown(path: str) -> InvalidInput:
    """The error for a file in which no format knows anything."""
    from memlane.capture.transcripts import KINDS

    why = f"{gate.shown(os.path.basename(path))} is not a transcript that memlane can read."
    return InvalidInput(why, hint=f"It reads: {', '.join(KINDS)}; --from names one.", code="no_transcript")


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The transcript, open for reading; a pipe is refused, not waited for. Raises NotFound, InvalidInput,
    StorageError."""
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"There is no transcript {gate.shown(name)}.", hint="Check the path.") from None
    except OSError as error:
        why = f"{gate.shown(name)} cannot be read: {error.strerror}."
        raise StorageError(why, hint="Check its permissions.") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidInput(f"{gate.shown(name)} is not a file.", hint="Give the transcript itself.")
    with os.fdopen(fd, "rb", _BUFFER) as file:
        yield file


def lines(file: BinaryIO, offset: int) -> Iterator[Line]:
    """Every line after the offset. A last line without a line end is among them, unless it is too long."""
    file.seek(offset)
    while data := file.readline(MAX_LINE):
        start, offset = offset, offset + len(data)
        if len(data) < MAX_LINE or data.endswith(b"\n"):
            yield Line(start, offset, data)
            continue
        while data and not data.endswith(b"\n"):
            data = file.readline(_BUFFER)
            offset += len(data)
        if data:
            yield Line(start, offset, None)


def document(file: BinaryIO) -> Any:
    """The value of a transcript that is one JSON document over several lines; None when it has a value per line."""
    file.seek(0)
    first = file.readline(MAX_LINE)
    if len(first) == MAX_LINE or os.fstat(file.fileno()).st_size > MAX_DOCUMENT:
        return None
    if first.lstrip(_BLANK)[:1] not in (b"", b"[", b"{") or isinstance(_parsed(first), dict):
        return None
    return _parsed(first + file.read())


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
