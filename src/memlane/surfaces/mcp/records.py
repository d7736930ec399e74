"""Seed 001's verbs as the toolset `records`: captured messages, whole, one file each."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.errors import NotFound
from memlane.lanes.records.record import Record
from memlane.recall.scopes import spelt
from memlane.surfaces.mcp.tools import ADDS, READS, Limit, Since, Until, Words, tool, without_lane

Scope = Annotated[str | None, Field(description="global, file:PATH or area:NAME")]


class Captured(TypedDict):
    id: str
    subject: str
    keywords: list[str]
    applies_to: str
    occurred_at: str
    content_hash: str
    content: str
    path: str
    thread: str | None
    remarks: NotRequired[list[str]]


class Violation(TypedDict):
    path: str
    line: int | None
    why: str


@tool(ADDS, name="records_create")
def create(
    bank: Bank,
    content: Annotated[str, Field(description="The whole message")],
    subject: Annotated[str, Field(description="One line")],
    keywords: Words,
    applies_to: Annotated[str, Field(description="global, file:PATH or area:NAME")] = "global",
    occurred_at: Annotated[str | None, Field(description="ISO 8601; now when left out")] = None,
) -> Captured:
    """Store a message. The same message of the same time is stored once."""
    record = bank.records.create(
        content, subject=subject, keywords=keywords, applies_to=applies_to, occurred_at=occurred_at
    )
    bank.anchor(f"records:{record.id}")
    return _captured(record)


@tool(READS, name="records_get")
def get(bank: Bank, id: Annotated[str, without_lane("records")]) -> Captured:
    """Read one record."""
    record = bank.records.get(id)
    if record is None:
        raise NotFound("There is no such record.", hint="records_list shows what there is.")
    return _captured(record)


@tool(READS, reads_index=True, name="records_list")
def list_(
    bank: Bank,
    scope: Scope = None,
    keyword: str | None = None,
    limit: Limit = 20,
    offset: Annotated[int, Field(ge=0)] = 0,
    since: Since = None,
    until: Until = None,
) -> list[Captured]:
    """List records, the newest first."""
    chosen: dict[str, Any] = {"keyword": keyword, "limit": limit, "offset": offset, "since": since, "until": until}
    return [_captured(record) for record in bank.records.list(scope=spelt(bank, scope, "records"), **chosen)]


@tool(READS, reads_index=True, name="records_find")
def find(
    bank: Bank,
    query: str,
    limit: Limit = 10,
    scope: Scope = None,
    tags: Words | None = None,
    since: Since = None,
    until: Until = None,
) -> list[Captured]:
    """Find records by their keywords, misspelt ones too."""
    filters: dict[str, Any] = {"tags": tags or (), "since": since, "until": until}
    found = bank.records.find(query, limit=limit, scope=spelt(bank, scope, "records"), **filters)
    return [_captured(record) for record in found]


@tool(READS, name="records_index")
def index(bank: Bank) -> dict[str, Any]:
    """Every keyword with the records that have it."""
    return bank.records.index()


@tool(READS, name="records_validate")
def validate(bank: Bank) -> list[Violation]:
    """Check every record against the format's rules."""
    return cast("list[Violation]", [problem.to_dict() for problem in bank.records.validate()])


def _captured(record: Record) -> Captured:
    return cast("Captured", record.to_dict())
