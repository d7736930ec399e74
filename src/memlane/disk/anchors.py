"""What the code looked like when a memory mentioned it: `anchors.jsonl` in the bank, a line per memory and place.

    {"id": "notes:auth", "target": "src/auth.py", "symbol": "login", "blob": "…", "hash": "…", "at": "…"}

`blob` is git's hash of the file, `hash` that of the symbol's own text where the symbol was found; `path` is where the
code is now, if it moved since. An empty blob ends the watch. Of the lines of one place the newest counts, so that the
lines of two branches can be merged in any order. Lines are only appended, except by `compact`. The file belongs in git:
nothing else can reproduce it. What is said of private notes is in `private/anchors.jsonl` instead, which does not: a
note's name tells. So is what is said of captured records: there is some after every session, and git can tell again
what the code was then. Every function here means both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import NotFound, StorageError
from memlane.core.model import Problem
from memlane.disk import derived, files, log, rooted
from memlane.disk.names import is_stray, private_twin, refuse_link

NAME = "anchors.jsonl"
Anchors = dict[str, dict[tuple[str, str], "Anchor"]]  # by id, then by target and symbol


class Anchor(NamedTuple):
    """One line. `hash` is "" where the whole file counts, `blob` is "" where nothing is watched any more."""

    id: str
    target: str
    symbol: str
    blob: str
    hash: str
    at: str
    path: str = ""

    @property
    def place(self) -> str:
        """Where the file is now."""
        return self.path or self.target

    def line(self) -> bytes:
        names = ("id", "target", "symbol", "path", "blob", "hash", "at")
        kept = {name: value for name in names if (value := getattr(self, name)) or name == "blob"}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def stamp(now: datetime, before: Anchor | None = None) -> str:
    """The time for a new anchor: now, or just after the one that it replaces where another clock was ahead."""
    last = moment(before.at) if before else None
    if last is not None and last >= now:
        now = last + timedelta(microseconds=last.replace(tzinfo=None) < datetime.max)
    return now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def load(path: str, id: str | None = None) -> tuple[Anchors, int]:
    """(every anchor that counts, how many lines are damaged); with `id`, only of its lines. No file, no anchors.

    A file that cannot be read counts as one damaged line: nobody should lack a memory because of it.
    """
    lines: list[bytes] = []
    unread = 0
    for each in (path, private_twin(path)):
        try:
            lines += _lines(each)
        except (OSError, StorageError):
            unread += 1
    if id is not None:
        quoted = json.dumps(id, ensure_ascii=False).encode(errors="replace")
        lines = [line for line in lines if quoted in line]
    anchors, damaged = _parsed(lines)
    return anchors, damaged + unread


def problems(path: str) -> Iterator[Problem]:
    """Why the file cannot be read."""
    for each in (path, private_twin(path)):
        try:
            _lines(each)
        except (OSError, StorageError) as error:
            yield files.unreadable(each, error)


def _lines(path: str) -> list[bytes]:
    if is_stray(path, os.path.dirname(path)):
        raise rooted.Stray(path)
    return log.read_lines(path)


def _parsed(lines: Iterable[bytes]) -> tuple[Anchors, int]:
    lines = [line for line in lines if line.strip()]
    try:  # all at once is quickest
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        if len(rows) != len(lines):
            raise ValueError
    except (ValueError, RecursionError):
        rows = [log.json_of(line) for line in lines]
    anchors: Anchors = {}
    damaged = 0
    for row in rows:
        try:
            facts = (row.get("symbol", ""), row["blob"], row.get("hash", ""), row["at"], row.get("path", ""))
            anchor = Anchor(row["id"], row["target"], *facts)
            "".join(anchor)  # TypeError for a value that is not text
            of_id = anchors.setdefault(anchor.id, {})
            known = of_id.get((anchor.target, anchor.symbol))
            if known is None or anchor.at >= known.at:
                of_id[anchor.target, anchor.symbol] = anchor
        except (KeyError, TypeError, AttributeError):
            damaged += 1
    return anchors, damaged


def append(path: str, anchors: Iterable[Anchor]) -> None:
    """Write anchors, on stable storage when it returns. Raises StorageError."""
    lines: dict[str, bytes] = {}
    for anchor in anchors:
        captured = anchor.id.startswith("records:")
        home = derived.private_home(path) if captured else derived.home_of(path, anchor.id)
        lines[home] = lines.get(home, b"") + anchor.line()
    for home, data in lines.items():
        refuse_link(home, os.path.dirname(home))
        files.append_lines(home, data)


def readdress(path: str, old: str, new: str) -> None:
    """Let what is watched for one id be watched for another, which the same memory has now; no line names the old one
    any more. Raises StorageError.
    """
    known = [anchor for anchor in load(path, old)[0].get(old, {}).values() if anchor.blob]
    append(path, [anchor._replace(id=new) for anchor in known])
    if known:
        compact(path, drop=[old])


def compact(path: str, keep: Collection[str] | None = None, *, drop: Collection[str] = ()) -> None:
    """Rewrite the file with only the lines that count, of the ids in `keep` (None: all) and not in `drop`.

    What others append meanwhile stays. Damaged lines go to `anchors.jsonl.rejected`. Raises StorageError.
    """

    def change(data: bytes) -> tuple[bytes, bytes]:
        lines = log.split_lines(data)
        rejected = [line for line in lines if _parsed([line])[1]]
        kept = [
            anchor.line()
            for id, of_id in sorted(_parsed(lines)[0].items())
            if (keep is None or id in keep) and id not in drop
            for _, anchor in sorted(of_id.items())
            if anchor.blob
        ]
        return b"".join(kept), b"".join(line + b"\n" for line in rejected)

    for each in filter(os.path.lexists, (path, private_twin(path))):
        refuse_link(each, os.path.dirname(each))
        with suppress(NotFound):
            log.rewrite(each, change, lambda line: bool(line.strip()) and not _parsed([line])[1])


def size_of(path: str) -> tuple[int, ...] | None:
    """Inodes, sizes and times of change, to tell whether anything has changed; None when there is no anchor."""
    found: list[int] = []
    for each in (path, private_twin(path)):
        with suppress(OSError):
            info = os.stat(each)
            found += (info.st_ino, info.st_size, info.st_mtime_ns)
    return tuple(found) or None
