"""An export of ChatGPT: conversations.json, alone or in the folder that the export unpacks to.

    [{"conversation_id": "…", "title": "Bread", "create_time": 1700000000.0, "current_node": "c",
      "mapping": {"c": {"parent": "b", "message": {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}}, …}}]

The mapping is a tree, for an answer can be asked for again: what counts is the way from its root to `current_node`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.model import Problem
from memlane.exchange.importers import conversations
from memlane.exchange.importers.item import Found

_WHO = {"user": "You", "assistant": "ChatGPT"}
_SAID = ("text", "multimodal_text", "code")  # not what the model thought, looked up or was told in secret


def find(path: Path) -> Path | None:
    """The path, if it is an export or has one."""
    return path if conversations.exported(path, "mapping") else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    for file in conversations.exported(path, "mapping"):
        for number, part in enumerate(conversations.objects(file, "conversation"), 1):
            if isinstance(part, Problem):
                yield part
                continue
            id, mapping = part.get("conversation_id") or part.get("id"), part.get("mapping")
            if not isinstance(id, str) or not isinstance(mapping, dict):
                yield Problem(file, f"conversation {number} has no id or no messages")
                continue
            dates = (part.get("create_time"), part.get("update_time"))
            yield conversations.found(
                "chatgpt", id, part.get("title"), _turns(mapping, part.get("current_node")), *dates
            )


def _turns(mapping: dict[str, Any], last: Any) -> Iterator[tuple[str, str]]:
    """Who said what, on the way from the root to the last node."""
    if last not in mapping:
        last = next(reversed(mapping), None)
    way: dict[Any, Any] = {}  # against a circle, too
    while isinstance(last, str) and last not in way and isinstance(mapping.get(last), dict):
        way[last] = mapping[last].get("message")
        last = mapping[last].get("parent")
    for message in reversed(way.values()):
        if isinstance(message, dict) and (said := _said(message)):
            yield said


def _said(message: dict[str, Any]) -> tuple[str, str] | None:
    author, content, metadata = (message.get(key) for key in ("author", "content", "metadata"))
    who = _WHO.get(author.get("role", "")) if isinstance(author, dict) else None
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    addressed = message.get("recipient") in (None, "all")  # else it is a call of a tool
    if who is None or hidden or not addressed or not isinstance(content, dict):
        return None
    if content.get("content_type", "text") not in _SAID:
        return None
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else [content.get("text")]
    texts = (part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None for part in parts)
    return who, "\n\n".join(text for text in texts if isinstance(text, str))
