"""Seed 003's ten tools, with its names, parameters, defaults and answers. They act on the notes; read, update, append
and delete on memories of every lane, by any name that any tool has given.

A `memory_id` is `memory:` and the file's name without `.md`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.core.errors import MemlaneError, NotFound
from memlane.core.model import Hit, Link, Memory
from memlane.history.undo import recording
from memlane.surfaces.mcp.tools import ADDS, CHANGES, READS, Limit, Words, tool

if TYPE_CHECKING:
    from memlane.recall.clusters import Cluster

Filename = Annotated[str, Field(description="With .md")]
Name = Annotated[str, Field(description="Any id, file name, path or title that memory gave you")]
T = TypeVar("T")
_NO_LIMIT = 1_000_000  # where the notes are picked out, and the limit applied, after the bank's answer


class Written(TypedDict):
    status: str
    filename: str
    path: str
    remark: NotRequired[str]


class Read(TypedDict):
    filename: str
    content: str
    path: str


class Deleted(TypedDict):
    status: str
    filename: str
    moved_to: str


class Merged(TypedDict):
    status: str
    target_file: str
    sources_merged: str
    target_path: str


class Found(TypedDict):
    memory_id: str
    score: float
    content: str
    type: str
    status: str
    tags: list[str]
    file_path: str
    header_path: str


class Linked(TypedDict):
    memory_id: str
    score: float
    content: str
    anchor_context: str
    edge_type: str
    file_path: str


class Stats(TypedDict):
    count: int
    total_size: str
    tags: dict[str, int]
    types: dict[str, int]
    memory_path: str


class Member(TypedDict):
    id: str
    file_path: str
    preview: str


class Group(TypedDict):
    cluster_id: int
    score: float
    reason: str
    memory_count: int
    memories: list[Member]


@tool(ADDS, updates_index=True)
def create_memory(
    bank: Bank,
    filename: Filename,
    content: Annotated[str, Field(description="Markdown; [[src/auth.py]] links to a file")],
    tags: Words,
    memory_type: Annotated[str, Field(description="journal, plan, fact, observation or reflection")] = "journal",
) -> Written:
    """Write a new note. Fails when the file exists: then update or append."""
    return _written(bank, bank.notes.create_memory(filename, content, tags, memory_type))


@tool(READS)
def read_memory(bank: Bank, filename: Name) -> Read:
    """Read a memory: a note as a whole file, front matter included; of any other, the text."""
    memory = bank.get(filename)
    if memory.lane == "notes":
        return _answer(Read, bank.notes.read_memory(f"{memory.native_id}.md"))
    if bank.tombstones.forgotten(memory.text, memory.id, memory.title):
        raise NotFound("The memory says what was forgotten, and is held back.")
    return {"filename": memory.id, "content": memory.text, "path": memory.file}


@tool(CHANGES, updates_index=True)
def update_memory(bank: Bank, filename: Name, content: str) -> Written:
    """Replace a memory's text; a note entirely: include its front matter to keep its tags and type."""
    memory = bank.get(filename)
    if memory.lane == "notes":
        return _written(bank, bank.notes.update_memory(f"{memory.native_id}.md", content))
    return _changed("updated", bank.update(memory.id, content))


@tool(ADDS, updates_index=True)
def append_memory(bank: Bank, filename: Name, content: str) -> Written:
    """Add content to the end of a memory."""
    memory = bank.get(filename)
    if memory.lane == "notes":
        return _written(bank, bank.notes.append_memory(f"{memory.native_id}.md", content))
    return _changed("appended", bank.append(memory.id, content))


@tool(CHANGES, updates_index=True)
def delete_memory(bank: Bank, filename: Name) -> Deleted:
    """Move a memory to the trash."""
    memory = bank.get(filename)
    removed = bank.delete(memory.id)
    name = f"{memory.native_id}.md" if memory.lane == "notes" else memory.id
    return {"status": "deleted", "filename": name, "moved_to": str(removed.path)}


@tool(READS, reads_index=True)
def search_memories(
    bank: Bank,
    query: Annotated[str, Field(description='Natural language; "exact phrase" and -without work')],
    limit: Limit = 5,
    filter_tags: Annotated[Words | None, Field(description="Any of these")] = None,
    filter_type: str | None = None,
) -> list[Found]:
    """Find notes by words, meaning and recency, the best first."""
    hits = bank.search(query, limit, tags=filter_tags or (), type=filter_type, lane="notes")
    return [_found(hit) for hit in hits]


@tool(READS, reads_index=True)
def search_linked_memories(
    bank: Bank,
    query: Annotated[str, Field(description="Ranks the results")],
    target_document: Annotated[str, Field(description="Such as src/auth.py")],
    limit: Limit = 5,
) -> list[Linked]:
    """Find the notes that link to a document as [[path]]."""
    links = bank.linked(target_document, query, _NO_LIMIT)
    return [_linked(link) for link in links if link.memory.lane == "notes"][:limit]


@tool(READS)
def get_memory_stats(bank: Bank) -> Stats:
    """Count the notes, their tags and types."""
    return _answer(Stats, bank.notes.stats())


@tool(CHANGES)
def merge_memories(bank: Bank, source_files: Words, target_file: Filename, summary_content: str) -> Merged:
    """Replace several notes by a new one with exactly this content; the sources go to the trash."""
    with recording(bank, "merge"):
        answer = _answer(Merged, bank.notes.merge_memories(source_files, target_file, summary_content))
    bank.anchor(f"notes:{answer['target_file']}")
    return answer


@tool(READS, reads_index=True)
def suggest_memory_merges(
    bank: Bank,
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.85,
    limit: Limit = 5,
    filter_type: str | None = "journal",
) -> list[Group]:
    """Suggest groups of notes that say much the same. Changes nothing."""
    groups: list[Group] = []
    for cluster in bank.suggest_merges(threshold, _NO_LIMIT, filter_type):
        notes = tuple(memory for memory in cluster.memories if memory.lane == "notes")
        if len(notes) > 1:
            groups.append(_group(replace(cluster, cluster_id=len(groups), memories=notes)))
    return groups[:limit]


def _answer(shape: type[T], answer: dict[str, Any]) -> T:
    """The lane's answer, which has this shape. Raises MemlaneError where it is an {"error": …}."""
    if "error" in answer:
        raise MemlaneError(answer["error"], hint=answer.get("hint", ""))
    return cast("T", answer)


def _written(bank: Bank, answer: dict[str, Any]) -> Written:
    """The lane's answer to a write, once the index knows of it and the code that the note names is anchored."""
    written = _answer(Written, answer)
    bank.wrote("notes", written["path"])
    bank.anchor(f"notes:{written['filename']}")
    return written


def _changed(status: str, memory: Memory) -> Written:
    """The answer to a change of a memory that is not a note."""
    answer: Written = {"status": status, "filename": memory.id, "path": memory.file}
    return {**answer, "remark": "; ".join(memory.remarks)} if memory.remarks else answer


def _seed_id(id: str) -> str:
    return "memory:" + id.removeprefix("notes:")


def _found(hit: Hit) -> Found:
    memory = hit.memory
    return {
        "memory_id": _seed_id(memory.id),
        "score": hit.score,
        "content": hit.content,
        "type": memory.type or "",
        "status": memory.status or "",
        "tags": list(memory.tags),
        "file_path": memory.file,
        "header_path": hit.header_path,
    }


def _linked(link: Link) -> Linked:
    answer = link.to_dict()
    return cast("Linked", {"memory_id": _seed_id(answer.pop("id")), **answer})


def _group(cluster: Cluster) -> Group:
    answer = cluster.to_dict()
    answer["memories"] = [{**member, "id": _seed_id(member["id"])} for member in answer["memories"]]
    return cast("Group", answer)
