"""Seed 002's verbs as the toolset `vault`. An id is the vault's own, `3f9a1c0b7d2e`, or the bank's, with `vault:`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane import gate
from memlane.bank import Bank
from memlane.core.model import Draft
from memlane.lanes.vault.record import Record
from memlane.recall.scopes import spelt
from memlane.surfaces.mcp.tools import ADDS, CHANGES, LIST, READS, Limit, Since, Until, Words, tool, without_lane

Id = Annotated[str, without_lane("vault")]
Text = Annotated[str, Field(description="At most 1200 characters")]
Scope = Annotated[str, Field(description="For whom or what: shared, user:alice")]
Scopes = Annotated[Words | None, Field(description="All when left out")]
Category = Annotated[str | None, Field(description="Such as mission, constraint, preference, project, goal")]
Floor = Annotated[float, Field(ge=0, le=1)]


class Stored(TypedDict):
    id: str
    version: int
    created_at: str
    updated_at: str | None
    tier: str
    topic_id: NotRequired[str]
    source: str | None
    scope: str
    category: str
    tags: list[str]
    deleted_at: str | None
    text: str
    remarks: NotRequired[list[str]]


class Added(TypedDict):
    id: str
    remarks: NotRequired[list[str]]


class Item(TypedDict):
    text: str
    scope: NotRequired[str]
    category: NotRequired[str]
    tags: NotRequired[list[str]]
    tier: NotRequired[str]
    topic_id: NotRequired[str]


class BulkAdded(TypedDict):
    stored: list[dict[str, Any]]
    errors: list[dict[str, Any]]


class Deleted(TypedDict):
    deleted: bool


class BulkDeleted(TypedDict):
    deleted: list[str]
    not_found: list[str]


class Pair(TypedDict):
    a: Stored
    b: Stored
    score: float


class Proposal(TypedDict):
    id: str
    scope: str
    tier: str
    text: str
    reason: str
    detail: str


class Snapshot(TypedDict):
    text: str


class Compacted(TypedDict):
    lines_before: int
    lines_after: int
    lines_removed: int


@tool(ADDS, name="vault_add_memory")
def add_memory(
    bank: Bank,
    text: Text,
    scope: Scope,
    category: Annotated[str, Field(description="Such as mission, constraint, preference, project, goal")],
    tags: Words | None = None,
    source: Literal["chat", "manual", "tool", "operator"] = "tool",
    tier: Literal["canon", "register"] = "canon",
    topic_id: Annotated[str | None, Field(description="A register's stable key: the same key updates")] = None,
) -> Added:
    """Append a memory to the vault; a register whose topic exists becomes its next version."""
    fields = {"category": category, "source": source, "tier": tier, "topic_id": topic_id}
    memory = bank.vault.put(Draft(text, tags=tuple(tags or ()), scope=scope, fields=fields))
    bank.anchor(memory.id)
    return cast("Added", {"id": memory.native_id, **_remarks(memory.remarks)})


@tool(ADDS, name="vault_bulk_add")
def bulk_add(bank: Bank, items: Annotated[list[Item], Field(max_length=1000)]) -> BulkAdded:
    """Add many memories at once. What is refused is reported with its place in the list; the rest is stored."""
    given = [{"scope": bank.vault.default_scope, "category": "other", "source": "tool", **item} for item in items]
    done = bank.vault.bulk_add(given)
    for stored in done["stored"]:
        bank.anchor(f"vault:{stored['id']}")
    return cast("BulkAdded", done)


@tool(CHANGES, name="vault_update_memory")
def update_memory(
    bank: Bank,
    id: Id,
    text: Annotated[str | None, Field(description="At most 1200 characters")] = None,
    category: Category = None,
    tags: Words | None = None,
    tier: Literal["canon", "register"] | None = None,
    topic_id: str | None = None,
) -> Stored:
    """Append the next version of a memory; what is not given stays."""
    return _written(bank, bank.vault.update_memory(id, text, category, tags, None, tier, topic_id))


@tool(ADDS, name="vault_update_by_topic")
def update_by_topic(
    bank: Bank, topic_id: str, scope: Scope, text: Text, category: Category = None, tags: Words | None = None
) -> Stored:
    """Write the register of a topic: its next version, or its first."""
    return _written(bank, bank.vault.update_by_topic(topic_id, scope, text, category, tags, "tool"))


@tool(CHANGES, name="vault_delete_memory")
def delete_memory(bank: Bank, id: Id) -> Deleted:
    """Mark a memory as deleted; restore_memory brings it back."""
    return {"deleted": bank.vault.delete_memory(id)}


@tool(CHANGES, name="vault_bulk_delete")
def bulk_delete(bank: Bank, ids: Annotated[list[Id], LIST]) -> BulkDeleted:
    """Mark many memories as deleted."""
    done = bank.vault.bulk_delete(ids)
    return {"deleted": done["deleted"], "not_found": [gate.shown(id) for id in done["not_found"]]}


@tool(READS, name="vault_recall_memories")
def recall_memories(
    bank: Bank, scopes: Scopes = None, category: Category = None, tags: Words | None = None, limit: Limit = 20
) -> list[Stored]:
    """List active memories, the newest first; tags means any of them."""
    found = bank.vault.recall_memories(_spelt(bank, scopes), category, tags, limit)
    return [_stored(record) for record in found]


@tool(READS, name="vault_search_memories")
def search_memories(
    bank: Bank,
    query: str,
    scopes: Scopes = None,
    limit: Limit = 10,
    category: Category = None,
    tags: Words | None = None,
    since: Since = None,
    until: Until = None,
) -> list[Stored]:
    """Find active memories that share a word with the query, the best first."""
    filters = {"type": category, "tags": tags or (), "since": since, "until": until}
    return [_stored(record) for record in bank.vault.search_memories(query, _spelt(bank, scopes), limit, **filters)]


@tool(READS, name="vault_find_consolidation_candidates")
def find_consolidation_candidates(
    bank: Bank, scopes: Scopes = None, floor: Floor = 0.5, limit: Limit = 20
) -> list[Pair]:
    """List pairs of similar memories that could be merged, the most similar first. Changes nothing."""
    pairs = bank.vault.find_consolidation_candidates(_spelt(bank, scopes), floor)[:limit]
    return [{"a": _stored(newer), "b": _stored(older), "score": score} for newer, older, score in pairs]


@tool(READS, name="vault_propose_deletions")
def propose_deletions(bank: Bank, scopes: Scopes = None) -> list[Proposal]:
    """List memories that could be deleted, each with a reason. Deletes nothing."""
    return cast("list[Proposal]", bank.vault.propose_deletions(_spelt(bank, scopes)))


@tool(CHANGES, name="vault_promote_to_canon")
def promote_to_canon(bank: Bank, memory_id: Id, canonical_text: Text, tags: Words | None = None) -> Stored:
    """Make a register canon, with the text it shall have."""
    return _written(bank, bank.vault.promote_to_canon(memory_id, canonical_text, tags))


@tool(READS, name="vault_build_snapshot")
def build_snapshot(bank: Bank, scopes: Scopes = None) -> Snapshot:
    """Canon and active registers as Markdown."""
    return {"text": bank.vault.build_snapshot(_spelt(bank, scopes))}


@tool(READS)
def vault_stats(bank: Bank) -> dict[str, Any]:
    """Count what the vault holds, by scope, tier and category, and how full it is."""
    return bank.vault.vault_stats()


@tool(CHANGES, name="vault_compact")
def compact(bank: Bank) -> Compacted:
    """Rewrite the file with the latest active versions only. Old versions and deleted memories are gone for good."""
    return cast("Compacted", bank.vault.compact())


def _spelt(bank: Bank, scopes: list[str] | None) -> list[str] | None:
    """The scopes as memories have them; None means all. Raises InvalidInput for one that the vault does not have."""
    return None if scopes is None else [spelt(bank, scope, "vault") or "" for scope in scopes]


def _written(bank: Bank, record: Record) -> Stored:
    """A record that was just written, once the code that it names is anchored."""
    bank.anchor(f"vault:{record.id}")
    return cast("Stored", {**_stored(record), **_remarks(record.remarks)})


def _stored(record: Record) -> Stored:
    return cast("Stored", record.to_dict())


def _remarks(remarks: tuple[str, ...]) -> dict[str, Any]:
    return {"remarks": list(remarks)} if remarks else {}
