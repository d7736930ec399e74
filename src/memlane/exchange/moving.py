"""Giving a note another name: the file moves, and with it what is said of the memory elsewhere.

Anchors, what it replaced or was replaced by, what the user judged of it, and links in other memories follow; the
journal and git follow the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane import gate
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError
from memlane.core.model import Draft, Memory
from memlane.core.values import replace
from memlane.disk import anchors, derived, files
from memlane.disk.names import PRIVATE, is_private
from memlane.index.links import Targets, retargeted
from memlane.lanes.notes import keys
from memlane.recall import address, judged

if TYPE_CHECKING:
    from memlane.bank import Bank

_MOST_LINKS = 10_000


def move(bank: Bank, id: str, new: str) -> Memory:
    """Give a note another name. Raises NotFound, AlreadyExists, and InvalidInput for what has no name of its own."""
    memory = address.get(bank, id)
    if memory.lane != "notes":
        hint = "Only notes have names that can be chosen; `memlane edit` changes what it says."
        raise InvalidInput(f"{gate.shown(memory.id)} cannot be renamed.", hint=hint)
    native = bank.notes.answers.native_of(bank.notes.new_path(new)) or ""
    gate.admit(gate.common(bank.guard), Draft(native), bank.notes)  # a name tells as much as a text
    if native == memory.native_id:
        return replace(memory, remarks=("that is its name already",))
    moved = to(bank, memory, native)
    if not keys.is_lost(memory, native):
        return moved
    return replace(bank.notes.revise(native, {"extra": {keys.FIELD: None}}), remarks=moved.remarks)


def to(bank: Bank, memory: Memory, native: str) -> Memory:
    """Move a note, and with it what is said of it elsewhere. Raises AlreadyExists, StorageError."""
    source, target = memory.file, bank.notes.answers.path_of(native)
    linking = list(_linking(bank, memory.id))
    if is_private(f"notes:{native}"):
        derived.prepare(bank.notes.root / PRIVATE)
    try:
        with files.locked(source):
            files.move(source, target)
    except AlreadyExists:
        hint = f"`memlane edit {native}` changes that one, `memlane rm {native}` deletes it."
        raise AlreadyExists(f"There is a note {gate.shown(native)} already.", hint=hint) from None
    for path in (source, target):
        bank.wrote("notes", path)
    moved = bank.notes.fetch(native)
    anchors.readdress(os.path.join(bank.root, anchors.NAME), memory.id, moved.id)
    bank.replaced.readdress(memory.id, moved.id)
    with suppress(MemlaneError, OSError):  # an opinion is no reason to fail
        judged.readdress(bank, memory.id, moved.id)
    bank.tombstones.private.readdress(memory.id, moved.id)
    remarks = bank.tombstones.lift(moved.text, forgotten=False)
    return replace(moved, remarks=(*moved.remarks, *remarks, *_relink(bank, linking, memory.id, moved.id)))


def _linking(bank: Bank, id: str) -> Iterator[str]:
    """The memories of this bank that link to one."""
    for link in bank.linked(id, limit=_MOST_LINKS):
        if not link.memory.owner:
            yield link.memory.id


def _relink(bank: Bank, linking: list[str], old: str, new: str) -> Iterator[str]:
    """Let links that meant a note mean it under its new name; yields what could not be done."""
    ids = bank.index.ask(bank.index.ids, force=True)
    after = Targets(ids)
    before = Targets([*(id for id in ids if id != new), old])
    for source in linking:
        source = new if source == old else source

        def name_for(node: str, source: str = source) -> str | None:
            meant = before.find(node, old if source == new else source)
            return new.partition(":")[2] if meant == old and after.find(node, source) != new else None

        try:
            memory = address.get(bank, source)
            text = retargeted(memory.text, name_for)
            if text != memory.text:
                bank.update(source, text)
        except MemlaneError as error:
            yield f"{source} still links to its old name: {error}"
