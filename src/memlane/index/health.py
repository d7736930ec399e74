"""Whether an index file is sound and says what the memories say: for `memlane doctor`.

    with reading(path) as db:
        is_sound(db), known(db), contents(db, dim)

Changes no byte of the file and repairs nothing: an index can always be deleted and made again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from memlane.core.model import Memory
from memlane.core.values import replace
from memlane.index import database, seal
from memlane.index.columns import POSTING
from memlane.index.database import BLOCK, ROWS, get_meta
from memlane.index.rows import loaded
from memlane.index.seal import IndexFile
from memlane.index.store import Index


@contextmanager
def reading(file: IndexFile) -> Iterator[sqlite3.Connection]:
    """The file, opened so that SQLite neither changes it nor creates any file beside it.

    Raises sqlite3.Error, also for a value that should be text and is not; seal.Unfit for a file that is not ours.
    """
    with closing(seal.reading(file, timeout=5)) as db:
        try:
            yield db
        except (UnicodeDecodeError, ValueError) as error:
            raise sqlite3.DatabaseError("a row is not what was written") from error


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds no damage in the file's pages. Raises sqlite3.Error where it cannot read them."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


def encoder_of(db: sqlite3.Connection) -> str:
    """The fingerprint of the encoder that made the vectors; "" when there are none."""
    return str(get_meta(db, "encoder", ""))


def known(db: sqlite3.Connection) -> dict[str, bytes]:
    """The digest of each memory, by its id."""
    return dict(db.execute("SELECT id, digest FROM memories"))


def contents(db: sqlite3.Connection, dim: int) -> dict[str, bytes]:
    """A digest of everything that search can see of each memory, by id: equal for any two indexes of the same files.

    Row and chunk numbers do not count, since they depend on the order of indexing. `dim` is the encoder's.
    """
    used = db.execute("SELECT coalesce(max(n) + 1, 0) FROM chunks").fetchone()[0]
    words, vectors = _words(db, used), _vectors(db, dim)
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for id, n, *rest in db.execute(
        "SELECT m.id, c.n, c.length, c.passage, c.header, c.text FROM chunks c JOIN memories m ON m.n = c.memory "
        "ORDER BY c.n"
    ):
        parts[id].append(repr((*rest, words[n].item(), vectors.get(n))))
    for query in (
        "SELECT id, file, created, thread, lane, type, status, scope, project FROM memories",
        "SELECT m.id, t.tag FROM tags t JOIN memories m ON m.n = t.memory ORDER BY t.rowid",
        "SELECT m.id, l.target, l.edge_type, l.context FROM links l JOIN memories m ON m.n = l.memory ORDER BY l.rowid",
    ):
        for id, *rest in db.execute(query):
            parts[id].append(repr(rest))
    for id, data in db.execute("SELECT m.id, s.data FROM shapes s JOIN memories m ON m.n = s.n"):
        parts[id].append(repr(ageless(loaded(data))))
    return {id: hashlib.blake2b("\n".join(lines).encode(errors="replace")).digest() for id, lines in parts.items()}


def ageless(memory: Memory) -> Memory:
    """A memory without what changes from day to day while its file does not."""
    return replace(memory, fields={key: value for key, value in memory.fields.items() if key != "staleness"})


def _words(db: sqlite3.Connection, used: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """For each chunk a number that depends on its terms and their weights, but not on their order."""
    sums = np.zeros(used, np.uint64)
    for term, block, data in db.execute("SELECT term, block, data FROM postings"):
        name = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest())
        rows = np.frombuffer(data, POSTING)
        numbers = rows["at"].astype(np.int64) + block * BLOCK
        known = numbers < used  # the others belong to deleted chunks
        np.add.at(sums, numbers[known], np.uint64(name | 1) * (rows["weight"][known].astype(np.uint64) + np.uint64(1)))
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
    """A new index of the same files, to compare with. It is kept in memory and leaves nothing on disk."""

    @staticmethod
    def _open(_file: IndexFile) -> tuple[sqlite3.Connection, None]:
        return database.open_in_memory(), None

    def contents(self) -> dict[str, bytes]:
        return contents(self._db, self.encoder.dim)
