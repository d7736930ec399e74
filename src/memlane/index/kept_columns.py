"""The columns of an index as a process had them, for the next one: arrays that are mapped instead of read row by row.

They lie in the user's state folder beside the token of the index, and say which index and which of its states they are
of. What was added and deleted since is applied to them as to those of an open bank. Deleting them loses nothing.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from typing import Any

import numpy as np

from memlane.core.errors import StorageError
from memlane.disk import state
from memlane.index import steps
from memlane.index.columns import Array, Columns, extend_columns, read_columns
from memlane.index.database import get_meta
from memlane.index.seal import COLUMNS, IndexFile, beside

SMALL = 3_000  # chunks; the columns of a smaller index are read again after every change
LARGEST = 64 << 20  # bytes
MANY = 500  # changes; with more, columns are kept anew
_FORM = 2
_HEAD, _ALIGNED = 4096, 64  # bytes
_ARRAYS = ("memory", "length", "created", "alive", "before", "after", "mean", "rows", "signs")


def current(file: IndexFile, db: sqlite3.Connection, dim: int, layout: str, known: Columns | None) -> Columns:
    """The columns as they are now: those that are known, else those that were kept, with what has changed since; read
    anew where that is simpler."""
    known = known or load(file, db, layout)
    before = known.changes if known else 0
    # a small index is read whole: that is quick, and the mean of its vectors is then the current one
    if known is None or known.used < SMALL or not extend_columns(db, dim, known):
        known, before = read_columns(db, dim), 0
    if known.used >= SMALL and known.changes - before > MANY:
        keep(file, db, layout, known)
    return known


def load(file: IndexFile, db: sqlite3.Connection, layout: str) -> Columns | None:
    """The columns that were kept of this index in this layout; None when there are none that can be used."""
    path = beside(file, COLUMNS)
    if path is None:
        return None
    try:
        data = state.mapped(path)
        head = json.loads(data[:_HEAD])
        # else of another index, or of a state that the one that is being read did not come from
        if head["about"] != (_about(db, layout) or None) or not steps.has(db, head["step"]):
            return None
        arrays: dict[str, Any] = {name: _array(data, *where) for name, where in head["arrays"].items()}
        return Columns(used=head["used"], buried=head["buried"], **arrays)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def keep(file: IndexFile, db: sqlite3.Connection, layout: str, columns: Columns) -> None:
    """Keep the columns. It only saves time: where they cannot be kept, nothing happens."""
    path, about = beside(file, COLUMNS), _about(db, layout)
    arrays = {name: np.ascontiguousarray(getattr(columns, name)) for name in _ARRAYS}
    if path is None or not about or sum(array.nbytes for array in arrays.values()) > LARGEST:
        return
    at, places = 0, {}
    for name, array in arrays.items():
        places[name] = (array.dtype.str, array.shape, at)
        at += _rounded(array.nbytes)
    extent = {"used": columns.used, "buried": columns.buried}
    head = {"about": about, "step": steps.last(db), **extent, "arrays": places}
    pieces = [json.dumps(head).encode().ljust(_HEAD)]
    for array in arrays.values():
        pieces += (array.tobytes(), bytes(_rounded(array.nbytes) - array.nbytes))
    with suppress(OSError, StorageError):
        state.replace(path, b"".join(pieces))


def _array(data: Any, kind: str, shape: list[int], at: int) -> Array:
    count = int(np.prod(shape))
    return np.frombuffer(data, kind, count, _HEAD + at).reshape(shape) if count else np.zeros(shape, kind)


def _about(db: sqlite3.Connection, layout: str) -> str:
    """What tells an index and its layout from others; "" of one in memory."""
    token = get_meta(db, "token")
    return f"{_FORM} {token} {layout}" if token else ""


def _rounded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
