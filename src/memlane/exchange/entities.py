"""An entity of a knowledge graph as the text of a note that people can read, and back, without losing a character.

    # Ada

    - Speaks Spanish

    - works_at [[entities/Acme|type:works_at]]

What a list cannot hold as it is, such as an observation with spaces around it, is written as JSON between backticks.
Text that somebody wrote below the heading without a bullet counts as an observation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memlane.core.model import Draft, Memory
from memlane.disk.names import folded
from memlane.exchange.importers.folder import safe_name

FOLDER = "entities"
NAME, KIND, BARE = "entity", "entity_type", "only_relations"  # front-matter keys, where title and tag do not say it
_NOT_IN_A_LINK = re.compile(r"[\[\]|]+")
_RELATION = re.compile(r"(?P<kind>[^\[\]|`\n]+) \[\[(?P<target>[^\[\]|\n]+)\|type:(?P=kind)\]\]")
_ODD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")  # editors and other programs lose these
_CODED = re.compile(r'`(".*"|\{.*\})`')


class Relation(NamedTuple):
    """Where a relation leads, as seen from the entity that it starts at."""

    kind: str
    to: str


@dataclass(frozen=True, slots=True)
class Entity:
    """One node of the graph. `kind` is None where the graph has relations of it, and nothing else."""

    name: str
    kind: str | None = None
    observations: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()


def draft(entity: Entity, files: Mapping[str, str]) -> Draft:
    """The note of an entity. `files` says which notes entities are in, by their names."""
    title = " ".join(entity.name.split()) or "entity"
    tag = " ".join((entity.kind or "").split())
    own: dict[str, Any] = {} if title == entity.name else {NAME: entity.name}
    own |= {} if tag == (entity.kind or "") and "," not in tag else {KIND: entity.kind}
    own |= {} if entity.kind is not None else {BARE: True}
    parts = [f"# {title}", "\n".join(map(_bullet, entity.observations))]
    parts.append("\n".join(_link(relation, files) for relation in entity.relations))
    return Draft("\n\n".join(filter(None, parts)) + "\n", title, (tag,) if tag else (), "fact", fields=own)


def read(memory: Memory, names: Mapping[str, str]) -> Entity:
    """The entity that a note is about. `names` are those of the entities by the notes that they are in."""
    observations, relations = [], []
    for item in _items(memory.text):
        part = _meant(item)
        if isinstance(part, str):
            observations.append(part)
        else:
            to = part.to if item.startswith("`") else names.get(part.to, part.to.removeprefix(f"{FOLDER}/"))
            relations.append(Relation(part.kind, to))
    kind = memory.fields.get(KIND, memory.tags[0] if memory.tags else "")
    bare = memory.fields.get(BARE) is True
    return Entity(name_of(memory), None if bare else str(kind), tuple(observations), tuple(relations))


def name_of(memory: Memory) -> str:
    return str(memory.fields.get(NAME, memory.title))


def file_for(name: str, taken: Collection[str]) -> str:
    """A note for a new entity; `taken` are the others, folded: not every file system can tell upper from lower case."""
    base = free = f"{FOLDER}/{safe_name(_NOT_IN_A_LINK.sub('-', name.replace('/', '-')))}"
    number = 1
    while folded(free) in taken:
        number += 1
        free = f"{base}-{number}"
    return free


# -- one line


def _bullet(text: str) -> str:
    first, *more = text.split("\n")
    plain = "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in more)])
    exact = text == text.strip() and not _ODD.search(text) and list(_items(plain)) == [text] and _meant(text) == text
    return plain if exact else _coded(text)


def _link(relation: Relation, files: Mapping[str, str]) -> str:
    target = files.get(relation.to, f"{FOLDER}/{relation.to}")
    plain = f"{relation.kind} [[{target}|type:{relation.kind}]]"
    known = relation.to in files or target not in files.values()
    if (
        known
        and not _ODD.search(plain)
        and list(_items(f"- {plain}")) == [plain]
        and _meant(plain) == Relation(relation.kind, target)
    ):
        return f"- {plain}"
    return _coded({"relationType": relation.kind, "to": relation.to})


def _coded(value: Any) -> str:
    return f"- `{json.dumps(value, ensure_ascii=False)}`"


def _meant(item: str) -> str | Relation:
    """What an item of the list says: an observation, or a relation to what its link names."""
    if match := _CODED.fullmatch(item):
        try:
            value = json.loads(match[1])
        except (ValueError, RecursionError):
            return item
        if isinstance(value, str):
            return value
        if isinstance(value.get("relationType"), str) and isinstance(value.get("to"), str):
            return Relation(value["relationType"], value["to"])
        return item
    match = _RELATION.fullmatch(item)
    return Relation(match["kind"], match["target"]) if match else item


def _items(text: str) -> Iterator[str]:
    """The items of a list, and paragraphs between them, without a heading at the top."""
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and lines[0].startswith("# "):
        lines.pop(0)
    item: list[str] = []
    indent = 0
    for line in [*lines, "-"]:
        goes_on = item and (not line or line.startswith("  ") if indent else line.strip() and not line.startswith("-"))
        if goes_on:
            item.append(line[indent:])
            continue
        while item and not item[-1]:
            item.pop()
        if item:
            yield "\n".join(item)
        indent = 2 if line.startswith("- ") else 0
        item = [line[indent:]] if line.strip() and line != "-" else []


def entities_and_relations(graph: Sequence[Entity]) -> dict[str, list[dict[str, Any]]]:
    """A graph in the shape of the MCP reference server's."""
    return {
        "entities": [
            {"name": entity.name, "entityType": entity.kind, "observations": list(entity.observations)}
            for entity in graph
            if entity.kind is not None
        ],
        "relations": [
            {"from": entity.name, "to": to, "relationType": kind} for entity in graph for kind, to in entity.relations
        ],
    }
