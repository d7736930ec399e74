"""An agent file of Letta, `.af`: the blocks of its memory, and the files that it was given.

    {"agents": [{"name": "helper", "block_ids": ["block-0"], …}],
     "blocks": [{"id": "block-0", "label": "human", "value": "Name: Ada", "description": "…", "tags": []}],
     "files": [{"file_name": "faq.md", "content": "…"}], …}

Some are the same as JSON within a string, and older ones are the agent itself, with its blocks under `core_memory`. A
block becomes a note in the folder of its agent, under its label. What was said to the agent is left out: it is there as
the model was sent it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.model import Draft, Problem
from memlane.exchange.importers import json_lines
from memlane.exchange.importers.folder import safe_name
from memlane.exchange.importers.item import Found, Item, Skipped

MAX_BYTES = 200 * 1024 * 1024


def find(path: Path) -> Path | None:
    """The path, if it is an agent file."""
    return path if _blocks(_document(path)) is not None else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    value = _document(path)
    blocks = _blocks(value)
    if blocks is None:
        raise InvalidInput(f"{path.name} is not an agent file of Letta.", hint="Export the agent as an .af file.")
    owners = _owners(value)
    default = _name(value, path)
    made = moment(value.get("created_at"))
    keys: set[str] = set()
    for number, block in enumerate(blocks, 1):
        if not isinstance(block, dict) or not isinstance(block.get("value"), str) or not json_lines.is_unicode(block):
            yield Problem(path, f"block {number} is not a whole one")
            continue
        label = str(block.get("label") or "block")
        agent = owners.get(str(block.get("id")), default)
        key = _free(f"{agent}/{label}", keys)
        if not block["value"].strip():
            yield Skipped(key, "empty")
            continue
        tags = [tag for tag in block.get("tags") or () if isinstance(tag, str)]
        kept = {"description": block.get("description"), "read_only": block.get("read_only") or None}
        fields = {name: kept_value for name, kept_value in kept.items() if kept_value}
        yield _item(key, f"{agent}: {label}", block["value"], tags, moment(block.get("created_at")) or made, fields)
    for file in value.get("files") or ():
        text = file.get("content") if isinstance(file, dict) else None
        name = str(file.get("file_name") or "file") if isinstance(file, dict) else "file"
        if isinstance(text, str) and text.strip() and json_lines.is_unicode(file):
            yield _item(_free(f"{default}/files/{name}", keys), name, text, [], made, {})
        else:
            yield Skipped(name, "its text is not in the file")


def _document(path: Path) -> dict[str, Any]:
    value = json_lines.document(path, MAX_BYTES)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _blocks(value: dict[str, Any]) -> list[Any] | None:
    """The blocks of an agent file; None when it is none."""
    if isinstance(value.get("agents"), list) and isinstance(value.get("blocks"), list):
        return list(value["blocks"])
    old = value.get("core_memory")
    return list(old) if "agent_type" in value and isinstance(old, list) else None


def _owners(value: dict[str, Any]) -> dict[str, str]:
    """The names of the agents by the ids of their blocks; a block of several is the first one's."""
    owners: dict[str, str] = {}
    for agent in value.get("agents") or ():
        for id in (agent.get("block_ids") or ()) if isinstance(agent, dict) else ():
            owners.setdefault(str(id), str(agent.get("name") or "agent"))
    return owners


def _name(value: dict[str, Any], path: Path) -> str:
    agents = [agent for agent in value.get("agents") or () if isinstance(agent, dict)]
    return str((agents[0] if agents else value).get("name") or path.stem)


def _free(key: str, taken: set[str]) -> str:
    """A key of its own: an agent can have two blocks of one label."""
    free, number = key, 1
    while free in taken:
        number += 1
        free = f"{key}-{number}"
    taken.add(free)
    return free


def _item(key: str, title: str, text: str, tags: list[str], created: Any, fields: dict[str, Any]) -> Item:
    draft = Draft(text.strip() + "\n", title, tuple(dict.fromkeys(tags)), "fact", created_at=created, fields=fields)
    return Item(key, draft, safe_name(f"letta/{key}"))
