"""Taking back what was changed, by the journal: the last change of any kind, one by its id, or an undo itself.

A file goes back only where it is still as the change left it. What changed since is left alone, and with it all files
of its step: otherwise an entry that moved from one file to another could end up in neither. Lines that were appended to
a log are cut off again where they are still its end; where others have appended since, the records go back as their
next versions. Whoever is killed meanwhile leaves each file as it was or as it should be, and a second undo goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from memlane.config import require_trust
from memlane.core.dates import iso
from memlane.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound, StorageError
from memlane.core.model import Memory
from memlane.core.values import asdict, dataclass
from memlane.disk import files, journal, log, written
from memlane.disk.journal import APPEND, CUT, IN, OUT, SEEN, WRITE, Change, Entry, Journal
from memlane.disk.names import inside
from memlane.gate import shown
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank

FOLDER = (".trash", "undo")  # where an earlier memlane kept copies for its undo; forget still looks there
_UNDO, _REDO = "undo", "redo"
_LIST = "`memlane undo --list` shows what was changed."


@dataclass(frozen=True, slots=True)
class Applied:
    """A change that can be taken back. `state` is applied, interrupted, partly undone or undone; `by` says who."""

    id: str
    what: str
    at: str
    by: str
    state: str
    ids: tuple[str, ...]  # the memories it was about, or the files
    steps: tuple[tuple[str, str], ...]  # of a plan: id and action
    undoes: str

    def to_dict(self) -> dict[str, Any]:
        steps = [{"id": id, "action": action} for id, action in self.steps]
        return {**asdict(self), "ids": list(self.ids), "steps": steps}


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. `id` is its own change ("" when nothing had to be changed): undoing that does it again."""

    of: str
    what: str
    id: str
    restored: tuple[str, ...]  # paths below the bank's folder, and ids of the vault
    conflicts: tuple[tuple[str, str], ...]  # path or id, and why it was left as it is

    def to_dict(self) -> dict[str, Any]:
        conflicts = [{"path": path, "why": why} for path, why in self.conflicts]
        return {**asdict(self), "restored": list(self.restored), "conflicts": conflicts}


# -- what there is


def applied(bank: Bank, limit: int | None = None) -> list[Applied]:
    """What was changed at this place, the latest first."""
    kept = bank.journal
    changes = kept.changes(here=True, limit=limit) if kept else []
    return [_applied(bank, change) for change in changes if change.undone != journal.DROPPED]


def _applied(bank: Bank, change: Change) -> Applied:
    state = {"undone": "undone", "partly": "partly undone"}.get(change.undone, "applied")
    if state == "applied" and not change.done:
        state = "interrupted"
    ids = change.ids or tuple(id for id, _ in change.steps) or tuple(named(bank, change))
    undoes = f"c{change.undoes}" if change.undoes else ""
    return Applied(change.id, change.verb, stamp(change.at), who(change), state, ids, change.steps, undoes)


def named(bank: Bank, change: Change) -> Iterator[str]:
    """The memories that a change was about, by the files that it changed; files that are nobody's under their names."""
    kept = bank.journal
    home = files.real(os.fspath(bank.root))
    seen: dict[str, None] = {}
    for entry in kept.entries(change.number) if kept else ():
        lane = _lane_at(bank, os.path.normpath(os.path.join(home, entry.name)))
        if lane and kept and entry.kind in (APPEND, CUT):
            lines = kept.text(entry.after if entry.kind == APPEND else entry.before) or b""
            seen |= dict.fromkeys((lane.answers.before_append(lines, b"") or (b"", {}))[1])
        elif not entry.name.startswith("."):
            seen.setdefault(name_of(bank, entry.name))
    yield from seen


def name_of(bank: Bank, name: str) -> str:
    """The id of the memory whose file this is, or would be; else the file's name."""
    path = os.path.normpath(os.path.join(files.real(os.fspath(bank.root)), name))
    roots = {lane: _real(os.fspath(bank.config.lane_root(lane))) for lane in NAMES}
    around = [lane for lane, root in roots.items() if path.startswith(root + os.sep)]
    if around:
        lane = bank.lane(max(around, key=lambda each: len(roots[each])))
        native = lane.answers.native_of(os.path.join(lane.root, path[len(roots[lane.name]) + 1 :]))
        if native is not None:
            return f"{lane.name}:{native}"
    return name


def who(change: Change) -> str:
    """Who made a change, in a few words."""
    return " ".join(word for word in (change.by.surface, change.by.client) if word)


def stamp(at: float) -> str:
    return iso(datetime.fromtimestamp(int(at), UTC)) or ""


# -- undoing


def undo(bank: Bank, id: str | None = None) -> Undone:
    """Take back what was changed last and not yet taken back, or the change of this id.

    Is itself a change, so that it can be undone by its own id. Raises NotFound, InvalidInput, StorageError.
    """
    kept, change = _chosen(bank, id)
    restored: list[str] = []
    conflicts: list[tuple[str, str]] = []
    outdated: dict[str, None] = {}
    verb = _REDO if change.verb == _UNDO else _UNDO
    with journal.change(verb, *change.ids, undoes=change.number, joins=False) as own:
        entries = [entry for entry in kept.entries(change.number) if entry.kind not in (IN, SEEN)]
        for _, group in reversed([(step, list(of_step)) for step, of_step in groupby(entries, lambda one: one.step)]):
            own.step += 1
            step = _Step(bank, kept, group, entries)
            paths, reasons = step.undo()
            restored += paths
            conflicts += reasons
            outdated |= dict.fromkeys(step.outdated)
        for name in outdated:
            bank.lane(name).answers.rebuild()
        _mark(kept, change, "partly" if conflicts else "undone")
        number = own.number(kept)
    id = f"c{number}" if number else ""
    return Undone(change.id, change.verb, id, tuple(dict.fromkeys(restored)), tuple(dict.fromkeys(conflicts)))


def redo(bank: Bank) -> Undone:
    """Take back the last undo, unless something else was changed since. Raises NotFound, StorageError."""
    for change in bank.journal.changes(here=True) if bank.journal else ():
        if not change.undoes:
            break
        if change.verb == _UNDO and change.undone != "undone":
            return undo(bank, change.id)
    raise NotFound("There is nothing to do again.", hint=_LIST)


def _mark(kept: Journal, change: Change, undone: str) -> None:
    """Note that a change was taken back; what it had taken back itself stands again, and so on."""
    kept.mark(change.number, undone)
    found: Change | None = change
    while undone != "partly" and found and found.undoes:
        undone = "" if undone else "undone"
        kept.mark(found.undoes, undone)
        found = kept.get(found.undoes)


def _chosen(bank: Bank, id: str | None) -> tuple[Journal, Change]:
    require_trust(bank.config)
    kept = bank.journal
    if kept is None or not kept.wanted:
        why = f"There is no journal here: {kept.absent if kept else 'there is no home folder'}."
        raise NotFound(why, hint="`memlane doctor` says what to do.")
    if id is not None:
        number = int(id[1:]) if id[:1] == "c" and id[1:].isdecimal() and len(id) < 19 else 0
        change = kept.get(number) if number else None
        if change is None or change.undone == journal.DROPPED:
            raise NotFound(f"There is no change of the id {shown(id)}.", hint="`memlane undo --list` lists them.")
        if change.place != kept.home:
            hint = f"It was made in {change.place}: undo it there."
            raise InvalidInput(f"The change {change.id} was not made in this bank.", hint=hint)
        return kept, change
    if found := latest(bank):
        return kept, found
    own = bank.under and latest(bank.under)
    hint = f"The last change, {own.verb}, was to your own bank: `memlane --user undo`." if own else _LIST
    raise NotFound("There is nothing to undo.", hint=hint)


def latest(bank: Bank) -> Change | None:
    """What was changed last and not yet taken back."""
    changes = bank.journal.changes(here=True) if bank.journal else ()
    others = written.SYNC  # what a sync brings is not the user's work
    standing = (change for change in changes if not change.undoes and change.verb != others)
    return next((change for change in standing if change.undone not in ("undone", journal.DROPPED)), None)


class _Step:
    """Changes that are taken back together or not at all. `all` are those of the whole change."""

    def __init__(self, bank: Bank, kept: Journal, entries: Sequence[Entry], all: Sequence[Entry]) -> None:
        self.bank, self.kept = bank, kept
        self.home = files.real(os.fspath(bank.root))
        self.roots = {name: _real(os.fspath(bank.config.lane_root(name))) for name in NAMES}
        derived = ((name, bank.lane(name).answers.derived()) for name in NAMES)
        self.derived = {_real(path): name for name, path in derived if path}  # files that can be made anew
        self.outdated: list[str] = []  # the lanes whose derived file has to be
        self.entries = list(reversed(entries))
        self.all = all
        self.tombstones = _real(os.fspath(bank.tombstones.path or ""))
        self.stones = False  # whether tombstones were written that cannot simply be cut off again
        self.records: list[str] = []  # ids of a log that went back by cutting it

    def undo(self) -> tuple[list[str], list[tuple[str, str]]]:
        """(what was restored, what was left and why)."""
        restored: list[str] = []
        conflicts: list[tuple[str, str]] = []
        with ExitStack() as held:
            try:
                paths = [path for entry in self.entries for path in self._paths(entry)]
                for name, root in self.roots.items():
                    if any(path.startswith(root + os.sep) for path in paths):
                        held.enter_context(self.bank.lane(name).answers.writing())  # its writers hold it, too
                conflicts = self._judged()
                if conflicts:
                    return [], conflicts
                before = self._memories(paths) if self.tombstones in paths else {}
                for entry in self.entries:
                    names, reasons = self._taken_back(entry)
                    restored += names
                    conflicts += reasons
                if self.stones:
                    self._settle(before, self._memories(paths))
                for path in paths:
                    self._remove_empty(path)
            except (Conflict, AlreadyExists, InvalidInput, StorageError) as error:
                where = ", ".join(entry.name for entry in self.entries)
                conflicts.append((where or "a file", str(error)))
        return restored, conflicts

    def _taken_back(self, entry: Entry) -> tuple[list[str], list[tuple[str, str]]]:
        if entry.kind in (APPEND, CUT):
            return self._cut(entry) if entry.kind == APPEND else self._appended(entry)
        if self._paths(entry)[0] in self.derived:
            self._apply_derived(entry)
            return [], []
        with written.copying():
            return self._apply(entry), []

    # -- judging

    def _judged(self) -> list[tuple[str, str]]:
        """Why these files cannot go back; [] when all of them can."""
        now: dict[str, bytes | None] = {}
        found = []

        def at(path: str) -> bytes | None:
            if path not in now:
                now[path] = _hash(_bytes(path))
            return now[path]

        for entry in self.entries:
            if entry.kind == OUT:
                source, target = self._paths(entry)
                moved = at(target) == entry.before and at(source) in (None, entry.before)
                lost = at(target) is at(source) is None and self.kept.text(entry.before) is not None
                if moved or lost:
                    now[source], now[target] = entry.before, None
                elif at(source) != entry.before or at(target) is not None:
                    found.append((entry.name, f"is not at {entry.other} as it was left there"))
            elif entry.kind == WRITE:
                [path] = self._paths(entry)
                if path in self.derived or at(path) in self._settled(entry):
                    continue
                if at(path) != entry.after:
                    found.append((entry.name, "has changed since"))
                elif entry.before is not None and self.kept.text(entry.before) is None:
                    found.append((entry.name, "what it was is not kept any more"))
                else:
                    now[path] = entry.before
        return found

    def _settled(self, entry: Entry) -> set[bytes | None]:
        """What the file was before this change and its earlier ones: so it is when an undo was killed, too."""
        return {one.before for one in self.all if one.name == entry.name and one.row <= entry.row}

    def _paths(self, entry: Entry) -> list[str]:
        """The files that an entry speaks of. Raises InvalidInput for one that is not the bank's any more."""
        found = []
        for name in (entry.name, entry.other) if entry.kind == OUT else (entry.name,):
            path = os.path.normpath(os.path.join(self.home, name))
            if path in self.roots.values():
                found.append(path)
                continue
            root = next((root for root in (self.home, *self.roots.values()) if path.startswith(root + os.sep)), None)
            beside = any(path in (root + log.OLD, root + log.REJECTED) for root in self.roots.values())
            parts = path[len(root or "") + 1 :].split(os.sep)
            gits = ".git" in (part.casefold() for part in parts)  # where programs lie that git runs
            if (root is None and not beside) or gits:
                raise InvalidInput("The journal names a file that is not the bank's.", hint="Nothing was changed.")
            found.append(path if root is None else inside(root, *parts))
        return found

    # -- taking back

    def _apply(self, entry: Entry) -> list[str]:
        """Take one change back, the reverse of `_judged`; the names that were changed."""
        if entry.kind == OUT:
            source, target = self._paths(entry)
            if _hash(_bytes(target)) != entry.before:
                if os.path.lexists(source) or os.path.lexists(target):
                    return []
                files.create(source, self._text(entry))
            elif os.path.lexists(source):  # killed between the two names
                files.remove(target)
            else:
                files.move(target, source)
            return [entry.name]
        [path] = self._paths(entry)
        if _hash(_bytes(path)) in self._settled(entry):
            return []
        if entry.after is None:
            files.create(path, self._text(entry))
        elif entry.before is not None and path.endswith(".jsonl"):
            self._rewrite(path, entry)
        else:
            with files.locked(path):
                self._refuse_changed(_bytes(path), entry)
                if entry.before is None:
                    files.remove(path)
                else:
                    files.replace(path, self._text(entry))
        return [entry.name]

    def _rewrite(self, path: str, entry: Entry) -> None:
        """Put a log back to what it was, while others may append to it."""

        def change(data: bytes) -> tuple[bytes, bytes]:
            self._refuse_changed(data, entry)
            return self._text(entry), b""

        log.rewrite(path, change, lambda _: True)

    def _refuse_changed(self, data: bytes | None, entry: Entry) -> None:
        if _hash(data) != entry.after:
            raise Conflict(f"{entry.name} was changed just now.", hint="Try again.")

    def _text(self, entry: Entry) -> bytes:
        return self.kept.text(entry.before) or b""

    def _apply_derived(self, entry: Entry) -> None:
        """Put a derived file back where that is simple; else its lane makes it anew."""
        [path] = self._paths(entry)
        now = _hash(_bytes(path))
        if now not in self._settled(entry) and now == entry.after and (entry.before is None or self._text(entry)):
            self._apply(entry)
        if _hash(_bytes(path)) not in self._settled(entry):
            self.outdated.append(self.derived[path])

    def _remove_empty(self, path: str) -> None:
        """Remove the folders that are empty now."""
        folder = os.path.dirname(path)
        while folder not in (self.home, *self.roots.values()) and folder.startswith(self.home + os.sep):
            if not files.remove_folder(folder):
                return
            folder = os.path.dirname(folder)

    # -- logs

    def _cut(self, entry: Entry) -> tuple[list[str], list[tuple[str, str]]]:
        """Take back lines that were appended."""
        [path] = self._paths(entry)
        data = self.kept.text(entry.after) or b""
        lane = _lane_at(self.bank, path)
        whole = (self.kept.content(entry.name, entry.row - 1) or b"") if lane else b""
        before, after = (lane.answers.before_append(data, whole) if lane else None) or (b"", {})
        if not data and not (entry.other == "new" and _bytes(path) == b""):
            return [], []
        if log.cut(path, entry.at, data, gone=entry.other == "new"):
            self.records += after
            return list(after), []
        if path == self.tombstones:
            self.stones = True
        if lane is None or not after:
            return [], []

        def settle(id: str, text: str, deleted: bool) -> None:
            if self.stones and deleted:
                self.bank.tombstones.bury((id, text))
            elif self.stones:
                self.bank.tombstones.lift(text, forgotten=False)

        restored, conflicts = lane.answers.undo_append(before, after, settle)
        return restored, [(where, why) for where, why, _ in conflicts]

    def _appended(self, entry: Entry) -> tuple[list[str], list[tuple[str, str]]]:
        """Append again what an undo has cut off."""
        [path] = self._paths(entry)
        data = self.kept.text(entry.before) or b""
        now = _bytes(path)
        lane = _lane_at(self.bank, path)
        ids = list((lane.answers.before_append(data, b"") or (b"", {}))[1]) if lane else []
        if now is not None and now[entry.at :].startswith(data) and data:
            return [], []  # already
        if lane is not None and len(now or b"") != entry.at:
            return [], [(entry.name, "has changed since")]
        torn = bool(now) and not (now or b"").endswith(b"\n")
        files.append_lines(path, data.removeprefix(b"\n") if torn else data)
        return ids, []

    # -- tombstones: deleted stays deleted, and what is back is wanted

    def _memories(self, paths: Sequence[str]) -> dict[str, Memory]:
        """The memories in these files, by id."""
        found: dict[str, Memory] = {}
        for path in filter(os.path.isfile, paths):
            around = (root for root in self.roots.values() if path.startswith(root + os.sep))
            home = max(around, key=len, default="")  # a lane may lie inside another one
            relative = path[len(home) + 1 :]
            if not home or any(part.startswith(".") for part in relative.split(os.sep)):
                continue
            for lane in (self.bank.lane(name) for name, root in self.roots.items() if root == home):
                items = lane.parse(os.path.join(lane.root, relative))
                found |= {item.id: item for item in items if isinstance(item, Memory)}
        return found

    def _settle(self, before: dict[str, Memory], after: dict[str, Memory]) -> None:
        back = list(after.values())  # even those that an undo which was killed has brought back
        for id in self.records:
            with suppress(NotFound):
                back.append(self.bank.lane(id.partition(":")[0]).fetch(id.partition(":")[2]))
        for memory in back:
            self.bank.tombstones.lift(memory.text, forgotten=False)
        gone = [(id, memory.text) for id, memory in before.items() if id not in after]
        if gone:
            self.bank.tombstones.bury(*gone)


# -- shared


def _lane_at(bank: Bank, path: str) -> Lane | None:
    """The lane whose root this is."""
    return next((bank.lane(name) for name in NAMES if _real(os.fspath(bank.config.lane_root(name))) == path), None)


def _real(path: str) -> str:
    """The path with no link on the way to it; the last name stays."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(files.real(folder), name)


def _bytes(path: str) -> bytes | None:
    with files.storage(path), suppress(FileNotFoundError, NotADirectoryError):
        return files.read_bytes(path, files.MAX_LOG_BYTES)
    return None


def _hash(data: bytes | None) -> bytes | None:
    return None if data is None else journal.hashed(data)
