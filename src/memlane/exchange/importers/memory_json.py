"""The MCP reference server's knowledge graph: memory.jsonl, one object a line.

    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Spanish"]}
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"}

Each entity becomes a note, as `exchange.entities` writes it, so that the toolset `knowledge-graph` goes on with the
graph. It has no dates: all notes get the file's own. An entity that is there twice becomes one note with the
observations of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any

from memlane.core.model import Problem
from memlane.disk.names import folded
from memlane.exchange.entities import Entity, Relation, draft, file_for
from memlane.exchange.importers import json_lines
from memlane.exchange.importers.folder import changed
from memlane.exchange.importers.item import Found, Item

_KEYS = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}


def find(path: Path) -> Path | None:
    """The path, if its first line is part of a graph."""
    return path if json_lines.first(path).get("type") in tuple(_KEYS) else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    entities: dict[str, tuple[str, list[str]]] = {}
    relations: dict[str, dict[tuple[str, str], None]] = {}  # wording and target, by where they start
    for part in json_lines.parsed(path, _checked):
        if isinstance(part, Problem):
            yield part
        elif part.get("type") == "entity":
            _, observations = entities.setdefault(part["name"], (part["entityType"], []))
            observations += [text for text in part.get("observations", []) if text not in observations]
        elif part.get("type") == "relation":
            relations.setdefault(part["from"], {})[part["relationType"], part["to"]] = None
    files = _files([*entities, *(other for pairs in relations.values() for _, other in pairs)])
    for name in relations.keys() - entities.keys():
        yield Problem(path, f"has {len(relations[name])} relations of an entity that it does not have")
    for name, (kind, observations) in entities.items():
        entity = Entity(name, kind, tuple(observations), tuple(starmap(Relation, relations.get(name, ()))))
        yield Item(name, replace(draft(entity, files), created_at=changed(str(path))), files[name])


def _checked(part: dict[str, Any]) -> dict[str, Any]:
    """The object of a line. Raises ValueError, but not for one of another type: the server passes those over, too."""
    keys = next((keys for kind, keys in _KEYS.items() if part.get("type") == kind), None)
    if keys is None:
        return part
    if not json_lines.is_unicode(part):
        raise ValueError("is not valid Unicode")
    if not all(isinstance(part.get(key), str) for key in keys) or not part[keys[0]].strip():
        raise ValueError(f"is not a whole {part['type']}")
    seen = part.get("observations", [])
    if part["type"] == "entity" and not (isinstance(seen, list) and all(isinstance(text, str) for text in seen)):
        raise ValueError("has observations that are not a list of text")
    return part


def _files(names: list[str]) -> dict[str, str]:
    """A note for each entity; no two differ only in case, which not every file system can tell."""
    files: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        files[name] = file_for(name, taken)
        taken.add(folded(files[name]))
    return files
