"""Memories as resources: `memory://index`, an overview, and `memory://memory/{id}`, one memory.

A memory is handed out as it was written, below a few lines that say where it comes from. It is data, not instructions.
"""

from __future__ import annotations

import base64
import binascii
import json
from urllib.parse import quote, unquote

from mcp.types import Annotations, Resource, ResourceTemplate, TextResourceContents

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.front_matter import render_front
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.lanes import NAMES

INDEX = "memory://index"
MEMORY = "memory://memory/"
PAGE = 100  # resources that are listed at once
NEWEST = 200  # memories that the index names
_MARKDOWN = "text/markdown"
INDEX_RESOURCE = Resource(
    uri=INDEX,
    name="index",
    title="Memory index",
    description="How much is remembered, and the newest memories with their ids.",
    mime_type=_MARKDOWN,
)
TEMPLATE = ResourceTemplate(
    uri_template=f"{MEMORY}{{id}}",
    name="memory",
    title="One memory",
    description="A memory by its id, such as notes:deploy-day.",
    mime_type=_MARKDOWN,
)


def uri_of(id: str) -> str:
    return MEMORY + quote(id, safe=":/")


def page(bank: Bank, cursor: str | None) -> tuple[list[Resource], str | None]:
    """A page of resources and the cursor of the next one. Raises InvalidInput for a cursor that is not ours.

    Files are gone through in their order, and only those of the page are read. A cursor names the last file and how
    much of it was listed, so that what others write meanwhile moves nothing out of sight.
    """
    first, last, listed = _place(cursor)
    found = [] if cursor else [INDEX_RESOURCE]
    for number, name in enumerate(list(NAMES)[first:], first):
        lane = bank.lane(name)
        for path in sorted(path for path in lane.files() if isinstance(path, str)):
            if number == first and path < last:
                continue
            skip = listed if (number, path) == (first, last) else 0
            memories = [item for item in lane.parse(path) if isinstance(item, Memory)]
            for at, memory in enumerate(memories[skip:], skip):
                if len(found) == PAGE:
                    return found, _cursor(number, path, at)
                found.append(_resource(memory))
    return found, None


def read(bank: Bank, uri: str) -> TextResourceContents:
    """What stands behind a URI. Raises NotFound."""
    if uri == INDEX:
        return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=_overview(bank))
    if not uri.startswith(MEMORY):
        raise NotFound("There is no such resource.", hint="resources/list names them.")
    try:
        memory = bank.get(unquote(uri.removeprefix(MEMORY)))
    except InvalidInput:  # not even a name that a memory could have
        raise NotFound("There is no such memory.", hint="resources/list names them.") from None
    return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=_shown(memory))


def _resource(memory: Memory) -> Resource:
    return Resource(
        uri=uri_of(memory.id),
        name=memory.id,
        title=visible(memory.title),
        mime_type=_MARKDOWN,
        annotations=Annotations(last_modified=iso(memory.updated_at or memory.created_at)),
    )


def _shown(memory: Memory) -> str:
    facts = {
        "id": memory.id,
        "title": memory.title,
        "type": memory.type,
        "status": memory.status,
        "scope": memory.scope,
        "tags": list(memory.tags),
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "path": memory.file,
        "suspicious": list(memory.suspicious),
    }
    return render_front({name: value for name, value in facts.items() if value}) + memory.text


def _overview(bank: Bank) -> str:
    memories = bank.list()
    lines = [f"# {len(memories):,} memories in {bank.root}", ""]
    for memory in memories[:NEWEST]:
        when = (iso(memory.created_at or memory.updated_at) or "")[:10]
        tags = "".join(f" #{tag}" for tag in memory.tags)
        lines.append(" ".join(visible(f"- {when} [{memory.id}]({uri_of(memory.id)}) {memory.title}{tags}").split()))
    if len(memories) > NEWEST:
        lines += ["", f"These are the newest {NEWEST}; resources/list goes through all, search_memories finds one."]
    return "\n".join(lines) + "\n"


def _cursor(lane: int, path: str, listed: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([lane, path, listed]).encode()).decode()


def _place(cursor: str | None) -> tuple[int, str, int]:
    if cursor is None:
        return 0, "", 0
    try:
        lane, path, listed = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        lane, path, listed = -1, "", 0
    if not (isinstance(lane, int) and 0 <= lane < len(NAMES) and isinstance(path, str) and isinstance(listed, int)):
        raise InvalidInput("The cursor is not one of this server's.", hint="List from the beginning.")
    return lane, path, max(listed, 0)
