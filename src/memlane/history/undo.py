"""The way back from an applied plan: what every change replaces is on the disk before the change is made.

    .trash/undo/20250110-143022/journal.jsonl
    .trash/undo/20250110-143022/3.md                a file as it was

    {"what":"review","at":"2025-01-10T14:30:22Z"}
    {"step":"topics:auth/oauth2","action":"archive"}   the lines up to the next step belong together; without
                                                       such lines, each is a step of its own
    {"path":"topics/auth/oauth2.md","was":"5c…","copy":"3.md","now":"9f…"}   hashes; null where there is no file
    {"move":["a.md",".trash/a_20250110_143022.md"],"was":"5c…"}
    {"vault":"vault.jsonl","copy":"4.jsonl","now":{"3f9a1c0b7d2e":"77…"}}    the records' lines before
    {"stones":true}                                    tombstones were written
    {"done":"…"}                                       missing when the writer was killed
    {"undone":"…"}  {"redone":"…"}

A line is durable before its change, so that after kill -9 each file is as it was or as the plan wanted it, and the
journal tells which. What changed since is left alone, and with it all files of its step: otherwise an entry that moved
from one file to another could end up in neither. Journals stay on this machine: git ignores them, the last 20 are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memlane.core.dates import iso, utc_now
from memlane.core.errors import AlreadyExists, Conflict, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Memory
from memlane.disk import files, written
from memlane.disk.log import json_of
from memlane.disk.names import inside
from memlane.disk.trash import TRASH
from memlane.gate import shown
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank

FOLDER = (TRASH, "undo")
KEPT = 20
_JOURNAL = "journal.jsonl"
_ID = re.compile(r"(\d{8}-\d{6})(?:-(\d{1,6}))?")
_COPY = re.compile(r"\d{1,9}(\.[A-Za-z0-9]{1,10})?")
Entry = dict[str, Any]
_LOG = "vault"  # the key for lines appended to a lane that is a log; the vault was the first


@dataclass(frozen=True, slots=True)
class Applied:
    """What was applied, and can be undone. `state` is applied, interrupted, partly undone or undone."""

    id: str
    what: str
    at: str
    state: str
    steps: tuple[tuple[str, str], ...]  # id and action

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps": [{"id": id, "action": action} for id, action in self.steps]}


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. `id` is its own journal ("" when nothing had to be changed): undoing that does it again."""

    of: str
    what: str
    id: str
    restored: tuple[str, ...]  # paths below the bank's folder, and ids of the vault
    conflicts: tuple[tuple[str, str], ...]  # path or id, and why it was left as it is

    def to_dict(self) -> dict[str, Any]:
        conflicts = [{"path": path, "why": why} for path, why in self.conflicts]
        return {**asdict(self), "restored": list(self.restored), "conflicts": conflicts}


# -- recording


class Journal:
    """Writes down every change that `files` tells it of, before it is made. Its folder appears with the first one."""

    def __init__(self, bank: Bank, what: str, undoes: str = "") -> None:
        self.id = ""
        self._head = {"what": what, **({"undoes": undoes} if undoes else {})}
        self._bank = bank
        self._home = files.real(os.fspath(bank.root))
        self._undo = os.path.join(self._home, *FOLDER)
        self._passed_over = (self._undo + os.sep, os.path.join(self._home, "indices") + os.sep)
        self._stones = _real(os.fspath(bank.tombstones.path or ""))
        self._folder = self._pending = ""
        self._number = 0

    def step(self, id: str, action: str) -> None:
        """What is changed from here on belongs to this step."""
        self._pending = _line({"step": id, "action": action})

    def changing(self, path: str, data: bytes | None) -> None:
        path = _real(path)
        if path.startswith(self._passed_over) or (old := _bytes(path)) == data:
            return
        copy = {} if old is None else {"copy": self._kept(old, path)}
        self._note({"path": self._below(path), "was": _hash(old), "now": _hash(data), **copy})

    def moving(self, source: str, target: str) -> None:
        source, target = _real(source), _real(target)
        old = _bytes(source)
        if old is not None and not os.path.lexists(target):  # else it is refused
            self._note({"move": [self._below(source), self._below(target)], "was": _hash(old)})

    def appending(self, path: str, data: bytes) -> None:
        path = _real(path)
        if path == self._stones:
            self._note({"stones": True})
        elif (lane := _lane_at(self._bank, path)) and (appended := lane.answers.before_append(data)):
            before, after = appended
            self._note({_LOG: self._below(path), "copy": self._kept(before, path), "now": after})

    def close(self, mark: str) -> None:
        """Write down that all is done."""
        if self.id:
            self._append(_line({mark: iso(utc_now())}))

    def _below(self, path: str) -> str:
        return os.path.relpath(path, self._home)

    def _note(self, entry: Entry) -> None:
        self._open()
        pending, self._pending = self._pending, ""
        self._append(pending + _line(entry))

    def _kept(self, data: bytes, path: str) -> str:
        """Copy what a file holds into the journal's folder, and return the copy's name."""
        self._open()
        self._number += 1
        suffix = os.path.splitext(path)[1]
        name = f"{self._number}{suffix if _COPY.fullmatch(f'1{suffix}') else ''}"
        files.create(os.path.join(self._folder, name), data)
        return name

    def _open(self) -> None:
        if self.id:
            return
        ignore = os.path.join(self._undo, ".gitignore")
        if not os.path.lexists(ignore):
            files.replace(ignore, b"*\n")  # copies of what was taken away have no place in a history
        now = utc_now()
        head = {**self._head, "at": iso(now.replace(microsecond=0))}
        latest = max(map(_order, _ids(self._undo)), default=("", 0))
        stamp, number = now.strftime("%Y%m%d-%H%M%S"), 1
        if latest[0] >= stamp:  # within one second, or the clock was put back: the last one has the greatest id
            stamp, number = latest[0], latest[1] + 1
        while not self.id:
            name = stamp if number == 1 else f"{stamp}-{number}"
            folder = inside(self._home, *FOLDER, name)
            with suppress(AlreadyExists):
                files.create(os.path.join(folder, _JOURNAL), _line(head).encode())
                self.id, self._folder = name, folder
            number += 1
        for old in sorted(_ids(self._undo), key=_order)[:-KEPT]:
            _remove(os.path.join(self._undo, old))

    def _append(self, lines: str) -> None:
        files.append_lines(os.path.join(self._folder, _JOURNAL), lines.encode())


@contextmanager
def recording(bank: Bank, what: str, undoes: str = "") -> Iterator[Journal]:
    """Note every change that this thread makes to the bank's files inside, so that `undo` can take it back.

    Inside another recording it is part of that one. Raises StorageError when it cannot be noted; then the change is
    not made.
    """
    outer = files.witness.get()
    if isinstance(outer, Journal):
        yield outer
        return
    journal = Journal(bank, what, undoes)
    token = files.witness.set(journal)
    try:
        yield journal
        journal.close("done")
    finally:
        files.witness.reset(token)


# -- what there is


def applied(bank: Bank) -> list[Applied]:
    """What can be undone or done again, the latest first."""
    return [journal.applied() for journal in _latest_first(_folder(bank))]


def _folder(bank: Bank) -> str:
    """The folder of all journals."""
    return os.path.join(files.real(os.fspath(bank.root)), *FOLDER)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A journal that was read: its head, its steps, and the marks at its end."""

    id: str
    folder: str
    head: Entry
    groups: tuple[tuple[Entry, tuple[Entry, ...]], ...]  # the line of the step, the lines of its changes
    marks: tuple[str, ...]

    def applied(self) -> Applied:
        last = next((mark for mark in reversed(self.marks) if mark != "done"), "")
        state = {"undone": "undone", "partly": "partly undone"}.get(last, "applied")
        if state == "applied" and "done" not in self.marks:
            state = "interrupted"
        steps = tuple((str(step.get("step", "")), str(step.get("action", ""))) for step, _ in self.groups)
        return Applied(self.id, str(self.head.get("what", "")), str(self.head.get("at", "")), state, steps)

    def mark(self, mark: str) -> None:
        """Write down that it was undone, partly undone, or redone."""
        files.append_lines(os.path.join(self.folder, _JOURNAL), _line({mark: iso(utc_now())}).encode())


def _latest_first(folder: str) -> Iterator[_Recorded]:
    for id in sorted(_ids(folder), key=_order, reverse=True):
        if journal := _read(folder, id):
            yield journal


def _read(folder: str, id: str) -> _Recorded | None:
    """A journal; None when there is none of this id. A torn last line was never acknowledged; any other line that
    cannot be read is damage, and its step cannot be taken back.
    """
    folder = os.path.join(folder, id)
    path = os.path.join(folder, _JOURNAL)
    is_ours = _ID.fullmatch(id) and os.path.isfile(path) and os.path.realpath(path) == path
    data = _bytes(path) if is_ours else None
    if data is None:
        return None
    head: Entry = {}
    groups: list[tuple[Entry, list[Entry]]] = []
    marks: list[str] = []
    stepless = True  # then each change is a step of its own
    before: dict[str, list[Any]] = {}  # what a file was before its changes: so it is when an undo was killed, too
    *whole, _ = data.decode(errors="replace").split("\n")
    for line in whole:
        entry = _entry(line)
        if "what" in entry:
            head = entry
        elif "step" in entry:
            stepless = False
            groups.append((entry, []))
        elif entry.keys() & {"path", "move", _LOG, "stones", "damaged"}:
            if "path" in entry:
                before.setdefault(str(entry["path"]), []).append(entry.get("was"))
                entry["settled"] = tuple(before[str(entry["path"])])
            if not groups or (stepless and "stones" not in entry):
                groups.append(({"step": _named(entry), "action": str(head.get("what", ""))}, []))
            groups[-1][1].append(entry)
        else:
            marks += [mark for mark in ("done", "undone", "redone", "partly") if mark in entry]
    return _Recorded(id, folder, head, tuple((step, tuple(lines)) for step, lines in groups), tuple(marks))


def _entry(line: str) -> Entry:
    """A line of a journal; `{"damaged": True}` for one that is not as we write them."""
    entry = json_of(line)
    if not isinstance(entry, dict):
        return {"damaged": True} if line.strip() else {}
    match entry:
        case {"path": str(), "was": str() | None, "now": str() | None}:
            whole = True
        case {"path": _}:
            whole = False
        case {"move": [str(), str()], "was": str() | None}:
            whole = True
        case {"move": _}:
            whole = False
        case _:
            whole = _LOG not in entry or (isinstance(entry[_LOG], str) and isinstance(entry.get("now"), dict))
    hashes = all(isinstance(entry.get(name), str | None) for name in ("was", "copy"))
    return entry if whole and hashes else {"damaged": True}


def _named(entry: Entry) -> str:
    named = entry.get("path") or entry.get(_LOG) or entry.get("move") or [""]
    return str(named[0] if isinstance(named, list) else named)


def _ids(folder: str) -> list[str]:
    try:
        return [name for name in files.names_in(folder) if _ID.fullmatch(name)]
    except (OSError, StorageError):
        return []


def _order(id: str) -> tuple[str, int]:
    found = _ID.fullmatch(id)
    return (found[1], int(found[2] or 1)) if found else ("", 0)


# -- undoing


def undo(bank: Bank, id: str | None = None) -> Undone:
    """Take back what was applied last, or what this journal says. A file is restored only where it is still as the
    plan left it; what changed since is left as it is, together with the other files of its step, and named.

    Is itself noted, so that it can be undone by its own id. Raises NotFound, InvalidInput, StorageError.
    """
    folder = _folder(bank)
    journal = _chosen(folder, id)
    restored: list[str] = []
    conflicts: list[tuple[str, str]] = []
    outdated: dict[str, None] = {}
    with recording(bank, "undo", journal.id) as own:
        for step, entries in reversed(journal.groups):
            own.step(str(step.get("step", "")), "undo")
            group = _Group(bank, journal.folder, entries)
            paths, reasons = group.undo()
            restored += paths
            conflicts += reasons
            outdated |= dict.fromkeys(group.outdated)
        for name in outdated:
            bank.lane(name).answers.rebuild()
        journal.mark("partly" if conflicts else "undone")
        if not conflicts and (redone := _read(folder, str(journal.head.get("undoes", "")))):
            redone.mark("redone")
    what = str(journal.head.get("what", ""))
    return Undone(journal.id, what, own.id, tuple(dict.fromkeys(restored)), tuple(dict.fromkeys(conflicts)))


def _chosen(folder: str, id: str | None) -> _Recorded:
    if id is not None:
        if journal := _read(folder, id):
            return journal
        raise NotFound(f"There is nothing to undo of the id {shown(id)}.", hint="`memlane undo --list` lists them.")
    for journal in _latest_first(folder):
        if journal.groups and "undoes" not in journal.head and journal.applied().state != "undone":
            return journal
    raise NotFound("There is nothing to undo.", hint="`memlane undo --list` shows what was applied.")


class _Group:
    """The changes of one step, which are taken back together or not at all."""

    def __init__(self, bank: Bank, folder: str, entries: Sequence[Entry]) -> None:
        self.bank, self.folder = bank, folder
        self.home = files.real(os.fspath(bank.root))
        self.roots = {name: _real(os.fspath(bank.config.lane_root(name))) for name in NAMES}
        derived = ((name, bank.lane(name).answers.derived()) for name in NAMES)
        self.derived = {_real(path): name for name, path in derived if path}  # files that can be made anew
        self.outdated: list[str] = []  # the lanes whose derived file has to be
        self.entries = list(reversed(entries))
        self.stones = any("stones" in entry for entry in entries)

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
                before = self._memories(paths)
                for entry in self.entries:
                    if "path" in entry and self._paths(entry)[0] in self.derived:
                        self._apply_derived(entry)
                    elif "path" in entry or "move" in entry:
                        with written.copying():
                            restored += self._apply(entry)
                    elif _LOG in entry:
                        ids, reasons = self._apply_log(entry)
                        restored += ids
                        conflicts += reasons
                self._settle(before, self._memories(paths))
            except (Conflict, AlreadyExists, InvalidInput, StorageError) as error:
                where = ", ".join(str(entry.get("path", "")) for entry in self.entries if "path" in entry)
                conflicts.append((where or "a file", str(error)))
        return restored, conflicts

    # -- judging

    def _judged(self) -> list[tuple[str, str]]:
        """Why these files cannot go back; [] when all of them can."""
        now: dict[str, str | None] = {}
        found = []

        def at(path: str) -> str | None:
            if path not in now:
                now[path] = _hash(_bytes(path))
            return now[path]

        for entry in self.entries:
            if "damaged" in entry:
                found.append((os.path.relpath(self.folder, self.home), "has a line that cannot be read"))
            elif "move" in entry:
                source, target = self._paths(entry)
                if at(target) == entry["was"] and at(source) in (None, entry["was"]):
                    now[source], now[target] = entry["was"], None
                elif at(source) != entry["was"] or at(target) is not None:
                    found.append((self._below(source), f"is not at {self._below(target)} as it was left there"))
            elif "path" in entry:
                [path] = self._paths(entry)
                if path in self.derived or at(path) in entry["settled"]:
                    continue
                if at(path) != entry["now"]:
                    found.append((self._below(path), "has changed since"))
                elif entry["was"] is not None and _hash(self._copy(entry)) != entry["was"]:
                    found.append((self._below(path), "the copy of what it was is gone"))
                else:
                    now[path] = entry["was"]
        return found

    def _copy(self, entry: Entry) -> bytes | None:
        name = entry.get("copy")
        return _bytes(os.path.join(self.folder, name)) if isinstance(name, str) and _COPY.fullmatch(name) else None

    def _paths(self, entry: Entry) -> list[str]:
        """The files that a line speaks of. Raises InvalidInput for one outside the bank: a journal may be forged."""
        named = entry.get("move", [entry["path"]] if "path" in entry else [])
        found = []
        for name in named:
            path = os.path.normpath(os.path.join(self.home, str(name)))
            root = next((root for root in (self.home, *self.roots.values()) if path.startswith(root + os.sep)), None)
            parts = path[len(root or "") + 1 :].split(os.sep)
            gits = ".git" in (part.casefold() for part in parts)  # where programs lie that git runs
            if root is None or gits or path.startswith(os.path.join(self.home, *FOLDER) + os.sep):
                raise _foreign()
            found.append(inside(root, *parts))
        return found

    def _below(self, path: str) -> str:
        return os.path.relpath(path, self.home)

    # -- taking back

    def _apply(self, entry: Entry) -> list[str]:
        """Take one change back, the reverse of `_judged`; the paths that were changed."""
        if "move" in entry:
            source, target = self._paths(entry)
            if _hash(_bytes(target)) != entry["was"]:
                return []
            if os.path.lexists(source):  # killed between the two names
                files.remove(target)
            else:
                files.move(target, source)
            return [self._below(source)]
        [path] = self._paths(entry)
        if _hash(_bytes(path)) in entry["settled"]:
            return []
        if entry["now"] is None:
            files.create(path, self._copy(entry) or b"")
        else:
            with files.locked(path):
                if _hash(_bytes(path)) != entry["now"]:
                    raise Conflict(f"{self._below(path)} was changed just now.", hint="Try again.")
                if entry["was"] is None:
                    files.remove(path)
                else:
                    files.replace(path, self._copy(entry) or b"")
        return [self._below(path)]

    def _apply_derived(self, entry: Entry) -> None:
        """Put a derived file back where that is simple; else its lane makes it anew."""
        [path] = self._paths(entry)
        now = _hash(_bytes(path))
        if now not in entry["settled"] and now == entry["now"] and (entry["was"] is None or self._copy(entry)):
            self._apply(entry)
        if _hash(_bytes(path)) not in entry["settled"]:
            self.outdated.append(self.derived[path])

    def _apply_log(self, entry: Entry) -> tuple[list[str], list[tuple[str, str]]]:
        """Take back lines that were appended to a lane that is a log."""
        lane = _lane_at(self.bank, os.path.normpath(os.path.join(self.home, entry[_LOG])))
        if lane is None:
            raise _foreign()

        def settle(id: str, text: str, deleted: bool) -> None:
            if self.stones and deleted:
                self.bank.tombstones.bury((id, text))
            elif self.stones:
                self.bank.tombstones.lift(text, forgotten=False)

        restored, conflicts = lane.answers.undo_append(self._copy(entry) or b"", entry["now"], settle)
        return restored, [(where, why) for where, why, _ in conflicts]

    # -- tombstones: deleted stays deleted, and what is back is wanted

    def _memories(self, paths: Sequence[str]) -> dict[str, Memory]:
        """The memories in these files, by id; none when no tombstone was written."""
        if not self.stones:
            return {}
        found: dict[str, Memory] = {}
        for path in filter(os.path.isfile, paths):
            around = (root for root in self.roots.values() if path.startswith(root + os.sep))
            home = max(around, key=len, default="")  # a lane may lie inside another one
            relative = path[len(home) + 1 :]
            if any(part.startswith(".") for part in relative.split(os.sep)):
                continue
            for lane in (self.bank.lane(name) for name, root in self.roots.items() if root == home):
                items = lane.parse(os.path.join(lane.root, relative))
                found |= {item.id: item for item in items if isinstance(item, Memory)}
        return found

    def _settle(self, before: dict[str, Memory], after: dict[str, Memory]) -> None:
        for memory in after.values():  # even those that an undo which was killed has brought back
            self.bank.tombstones.lift(memory.text, forgotten=False)
        gone = [(id, memory.text) for id, memory in before.items() if id not in after]
        if gone:
            self.bank.tombstones.bury(*gone)


# -- shared


def _foreign() -> InvalidInput:
    return InvalidInput("The journal names a file that is not the bank's.", hint="Nothing was changed.")


def _line(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n"


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


def _hash(data: bytes | None) -> str | None:
    return None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()


def _remove(folder: str) -> None:
    """Delete an old journal, the journal itself first: without it, nobody misses a copy."""
    with suppress(OSError, MemlaneError):
        for name in sorted(files.names_in(folder), key=lambda name: name != _JOURNAL):
            if name == _JOURNAL or _COPY.fullmatch(name):
                files.remove(os.path.join(folder, name))
        files.remove_folder(folder)
