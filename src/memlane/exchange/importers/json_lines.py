"""Files of JSON, with one object a line or as one document, as several programs write them. Damage is never quoted."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from memlane.core.model import Problem
from memlane.disk import files, log

T = TypeVar("T")

MAX_LINE = 64 * 1024 * 1024  # bytes: a memory of 10 MB, with every character escaped
MAX_DOCUMENT = 1024 * 1024 * 1024  # bytes: years of conversations


def parsed(path: Path, parse: Callable[[dict[str, Any]], T]) -> Iterator[T | Problem]:
    """What `parse` makes of the object on each line. A line that is no object is a Problem, and so is one for which
    `parse` raises ValueError: its message says what is wrong."""
    try:
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            try:
                result: T | Problem = parse(_object(line))
            except ValueError as error:
                result = Problem(path, str(error), number)
            yield result
    except OSError as error:
        yield files.unreadable(str(path), error)


def first(path: Path) -> dict[str, Any]:
    """The object on the first line that is not blank; {} when there is none. Tells what kind of file this is."""
    try:
        return _object(next((line for line in _lines(path) if line.strip(b" \t\r\n\xef\xbb\xbf")), b""))
    except (OSError, ValueError):
        return {}


def document(path: Path, limit: int = MAX_DOCUMENT) -> Any:
    """The value of a file that is one JSON document; None when it is none, or too large."""
    try:
        if not path.is_file() or os.path.getsize(path) > limit:
            return None
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, of each at most a little more than MAX_LINE bytes. A pipe is refused, not waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EISDIR, "not a regular file", str(path))
        while line := file.readline(MAX_LINE + 1):
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE)
            yield line


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise ValueError(f"is longer than {MAX_LINE:,} bytes and is not read")
    try:
        value = log.json_of(line.removeprefix(log.BOM).decode(), ...)
    except UnicodeDecodeError:
        value = ...
    if not isinstance(value, dict):
        raise ValueError("is not JSON" if value is ... else "is not a JSON object")
    return value


def is_unicode(value: Any) -> bool:
    """Whether a JSON value can be written: half of a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
