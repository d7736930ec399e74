"""What may not be true any more, or is there twice: each with the memories that it is about, and steps to choose from.

A step names what `settle` does: {"do", "id", "label"}, and `side`, the number of the memory that it stands below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from memlane.bank import Bank
from memlane.care import deciding, review, undecided
from memlane.care.distilled import INSTEAD_OF
from memlane.care.fresh import verdicts
from memlane.care.review import Item
from memlane.core.errors import Conflict, InvalidInput, NotFound
from memlane.core.model import Memory
from memlane.recall.leaving import shown
from memlane.surfaces.ui import markdown
from memlane.surfaces.ui.api.search import brief
from memlane.surfaces.ui.asking import Asked, Question, number, text

KINDS = (
    "wrong", "versions", "drifted", "superseded", "duplicate", "suspicious", "expired", "stale", "link", "empty",
    "size", "register", "prune", "retention",
)  # fmt: skip
ALIKE = "similar"
_SOON = [kind for kind in review.KINDS if kind != "duplicate"]
_FEW, _MOST = 10, 100  # items of each kind, and of the only one that is asked for
_WAIT = 0.5  # seconds of indexing
_PASSAGE = 1_500  # characters of a memory that are shown beside another

Step = dict[str, Any]


def truth(bank: Bank, asked: Asked) -> dict[str, Any]:
    """How many there are of each kind, and the first of each; with `kind`, more of that one.

    With `soon`, those that are found soon: not what is there twice.
    """
    kind, soon = text(asked, "kind", ""), text(asked, "soon", "") == "yes"
    steps = [step for step in review.plan(bank, only=_SOON if soon else ()).steps if isinstance(step, Item)]
    by_kind = {name: [item for item in steps if item.kind == name] for name in KINDS}
    chosen = [item for name in KINDS if kind in ("", name) for item in by_kind[name][: _MOST if kind else _FEW]]
    code = _code(bank, [item.id for item in chosen if item.kind == "drifted"])
    alike = [] if soon else _alike(bank, by_kind["duplicate"])
    return {
        "count": sum(item.kind != "duplicate" for item in steps),
        "counts": {name: len(found) for name, found in (by_kind | {ALIKE: alike}).items() if found},
        "items": [_item(bank, item, code.get(item.id)) for item in (*chosen, *(alike if kind in ("", ALIKE) else ()))],
    }


def _alike(bank: Bank, duplicates: Sequence[Item]) -> list[Item]:
    """Memories that mean nearly the same, two of each group, where nothing else says so already; none before all is
    indexed."""
    bank.index.refresh(wait=_WAIT)
    if not bank.index.complete:
        return []
    known = {frozenset((item.id, *item.others)) for item in duplicates}
    found = []
    state = bank.index.ask(lambda: bank.index.rows("SELECT count(*), max(n) FROM memories"))
    for first, second in _closest(bank, str(state)):
        if first.lane != "records" != second.lane and frozenset((first.id, second.id)) not in known:
            reason = f"means nearly the same as {second.id}"
            found.append(Item(first.id, "look at", reason, first.title, kind=ALIKE, others=(second.id,)))
    return found


@lru_cache(1)
def _closest(bank: Bank, state: str) -> list[Sequence[Memory]]:
    """Two of each group, worked out once for a state of the index: a memory that is written anew has another number."""
    return [cluster.memories[:2] for cluster in bank.suggest_merges(limit=_FEW, type=None)]


def count(bank: Bank, asked: Asked) -> dict[str, Any]:
    """How many there are without duplicates, which take long to find in a large bank: this is asked by every page."""
    return {"count": len(review.plan(bank, only=_SOON).steps)}


def _code(bank: Bank, ids: Sequence[str]) -> dict[str, Any]:
    return {each.id: each.to_dict() for each in verdicts.report(bank, ids).verdicts} if ids else {}


def _item(bank: Bank, item: Item, code: Any) -> dict[str, Any]:
    sides = shown(bank, review.sides(bank, item))[:4]
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.title,
        "reason": item.reason,
        "sides": [_side(memory) for memory in sides],
        "seen": {memory.id: memory.version for memory in sides},
        "code": code,
        "steps": list(_steps(item, sides)),
        "command": item.command,
    }


def _side(memory: Memory) -> dict[str, Any]:
    cut = memory.text[:_PASSAGE]
    return brief(memory) | {"body": markdown.tree(cut), "cut": len(memory.text) > len(cut)}


# -- what can be done about each


def _steps(item: Item, sides: Sequence[Memory]) -> Iterator[Step]:
    if item.safe:
        yield _step("apply", item.id, {"archive": "Archive it", "delete": "Delete it"}.get(item.action, item.action))
        if item.kind == "expired":
            yield _step("restore", item.id, "Keep it")
    elif sides:
        yield from _STEPS.get(item.kind, _change)(sides)


def _step(do: str, id: str, label: str, **more: Any) -> Step:
    return {"do": do, "id": id, "label": label, **more}


def _change(sides: Sequence[Memory]) -> Iterator[Step]:
    yield _step("edit", sides[0].id, "Edit it")
    yield _step("delete", sides[0].id, "Delete it")


def _of_code(sides: Sequence[Memory]) -> Iterator[Step]:
    yield _step("accept", sides[0].id, "It is right")
    yield from _change(sides)


def _of_wrong(sides: Sequence[Memory]) -> Iterator[Step]:
    yield from _change(sides)
    yield _step("unjudge", sides[0].id, "It is right after all")


def _of_two(sides: Sequence[Memory]) -> Iterator[Step]:
    """Of two that do not go together, either can be kept; what a session has said is confirmed or rejected."""
    if len(sides) < 2:
        yield from _change(sides)
        return
    old, new = sides[:2]
    if new.unconfirmed and new.fields.get(INSTEAD_OF) == old.id:
        yield _step("replace", new.id, "It takes the place of the older one", side=1)
        yield _step("confirm", new.id, "Both are right", side=1)
        yield _step("reject", new.id, "Reject it", side=1)
        return
    for side, other in enumerate((new, old)):
        way = "archive" if other.lane == "notes" else "delete"
        yield _step(way, other.id, f"This one is right: {way} the other", side=side)
    yield _step("edit", old.id, "Edit the older one")


def _of_twins(sides: Sequence[Memory]) -> Iterator[Step]:
    if len(sides) < 2:
        yield from _change(sides)
        return
    for side, other in enumerate(reversed(sides[:2])):
        yield _step("delete", other.id, "Keep this one, delete the other", side=side)
    yield _step("merge", sides[0].id, "Put both into one", into=sides[1].id)


def _of_age(sides: Sequence[Memory]) -> Iterator[Step]:
    if sides[0].unconfirmed:
        yield _step("confirm", sides[0].id, "It is right")
        yield _step("reject", sides[0].id, "Reject it")
    else:
        yield from _change(sides)


def _of_versions(sides: Sequence[Memory]) -> Iterator[Step]:
    memory = sides[0]
    if texts := undecided.texts(memory):
        for at, version in enumerate(texts, 1):
            yield _step("version", memory.id, f"Keep version {at}", number=at, says=version)
        yield _step("version", memory.id, "Keep all", number=0)
    else:
        for key, values in undecided.values(memory).items():
            for at, value in enumerate(values):
                yield _step("value", memory.id, f"{key}: {value}", key=key, number=at)
    yield _step("edit", memory.id, "Edit it")


_STEPS: Mapping[str, Callable[[Sequence[Memory]], Iterator[Step]]] = {
    "wrong": _of_wrong,
    "drifted": _of_code,
    "superseded": _of_two,
    "duplicate": _of_twins,
    ALIKE: _of_twins,
    "stale": _of_age,
    "versions": _of_versions,
}


# -- doing it


def settle(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Take a step. Raises Conflict where a memory is not as it was when it was shown."""
    seen = asked.get("seen")
    for id, version in (seen if isinstance(seen, dict) else {}).items():
        try:
            now = bank.get(id, expired=True).version
        except NotFound:
            now = None
        if now != version:
            why = "It was changed while you looked at it. Nothing was done."
            raise Conflict(why, hint="Look at what it says now, and decide again.")
    id = text(asked, "id")
    match text(asked, "do"):
        case "apply":
            _applied(bank, id, text(asked, "kind"))
        case "accept":
            bank.accept(id)
        case "archive":
            bank.update(id, status="archived")
        case "delete":
            bank.delete(id)
        case "restore":
            bank.restore(id)
        case "confirm":
            deciding.confirm(bank, id)
        case "reject":
            deciding.reject(bank, id)
        case "replace":
            deciding.take_place(bank, id)
        case "unjudge":
            bank.judge(id, None)
        case "merge":
            deciding.merge(bank, id, text(asked, "into"))
        case "version":
            undecided.keep_text(bank, id, number(asked, "number", 0))
        case "value":
            undecided.keep_value(bank, id, text(asked, "key"), number(asked, "number", 0))
        case _:
            raise InvalidInput("There is no such step.", hint="Load the page anew.")
    return {"id": id}


def _applied(bank: Bank, id: str, kind: str) -> None:
    done = bank.apply(bank.review(only=[kind], items=[id]))
    if not done.steps:
        raise Conflict(f"Nothing was done: {'; '.join(done.remarks)}.", hint="Look at it again.")


READS: dict[str, Question] = {"truth": truth, "truth-count": count}
WRITES: dict[str, Question] = {"settle": settle}
