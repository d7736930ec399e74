"""Many new files at once, each as durable as one that `files.create` makes, with far fewer waits for the disk.

A disk that has many files to write writes them together. So the contents are synced side by side, in files without a
name; then the journal notes all of them in one transaction, each gets its name, and each folder is synced once. A kill
or a loss of power in between leaves some of the files, and each of these whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from typing import NamedTuple

from memlane.core.errors import MemlaneError
from memlane.core.waiting import side_by_side
from memlane.disk import files, journal, rooted, written

_AT_ONCE = 128  # files that are open


class _New(NamedTuple):
    """A file that is written and has no name yet: where it is to be, its folder, and its descriptor."""

    path: str
    data: bytes
    at: int
    fd: int


def create_all(contents: Mapping[str, bytes]) -> set[str]:
    """Make new files; the paths of those that were made. For every other one, `files.create` says why it was not, or
    makes it: not every system has files without a name.

    Raises StorageError where the journal cannot be written, or what was made may not survive a loss of power.
    """
    made: set[str] = set()
    left = iter(contents.items())
    while some := dict(islice(left, _AT_ONCE)):
        with ExitStack() as held:
            made |= _named(_written(some, held))
    for path in made:
        if written.notes(path):
            written.note_file(path, contents[path], None)
    return made


def _written(contents: Mapping[str, bytes], held: ExitStack) -> list[_New]:
    """Those of the files that can be written, with what they hold on stable storage."""
    folders: dict[str, int] = {}
    new: list[_New] = []
    for path, data in contents.items():
        with suppress(OSError, MemlaneError):
            files.refuse_read_only(path, data)
            folder = os.path.dirname(path)
            if folder not in folders:
                folders[folder] = held.enter_context(rooted.folder(folder, 0o777))
            if not os.path.lexists(path) and (fd := files.nameless(folders[folder])) is not None:
                held.callback(os.close, fd)
                files.write(fd, data)
                new.append(_New(path, data, folders[folder], fd))
    for _ in side_by_side(_sync, new):
        pass
    return new


def _sync(new: _New) -> None:
    with files.storage(new.path):
        files.sync(new.fd)


def _named(new: list[_New]) -> set[str]:
    """Give the files their names; the paths of those that have them, on stable storage."""
    rows: dict[journal.Journal, dict[str, journal.Row]] = {}
    for each in new:
        if known := journal.kept_by(each.path):
            row = journal.Row(known[1], journal.WRITE, None, each.data, size=len(each.data))
            rows.setdefault(known[0], {})[each.path] = row
    made: set[str] = set()
    with ExitStack() as recorded:
        noted = {
            path: (kept, number)
            for kept, named in rows.items()
            for path, number in zip(named, recorded.enter_context(kept.recorded(*named.values())), strict=False)
        }
        for each in new:
            with suppress(OSError):
                files.give_name(each.fd, each.at, os.path.basename(each.path))
                made.add(each.path)
        for path in noted.keys() - made:
            kept, number = noted[path]
            kept.retract([number])
    for at, path in {each.at: each.path for each in new}.items():
        with files.in_place(path):
            os.fsync(at)
    return made
