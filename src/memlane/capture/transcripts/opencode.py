"""opencode: its database, one {info, parts} for each message, as the plugin hands them over, too, and what `opencode
export` prints: {info, messages}.

A part is text, a call of a tool with its answer, or something for the screen. What opencode itself adds to a message of
the user is `synthetic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, listed, patched, strings, word, words
from memlane.core.dates import iso, moment

_WRITES = frozenset({"write", "edit", "multiedit", "apply_patch"})


def knows(line: dict[str, Any]) -> bool:
    info = line.get("info")
    return isinstance(info, dict) and ("parts" in line or "directory" in info)


def read(line: dict[str, Any]) -> Entry:
    info = line["info"]
    if "parts" not in line:
        return Entry(cwd=word(info.get("directory")), thread=word(info.get("id")), aside=bool(info.get("parentID")))
    path, time = info.get("path"), info.get("time")
    entry = Entry(
        at=iso(moment(time.get("created"))) if isinstance(time, dict) else None,
        cwd=word(path.get("cwd")) if isinstance(path, dict) else "",
        thread=word(info.get("sessionID")),
    )
    if info.get("role") == "user":
        return entry._replace(asked=_said(line) != "")
    return entry._replace(
        text=_said(line),
        key=word(info.get("id")),
        skip="meta" if info.get("summary") is True else "",
        files=words(_files(line)),
    )


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """What the message says, and the tools it called with what they answered."""
    info = line["info"]
    role = "summary" if info.get("summary") is True else word(info.get("role"))
    if "parts" not in line or role not in ("user", "assistant", "summary"):
        return
    yield Part(role, _said(line))
    for part in _of_type(line, "tool"):
        id, name, state = word(part.get("callID")), word(part.get("tool")), part.get("state")
        if isinstance(state, dict):
            yield Part("call", "", id, name, state.get("input"))
            answer = "\n".join(strings([state.get("output"), state.get("error")]))
            yield Part("result", answer, id, failed=state.get("status") == "error")


def _said(line: dict[str, Any]) -> str:
    own = (part for part in _of_type(line, "text") if not (part.get("synthetic") or part.get("ignored")))
    return "\n".join(words(part.get("text") for part in own))


def _files(line: dict[str, Any]) -> Iterator[Any]:
    """The paths that tools were told to write."""
    for part in _of_type(line, "tool"):
        state = part.get("state")
        told = state.get("input") if isinstance(state, dict) else None
        if part.get("tool") in _WRITES and isinstance(told, dict):
            yield told.get("filePath")
            yield from patched(told)


def _of_type(line: dict[str, Any], type: str) -> Iterator[dict[str, Any]]:
    return (part for part in listed(line["parts"]) if isinstance(part, dict) and part.get("type") == type)
