"""Windsurf: `~/.windsurf/transcripts/<trajectory>.jsonl`, one step a line, named by its type, which is also the key of
what it says. Written from the vendor's documentation. Steps have no time there, so that none becomes a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlane.capture.transcripts.entry import Entry, Part, word, words

_STEPS = ("user_input", "planner_response", "code_action")


def knows(line: dict[str, Any]) -> bool:
    kind = line.get("type")
    return kind in _STEPS and isinstance(line.get(kind), dict)


def read(line: dict[str, Any]) -> Entry:
    step = line[line["type"]]
    if line["type"] == "user_input":
        return Entry(asked=True)
    if line["type"] == "planner_response":
        return Entry(word(step.get("response")), at=line.get("timestamp"))
    return Entry(files=words([step.get("path")]))


def parts(line: dict[str, Any]) -> Iterator[Part]:
    """What the user or the assistant said in this step."""
    step = line[line["type"]]
    if line["type"] == "user_input":
        yield Part("user", word(step.get("user_response")))
    elif line["type"] == "planner_response":
        yield Part("assistant", word(step.get("response")))
