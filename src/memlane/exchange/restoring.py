"""Storing memories of a bank as they were: out of an export, or out of a store lying elsewhere.

Ids, dates and fields are kept wherever the lane lets us give them; every memory passes the checks of its lane again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.model import Draft, Memory
from memlane.exchange.export import line_of
from memlane.exchange.importers.folder import safe_name

if TYPE_CHECKING:
    from memlane.bank import Bank

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
    values = line_of(replace(memory, replaces=(), superseded_by=None))
    fields = {name: value for name, value in memory.fields.items() if name not in _VOLATILE}
    status = memory.status if memory.lane == "notes" else None  # elsewhere a matter of where it lies
    return {**values, "status": status, "fields": fields, "created_at": None, "updated_at": None}


def put(bank: Bank, memory: Memory) -> Memory:
    """Store a memory that is not there, under its own id if possible. Raises Refused, InvalidInput, AlreadyExists."""
    answers = bank.lane(memory.lane).answers
    try:
        return told(bank, answers.put_back(memory))
    except (InvalidInput, AlreadyExists):
        if memory.lane != "notes":
            raise
        # a note written by hand, under a name that we do not give
        return told(bank, create_note(bank, answers.draft_of(memory), safe_name(memory.native_id)))


def told(bank: Bank, memory: Memory) -> Memory:
    """Tell the index of a memory that a lane has just stored, and return the memory."""
    bank.wrote(memory.lane, memory.file)
    return memory


def revised(bank: Bank, old: Memory, memory: Memory) -> Memory:
    """Change the memory that is here into what the other one says. Raises as `put` does."""
    if memory.lane == "notes":
        return replace_note(bank, old, lambda: put(bank, memory))
    return bank.update(old.id, **bank.lane(memory.lane).answers.changes_to(memory))


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
