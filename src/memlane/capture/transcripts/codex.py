"""Codex: `~/.codex/sessions/<date>/rollout-….jsonl`, lines of {timestamp, type, payload}.

What was said is in `response_item` messages; `event_msg` lines repeat it for the screen and are left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from memlane.capture.transcripts.entry import Entry, strings, texts, word, words

_PATCHED = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def knows(line: dict[str, Any]) -> bool:
    return isinstance(line.get("payload"), dict) and isinstance(line.get("type"), str)


def read(line: dict[str, Any]) -> Entry:
    payload = line["payload"]
    if line["type"] == "session_meta":
        source = payload.get("source")
        return Entry(
            cwd=word(payload.get("cwd")),
            thread=word(payload.get("id")) or word(payload.get("session_id")),
            aside=(isinstance(source, dict) and "subagent" in source) or payload.get("thread_source") == "subagent",
        )
    if line["type"] == "turn_context":
        return Entry(cwd=word(payload.get("cwd")))
    if line["type"] != "response_item":
        return Entry()
    if payload.get("type") == "message":
        if payload.get("role") == "user":
            return Entry(asked=True)
        if payload.get("role") == "assistant":
            text = texts(payload.get("content"), "output_text", "text")
            return Entry(text, word(payload.get("id")), line.get("timestamp"))
    elif payload.get("type") in ("function_call", "custom_tool_call", "local_shell_call"):
        return Entry(files=words(_patched(payload)))
    return Entry()


def _patched(payload: dict[str, Any]) -> list[str]:
    """The files that a call of apply_patch names, whether as a tool of its own or as a command of the shell."""
    arguments: Any = payload.get("input") or payload.get("arguments") or payload.get("action")
    if isinstance(arguments, str) and arguments.lstrip().startswith(("{", "[")):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return []
    return [file for text in strings(arguments) if "*** Begin Patch" in text for file in _PATCHED.findall(text)]
