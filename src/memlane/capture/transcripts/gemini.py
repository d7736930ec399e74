"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, and the older `session-*.json` with all messages in it.

A message is written again under its id when it grows or when its tools have answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, listed, strings, texts, word, words

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_WRITES = frozenset({"write_file", "replace", "edit"})


def knows(line: dict[str, Any]) -> bool:
    return (line.get("type") in _TYPES and "content" in line) or "projectHash" in line or "$rewindTo" in line


def read(line: dict[str, Any]) -> Entry:
    if line.get("type") == "user":
        return Entry(asked=texts(line.get("content"), "text") != "")  # else it is what a tool answered
    if line.get("type") == "gemini":
        return Entry(
            texts(line.get("content"), "text"),
            word(line.get("id")),
            line.get("timestamp"),
            files=words(_files(line.get("toolCalls"))),
        )
    return Entry(thread=word(line.get("sessionId")), aside=line.get("kind") == "subagent")


def _files(calls: Any) -> Iterator[Any]:
    """The paths that tools were told to write."""
    for call in listed(calls):
        if isinstance(call, dict) and call.get("name") in _WRITES and isinstance(call.get("args"), dict):
            yield call["args"].get("file_path") or call["args"].get("absolute_path")


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """What the line says: the user's or the model's words, and the tools it called with what they answered."""
    role = {"user": "user", "gemini": "assistant"}.get(word(line.get("type")))
    if role is None:
        return
    yield Part(role, texts(line.get("content"), "text"))
    for call in listed(line.get("toolCalls")):
        if isinstance(call, dict):
            id, name = word(call.get("id")), word(call.get("name"))
            yield Part("call", "", id, name, call.get("args"))
            yield Part("result", "\n".join(strings(call.get("result"))), id, failed=call.get("status") == "error")
