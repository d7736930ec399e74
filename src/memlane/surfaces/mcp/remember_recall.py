"""remember and recall: the two tools over all lanes. Ids are the bank's own, such as `notes:deploy-day`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.surfaces.mcp.tools import ADDS, READS, Words, tool


class Remembered(TypedDict):
    id: str
    lane: str
    path: str
    updated: bool
    remarks: list[str]


class Recalled(TypedDict):
    block: str
    ids: list[str]
    tokens: int
    left_out: int


@tool(ADDS, updates_index=True)
def remember(
    bank: Bank,
    text: str,
    lane: Literal["notes", "vault", "topics", "records"] = "notes",
    title: str | None = None,
    type: Annotated[str | None, Field(description="A note's type, a vault category")] = None,
    tags: Words | None = None,
    scope: Annotated[str | None, Field(description="A vault scope, file:PATH or area:NAME")] = None,
    tier: Literal["canon", "register"] | None = None,
    topic_id: Annotated[str | None, Field(description="Stable key, such as current_projects")] = None,
) -> Remembered:
    """Store a text. With tier or topic_id it goes to the vault (at most 1200 characters): canon is lasting, register is
    state that the same topic_id replaces. In lane topics, topic_id is topic/subtopic.
    """
    fields: dict[str, Any] = {}
    if lane == "topics":
        fields = {"topic": topic_id} if topic_id else {}
    elif lane == "vault" or (lane == "notes" and (tier or topic_id)):
        lane = "vault"
        fields = {"tier": tier or ("register" if topic_id else "canon"), "topic_id": topic_id, "source": "tool"}
    memory = bank.add(text, lane=lane, title=title, type=type, tags=tags or (), scope=scope, **fields)
    return {
        "id": memory.id,
        "lane": lane,
        "path": memory.file,
        "updated": lane == "vault" and memory.fields.get("version", 1) > 1,
        "remarks": list(memory.remarks),
    }


@tool(READS, reads_index=True)
def recall(
    bank: Bank,
    query: Annotated[str, Field(description="The task or question")],
    budget: Annotated[int, Field(ge=1, le=100_000, description="Tokens")] = 1000,
) -> Recalled:
    """Get what the whole memory knows about something: one block within the budget, the best memories whole, each with
    its id and date.
    """
    block = bank.context(query, budget=budget)
    return {
        "block": str(block),
        "ids": [memory.id for memory in block.memories],
        "tokens": block.tokens,
        "left_out": len(block.left_out),
    }
