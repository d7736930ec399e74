"""Tools for agents that keep names of their own and work beside others: a memory with its version and its fields,
changes that are made only while it has that version, and what has changed since.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.model import USERS, Memory
from memlane.disk.names import PRIVATE, is_private
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


Key = Annotated[str | None, Field(description="Instead of id: exactly the key of put_memory")]


@tool(READS, lines=lambda got: lines.entry((got["memory_id"], got["version"]), got["text"]))
def get_memory(bank: Bank, id: str | None = None, key: Key = None) -> Got:
    """Get a memory whole, with its fields and its version."""
    memory = bank.get(id, key=key)
    whole = memory.to_dict()
    names = ("version", "text", "title", "type", "tags", "scope", "created_at", "fields")
    return cast("Got", {"memory_id": memory_id(memory.id), **{name: whole[name] for name in names}})


@tool(CHANGES, updates_index=True)
def put_memory(
    bank: Bank,
    key: Annotated[str, Field(description="Any text; upper and lower case differ")],
    text: str,
    title: str | None = None,
    tags: Words | None = None,
    type: str | None = None,
    scope: Annotated[str | None, Field(description="private: out of git; user: in every project; or your own")] = None,
    expires: Expires = None,
    extra: dict[str, Any] | None = None,
    expected: Annotated[str | None, Field(description="Only if this is its version; empty: if there is none")] = None,
) -> Put:
    """Make the note of this key say this text, whether it is there or not. Everything that it said is replaced."""
    labels: dict[str, Any] = {"title": title, "tags": tags or (), "type": type, "scope": scope, "expires": expires}
    return _put(bank, bank.put(key, text, **labels, extra=extra, expected=expected))


@tool(CHANGES)
def rename_memory(
    bank: Bank,
    new: Annotated[str, Field(description="Such as ops/release-day; then its key")],
    id: str | None = None,
    key: Key = None,
) -> Put:
    """Give a note another name; links to it and its history follow."""
    named = _named(bank, id, key)
    private = key is not None and is_private(named.removeprefix(USERS))  # by a key, nobody sees that it is
    return _put(bank, bank.move(named, f"{PRIVATE}/{new}" if private else new))


@tool(CHANGES)
def remove_memory(
    bank: Bank,
    expected: Annotated[str, Field(description="Only if this is its version")],
    id: str | None = None,
    key: Key = None,
) -> Removed:
    """Move a memory to the trash if nobody has changed it."""
    removed = bank.delete(_named(bank, id, key), expected=expected)
    return {"memory_id": memory_id(removed.id), "status": "deleted"}


def _named(bank: Bank, id: str | None, key: str | None) -> str:
    """The id that a call gives, or that of the note under the key that it gives."""
    return id if id is not None and key is None else bank.get(id, key=key, expired=True).id


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
