"""What the disk was like when a process last compared it with the index, for the next one.

That one looks whether every folder and file is still as it was, which takes a third of the time of reading all rows of
the index and listing all folders to compare the two. What has changed since is compared as in an open bank.

It lies in the user's state folder beside the token of the index, and says which index and which of its states it is
of. Deleting it loses nothing. Light: no NumPy.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import suppress

from memlane.core.errors import StorageError
from memlane.disk import state
from memlane.disk.walking import PACKED_SIZE, Stamps
from memlane.index import steps
from memlane.index.database import get_meta
from memlane.index.seal import LOOK, IndexFile, beside

FEW = 500  # files; fewer are compared as quickly
_FORM = 3
Look = tuple[tuple[str, ...], dict[str, tuple[int, int]], dict[str, Stamps]]  # roots; by folder: state, stamps of files


def load(file: IndexFile, db: sqlite3.Connection) -> Look | None:
    """What was kept for this index; None when there is nothing that can be used."""
    path = beside(file, LOOK)
    if path is None:
        return None
    try:
        data = state.mapped(path)
        end = data.find(b"\n")
        head = json.loads(data[:end])
        about, forgotten = _state(db)
        is_of_it = head["about"] == about and head["forgotten"] == forgotten  # or else files were taken out since
        if not is_of_it or not steps.has(db, head["step"]):
            return None
        body, files, at = memoryview(data[end + 1 :]), dict[str, Stamps](), 0
        for folder, joined in head["files"]:
            names = joined.split("/")
            until = at + len(names) * PACKED_SIZE
            files[folder], at = Stamps({}, names, body[at:until]), until
        if at != len(body):
            return None
        return tuple(head["roots"]), {folder: (number, at) for folder, (number, at) in head["folders"].items()}, files
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def keep(file: IndexFile, db: sqlite3.Connection, look: Look) -> None:
    """Keep what was seen, once the index has all of it. It only saves time: where that cannot be, nothing happens."""
    roots, folders, files = look
    path = beside(file, LOOK)
    if path is None or sum(map(len, files.values())) < FEW:
        return
    about, forgotten = _state(db)
    with suppress(OSError, StorageError, OverflowError):
        packed = {folder: stamps.packed() for folder, stamps in files.items() if len(stamps)}
        head = {
            "about": about,
            "forgotten": forgotten,
            "step": steps.last(db),
            "roots": roots,
            "folders": folders,
            "files": [(folder, "/".join(names)) for folder, (names, _) in packed.items()],
        }
        stamps = (stamps for _, stamps in packed.values())
        state.replace(path, b"".join((json.dumps(head).encode(), b"\n", *stamps)))


def _state(db: sqlite3.Connection) -> tuple[str, int]:
    """What tells an index from others, and how often files were taken out of it."""
    return f"{_FORM} {sys.byteorder} {get_meta(db, 'token')}", get_meta(db, "forgotten", 0)
