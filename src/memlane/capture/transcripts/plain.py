"""Plain messages: lines or lists of {role, content, timestamp}, and the older form of a transcript,
{transcript: [{role, content, timestamp}], session_id, working_directory}. Content is text or blocks; those of opencode
have the calls of tools and their results among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, called, listed, patched, texts, word, words

_TIMES = ("timestamp", "created_at", "createdAt", "create_time", "time", "ts")
_WRITES = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})
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
        files=words(_files(line.get("content"))),
    )


def _files(content: Any) -> Iterator[Any]:
    """The paths that tools were told to write."""
    for block in listed(content):
        if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") in _WRITES:
            told = block.get("input")
            if isinstance(told, dict):
                yield told.get("filePath") or told.get("file_path")
                yield from patched(told)


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """The words of the message, then the tools it called with what they answered."""
    role = {"user": "user", "assistant": "assistant", "model": "assistant"}.get(
        word(line.get("role") or line.get("type"))
    )
    if role is not None:
        yield Part(role, texts(line.get("content"), "text", "input_text", "output_text"))
        yield from called(listed(line.get("content")))
