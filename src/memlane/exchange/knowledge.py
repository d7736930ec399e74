"""A knowledge graph kept as notes, with the verbs of the MCP reference server.

One note for each entity, in the folder `entities`; a relation is a link in the note of the entity that it starts at. So
people can read and edit the graph, and search finds it. A verb reads the graph, and writes what is to change, while it
holds the folder's lock: two programs do not lose each other's writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from memlane import gate
from memlane.core.choosing import date_of
from memlane.core.dates import utc_now
from memlane.core.errors import Conflict, NotFound
from memlane.core.model import Draft, Memory
from memlane.disk import files, walking
from memlane.disk.names import folded
from memlane.exchange import entities, restoring
from memlane.exchange.entities import FOLDER, Entity, Relation, entities_and_relations
from memlane.lanes import limited
from memlane.recall.leaving import shown

if TYPE_CHECKING:
    from memlane.bank import Bank

_ATTEMPTS = 5
T = TypeVar("T")
Graph = dict[str, Entity]  # by name, in the order in which they were made
Notes = dict[str, Memory]  # of the entities, by name
Plain = dict[str, Any]  # an entity, a relation or a graph in the reference server's shape


def read(bank: Bank) -> Plain:
    """All entities and relations."""
    return entities_and_relations([*_read(bank)[0].values()])


def search(bank: Bank, query: str) -> Plain:
    """The entities with these characters in name, type or an observation, whatever their case; and their relations."""
    words = query.lower()

    def has(entity: Entity) -> bool:
        return any(words in text.lower() for text in (entity.name, entity.kind or "", *entity.observations))

    return _around(bank, has)


def opened(bank: Bank, names: Sequence[str]) -> Plain:
    """The entities of these names, and their relations."""
    return _around(bank, lambda entity: entity.name in names)


def _around(bank: Bank, wanted: Callable[[Entity], bool]) -> Plain:
    whole = _read(bank)[0]
    found = {name for name, entity in whole.items() if entity.kind is not None and wanted(entity)}
    every = entities_and_relations([*whole.values()])
    return {
        "entities": [entity for entity in every["entities"] if entity["name"] in found],
        "relations": [relation for relation in every["relations"] if {relation["from"], relation["to"]} & found],
    }


def create_entities(bank: Bank, given: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """Add entities; those whose names are taken are left out. Returns what is new. Raises Refused; then nothing is."""

    def add(graph: Graph) -> list[Plain]:
        new = []
        for item in given:
            there = graph.pop(item["name"], Entity(item["name"]))
            if there.kind is None:
                there = replace(there, kind=item["entityType"], observations=tuple(item["observations"]))
                new.append({key: item[key] for key in ("name", "entityType", "observations")})
            graph[there.name] = there
        return new

    return _changed(bank, add)


def create_relations(bank: Bank, given: Sequence[Mapping[str, str]]) -> list[Plain]:
    """Add relations, between entities that are there or not. Returns what is new."""

    def add(graph: Graph) -> list[Plain]:
        new = []
        for item in given:
            start, relation = graph.get(item["from"], Entity(item["from"])), Relation(item["relationType"], item["to"])
            if relation not in start.relations:
                graph[start.name] = replace(start, relations=(*start.relations, relation))
                new.append({key: item[key] for key in ("from", "to", "relationType")})
        return new

    return _changed(bank, add)


def add_observations(bank: Bank, given: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """Add observations to entities. Returns what is new. Raises NotFound; then nothing is written."""

    def add(graph: Graph) -> list[Plain]:
        results = []
        for item in given:
            entity = graph.get(item["entityName"])
            if entity is None or entity.kind is None:
                raise NotFound(
                    f"Entity with name {gate.shown(item['entityName'])} not found",
                    hint="create_entities makes it; search_nodes finds others.",
                )
            new = [text for text in item["contents"] if text not in entity.observations]
            graph[entity.name] = replace(entity, observations=(*entity.observations, *new))
            results.append({"entityName": entity.name, "addedObservations": new})
        return results

    return _changed(bank, add)


def delete_entities(bank: Bank, names: Sequence[str]) -> None:
    """Delete entities and all their relations; names that nothing has are passed over."""
    gone = set(names)

    def delete(graph: Graph) -> None:
        for name, entity in [*graph.items()]:
            kept = tuple(relation for relation in entity.relations if relation.to not in gone)
            graph[name] = Entity(name) if name in gone else replace(entity, relations=kept)

    _changed(bank, delete)


def delete_observations(bank: Bank, given: Sequence[Mapping[str, Any]]) -> None:
    def delete(graph: Graph) -> None:
        for item in given:
            if entity := graph.get(item["entityName"]):
                kept = tuple(text for text in entity.observations if text not in item["observations"])
                graph[entity.name] = replace(entity, observations=kept)

    _changed(bank, delete)


def delete_relations(bank: Bank, given: Sequence[Mapping[str, str]]) -> None:
    def delete(graph: Graph) -> None:
        for item in given:
            if start := graph.get(item["from"]):
                gone = Relation(item["relationType"], item["to"])
                graph[start.name] = replace(start, relations=tuple(one for one in start.relations if one != gone))

    _changed(bank, delete)


# -- on the disk


def _read(bank: Bank) -> tuple[Graph, Notes]:
    """The graph and the notes that it is in."""
    lane, looked = bank.notes, bank.tombstones.any()
    paths = (path for path in walking.walk(lane.root / FOLDER) if isinstance(path, str))
    found = [item for path in paths for item in lane.parse(path) if isinstance(item, Memory)]
    found = [item for item in found if item.status != "archived" and not (looked and bank.tombstones.held(item))]
    found.sort(key=lambda memory: (date_of(memory), memory.id))
    names = {memory.native_id: entities.name_of(memory) for memory in found}
    graph: Graph = {}
    notes: Notes = {}
    for memory in found:
        entity = entities.read(memory, names)
        if entity.name not in graph:  # of two notes with one name the older counts
            graph[entity.name], notes[entity.name] = entity, memory
    return graph, notes


def _changed(bank: Bank, change: Callable[[Graph], T]) -> T:
    """Read the graph, change it, and write what is another now; all by ourselves. What `change` raises is raised."""
    if bank.access.scopes is not None:  # entities have one folder for all scopes
        limited.refuse("Changing the knowledge graph")
    folder = os.fspath(bank.notes.root / FOLDER)
    files.make_folder(folder)
    with files.locked(folder):
        for attempts_left in reversed(range(_ATTEMPTS)):
            before, notes = _read(bank)
            graph = dict(before)
            result = change(graph)
            try:
                _write(bank, before, graph, notes)
                break
            except Conflict:  # somebody else edited one of the notes; what we have written is part of the change
                if not attempts_left:
                    raise
    return result


def _write(bank: Bank, before: Graph, graph: Graph, notes: Notes) -> None:
    changed = [entity for name, entity in graph.items() if entity != before.get(name)]
    kept = [entity for entity in changed if entity.kind is not None or entity.relations]
    places = {name: memory.native_id for name, memory in notes.items()}
    loose = {folded(f"{FOLDER}/{to}"): to for entity in graph.values() for _, to in entity.relations}
    taken = set(map(folded, places.values()))
    for entity in kept:
        if entity.name not in places:
            others = {link for link, to in loose.items() if to != entity.name}  # a link to them must not mean this one
            places[entity.name] = entities.file_for(entity.name, taken | others)
            taken.add(folded(places[entity.name]))
    drafts = {entity.name: entities.draft(entity, places) for entity in kept}
    for name, draft in drafts.items():  # before anything is written
        gate.admit(bank.notes.checks, replace(draft, over=notes[name].text if name in notes else ""), bank.notes)
    for entity in changed:
        if note := notes.get(entity.name):
            _rewrite(bank, note, drafts.get(entity.name), before[entity.name])
        elif entity.name in drafts:
            restoring.told(bank, restoring.create_note(bank, drafts[entity.name], places[entity.name]))


def _rewrite(bank: Bank, note: Memory, draft: Draft | None, before: Entity) -> None:
    """Let the note of an entity say what a draft does; None deletes it. Raises Conflict if it is another by now."""
    [seen] = shown(bank, [note])
    if draft is None:
        bank.delete(note.id, expected=seen.version)
    elif before.kind is None and not draft.fields.get(entities.BARE):  # until now only relations were known
        said = {"tags": draft.tags, "created_at": utc_now(), "extra": {**draft.fields, entities.BARE: None}}
        bank.update(note.id, draft.text, expected=seen.version, **said)
    else:
        bank.update(note.id, draft.text, expected=seen.version)
