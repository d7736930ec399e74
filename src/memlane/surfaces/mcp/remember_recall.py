"""remember and recall: the two tools over all lanes. Ids are the bank's own, such as `notes:deploy-day`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.errors import InvalidInput
from memlane.lanes.layers.entries import names_of, path_of
from memlane.recall.blocks import CANDIDATES, Block
from memlane.surfaces.mcp import lines
from memlane.surfaces.mcp.all_lanes import NEWEST, Expires, Where
from memlane.surfaces.mcp.tools import ADDS, READS, Words, tool


class Remembered(TypedDict):
    id: str
    lane: str
    path: str
    updated: bool
    duplicate: bool
    similar: list[dict[str, str | None]]
    remarks: list[str]


class Recalled(TypedDict):
    block: str
    ids: list[str]
    tokens: int
    left_out: int
    remark: NotRequired[str]


@tool(ADDS, updates_index=True)
def remember(
    bank: Bank,
    text: str,
    lane: Literal["notes", "vault", "topics", "records", "layers"] | None = None,
    title: str | None = None,
    type: Annotated[str | None, Field(description="rule, preference, a note's type, a vault category")] = None,
    tags: Words | None = None,
    scope: Annotated[
        str | None,
        Field(
            description="user: for all projects of this user. private: not in git. A vault scope, file:PATH, area:NAME"
        ),
    ] = None,
    tier: Literal["canon", "register"] | None = None,
    topic_id: Annotated[str | None, Field(description="Stable key, such as current_projects")] = None,
    replaces: Annotated[str | None, Field(description="Id of what this supersedes")] = None,
    when: Annotated[
        Words | None, Field(description="When it applies: adding an endpoint, src/api/**, git push")
    ] = None,
    expires: Expires = None,
    extra: dict[str, Any] | None = None,
) -> Remembered:
    """Store a text. Use it as soon as something is settled that a later session would have to find out again: a
    decision and why, a bug's cause and fix, a convention, a preference, what is unfinished. With tier or topic_id it
    goes to the vault (at most 1200 characters): canon is lasting, register is state that the same topic_id replaces.
    In lane topics, topic_id is topic/subtopic; in layers a file, such as shared-project/my-api/known_issues.
    """
    fields: dict[str, Any] = {}
    if lane == "topics":
        fields = {"topic": topic_id} if topic_id else {}
    elif lane == "layers":
        if not topic_id:
            hint = 'Name it, such as `remember(text=…, lane="layers", topic_id="shared-project/my-api/known_issues")`.'
            raise InvalidInput("A memory in a layer needs the name of its file.", hint=hint)
        path_of(topic_id := topic_id.removeprefix("layers:"))
        fields = {name.removesuffix("_name"): value for name, value in names_of(topic_id).items()}
        type = fields.pop("file_type")
    elif lane == "vault" or (lane in (None, "notes") and (tier or topic_id)):
        lane = "vault"
        fields = {"tier": tier or ("register" if topic_id else "canon"), "topic_id": topic_id, "source": "tool"}
    if when:
        fields["when"] = when
    labels: dict[str, Any] = {"title": title, "type": type, "tags": tags or (), "scope": scope}
    memory = bank.add(text, lane=lane, replaces=replaces, expires=expires, extra=extra, **labels, **fields)
    return {
        "id": memory.id,
        "lane": memory.lane,
        "path": memory.file,
        "updated": not memory.duplicate and memory.lane == "vault" and memory.fields.get("version", 1) > 1,
        "duplicate": memory.duplicate,
        "similar": [like._asdict() for like in memory.similar],
        "remarks": list(memory.remarks),
    }


@tool(READS, reads_index=True, lines=lambda recalled: lines.with_remark(recalled["block"], recalled))
def recall(
    bank: Bank,
    query: Annotated[str, Field(description="The task or question")],
    budget: Annotated[int, Field(ge=1, le=100_000, description="Tokens")] = 1000,
    scopes: Annotated[Words | None, Field(description="Only these")] = None,
    where: Where = None,
    order: Annotated[Literal["best", "time"], Field(description="time: by date, newest first")] = "best",
) -> Recalled:
    """Get what the whole memory knows about something: one block within the budget, the best memories whole, each with
    its id and date. Use it first: when a task begins, and before you decide or answer what may have been settled.
    """
    block = bank.context(query, budget=budget, scopes=scopes or None, where=where, order=order)
    remarks = []
    if not block:
        remarks.append(f"Nothing is known about that{' within the budget' if block.left_out else ''}.")
    if elsewhere := _elsewhere(bank, query, block) if not scopes and not where else []:
        names = ", ".join(f'"{scope}"' for scope in elsewhere)
        remarks.append(f"Other scopes know something: `recall(query=…, scopes=[{names}])`.")
    elif not block:
        remarks.append("A higher budget shows more." if block.left_out else NEWEST)
    return {
        "block": str(block),
        "ids": [memory.id for memory in block.memories],
        "tokens": block.tokens,
        "left_out": len(block.left_out),
        **({"remark": " ".join(remarks)} if remarks else {}),  # type: ignore[typeddict-item]
    }


def _elsewhere(bank: Bank, query: str, block: Block) -> list[str]:
    """The scopes of memories that a block would show if the profile had those scopes."""
    known = {memory.id for memory in block.memories} | {item.id for item in block.left_out}
    hits = [hit.memory for hit in bank.search(query, CANDIDATES) if hit.memory.id not in known]
    return sorted({memory.scope for memory in hits if memory.scope and memory.scope not in bank.profile.scopes})
