"""Memories from elsewhere: what other programs and other banks remember, taken into a bank once and only once.

    for outcome in import_from(bank, Path("vault")):
        print(outcome.status, outcome.item, outcome.why)

Everything that comes in passes the gate. An imported note says where it came from, without any path of this machine, so
that a second import knows it again:

    imported_from: "obsidian:my-vault/projects/alpha.md"
    imported_hash: "0f6b7c2d91ae"        what the source said then

Reading the formats is the importers' business.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from memlane import config, gate, lanes
from memlane.bank import Bank
from memlane.core.errors import InvalidInput, MemlaneError, NotFound, Refused
from memlane.core.front_matter import find_front, load_front
from memlane.core.model import Draft, Memory, Problem
from memlane.exchange import importers, restoring
from memlane.exchange.importers import Item, Skipped
from memlane.exchange.importers.folder import HASH, MARK
from memlane.lanes import NAMES

STATUSES = ("new", "updated", "same", "changed", "refused", "problem", "skipped")
INTO = ("notes", "vault", "records")  # the lanes that a text without further names can go into


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one thing at the source. `id` is the memory that it is now, "" when there is none."""

    status: str
    item: str
    id: str = ""
    why: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"status": self.status, "item": self.item, "id": self.id, "why": self.why}


# -- import


def import_from(
    bank: Bank,
    path: str | Path,
    *,
    kind: str | None = None,
    lane: str | None = None,
    into: str = "",
    label: str | None = None,
    update: bool = False,
    dry_run: bool = False,
) -> Iterator[Outcome]:
    """Take what lies at a path into the bank, one durable memory after the other; an Outcome for each.

    `kind` is one of importers.KINDS (default: judged by the content), `lane` where texts go (default: notes), `into` a
    folder for the notes, `label` the source's name in their mark. A thing that has changed at its source is only
    reported, unless `update`; then the older one goes to the trash. Nothing is written with `dry_run`.
    Raises NotFound, InvalidInput before anything is read.
    """
    path = Path(path).expanduser().absolute()
    kind = kind or importers.detect(path)
    if not os.path.lexists(path):
        raise NotFound("There is nothing at that path.", hint="Name a folder or a file that exists.")
    if kind in importers.OWN and lane is not None:
        raise InvalidInput("Memories of a bank go into the lane they come from.", hint="Leave --lane out.")
    if (lane or "notes") not in INTO:
        raise InvalidInput(
            f"The {lane} lane needs names that the source does not have.", hint=f"Use one of: {', '.join(INTO)}."
        )
    same = kind == "bank" and os.path.realpath(config.load(path).root) == os.path.realpath(bank.root)
    if same or os.path.realpath(path) == os.path.realpath(bank.root):
        raise InvalidInput("That is the bank itself.", hint="Name the folder or file to import from.")
    own = {os.fspath(bank.root), *(os.fspath(bank.lane(name).root) for name in NAMES)}
    found = importers.read(kind, path, skip=own)
    if kind in importers.OWN:
        return _restored(bank, found, update, dry_run)
    source = _source(kind, path, label)
    if lane in (None, "notes"):
        return _noted(bank, found, source, into, update, dry_run)
    return _added(bank, found, lane or "", dry_run)


def _source(kind: str, path: Path, label: str | None) -> str:
    """The beginning of the marks of a source: its kind and a name that means the same on every machine."""
    if label is None:
        real = path.resolve()
        if kind in ("markdown", "obsidian"):
            label = real.name if real.is_dir() else real.parent.name
        elif kind in ("serena", "cline"):
            own = (".serena", "memories", "memory-bank")
            label = next((part.name for part in (real, *real.parents) if part.name not in own), "")
        else:
            label = ""
    return f"{kind}:{label}/" if label else f"{kind}:"


def _reported(found: Problem | Skipped) -> Outcome:
    if isinstance(found, Problem):
        where = f"{found.path.name}:{found.line}" if found.line else found.path.name
        return Outcome("problem", _shown(where), why=found.why)
    return Outcome("skipped", _shown(found.key), why=found.why)


def _shown(name: str) -> str:
    """A name for a message; one that is not UTF-8 is made so."""
    return gate.shown(os.fsencode(name).decode(errors="replace"))


def _failed(item: Item, error: MemlaneError) -> Outcome:
    status = "refused" if isinstance(error, Refused | InvalidInput) else "problem"
    return Outcome(status, gate.shown(item.key), why=str(error))


def digest(title: str | None, text: str, tags: Iterable[str]) -> str:
    """Twelve hex digits for what a memory says."""
    said = json.dumps([title or "", text, list(tags)], ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def _digest(one: Draft | Memory) -> str:
    return digest(one.title, one.text, one.tags)


def _clean(bank: Bank, draft: Draft) -> Draft:
    """The draft as every lane would store it. Raises Refused, InvalidInput."""
    return gate.admit(gate.common(bank.guard), draft, None)


# -- notes, which remember where they came from


def _noted(
    bank: Bank, found: Iterable[importers.Found], source: str, into: str, update: bool, dry_run: bool
) -> Iterator[Outcome]:
    known, twins = _marks(bank)
    gone = _marks_in_trash(bank) - known.keys()
    for one in found:
        if not isinstance(one, Item):
            yield _reported(one)
            continue
        mark, shown = f"{source}{one.key}", gate.shown(one.key)
        try:
            draft = _clean(bank, one.draft)
            hash = _digest(draft)
            old = known.get(mark)
            twin = twins.get(hash)
            draft = replace(draft, fields={**draft.fields, MARK: mark, HASH: hash})
            name = f"{into.strip('/')}/{one.name}" if into.strip("/") else one.name
            if old is None and mark in gone:
                yield Outcome("same", shown, why="deleted here; `memlane restore` brings it back")
            elif (old is None or old.fields.get(HASH) != hash) and (day := bank.tombstones.deleted(draft.text)):
                yield Outcome("same", shown, why=_deleted(day))
            elif old is None and twin and not str(twin.fields[MARK]).startswith(source):
                yield Outcome("same", shown, twin.id)
            elif old is None:
                known[mark] = memory = _created(bank, draft, name, dry_run)
                yield Outcome("new", shown, memory.id, "; ".join(memory.remarks))
            elif old.fields.get(HASH) == hash:
                yield Outcome("same", shown, old.id)
            elif not update:
                yield Outcome("changed", shown, old.id, "differs from what was imported; --update takes it")
            elif old.fields.get(HASH) != _digest(old):
                yield Outcome("changed", shown, old.id, "was edited here, too, and is left as it is")
            else:
                known[mark] = _exchange(bank, old, draft, dry_run)
                yield Outcome("updated", shown, old.id, "" if dry_run else "the older one is in the trash")
        except MemlaneError as error:
            yield _failed(one, error)


def _marks(bank: Bank) -> tuple[dict[str, Memory], dict[str, Memory]]:
    """The imported notes of a bank, by where they came from and by what they said then."""
    notes = [memory for memory in bank.memories("notes") if isinstance(memory.fields.get(MARK), str)]
    return {m.fields[MARK]: m for m in notes}, {str(m.fields.get(HASH)): m for m in notes}


def _marks_in_trash(bank: Bank) -> set[str]:
    found = set()
    for removed in bank.notes.removed():
        text = lanes.read_file(os.fspath(removed.path))
        front = find_front(text) if isinstance(text, str) and MARK in text else None
        if isinstance(text, str) and front:
            with suppress(ValueError):
                found.add(str(load_front(text[front.start : front.end]).get(MARK)))
    return found


def _created(bank: Bank, draft: Draft, name: str, dry_run: bool) -> Memory:
    if dry_run:
        gate.admit(bank.notes.checks, draft, bank.notes)
        return Memory(f"notes:{name}", "notes", draft.text, draft.title or "", "", fields=draft.fields)
    return restoring.told(bank, restoring.create_note(bank, draft, name))


def _exchange(bank: Bank, old: Memory, draft: Draft, dry_run: bool) -> Memory:
    """The note under its old name with what the source says now; the older one goes to the trash."""
    kept = {"status": old.status, **old.fields, **draft.fields, "filename": f"{old.native_id}.md"}
    if old.project and "project" not in kept:
        kept["project"] = old.project
    draft = replace(
        draft,
        type=draft.type or old.type,
        scope=draft.scope or old.scope,
        thread=draft.thread or old.thread,
        created_at=min(filter(None, (draft.created_at, old.created_at)), default=None),  # a file's date moves on
        fields=kept,
    )
    gate.admit(bank.notes.checks, draft, bank.notes)
    if dry_run:
        return old
    bank.notes.set_aside(old.native_id)
    try:
        return restoring.told(bank, bank.notes.put(draft))
    except BaseException:
        bank.notes.recover(old.native_id)
        raise


# -- other lanes, which have no place for a mark: the same text is the same memory


def _added(bank: Bank, found: Iterable[importers.Found], lane: str, dry_run: bool) -> Iterator[Outcome]:
    known = {_words(memory.text): memory.id for memory in bank.memories(lane)}
    for one in found:
        if not isinstance(one, Item):
            yield _reported(one)
            continue
        shown = gate.shown(one.key)
        try:
            draft = _clean(bank, one.draft)
            words = _words(draft.text)
            if words in known:
                yield Outcome("same", shown, known[words])
                continue
            if day := bank.tombstones.deleted(draft.text):
                yield Outcome("same", shown, why=_deleted(day))
                continue
            draft = Draft(draft.text, draft.title, draft.tags, created_at=draft.created_at)
            if lane == "records":
                draft = replace(draft, title=(draft.title or "")[:200], tags=tuple(tag[:50] for tag in draft.tags[:20]))
            if dry_run:
                gate.admit(bank.lane(lane).checks, draft, bank.lane(lane))
                known[words] = ""
                yield Outcome("new", shown)
            else:
                memory = restoring.told(bank, bank.lane(lane).put(draft))
                known[words] = memory.id
                yield Outcome("new", shown, memory.id, "; ".join(memory.remarks))
        except MemlaneError as error:
            yield _failed(one, error)


def _deleted(day: str) -> str:
    return f"deleted here on {day}; `memlane add` stores it all the same"


def _words(text: str) -> str:
    return " ".join(text.split())


# -- memories of a bank, which come back as they were


def _restored(bank: Bank, found: Iterable[importers.Found], update: bool, dry_run: bool) -> Iterator[Outcome]:
    gone = {removed.id for removed in bank.removed()}
    for one in found:
        if not isinstance(one, Item) or one.memory is None:
            yield _reported(one) if not isinstance(one, Item) else Outcome("skipped", one.key, why="no memory")
            continue
        shown = gate.shown(one.key)
        try:
            memory = restoring.admitted(bank, one.memory)
            old = restoring.present(bank, memory)
            if old is not None and restoring.same(old, memory):
                yield Outcome("same", shown, old.id)
            elif old is not None and update:
                yield Outcome("updated", shown, (old if dry_run else restoring.revised(bank, old, memory)).id)
            elif old is not None:
                yield Outcome("changed", shown, old.id, "differs from the one here; --update takes it")
            elif memory.id in gone:
                yield Outcome("same", shown, why="deleted here; `memlane restore` brings it back")
            elif day := bank.tombstones.deleted(memory.text):
                yield Outcome("same", shown, why=_deleted(day))
            elif dry_run:
                yield Outcome("new", shown, memory.id)
            else:
                put = restoring.put(bank, memory)
                yield Outcome("new", shown, put.id, "" if put.id == memory.id else "under another id")
        except MemlaneError as error:
            yield _failed(one, error)
