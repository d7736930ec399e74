"""The states that an index went through: each transaction that writes leaves a random number, the next in a row.

A file may go back in time: it is brought back from a backup, or a power cut takes what was written last. It then grows
anew, and gives out numbers of chunks and memories again that others had. Who has read something remembers the last step
of then: while the index still has it, all that was added since comes on top of what was read. Light: no NumPy.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any

from memlane.disk import locks
from memlane.index import seal

_KEPT, _AT_ONCE = 2_000, 500  # steps; who was away for longer reads everything anew
Step = tuple[int, int]  # which of them, and its random number


def take(db: sqlite3.Connection) -> None:
    """Note that something is written, in a transaction of the caller's."""
    number = int.from_bytes(os.urandom(7))
    n = db.execute("INSERT INTO steps (number) VALUES (?)", (number,)).lastrowid or 0
    if n % _AT_ONCE == 0:
        db.execute("DELETE FROM steps WHERE n <= ?", (n - _KEPT,))


def last(db: sqlite3.Connection) -> Step:
    """The step that the index is at."""
    n, number = db.execute("SELECT n, number FROM steps ORDER BY n DESC LIMIT 1").fetchone() or (0, 0)
    return n, number


def in_file(file: seal.IndexFile) -> Step:
    """The same, from nothing but the file. Raises sqlite3.Error."""
    with closing(seal.reading(file, timeout=locks.patience.get())) as db:
        return last(db)


def has(db: sqlite3.Connection, step: Any) -> bool:
    """Whether the index is at this step, or has come from it. Raises TypeError and ValueError for what is none."""
    n, number = step
    return db.execute("SELECT 1 FROM steps WHERE n = ? AND number = ?", (n, number)).fetchone() is not None
