"""What the layers lane notes beside its memories: when each was created, how often it was loaded, how long it was then.

    layers/projects/my-api/.stats.jsonl     one for each folder

Losing these side files loses no memory. A side file is only appended to, so that a write costs the same in a large
store, and folded now and then. `.stats.json` at the root, which earlier versions wrote for the whole store, is still
read but no longer written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import MemlaneError, StorageError
from memlane.core.model import Problem
from memlane.disk import files, trash
from memlane.disk.log import json_of
from memlane.disk.names import inside
from memlane.lanes.layers.aging import EVERY

STATS = ".stats.jsonl"
OLD_STATS = ".stats.json"
FOLD_BYTES = 65536  # each time a side file has grown by this much, folding it is considered
_NOT_READABLE = (ValueError, RecursionError, AttributeError)  # not JSON, or no object where one belongs


class Usage(NamedTuple):
    """When a memory was created, how often it was loaded or written, and its line counts at the latest of those."""

    created: str | None = None
    invocations: int = 0
    lines: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: Any) -> Usage:
        """From JSON; a value of the wrong type counts as absent. Raises AttributeError when it is not an object."""
        created, count, lines = record.get("createdAt"), record.get("invocations"), record.get("lines")
        return cls(
            created if isinstance(created, str) and moment(created) else None,
            count if isinstance(count, int) else 0,
            tuple(line for line in lines if isinstance(line, int))[-EVERY:] if isinstance(lines, list) else (),
        )

    def to_json(self) -> dict[str, Any]:
        return {"createdAt": self.created, "invocations": self.invocations, "lines": list(self.lines)}

    def then(self, later: Usage) -> Usage:
        """This record, continued by one that may not know the beginning."""
        if later.created:
            return later
        return Usage(self.created, self.invocations + later.invocations, (*self.lines, *later.lines)[-EVERY:])


UNUSED = Usage()


class _Side(NamedTuple):
    """A side file as it was last read."""

    seen: tuple[int, int, int] | None = None  # inode, size, mtime
    data: bytes = b""
    noted: Mapping[str, Usage] = MappingProxyType({})
    damaged: tuple[int, ...] = ()  # line numbers
    problem: Problem | None = None


class SideFiles:
    """The side files of one store. What was read is kept in memory until the file changes."""

    def __init__(self, root: Path, clock: Callable[[], datetime]) -> None:
        self.root = root
        self.clock = clock
        self._old = os.path.join(root, OLD_STATS)
        self._sides: dict[str, _Side] = {}

    def usage(self, id: str, path: str) -> Usage:
        """What is noted of the memory with this id in this file."""
        folder, _, name = path.rpartition("/")
        usage = self._side(f"{folder}/{STATS}").noted.get(name[:-3], UNUSED)
        return usage if usage.created else self._side(self._old).noted.get(id, UNUSED).then(usage)

    def problem(self, folder: str | None = None) -> Problem | None:
        """The damage in a folder's side file, or in the one that earlier versions wrote."""
        return self._side(f"{folder}/{STATS}" if folder else self._old).problem

    def note(self, folder: str, news: Mapping[str, Any]) -> None:
        """Append what `_fold_in` reads. A failure is ignored: no memory depends on it."""
        line = json.dumps(news).encode() + b"\n"
        with suppress(MemlaneError, OSError):
            path = inside(folder, STATS)
            files.append_lines(path, line)
            size = os.path.getsize(path)
            if size // FOLD_BYTES > (size - len(line)) // FOLD_BYTES:
                self._fold(path)

    def _fold(self, path: str) -> None:
        """Shorten a side file to one line per memory, where that halves it.

        A line appended at this moment may be counted twice, but is never lost. Damaged lines go to the trash.
        """
        with files.locked(path):
            side = self._side(path)
            lines = [json.dumps({name: usage.to_json()}).encode() + b"\n" for name, usage in side.noted.items()]
            if side.data and sum(map(len, lines)) <= len(side.data) // 2:  # no data: it could not be read
                if side.damaged:
                    trash.put(path, self.root, self.clock(), copy=side.data)
                files.replace(path, b"".join(lines))

    def _side(self, path: str) -> _Side:
        before = self._sides.get(path, _Side())
        try:
            info = os.stat(path)
            seen = (info.st_ino, info.st_size, info.st_mtime_ns)
            if seen == before.seen:
                return before
            data = files.read_bytes(path)
            side = _parsed_old(path, data) if path == self._old else _parsed(path, data, before)
            side = side._replace(seen=seen)
        except FileNotFoundError:
            side = _Side()
        except (OSError, StorageError) as error:
            side = _Side(problem=files.unreadable(path, error))
        self._sides[path] = side
        return side


def _parsed(path: str, data: bytes, before: _Side) -> _Side:
    """A folder's side file. Of one that has only grown since `before`, only the new lines are parsed."""
    if not data.startswith(before.data) or not before.data.endswith(b"\n"):
        before = _Side()
    lines = data[len(before.data) :].decode(errors="replace").split("\n")
    first = before.data.count(b"\n") + 1
    noted = dict(before.noted)
    # The last line has no line end yet: if it is damaged, it is just being written, or torn.
    new = [first + place for place in _fold_in(lines, noted) if place < len(lines) - 1]
    damaged = (*before.damaged, *new)
    problem = None
    if damaged:
        why = f"has lines that cannot be read ({len(damaged)}), perhaps of a merge; delete them"
        problem = Problem(Path(path), why, damaged[0])
    return _Side(None, data, noted, damaged, problem)


def _fold_in(lines: Sequence[str], noted: dict[str, Usage]) -> list[int]:
    """Add the lines of a side file to `noted`; return the places of those that cannot be read.

    A line is `{"<file type>": …, …}`: a number is the line count at one more invocation, an object the whole record.
    """
    damaged = []
    for place, line in enumerate(lines):
        try:
            news = json.loads(line) if line.strip() else {}
            for file_type, value in news.items():
                if isinstance(value, int):
                    noted[file_type] = noted.get(file_type, UNUSED).then(Usage(None, 1, (value,)))
                else:
                    noted[file_type] = Usage.of(value)
        except _NOT_READABLE:
            damaged.append(place)
    return damaged


def _parsed_old(path: str, data: bytes) -> _Side:
    """The side file of earlier versions: one JSON object with the records of the whole store, by id."""
    try:
        records = json.loads(data).items() if data else ()
        return _Side(noted={id: Usage.of(record) for id, record in records if isinstance(record, dict)})
    except _NOT_READABLE:
        return _Side(problem=Problem(Path(path), "is not JSON, so created dates are unknown; mend or delete it"))


def remove_key(path: str, key: str) -> None:
    """Take a name out of a side file, and with it the lines that cannot be read."""
    with files.locked(path):
        text = files.read_bytes(path).decode(errors="replace")
        lines = [text] if path.endswith(".json") else text.splitlines()
        records = [record for line in lines if isinstance(record := json_of(line), dict)]
        kept = [{name: record[name] for name in record if name != key} for record in records]
        data = "".join(json.dumps(record) + "\n" for record in kept if record).encode()
        files.replace(path, data) if data else files.remove(path)  # an empty one would keep its folder, and so a name
