"""Plain messages: lines or lists of {role, content, timestamp}, and the older form of a transcript,
{transcript: [{role, content, timestamp}], session_id, working_directory}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, texts, word

_TIMES = ("timestamp", "created_at", "createdAt", "create_time", "time", "ts")
_HEADER = frozenset({"session_id", "sessionId", "working_directory", "cwd"})


def knows(line: dict[str, Any]) -> bool:
    return ("content" in line and isinstance(line.get("role") or line.get("type"), str)) or not _HEADER.isdisjoint(line)


def read(line: dict[str, Any]) -> Entry:
    entry = Entry(
        cwd=word(line.get("working_directory")) or word(line.get("cwd")),
        thread=word(line.get("session_id")) or word(line.get("sessionId")),
    )
    role = line.get("role") or line.get("type")
    if role == "user":
        return entry._replace(asked=True)
    if role not in ("assistant", "model"):
        return entry
    return entry._replace(
        text=texts(line.get("content"), "text", "output_text"),
        key=word(line.get("id")),
        at=next((line[name] for name in _TIMES if line.get(name)), None),
    )


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """The words of the message."""
    role = {"user": "user", "assistant": "assistant", "model": "assistant"}.get(
        word(line.get("role") or line.get("type"))
    )
    if role is not None:
        yield Part(role, texts(line.get("content"), "text", "input_text", "output_text"))
