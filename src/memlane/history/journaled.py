"""Reading what the journal keeps: which memories a file held when it had a certain content.

A content is put into a scratch folder, at the place that its file has in its lane, and the lane reads it there. So each
lane answers for its own format, in the past as today.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from memlane.config import user_state
from memlane.core.model import Memory
from memlane.core.values import replace
from memlane.disk import files, scratch
from memlane.disk.journal import APPEND, CUT, IN, Entry, Journal, hashed
from memlane.disk.trash import TRASH
from memlane.lanes import LANES, NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank

_ELSEWHERE = ("memory_configuration.external_path", "directory_structure.memory_path")


class Reader:
    """A scratch folder with the lanes of a bank, one file at a time. It is made when it is first needed."""

    def __init__(self, bank: Bank) -> None:
        self._original = bank
        self._home = files.real(os.fspath(bank.root))
        self._beside = bank.journal.beside if bank.journal else ""
        self._roots = {name: os.path.realpath(bank.config.lane_root(name)) for name in NAMES}

    @cached_property
    def _place(self) -> scratch.Scratch:
        return scratch.Scratch(user_state(), "journal")

    @cached_property
    def bank(self) -> Bank:
        """The bank of the scratch folder."""
        original = self._original
        here = {f"lanes.{name}": "" for name in NAMES} | dict.fromkeys(_ELSEWHERE, "")
        settings = replace(original.config, values={**original.config.values, **here}, folder=self._place.path)
        made = type(original)(settings)
        made.tombstones.private = original.tombstones.private
        return made

    def close(self) -> None:
        if "_place" in self.__dict__:
            self._place.remove()

    def lane_of(self, name: str) -> tuple[Lane, str] | None:
        """The lane that a file of the journal belongs to, in the scratch folder, and its name there."""
        home = self._beside if self._beside and name.startswith(f"{LANES['records'].place}/") else self._home
        path = os.path.normpath(os.path.join(home, name))
        around = [lane for lane, root in self._roots.items() if path == root or path.startswith(root + os.sep)]
        if not around:
            return None
        lane = max(around, key=lambda each: len(self._roots[each]))
        below = path[len(self._roots[lane]) + 1 :]
        place = os.fspath(self.bank.config.lane_root(lane))
        return self.bank.lane(lane), os.path.join(place, below) if below else place

    @contextmanager
    def holding(self, name: str, data: bytes) -> Iterator[tuple[Lane, str] | None]:
        """The lane with this content in the place of the file, and its path; None for a file that is no lane's."""
        found = self.lane_of(name)
        if found is None:
            yield None
            return
        lane, path = found
        top = os.fspath(self.bank.root)
        scratch.write(self.bank.root, [(os.path.relpath(path, top), data)])
        try:
            yield lane, path
        finally:
            scratch.empty(self.bank.root)

    def memories(self, name: str, data: bytes | None) -> dict[str, Memory]:
        """The memories in a file of this content, by id."""
        if data is None:
            return {}
        with self.holding(name, data) as found:
            if found is None:
                return {}
            lane, path = found
            listed = {path} if path == os.fspath(lane.root) else set(lane.files())
            items = lane.parse(path) if path in listed else ()
            return {item.id: item for item in items if isinstance(item, Memory)}


@contextmanager
def reading(bank: Bank) -> Iterator[Reader]:
    """Read contents of the journal as the lanes of a bank would."""
    reader = Reader(bank)
    try:
        yield reader
    finally:
        reader.close()


def own_name(bank: Bank, path: str) -> str:
    """What the journal calls a file: one that lies in the main worktree's bank is called as it is there."""
    folder, name = os.path.split(os.path.abspath(path))
    full, home = os.path.join(files.real(folder), name), files.real(os.fspath(bank.root))
    beside = bank.journal.beside if bank.journal else ""
    return os.path.relpath(full, beside if beside and full.startswith(beside + os.sep) else home)


def earlier(bank: Bank, path: str, data: bytes | None) -> Iterator[bytes]:
    """The contents that a file had before it became this one, the latest first, as far as the journal tells without a
    gap: where one is, as after a folder was brought back from a copy, nothing says what was made of what.
    """
    kept = bank.journal
    hash = None if data is None else hashed(data)
    for row in reversed(kept.rows_of([own_name(bank, path)], here=True)) if kept else ():
        if kept is None or row.kind in (APPEND, CUT) or row.after != hash:
            return
        hash = row.before
        if (text := kept.text(hash)) is not None:
            yield text


def under_earlier_names(kept: Journal, name: str) -> Iterator[Entry]:
    """What became of a file under the names that it had before it was moved to this one, as `share` does."""
    todo = [(row.other, row.row) for row in kept.rows_of([name]) if row.kind == IN]
    met = {name}
    while todo:
        before, moved = todo.pop()
        if before in met or TRASH in before.split("/"):
            continue
        met.add(before)
        rows = [row for row in kept.rows_of([before]) if row.row < moved]  # then, another memory may have the name
        todo += [(row.other, row.row) for row in rows if row.kind == IN]
        yield from rows
