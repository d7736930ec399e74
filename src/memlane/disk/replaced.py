"""Which memory took the place of which: `replaced.jsonl` in the bank's folder, a line for each.

    {"old":"notes:deploy-day","new":"notes:deploy-day-2","at":"2025-01-10T14:30:22Z"}

A line says what was meant when it was written. Whether it counts is worked out: while the new memory is there, the old
one is superseded; when the new one is deleted the old one is released, and when it comes back, superseded again. With
`"ended":true` it no longer counts: somebody used one of the names again. Of the lines of one pair the newest counts, so
that git can unite the lines of two branches. Lines are only appended, except by `forget`; the five formats stay as they
are, and a memory can take the place of one in another lane. A line that names a private note is in
`private/replaced.jsonl` instead, which git is told to leave out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from memlane.core.dates import iso, moment
from memlane.core.errors import NotFound, StorageError
from memlane.core.model import Problem
from memlane.disk import derived, files, log
from memlane.disk.names import is_stray, private_twin, refuse_link

FILE = "replaced.jsonl"


class Replaced:
    """The lines of one bank, read anew when a file has changed. Most banks have none, and pay a stat for each."""

    def __init__(self, path: str | Path) -> None:
        self.path = os.path.abspath(path)
        self._files = {each: _File(each) for each in (self.path, private_twin(self.path))}
        self._links: dict[str, list[str]] = {}

    def links(self) -> dict[str, list[str]]:
        """What took the place of each id that something took the place of, in the order of time.

        Nothing where the file cannot be read: `problems` says so, and nothing is hidden because of it.
        """
        if sum(file.read() for file in self._files.values()):
            self._links = _links([line for file in self._files.values() for line in file.lines])
        return self._links

    def successors(self, id: str) -> list[str]:
        """Everything that took the place of a memory, of what took its place, and so on: the nearest first."""
        links, found = self.links(), dict.fromkeys([id])
        for each in (queue := [id]):
            new = [other for other in links.get(each, ()) if other not in found]
            found |= dict.fromkeys(new)
            queue += new
        return list(found)[1:]

    def all_successors(self) -> dict[str, list[str]]:
        return {id: self.successors(id) for id in self.links()}

    def predecessors(self, id: str) -> list[str]:
        """The memories whose place this one took."""
        return [old for old, new in self.links().items() if id in new]

    def problems(self) -> Iterator[Problem]:
        """The first line of each file that cannot be read, and why a file cannot be."""
        for path in self._files:
            if is_stray(path, os.path.dirname(path)) or os.path.isdir(path):
                yield Problem(Path(path), "is not a file of the bank; what was replaced is not known")
                continue
            lines: list[bytes] = []
            with suppress(OSError):
                lines = log.split_lines(log.read_all(path))
            bad = (number for number, line in enumerate(lines, 1) if line.strip() and _pair(line) is None)
            if number := next(bad, None):
                yield Problem(Path(path), "has a line that names no two memories; delete the line", number)

    def link(self, new: str, old: str, now: datetime) -> None:
        """Note that a memory takes the place of another. Raises StorageError."""
        self._append({"old": old, "new": new, "at": self._stamp(old, new, now)})

    def end(self, id: str, now: datetime) -> None:
        """Note that this id names another memory now. Raises StorageError."""
        for old, new in self.links().items():
            for each in new:
                if id in (old, each):
                    self._append({"old": old, "new": each, "at": self._stamp(old, each, now), "ended": True})

    def _stamp(self, old: str, new: str, now: datetime) -> str:
        """The time for a line about a pair: now, or just after the newest one where another clock was ahead."""
        quoted = json.dumps(old, ensure_ascii=False).encode(errors="replace")
        self.links()  # reads what is new
        lines = [line for file in self._files.values() for line in file.lines if quoted in line]
        said = [str(log.json_of(line).get("at") or "") for line in lines if _pair(line) == (old, new)]
        at, last = iso(now) or "", max(said, default="")
        if last >= at and (before := moment(last)):
            with suppress(OverflowError):
                at = iso(before + timedelta(seconds=1)) or at
        return at

    def readdress(self, old: str, new: str) -> None:
        """Let the lines about one id be about another, which the same memory has now. Raises StorageError."""
        lines = [line for file in self._files.values() if file.read() or file.lines for line in file.lines]
        known = [log.json_of(line) for line in lines if old in (_pair(line) or ())]
        for values in known:
            self._append(
                {key: new if key in ("old", "new") and value == old else value for key, value in values.items()}
            )
        if known:
            self.forget([old])

    def _append(self, values: dict[str, object]) -> None:
        path = derived.home_of(self.path, str(values["old"]), str(values["new"]))
        refuse_link(path, os.path.dirname(path))
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        files.append_lines(path, line.encode() + b"\n")

    def forget(self, ids: Collection[str]) -> None:
        """Take out every line that names one of these ids. Raises StorageError."""

        def without(data: bytes) -> tuple[bytes, bytes]:
            lines = [line for line in log.split_lines(data) if line.strip()]
            return b"".join(line + b"\n" for line in lines if not set(_pair(line) or ()) & set(ids)), b""

        for path in filter(os.path.lexists, self._files):
            refuse_link(path, os.path.dirname(path))
            with suppress(NotFound):
                log.rewrite(path, without, lambda _: True)
            with suppress(OSError, StorageError):
                if not log.read_all(path):
                    files.remove(path)


class _File:
    """A file's lines, as far as they were read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self._at = log.Position()

    def read(self) -> bool:
        """Read what is new; whether anything is."""
        if is_stray(self.path, os.path.dirname(self.path)):
            known, self.lines, self._at = self.lines, [], log.Position()
            return bool(known)
        with suppress(OSError):
            data, replaced = log.read_new(self.path, self._at)
            if replaced:
                self.lines = log.split_lines(log.read_old(self.path))
            if data or replaced:
                self.lines += log.split_lines(data)
                return True
        return False


def _pair(line: bytes) -> tuple[str, str] | None:
    """The ids of the old and the new memory; None where a line has no two."""
    values = log.json_of(line)
    if not isinstance(values, dict):
        return None
    old, new = values.get("old"), values.get("new")
    return (old, new) if isinstance(old, str) and isinstance(new, str) and old != new else None


def _links(lines: list[bytes]) -> dict[str, list[str]]:
    newest: dict[tuple[str, str], tuple[str, bool]] = {}
    for line in lines:
        if line.strip() and (pair := _pair(line)):
            values = json.loads(line)
            said = (str(values.get("at") or ""), values.get("ended") is True)
            newest[pair] = max(said, newest.get(pair, ("", False)))
    links: dict[str, list[str]] = {}
    for (old, new), (_, ended) in sorted(newest.items(), key=lambda item: (item[1], item[0])):
        if not ended:
            links.setdefault(old, []).append(new)
    return links
