"""The index: one SQLite file under the bank's `indices/` that can always be deleted.

    files      what was indexed, to be compared with the disk: path, size, mtime
    memories   what filters and orders need of each memory, and a digest of it; shapes: the memory as JSON
    chunks     its pieces
    postings   for every term the chunks that have it, in blocks of chunk numbers
    vectors    one row of int8 per chunk, in blocks
    links      what each memory links to
    graves     chunks that are gone; their numbers are not used again

Any number of processes read and write it at once: WAL, short transactions, and every batch is checked against what
another process may have indexed meanwhile. Does not rank: that is `memlane.recall.search`.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from memlane.core.errors import MemlaneError, StorageError
from memlane.core.model import Memory
from memlane.index.columns import FEW, Array, Columns, empty_columns
from memlane.index.encoders import Encoder, StaticEncoder, open_encoder
from memlane.index.peek import Changed, difference
from memlane.index.rows import loaded, shape
from memlane.index.writing import BLOCK, ROWS, Prepared, Writer, embedded_text, forget, prepare, rows_of, write_vectors
from memlane.lanes import NAMES, Lane

SCHEMA = 2
BATCH = 500  # files per transaction
SMALL = 3_000  # chunks that are read anew after every change
MANY = 2_000  # changes that are worked into the columns one by one
_TABLES = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE files (path TEXT PRIMARY KEY, lane TEXT, size INT, mtime INT) WITHOUT ROWID;
    CREATE TABLE memories (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, file TEXT, digest BLOB,
                           created REAL, thread TEXT, position INT,
                           lane TEXT, type TEXT, status TEXT, scope TEXT, project TEXT);
    CREATE TABLE shapes (n INTEGER PRIMARY KEY, data TEXT);
    CREATE INDEX memories_by_file ON memories (file);
    CREATE INDEX memories_by_created ON memories (created);
    CREATE INDEX memories_by_status ON memories (status);
    CREATE INDEX memories_by_thread ON memories (thread);
    CREATE TABLE tags (memory INT, tag TEXT);
    CREATE INDEX tags_by_tag ON tags (tag);
    CREATE INDEX tags_by_memory ON tags (memory);
    CREATE TABLE chunks (n INTEGER PRIMARY KEY, memory INT, header TEXT, text TEXT, length REAL);
    CREATE INDEX chunks_by_memory ON chunks (memory);
    CREATE TABLE postings (term TEXT, block INT, data BLOB, PRIMARY KEY (term, block)) WITHOUT ROWID;
    CREATE TABLE vectors (block INTEGER PRIMARY KEY, data BLOB);
    CREATE TABLE links (memory INT, target TEXT, edge_type TEXT, context TEXT);
    CREATE INDEX links_by_target ON links (target);
    CREATE INDEX links_by_memory ON links (memory);
    CREATE TABLE graves (n INTEGER PRIMARY KEY AUTOINCREMENT, chunk INT);
"""
POSTING = np.dtype([("at", "<u2"), ("weight", "u1")])


T = TypeVar("T")
_OTHER_VERSION = "the index is of another version"
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")


def _name(error: BaseException) -> str:
    """SQLite's own name of an error, without what comes after the first two words."""
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


def _is_damage(error: BaseException) -> bool:
    """Whether the file's content is at fault, rather than the disk, a lock or a permission."""
    if not isinstance(error, sqlite3.Error):
        return True  # a row that does not decode or a block of the wrong size
    text = str(error)
    return _name(error) in ("SQLITE_CORRUPT", "SQLITE_NOTADB") or text == _OTHER_VERSION or "decode" in text


def _unusable(error: BaseException) -> StorageError:
    return StorageError(
        f"The index cannot be used: {error}.", hint="Try again; if that does not help, delete the folder `indices`."
    )


def progress_line(done: int, total: int) -> None:
    """A progress bar on a terminal, nothing elsewhere."""
    if sys.stderr.isatty() and total >= BATCH:
        end = "\n" if done >= total else ""
        print(f"\rindexing {done:,} of {total:,} files", end=end, file=sys.stderr, flush=True)


class Index:
    """The index of one bank. `lanes` gives those that have files; `refresh` brings the index up to date with them."""

    def __init__(self, folder: Path, lanes: Callable[[], Iterable[Lane]], encoder: str = "static") -> None:
        self.path = folder / "index.db"
        self._lanes = lanes
        self._encoder_name = encoder
        self._encoder: Encoder | None = None
        self._columns: Columns | None = None
        self._version = (-1, -1, "")
        self._checked = (float("-inf"), 0.0)
        self._lock = RLock()
        self._noted = 1  # writes since the numbers and counts were last looked at; at first, nobody knows
        self.complete = True
        self._db = self._open()

    def close(self) -> None:
        self._db.close()

    # -- the file

    def _open(self) -> sqlite3.Connection:
        """Open the file; one that is damaged or of another version is made anew.

        Where nothing may be written the index is made in memory, so that a bank that can only be read is searched, too.
        """
        try:
            os.makedirs(self.path.parent, exist_ok=True)
            ignore = self.path.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")  # derived files have no place in a history
            return self._connected(os.fspath(self.path))
        except (OSError, sqlite3.OperationalError) as error:
            if isinstance(error, sqlite3.OperationalError) and _name(error) not in _UNWRITABLE:
                raise _unusable(error) from error
            print("memlane: the index cannot be written here; it is made in memory", file=sys.stderr)
            return self._connected(":memory:")

    def _connected(self, path: str) -> sqlite3.Connection:
        for attempt in range(2):
            db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                self._prepare(db)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                db.close()
                if attempt or not _is_damage(error):
                    raise
                self._remove()
            else:
                return db
        raise AssertionError("unreachable")

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == SCHEMA:
            db.execute("SELECT value FROM meta").fetchall()
            return
        if version:
            raise sqlite3.DatabaseError(_OTHER_VERSION)
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")

    def _remove(self) -> None:
        print("memlane: the index is damaged or old and is made anew", file=sys.stderr)
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever others write meanwhile. One thread at a time."""
        with self._lock:
            _ = self.encoder  # may have to write
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")  # nothing was written

    def ask(self, question: Callable[[], T], *, wait: float | None = None) -> T:
        """Bring the index up to date and ask it something. A file that turns out damaged is made anew, once.

        Raises StorageError when the index cannot be used for another reason: locked, full disk.
        """
        for attempt in range(2):
            try:
                self.refresh(wait=wait)
                with self.snapshot():
                    return question()
            except MemlaneError:
                raise
            except (sqlite3.Error, ValueError, IndexError) as error:
                if attempt or not _is_damage(error):
                    raise _unusable(error) from error
                with self._lock:
                    self._db.close()
                    self._remove()
                    self._columns, self._checked = None, (float("-inf"), 0.0)
                    self._db = self._open()
        raise AssertionError("unreachable")

    def _meta(self, key: str, default: Any = None) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else default

    # -- keeping up with the disk

    def refresh(
        self,
        *,
        force: bool = False,
        wait: float | None = None,
        progress: Callable[[int, int], None] = progress_line,
    ) -> None:
        """Compare the disk with the index and apply the difference; with `wait`, stop after so many seconds.

        `complete` says whether the index holds everything. What is done is kept, and the next call goes on from there.

        Called before every search. In a large bank the comparison itself costs time, so that it is left out when the
        last one was just now: at most a twentieth of the time goes into looking.
        """
        last, cost = self._checked
        now = time.monotonic()
        if not force and cost > 0.005 and now - last < 20 * cost:
            return
        with self._lock:
            self._apply_difference(now, wait, progress)

    def _apply_difference(self, now: float, wait: float | None, progress: Callable[[int, int], None]) -> None:
        changed, gone = self._difference()
        self._checked = (now, time.monotonic() - now)
        if gone:
            with self._writing() as db:
                for path in sorted(gone):
                    self._forget_file(db, path)
        for at in range(0, len(changed), BATCH):
            progress(at, len(changed))
            if wait is not None and time.monotonic() - now > wait:
                self.complete, self._checked = False, (float("-inf"), 0.0)
                return
            self._index_files(changed[at : at + BATCH])
        self.complete = True
        if changed:
            progress(len(changed), len(changed))
        if changed or gone or self._noted:
            self._noted = 0
            self._tune_encoder()
            self._pack()

    def _pack(self) -> None:
        """Number everything anew when most numbers belong to chunks that are gone: updates leave them behind."""
        alive, used = self._db.execute("SELECT count(*), coalesce(max(n) + 1, 0) FROM chunks").fetchone()
        if used < 3 * alive + 1000:
            return
        encoder = self.encoder
        with self._writing() as db:
            rows = db.execute(
                "SELECT s.data, m.position FROM shapes s JOIN memories m ON m.n = s.n ORDER BY m.n"
            ).fetchall()
            for table in ("memories", "shapes", "chunks", "postings", "vectors", "links", "tags", "graves"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
            writer = Writer(db, encoder)
            for data, position in rows:
                memory = loaded(data)
                writer.add(prepare(memory, *shape(memory)), position)
            writer.flush()
            db.execute("INSERT OR REPLACE INTO meta VALUES ('packed', ?)", (self._meta("packed", 0) + 1,))

    def _difference(self) -> tuple[Changed, set[str]]:
        changed, gone = difference(self._db, self._lanes(), NAMES)
        if len(changed) >= BATCH and not sys.stderr.isatty() and not self._db.execute("SELECT 1 FROM files").fetchone():
            print(f"memlane: indexing {len(changed):,} files", file=sys.stderr)
        return changed, gone

    def note(self, lane: Lane, path: str) -> None:
        """Take in one file that was just written or removed.

        The write itself is done and acknowledged: what goes wrong here is found and mended by the next `refresh`.
        """
        with self._lock:
            try:
                self._take_in(lane, path)
            except (sqlite3.Error, OSError):
                self._checked = (float("-inf"), 0.0)  # look at the next occasion

    def _take_in(self, lane: Lane, path: str) -> None:
        self._db.execute("PRAGMA busy_timeout = 1000")
        try:
            info = os.stat(path) if os.path.exists(path) else None
            if info is None:
                with self._writing() as db:
                    self._forget_file(db, path)
            else:
                self._index_files([(lane, path, info)])
            self._noted += 1
            if self._noted % 100 == 0:
                self._tune_encoder()
                self._pack()
        finally:
            self._db.execute("PRAGMA busy_timeout = 60000")

    def _index_files(self, entries: Sequence[tuple[Lane, str, os.stat_result]]) -> None:
        read = []
        prepared: dict[str, Prepared] = {}
        for lane, path, info in entries:
            known = dict(self._db.execute("SELECT id, digest FROM memories WHERE file = ?", (path,)))
            memories = []
            for memory in lane.parse(path):
                if isinstance(memory, Memory):
                    data, digest = shape(memory)
                    memories.append((memory, digest))
                    if known.get(memory.id) != digest:  # most memories of a large file have not changed
                        prepared[memory.id] = prepare(memory, data, digest)
            read.append((lane, path, info, memories))
        while True:
            encoder = self.encoder
            for piece in prepared.values():  # before the transaction: a model may take its time
                piece.rows[encoder.fingerprint] = rows_of(encoder, piece.texts())
            with self._writing() as db:
                if self._embedded == encoder.fingerprint:  # nobody changed it meanwhile
                    self._write(Writer(db, encoder), db, read, prepared)
                    return

    def _write(
        self,
        writer: Writer,
        db: sqlite3.Connection,
        read: Sequence[tuple[Lane, str, os.stat_result, list[tuple[Memory, bytes]]]],
        prepared: Mapping[str, Prepared],
    ) -> None:
        for lane, path, info, memories in read:
            old = {
                id: (n, digest)
                for n, id, digest in db.execute("SELECT n, id, digest FROM memories WHERE file = ?", (path,))
            }
            for memory, wanted in memories:
                n, digest = old.pop(memory.id, (None, None))
                if digest == wanted:
                    continue
                piece = prepared.get(memory.id) or prepare(memory, *shape(memory))
                if n is None:
                    moved = db.execute("SELECT n FROM memories WHERE id = ?", (memory.id,)).fetchone()
                    n = moved[0] if moved else None
                if n is not None:
                    forget(db, n)
                writer.add(piece, info.st_mtime_ns)
            for n, _ in old.values():
                forget(db, n)
            row = (path, lane.name, info.st_size, info.st_mtime_ns)
            db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)
        writer.flush()

    def _forget_file(self, db: sqlite3.Connection, path: str) -> None:
        for (n,) in db.execute("SELECT n FROM memories WHERE file = ?", (path,)).fetchall():
            forget(db, n)
        db.execute("DELETE FROM files WHERE path = ?", (path,))

    # -- the encoder

    @property
    def encoder(self) -> Encoder:
        """The encoder of the vectors in the file; another one than before embeds everything anew."""
        if self._encoder is None:
            self._encoder = open_encoder(self._encoder_name)
            self._use_counts()
        if self._embedded != self._encoder.fingerprint:
            self._embed_all(self._encoder)
        return self._encoder

    def _use_counts(self) -> None:
        """Let a query's words weigh by how common they are in this bank."""
        counts = self._meta("counts")
        if isinstance(self._encoder, StaticEncoder) and counts is not None:
            self._encoder.use_counts(np.frombuffer(counts, "<i8"))

    def _tune_encoder(self) -> None:
        """Count the bank's own words anew when it has grown by half since."""
        total = self._db.execute("SELECT count(*) FROM chunks").fetchone()[0]
        encoder = self.encoder
        if not isinstance(encoder, StaticEncoder) or total < 1.5 * (self._meta("counted") or 16):
            return
        with self._writing() as db:
            counts = encoder.count_tokens([text for (text,) in db.execute("SELECT text FROM chunks")])
            values = [("counts", np.asarray(counts, "<i8").tobytes()), ("counted", total)]
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
        self._use_counts()

    def _embed_all(self, encoder: Encoder) -> None:
        """Embed every chunk anew. The work is done before the transaction, so that nobody else has to wait for it."""
        done: dict[int, Array] = {}
        while True:
            packed, rows = self._meta("packed"), self._chunk_texts()
            missing = [row for row in rows if row[0] not in done]
            done.update(zip((n for n, _ in missing), rows_of(encoder, [text for _, text in missing]), strict=True))
            with self._writing() as db:
                if self._meta("packed") != packed:
                    done.clear()  # the numbers mean other chunks now
                elif all(n in done for (n,) in db.execute("SELECT n FROM chunks")):
                    db.execute("DELETE FROM vectors")
                    write_vectors(db, encoder.dim, [(n, done[n]) for n, _ in rows if n in done])
                    db.execute("INSERT OR REPLACE INTO meta VALUES ('encoder', ?)", (encoder.fingerprint,))
                    return

    def _chunk_texts(self) -> list[tuple[int, str]]:
        """(number, what an encoder sees) of every chunk."""
        rows = self._db.execute(
            "SELECT c.n, s.data ->> 'title', c.header, c.text FROM chunks c JOIN shapes s ON s.n = c.memory "
            "ORDER BY c.n"
        )
        return [(n, embedded_text(title, header, text)) for n, title, header, text in rows]

    # -- reading

    @property
    def _embedded(self) -> str:
        """Which encoder the vectors in the file are of."""
        return str(self._meta("encoder", ""))

    def columns(self) -> Columns:
        """The columns over all chunks, brought up to date with what was written since, by whomever."""
        layout = f"{self._embedded} {self._meta('packed', 0)}"
        version = (self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes, layout)
        if self._columns is None or version != self._version:
            known = self._columns if layout == self._version[2] else None
            if known is not None and known.used < SMALL:
                known = None  # reading all is quick, and what the vectors have in common is then that of this moment
            self._columns = (known and self._extended(known)) or self._read_columns()
            self._version = version
        return self._columns

    def _read_columns(self) -> Columns:
        buried = self._db.execute("SELECT coalesce(max(n), 0) FROM graves").fetchone()[0]
        chunks = np.array(self._db.execute("SELECT n, memory, length FROM chunks ORDER BY n").fetchall(), np.float64)
        chunks = chunks.reshape(-1, 3)
        at = chunks[:, 0].astype(np.int64)
        used = int(at[-1]) + 1 if len(at) else 0
        alive = np.zeros(used, np.bool_)
        alive[at] = True
        columns = empty_columns(used, buried, self._mean(alive))
        columns.memory[at], columns.length[at], columns.alive[at] = chunks[:, 1], chunks[:, 2], True
        memories = np.array(self._db.execute("SELECT n, created FROM memories ORDER BY n").fetchall(), np.float64)
        memories = memories.reshape(-1, 2)  # a memory without a date has NaN
        created = memories[np.searchsorted(memories[:, 0], chunks[:, 1]), 1]
        columns.created[at] = np.where(np.isnan(created), -np.inf, created)
        together = at[:-1][chunks[:-1, 1] == chunks[1:, 1]]  # the chunks of a memory follow each other
        columns.after[together], columns.before[together + 1] = together + 1, together
        self._chain(columns, used)
        for start in range(0, used, BLOCK):  # block by block: all at once would need the memory twice
            columns.put_vectors(start, self._vectors(start, min(start + BLOCK, used)))
        return columns

    def _mean(self, alive: Array) -> Array:
        """What the vectors have in common. Over a handful that is chance: it counts in full where there are many."""
        total = np.zeros(self.encoder.dim, np.int64)
        for start in range(0, len(alive), BLOCK):
            end = min(start + BLOCK, len(alive))
            total += self._vectors(start, end)[alive[start:end]].sum(axis=0, dtype=np.int64)
        return (total / (int(alive.sum()) + FEW) / 127).astype(np.float32)

    def _extended(self, columns: Columns) -> Columns | None:
        """The same columns with what was added and buried since; None when reading all anew is simpler."""
        rows = self._db.execute(
            "SELECT c.n, c.memory, c.length, m.created, m.thread FROM chunks c JOIN memories m ON m.n = c.memory "
            "WHERE c.n >= ? ORDER BY c.n LIMIT ?",
            (columns.used, MANY + 1),
        ).fetchall()
        graves = self._db.execute(
            "SELECT n, chunk FROM graves WHERE n > ? ORDER BY n LIMIT ?", (columns.buried, MANY + 1)
        ).fetchall()
        used = max(columns.used, rows[-1][0] + 1 if rows else 0)
        if len(rows) > MANY or len(graves) > MANY or used > len(columns.memory):
            return None
        columns.put_vectors(columns.used, self._vectors(columns.used, used))
        previous = -1
        for n, memory, length, created, _ in rows:
            columns.memory[n], columns.length[n], columns.alive[n] = memory, length, True
            columns.created[n] = -np.inf if created is None else created
            if previous >= 0 and columns.memory[previous] == memory:
                columns.before[n], columns.after[previous] = previous, n
            previous = n
        for _, chunk in graves:
            columns.alive[chunk] = False
            before, after = int(columns.before[chunk]), int(columns.after[chunk])
            if before >= 0:
                columns.after[before] = after
            if after >= 0:
                columns.before[after] = before
            columns.before[chunk] = columns.after[chunk] = -1
        if threads := {row[4] for row in rows if row[4] is not None}:
            self._chain(columns, used, threads)
        columns.used = used
        columns.buried = graves[-1][0] if graves else columns.buried
        return columns

    def _chain(self, columns: Columns, used: int, threads: Collection[str] = ()) -> None:
        """Put the chunks of these threads (default: of all) one after the other, by the time of their memories."""
        which = f"IN ({', '.join('?' * len(threads))})" if threads else "IS NOT NULL"
        rows = self._db.execute(
            "SELECT c.n, m.thread FROM chunks c JOIN memories m ON m.n = c.memory "  # noqa: S608 - marks
            f"WHERE m.thread {which} AND c.n < ? ORDER BY m.thread, m.created, m.position, m.n, c.n",
            (*threads, used),
        ).fetchall()
        numbers = np.array([n for n, _ in rows], np.int64)
        together = np.array([one[1] == other[1] for one, other in pairwise(rows)], np.bool_)
        columns.before[numbers] = columns.after[numbers] = -1
        columns.before[numbers[1:][together]] = numbers[:-1][together]
        columns.after[numbers[:-1][together]] = numbers[1:][together]

    def vectors(self) -> Array:
        """The vectors of all chunks as they stand in the file: int8 of the encoder's own."""
        return self._vectors(0, self.columns().used)

    def _vectors(self, start: int, end: int) -> Array:
        dim = self.encoder.dim
        vectors = np.zeros((max(end - start, 0), dim), np.int8)
        if dim:
            wanted = (start // ROWS, end // ROWS)
            for block, data in self._db.execute("SELECT block, data FROM vectors WHERE block BETWEEN ? AND ?", wanted):
                part = np.frombuffer(data, np.int8).reshape(-1, dim)
                first, last = max(block * ROWS, start), min(block * ROWS + len(part), end)
                if first < last:
                    vectors[first - start : last - start] = part[first - block * ROWS : last - block * ROWS]
        return vectors

    def postings(self, term: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(chunk numbers, weights) of a term."""
        rows = self._db.execute("SELECT block, data FROM postings WHERE term = ? ORDER BY block", (term,)).fetchall()
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        parts = [(block, np.frombuffer(data, POSTING)) for block, data in rows]
        numbers = np.concatenate([part["at"].astype(np.int64) + block * BLOCK for block, part in parts])
        weights = np.concatenate([part["weight"] for _, part in parts]).astype(np.float32) / 4
        return numbers, weights

    def memories(self, numbers: Iterable[int]) -> dict[int, Memory]:
        """Memories by their number in the index."""
        wanted = list(numbers)
        marks = ", ".join("?" * len(wanted))
        rows = self._db.execute(f"SELECT n, data FROM shapes WHERE n IN ({marks})", wanted)  # noqa: S608 - marks
        return {n: loaded(data) for n, data in rows}

    def chunk(self, number: int) -> tuple[str, str]:
        """(header path, text) of a chunk."""
        row: tuple[str, str] = self._db.execute("SELECT header, text FROM chunks WHERE n = ?", (number,)).fetchone()
        return row

    def matching(
        self,
        tags: Sequence[str] = (),
        since: float | None = None,
        until: float | None = None,
        archived: bool = False,
        **same: str | None,
    ) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """The numbers of the memories that pass these filters; None when all do."""
        clauses: list[str] = []
        values: list[Any] = []
        for name, value in same.items():
            if value is not None:
                clauses.append(f"{name} = ?")
                values.append(value)
        if not archived and same.get("status") is None:
            same_status = self._db.execute("SELECT 1 FROM memories WHERE status = 'archived' LIMIT 1").fetchone()
            if same_status:
                clauses.append("status IS NOT 'archived'")
        for sign, moment_ in ((">=", since), ("<=", until)):
            if moment_ is not None:
                clauses.append(f"created {sign} ?")
                values.append(moment_)
        if tags:
            marks = ", ".join("?" * len(tags))
            clauses.append(f"n IN (SELECT memory FROM tags WHERE tag IN ({marks}))")  # noqa: S608 - marks
            values += tags
        if not clauses:
            return None
        where = " AND ".join(clauses)
        found = self._db.execute(f"SELECT n FROM memories WHERE {where}", values)  # noqa: S608 - names are FILTERS
        return np.array([n for (n,) in found], np.int64)

    def every_memory(self) -> Iterator[tuple[int, Memory]]:
        for n, data in self._db.execute("SELECT n, data FROM shapes ORDER BY n").fetchall():
            yield n, loaded(data)

    def links(self, target: str | None = None) -> list[tuple[int, str, str, str]]:
        """(memory, target, edge type, context), of all links or of those to one target."""
        query = "SELECT memory, target, edge_type, context FROM links"
        if target is None:
            return self._db.execute(f"{query} ORDER BY memory, rowid").fetchall()
        return self._db.execute(f"{query} WHERE target = ? ORDER BY memory, rowid", (target,)).fetchall()
