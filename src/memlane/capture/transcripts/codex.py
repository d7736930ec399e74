"""Codex: `~/.codex/sessions/<date>/rollout-….jsonl`, lines of {timestamp, type, payload}.

What was said is in `response_item` messages; `event_msg` lines repeat it for the screen and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, parsed, patched, strings, texts, word, words
from memlane.core.patterns import lazily

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_FAILED = lazily(r"\b(?:[Ee]xit(?:ed with)? code:? [1-9]|failed in sandbox)")


def knows(line: dict[str, Any]) -> bool:
    return isinstance(line.get("payload"), dict) and isinstance(line.get("type"), str)


def read(line: dict[str, Any]) -> Entry:
    payload = line["payload"]
    if line["type"] == "session_meta":
        source, git = payload.get("source"), payload.get("git")
        return Entry(
            cwd=word(payload.get("cwd")),
            branch=word(git.get("branch")) if isinstance(git, dict) else "",
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
    elif payload.get("type") in _CALLS:
        return Entry(files=words(patched(_arguments(payload))))
    return Entry()


def _arguments(payload: dict[str, Any]) -> Any:
    return parsed(payload.get("input") or payload.get("arguments") or payload.get("action"))


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """What the line says: a message, a call of a tool, its output, or the summary of a compaction."""
    payload, kind = line["payload"], line["payload"].get("type")
    if line["type"] == "compacted":
        yield Part("summary", word(payload.get("message")))
    elif line["type"] != "response_item":
        return
    elif kind == "message" and payload.get("role") in ("user", "assistant"):
        yield Part(payload["role"], texts(payload.get("content"), "input_text", "output_text", "text"))
    elif kind in _CALLS:
        name = word(payload.get("name")) or "shell"
        yield Part("call", "", word(payload.get("call_id")), name, _arguments(payload))
    elif isinstance(kind, str) and kind.endswith("_output"):
        output = parsed(payload.get("output"))
        text = output.get("output") if isinstance(output, dict) and "output" in output else payload.get("output")
        text = text if isinstance(text, str) else "\n".join(strings(text))
        yield Part("result", text, word(payload.get("call_id")), failed=bool(_FAILED.search(text[:400])))
