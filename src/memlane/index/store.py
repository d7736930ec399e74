"""The index of a bank: one SQLite file under `indices/` that can always be deleted and made again.

It follows the files of the lanes, embeds their text, and answers what ranking needs to know: columns, postings,
filters, memories. It does not rank: that is `memlane.recall.search`. The tables are in `database`.

Any number of processes read and write the file at once: short transactions, and every batch is checked against what
another process may have indexed in the meantime. A file that is deleted, damaged or replaced meanwhile is made anew.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from threading import RLock
from typing import TypeVar

import numpy as np

from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.progress import OnProgress, tell
from memlane.disk import locks
from memlane.index import database, fields, seal, writing
from memlane.index.columns import (
    POSTING,
    Array,
    Columns,
    extend_columns,
    labels,
    read_columns,
    read_vectors,
    tagged,
)
from memlane.index.database import BLOCK, get_meta, set_meta
from memlane.index.encoders import Encoder, StaticEncoder, open_encoder
from memlane.index.links import placeless
from memlane.index.peek import Changed, Seen, compared, folders_of
from memlane.index.rows import loaded, marks
from memlane.index.seal import IndexFile
from memlane.index.writing import Entry, ReadFile, Writer
from memlane.lanes import NAMES, Lane

BATCH = 500  # files per transaction
EMBEDDED = 64  # passages between two words on how far it is: with a model, a second's work
LONG_LOOK = 0.02  # seconds of looking whether a file has changed; a look that takes longer is not made every time
SMALL = 3_000  # chunks; the columns of a smaller index are read again after every change
_WRONG_ROWS = (ValueError, LookupError, TypeError, AttributeError)  # what damaged rows lead to
# a memory counts only together with the file that it was read from
_SHAPES = (
    "SELECT s.n, s.data, m.digest FROM shapes s JOIN memories m ON m.n = s.n "
    "JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
_OF_MEMORIES = (
    "memories", "shapes", "chunks", "postings", "vectors", "links", "tags", "fields", "expiring", "graves",
)  # fmt: skip
_LINKS = "SELECT memory, target, edge_type, context FROM links"
T = TypeVar("T")


def _posted(blocks: Sequence[tuple[int, bytes]]) -> tuple[Array, Array]:
    """(chunk numbers, weights) of a term, from its blocks."""
    if not blocks:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    posted = np.frombuffer(b"".join(data for _, data in blocks), POSTING)
    numbers = posted["at"].astype(np.int64)
    numbers += np.repeat([block * BLOCK for block, _ in blocks], [len(data) // POSTING.itemsize for _, data in blocks])
    return numbers, posted["weight"].astype(np.float32) / 4


class Index:
    """The index of one bank. `lanes` gives the lanes that exist on disk; `refresh` brings the index up to date.

    `complete` is False after a refresh that ran out of time before everything was indexed.
    """

    _open = staticmethod(database.open_file)

    def __init__(self, file: IndexFile, lanes: Callable[[], Iterable[Lane]], encoder: str = "static") -> None:
        self.file = file
        self.complete = True
        self._lanes = lanes
        self._encoder_name = encoder
        self._encoder: Encoder | None = None
        self._columns: Columns | None = None
        self._version = (-1, -1, "")
        self._seen: Seen | None = None  # the disk as the index has it; None: compare at the next chance
        self._looked = (0.0, 0.0)  # when that was last looked at, and the seconds it took
        self._lock = RLock()
        self._noted = 1  # writes since the last tuning and packing; not 0, for we do not know what came before us
        self._swept = False  # whether memories without a file were looked for
        self._db, self._identity = self._open(self.file)
        self._mark = seal.mark(self._db)

    def close(self) -> None:
        self._db.close()

    def _open_again(self) -> None:
        """Let go of a file that is damaged or was replaced. What is opened instead may be new and empty."""
        self._db.close()
        self._columns, self._seen, self._swept, self._noted = None, None, False, 1
        self._db, self._identity = self._open(self.file)
        self._mark = seal.mark(self._db)

    def _follow_file(self) -> None:
        """Open the index again if the file at its place, or what is in it, is not what was opened."""
        if self._identity is None:
            return
        database.tell_busy(self._db)
        try:
            same = seal.identity(self.file.path) == self._identity
            if same and os.path.lexists(f"{self.file.path}-journal"):  # of a writer, dead or alive, or put there
                seal.reading(self.file, timeout=locks.patience.get()).close()
            same = same and seal.mark(self._db) == self._mark
        except OSError:
            same = False
        except sqlite3.Error as error:
            same = not database.is_damage(error)
        if not same:
            self._open_again()

    # -- transactions

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time."""
        if not self._lock.acquire(blocking=False):
            locks.tell_waiting()  # whoever has it may be waiting for another process
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._alone(), database.transaction(self._db):
            yield self._db

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is from one moment, whatever others write meanwhile. One thread at a time."""
        with self._alone():
            _ = self.encoder  # may have to write
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")  # nothing was written

    def ask(self, question: Callable[[], T], *, wait: float | None = None, force: bool = False, look: bool = True) -> T:
        """Bring the index up to date and ask it something. A file that turns out to be damaged is replaced, once.

        Without `look`, it is asked as it is: for one that was asked a moment ago.
        Raises StorageError when the index cannot be used for another reason: a lock, a full disk.
        """
        for attempt in range(2):
            try:
                try:
                    if look or attempt:
                        self.refresh(wait=wait, force=force)
                except sqlite3.OperationalError as error:
                    if not database.is_busy(error):
                        raise
                    self.complete, self._seen = False, None  # what is there can be read, perhaps
                with self.snapshot():
                    return question()
            except MemlaneError:
                raise
            except (sqlite3.Error, *_WRONG_ROWS) as error:
                if attempt or not database.is_damage(error):
                    raise database.unusable(error) from error
                with self._alone():
                    database.give_up(self.file, self._identity)
                    self._open_again()
        raise AssertionError("unreachable")

    # -- keeping up with the disk

    def refresh(self, *, force: bool = False, wait: float | None = None, on_progress: OnProgress | None = None) -> None:
        """Compare the disk with the index and apply the difference; with `wait`, stop after so many seconds.

        What is done is kept, and the next call goes on from there; `complete` tells whether anything is missing.

        Called before every search. Where every file and folder is as it was at the last look, there is nothing to
        compare. In a bank of tens of thousands even that look takes long: then it is skipped when the last one was a
        moment ago, so that it never takes more than a twentieth of the time. `force` compares in any case.
        """
        with self._alone():
            self._follow_file()
            now, (last, cost) = time.monotonic(), self._looked
            if not force and self._seen and cost > LONG_LOOK and now - last < 20 * cost:
                return
            began = time.thread_time()  # on a busy machine the clock on the wall would call a small bank slow
            same = not force and self._seen is not None and self._seen.still(self._lanes())
            self._looked = (now, time.thread_time() - began)
            if not same:
                self._apply_difference(now, wait, on_progress or partial(tell, "indexing files"))

    def _apply_difference(self, now: float, wait: float | None, on_progress: OnProgress) -> None:
        lanes = list(self._lanes())
        folders = folders_of(lanes)
        changed, gone, stamps = compared(self._db, lanes, NAMES)
        self._seen = None
        if len(changed) >= BATCH and not sys.stderr.isatty() and not self._db.execute("SELECT 1 FROM files").fetchone():
            print(f"memlane: indexing {len(changed):,} files", file=sys.stderr)
        if not self._swept:
            gone |= {path for (path,) in self._db.execute("SELECT file FROM memories EXCEPT SELECT path FROM files")}
            self._swept = True
        if gone:
            with self._writing() as db:
                for path in sorted(gone):
                    writing.forget_file(db, path)
        for start in range(0, len(changed), BATCH):
            on_progress(start, len(changed))
            if wait is not None and time.monotonic() - now > wait:
                self.complete, self._seen = False, None
                return
            self._index_files(changed[start : start + BATCH])
        self.complete = True
        self._seen = Seen(tuple(os.fspath(lane.root) for lane in lanes), folders, stamps)
        if changed:
            on_progress(len(changed), len(changed))
        if changed or gone or self._noted:
            self._noted = 0
            self._tune_encoder()
            self._pack()

    def note(self, lane: Lane, path: str) -> None:
        """Index one file that was just written or removed. Never fails: the next `refresh` mends what goes wrong."""
        with self._alone():
            try:
                self._note(lane, path)
            except (sqlite3.Error, OSError, MemlaneError, *_WRONG_ROWS):
                self._seen = None

    def _note(self, lane: Lane, path: str) -> None:
        self._follow_file()
        with database.waiting(self._db, 1.0):
            if os.path.exists(path):
                self._index_files([(lane, path, os.stat(path))])
            else:
                with self._writing() as db:
                    writing.forget_file(db, path)
            self._noted += 1
            if self._noted % 100 == 0:
                self._tune_encoder()
                self._pack()

    def _index_files(self, changed: Changed) -> None:
        files: list[ReadFile] = []
        new: list[Entry] = []
        for lane, path, info in changed:
            known = dict(self._db.execute("SELECT id, digest FROM memories WHERE file = ?", (path,)))
            entries = [Entry.of(memory) for memory in lane.parse(path) if isinstance(memory, Memory)]
            files.append(ReadFile(lane, path, info, entries))
            # most memories of a large file have not changed
            new += (entry for entry in entries if known.get(entry.memory.id) != entry.digest)
        while True:
            encoder = self.encoder
            for entry in new:
                entry.embed(encoder)  # before the transaction: a model may take its time
            with self._writing() as db:
                if self._embedded == encoder.fingerprint:  # else another process changed it meanwhile
                    writer = Writer(db, encoder)
                    for file in files:
                        writer.replace_file(file)
                    writer.flush()
                    return

    def _pack(self) -> None:
        """Renumber all chunks when most numbers belong to deleted ones, which every update leaves behind."""
        alive, used = self._db.execute("SELECT count(*), coalesce(max(n) + 1, 0) FROM chunks").fetchone()
        if used < 3 * alive + 1000:
            return
        encoder = self.encoder
        with self._writing() as db:
            rows = db.execute(
                "SELECT s.data, m.position FROM shapes s JOIN memories m ON m.n = s.n ORDER BY m.n"
            ).fetchall()
            for table in _OF_MEMORIES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
            writer = Writer(db, encoder)
            for data, position in rows:
                writer.add(Entry.of(loaded(data)), position)
            writer.flush()
            set_meta(db, packed=get_meta(db, "packed", 0) + 1)

    # -- the encoder

    @property
    def encoder(self) -> Encoder:
        """The encoder of the vectors in the file. If the file has another one's, everything is embedded again first."""
        if self._encoder is None:
            self._encoder = open_encoder(self._encoder_name)
            self._use_counts()
        if self._embedded != self._encoder.fingerprint:
            self._embed_all(self._encoder)
        return self._encoder

    @property
    def _embedded(self) -> str:
        """The fingerprint of the encoder that made the vectors in the file."""
        return str(get_meta(self._db, "encoder", ""))

    def _use_counts(self) -> None:
        """Let the words of a query count by how common they are in this bank."""
        counts = get_meta(self._db, "counts")
        if isinstance(self._encoder, StaticEncoder) and counts is not None:
            self._encoder.use_counts(np.frombuffer(counts, "<i8"))

    def _tune_encoder(self) -> None:
        """Count the bank's own words again when it has grown by half since the last time."""
        total = self._db.execute("SELECT count(*) FROM chunks").fetchone()[0]
        encoder = self.encoder
        if not isinstance(encoder, StaticEncoder) or total < 1.5 * (get_meta(self._db, "counted") or 16):
            return
        with self._writing() as db:
            counts = encoder.count_tokens([text for (text,) in db.execute("SELECT text FROM chunks")])
            set_meta(db, counts=np.asarray(counts, "<i8").tobytes(), counted=total)
        self._use_counts()

    def _embed_all(self, encoder: Encoder) -> None:
        """Embed every chunk again. The work is done before the transaction, so that nobody else has to wait for it."""
        vectors: dict[int, Array] = {}
        while True:
            packed, texts = get_meta(self._db, "packed"), self._chunk_texts()
            missing = [n for n in texts if n not in vectors]
            for start in range(0, len(missing), EMBEDDED):
                tell("embedding passages", start, len(missing))
                batch = missing[start : start + EMBEDDED]
                vectors.update(zip(batch, writing.stored_vectors(encoder, [texts[n] for n in batch]), strict=True))
            if missing:
                tell("embedding passages", len(missing), len(missing))
            with self._writing() as db:
                if get_meta(db, "packed") != packed:
                    vectors.clear()  # the numbers mean other chunks now
                elif all(n in vectors for (n,) in db.execute("SELECT n FROM chunks")):
                    db.execute("DELETE FROM vectors")
                    writing.write_vectors(db, encoder.dim, [(n, vectors[n]) for n in texts])
                    set_meta(db, encoder=encoder.fingerprint)
                    return

    def _chunk_texts(self, which: str = "", numbers: Sequence[int] = ()) -> dict[int, str]:
        """What an encoder sees of every chunk, or of some, by its number."""
        rows = self._db.execute(
            "SELECT c.n, s.data ->> 'title', c.header, c.text FROM chunks c JOIN shapes s ON s.n = c.memory "  # noqa: S608
            f"{which} ORDER BY c.n",
            numbers,
        )
        return {n: writing.embedded_text(title, header, text) for n, title, header, text in rows}

    # -- reading

    def columns(self) -> Columns:
        """The columns of all chunks, brought up to date with what any process has written since."""
        layout = f"{self._embedded} {get_meta(self._db, 'packed', 0)}"
        version = (self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes, layout)
        if self._columns is None or version != self._version:
            known = self._columns if layout == self._version[2] else None
            # a small index is read whole: that is quick, and the mean of its vectors is then the current one
            if known is None or known.used < SMALL or not extend_columns(self._db, self.encoder.dim, known):
                known = read_columns(self._db, self.encoder.dim)
            self._columns, self._version = known, version
        return self._columns

    def vectors(self) -> Array:
        """The vectors of all chunks as they are in the file: int8, as the encoder made them."""
        return read_vectors(self._db, self.encoder.dim, 0, self.columns().used)

    def postings(self, terms: Sequence[str]) -> dict[str, tuple[Array, Array]]:
        """(chunk numbers, weights) of each of these terms."""
        blocks: dict[str, list[tuple[int, bytes]]] = {term: [] for term in terms}
        query = f"SELECT term, block, data FROM postings WHERE term IN ({marks(terms)}) ORDER BY term, block"  # noqa: S608
        for term, block, data in self._db.execute(query, tuple(terms)):
            blocks[term].append((block, data))
        return {term: _posted(found) for term, found in blocks.items()}

    def terms(self, first: str, shortest: int, longest: int) -> list[tuple[str, int]]:
        """The terms that begin with a letter and are so long, and about how often each occurs."""
        which = "term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"
        query = f"SELECT term, sum(length(data)) FROM postings WHERE {which} GROUP BY term"  # noqa: S608 - fixed
        return self._db.execute(query, (first, chr(ord(first) + 1), shortest, longest)).fetchall()

    def memories(self, numbers: Iterable[int]) -> dict[int, Memory]:
        """Memories by their number in the index."""
        wanted = list(numbers)
        query = f"{_SHAPES} WHERE s.n IN ({marks(wanted)})"
        return {n: loaded(data, digest) for n, data, digest in self._db.execute(query, wanted)}

    def numbers(self, ids: Iterable[str]) -> dict[str, int]:
        """The numbers of the memories that have these ids."""
        wanted = list(ids)
        rows = self._db.execute(f"SELECT id, n FROM memories WHERE id IN ({marks(wanted)})", wanted)  # noqa: S608 - marks
        return dict(rows.fetchall())

    def every_memory(self) -> Iterator[tuple[int, Memory]]:
        """Every memory with its number in the index."""
        for n, data, digest in self._db.execute(f"{_SHAPES} ORDER BY s.n").fetchall():
            yield n, loaded(data, digest)

    def embedded_texts(self, numbers: Sequence[int]) -> list[str]:
        """What an encoder sees of these chunks."""
        texts = self._chunk_texts(f"WHERE c.n IN ({marks(numbers)})", numbers)
        return [texts[number] for number in numbers]

    def chunk(self, number: int) -> tuple[str, str]:
        """(header path, text) of a chunk."""
        row: tuple[str, str] = self._db.execute("SELECT header, text FROM chunks WHERE n = ?", (number,)).fetchone()
        return row

    def passing(
        self,
        tags: Sequence[str] = (),
        since: float | None = None,
        until: float | None = None,
        archived: bool = False,
        visible: tuple[Sequence[str], Sequence[str]] | None = None,
        **equal: str | None,
    ) -> Array | None:
        """Whether the memory of each chunk passes these filters; None when all do.

        `equal` are columns of the table `memories` and the value each must have; None is no filter. `visible` are
        scopes and lanes: a memory with a scope must have one of these scopes or be of one of these lanes.
        """
        columns = self.columns()
        passed = [self._among(name, (value,)) for name, value in equal.items() if value is not None]
        if since is not None:
            passed.append(columns.created >= since)
        if until is not None:
            passed.append((columns.created <= until) & (columns.created > -np.inf))
        skip_archived = not archived and equal.get("status") is None
        if skip_archived and self._db.execute("SELECT 1 FROM memories WHERE status = 'archived' LIMIT 1").fetchone():
            passed.append(~self._among("status", ("archived",)))
        if tags:
            passed.append(np.logical_or.reduce([tagged(self._db, columns, tag) for tag in tags]))
        if visible:
            scopes, lanes = visible
            passed.append(self._among("scope", (None, *scopes)) | self._among("lane", lanes))
        return np.logical_and.reduce(passed)[: columns.used] if passed else None

    def _among(self, name: str, values: Sequence[str | None]) -> Array:
        return labels(self._db, self.columns(), name).among(values)

    def having(self, asked: fields.Asked, now: datetime) -> tuple[list[int] | None, list[int]]:
        """The numbers of the memories that have what is asked of them (None: all), and of those that have expired."""
        return fields.numbers(self._db, asked), [] if asked.expired else fields.over(self._db, now)

    def ids(self) -> list[str]:
        """The ids of all memories."""
        return [id for (id,) in self._db.execute("SELECT id FROM memories")]

    def link_targets(self) -> list[str]:
        """Every target that a memory links to, once."""
        return [target for (target,) in self._db.execute("SELECT DISTINCT target FROM links ORDER BY target")]

    def links(self) -> list[tuple[int, str, str, str]]:
        """(memory number, target, edge type, context) of all links."""
        return self._db.execute(f"{_LINKS} ORDER BY memory, rowid").fetchall()

    def links_to(self, target: str) -> list[tuple[int, str, str, str]]:
        """The links to one target, or to a place in it: `ghost:src/a.py`, `ghost:src/a.py#heading`."""
        query = f"{_LINKS} WHERE target >= ? AND target < ? ORDER BY memory, rowid"
        rows = self._db.execute(query, (target, f"{target};")).fetchall()  # ";" follows all that a place begins with
        return [row for row in rows if row[1] == target or placeless(row[1]) == target]
