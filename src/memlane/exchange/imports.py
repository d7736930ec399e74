"""Memories from elsewhere: what other programs and other banks remember, taken into a bank once and only once.

    for outcome in import_from(bank, Path("vault")):
        print(outcome.status, outcome.item, outcome.why)

Everything that comes in passes the gate. An imported note says where it came from, without any path of this machine, so
that a second import recognises it:

    imported_from: "obsidian:my-vault/projects/alpha.md"
    imported_hash: "0f6b7c2d91ae"        what the source said then

The formats are known to the importers alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memlane import config, gate, lanes
from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput, MemlaneError, NotFound, Refused
from memlane.core.front_matter import find_front, load_front
from memlane.core.model import Draft, Memory
from memlane.core.progress import tell
from memlane.disk import journal
from memlane.disk.forgotten import as_known
from memlane.disk.names import PRIVATE
from memlane.exchange import importers, restoring
from memlane.exchange.importers import Found, Item, Skipped
from memlane.exchange.importers.folder import HASH, MARK
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

STATUSES = ("new", "updated", "same", "changed", "refused", "problem", "skipped")
INTO = ("notes", "vault", "records")  # the lanes that a text without further names can go into
_IN_TRASH = "deleted here; `memlane restore ID` brings it back"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one thing at the source. `id` is the memory that it is now, "" when there is none."""

    status: str
    item: str
    id: str = ""
    why: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


Take = Callable[[Item], Outcome]  # stores an item if it is new


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

    `kind` is one of importers.KINDS (default: told by the content), `lane` where texts go (default: notes), `into` a
    folder for the notes, `label` the source's name in their mark. What has changed at its source is only reported,
    unless `update`; then the older note goes to the trash. With `dry_run`, nothing is written.
    Raises NotFound, InvalidInput before anything is imported.
    """
    path = Path(path).expanduser().absolute()
    if path.suffix.lower() == ".zip" and path.is_file():
        raise InvalidInput(f"{path.name} is packed.", hint="Unpack it, and import the folder or the file in it.")
    kind = kind or importers.detect(path)
    if not os.path.lexists(path):
        raise NotFound("There is nothing at that path.", hint="Name a folder or a file that exists.")
    if kind in importers.OWN and lane is not None:
        raise InvalidInput("Memories of a bank go into the lane they come from.", hint="Leave --lane out.")
    lane = lane or "notes"
    if lane not in INTO:
        raise InvalidInput(
            f"The {lane} lane needs names that the source does not have.", hint=f"Use one of: {', '.join(INTO)}."
        )
    roots = {os.path.realpath(path)} | ({os.path.realpath(config.load(path).root)} if kind == "bank" else set())
    if os.path.realpath(bank.root) in roots:
        raise InvalidInput("That is the bank itself.", hint="Name the folder or file to import from.")
    own = {os.fspath(bank.root), *(os.fspath(bank.lane(name).root) for name in NAMES)}
    found = importers.read(kind, path, skip=own)
    if kind in importers.OWN:
        take = _into_own_lanes(bank, update, dry_run)
    elif lane == "notes":
        take = _into_notes(bank, _source(kind, path, label), into.strip("/"), update, dry_run)
    else:
        take = _into_lane(bank, lane, dry_run)
    return _outcomes(bank, found, take)


def _source(kind: str, path: Path, label: str | None) -> str:
    """The beginning of the marks of a source: its kind and a name that means the same on every machine."""
    if label is None:
        real = path.resolve()
        if kind in ("markdown", "obsidian", "basic-memory"):
            label = real.name if real.is_dir() else real.parent.name
        elif kind in ("serena", "cline"):
            own = (".serena", "memories", "memory-bank")
            label = next((part.name for part in (real, *real.parents) if part.name not in own), "")
    return f"{kind}:{label}/" if label else f"{kind}:"


def _outcomes(bank: Bank, found: Iterable[Found], take: Take) -> Iterator[Outcome]:
    done = 0
    try:
        for done, item in enumerate(found, 1):
            yield _outcome(bank, item, take)
            tell("importing", done, None)  # who reads a folder has told of how many
    finally:
        tell("importing", done, done)


def _outcome(bank: Bank, item: Found, take: Take) -> Outcome:
    if isinstance(item, Item):
        try:
            journal.step()
            # what is imported is somebody's text, and not the user's word
            with journal.unattended(), as_known(bank.tombstones.private):
                return take(item)
        except MemlaneError as error:
            status = "refused" if isinstance(error, Refused | InvalidInput) else "problem"
            return Outcome(status, gate.shown(item.key), why=str(error))
    if isinstance(item, Skipped):
        return Outcome("skipped", _shown(item.key), why=item.why)
    where = f"{item.path.name}:{item.line}" if item.line else item.path.name
    return Outcome("problem", _shown(where), why=item.why)


def _shown(name: str) -> str:
    """A name for a message; one that is not UTF-8 is made so."""
    return gate.shown(os.fsencode(name).decode(errors="replace"))


def _unwanted(bank: Bank, text: str, id: str = "", title: str = "") -> str:
    """Why a text is not taken: it was deleted here, or is like one that was forgotten. "" nearly always."""
    if day := bank.tombstones.forgotten(text, id, title):
        return f"held back: like what was forgotten here on {day}; `memlane add` stores it all the same"
    day = bank.tombstones.deleted(text)
    return f"deleted here on {day}; `memlane add` stores it all the same" if day else ""


# -- notes, which remember where they came from


def _into_notes(bank: Bank, source: str, into: str, update: bool, dry_run: bool) -> Take:
    imported = [memory for memory in bank.memories("notes") if isinstance(memory.fields.get(MARK), str)]
    by_mark = {memory.fields[MARK]: memory for memory in imported}
    by_hash = {str(memory.fields.get(HASH)): memory for memory in imported}
    in_trash = _marks_in_trash(bank) - by_mark.keys()

    def take(item: Item) -> Outcome:
        mark, shown = f"{source}{item.key}", gate.shown(item.key)
        draft = restoring.cleaned(bank, item.draft)
        hash = digest(draft)
        draft = replace(draft, fields={**draft.fields, MARK: mark, HASH: hash})
        old, twin = by_mark.get(mark), by_hash.get(hash)
        if old is None and mark in in_trash:
            return Outcome("same", shown, why=_IN_TRASH)
        if old is not None and old.fields.get(HASH) == hash:
            return Outcome("same", shown, old.id)
        if why := _unwanted(bank, draft.text, title=draft.title or ""):
            return Outcome("same", shown, why=why)
        if old is None and twin and not str(twin.fields[MARK]).startswith(source):
            return Outcome("same", shown, twin.id)
        if old is None:
            by_mark[mark] = memory = _created(bank, draft, f"{into}/{item.name}" if into else item.name, dry_run)
            return Outcome("new", shown, memory.id, "; ".join(memory.remarks))
        if not update:
            return Outcome("changed", shown, old.id, "differs from what was imported; --update takes it")
        if old.fields.get(HASH) != digest(old):
            return Outcome("changed", shown, old.id, "was edited here, too, and is left as it is")
        by_mark[mark] = _updated(bank, old, draft, dry_run)
        return Outcome("updated", shown, old.id, "" if dry_run else "the older one is in the trash")

    return take


def digest(memory: Draft | Memory) -> str:
    """Twelve hex digits for what a memory says: its title, text and tags."""
    content = json.dumps([memory.title or "", memory.text, list(memory.tags)], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _marks_in_trash(bank: Bank) -> set[str]:
    marks = set()
    for removed in bank.notes.removed():
        text = lanes.read_file(os.fspath(removed.path))
        if isinstance(text, str) and MARK in text and (front := find_front(text)):
            with suppress(ValueError):
                marks.add(str(load_front(text[front.start : front.end]).get(MARK)))
    return marks


def _created(bank: Bank, draft: Draft, name: str, dry_run: bool) -> Memory:
    if dry_run:
        gate.admit(bank.notes.checks, draft, bank.notes)
        name = f"{PRIVATE}/{name}" if draft.fields.get("private") is True else name
        return Memory(f"notes:{name}", "notes", draft.text, draft.title or "", "", fields=draft.fields)
    return restoring.told(bank, restoring.create_note(bank, draft, name))


def _updated(bank: Bank, old: Memory, draft: Draft, dry_run: bool) -> Memory:
    """The note under its old name with what the source says now; the older one goes to the trash."""
    fields = {"status": old.status, **old.fields, **draft.fields, "filename": f"{old.native_id}.md"}
    if old.project and "project" not in fields:
        fields["project"] = old.project
    draft = replace(
        draft,
        type=draft.type or old.type,
        scope=draft.scope or old.scope,
        thread=draft.thread or old.thread,
        created_at=min(filter(None, (draft.created_at, old.created_at)), default=None),  # a file's date moves on
        fields=fields,
    )
    gate.admit(bank.notes.checks, draft, bank.notes)
    return old if dry_run else restoring.replace_note(bank, old, lambda: bank.notes.put(draft))


# -- other lanes, which have no place for a mark: the same text is the same memory


def _into_lane(bank: Bank, lane: str, dry_run: bool) -> Take:
    by_words = {_words(memory.text): memory.id for memory in bank.memories(lane)}

    def take(item: Item) -> Outcome:
        shown = gate.shown(item.key)
        draft = restoring.cleaned(bank, item.draft)
        words = _words(draft.text)
        if words in by_words:
            return Outcome("same", shown, by_words[words])
        if why := _unwanted(bank, draft.text, title=draft.title or ""):
            return Outcome("same", shown, why=why)
        draft = Draft(draft.text, draft.title, draft.tags, created_at=draft.created_at)
        if lane == "records":
            draft = replace(draft, title=(draft.title or "")[:200], tags=tuple(tag[:50] for tag in draft.tags[:20]))
        if dry_run:
            gate.admit(bank.lane(lane).checks, draft, bank.lane(lane))
            by_words[words] = ""
            return Outcome("new", shown)
        memory = restoring.told(bank, bank.lane(lane).put(draft))
        by_words[words] = memory.id
        return Outcome("new", shown, memory.id, "; ".join(memory.remarks))

    return take


def _words(text: str) -> str:
    return " ".join(text.split())


# -- memories of a bank, which come back as they were


def _into_own_lanes(bank: Bank, update: bool, dry_run: bool) -> Take:
    in_trash = {removed.id for removed in bank.removed()}
    ids: dict[str, str] = {}  # under which memories are here that have another id there

    def take(item: Item) -> Outcome:
        assert item.memory is not None  # noqa: S101 - these importers find nothing else
        shown = gate.shown(item.key)
        memory = restoring.admitted(bank, item.memory)
        old = restoring.present(bank, memory)
        if old is not None and restoring.same(old, memory):
            return Outcome("same", shown, old.id)
        if old is not None and update and bank.tombstones.forgotten(memory.text, memory.id, memory.title):
            return Outcome("same", shown, why=_unwanted(bank, memory.text, memory.id, memory.title))
        if old is not None and update:
            return Outcome("updated", shown, (old if dry_run else restoring.revised(bank, old, memory)).id)
        if old is not None:
            return Outcome("changed", shown, old.id, "differs from the one here; --update takes it")
        if memory.id in in_trash:
            return Outcome("same", shown, why=_IN_TRASH)
        if why := _unwanted(bank, memory.text, memory.id, memory.title):
            return Outcome("same", shown, why=why)
        if dry_run:
            return Outcome("new", shown, memory.id)
        stored = restoring.put(bank, memory)
        ids[memory.id] = stored.id
        for before in item.memory.replaces:
            bank.replaced.link(stored.id, ids.get(before, before), utc_now())
        return Outcome("new", shown, stored.id, "" if stored.id == memory.id else "under another id")

    return take
