"""Folders in a bank that git leaves out: `indices`, which can be made anew from the memories, and `private`.

Only files that memlane made are deleted, and only in `indices`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memlane.core.errors import AlreadyExists, StorageError
from memlane.core.patterns import lazily
from memlane.disk import files, names, rooted

FOLDER = "indices"
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database
_MADE = lazily(
    r"(scopes-[0-9a-f]{16}/)?index\.db(-wal|-shm|-journal)?|code\.json|mentions\.json|vectors-[0-9a-f]{16}\.jsonl|capture/[0-9a-f]{32}\.json"
    rf"|(capture/)?{re.escape(files.TEMP_PREFIX)}\d+-[0-9a-f]+{re.escape(files.TEMP_SUFFIX)}"
)


def paths(bank: str | Path) -> Iterator[str]:
    """Every derived file of a bank but its .gitignore, what lies beside a database before the database itself."""
    folder = os.path.join(bank, FOLDER)
    for path in sorted(files.tree(folder), reverse=True):
        if _MADE.fullmatch(path[len(folder) + 1 :]):
            yield path


def remove(bank: str | Path) -> None:
    """Delete the derived files of a bank. Raises StorageError."""
    refuse_link(bank)
    for path in paths(bank):
        files.remove(path)


def refuse_link(bank: str | Path) -> None:
    """Raise StorageError when `indices` is a link out of the bank or not a folder."""
    folder = os.path.join(bank, FOLDER)
    with files.storage(folder), suppress(FileNotFoundError), rooted.folder(folder):
        pass


def prepare(folder: str | Path) -> None:
    """Make a folder that tells git itself to leave it out, by a .gitignore in it. Raises StorageError."""
    with suppress(AlreadyExists):
        path = os.path.join(folder, ".gitignore")
        if not os.path.lexists(path):
            files.create(path, b"*\n")


def home_of(path: str, *ids: str) -> str:
    """The file for lines about these ids: this one, or where one is private, its twin that git leaves out."""
    return private_home(path) if any(map(names.is_private, ids)) else path


def private_home(path: str) -> str:
    """The twin of a file that git leaves out, in a folder that is there."""
    twin = names.private_twin(path)
    prepare(os.path.dirname(twin))
    return twin


def refuse_database(path: str | Path) -> None:
    """Raise StorageError for a database that is not ours to open: SQLite would follow links and wait for pipes.

    Neither the file nor what SQLite keeps beside it may be a link, a special file or a file of another user.
    """
    path = os.fspath(path)
    with files.storage(path), suppress(FileNotFoundError), rooted.parent(path) as (at, name):
        for each in (name, *(name + suffix for suffix in _BESIDE)):
            with suppress(FileNotFoundError):
                if stat.S_ISLNK(os.stat(each, dir_fd=at, follow_symlinks=False).st_mode):
                    raise StorageError(f"{each} is a link and not followed.", hint="Delete it: it is made anew.")
                rooted.refuse_foreign(at, each, path)
