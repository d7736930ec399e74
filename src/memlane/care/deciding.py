"""What a person decides about memories that were distilled from sessions, and the evidence to decide by.

Rejecting archives the note with the tag `rejected` instead of deleting it: that is how the same thing is recognised in
other words and other sessions. `forget` removes that as well, and keeps only hashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlane.care.distilled import INSTEAD_OF, REJECTED, close
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput
from memlane.core.model import UNCONFIRMED, Memory
from memlane.disk import journal
from memlane.history import origin
from memlane.recall import under
from memlane.recall.adding import took_place
from memlane.recall.similar import look
from memlane.recall.starting import OPEN, PINNED
from memlane.recall.superseded import current, there

if TYPE_CHECKING:
    from memlane.bank import Bank


def unconfirmed(bank: Bank) -> list[Memory]:
    """What nobody has confirmed yet: rules that are not known to be the user's, what would take the place of another
    memory, then the surest."""
    found = [memory for memory in bank.list(tags=[UNCONFIRMED]) if current(bank, memory.id) is None]
    found.sort(key=lambda memory: (INSTEAD_OF not in memory.fields, -_confidence(memory), memory.id))
    return [*origin.unproven(bank), *found]


def _confidence(memory: Memory) -> float:
    sure = memory.fields.get("confidence")
    return float(sure) if isinstance(sure, int | float) else 0.0


def confirm(bank: Bank, id: str, *, rule: bool = False) -> Memory:
    """Confirm a memory: by the user, it is the user's word from now on. As a rule, it also goes into every snapshot.

    Raises NotFound, StorageError.
    """
    memory = bank.get(id)
    tags = [tag for tag in memory.tags if tag != UNCONFIRMED]
    if rule and memory.lane == "notes":
        tags = list(dict.fromkeys(["rule", PINNED, *tags]))
    if tags != [*memory.tags] or _decided(memory):
        memory = bank.update(memory.id, tags=tags, **_decided(memory))
    at, own = under.found_in(bank, memory.id)
    origin.review(at.lane, [own])
    return memory


def _decided(memory: Memory) -> dict[str, Any]:
    """What takes a proposal out of a note."""
    return {"extra": {INSTEAD_OF: None}} if INSTEAD_OF in memory.fields else {}


def reject(bank: Bank, id: str) -> Memory:
    """Put a memory out of sight; nothing that says the same is distilled again. Raises NotFound, StorageError."""
    memory = bank.get(id)
    kept = [tag for tag in memory.tags if tag not in (UNCONFIRMED, REJECTED)]
    return bank.update(memory.id, tags=[*kept, REJECTED], status="archived", **_decided(memory))


def older(bank: Bank, memory: Memory) -> Memory | None:
    """What a memory would take the place of, if that is there and somebody confirms it."""
    id = memory.fields.get(INSTEAD_OF)
    return there(bank, id) if isinstance(id, str) and memory.unconfirmed else None


def take_place(bank: Bank, id: str) -> Memory:
    """Confirm a memory and let it take the place of the older one that it names; open work is archived with that.

    Raises NotFound, StorageError, InvalidInput when it names none that is there.
    """
    memory = bank.get(id)
    old = older(bank, memory)
    if old is None:
        raise InvalidInput("There is nothing whose place it would take.", hint="Keep it, or reject it.")
    with journal.change("replace", memory.id, old.id):
        memory = confirm(bank, memory.id)
        if OPEN in old.tags:
            close(bank, memory, old)
        else:
            took_place(bank, memory, old)
    return bank.get(memory.id)


def alike(bank: Bank, memory: Memory) -> Memory | None:
    """The memory that one is most like, to be merged with; None when there is none."""
    likes = (like.memory for like in look(bank, memory.text))
    return next((other for other in likes if other.id != memory.id and other.lane != "records"), None)


def merge(bank: Bank, id: str, into: str) -> Memory:
    """Add the text of one memory to the end of another, and delete the first. Raises NotFound, Refused."""
    memory = bank.get(id)
    with journal.change("merge", memory.id, into):
        merged = bank.append(into, memory.text)
        bank.delete(memory.id)
    return merged


def evidence(memory: Memory) -> str:
    """Where a memory was said, in a line; "" for one that was not distilled."""
    fields = memory.fields
    if "session" not in fields and "confidence" not in fields:
        return ""
    day = (iso(memory.created_at) or "")[:10]
    parts = [f"said on {day}" if day else "", f"branch {fields['branch']}" if fields.get("branch") else ""]
    parts += [f"{name} {fields[key]}" for name, key in (("session", "session"),) if fields.get(key)]
    for name, key in (("line", "lines"), ("message", "uuids")):
        if isinstance(found := fields.get(key), list) and found:
            parts.append(f"{name}{'s' * (len(found) > 1)} {', '.join(map(str, found))}")
    if isinstance(again := fields.get("seen_in"), list) and again:
        parts.append(f"said again in {len(again)} more session{'s' * (len(again) > 1)}, last on {fields.get('seen')}")
    parts.append(f"confidence {fields['confidence']}" if "confidence" in fields else "")
    return ", ".join(filter(None, parts))
