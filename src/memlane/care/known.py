"""What is known of a whole bank: every file of its lanes, and what was found in it when it last changed.

    with look(bank) as known:
        known.of("problem"), known.count, known.held

Files are the truth, and each is read again when it has changed: see `memlane.index.facts`. FORM is what a file is by
its format, SAID what its memories say, BYTES what may be in any file, of a lane or not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memlane import __version__
from memlane.care import audit
from memlane.core.dates import iso
from memlane.core.errors import MemlaneError, StorageError
from memlane.core.markdown import lines_with_code
from memlane.core.model import Memory, Problem
from memlane.disk import files
from memlane.gate import Guard
from memlane.gate.outgoing import cleaned
from memlane.index import facts
from memlane.index.database import is_busy
from memlane.index.facts import Facts, Found, Part
from memlane.index.links import Targets, last_name, last_names, links_by_scope, links_in
from memlane.index.rows import marks, shape
from memlane.index.seal import IndexFile
from memlane.lanes import NAMES
from memlane.lanes.merging import undecided

if TYPE_CHECKING:
    from memlane.bank import Bank

FORM, SAID, BYTES = 1, 2, 4
RULES = 3  # another number when the same file has to be judged anew
LONG = 50_000  # characters of a note or record that are worth a word
_IRRELEVANT = ("search.", "hook.", "mcp.", "journal.", "profile.", "distil.")  # settings that no answer depends on
_AT_ONCE = 500  # names in one question
_FEW, _SHORT = 500, 4_000_000  # files that are remembered as they were read, and the characters of them all
_UNKNOWN = os.stat_result((0,) * os.stat_result.n_fields)  # of a file that cannot be looked at, or is gone by now
_MARKER = re.compile(r"(?:<{7}|>{7}) ")


class Fact(NamedTuple):
    path: str
    id: str
    value: Any


@contextmanager
def look(
    bank: Bank,
    parts: int = FORM,
    *,
    anew: bool = False,
    walked: Mapping[str, os.stat_result] | None = None,
) -> Iterator[Known]:
    """What is known of a bank, as far as these parts go. With `anew`, every file is read.

    `walked` is every file of the bank, whoever's, for BYTES. Writes nothing into the bank.
    """
    known = Known(bank, parts, anew=anew, walked=walked)
    try:
        yield known
    finally:
        known.close()


class Known:
    """The lanes' files as they are listed, and what is known of them. `broken` are lanes that cannot be read."""

    def __init__(
        self,
        bank: Bank,
        parts: int = FORM,
        *,
        anew: bool = False,
        walked: Mapping[str, os.stat_result] | None = None,
    ) -> None:
        self.bank, self._parts, self._walked = bank, parts, walked
        self.listed: dict[str, list[str | Problem]] = {}  # of each lane, in its order
        self.broken: dict[str, MemlaneError | OSError] = {}
        self.files: dict[str, tuple[str, os.stat_result]] = {}
        for name in NAMES:
            try:
                self.listed[name] = list(bank.lane(name).files())
            except (MemlaneError, OSError) as error:
                self.listed[name], self.broken[name] = [], error
            paths = [path for path in self.listed[name] if isinstance(path, str)]
            self.files.update(zip(paths, zip(repeat(name), self._states(paths), strict=False), strict=True))
        self._read: dict[str, list[Memory | Problem]] = {}
        self._named: dict[str, dict[str, Memory]] = {}  # the memories of these files by id: a vault has very many
        self._length = 0  # of these memories, in characters
        if anew:
            with suppress(OSError):
                facts.remove(bank.index_file)
        self._facts = self._learned()

    def _states(self, paths: Sequence[str]) -> Iterator[os.stat_result]:
        walked = self._walked or {}
        for path in paths:
            info = walked.get(path)
            if info is None or not stat.S_ISREG(info.st_mode):
                try:
                    info = os.stat(path)
                except OSError:
                    info = _UNKNOWN
            yield info

    def close(self) -> None:
        self._facts.close()

    def _learned(self, *, keep: bool = True) -> Facts:
        """The facts, up to date. Where they cannot be kept, or are damaged, all is found out for this time."""
        every = dict(self.files)
        for path, info in (self._walked or {}).items():
            if path not in every and audit.is_text(path, info):
                every[path] = ("", info)
        parts = [part for part in self._all_parts() if part.bit & self._parts]
        nowhere = IndexFile(self.bank.index_file.path, None)
        for file in (self.bank.index_file, nowhere) if keep else (nowhere,):
            known = Facts(file)
            try:
                known.learn(every, parts, all_files=self._walked is not None)
                return known
            except sqlite3.Error as error:
                known.close()
                self._give_up(error)
        raise StorageError("The files of the bank could not be looked through.", hint="Free some memory or disk space.")

    def _give_up(self, error: sqlite3.Error) -> None:
        """Remove facts that are damaged, unless they are only busy at the moment."""
        if not is_busy(error):
            with suppress(OSError):
                facts.remove(self.bank.index_file)

    # -- looking

    def _all_parts(self) -> tuple[Part, ...]:
        settings = {key: value for key, value in self.bank.config.values.items() if not key.startswith(_IRRELEVANT)}
        beside = [path for name in NAMES for path in self.bank.lane(name).answers.files_beside()]
        common = [__version__, RULES, settings, *map(stamp_of, (self.bank.tombstones.private.path, *beside))]
        guard = self.bank.guard
        return (
            Part(FORM, "reading", _digest(common), self._form, has_entries=True),
            Part(SAID, "reading", _digest([*common, guard]), self._said),
            Part(BYTES, "auditing", _digest([__version__, RULES, guard]), partial(_bytes_of, guard), of_lanes=False),
        )

    def _form(self, lane: str, path: str) -> Found:
        """What a file is by its format: its memories, damage in it, and the rules that it breaks."""
        own = self.bank.lane(lane)
        entries: list[tuple[Any, ...]] = []
        found: list[tuple[str, str, Any]] = []
        for item in self._items(lane, path):
            if isinstance(item, Problem):
                found.append(("problem", "", json.dumps([os.fspath(item.path), item.why, item.line])))
                continue
            entries.append(_entry(item))
            if own.answers.rules_are_lasting:
                found += (("rule", item.id, why) for why in own.answers.broken_rules(item))
            if why := undecided(item):
                found.append(("undecided", item.id, why))
            if self.bank.tombstones.forgotten(item.text, item.id, item.title):
                found.append(("forgotten", item.id, ""))
        return Found(entries, found)

    def _said(self, lane: str, path: str) -> Found:
        """What the memories of a file say: links, code that they name, words to a model, and how much it is."""
        from memlane.care.fresh.mentions import mentions

        found: list[tuple[str, str, Any]] = []
        guard = self.bank.guard
        for memory in self._items(lane, path):
            if isinstance(memory, Problem):
                continue
            if why := memory.suspicious:
                found.append(("suspicious", memory.id, json.dumps(why)))
            if about := list(links_by_scope(memory)):
                found.append(("about", memory.id, json.dumps(about)))
            if cleaned(memory, guard) is not memory or cleaned(memory.id, guard) != memory.id:
                found.append(("secret", memory.id, ""))
            if links := list(links_in(memory.text)):
                found.append(("links", memory.id, json.dumps(links)))
            if memory.status != "archived" and (code := mentions(memory)):
                said = memory.created_at if memory.lane == "records" or memory.distilled else None
                found.append(("code", memory.id, json.dumps([code, iso(said)])))
            if lane in ("notes", "records") and len(memory.text) > LONG:
                found.append(("long", memory.id, len(memory.text)))
        return Found(facts=found)

    # -- asking

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Rows of the tables of `memlane.index.facts`."""
        try:
            return self._facts.rows(query, *values)
        except sqlite3.Error as error:
            self._facts.close()
            self._give_up(error)
            self._facts = self._learned(keep=False)
            return self._facts.rows(query, *values)

    def remembered(self, name: str, about: Sequence[Any], work_out: Callable[[], Any], *, of_files: bool = True) -> Any:
        """An answer, as JSON has it, that holds while no file changes, and nothing else that it is `about`.

        One that is not `of_files` holds while that alone does not change.
        """
        said = self._facts.remembered(name, _digest(about), lambda: json.dumps(work_out()), of_files=of_files)
        return json.loads(said)

    def kept(self, name: str) -> bytes | None:
        """What somebody keeps under a name beside the facts; he knows himself what of it still holds."""
        found = self._facts.kept(name)
        return found[1] if found and isinstance(found[1], bytes) else None

    def keep(self, name: str, value: bytes) -> None:
        self._facts.keep(name, "", value)

    def of(self, *kinds: str) -> list[Fact]:
        """Everything of these kinds, in the order of the lanes' files."""
        query = f"SELECT path, id, value FROM facts WHERE kind IN ({marks(kinds)}) ORDER BY rowid"  # noqa: S608 - marks
        found = [Fact(facts.named(path), id, value) for path, id, value in self.rows(query, *kinds)]
        return sorted(found, key=lambda fact: self._order.get(fact.path, len(self._order)))

    @cached_property
    def _order(self) -> dict[str, int]:
        return {path: place for place, path in enumerate(self.files)}

    @cached_property
    def count(self) -> int:
        """How many memories there are."""
        return int(self.rows("SELECT count(*) FROM entries")[0][0])

    @cached_property
    def held(self) -> dict[tuple[str, str], str]:
        """Why memories are held back, by their files and ids: deleted or forgotten, and there again."""
        suspects = {(fact.path, fact.id) for fact in self.of("forgotten")}
        tombstones = self.bank.tombstones
        if tombstones.any():
            every = self.rows("SELECT path, id FROM entries")
            suspects |= {(path, id) for path, id in every if tombstones.may_hold(id)}
        found = {}
        for path, id in sorted(suspects, key=lambda pair: (self._order.get(pair[0], 0), pair[1])):
            if (memory := self.memory(path, id)) and (why := self.bank.held(memory)):
                found[path, id] = why
        return found

    def memory(self, path: str, id: str) -> Memory | None:
        """A memory, as its file has it."""
        items = self._parsed(path)
        if path not in self._named:
            self._named[path] = {item.id: item for item in reversed(items) if isinstance(item, Memory)}
        return self._named[path].get(id)

    def _parsed(self, path: str) -> Sequence[Memory | Problem]:
        """What a file holds; of a few files it is remembered."""
        if path not in self.files:
            return ()  # another process has looked since, and found a new file
        if path not in self._read:
            lane = self.bank.lane(self.files[path][0])
            if len(self._read) > _FEW or self._length > _SHORT:
                self._read.clear()
                self._named.clear()
                self._length = 0
            self._read[path] = items = list(lane.parse(path))
            self._length += sum(len(item.text) for item in items if isinstance(item, Memory))
        return self._read[path]

    def _items(self, lane: str, path: str) -> Iterable[Memory | Problem]:
        """The same, but of a file with many memories one after the other: nobody has all of a long vault at once."""
        own = self.bank.lane(lane)
        return own.parse(path) if own.answers.shares_files else self._parsed(path)

    def entries(self, columns: str = "", where: str = "", *values: Any) -> list[Any]:
        """(path, id, columns …) of the memories that fit, in the order of the lanes' files."""
        what = f"path, id, {columns}" if columns else "path, id"
        query = f"SELECT {what} FROM entries WHERE {where or 'true'} ORDER BY rowid"  # noqa: S608 - our own words
        rows = self.rows(query, *values)
        return sorted(rows, key=lambda row: self._order.get(row[0], -1)) if where else rows

    def ids_among(self, names: Collection[str]) -> set[str]:
        """Those of some names that are the id of a memory."""
        return {id for (id,) in self._asked("SELECT id FROM entries WHERE id IN ({})", names)}

    def _asked(self, query: str, values: Collection[str]) -> Iterator[Any]:
        """The rows of a question about very many values."""
        every = list(values)
        for start in range(0, len(every), _AT_ONCE):
            some = every[start : start + _AT_ONCE]
            yield from self.rows(query.format(marks(some)), *some)

    @cached_property
    def targets(self) -> Targets:
        """The memories that the links of the bank can mean."""
        return self.targets_without(())

    def targets_without(self, hidden: Collection[str]) -> Targets:
        """The same without those of these ids."""
        nodes = {node for fact in self.of("about") for node, _, _ in json.loads(fact.value)}
        nodes.update(node for _, _, linked in self.linking for node in linked)
        names = {name for node in nodes for name in last_names(node)}
        ids = (id for (id,) in self._asked("SELECT id FROM entries WHERE name IN ({})", names))
        return Targets(id for id in ids if id not in hidden)

    @cached_property
    def linking(self) -> list[tuple[str, str, list[str]]]:
        """(id, file, nodes) of the memories that link to something, each node once."""
        return [
            (id, path, list(dict.fromkeys(node for node, _, _ in json.loads(links))))
            for path, id, links in self.of("links")
        ]

    def alone(self, path: str) -> str | None:
        """The id of the memory in a file that holds one alone."""
        lane = self.files[path][0] if path in self.files else None
        if lane is None or self.bank.lane(lane).answers.shares_files:
            return None
        rows = self.rows("SELECT id FROM entries WHERE path = ?", path)
        return rows[-1][0] if rows else None

    def problems(self, *kinds: str, lanes: Collection[str] = NAMES, held: bool = True) -> Iterator[Problem]:
        """Damage, and what else of these kinds is wrong, file by file; with `held`, also what is held back.

        Of what is held back, nothing else is said then.
        """
        by_path: defaultdict[str, list[Fact]] = defaultdict(list)
        for fact in self.of("problem", *kinds):
            by_path[fact.path].append(fact)
        why_held = self.held if held else {}
        for path, id in why_held:
            by_path[path].append(Fact(path, id, ""))
        for name in lanes:
            for item in [item for item in self.listed[name] if item in by_path or isinstance(item, Problem)]:
                if isinstance(item, Problem):
                    yield item
                    continue
                for path, id, value in by_path[item]:
                    if not id:
                        place, why, line = json.loads(value)
                        yield Problem(Path(place), why, line)
                    elif not value:
                        yield Problem(Path(path), why_held[path, id])
                    elif (path, id) not in why_held:
                        yield Problem(Path(path), value)

    def require_all(self) -> None:
        """Raise what a lane raised that cannot be read."""
        for error in self.broken.values():
            raise error


def _entry(memory: Memory) -> tuple[Any, ...]:
    text = memory.text.strip()
    words = hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest() if text else None
    created, updated = (when.timestamp() if when else None for when in (memory.created_at, memory.updated_at))
    return (
        memory.lane, memory.id, memory.status, memory.type, json.dumps(memory.tags), memory.title, created, updated,
        shape(memory)[1], words, last_name(memory.id), end.timestamp() if (end := memory.expires) else None,
    )  # fmt: skip


def _bytes_of(guard: Guard, lane: str, path: str) -> Found:
    """What the bytes of a file say: secrets, and the marks of a merge. ("unread" where they cannot be read.)"""
    try:
        data = files.read_bytes(path, audit.MAX_BYTES)
    except FileNotFoundError:
        return Found()
    except (OSError, StorageError):
        return Found(facts=[("unread", "", "")])
    found: list[tuple[str, str, Any]] = []
    if guard.secrets != "off":
        found += (("leak", "", json.dumps(leak.to_dict())) for leak in audit.scan_data(data, path, guard))
    if (b"<<<<<<< " in data or b">>>>>>> " in data) and (line := _conflict(data, path)):
        found.append(("conflict", "", line))
    return Found(facts=found)


def _conflict(data: bytes, path: str) -> int | None:
    """The line of the first marker that a merge has left; in Markdown, outside code."""
    lines = lines_with_code(data.decode(errors="replace"))
    markdown = path.endswith((".md", ".markdown"))
    return next((n for n, (line, code) in enumerate(lines, 1) if _MARKER.match(line) and not (markdown and code)), None)


def stamp_of(path: str | Path | None) -> tuple[int, ...]:
    """What changes when a file is written; () where there is none."""
    try:
        info = os.stat(path or "")
    except OSError:
        return ()
    return info.st_size, info.st_mtime_ns, info.st_ino


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.blake2b(repr(parts).encode(errors="replace"), digest_size=16).hexdigest()
