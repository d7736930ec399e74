"""What an index file says, read without changing a byte of it: for `memlane doctor`.

    with reading(path) as db:
        is_sound(db), is_current(db), known(db), contents(db, dim)

Does not mend: the file can always be made anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memlane.core.model import Memory
from memlane.index import database
from memlane.index.columns import POSTING
from memlane.index.database import BLOCK, ROWS, SCHEMA, get_meta
from memlane.index.rows import loaded
from memlane.index.store import Index


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, opened so that SQLite makes and changes no file beside it either. Raises sqlite3.Error, also for what
    should be text there and is not.
    """
    written = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    with closing(_connected(path, "readonly_shm=1" if written else "immutable=1")) as db:
        try:
            yield db
        except UnicodeDecodeError as error:
            raise sqlite3.DatabaseError("what should be text is not") from error


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&{how}", uri=True, timeout=5, isolation_level=None)


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds no damage in its pages. Raises sqlite3.Error where it cannot even look."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


def is_current(db: sqlite3.Connection) -> bool:
    """Whether this version of memlane can use it."""
    return bool(db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA)


def encoder_of(db: sqlite3.Connection) -> str:
    """The fingerprint of the encoder that made the vectors; "" when there are none."""
    return str(get_meta(db, "encoder", ""))


def known(db: sqlite3.Connection) -> dict[str, bytes]:
    """The digest of each memory, by its id."""
    return dict(db.execute("SELECT id, digest FROM memories"))


def contents(db: sqlite3.Connection, dim: int) -> dict[str, bytes]:
    """A digest of all that a search can see of each memory, by its id: the same for any two indexes of the same files.

    Numbers that depend on the order in which files came in are left out. `dim` is that of the encoder.
    """
    used = db.execute("SELECT coalesce(max(n) + 1, 0) FROM chunks").fetchone()[0]
    words, vectors = _words(db, used), _vectors(db, dim)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for id, n, *rest in db.execute(
        "SELECT m.id, c.n, c.header, c.text, c.length FROM chunks c JOIN memories m ON m.n = c.memory ORDER BY c.n"
    ):
        found[id].append(repr((*rest, words[n].item(), vectors.get(n))))
    for query in (
        "SELECT id, file, created, thread, lane, type, status, scope, project FROM memories",
        "SELECT m.id, t.tag FROM tags t JOIN memories m ON m.n = t.memory ORDER BY t.rowid",
        "SELECT m.id, l.target, l.edge_type, l.context FROM links l JOIN memories m ON m.n = l.memory ORDER BY l.rowid",
    ):
        for id, *rest in db.execute(query):
            found[id].append(repr(rest))
    for id, data in db.execute("SELECT m.id, s.data FROM shapes s JOIN memories m ON m.n = s.n"):
        found[id].append(repr(ageless(loaded(data))))
    return {id: hashlib.blake2b("\n".join(parts).encode(errors="replace")).digest() for id, parts in found.items()}


def ageless(memory: Memory) -> Memory:
    """A memory without what changes from day to day while its file does not."""
    return replace(memory, fields={key: value for key, value in memory.fields.items() if key != "staleness"})


def _words(db: sqlite3.Connection, used: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """For each chunk a number that is the same for the same terms and weights, in whatever order they stand."""
    sums = np.zeros(used, np.uint64)
    for term, block, data in db.execute("SELECT term, block, data FROM postings"):
        name = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest())
        rows = np.frombuffer(data, POSTING)
        numbers = rows["at"].astype(np.int64) + block * BLOCK
        here = numbers < used  # others belong to chunks that are gone
        np.add.at(sums, numbers[here], np.uint64(name | 1) * (rows["weight"][here].astype(np.uint64) + np.uint64(1)))
    return sums


def _vectors(db: sqlite3.Connection, dim: int) -> dict[int, bytes]:
    """The vector of each chunk, by its number."""
    blocks = db.execute("SELECT block, data FROM vectors") if dim else ()
    return {
        block * ROWS + place: data[place * dim : (place + 1) * dim]
        for block, data in blocks
        for place in range(len(data) // dim)
    }


class Rebuilt(Index):
    """The index that the files would give if it were made anew. It is kept in memory and leaves nothing on disk."""

    def _open(self) -> sqlite3.Connection:
        return database.open_in_memory()

    def contents(self) -> dict[str, bytes]:
        return contents(self._db, self.encoder.dim)
