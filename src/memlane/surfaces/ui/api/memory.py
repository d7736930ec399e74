"""One memory: its text, where it came from, whether it is still true, what it was, and changing it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from memlane.bank import Bank
from memlane.care import deciding
from memlane.care.fresh import verdicts
from memlane.core.dates import iso, utc_now
from memlane.core.errors import Conflict, InvalidInput, NotFound
from memlane.core.model import UNCONFIRMED, USERS, Memory
from memlane.core.text import newline_of
from memlane.exchange import editing
from memlane.gate.outgoing import cleaned
from memlane.history import versions
from memlane.index.links import placeless
from memlane.recall import address, under
from memlane.recall.graph import outgoing
from memlane.surfaces.ui import markdown
from memlane.surfaces.ui.api.search import brief
from memlane.surfaces.ui.asking import Asked, Question, text

SHOWN = 60_000  # characters that are shown before somebody asks for all
_LINKS = 100  # that are listed
_LINES = 1_000  # of a diff, and so many characters of each


def get(bank: Bank, asked: Asked) -> dict[str, Any]:
    """A memory and all that can be said of it quickly; of a deleted one, how it is called and since when."""
    try:
        memory = bank.get(text(asked, "id"), expired=True)
    except NotFound:
        at, name = under.home(bank, text(asked, "id"))
        if (gone := address.deleted(at, name, titles=False)) is None:
            raise
        return {"id": _named(bank, at, gone.id), "deleted": iso(gone.removed_at)}
    body, cut = _beginning(memory.text, text(asked, "all", "") == "yes")
    found = memory.to_dict() | {
        "body": markdown.tree(body),
        "cut": cut,
        "characters": len(memory.text),
        "tags": [tag for tag in memory.tags if tag != UNCONFIRMED],
        "evidence": deciding.evidence(memory),
        "unconfirmed": memory.unconfirmed,
        "expires": iso(memory.expires),
        "expired": memory.expired(utc_now()),
        "held": bank.held(memory) or "",
        "origin": bank.origins([memory]).get(memory.id, ""),
        "users_word": memory.id in bank.users_word([memory]),
    }
    del found["text"]
    return found


def _beginning(whole: str, everything: bool) -> tuple[str, bool]:
    """What is shown of a text, and whether that is not all."""
    if everything or len(whole) <= SHOWN:
        return whole, False
    return whole[: whole.rfind("\n", SHOWN // 2, SHOWN) + 1 or SHOWN], True


def _named(bank: Bank, at: Bank, id: str) -> str:
    return id if at is bank else USERS + id


# -- what it was, what it is linked with, and its code


def history(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The versions, the newest first, without their texts; none where nothing is known of any."""
    at, id = under.home(bank, text(asked, "id"))
    try:
        found = at.history(id)
    except NotFound:
        found = []
    facts = ("version", "at", "author", "what")
    return {"versions": [{name: each.to_dict()[name] for name in facts} for each in found]}


def difference(bank: Bank, asked: Asked) -> dict[str, Any]:
    """What a version changed of another; the version "" is what is there now."""
    at, id = under.home(bank, text(asked, "id"))
    before = text(asked, "before") if "before" in asked else None
    lines = versions.difference(at, id, text(asked, "version", ""), before)
    return {"lines": None if lines is None else [line[:_LINES] for line in lines[:_LINES]]}


def links(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Which memories link to this one, and what it links to."""
    at, memory = under.found_in(bank, text(asked, "id"))
    into = [
        {**brief(link.memory), "id": _named(bank, at, link.memory.id), "passage": link.anchor_context}
        for link in at.linked(memory.id, limit=_LINKS)
    ]
    out = [{**link._asdict(), "id": link.id and _named(bank, at, link.id)} for link in outgoing(at, memory)[:_LINKS]]
    return {"in": into, "out": out}


def fresh(bank: Bank, asked: Asked) -> dict[str, Any]:
    """What became of the code that it speaks of: None for one that speaks of none."""
    at, id = under.home(bank, text(asked, "id"))
    found = verdicts.report(at, [id]).verdicts
    return {"verdict": found[0].to_dict() if found else None}


def to(bank: Bank, asked: Asked) -> dict[str, Any]:
    """What a [[target]] leads to: the id of a memory, or the memories that link to something else, such as a file."""
    target = text(asked, "target")
    try:
        return {"id": bank.get(target, expired=True).id}
    except NotFound as error:
        is_file = "\0" not in target and bool((watch := bank.watch) and watch.code.holds(placeless(target)))
        linked = [{**brief(link.memory), "passage": link.anchor_context} for link in bank.linked(target, limit=_LINKS)]
        return {"id": None, "file": is_file, "near": list(error.near), "links": linked}


# -- changing it


def opened(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The text to be edited, and a name for what it is now. One with a secret in it is not edited here: it would be
    shown, and saved, without that."""
    at, id = under.home(bank, text(asked, "id"))
    page = editing.opened(at, id)
    if cleaned(page.text, at.guard) != page.text:
        raise InvalidInput(
            "It holds a secret, which this page does not show, so it cannot be edited here.",
            hint=f"`memlane edit {_named(bank, at, page.id)}` opens it in your editor.",
        )
    return {"text": page.text, "whole": not page.place.lane.answers.shares_files, "opened": _name_of(page.text)}


def _name_of(what: str) -> str:
    return sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def save(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Store what was edited. Raises Conflict where it is not what was opened any more."""
    at, id = under.home(bank, text(asked, "id"))
    page, new = editing.opened(at, id), text(asked, "text")
    if _name_of(page.text) != text(asked, "opened"):
        raise Conflict("It was changed while you edited it. Nothing was written.", hint="Both texts are below.")
    new = new.replace("\r\n", "\n").replace("\n", newline_of(page.text))  # a browser knows but one line end
    if new == page.text:
        return {"id": _named(bank, at, page.id), "remarks": []}
    with under.telling():
        return _written(bank, at, editing.save(at, page, new, by_person=True))


def _written(bank: Bank, at: Bank, memory: Memory) -> dict[str, Any]:
    return {"id": _named(bank, at, memory.id), "remarks": list(memory.remarks)}


def tag(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Add a tag, or take one away."""
    memory = bank.get(text(asked, "id"), expired=True)
    added, taken = text(asked, "add", "").strip().lstrip("#"), text(asked, "remove", "")
    tags = dict.fromkeys((*(tag for tag in memory.tags if tag != taken), *([added] if added else [])))
    return _written(bank, bank, bank.update(memory.id, tags=list(tags)))


def delete(bank: Bank, asked: Asked) -> dict[str, Any]:
    return {"id": bank.delete(text(asked, "id"), expected=text(asked, "expected", "") or None).id}


def restore(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Bring back what was deleted, archived, held back or has expired; with a version, what it said then."""
    return _written(bank, bank, bank.restore(text(asked, "id"), text(asked, "version", "") or None))


def accept(bank: Bank, asked: Asked) -> dict[str, Any]:
    """It is right about the code as it is now."""
    return {"verdict": bank.accept(text(asked, "id")).to_dict()}


def confirm(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The user has read it, and lets it count. Raises InvalidInput where this page is not the user's hand."""
    memory = deciding.confirm(bank, text(asked, "id"))
    if bank.origins([memory]):
        hint = "Start it in a terminal of your own: an agent's shell cannot speak for you."
        raise InvalidInput("`memlane ui` was started by an agent, so this does not count as your word.", hint=hint)
    return _written(bank, bank, memory)


READS: dict[str, Question] = {
    "memory": get, "versions": history, "difference": difference, "links": links, "fresh": fresh, "to": to,
    "opened": opened,
}  # fmt: skip
WRITES: dict[str, Question] = {
    "save": save, "tag": tag, "delete": delete, "restore": restore, "accept": accept, "confirm": confirm,
}  # fmt: skip
