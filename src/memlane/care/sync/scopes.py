"""Which of a remote's scopes a file of ours is in, and what is said of it in which of them.

What is said beside the lanes is about memories of all scopes, in one file each: `tombstones.jsonl`, `anchors.jsonl`,
`replaced.jsonl`. It names memories, in plain words, or by hashes that whoever has the file can test guesses with. So at
a remote each scope has such a file of its own, with the lines about its own memories: whoever may not read a memory
must not learn its name, either, nor that it was deleted. A line that is about memories of several scopes, or of which
it cannot be told any more, stays here. What was forgotten is told in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.care.sync import local, travel
from memlane.care.sync.state import Known, Settings, State
from memlane.care.sync.travel import Place
from memlane.core.errors import MemlaneError, StorageError
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.model import Memory
from memlane.disk import files, names, tombstones
from memlane.disk.forgotten import hashed_id, hashed_stone
from memlane.disk.forgotten_shared import Lines, Said, said
from memlane.exchange.remotes import Entry
from memlane.lanes import LANES, NAMES, scan

if TYPE_CHECKING:
    from memlane.bank import Bank

_NAMING = ("id", "old", "new")  # what in the lines of anchors and replacements is the id of a memory
TAKEN = "has a name that is taken here in the scope"
KnownFiles = Mapping[tuple[str, str], Known]  # what is known of the remote's files, by scope and path


def is_there(known: Known | None) -> bool:
    """Whether a remote has a file, and this bank has something in common with that."""
    return known is not None and known.seen != b"" and known.common


def of_ours(bank: Bank, state: State, settings: Settings, place: Place, data: bytes, known: Known | None) -> str:
    """The scope that a file of ours goes to: the one that its memory names, if we share it; else where it is."""
    scopes = settings.scopes
    if len(scopes) == 1 or place.scope:
        return place.scope or (known.scope if known else scopes[0])
    named = travel.scope_in(data) if place.lane and not place.shares_files else ""
    if named in scopes:
        return named
    return known.scope if known else _usual(state, settings, place.path)


def _usual(state: State, settings: Settings, path: str) -> str:
    """The scope of what names none: the one that it has at another remote, else the first."""
    found = (
        scope
        for other in state.remotes() if other.name != settings.name
        for scope in settings.scopes if state.base(other.name, scope, path) is not None
    )  # fmt: skip
    return next(found, settings.scopes[0])


def other(bank: Bank, state: State, settings: Settings, known: KnownFiles, place: Place, entry: Entry) -> str:
    """The scope that the name of an entry belongs to here, where it is another one."""
    scopes = settings.scopes
    if len(scopes) == 1 or place.scope or is_there(known.get((entry.scope, entry.path))):
        return ""
    others = (scope for scope in scopes if scope != entry.scope)
    if taken := next((scope for scope in others if is_there(known.get((scope, entry.path)))), ""):
        return taken
    ours = local.read(bank, place) if place.lane else None
    scope = of_ours(bank, state, settings, place, ours, None) if ours is not None else entry.scope
    return scope if scope != entry.scope else ""


def freed(known: KnownFiles) -> list[Known]:
    """What was held back because its name was taken, and is not any more: as a file that was given another scope."""
    held = [each for each in known.values() if each.held.startswith(TAKEN)]
    there = {each.path for each in known.values() if is_there(each)} if held else set()
    return [each for each in held if each.path not in there]


def doubt(bank: Bank, scopes: Sequence[str], place: Place, data: bytes) -> str:
    """Why it is not clear which scope a file of ours is meant for, so that it goes to none; "" nearly always."""
    if len(scopes) == 1 or not place.lane or bank.lane(place.lane).answers.shares_files or place.is_log:
        return ""
    text = data.decode(errors="replace")
    front = find_front(text)
    try:
        named = str(load_front(text[front.start : front.end]).get("scope") or "") if front else ""
    except FrontMatterError:
        return "has front matter that cannot be read: it may name another scope"
    if front is None and text.removeprefix("\ufeff").startswith("---") and "\nscope:" in text:
        return "has front matter without an end: it may name another scope"
    meant = [scope for scope in scopes if names.folded(scope) == names.folded(named.strip())]
    return f"names a scope that is not quite {meant[0]}" if meant and named not in scopes else ""


def foreign(scopes: Sequence[str], known: KnownFiles, place: Place) -> set[str]:
    """The scopes that a file of ours is not in."""
    own = (scope for scope in scopes if is_there(known.get((scope, place.path))))
    return {*scopes} - {next(own, scopes[0])}


# -- what is said of memories beside them


def part(bank: Bank, state: State, settings: Settings, known: KnownFiles, place: Place, scope: str) -> Place:
    """A file beside the lanes, as far as it is about memories of this scope; any other file as it is."""
    if place.lane or len(settings.scopes) == 1:
        return place

    def parted(lines: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
        bases = {each: local.lines_of(state.base(settings.name, each, place.path) or b"") for each in settings.scopes}
        has = {each: {*base} for each, base in bases.items()}
        whose = _whose(bank, state, settings, known, has, place.path, lines)
        mine = {line: None for line in lines if scope in whose[line]}
        in_order = {line: None for line in bases[scope] if line in mine} | mine  # as the others have them
        return list(in_order), [line for line in lines if whose[line] != {scope}]

    return place._replace(scope=scope, part=parted)


def _whose(
    bank: Bank, state: State, settings: Settings, known: KnownFiles, has: Mapping[str, set[bytes]], path: str,
    lines: Sequence[bytes],
) -> dict[bytes, set[str]]:  # fmt: skip
    """The scopes that each line is said in; each `has` some already, as far as we know."""
    whose = {line: {scope for scope in has if line in has[scope]} for line in lines}
    if path == tombstones.FILE:
        _add_stones(bank, state, settings, known, whose)
        return whose
    trashed = _Trash(bank)
    for line in lines:
        found = {of_memory(bank, state, settings, known, id, trashed) for id in _named(line)}
        if found - {None}:
            whose[line] = {scope for scope in has if found == {scope}}
    return whose


def _add_stones(bank: Bank, state: State, settings: Settings, known: KnownFiles, whose: dict[bytes, set[str]]) -> None:
    """Add what new lines of `tombstones.jsonl` are about. One that a scope has already stays there: it says only by a
    hash what it is about, and another member may have something else of that name.
    """
    stones = bank.tombstones
    new = [line for line, found in whose.items() if not found and stones.is_deletion(line)]
    trashed = _Trash(bank)
    for ids in (_ids_at_remote, _ids_here):
        subjects = stones.subjects(new, ids(bank, known, trashed)) if new else {}
        for line in new:
            key, id = subjects.get(line, (b"", ""))
            scope = of_memory(bank, state, settings, known, id, trashed) if id else None
            if scope is not None:
                whose[line] = {scope}
                whose.setdefault(key, set()).add(scope)
        new = [line for line in new if line not in subjects]
    texts: dict[bytes, set[str]] = {}
    for line, found in whose.items():
        if stones.is_deletion(line):
            texts.setdefault(stones.text_in(line), set()).update(found)
    for line, found in whose.items():
        if not found and not stones.is_deletion(line):  # somebody wanted it back
            found |= texts.get(stones.text_in(line), set())


def of_forgotten(
    bank: Bank, state: State, settings: Settings, known: KnownFiles, there: Mapping[str, Lines]
) -> Callable[[Said], Collection[str]]:
    """What tells in which scopes a line about something forgotten is said. `there` are those that each has already.

    A memory that stays although it is like a forgotten one is named in its own scope alone, whatever that one was in.
    """
    scopes = settings.scopes
    if len(scopes) == 1:
        return lambda _: scopes
    whose: dict[tuple[str, bytes], Collection[str]] = {}
    trashed = _Trash(bank)
    still_in: dict[str, dict[str, list[str]]] = {}
    new: list[Said] = []
    for each in said(bank.tombstones.private):
        if has := [scope for scope in scopes if each.line in there[scope].get(each.key, ())]:
            whose[each.key, each.line] = has
        elif each.scope in scopes:
            if each.key not in still_in:
                still_in[each.key] = _still_in(bank, known, bytes.fromhex(each.key))
            whose[each.key, each.line] = still_in[each.key].get(json.loads(each.line).get("id")) or [each.scope]
        else:
            new.append(each)
    ids = [*_ids_at_remote(bank, known, trashed), *_ids_here(bank, known, trashed)] if new else []
    stones = {
        line: scope for scope in scopes if new
        for line in local.lines_of(state.base(settings.name, scope, tombstones.FILE) or b"")
    }  # fmt: skip
    hashes: dict[str, dict[str, str | None]] = {}
    before: Collection[str] = ()
    for each in new:
        key = bytes.fromhex(each.key)
        if each.key not in hashes:
            hashes[each.key] = {hashed_id(key, id): of_memory(bank, state, settings, known, id, trashed) for id in ids}
            hashes[each.key] |= {hashed_stone(key, line): scope for line, scope in stones.items()}
        value = json.loads(each.line)
        about = str(value.get("kept") or value.get("stone") or value.get("id") or "")
        scope = hashes[each.key].get(about)
        if "text" in value:
            found = before or scopes[:1]  # it follows the memory that it is the text of
        elif scope is None:
            found = () if "kept" in value else scopes[:1]
        else:
            found = [scope]
        before = found if "kept" in value else ()
        whose[each.key, each.line] = found
    return lambda each: whose.get((each.key, each.line), ())


def _still_in(bank: Bank, known: KnownFiles, key: bytes) -> dict[str, list[str]]:
    """The scopes that have each memory at the remote, by its hash. One that was forgotten names its scope, but may have
    been given that since the last sync.
    """
    found: dict[str, list[str]] = {}
    for (scope, path), one in known.items():
        if is_there(one) and (id := _id_of(bank, path)):
            found.setdefault(hashed_id(key, id), []).append(scope)
    return found


class _Trash(dict[str, list[str]]):
    """The files of deleted memories, by id; filled when it is first asked."""

    def __init__(self, bank: Bank) -> None:
        self._bank: Bank | None = bank

    def filled(self) -> _Trash:
        if self._bank is not None:
            for removed in self._bank.removed():
                self.setdefault(removed.id, []).append(str(removed.path))
            self._bank = None
        return self


def of_memory(bank: Bank, state: State, settings: Settings, known: KnownFiles, id: str, trashed: _Trash) -> str | None:
    """The scope that a memory is in, or was in when it was deleted; None where that cannot be told."""
    scopes = settings.scopes
    name, _, native = id.partition(":")
    if name not in NAMES:
        return None
    answers = bank.lane(name).answers
    try:
        file = answers.path_of(native)
    except MemlaneError:
        return None
    path = f"{LANES[name].place}/{file[len(str(bank.lane(name).root)) + 1 :]}".strip("/")
    there = [scope for scope in scopes if (one := known.get((scope, path))) and one.seen]
    was = there or [scope for scope in scopes if (scope, path) in known]
    if len(there) > 1:  # two files of one name
        return None
    usual = was[0] if was else _usual(state, settings, path)
    if answers.shares_files:
        return usual
    with suppress(StorageError, OSError):
        named = travel.scope_in(files.read_bytes(file, files.MAX_BYTES))
        return named if named in scopes else usual
    found: set[str | None] = set()
    for file in trashed.filled().get(id, ()):
        with suppress(StorageError, OSError):
            named = travel.scope_in(files.read_bytes(file, files.MAX_BYTES))
            found.add(named if named in scopes else usual)
    return (found or {*was} or {None}).pop() if len(found or was) <= 1 else None


def _ids_at_remote(bank: Bank, known: KnownFiles, trashed: _Trash) -> Iterator[str]:
    """The memories in files of their own that the remote has, or had; and those that were deleted here."""
    yield from trashed.filled()
    yield from filter(None, (_id_of(bank, path) for path in dict.fromkeys(path for _, path in known)))


def _id_of(bank: Bank, path: str) -> str:
    """The memory that a file of the remote is; "" for one with several, or none."""
    place = travel.place_of(bank, path)
    native = bank.lane(place.lane).answers.native_of(place.file) if isinstance(place, Place) and place.lane else None
    return f"{place.lane}:{native}" if isinstance(place, Place) and native else ""


def _ids_here(bank: Bank, known: KnownFiles, trashed: _Trash) -> Iterator[str]:
    for lane in bank.present():
        yield from (item.id for item in scan(lane) if isinstance(item, Memory))


def _named(line: bytes) -> list[str]:
    """The memories that a line names in plain words."""
    with suppress(ValueError, RecursionError):
        said = json.loads(line)
        if isinstance(said, dict):
            return [str(said[key]) for key in _NAMING if key in said]
    return []
