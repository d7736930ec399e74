"""What the code was when a memory spoke of it: `anchors.jsonl` in the bank's folder, one line per memory and place.

    {"id": "notes:auth", "target": "src/auth.py", "symbol": "login", "blob": "…", "hash": "…", "at": "…"}

`blob` is git's name of the file's content, `hash` that of the symbol's own text where it was found; `path` is where the
code is now, when it moved since the memory named it. Without a blob, nothing is watched any more. Of the lines of one
place the newest counts, so that two branches' lines may be merged in any order. Lines are only appended, but for
`compact`. The file belongs into git: it is evidence, and nothing else can give it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import NotFound
from memlane.disk import files, log
from memlane.disk.names import is_stray, refuse_link

NAME = "anchors.jsonl"
Anchors = dict[str, dict[tuple[str, str], "Anchor"]]  # by id, then by target and symbol


class Anchor(NamedTuple):
    """One line. `hash` is "" where the file as a whole counts, `blob` is "" where nothing does."""

    id: str
    target: str
    symbol: str
    blob: str
    hash: str
    at: str
    path: str = ""

    @property
    def place(self) -> str:
        """The file, where it is now."""
        return self.path or self.target

    def line(self) -> bytes:
        facts = {"id": self.id, "target": self.target, "symbol": self.symbol, "path": self.path}
        facts |= {"blob": self.blob, "hash": self.hash, "at": self.at}
        kept = {name: value for name, value in facts.items() if value or name == "blob"}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def stamp(now: datetime, before: Anchor | None = None) -> str:
    """When an anchor is made: now, and in any case after the one that it replaces, whatever other clocks say."""
    last = moment(before.at) if before else None
    if last is not None and last >= now:
        now = last + timedelta(microseconds=last.replace(tzinfo=None) < datetime.max)
    return now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def load(path: str, id: str | None = None) -> tuple[Anchors, int]:
    """Every anchor that counts, and how many lines are damaged; with `id`, only its own. No file, no anchors.

    A link out of the bank is not followed, and counts as one damaged line. Raises OSError.
    """
    if is_stray(path, os.path.dirname(path)):
        return {}, 1
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}, 0
    data = log.read_old(path) + data
    if id is not None:
        quoted = json.dumps(id, ensure_ascii=False).encode(errors="replace")
        data = b"\n".join(line for line in data.split(b"\n") if quoted in line)
    return _parsed(data)


def _parsed(data: bytes) -> tuple[Anchors, int]:
    lines = [line for line in log.split_lines(data) if line.strip()]
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        if len(rows) != len(lines):
            raise ValueError
    except (ValueError, RecursionError):
        rows = [_row(line) for line in lines]
    found: Anchors = {}
    damaged = 0
    for row in rows:
        try:
            anchor = Anchor(
                row["id"],
                row["target"],
                row.get("symbol", ""),
                row["blob"],
                row.get("hash", ""),
                row["at"],
                row.get("path", ""),
            )
            "".join(anchor)  # raises for what is no text
            of_id = found.get(anchor.id)
            if of_id is None:
                of_id = found[anchor.id] = {}
            known = of_id.get((anchor.target, anchor.symbol))
            if known is None or anchor.at >= known.at:
                of_id[anchor.target, anchor.symbol] = anchor
        except (KeyError, TypeError, AttributeError):
            damaged += 1
    return found, damaged


def _row(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def append(path: str, anchors: Iterable[Anchor]) -> None:
    """Write anchors, on stable storage when it returns. A torn last line is closed off first. Raises StorageError."""
    data = b"".join(anchor.line() for anchor in anchors)
    if data:
        refuse_link(path, os.path.dirname(path))
        files.append_lines(path, data)


def compact(path: str, keep: Collection[str] | None = None, *, drop: Collection[str] = ()) -> None:
    """Keep only lines that count: of the ids in `keep` (None: of all), and none of those in `drop`.

    Raises StorageError. What others append meanwhile stays. Damaged lines are put into `anchors.jsonl.rejected`.
    """

    def change(data: bytes) -> tuple[bytes, bytes]:
        lines = log.split_lines(data)
        rejected = [line for line in lines if line.strip() and _parsed(line)[1]]
        found, _ = _parsed(data)
        kept = [
            anchor.line()
            for id, of_id in sorted(found.items())
            if (keep is None or id in keep) and id not in drop
            for _, anchor in sorted(of_id.items())
            if anchor.blob
        ]
        return b"".join(kept), b"".join(line + b"\n" for line in rejected)

    refuse_link(path, os.path.dirname(path))
    try:
        log.rewrite(path, change, lambda line: bool(line.strip()) and not _parsed(line)[1])
    except NotFound:
        return


def size_of(path: str) -> tuple[int, int, int] | None:
    """What tells whether the file is another one than before; None when there is none."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns
