"""Files on their way into the index: read one after the other, prepared here or by other processes, and handed on.

A large build is shared: this process reads files and writes rows, and others prepare memories (words and vectors, half
of the work). They are plain programs at the end of two pipes, so it does not matter what this process is: one with
threads, a daemon, a server that speaks on its own pipes, or a script without a main guard. One that dies leaves its
work to this process.
"""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from memlane.core.progress import tell
from memlane.disk import children
from memlane.index import writing
from memlane.index.columns import Array
from memlane.index.database import get_meta, set_meta
from memlane.index.encoders import Encoder, StaticEncoder, open_encoder
from memlane.index.peek import Changed, look, mark_of, with_content
from memlane.index.preparing import AT_ONCE, Prepared, embedded, prepare
from memlane.index.rows import loaded
from memlane.index.writing import Entry, ReadFile, Unit

if TYPE_CHECKING:
    import subprocess

MANY = 4_000  # files; with fewer, another process costs more than it saves
EMBEDDED = 64  # passages between two words on how far it is: with a model, a second's work
MOST_HELPERS = 3  # with more, this process is what the others wait for


def units(changed: Changed, known: sqlite3.Connection | None, most: int) -> Iterator[Unit]:
    """The memories of files that are new or changed, so many at a time. `known` is an index that may know them.

    Of a file that has been appended to since it had its mark, only what has changed is read: that is a unit by itself.
    """
    entries: dict[str, Entry] = {}
    files: list[ReadFile] = []
    size = 0
    for lane, path, stamp in changed:
        before = writing.stamp_of(known, path) if known else None
        stamp = with_content(stamp, path)  # before it is read
        mark = mark_of(known, path) if known else ""
        read = lane.answers.read(path, mark)
        if read.gone is not None:
            if entries or files:
                yield Unit([*entries.values()], files)
                entries, files, size = {}, [], 0
            own = {memory.id: Entry.of(memory, stamp[1]) for memory in read.memories}
            file = ReadFile(path, lane.name, stamp, own.keys(), read.mark, before, read.gone, mark)
            yield Unit([*own.values()], [file])
            continue
        digests = writing.digests_of(known, path) if known else {}
        ids = set()
        for memory in read.memories:
            ids.add(memory.id)
            entry = Entry.of(memory, stamp[1])
            if digests.pop(memory.id, None) == entry.digest:
                continue  # most memories of a large file have not changed
            entries[memory.id] = entry  # of several with one id, the last counts
            size += len(entry.data)
            if len(entries) >= most or size >= AT_ONCE:
                yield Unit([*entries.values()], files)
                entries, files, size = {}, [], 0
        files.append(ReadFile(path, lane.name, stamp, ids, read.mark, before))
        if len(files) >= most:
            yield Unit([*entries.values()], files)
            entries, files, size = {}, [], 0
    if files:
        yield Unit([*entries.values()], files)


def looked_again(changed: Changed) -> Changed:
    """Files to be read once more, each with its stamp of now; the next look finds those that are gone."""
    again: Changed = []
    for lane, path, stamp in changed:
        with suppress(OSError):
            stamp = look(path)
        again.append((lane, path, stamp))
    return again


def prepared(read: Iterator[Unit], encoder: Encoder, helpers: int) -> Iterator[tuple[Unit, Prepared]]:
    """Each unit with what was prepared of it, by so many other processes if any."""
    if not helpers:
        for unit in read:
            yield unit, prepare([entry.memory for entry in unit.entries], encoder)
        return
    with ExitStack() as stack:
        free = deque(stack.enter_context(Helper(encoder)) for _ in range(helpers))
        busy: deque[tuple[Helper, Unit]] = deque()
        for unit in read:
            done = None
            if not free:
                helper, earlier = busy.popleft()
                done = earlier, helper.result()
                free.append(helper)
            busy.append((free[0], unit))
            free.popleft().begin(unit)
            if done:
                yield done  # and is written while the others go on
        for helper, unit in busy:
            yield unit, helper.result()


def helpers_for(changed: Changed, encoder: Encoder) -> int:
    """How many other processes to start for a build. A model uses all cores by itself."""
    if len(changed) < MANY or not isinstance(encoder, StaticEncoder) or not sys.executable:
        return 0
    return min(children.cores() - 1, MOST_HELPERS)


class Helper:
    """Another process that prepares memories, a unit at a time."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._unit: Unit | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._process = children.start(__name__, "help_out", self._encoder.name, stderr=children.NOWHERE)
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def begin(self, unit: Unit) -> None:
        self._unit = unit
        if self._process and self._process.stdin:
            try:
                pickle.dump([entry.data for entry in unit.entries], self._process.stdin, 5)
                self._process.stdin.flush()
            except OSError:
                self._end()

    def result(self) -> Prepared:
        """What was begun; made here where the other process cannot."""
        if self._unit is None:
            raise AssertionError("nothing was begun")
        if self._process and self._process.stdout:
            try:
                return cast(Prepared, pickle.load(self._process.stdout))  # noqa: S301 - our own program's word
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end()
        return prepare([entry.memory for entry in self._unit.entries], self._encoder)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process:
            children.end(process)


def help_out(encoder_name: str) -> None:
    """The other process: prepare what comes in, until nothing does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not come between
    encoder = open_encoder(encoder_name)
    with suppress(EOFError, BrokenPipeError):
        while True:
            memories = [loaded(data) for data in pickle.load(source)]  # noqa: S301 - from the process that started us
            pickle.dump(prepare(memories, encoder), target, 5)
            target.flush()


def embed_all(
    db: sqlite3.Connection, writing_to: Callable[[], AbstractContextManager[sqlite3.Connection]], encoder: Encoder
) -> None:
    """Embed every chunk again. The work is done before the transaction, so that nobody else has to wait for it."""
    vectors: Array = np.zeros((0, encoder.dim), np.int8)
    passages: dict[int, bytes] = {}
    made: Array = np.zeros(0, np.bool_)
    while True:
        packed, numbers = get_meta(db, "packed"), writing.chunk_numbers(db)
        room = int(numbers[-1]) + 1 - len(made) if len(numbers) else 0
        if room > 0:
            vectors, made = np.pad(vectors, ((0, room), (0, 0))), np.pad(made, (0, room))
        missing = numbers[~made[numbers]]
        for start in range(0, len(missing), EMBEDDED):
            tell("embedding passages", start, len(missing))
            chunks = writing.read_chunks(db, missing[start : start + EMBEDDED].tolist())
            vectors[[*chunks]], some = embedded(encoder, [*chunks.values()])
            passages.update(zip(chunks, some, strict=True))
            made[[*chunks]] = True
        if len(missing):
            tell("embedding passages", len(missing), len(missing))
        with writing_to():
            numbers = writing.chunk_numbers(db)
            if get_meta(db, "packed") != packed:
                made[:] = False  # the numbers mean other chunks now
            elif not len(numbers) or (numbers[-1] < len(made) and made[numbers].all()):
                db.execute("DELETE FROM vectors")
                writing.write_vectors(db, numbers, vectors[numbers])
                writing.write_passages(db, passages)
                set_meta(db, encoder=encoder.fingerprint)
                return
