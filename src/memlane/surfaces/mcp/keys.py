"""Tools for agents that keep names of their own and work beside others: a memory with its version and its fields,
changes that are made only while it has that version, and what has changed since.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.model import Memory
from memlane.surfaces.mcp import lines
from memlane.surfaces.mcp.all_lanes import Expires, memory_id
from memlane.surfaces.mcp.tools import CHANGES, READS, Words, tool


class Got(TypedDict):
    memory_id: str
    version: str
    text: str
    title: str
    type: str | None
    tags: list[str]
    scope: str | None
    created_at: str | None
    fields: dict[str, Any]


class Put(TypedDict):
    memory_id: str
    version: str
    path: str
    remarks: list[str]


class Removed(TypedDict):
    memory_id: str
    status: str


class Change(TypedDict):
    memory_id: str
    verb: str
    at: str | None
    version: str | None
    by: str


class Feed(TypedDict):
    changes: list[Change]
    cursor: str
    complete: bool
    remark: NotRequired[str]


def _feed_lines(feed: Feed) -> str:
    rows = ((one["memory_id"], one["verb"], one["at"], one["version"] or "gone", one["by"]) for one in feed["changes"])
    return lines.with_remark("\n".join(map(lines.entry, rows)), feed)


@tool(READS, lines=lambda got: lines.entry((got["memory_id"], got["version"]), got["text"]))
def get_memory(bank: Bank, id: str) -> Got:
    """Get a memory whole, with its fields and its version."""
    memory = bank.get(id)
    whole = memory.to_dict()
    keys = ("version", "text", "title", "type", "tags", "scope", "created_at", "fields")
    return cast("Got", {"memory_id": memory_id(memory.id), **{key: whole[key] for key in keys}})


@tool(CHANGES, updates_index=True)
def put_memory(
    bank: Bank,
    key: Annotated[str, Field(description="Any text; upper and lower case differ")],
    text: str,
    title: str | None = None,
    tags: Words | None = None,
    type: str | None = None,
    scope: str | None = None,
    expires: Expires = None,
    extra: dict[str, Any] | None = None,
    expected: Annotated[str | None, Field(description="Only if this is its version; empty: if there is none")] = None,
) -> Put:
    """Make the note of this key say this text, whether it is there or not. Everything that it said is replaced."""
    labels: dict[str, Any] = {"title": title, "tags": tags or (), "type": type, "scope": scope, "expires": expires}
    return _put(bank, bank.put(key, text, **labels, extra=extra, expected=expected))


@tool(CHANGES)
def rename_memory(bank: Bank, id: str, new: Annotated[str, Field(description="Such as ops/release-day")]) -> Put:
    """Give a note another name; links to it and its history follow."""
    return _put(bank, bank.move(id, new))


@tool(CHANGES)
def remove_memory(
    bank: Bank, id: str, expected: Annotated[str, Field(description="Only if this is its version")]
) -> Removed:
    """Move a memory to the trash if nobody has changed it."""
    return {"memory_id": memory_id(bank.delete(id, expected=expected).id), "status": "deleted"}


def _put(bank: Bank, memory: Memory) -> Put:
    version = bank.get(memory.id, expired=True).version  # as a reader sees it
    return {"memory_id": memory_id(memory.id), "version": version, "path": memory.file, "remarks": list(memory.remarks)}


@tool(READS, lines=_feed_lines)
def memory_changes(
    bank: Bank,
    since: Annotated[str | None, Field(description="The cursor of the last call; now: only a cursor")] = None,
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
) -> Feed:
    """List what was changed, by whomever, the oldest first, and the version that each memory has now."""
    found = bank.changes(since, limit)
    remarks = [] if found.complete else ["The journal does not reach back that far: read everything anew."]
    remarks.append(f'{"There are more: go" if found.more else "Go"} on with since="{found.cursor}".')
    return {
        "changes": [
            {
                "memory_id": memory_id(one.id),
                "verb": one.verb,
                "at": one.to_dict()["at"],
                "version": one.version,
                "by": one.by,
            }
            for one in found.changes
        ],
        "cursor": found.cursor,
        "complete": found.complete,
        "remark": " ".join(remarks),
    }
