"""Memories as resources: `memory://index` is an overview, `memory://memory/{id}` one memory.

A memory's text is sent as it was written, secrets apart, below front matter that says where it comes from.
"""

from __future__ import annotations

import base64
import binascii
import json
from urllib.parse import quote, unquote

from mcp.types import Annotations, ListResourcesResult, Resource, ResourceTemplate, TextResourceContents

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.front_matter import load_front, render_front
from memlane.core.invisible import visible
from memlane.core.model import Memory
from memlane.gate.outgoing import cleaned
from memlane.lanes import NAMES
from memlane.recall import under
from memlane.recall.leaving import shown

INDEX = "memory://index"
MEMORY = "memory://memory/"
PAGE = 100  # resources in one answer
NEWEST = 200  # memories that the index lists
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


def page(bank: Bank, cursor: str | None) -> ListResourcesResult:
    """A page of resources with the cursor of the next one. Raises InvalidInput for a cursor that is not ours.

    Only the files of the page are read, in sorted order. A cursor names the last file and how many of its memories were
    listed, so nothing is skipped when others write between two pages.
    """
    first, last, listed = _position(cursor)
    resources = [] if cursor else [INDEX_RESOURCE]
    guard = bank.guard
    for number, name in enumerate(list(NAMES)[first:], first):
        lane = bank.lane(name)
        for path in sorted(path for path in lane.files() if isinstance(path, str)):
            if number == first and path < last:
                continue
            skip = listed if (number, path) == (first, last) else 0
            memories = [item for item in lane.parse(path) if isinstance(item, Memory) and item.status != "archived"]
            for at, memory in enumerate(memories[skip:], skip):
                if len(resources) == PAGE:
                    return ListResourcesResult(resources=resources, next_cursor=_cursor(number, path, at))
                resources.append(_resource(cleaned(memory, guard)))
    return ListResourcesResult(resources=resources)


def read(bank: Bank, uri: str) -> TextResourceContents:
    """The contents of a resource. Raises NotFound."""
    if uri == INDEX:
        return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=_overview(bank))
    if not uri.startswith(MEMORY):
        raise NotFound("There is no such resource.", hint="resources/list names them.")
    try:
        at, memory = under.found_in(bank, unquote(uri.removeprefix(MEMORY)), expired=False)
    except InvalidInput:  # no memory can have such an id
        raise NotFound("There is no such memory.", hint="resources/list names them.") from None
    if at.tombstones.forgotten(memory.text, memory.id, memory.title):
        raise NotFound("There is no such memory.", hint="resources/list names them.")
    return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=_page(shown(at, [memory])[0]))


def _resource(memory: Memory) -> Resource:
    return Resource(
        uri=uri_of(memory.id),
        name=memory.id,
        title=visible(memory.title),
        mime_type=_MARKDOWN,
        annotations=Annotations(last_modified=iso(memory.updated_at or memory.created_at)),
    )


def _page(memory: Memory) -> str:
    keys = ("id", "title", "type", "status", "scope", "tags", "created_at", "updated_at", "path", "suspicious")
    facts = memory.to_dict()
    return render_front({key: facts[key] for key in keys if facts[key]}) + visible(memory.text)


def id_in(page: str) -> str:
    """The id of the memory that a page is of; none where it is of another kind."""
    fence, _, rest = page.partition("\n")
    line = rest.partition("\n")[0]
    return str(load_front(line)["id"]) if fence == "---" and line.startswith("id: ") else ""


def _overview(bank: Bank) -> str:
    memories = bank.list(brief=True)
    lines = [f"# {len(memories):,} {'memory' if len(memories) == 1 else 'memories'} in {bank.root}", ""]
    for memory in memories[:NEWEST]:
        when = (iso(memory.created_at or memory.updated_at) or "")[:10]
        tags = "".join(f" #{tag}" for tag in memory.tags)
        lines.append(" ".join(visible(f"- {when} [{memory.id}]({uri_of(memory.id)}) {memory.title}{tags}").split()))
    if len(memories) > NEWEST:
        lines += ["", f"These are the newest {NEWEST}; resources/list goes through all, search_memories finds one."]
    return "\n".join(lines) + "\n"


def _cursor(lane: int, path: str, listed: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([lane, path, listed]).encode()).decode()


def _position(cursor: str | None) -> tuple[int, str, int]:
    if cursor is None:
        return 0, "", 0
    try:
        lane, path, listed = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        lane, path, listed = -1, "", 0
    if not (isinstance(lane, int) and 0 <= lane < len(NAMES) and isinstance(path, str) and isinstance(listed, int)):
        raise InvalidInput("The cursor is not one of this server's.", hint="List from the beginning.")
    return lane, path, max(listed, 0)
