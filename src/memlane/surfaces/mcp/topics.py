"""Seed 000's verbs as the toolset `topics`: dated entries by topic and sub-topic."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.recall.scopes import spelt
from memlane.surfaces.mcp.tools import ADDS, READS, Limit, Since, Until, Words, tool

Topic = Annotated[str, Field(description="topic or topic/subtopic, such as auth/oauth2")]


class Stored(TypedDict):
    stored: bool
    path: str
    entry: dict[str, Any]
    pruned: int
    archived_to: list[str]
    index_updated: bool
    remarks: list[str]


class Listed(TypedDict):
    topic: str
    entries: int
    newest: str | None


class Embedded(TypedDict):
    text: str
    tokens: int
    ids: list[str]
    left_out: list[dict[str, str]]


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


@tool(READS, reads_index=True, name="topics_search")
def search(
    bank: Bank,
    query: str,
    limit: Limit = 10,
    include_archive: bool = False,
    tags: Words | None = None,
    type: str | None = None,
    scope: Annotated[str | None, Field(description="topic/subtopic")] = None,
    since: Since = None,
    until: Until = None,
) -> list[dict[str, Any]]:
    """Find entries by keyword, context, topic and recency. `topic:`, `context:` and "phrases" must match."""
    filters = {"tags": tags or (), "type": type, "since": since, "until": until}
    entries = bank.topics.search(query, limit, include_archive, scope=spelt(bank, scope, "topics"), **filters)
    return [entry.to_dict() for entry in entries]


@tool(ADDS, name="topics_load")
def load(bank: Bank, topic: Topic) -> list[dict[str, Any]]:
    """Read the entries of a topic, the newest first, and count the access; a topic alone means all its sub-topics."""
    return [entry.to_dict() for entry in bank.topics.load(topic)]


@tool(READS, name="topics_list")
def list_(bank: Bank) -> list[Listed]:
    """Every topic/subtopic with the number of its entries and the date of the newest."""
    return cast("list[Listed]", bank.topics.topics())


@tool(READS, reads_index=True, name="topics_embed")
def embed(
    bank: Bank,
    query: Annotated[str, Field(description="A topic, or words")],
    limit: Limit = 3,
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] = 1000,
) -> Embedded:
    """The two or three most relevant entries as a block for a prompt."""
    return cast("Embedded", bank.embed(query, limit, max_tokens).to_dict())
