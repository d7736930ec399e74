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
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.progress import OnProgress, tell
from memlane.core.values import dataclass
from memlane.disk import locks, notices
from memlane.disk.notices import Notices
from memlane.index import building, database, kept_columns, kept_look, seal, steps, writing
from memlane.index.columns import Array, Columns, passing, read_postings, read_vectors
from memlane.index.database import get_meta, set_meta
from memlane.index.encoders import Encoder, StaticEncoder, open_encoder
from memlane.index.kept_rows import KeptRows
from memlane.index.peek import (
    Changed,
    Compared,
    News,
    Seen,
    Settled,
    by_folder,
    compared,
    compared_since,
    folders_of,
    kept_from,
    look,
)
from memlane.index.preparing import Prepared
from memlane.index.rows import SHAPES, loaded, marks
from memlane.index.seal import IndexFile
from memlane.index.writing import Chunk, Unit
from memlane.lanes import NAMES, Lane

BATCH, LARGE_BATCH = 500, 2_048  # memories per transaction: where somebody waits, and in a large build
LONG_LOOK = 0.02  # seconds of looking whether a file has changed; a look that takes longer is not made every time
SMALL = 2_000  # files: so few are looked at every time, however busy the machine was when that took long
QUIET = 5.0  # seconds without a look at all files while the kernel tells of changes: it does not tell of everything
_WRONG_ROWS = (ValueError, LookupError, TypeError, AttributeError)  # what damaged rows lead to
_LASTING = (
    "SELECT (SELECT max(n) FROM graves), (SELECT value FROM meta WHERE key = 'packed'), "
    "(SELECT value FROM meta WHERE key = 'encoder')"
)
_WITHOUT_FILE = "SELECT DISTINCT file FROM memories WHERE file NOT IN (SELECT path FROM files)"
T = TypeVar("T")


@dataclass(slots=True)
class _Read:
    """What was read of one state of the file; another `version` means that it has changed."""

    version: tuple[int, int]
    embedded: str = ""
    archived: bool = False  # whether there is a memory that is
    columns: Columns | None = None
    lasting: Any = None  # what stays as it is while memories are only added


def _version(db: sqlite3.Connection) -> tuple[int, int]:
    """What changes with anything that is written to the file, by us or by others."""
    return db.execute("PRAGMA data_version").fetchone()[0], db.total_changes


class Index:
    """The index of one bank. `lanes` gives the lanes that exist on disk; `refresh` brings the index up to date.

    `complete` is False after a refresh that ran out of time before everything was indexed. With `few`, nobody waits for
    what takes long: where more files have changed, or nobody can say which, they are left to a refresh without it.
    `rests` is for who has just refreshed it, and asks several things: nobody looks at the disk before each.
    """

    _open = staticmethod(database.open_file)

    def __init__(self, file: IndexFile, lanes: Callable[[], Iterable[Lane]], encoder: str = "static") -> None:
        self.file = file
        self._path, self._folder = os.fspath(file.path), os.fspath(file.path.parent)
        self._stands: tuple[int, ...] | None = None  # its place when it was last found to be ours
        self.complete = True
        self.few: int | None = None
        self.rests, self.missed = False, 0  # and the files that `note` could not index
        self._lanes = lanes
        self._encoder_name = encoder
        self._encoder: Encoder | None = None
        self._counted = 0  # chunks whose words it counts by
        self._columns: Columns | None = None
        self._layout = ""  # whose vectors the columns have, and how often the chunks were renumbered
        self._read = _Read((-1, -1))
        self._held = False  # whether a snapshot keeps the file as it is for us
        self._kept = KeptRows()
        self._seen: Seen | None = None  # the disk as the index has it; None: compare at the next chance
        self._settled: Settled = []  # stamps that can wait to be written
        self._forgotten = 0  # files that were taken out of the index so far, as far as we know
        self._looked = (0.0, 0.0)  # when that was last looked at, and the seconds it took
        self._is_kept = False  # whether it is what an earlier process saw, and nothing else has been found yet
        self._notices: Notices | None = None  # what the kernel tells of its folders; None before the second look
        self._lock = RLock()
        self._noted = 1  # writes since the last tuning and packing; not 0, for we do not know what came before us
        self._swept = False  # whether memories without a file were looked for
        self._db, self._identity = self._open(self.file)
        self._witness: sqlite3.Connection | None = None  # only reads: it refuses a journal that nobody writes any more
        self._mark, self._marked = seal.mark(self._db), (-1, -1)  # and the version that was last seen to have it
        self._step, self._written = steps.last(self._db), 0  # and when the file was last seen to be written

    def close(self) -> None:
        self._let_go()
        self._notices = None

    def _let_go(self) -> None:
        self._db.close()
        if self._witness is not None:
            self._witness.close()
            self._witness = None

    def _open_again(self) -> None:
        """Let go of a file that is damaged or was replaced. What is opened instead may be new and empty."""
        self._let_go()
        self._columns, self._seen, self._swept, self._noted, self.complete = None, None, False, 1, True
        self._read, self._kept = _Read((-1, -1)), KeptRows()
        self._settled, self._counted = [], -1
        self._db, self._identity = self._open(self.file)
        self._mark, self._marked = seal.mark(self._db), (-1, -1)
        self._step = steps.last(self._db)

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
            steps.take(self._db)
            yield self._db

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is from one moment, whatever others write meanwhile. One thread at a time."""
        with self._alone():
            self._db.execute("BEGIN")
            try:
                if self._encoder is None or self._embedded != self._encoder.fingerprint:
                    self._db.execute("ROLLBACK")
                    _ = self.encoder  # may have to write
                    self._db.execute("BEGIN")
                    self._now()
                self._held = True
                yield
            finally:
                self._held = False
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")  # nothing was written

    def ask(
        self,
        question: Callable[[], T],
        *,
        wait: float | None = None,
        force: bool = False,
        look: bool = True,
        in_passing: bool = False,
    ) -> T:
        """Bring the index up to date and ask it something. A file that turns out to be damaged is replaced, once.

        Without `look`, it is asked as it is: for one that was asked a moment ago. `in_passing` is for what takes long
        and asks for nothing but the columns, and for what belongs to their chunks: others may write meanwhile.
        Raises StorageError when the index cannot be used for another reason: a lock, a full disk.
        """
        for attempt in range(2):
            looked = look or attempt > 0
            try:
                try:
                    if looked:
                        self.refresh(wait=wait, force=force)
                except sqlite3.OperationalError as error:
                    if not database.is_busy(error):
                        raise
                    # what is there can be read, perhaps
                    self.complete, self._seen, looked = False, None, False
                return _asked_in_passing(self, question, looked) if in_passing else _asked(self, question)
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

    @property
    def is_told(self) -> bool:
        """Whether the kernel tells of every file that is written here."""
        return self._notices is not None and not self._notices.lost

    def refresh(
        self,
        *,
        force: bool = False,
        now: bool = False,
        wait: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Compare the disk with the index and apply the difference; with `wait`, stop after so many seconds.

        What is done is kept, and the next call goes on from there; `complete` tells whether anything is missing.

        Called before every search. Where every file and folder is as it was at the last look, there is nothing to
        compare; else only the folders with changes are. Even that look takes most of the time of a search: so where the
        kernel tells of changes, it is made every few seconds, and in between only at the files that were told of. In a
        bank of tens of thousands it is made more rarely, whatever was told, so that it never takes more than a
        twentieth of the time. Comparing everything takes three times as long as a look, and counts as one. `force` does
        it in any case, and `now` makes the look, due or not.
        """
        with self._alone():
            _follow_file(self)
            if self.rests and self._seen and not (now or force):
                return
            most = None if force else self.few
            if most is not None and not self.complete:
                return
            if most is None and self._settled:
                settled, self._settled = self._settled, []
                _renew_stamps(self, settled)
            known, news = self._seen, None if force else self._look(now)
            if news is None and known and most is not None:
                self.complete, self._seen = False, None
            elif news is None or news.folders or news.files:
                self._apply_difference(news, wait, on_progress or partial(tell, "indexing files"), most)

    def _look(self, every: bool) -> News | None:
        """What has changed since the last look; None where everything has to be compared."""
        now, (last, cost) = time.monotonic(), self._looked
        if not self._seen and not last:  # the first look of this process
            self._seen = kept_from(self.file, self._db, list(self._lanes()))
            self._is_kept, self._forgotten = self._seen is not None, get_meta(self._db, "forgotten", 0)
        elif self._seen:
            listening = self._notices is not None and self._seen.are_roots(self._lanes())
            told = self._notices.told() if self._notices and listening else None
            is_long = cost > LONG_LOOK and self._seen.size > SMALL
            often = max(20 * cost if is_long else 0.0, 0.0 if told is None else QUIET)
            if not every and now - last < often:
                return self._seen.news_of(told or ())
            # before the look, so that nothing is missed; a bank that is asked once does not listen
            self._notices = notices.anew(self._notices, {*self._seen.folders, os.path.dirname(self._folder)})
        if not self._seen:
            return None
        began = time.thread_time()  # on a busy machine the clock on the wall would call a small bank slow
        news = self._seen.news(self._lanes())
        self._looked = (now, time.thread_time() - began)
        return news

    def _compared(self, news: News | None) -> tuple[Seen, Compared]:
        """What the disk is like, and how the index differs from it."""
        lanes, seen, self._seen = list(self._lanes()), self._seen, None
        known, self._forgotten = self._forgotten, get_meta(self._db, "forgotten", 0)
        # else another process has taken out files, and they may be there again in a folder that has not changed
        if seen and news and known == self._forgotten and (since := compared_since(seen, news, self._db, lanes)):
            return seen, since
        self._notices = None  # of folders that may not be all of them any more
        now, began = time.monotonic(), time.thread_time()
        folders = folders_of(lanes)
        found = compared(self._db, lanes, NAMES)
        self._looked = (now, (time.thread_time() - began) / 3)
        return Seen(tuple(os.fspath(lane.root) for lane in lanes), folders, by_folder(found.stamps)), found

    def _apply_difference(self, news: News | None, wait: float | None, tell: OnProgress, most: int | None) -> None:
        began, known = time.monotonic(), self._seen
        seen, (changed, gone, settled, _) = self._compared(news)
        is_empty = not self._db.execute("SELECT 1 FROM files").fetchone()
        if most is not None and len(changed) > most and not is_empty:
            self.complete = False
            return
        if len(changed) >= BATCH and is_empty and not sys.stderr.isatty():
            print(f"memlane: indexing {len(changed):,} files", file=sys.stderr)
        if not self._swept:
            gone |= {path for (path,) in self._db.execute(_WITHOUT_FILE)}
            self._swept = True
        if gone:
            _take_out(self, gone)
        if settled and most is None:
            _renew_stamps(self, settled)
        else:
            self._settled += settled
        done, counted, tokens = 0, 0, None
        with closing(self._index_files(changed, None if wait is None else BATCH)) as indexing:
            while done < len(changed):
                tell(done, len(changed))
                if wait is not None and time.monotonic() - began > wait:
                    self.complete = False
                    return
                unit, prepared = next(indexing)
                done, counted = done + len(unit.files), counted + len(prepared.chunks)
                tokens = prepared.tokens if tokens is None else tokens + prepared.tokens
        self.complete = True
        self._seen = seen
        if seen is not known or self._is_kept:  # in an open bank, what little changes is not kept
            kept_look.keep(self.file, self._db, seen)
            self._is_kept = False
        if changed:
            tell(len(changed), len(changed))
        if changed or gone or self._noted:
            self._noted = 0
            _tune_encoder(self, counted, tokens)
            _pack(self)

    def note(self, lane: Lane, path: str) -> None:
        """Index one file that was just written or removed. Never fails: the next `refresh` mends what goes wrong."""
        with self._alone():
            try:
                self._note(lane, path)
            except (sqlite3.Error, OSError, MemlaneError, *_WRONG_ROWS):
                self._seen = None
                self.missed += 1

    def _note(self, lane: Lane, path: str) -> None:
        _follow_file(self)
        with database.waiting(self._db, 1.0):
            if os.path.exists(path):
                for _ in self._index_files([(lane, path, look(path))], BATCH):
                    pass
            else:
                _take_out(self, [path])
            self._noted += 1
            if self._noted % 100 == 0:
                _tune_encoder(self)
                _pack(self)

    def _index_files(self, changed: Changed, most: int | None) -> Generator[tuple[Unit, Prepared]]:
        """Index files, at most so many memories in a transaction, and yield each that is done.

        Without a limit, nobody waits for the first of them: then other processes may help.
        """
        encoder = self.encoder
        is_new = self._db.execute("SELECT 1 FROM memories").fetchone() is None
        read = building.units(changed, None if is_new else self._db, most or LARGE_BATCH)
        again: set[str] = set()
        for unit, prepared in building.prepared(read, encoder, 0 if most else building.helpers_for(changed, encoder)):
            while (outrun := _written(self, unit, prepared, encoder)) is None:
                _ = self.encoder  # another process has made other vectors meanwhile: ours are made anew
            again |= outrun
            yield Unit(unit.entries, [file for file in unit.files if file.path not in outrun]), prepared
        if again:
            late = building.looked_again([one for one in changed if one[1] in again])
            yield from self._index_files(late, most)

    # -- the encoder

    @property
    def encoder(self) -> Encoder:
        """The encoder of the vectors in the file. If the file has another one's, everything is embedded again first."""
        if self._encoder is None:
            self._encoder = open_encoder(self._encoder_name)
            self._counted = 0
            self._use_counts()
        if self._embedded != self._encoder.fingerprint:
            building.embed_all(self._db, self._writing, self._encoder)
        return self._encoder

    @property
    def _embedded(self) -> str:
        """The fingerprint of the encoder that made the vectors in the file."""
        return self._now().embedded

    def _use_counts(self) -> None:
        """Let the words of a query count by how common they are in this bank, by whomever they were counted last."""
        counted = get_meta(self._db, "counted", 0)
        if isinstance(self._encoder, StaticEncoder) and counted != self._counted:
            self._counted, counts = counted, get_meta(self._db, "counts")
            self._encoder.use_counts(None if counts is None else np.frombuffer(counts, "<i8"))

    # -- reading

    def columns(self) -> Columns:
        """The columns of all chunks, brought up to date with what any process has written since."""
        now = self._now()
        if self._columns is None or now.columns is not self._columns:
            layout = f"{now.embedded} {get_meta(self._db, 'packed', 0)}"
            known = self._columns if layout == self._layout else None
            if known is None:
                self._kept.forget_chunks()
            self._columns = kept_columns.current(self.file, self._db, self.encoder.dim, layout, known)
            self._layout, self._now().columns = layout, self._columns
        return self._columns

    def _now(self) -> _Read:
        """What was read of the file as it is now; in a snapshot, as it was at its beginning."""
        if self._held:
            return self._read
        version = _version(self._db)
        if version != self._read.version:
            archived = self._db.execute("SELECT 1 FROM memories WHERE status = 'archived' LIMIT 1").fetchone()
            self._read = _Read(version, str(get_meta(self._db, "encoder", "")), archived is not None)
            self._use_counts()
        return self._read

    def vectors(self) -> Array:
        """The vectors of all chunks as they are in the file: int8, as the encoder made them."""
        return read_vectors(self._db, self.encoder.dim, 0, self.columns().used)

    def postings(self, terms: Sequence[str]) -> dict[str, tuple[Array, Array]]:
        """(chunk numbers, weights) of each of these terms."""
        return read_postings(self._db, terms)

    def terms(self, first: str, shortest: int, longest: int) -> list[tuple[str, int]]:
        """The terms that begin with a letter and are so long, and about how often each occurs."""
        which = "term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"
        query = f"SELECT term, sum(length(data)) FROM postings WHERE {which} GROUP BY term"  # noqa: S608 - fixed
        return self._db.execute(query, (first, chr(ord(first) + 1), shortest, longest)).fetchall()

    def memories(self, numbers: Iterable[int]) -> dict[int, Memory]:
        """Memories by their number in the index."""
        return self._kept.memories(self._db, numbers)

    def numbers(self, ids: Iterable[str]) -> dict[str, int]:
        """The numbers of the memories that have these ids."""
        wanted = list(ids)
        rows = self._db.execute(f"SELECT id, n FROM memories WHERE id IN ({marks(wanted)})", wanted)  # noqa: S608 - marks
        return dict(rows.fetchall())

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Rows of the tables: see `database`."""
        return self._db.execute(query, values).fetchall()

    def every_memory(self) -> Iterator[tuple[int, Memory]]:
        """Every memory with its number in the index."""
        for n, data, digest in self._db.execute(f"{SHAPES} ORDER BY s.n"):
            yield n, loaded(data, digest)

    def chunks(self, numbers: Sequence[int]) -> list[Chunk]:
        """These chunks, each with the title of its memory."""
        return self._kept.chunks(self._db, numbers)

    def passages(self, numbers: Sequence[int]) -> list[bytes]:
        """These chunks in the form in which `closeness` looks at them."""
        return self._kept.passages(self._db, numbers)

    def passing(self, filters: Mapping[str, Any]) -> Array | None:
        """Whether the memory of each chunk passes these filters, those of `columns.passing`; None when all do."""
        return passing(self._db, self.columns(), self._now().archived, **filters)

    def ids(self) -> list[str]:
        """The ids of all memories."""
        return [id for (id,) in self._db.execute("SELECT id FROM memories")]


def _follow_file(index: Index) -> None:
    """Open the index again if the file at its place, or what is in it, is not what was opened."""
    if index._identity is None:
        return
    database.tell_busy(index._db)
    try:
        place = seal.place(index._folder, index._path)
        same = place is not None and place == index._stands
        if not same:
            same = seal.identity(index.file.path) == index._identity
            index._stands = place if same else None
        if same and os.path.lexists(f"{index._path}-journal"):  # of a writer, dead or alive, or put there
            _refuse_old_journal(index)
        written, version = os.stat(index._path).st_mtime_ns, _version(index._db)
        if same and version != index._marked:  # else nothing was written since its mark was seen
            step = steps.last(index._db)  # first, so that a file that goes back between the two is noticed
            same = seal.mark(index._db) == index._mark and steps.has(index._db, index._step)
            index._marked, index._step = version, step
        elif same and written != index._written:  # SQLite knows of no change: it goes by a number that counts them
            same = steps.in_file(index.file) == steps.last(index._db)
        index._written = written
    except OSError:
        same = False
    except sqlite3.Error as error:
        same = not database.is_damage(error)
    if not same:
        index._open_again()


def _refuse_old_journal(index: Index) -> None:
    """Raise sqlite3.Error for a journal that is not being written: it must not be played back."""
    if index._witness is None:
        index._witness = seal.reading(index.file, timeout=locks.patience.get())
    else:
        seal.mark(index._witness)


def _asked(index: Index, question: Callable[[], T]) -> T:
    with index.snapshot():
        return question()


def _asked_in_passing(index: Index, question: Callable[[], T], looked: bool) -> T:
    """The answer of one moment to a question about chunks, while others may write.

    A snapshot keeps a writer waiting, and a writer that waits keeps all others from reading, so that none should
    last as long as a search. Memories are never changed in place, and new ones have numbers beyond those of the
    columns. So an answer that is made of the columns of a moment is that moment's, unless something was deleted or
    renumbered before it was complete: then it is asked for again, in a snapshot. That moment is the one of a look
    just before, where nothing has been written since the last question.
    """
    with index._alone():
        now = index._read
        if not (looked and now.lasting and now.version == index._marked and now.columns is index._columns):
            with index.snapshot():
                index.columns()
                now = index._now()
                now.lasting = now.lasting or index._db.execute(_LASTING).fetchone()
        index._held = True
        try:
            answer = question()
            if _lasts(index, now):
                return answer
        except (sqlite3.Error, *_WRONG_ROWS):
            if _lasts(index, now):
                raise
        finally:
            index._held = False
        return _asked(index, question)


def _lasts(index: Index, read: _Read) -> bool:
    """Whether nothing that was read of the file has gone since."""
    return _version(index._db) == read.version or index._db.execute(_LASTING).fetchone() == read.lasting


def _take_out(index: Index, gone: Collection[str]) -> None:
    """Take files out of the index."""
    with index._writing() as db:
        for path in sorted(gone):
            writing.forget_file(db, path)
    index._forgotten += len(gone)


def _written(index: Index, unit: Unit, prepared: Prepared, encoder: Encoder) -> set[str] | None:
    """The files of the unit that have to be read again; None when all of it has to be prepared again."""
    with index._writing() as db:
        return writing.write(db, unit, prepared) if index._embedded == encoder.fingerprint else None


def _tune_encoder(index: Index, counted: int = 0, tokens: Array | None = None) -> None:
    """Count the bank's own words again when it has grown by half since; `tokens` are those of so many chunks."""
    total, _ = writing.chunk_counts(index._db)
    encoder = index.encoder
    if not isinstance(encoder, StaticEncoder) or total < 1.5 * (get_meta(index._db, "counted") or 16):
        return
    with index._writing() as db:
        if tokens is None or counted != total:
            tokens = writing.all_tokens(db, encoder)
        set_meta(db, counts=np.asarray(tokens, "<i8").tobytes(), counted=total)
    index._use_counts()


def _renew_stamps(index: Index, settled: Settled) -> None:
    """Write the stamps of files that are no longer young; unless another process writes, for it can wait."""
    try:
        with database.waiting(index._db, 0), index._writing() as db:
            writing.renew_stamps(db, settled)
    except sqlite3.OperationalError as error:
        if not database.is_busy(error):
            raise


def _pack(index: Index) -> None:
    """Renumber all chunks when most numbers belong to deleted ones, which every update leaves behind."""
    alive, used = writing.chunk_counts(index._db)
    if used < 3 * alive + 1000:
        return
    encoder = index.encoder
    with index._writing() as db:
        writing.renumber(db, encoder)
