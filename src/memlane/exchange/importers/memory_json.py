"""The MCP reference server's knowledge graph: memory.jsonl, one object a line.

    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Spanish"]}
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"}

One note for each entity: its observations as a list, its relations as links that carry their wording. The graph has no
dates: the file's own stands for all. An entity that stands there twice is one, with the observations of both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane.core.model import Draft, Problem
from memlane.disk import files
from memlane.disk.names import folded
from memlane.exchange.importers.folder import changed, is_unicode, safe_name
from memlane.exchange.importers.item import Found, Item

FOLDER = "entities"
_NOT_IN_A_LINK = re.compile(r"[\[\]|]+")


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    entities: dict[str, tuple[str, list[str]]] = {}
    relations: dict[str, list[tuple[str, str]]] = {}
    for found in _lines(path):
        if isinstance(found, Problem):
            yield found
        elif found["type"] == "entity":
            kind, observations = entities.setdefault(found["name"], (found["entityType"], []))
            observations += [text for text in found["observations"] if text not in observations]
        else:
            mine = relations.setdefault(found["from"], [])
            if (pair := (found["relationType"], found["to"])) not in mine:
                mine.append(pair)
    names = _names([*entities, *(other for pairs in relations.values() for _, other in pairs)])
    for name in relations.keys() - entities.keys():
        yield Problem(path, f"has {len(relations[name])} relations of an entity that it does not have")
    for name, (kind, observations) in entities.items():
        links = [_link(wording, names[other]) for wording, other in relations.get(name, ())]
        parts = ["\n".join(map(_bullet, observations)), "\n".join(links)]
        body = "\n\n".join([f"# {' '.join(name.split())}", *filter(None, parts)]) + "\n"
        tags = (tag,) if (tag := " ".join(kind.split())) else ()
        yield Item(name, Draft(body, " ".join(name.split()), tags, "fact", created_at=changed(str(path))), names[name])


def _lines(path: Path) -> Iterator[dict[str, Any] | Problem]:
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    found = _parsed(line)
                    if found is not None:
                        yield Problem(path, found, number) if isinstance(found, str) else found
    except OSError as error:
        yield files.unreadable(str(path), error)


def _parsed(line: bytes) -> dict[str, Any] | str | None:
    """What a line holds, what is wrong with it, or None for a line of another type: the server passes those over."""
    try:
        found = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(found, dict):
        return "is not a JSON object"
    keys = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}.get(found.get("type", ""))
    if keys is None:
        return None
    if not is_unicode(found):
        return "is not valid Unicode"
    if not all(isinstance(found.get(key), str) for key in keys) or not found[keys[0]].strip():
        return f"is not a whole {found['type']}"
    seen = found.get("observations", [])
    if found["type"] == "entity" and not (isinstance(seen, list) and all(isinstance(text, str) for text in seen)):
        return "has observations that are not a list of text"
    return {"observations": [], **found}


def _names(entities: list[str]) -> dict[str, str]:
    """A note for each entity; no two differ only in case, which not every file system can tell."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for entity in dict.fromkeys(entities):
        base = name = f"{FOLDER}/{safe_name(_NOT_IN_A_LINK.sub('-', entity.replace('/', '-')))}"
        number = 1
        while folded(name) in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(folded(name))
        names[entity] = name
    return names


def _bullet(text: str) -> str:
    return "- " + "\n  ".join(text.strip().splitlines())


def _link(wording: str, name: str) -> str:
    words = " ".join(_NOT_IN_A_LINK.sub(" ", wording).split()) or "related_to"
    return f"- {words} [[{name}|type:{words}]]"
