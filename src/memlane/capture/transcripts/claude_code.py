"""Claude Code: `~/.claude/projects/<project>/<session>.jsonl`, one line per content block.

The blocks of one message share `message.id`; results of tools may stand between them. Lines of subagents
(`isSidechain`), of the program itself (`isMeta`, a synthetic model, API errors) and compaction summaries were not
said by the assistant to the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, listed, texts, word, words

_WRITES = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


def knows(line: dict[str, Any]) -> bool:
    return isinstance(line.get("type"), str) and ("message" in line or "sessionId" in line or "leafUuid" in line)


def read(line: dict[str, Any]) -> Entry:
    message = line.get("message")
    if line["type"] not in ("user", "assistant") or not isinstance(message, dict):
        return Entry()
    entry = Entry(
        at=line.get("timestamp"),
        cwd=word(line.get("cwd")),
        branch=word(line.get("gitBranch")),
        thread=word(line.get("sessionId")),
    )
    content = message.get("content")
    if line["type"] == "user" or message.get("role") == "user":
        own = not (line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary"))
        return entry._replace(asked=own and texts(content, "text") != "")
    if line.get("isSidechain"):
        return Entry(texts(content, "text"), at=entry.at, skip="sidechain")
    return entry._replace(
        text=texts(content, "text"),
        key=word(message.get("id")),
        skip=_skip(line, message),
        files=words(_files(content)),
    )


def _skip(line: dict[str, Any], message: dict[str, Any]) -> str:
    if line.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
        return "error"
    return "meta" if line.get("isMeta") or line.get("isCompactSummary") else ""


def _files(content: Any) -> Iterator[Any]:
    """The paths that tools were told to write."""
    for block in listed(content):
        if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") in _WRITES:
            arguments = block.get("input")
            if isinstance(arguments, dict):
                yield arguments.get("file_path") or arguments.get("notebook_path")


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """What the line says, in order. Not what the program itself says (`isMeta`, a synthetic model).

    What the user types while the assistant works waits in a queue. It gets a line of its own, as a prompt or as an
    attachment, or (in older versions) none: then it was handed over when it was taken out of the queue.
    """
    if line["type"] == "queue-operation":
        yield Part("queue", word(line.get("content")), name=word(line.get("operation")))
        return
    if line["type"] == "attachment" and isinstance(queued := line.get("attachment"), dict):
        if queued.get("type") == "queued_command" and queued.get("commandMode") in (None, "prompt"):
            yield Part("user", texts(queued.get("prompt"), "text"), aside=bool(line.get("isSidechain")))
        return
    message = line.get("message")
    if line["type"] not in ("user", "assistant") or not isinstance(message, dict) or line.get("isMeta"):
        return
    if _skip(line, message) == "error":
        return
    aside = bool(line.get("isSidechain"))
    content = message.get("content")
    role = "summary" if line.get("isCompactSummary") else "user" if message.get("role") == "user" else "assistant"
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else listed(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            yield Part(role, word(block.get("text")), aside=aside)
        elif kind == "tool_use":
            yield Part("call", "", word(block.get("id")), word(block.get("name")), block.get("input"), aside=aside)
        elif kind == "tool_result":
            text, failed = texts(block.get("content"), "text"), block.get("is_error") is True
            yield Part("result", text, word(block.get("tool_use_id")), failed=failed, aside=aside)
