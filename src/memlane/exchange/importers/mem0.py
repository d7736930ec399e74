"""A JSON export of mem0: a list of memories, or an object with it under `results` or `memories`.

    {"results": [{"id": "…", "memory": "Prefers tea", "user_id": "ada", "categories": ["food"],
                  "metadata": {"source": "chat"}, "created_at": "2024-07-01T10:00:00-07:00"}]}

Categories become tags, the run the thread; whose memory it is, its metadata and updated_at are kept as fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.model import Draft, Problem
from memlane.core.text import first_line, slug
from memlane.exchange.importers import folder, json_lines
from memlane.exchange.importers.item import Found, Item

MAX_BYTES = 200 * 1024 * 1024
_KEPT = ("user_id", "agent_id", "app_id", "actor_id", "metadata", "updated_at", "expiration_date")


def find(path: Path) -> Path | None:
    """The path, if it is an export of mem0."""
    return path if _memories(path) is not None else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    memories = _memories(path)
    if memories is None:
        raise InvalidInput(
            f"{path.name} is not a JSON export of mem0.", hint='Give a list of memories, or {"results": [...]}.'
        )
    for number, memory in enumerate(memories, 1):
        if not _is_memory(memory) or not memory["memory"].strip():
            yield Problem(path, f"memory {number} has no text")
        elif not json_lines.is_unicode(memory):
            yield Problem(path, f"memory {number} is not valid Unicode")
        else:
            yield _item(memory, memory["memory"])


def _memories(path: Path) -> list[Any] | None:
    """The list of memories in a file; None when it is no export."""
    value = json_lines.document(path, MAX_BYTES)
    if isinstance(value, dict):
        value = next((value[key] for key in ("results", "memories") if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) and (not value or any(map(_is_memory, value))) else None


def _is_memory(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("memory"), str)


def _item(memory: dict[str, Any], text: str) -> Item:
    categories = memory.get("categories")
    tags = [tag for tag in categories if isinstance(tag, str)] if isinstance(categories, list) else []
    run = memory.get("run_id")
    title = first_line(text, 80)
    draft = Draft(
        text if text.endswith("\n") else text + "\n",  # as the text of a file
        title,
        tuple(dict.fromkeys(tags)),
        "fact",
        thread=str(run) if run else None,
        created_at=moment(memory.get("created_at")) or moment(memory.get("updated_at")),
        fields={key: memory[key] for key in _KEPT if memory.get(key) not in (None, "", {}, [])},
    )
    key = str(memory.get("id") or memory.get("hash") or hashlib.sha256(text.encode()).hexdigest()[:12])
    return Item(key, draft, f"mem0/{folder.safe_name(slug(title) or 'memory')}")
