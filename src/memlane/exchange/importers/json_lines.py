"""Files with one JSON object a line, as several programs write them. Damage in a line is never quoted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from memlane.core.model import Problem
from memlane.disk import files

T = TypeVar("T")


def parsed(path: Path, parse: Callable[[dict[str, Any]], T]) -> Iterator[T | Problem]:
    """What `parse` makes of the object on each line. A line that is no object is a Problem, and so is one for which
    `parse` raises ValueError: its message says what is wrong."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
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
        with open(path, "rb") as file:
            return _object(next((line for line in file if line.strip(b" \t\r\n\xef\xbb\xbf")), b""))
    except (OSError, ValueError):
        return {}


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def is_unicode(value: Any) -> bool:
    """Whether a JSON value can be written: half of a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
