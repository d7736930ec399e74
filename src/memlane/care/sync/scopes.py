"""Which of a remote's scopes a file of ours is in, and what must not be said of it in another.

What is said beside the lanes names memories in plain words: `anchors.jsonl`, `replaced.jsonl`. Those files go to one
scope. What they say of memories in another one stays here: whoever may not read a memory must not learn its name,
either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.care.sync import local, travel
from memlane.care.sync.state import Known
from memlane.care.sync.travel import Place
from memlane.core.errors import MemlaneError, StorageError
from memlane.disk import anchors, files, replaced
from memlane.exchange.remotes import Entry
from memlane.lanes import LANES, NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

FILES = (anchors.NAME, replaced.FILE)
_NAMING = ("id", "old", "new")  # what in their lines is the id of a memory
KnownFiles = Mapping[tuple[str, str], Known]  # what is known of the remote's files, by scope and path


def is_there(known: Known | None) -> bool:
    """Whether a remote has a file, and this bank has something in common with that."""
    return known is not None and known.seen != b"" and known.common


def of_ours(bank: Bank, scopes: Sequence[str], place: Place, data: bytes, known: Known | None) -> str:
    """The scope that a file of ours goes to: the one that its memory names, if we share it; else where it is."""
    usual = known.scope if known else scopes[0]
    if len(scopes) == 1 or not place.lane or place.shares_files:
        return usual
    named = travel.scope_in(data)
    return named if named in scopes else usual


def other(bank: Bank, scopes: Sequence[str], known: KnownFiles, place: Place, entry: Entry) -> str:
    """The scope that the name of an entry belongs to here, where it is another one."""
    if len(scopes) == 1 or is_there(known.get((entry.scope, entry.path))):
        return ""
    others = (scope for scope in scopes if scope != entry.scope)
    if taken := next((scope for scope in others if is_there(known.get((scope, entry.path)))), ""):
        return taken
    ours = local.read(bank, place) if place.lane else None
    scope = of_ours(bank, scopes, place, ours, None) if ours is not None else entry.scope
    return scope if scope != entry.scope else ""


def without_others(bank: Bank, scopes: Sequence[str], known: KnownFiles, place: Place, data: bytes) -> bytes | None:
    """A content of ours without the lines that name what is in another scope than the first one alone; None where
    nothing is left.
    """
    if place.path not in FILES or len(scopes) == 1:
        return data
    lines = local.lines_of(data)
    kept = [line for line in lines if not any(_is_elsewhere(scopes, known, *file) for file in _named(bank, line))]
    return data if len(kept) == len(lines) else b"".join(line + b"\n" for line in kept) or None


def _is_elsewhere(scopes: Sequence[str], known: KnownFiles, path: str, file: str) -> bool:
    """Whether a memory's own file is, or was, in another scope than the first one alone."""
    first, *others = scopes
    with suppress(StorageError, OSError):
        return travel.scope_in(files.read_bytes(file, files.MAX_BYTES)) in others
    return (first, path) not in known and any((scope, path) in known for scope in others)


def _named(bank: Bank, line: bytes) -> Iterator[tuple[str, str]]:
    """The name at remotes and the path here of each memory with a file of its own that a line names."""
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        said = json.loads(line)
        for id in [said[key] for key in _NAMING if key in said]:
            name, _, native = id.partition(":")
            if name in NAMES and not bank.lane(name).answers.shares_files and bank.lane(name).answers.is_folder:
                with suppress(MemlaneError):
                    file = bank.lane(name).answers.path_of(native)
                    below = file[len(str(bank.lane(name).root)) + 1 :]
                    yield f"{LANES[name].place}/{below}".strip("/"), file
