"""What a bank as a whole needs: one Plan over all lanes, and carrying out the steps that need no decision.

    expired      memories whose time is over
    prune        what the lanes' own rules would archive or delete (memlane.care.prune)
    retention    records beyond capture.keep_days and capture.keep_count, where these are switched on
    duplicate    memories that say the same, or nearly, in whatever lanes
    superseded   memories that a newer one replaces or contradicts by its own words, or that share its title
    versions     memories that a merge has left in several versions
    link         links to memories that do not exist; links to missing files are remarks
    stale        memories that nobody has confirmed for long, by days (memlane.care.ages)
    drifted      memories whose code has changed, moved or gone (memlane.care.fresh)
    size         files that have become too long
    register     registers of the vault without a topic
    empty        memories without text
    suspicious   memories that read like instructions to a model
    wrong        memories that the user judged wrong when an agent was given them (memlane.recall.judged)

A step is either safe (archive, delete) or a thing to "look at". `apply` does only the safe ones, and `undo` takes
them back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from memlane.care import prune, sync_checks
from memlane.care.known import FORM, SAID, look
from memlane.care.review import single
from memlane.care.review.reading import Item, Reading
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.model import Memory, Plan, Step
from memlane.core.text import first_line
from memlane.disk import journal
from memlane.gate import redacted, shown
from memlane.lanes import NAMES
from memlane.recall import address

if TYPE_CHECKING:
    from memlane.bank import Bank


def _duplicates(reading: Reading) -> Iterator[Item]:
    from memlane.care.review.duplicates import duplicates  # with NumPy, only when something has changed

    return duplicates(reading)


def _superseded(reading: Reading) -> Iterator[Item]:
    from memlane.care.review.superseded import superseded

    return superseded(reading)


__all__ = ["KINDS", "Item", "apply", "plan", "sides", "summary"]
KINDS: Mapping[str, Callable[[Reading], Iterator[Item]]] = {
    "expired": single.expired,
    "prune": single.pruned,
    "retention": single.retention,
    "duplicate": lambda reading: reading.remembered("duplicate", _duplicates),
    "superseded": lambda reading: reading.remembered("superseded", _superseded),
    "versions": single.versions,
    "link": single.links,
    "stale": single.stale,
    "drifted": single.drifted,
    "size": single.too_long,
    "register": single.registers,
    "empty": single.empty,
    "suspicious": single.suspicious,
    "wrong": single.judged_wrong,
}
_REMARKS: Mapping[str, Callable[[Reading], Iterator[str]]] = {
    "link": single.ghosts,
    "stale": single.unconfirmed,
    "empty": single.stubs,
    "suspicious": lambda reading: sync_checks.remarks(reading.bank),
}
_APPLY: Mapping[str, Callable[[Bank, str], object]] = {
    "expired": lambda bank, which: _set_aside(bank, which),
    "retention": lambda bank, which: bank.records.archive(which.removeprefix("records:")),
    "duplicate": lambda bank, which: bank.delete(which),
    "superseded": lambda bank, which: bank.update(which, status="archived"),
    "empty": lambda bank, which: bank.delete(which),
}


def _set_aside(bank: Bank, id: str) -> None:
    """Move what has expired into the trash: its text does not count as deleted."""
    memory = address.get(bank, id)
    bank.notes.set_aside(memory.native_id)
    bank.wrote(memory.lane, memory.file)


def plan(
    bank: Bank,
    *,
    only: Collection[str] = (),
    lanes: Collection[str] = (),
    items: Sequence[str] = (),
    folder: str | None = None,
) -> Plan:
    """Everything that the bank needs, always in the same order: of these kinds, in these lanes, about these ids.

    `items` may also be numbers of the whole list, from 1. `folder` is what the printed commands name the bank by.
    Changes nothing. Raises InvalidInput, and NotFound for an item that is not on the list.
    """
    if not KINDS.keys() >= set(only):
        raise InvalidInput("There is no such kind of review.", hint=f"Use some of: {', '.join(KINDS)}.")
    with look(bank, FORM | SAID) as known:
        known.require_all()
        return _planned(Reading(bank, folder, tuple(lanes or NAMES), known), only, items)


def _planned(reading: Reading, only: Collection[str], items: Sequence[str]) -> Plan:
    steps: list[Item] = []
    settled: set[str] = set()  # no memory is changed twice, and what goes anyway needs no look
    kinds = [kind for kind in KINDS if not only or kind in only]
    for kind in kinds:
        by_id: dict[str, Item] = {}
        for item in KINDS[kind](reading):
            if item.id.partition(":")[0] in reading.lanes and item.id not in settled:
                by_id.setdefault(item.id, item)
        raw = [item for item in by_id.values() if not item.kind]
        by_id |= {item.id: item for item in reading.completed(raw, kind)}
        steps += by_id.values()
        going = (item for item in by_id.values() if item.safe or kind == "prune")
        settled |= {id for item in going for id in (item.id, *item.along)}
    wanted = [_REMARKS[kind] for kind in kinds if kind in _REMARKS and not items]
    remarks = (redacted(remark) for find in wanted for remark in find(reading))
    return Plan(_selected(steps, items), tuple(dict.fromkeys(remarks)))


def _selected(steps: list[Item], items: Sequence[str]) -> tuple[Item, ...]:
    """The steps with these ids or numbers; all when none is given. Raises NotFound."""
    if not items:
        return tuple(steps)
    ids = {item.id for item in steps}
    for name in items:
        if not (name in ids or (name.isdecimal() and 0 < int(name) <= len(steps))):
            raise NotFound(f"There is nothing to do about {shown(name)}.", hint="`memlane review` lists what there is.")
    return tuple(item for number, item in enumerate(steps, 1) if item.id in items or str(number) in items)


def apply(bank: Bank, proposed: Plan) -> Plan:
    """Carry out the safe steps of a plan and return what was done; `undo` takes it back.

    What has changed meanwhile is judged again, never forced. Steps to "look at" are left to a person. Raises
    StorageError; what was done until then can be undone.
    """
    safe = [step for step in proposed.steps if isinstance(step, Item) and step.safe]
    others = tuple(step for step in proposed.steps if not isinstance(step, Item))  # of a plan by `prune` itself
    kinds = {item.kind for item in safe}
    now = {_key(step) for step in plan(bank, only=kinds).steps if isinstance(step, Item)} if kinds else set()
    remarks = [f"{item.id}: is no longer as the plan saw it" for item in safe if _key(item) not in now]
    due = [item for item in safe if _key(item) in now]
    done: list[Step] = []
    with journal.change("review"):
        if rules := [item for item in due if item.kind == "prune"]:
            along = [Step(id, item.action, "") for item in rules for id in item.along]
            gone = {step.id for step in prune.apply(bank, Plan((*rules, *along))).steps}
            done += [item for item in rules if item.id in gone]
        if others:
            pruned = prune.apply(bank, Plan(others))
            done += pruned.steps
            remarks += pruned.remarks
        for item in due:
            if item.kind == "prune":
                continue
            journal.step(item.id, item.action)
            try:
                _APPLY[item.kind](bank, item.id)
            except (NotFound, InvalidInput, AlreadyExists) as error:
                remarks.append(f"{item.id}: {error}")
            else:
                done.append(item)
    return Plan(tuple(done), tuple(remarks))


def _key(item: Item) -> tuple[str, str, str]:
    return item.kind, item.id, item.action


# -- showing


def sides(bank: Bank, item: Item) -> list[Memory]:
    """The memories that an item speaks of, as they are now, without those that are gone meanwhile."""
    found = []
    for id in (item.id, *item.others):
        try:
            found.append(address.get(bank, id))
        except (NotFound, InvalidInput):
            continue
    return found


def summary(memory: Memory, lines: int = 40) -> str:
    """A memory in so many lines at most."""
    if not memory.text.strip():
        return first_line(memory.title) or "(no text)"
    text = memory.text.strip("\n").split("\n")
    more = [f"… {len(text) - lines} more lines"] if len(text) > lines else []
    return "\n".join([*text[:lines], *more])
