"""Three more tools over all lanes: list, edit a passage, restore. And what the other tools share with them.

An id is printed as `memory_id`: `memory:deploy-day` for a note, the bank's own for the rest. Every tool takes either.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput
from memlane.core.model import USERS, Memory
from memlane.lanes.notes.store import TYPES
from memlane.recall import under
from memlane.surfaces.mcp import lines
from memlane.surfaces.mcp.tools import ADDS, CHANGES, READS, Words, tool

Lane = Literal["notes", "vault", "topics", "records", "layers"]
Since = Annotated[str | None, Field(description="2025-01-15")]
Tags = Annotated[Words | None, Field(description="Any of these")]
Where = Annotated[dict[str, Any] | None, Field(description='Own fields: {"team": "shop", "level": {"$gte": 3}}')]
Expires = Annotated[str | None, Field(description="30d, or a date: from then on it is gone")]
NEWEST = "`list_memories` shows the newest."
MOST_NAMED = 30


class Listed(TypedDict):
    memory_id: str
    lane: str
    title: NotRequired[str]
    type: NotRequired[str]
    tags: NotRequired[list[str]]
    created_at: NotRequired[str | None]
    deleted_at: NotRequired[str | None]


class Page(TypedDict):
    memories: list[Listed]
    cursor: NotRequired[str]
    remark: NotRequired[str]


class Changed(TypedDict):
    status: str
    memory_id: str
    path: str
    remarks: list[str]


def memory_id(id: str) -> str:
    return "memory:" + id.removeprefix("notes:") if id.startswith("notes:") else id


def facts(item: Mapping[str, Any]) -> tuple[str | None, ...]:
    """What the line of an entry says: its id, lane, day, type, status where it is no other, and tags."""
    when = item.get("deleted_at") or item.get("created_at")
    status = item.get("status")
    tags = " ".join(f"#{tag}" for tag in item.get("tags", ()))
    shown_status = status if status != "active" else None
    return item["memory_id"], item["lane"], when[:10] if when else None, item.get("type"), shown_status, tags


def refuse_unknown(bank: Bank, argument: str, type: str | None) -> None:
    """Raise InvalidInput for a type that no memory has."""
    if type is None:
        return
    known: set[str | None] = {*TYPES}
    for one in filter(None, (bank, bank.under)):
        known |= {type for (type,) in one.index.ask(lambda: one.index.rows("SELECT DISTINCT type FROM memories"))}  # noqa: B023
    if type not in known:
        names = sorted(filter(None, known))
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        hint = f"Use one of: {', '.join(names[:MOST_NAMED])}{more}; or leave {argument} out."
        raise InvalidInput(f"{argument}: no memory has that type.", hint=hint)


def nothing(filters: Mapping[str, Any]) -> str:
    """Why there is nothing, where filters may be why."""
    given = [name for name, value in filters.items() if value]
    left = f" Leave {' and '.join(given)} out for more." if given else ""
    return f"No memory matches.{left or f' {NEWEST}'}"


def _page_lines(page: Page) -> str:
    entries = (lines.entry((*facts(item), item.get("title"))) for item in page["memories"])
    return lines.with_remark("\n".join(entries), page)


@tool(READS, reads_index=True, lines=_page_lines)
def list_memories(
    bank: Bank,
    since: Since = None,
    until: Since = None,
    tag: Tags = None,
    type: str | None = None,
    lane: Lane | None = None,
    scope: Annotated[str | None, Field(description="team/*: all that begin so")] = None,
    where: Where = None,
    deleted: Annotated[bool, Field(description="What restore_memory can bring back")] = False,
    cursor: Annotated[str | None, Field(description="From the page before")] = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Page:
    """List memories of all kinds, the newest first: ids, dates, titles."""
    at, last = _position(cursor)
    if deleted:
        removed = [(one, one.id.removeprefix(USERS).partition(":")[0]) for one in under.removed_by(bank)]
        gone: list[Listed] = [
            {"memory_id": memory_id(one.id), "lane": its_lane, "deleted_at": iso(one.removed_at)}
            for one, its_lane in [pair for pair in removed if lane in (None, pair[1])][at : at + limit + 1]
        ]
        return _page(gone, at, limit, "Nothing is deleted.")
    filters: dict[str, Any] = {
        "since": since, "until": until, "tags": tag or (), "type": type, "lane": lane, "scope": scope, "where": where,
    }  # fmt: skip
    found = bank.list(limit=at + limit + 1, brief=True, **filters)
    if at and (len(found) < at or found[at - 1].id != last):  # somebody wrote or deleted meanwhile
        found = bank.list(brief=True, **filters)
        at = next((number + 1 for number, memory in enumerate(found) if memory.id == last), at)
    shown = [_listed(memory) for memory in found[at : at + limit + 1]]
    if not shown:
        refuse_unknown(bank, "type", type)
    given = {"since": since, "until": until, "tag": tag, "type": type, "lane": lane, "scope": scope, "where": where}
    empty = nothing(given) if any(given.values()) else "Nothing is remembered yet. `remember` stores a text."
    return _page(shown, at, limit, "There are no more." if at else empty)


@tool(CHANGES, updates_index=True)
def edit_memory(
    bank: Bank,
    id: str,
    old: Annotated[str, Field(description="Exactly as it is written, and there once")],
    new: str,
) -> Changed:
    """Change one passage in the text of a memory of any kind and leave the rest as it is."""
    return _changed("edited", bank.edit(id, old, new))


@tool(ADDS, updates_index=True)
def restore_memory(bank: Bank, id: str) -> Changed:
    """Bring back a deleted memory."""
    return _changed("restored", bank.restore(id))


def _changed(status: str, memory: Memory) -> Changed:
    return {
        "status": status,
        "memory_id": memory_id(memory.id),
        "path": memory.file,
        "remarks": list(memory.remarks),
    }


def _listed(memory: Memory) -> Listed:
    return {
        "memory_id": memory_id(memory.id),
        "lane": memory.lane,
        "title": memory.title,
        "type": memory.type or "",
        "tags": list(memory.tags),
        "created_at": iso(memory.created_at or memory.updated_at),
    }


def _page(items: list[Listed], at: int, limit: int, empty: str) -> Page:
    """A page of the items, of which there is one more than the page has where another page follows."""
    if not items:
        return {"memories": [], "remark": empty}
    if len(items) <= limit:
        return {"memories": items}
    last = items[limit - 1]["memory_id"].replace("memory:", "notes:", 1)
    cursor = base64.urlsafe_b64encode(json.dumps([at + limit, last]).encode()).decode()
    return {
        "memories": items[:limit],
        "cursor": cursor,
        "remark": f'There are more: the same call with cursor="{cursor}" shows them.',
    }


def _position(cursor: str | None) -> tuple[int, str]:
    """How many memories the pages before had, and the last of them. Raises InvalidInput."""
    if not cursor:
        return 0, ""
    try:
        at, last = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        at, last = -1, ""
    if not isinstance(at, int) or isinstance(at, bool) or not isinstance(last, str) or at < 0:
        raise InvalidInput("The cursor is not one of this server's.", hint="Leave cursor out to list from the start.")
    return at, last
