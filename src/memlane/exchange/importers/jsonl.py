"""Memlane's own memories: the lines that `memlane export` writes, and stores of the five lanes lying elsewhere.

    {"id":"notes:deploy-day","lane":"notes","title":"Deploy day","text":"…","tags":[],"type":"fact", …,"fields":{}}

They come back as they were, with their ids, dates and fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.model import Draft, Memory, Problem
from memlane.disk import files
from memlane.exchange.importers.item import Found, Item
from memlane.lanes import NAMES, Lane, open_lane, scan

_TEXTS = ("type", "status", "scope", "project", "thread")


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    found = _parsed(line)
                    yield _item(found) if isinstance(found, Memory) else Problem(path, found, number)
    except OSError as error:
        yield files.unreadable(str(path), error)


def read_store(kind: str, path: Path) -> Iterator[Found]:
    """The memories of a lane at this path."""
    return _scanned(open_lane(kind, path))


def read_bank(path: Path) -> Iterator[Found]:
    """The memories of all lanes of the bank that a folder has."""
    from memlane.bank import Bank

    bank = Bank.open(path)
    for name in NAMES:
        yield from _scanned(bank.lane(name))


def _scanned(lane: Lane) -> Iterator[Found]:
    """What a lane holds; topics oldest first, as they were written."""
    found = list(scan(lane))
    for one in reversed(found) if lane.name == "topics" else found:
        yield _item(one) if isinstance(one, Memory) else one


def _item(memory: Memory) -> Item:
    return Item(memory.id, Draft(memory.text, memory.title, memory.tags), memory=memory)


def _parsed(line: bytes) -> Memory | str:
    """The memory of a line, or what is wrong with it, never quoting it."""
    try:
        values: Any = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(values, dict):
        return "is not a JSON object"
    lane, id, text = (values.get(key) for key in ("lane", "id", "text"))
    if lane not in NAMES or not isinstance(id, str) or not id.startswith(f"{lane}:") or not isinstance(text, str):
        return "has no lane, id or text that fit"
    tags, fields = values.get("tags") or [], values.get("fields") or {}
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or not isinstance(fields, dict):
        return "has tags or fields of the wrong type"
    if not all(isinstance(values.get(key), str | None) for key in (*_TEXTS, "title", "created_at", "updated_at")):
        return "has a value of the wrong type: text is expected"
    words: dict[str, Any] = {key: values.get(key) for key in _TEXTS}
    return Memory(
        id=id,
        lane=lane,
        text=text,
        title=values.get("title") or "",
        file="",
        tags=tuple(tags),
        **words,
        created_at=moment(values.get("created_at")),
        updated_at=moment(values.get("updated_at")),
        fields=fields,
    )
