"""A JSON export of mem0: a list of memories, or an object with it under `results` or `memories`.

    {"results": [{"id": "…", "memory": "Prefers tea", "user_id": "ada", "categories": ["food"],
                  "metadata": {"source": "chat"}, "created_at": "2024-07-01T10:00:00-07:00"}]}

Categories become tags, the run the thread; whose memory it is, its metadata and updated_at are kept as fields.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.model import Draft, Problem
from memlane.core.text import first_line, slug
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found, Item

MAX_BYTES = 200 * 1024 * 1024
_KEPT = ("user_id", "agent_id", "app_id", "actor_id", "metadata", "updated_at", "expiration_date")


def memories(path: Path) -> list[Any] | None:
    """The list of memories in a file; None when it is no export."""
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return None
        found = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        found = next((found[key] for key in ("results", "memories") if isinstance(found.get(key), list)), None)
    return found if isinstance(found, list) and (not found or any(map(_is_memory, found))) else None


def _is_memory(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("memory"), str)


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    found = memories(path)
    if found is None:
        raise InvalidInput(
            f"{path.name} is not a JSON export of mem0.", hint='Give a list of memories, or {"results": [...]}.'
        )
    for number, one in enumerate(found, 1):
        if not _is_memory(one) or not one["memory"].strip():
            yield Problem(path, f"memory {number} has no text")
        elif not folder.is_unicode(one):
            yield Problem(path, f"memory {number} is not valid Unicode")
        else:
            yield _item(one, one["memory"])


def _item(one: dict[str, Any], text: str) -> Item:
    categories = one.get("categories")
    tags = [tag for tag in categories if isinstance(tag, str)] if isinstance(categories, list) else []
    fields = {key: folder.plain(one[key]) for key in _KEPT if one.get(key) not in (None, "", {}, [])}
    run = one.get("run_id")
    created = moment(one.get("created_at")) or moment(one.get("updated_at"))
    title = first_line(text, 80)
    draft = Draft(
        _line_ended(text), title, tuple(dict.fromkeys(tags)), "fact", None, str(run) if run else None, created, fields
    )
    key = str(one.get("id") or one.get("hash") or hashlib.sha256(text.encode()).hexdigest()[:12])
    return Item(key, draft, f"mem0/{folder.safe_name(slug(title) or 'memory')}")


def _line_ended(text: str) -> str:
    """A memory as the text of a file, which ends with a line end."""
    return text if text.endswith("\n") else text + "\n"
