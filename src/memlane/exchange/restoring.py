"""Storing memories of a bank as they were: out of an export, or out of a store lying elsewhere.

Ids, dates and fields are kept wherever the lane lets us give them; every memory passes the checks of its lane again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.dates import iso
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.model import Draft, Memory
from memlane.core.text import first_line
from memlane.disk import files
from memlane.exchange.export import line_of
from memlane.exchange.importers.folder import safe_name

if TYPE_CHECKING:
    from memlane.bank import Bank

_VAULT_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_VOLATILE = frozenset({"staleness", "line_count", "version", "content_hash"})


def cleaned(bank: Bank, draft: Draft) -> Draft:
    """The draft as every lane would store it. Raises Refused, InvalidInput."""
    return gate.admit(gate.common(bank.guard), draft, None)


def admitted(bank: Bank, memory: Memory) -> Memory:
    """The memory as every lane would store it. Raises Refused, InvalidInput."""
    rest = {**memory.fields, "id": memory.id, "project": memory.project}
    draft = Draft(memory.text, memory.title, memory.tags, memory.type, memory.scope, memory.thread, fields=rest)
    clean = cleaned(bank, draft)
    fields = {name: value for name, value in clean.fields.items() if name in memory.fields}
    return replace(memory, text=clean.text, title=clean.title or "", tags=clean.tags, fields=fields)


def present(bank: Bank, memory: Memory) -> Memory | None:
    """The memory of the same id that the bank has; None when there is none."""
    with suppress(NotFound, InvalidInput):
        return bank.lane(memory.lane).fetch(memory.native_id)
    return None


def same(one: Memory, other: Memory) -> bool:
    """Whether two memories say the same, apart from dates, places and what is derived."""
    return _content(one) == _content(other)


def _content(memory: Memory) -> dict[str, Any]:
    values = line_of(memory)
    fields = {name: value for name, value in memory.fields.items() if name not in _VOLATILE}
    return {**values, "fields": fields, "created_at": None, "updated_at": None}


def put(bank: Bank, memory: Memory) -> Memory:
    """Store a memory that is not there, under its own id if possible. Raises Refused, InvalidInput, AlreadyExists."""
    return told(bank, _PUT[memory.lane](bank, memory))


def told(bank: Bank, memory: Memory) -> Memory:
    """Tell the index of a memory that a lane has just stored, and return the memory."""
    bank.wrote(memory.lane, memory.file)
    return memory


def revised(bank: Bank, old: Memory, memory: Memory) -> Memory:
    """Change the memory that is here into what the other one says. Raises as `put` does."""
    if memory.lane == "notes":
        return replace_note(bank, old, lambda: _put_note(bank, memory))
    changes: dict[str, Any] = {"text": memory.text}
    if memory.lane != "layers":
        changes |= {"title": memory.title, "tags": memory.tags, "thread": memory.thread}
    if memory.lane in ("vault", "records"):
        changes["scope"] = memory.scope
    if memory.lane in ("vault", "topics") and memory.type:
        changes["type"] = memory.type
    if memory.lane == "vault":
        changes |= {name: memory.fields[name] for name in ("tier", "topic_id", "source") if name in memory.fields}
    return bank.update(old.id, **changes)


def replace_note(bank: Bank, old: Memory, put: Callable[[], Memory]) -> Memory:
    """Move a note to the trash and store its successor; when that fails, the old one comes back."""
    bank.notes.set_aside(old.native_id)
    try:
        return told(bank, put())
    except BaseException:
        bank.notes.recover(old.native_id)
        raise


def create_note(bank: Bank, draft: Draft, name: str) -> Memory:
    """Store a note under this name, or under the nearest that is free. Raises Refused, InvalidInput, AlreadyExists."""
    flat = name.replace("/", "-")
    names = [name, *(f"{name}-{number}" for number in range(2, 10)), flat, f"{flat}-{os.urandom(4).hex()}"]
    for attempt in names:
        try:
            return bank.notes.put(replace(draft, fields={**draft.fields, "filename": f"{attempt}.md"}))
        except AlreadyExists:
            continue
        except InvalidInput as error:
            if "folder is not for notes" not in str(error):  # it belongs to another lane
                raise
    raise AlreadyExists("No free name is left for it.", hint="Use --into with a folder of its own.")


# -- what each lane has to be told to store a memory as it was


def _put_note(bank: Bank, memory: Memory) -> Memory:
    fields: dict[str, Any] = {**memory.fields, "status": memory.status, "filename": f"{memory.native_id}.md"}
    if memory.project is not None:
        fields["project"] = memory.project
    if memory.created_at is None:
        fields["created_at"] = None  # or the lane would take today
    draft = Draft(
        memory.text, memory.title, memory.tags, memory.type, memory.scope, memory.thread, memory.created_at, fields
    )
    try:
        return bank.notes.put(draft)
    except (InvalidInput, AlreadyExists):  # written by hand, under a name that we do not give
        return create_note(bank, draft, safe_name(memory.native_id))


def _put_vault(bank: Bank, memory: Memory) -> Memory:
    """Append the record with its own id, version and dates, once the vault's checks have passed it."""
    from memlane.lanes.vault import record as records

    vault, fields = bank.vault, dict(memory.fields)
    tier, topic, source = (fields.pop(name, None) for name in ("tier", "topic_id", "source"))
    version = fields.pop("version", 1)
    extra = {name: value for name, value in fields.items() if name not in records.Record.__slots__}
    draft = records.to_draft(memory.text, memory.scope, memory.type, memory.tags, source, tier, topic)
    admitted = gate.admit(vault.checks, draft, vault)
    if "upsert_of" in admitted.fields:
        raise AlreadyExists(f"Its topic has a register here: vault:{admitted.fields['upsert_of']}.")
    if not _VAULT_ID.fullmatch(memory.native_id):
        raise InvalidInput("Its id cannot be the id of a vault record.", hint="Use letters, digits, - and _.")
    titled = {} if memory.title == first_line(memory.text, 80) else {"title": memory.title}
    record = records.storable(
        records.Record(
            id=memory.native_id,
            text=admitted.text,
            scope=admitted.scope or vault.scopes[0],
            category=admitted.fields["category"] or "other",
            tier=admitted.fields["tier"],
            topic_id=admitted.fields["topic_id"],
            tags=list(admitted.tags),
            created_at=iso(memory.created_at) or "",
            updated_at=iso(memory.updated_at),
            source=admitted.fields["source"],
            version=version if isinstance(version, int) and 0 < version < 10**9 else 1,
            extra={**extra, **titled, **({"thread": memory.thread} if memory.thread else {})},
        )
    )
    files.append_lines(os.fspath(vault.path), records.render_lines([record]))
    return vault.fetch(record.id)


def _put_topic(bank: Bank, memory: Memory) -> Memory:
    names = {name: memory.fields[name] for name in ("topic", "subtopic", "date") if memory.fields.get(name)}
    return bank.topics.put(
        Draft(memory.text, memory.title, memory.tags, memory.type, thread=memory.thread, fields=names)
    )


def _put_record(bank: Bank, memory: Memory) -> Memory:
    when = memory.fields.get("occurred_at") or iso(memory.created_at)
    draft = Draft(
        memory.text, memory.title, memory.tags, scope=memory.scope, thread=memory.thread,
        fields={"id": memory.native_id, "occurred_at": when},
    )  # fmt: skip
    try:
        return bank.records.put(draft)
    except InvalidInput as error:
        if "version-4" not in str(error):
            raise
        return bank.records.put(replace(draft, fields={"occurred_at": when}))


def _put_layer(bank: Bank, memory: Memory) -> Memory:
    """Store it with a clock that stands at the day on which the memory was last updated."""
    lane = bank.layers
    if (updated := memory.updated_at) is not None:
        lane = type(lane)(lane.root, prune_timing=lane.prune_timing, clock=lambda: updated, guard=bank.guard)
    names = {name: memory.fields[name] for name in ("layer", "skill", "agent") if memory.fields.get(name)}
    fields = {**names, "file_type": memory.type, **({"project": memory.project} if memory.project else {})}
    return lane.put(Draft(memory.text, created_at=memory.created_at, fields=fields))


_PUT: Mapping[str, Callable[[Bank, Memory], Memory]] = {
    "notes": _put_note,
    "vault": _put_vault,
    "topics": _put_topic,
    "records": _put_record,
    "layers": _put_layer,
}
