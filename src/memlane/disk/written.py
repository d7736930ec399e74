"""Which memories were written here: by memlane, for this user, on this machine, or read and accepted by the user.

    ~/.local/state/memlane/written/3f      lines that begin with a hash of what was written, the last one counts:

    3f9a1c0b7d2e5c61… here
    3f00c1d2e3f40516… reviewed
    3f77a6b5c4d3e2f1… came                 it was there before the user trusted the project
    3fb0b1b2b3b4b5b6… git Ann Smith        it came by git, in a commit of hers

A repository that somebody cloned brings memories along, and a pull brings more. Nothing in a file can prove that this
user wrote it; these hashes can, because no repository reaches them. They are of a memory's whole file, or of its line
in a log, and hold for all projects of the user, wherever a project is moved. Losing them loses no memory: those that
git has count as somebody else's again until they are reviewed. Never fails a write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from memlane.disk.names import TRASH

FOLDER = "written"
HERE, REVIEWED, CAME, GIT = "here", "reviewed", "came", "git"
MAX_BYTES = 16 * 1024 * 1024  # of one of the 256 files
_kept: dict[str, Written] = {}  # by the folder whose files are noted
_copying: ContextVar[bool] = ContextVar("copying", default=False)


def key_of(data: bytes) -> str:
    """What a memory is known by."""
    import hashlib  # this module is part of every start

    return hashlib.sha256(data).hexdigest()[:32]


class Written:
    """The hashes, in this folder. It is made with the first one, readable by the user alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def what(self, key: str) -> str:
        """The latest that is noted of a key: "" when nothing is."""
        data = self._read(key[:2])
        at = data.rfind(b"\n" + key.encode() + b" ")
        return data[at + len(key) + 2 :].partition(b"\n")[0].decode(errors="replace") if at >= 0 else ""

    def note(self, facts: Mapping[str, str]) -> None:
        """Note what is known of these keys."""
        files: dict[str, list[str]] = {}
        for key, what in facts.items():
            files.setdefault(key[:2], []).append(f"{key} {' '.join(what.split())}\n")
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for name, lines in files.items():
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(self._folder / name, flags, 0o600)
                try:
                    os.write(fd, "".join(lines).encode(errors="replace"))
                finally:
                    os.close(fd)

    def _read(self, name: str) -> bytes:
        try:
            fd = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        with os.fdopen(fd, "rb") as file:
            mine = os.fstat(fd).st_uid in (os.geteuid(), 0)
            return b"\n" + file.read(MAX_BYTES) if mine else b""


def keep(folder: str | Path, written: Written | None) -> None:
    """Note every memory that is written below a folder from now on, in this process; with None, none."""
    for path in {os.fspath(folder), os.path.realpath(folder)}:
        if written is None:
            _kept.pop(path, None)
        else:
            _kept[path] = written


@contextmanager
def copying() -> Iterator[None]:
    """What is written meanwhile was there before, so that writing it says nothing of who wrote it first."""
    token = _copying.set(True)
    try:
        yield
    finally:
        _copying.reset(token)


def notes(path: str) -> bool:
    """Whether `note_file` would note what is written there: not a copy in the trash, which says nothing new."""
    return path.endswith(".md") and f"{os.sep}{TRASH}{os.sep}" not in path and _keeper(path) is not None


def note_file(path: str, data: bytes, before: bytes | None) -> None:
    """A memory's file was written; `before` is what it held. A change to somebody else's text leaves it his."""
    written = _keeper(path)
    if written and (before is None or written.what(key_of(before)) in (HERE, REVIEWED)):
        written.note({key_of(data): HERE})


def note_lines(path: str, data: bytes) -> None:
    """Lines were appended to a log. A new version of somebody else's record leaves it his."""
    if written := _keeper(path):
        for line in data.splitlines():
            keys, version = record_keys(line)
            if version == 1 or (keys and written.what(keys[1]) in (HERE, REVIEWED)):
                written.note(dict.fromkeys(keys, HERE))


def record_keys(line: bytes) -> tuple[tuple[str, ...], int]:
    """What a record in a log is known by, its line and its id, and its version; nothing for a line of another kind."""
    import json

    with suppress(ValueError, RecursionError, TypeError, KeyError):
        record = json.loads(line)
        if isinstance(record["version"], int):
            return (key_of(line.strip()), key_of(f"id {record['id']}".encode())), record["version"]
    return (), 0


def _keeper(path: str) -> Written | None:
    if _copying.get():
        return None
    return next((kept for folder, kept in _kept.items() if path.startswith(folder + os.sep)), None)
