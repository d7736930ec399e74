"""The MCP reference memory server's nine tools as the toolset `knowledge-graph`: same names, schemas and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from mcp.types import ToolAnnotations
from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.exchange import knowledge
from memlane.surfaces.mcp.tools import ADDS, LIST, READS, tool

_DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class Entity(TypedDict):
    name: Annotated[str, Field(description="The name of the entity")]
    entityType: Annotated[str, Field(description="The type of the entity")]
    observations: Annotated[list[str], Field(description="An array of observation contents associated with the entity")]


Relation = TypedDict(
    "Relation",
    {
        "from": Annotated[str, Field(description="The name of the entity where the relation starts")],
        "to": Annotated[str, Field(description="The name of the entity where the relation ends")],
        "relationType": Annotated[str, Field(description="The type of the relation")],
    },
)


class Observed(TypedDict):
    entityName: Annotated[str, Field(description="The name of the entity to add the observations to")]
    contents: Annotated[list[str], Field(description="An array of observation contents to add")]


class Deletion(TypedDict):
    entityName: Annotated[str, Field(description="The name of the entity containing the observations")]
    observations: Annotated[list[str], Field(description="An array of observations to delete")]


class Added(TypedDict):
    entityName: str
    addedObservations: list[str]


class Entities(TypedDict):
    entities: list[Entity]


class Relations(TypedDict):
    relations: list[Relation]


class Results(TypedDict):
    results: list[Added]


class Graph(TypedDict):
    entities: list[Entity]
    relations: list[Relation]


class Done(TypedDict):
    success: bool
    message: str


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _under(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda answer: _json(answer[key])


def _done(what: str) -> Done:
    return {"success": True, "message": f"{what} deleted successfully"}


def _message(answer: dict[str, Any]) -> str:
    return str(answer["message"])


@tool(ADDS, lines=_under("entities"))
def create_entities(bank: Bank, entities: Annotated[list[Entity], LIST]) -> Entities:
    """Create multiple new entities in the knowledge graph"""
    return {"entities": knowledge.create_entities(bank, entities)}  # type: ignore[typeddict-item]


@tool(ADDS, lines=_under("relations"))
def create_relations(bank: Bank, relations: Annotated[list[Relation], LIST]) -> Relations:
    """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice"""
    return {"relations": knowledge.create_relations(bank, relations)}  # type: ignore[typeddict-item,arg-type]


@tool(ADDS, lines=_under("results"))
def add_observations(bank: Bank, observations: Annotated[list[Observed], LIST]) -> Results:
    """Add new observations to existing entities in the knowledge graph"""
    return {"results": knowledge.add_observations(bank, observations)}  # type: ignore[typeddict-item]


@tool(_DELETES, lines=_message)
def delete_entities(
    bank: Bank,
    entityNames: Annotated[list[str], LIST, Field(description="An array of entity names to delete")],  # noqa: N803
) -> Done:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    knowledge.delete_entities(bank, entityNames)
    return _done("Entities")


@tool(_DELETES, lines=_message)
def delete_observations(bank: Bank, deletions: Annotated[list[Deletion], LIST]) -> Done:
    """Delete specific observations from entities in the knowledge graph"""
    knowledge.delete_observations(bank, deletions)
    return _done("Observations")


@tool(_DELETES, lines=_message)
def delete_relations(
    bank: Bank, relations: Annotated[list[Relation], LIST, Field(description="An array of relations to delete")]
) -> Done:
    """Delete multiple relations from the knowledge graph"""
    knowledge.delete_relations(bank, relations)  # type: ignore[arg-type]
    return _done("Relations")


@tool(READS, lines=_json)
def read_graph(bank: Bank) -> Graph:
    """Read the entire knowledge graph"""
    return knowledge.read(bank)  # type: ignore[return-value]


@tool(READS, lines=_json)
def search_nodes(
    bank: Bank,
    query: Annotated[
        str, Field(description="The search query to match against entity names, types, and observation content")
    ],
) -> Graph:
    """Search for nodes in the knowledge graph based on a query"""
    return knowledge.search(bank, query)  # type: ignore[return-value]


@tool(READS, lines=_json)
def open_nodes(
    bank: Bank, names: Annotated[list[str], LIST, Field(description="An array of entity names to retrieve")]
) -> Graph:
    """Open specific nodes in the knowledge graph by their names"""
    return knowledge.opened(bank, names)  # type: ignore[return-value]
