"""What waits for a person's word: candidates of sessions with their evidence, and rules that may not be the user's."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.care import deciding
from memlane.care.distilled import INSTEAD_OF
from memlane.care.spoken import spoken
from memlane.core.errors import Conflict, InvalidInput, MemlaneError, Refused
from memlane.core.model import UNCONFIRMED, Memory
from memlane.gate.outgoing import cleaned
from memlane.history import origin, sessions
from memlane.recall import under
from memlane.surfaces.ui import markdown
from memlane.surfaces.ui.api.search import brief
from memlane.surfaces.ui.asking import Asked, Question, text

MOST = 200  # in the list; the rest comes up as these are decided
_WROTE = 5  # changes of a rule that are listed


def waiting(bank: Bank, asked: Asked) -> dict[str, Any]:
    found = deciding.unconfirmed(bank)
    return {"count": len(found), "items": [_item(memory) for memory in found[:MOST]]}


def count(bank: Bank, asked: Asked) -> dict[str, Any]:
    return {"count": len(deciding.unconfirmed(bank))}


def _item(memory: Memory) -> dict[str, Any]:
    kind = next((tag for tag in memory.tags if tag != UNCONFIRMED), "")
    return brief(memory) | {"kind": kind, "rule": not memory.unconfirmed, "replaces": INSTEAD_OF in memory.fields}


def candidate(bank: Bank, asked: Asked) -> dict[str, Any]:
    """One of them, with what there is to decide by."""
    memory = bank.get(text(asked, "id"))
    return _item(memory) | {
        "text": memory.text,
        "body": markdown.tree(memory.text),
        "version": memory.version,
        "confidence": memory.fields.get("confidence"),
        "evidence": deciding.evidence(memory),
        "said": spoken(bank, memory),
        "session": _session(bank, memory),
        "old": _whole(deciding.older(bank, memory)),
        "like": _whole(deciding.alike(bank, memory)),
        "code": bank.outdated(memory),
        "wrote": [] if memory.unconfirmed else _who_wrote(bank, memory),
    }


def _session(bank: Bank, memory: Memory) -> str:
    """The session that it was said in, where the page can show that."""
    id = memory.fields.get("session")
    return id if isinstance(id, str) and sessions.is_logged(bank, id) else ""


def _whole(memory: Memory | None) -> dict[str, Any] | None:
    return brief(memory) | {"body": markdown.tree(memory.text)} if memory else None


def _who_wrote(bank: Bank, memory: Memory) -> list[dict[str, Any]]:
    """Who changed a memory, the latest first, as far as that is known."""
    try:
        at, own = under.found_in(bank, memory.id)
        return [version.to_dict() | {"text": None} for version in at.history(own.id)[:_WROTE]]
    except MemlaneError:
        return []


# -- deciding


def decide(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Do `what` with a candidate that is still as it was shown. Raises Conflict, Refused, InvalidInput."""
    id, what, version = text(asked, "id"), text(asked, "what"), text(asked, "version")
    memory = bank.get(id)
    if memory.version != version:
        raise Conflict(
            "It was changed while you looked at it. Nothing was done.",
            hint="Look at what it says now, and decide again.",
            version=memory.version,
        )
    if what == "keep":
        memory = _kept(bank, memory)
    elif what == "rule":
        memory = _kept(bank, memory, rule=True)
    elif what == "replace":
        memory = deciding.take_place(bank, id)
    elif what == "merge":
        memory = deciding.merge(bank, id, text(asked, "into"))
    elif what == "reject":
        _reject(bank, memory)
    elif what == "edit":
        memory = _kept(bank, _edited(bank, memory, text(asked, "text")))
    else:
        raise InvalidInput("There is no such decision.", hint="Load the page anew.")
    return {"id": memory.id, "title": memory.title}


def _kept(bank: Bank, memory: Memory, *, rule: bool = False) -> Memory:
    """Confirm it. What an agent has started is not the user's hand: then a rule would not become the user's."""
    kept = deciding.confirm(bank, memory.id, rule=rule)
    if not memory.unconfirmed and kept.id not in bank.users_word([kept]):
        hint = "Start it in a terminal of your own: an agent's shell cannot speak for you."
        raise InvalidInput("`memlane ui` was started by an agent, so this does not count as your word.", hint=hint)
    return kept


def _reject(bank: Bank, memory: Memory) -> None:
    """A note is archived, and known by that if it is said again; what has no archive is deleted."""
    if memory.lane == "notes":
        deciding.reject(bank, memory.id)
    else:
        bank.delete(memory.id)


def _edited(bank: Bank, memory: Memory, new: str) -> Memory:
    _, whole = under.found_in(bank, memory.id)
    if cleaned(whole.text, bank.guard) != whole.text:
        hint = f"`memlane edit {memory.id}` opens it in your editor."
        why = "It holds a secret, which this page does not show; saving it here would remove that."
        raise Refused(why, hint=hint, check="secrets")
    return bank.update(memory.id, new, expected=memory.version) if new != memory.text else memory


def unreview(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Let a rule that was kept wait again; that it was kept is in no journal."""
    at, own = under.found_in(bank, text(asked, "id"))
    origin.unreview(at.lane, [own])
    return {}


READS: dict[str, Question] = {"inbox": waiting, "inbox-count": count, "candidate": candidate}
WRITES: dict[str, Question] = {"decide": decide, "unreview": unreview}
