"""Seed 000's verbs as the toolset `topics`: dated entries by topic and sub-topic."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.surfaces.mcp.tools import ADDS, READS, Limit, tool

Topic = Annotated[str, Field(description="topic or topic/subtopic, such as auth/oauth2")]


class Stored(TypedDict):
    stored: bool
    path: str
    entry: dict[str, Any]
    pruned: int
    archived_to: list[str]
    index_updated: bool
    remarks: list[str]


class Embedded(TypedDict):
    text: str
    tokens: int
    entries: list[dict[str, Any]]


@tool(ADDS, name="topics_store")
def store(
    bank: Bank,
    topic: Topic,
    content: Annotated[str | None, Field(description="Free text, when there is no problem and solution")] = None,
    title: str | None = None,
    context: Annotated[str | None, Field(description="The task it belongs to")] = None,
    problem: Annotated[str | None, Field(description="What went wrong")] = None,
    solution: Annotated[str | None, Field(description="How it was fixed")] = None,
    code: str | None = None,
    date: Annotated[str | None, Field(description="YYYY-MM-DD; today when left out")] = None,
) -> Stored:
    """Add a dated entry at the top of a topic. Old entries move to the archive."""
    stored = bank.topics.store(
        topic, content, title=title, context=context, problem=problem, solution=solution, code=code, date=date
    )
    bank.anchor(stored.entry.id)
    return cast("Stored", stored.to_dict())


@tool(READS, name="topics_search")
def search(bank: Bank, query: str, limit: Limit = 10, include_archive: bool = False) -> list[dict[str, Any]]:
    """Find entries by keyword, context, topic and recency. `topic:`, `context:` and "phrases" must match."""
    return [entry.to_dict() for entry in bank.topics.search(query, limit, include_archive)]


@tool(ADDS, name="topics_load")
def load(bank: Bank, topic: Topic) -> list[dict[str, Any]]:
    """Read the entries of a topic, the newest first, and count the access."""
    return [entry.to_dict() for entry in bank.topics.load(topic)]


@tool(READS, name="topics_embed")
def embed(
    bank: Bank,
    query: Annotated[str, Field(description="A topic, or words")],
    limit: Limit = 3,
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] = 1000,
) -> Embedded:
    """The two or three most relevant entries as Markdown for a prompt."""
    block = bank.topics.embed(query, limit=limit, max_tokens=max_tokens)
    return {"text": str(block), "tokens": block.tokens, "entries": [entry.to_dict() for entry in block.entries]}
