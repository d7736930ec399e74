"""The formats of transcripts: one small module per client, and all of them turn a line into an `Entry`.

Each module has `knows(line)`, whether a JSON object is a line of this format, `read(line)`, and `parts(line)`, which
tells it as a conversation: who said what, and what tools were told and answered. Each line is read by itself, so a file
needs no header and reading can start anywhere. Does not open files and does not choose what is kept.

To add a format, write a module with these three functions and add its name to KINDS.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part

KINDS = ("claude-code", "codex", "gemini", "opencode", "windsurf", "plain")
_LISTS = ("transcript", "messages")


def entries(value: Any, kind: str | None = None) -> Iterator[tuple[dict[str, Any], Entry | None]]:
    """The objects of a line, or of a whole JSON document, in order, each with what it says.

    `kind` names the format; without it, the first format that knows an object reads it. An object that no format
    knows has no entry.
    """
    for line in objects(value):
        reader = _reader_of(line, kind)
        yield line, reader.read(line) if reader else None


def conversation(value: Any, kind: str | None = None) -> Iterator[tuple[dict[str, Any], Entry, list[Part]]]:
    """As `entries`, for the objects that a format knows, each with what it says as a conversation."""
    for line in objects(value):
        if reader := _reader_of(line, kind):
            yield line, reader.read(line), list(reader.parts(line))


def _reader_of(line: dict[str, Any], kind: str | None) -> Any:
    readers = map(_reader, (kind,) if kind else KINDS)  # imported one by one: a hook has no time to waste
    return next((reader for reader in readers if reader.knows(line)), None)


@cache
def _reader(kind: str) -> Any:
    return import_module(f"memlane.capture.transcripts.{kind.replace('-', '_')}")


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The single objects of a document: its own keys first, as a header, then the messages it lists.

    An object with a type is one line, whatever it lists: the log of a request repeats all that was said before.
    """
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
    elif isinstance(value, dict) and isinstance(value.get("type"), str):
        yield value
    elif isinstance(value, dict):
        inner = value.get("$set", value)  # Gemini: new values for the header
        for name in _LISTS:
            if isinstance(inner, dict) and isinstance(inner.get(name), list):
                yield {key: item for key, item in inner.items() if key != name}
                yield from objects(inner[name])
                return
        yield inner if isinstance(inner, dict) else value
