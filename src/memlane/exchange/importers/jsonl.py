"""The lines that `memlane export` writes.

    {"id":"notes:deploy-day","lane":"notes","title":"Deploy day","text":"…","tags":[],"type":"fact", …,"fields":{}}

The memories come back as they were, with their ids, dates and fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.model import Memory
from memlane.exchange.importers import json_lines
from memlane.exchange.importers.item import Found, Item
from memlane.lanes import NAMES

_TEXTS = ("type", "status", "scope", "project", "thread")
_DATES = ("created_at", "updated_at")


def find(path: Path) -> Path | None:
    """The path, if its first line is a memory of any lane."""
    return path if {"id", "lane", "text"} <= json_lines.first(path).keys() else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return json_lines.parsed(path, _item)


def _item(values: dict[str, Any]) -> Item:
    """The memory of a line. Raises ValueError."""
    lane, id, text = (values.get(key) for key in ("lane", "id", "text"))
    if lane not in NAMES or not isinstance(id, str) or not id.startswith(f"{lane}:") or not isinstance(text, str):
        raise ValueError("has no lane, id or text that fit")
    tags, fields = values.get("tags") or [], values.get("fields") or {}
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or not isinstance(fields, dict):
        raise ValueError("has tags or fields of the wrong type")
    if not all(isinstance(values.get(key), str | None) for key in (*_TEXTS, *_DATES, "title")):
        raise ValueError("has a value of the wrong type: text is expected")
    known: dict[str, Any] = {key: values.get(key) for key in _TEXTS}
    known |= {key: moment(values.get(key)) for key in _DATES}
    old = values.get("replaces") or []
    known["replaces"] = tuple(old) if isinstance(old, list) and all(isinstance(one, str) for one in old) else ()
    return Item.of(Memory(id, lane, text, values.get("title") or "", "", tuple(tags), **known, fields=fields))
