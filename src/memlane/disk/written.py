"""Which memories were written here: by memlane, for this user, on this machine, or read and accepted by the user.

    ~/.local/state/memlane/written/3f      lines that begin with a hash of what was written, the last one counts:

    3f5e6f708192a3b4… user                 the user wrote it: on the command line, in an editor, by a program
    3f9a1c0b7d2e5c61… here                 memlane wrote it here for somebody else: an agent, or what was imported
    3f00c1d2e3f40516… reviewed             the user has read and accepted it
    3f77a6b5c4d3e2f1… came                 it was there before the user trusted the project
    3fb0b1b2b3b4b5b6… git Ann Smith        it came by git, in a commit of hers
    3fc2d4e6f8a0b1c3… sync ann             it came from a remote (`memlane sync`), where she put it
    3fd9e8f7a6b5c4d3… changed              memlane changed it here, and nobody had asked yet whose it was

A repository that somebody cloned brings memories along, and a pull brings more. Nothing in a file can prove that this
user wrote it; these hashes can, because no repository reaches them. They are of a memory's whole file, or of its line
in a log, and hold for all projects of the user, wherever a project is moved. Losing them loses no memory: those that
git has count as somebody else's again until they are reviewed. Never fails a write.

What is the user's word, and so may be a rule, needs proof: `user` or `reviewed`. Whoever else writes into a memory
takes that away, for all that its file says, and the user's own change to what an agent wrote does not give it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from time import time_ns

from memlane.disk import journal
from memlane.disk.names import TRASH

FOLDER = "written"
USER, HERE, REVIEWED, CAME, GIT, SYNC, CHANGED = "user", "here", "reviewed", "came", "git", "sync", "changed"
OWN = (USER, HERE, REVIEWED)  # of what was not brought by others
WORD = (USER, REVIEWED)  # of what the user has said, or read and accepted
# Shells of agents say so: what is run there is not typed by the user.
AGENTS = ("CLAUDECODE", "CODEX_SANDBOX", "CODEX_CI", "CODEX_THREAD_ID", "GEMINI_CLI", "CURSOR_AGENT", "OPENCODE",
           "AI_AGENT", "AUGMENT_AGENT", "GOOSE_TERMINAL", "COPILOT_CLI")  # fmt: skip
MAX_BYTES = 16 * 1024 * 1024  # of one of the 256 files
_KEPT_BYTES = 64 * 1024  # of one of them, in memory
_MOST_KEYS = 10_000
_TICK = 2_000_000_000  # ns; file systems tell times apart that are this far from each other
_keys: dict[str, tuple[tuple[int, ...], str]] = {}  # of files, with what they were like when they were read
_lines: dict[str, tuple[tuple[int, ...], bytes]] = {}  # the same of the files of hashes
_kept: dict[str, Written] = {}  # by the folder whose files are noted
_copying: ContextVar[bool] = ContextVar("copying", default=False)


def key_of(data: bytes) -> str:
    """What a memory is known by."""
    from memlane.core.digests import sha256  # this module is part of every start

    return sha256(data).hexdigest()[:32]


def key_of_file(path: str) -> str:
    """What a memory is known by that has a file of its own; read once, while the file stands. Raises OSError."""
    from memlane.disk import files

    stamp = _stamp(os.stat(path, follow_symlinks=False))
    known = _keys.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    key = key_of(files.read_bytes(path))
    if len(_keys) >= _MOST_KEYS:
        _keys.clear()
    if not _is_young(stamp):
        _keys[path] = stamp, key
    return key


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_uid, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _is_young(stamp: tuple[int, ...]) -> bool:
    """Whether a file was changed just now: it may change again without its stamp showing it."""
    return stamp[-1] > time_ns() - _TICK


class Written:
    """The hashes, in this folder. It is made with the first one, readable by the user alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def what(self, key: str) -> str:
        """The latest that is noted of a key: "" when nothing is."""
        data = self._read(key[:2])
        at = data.rfind(b"\n" + key.encode() + b" ")
        return data[at + len(key) + 2 :].partition(b"\n")[0].decode(errors="replace") if at >= 0 else ""

    def unknown(self, keys: Collection[str]) -> list[str]:
        """Those of which nothing is noted."""
        read = {name: self._read(name) for name in {key[:2] for key in keys}}
        return [key for key in keys if b"\n" + key.encode() + b" " not in read[key[:2]]]

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
        path = f"{self._folder}{os.sep}{name}"
        try:
            stamp = _stamp(os.stat(path, follow_symlinks=False))
            if path in _lines and _lines[path][0] == stamp:
                return _lines[path][1]
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        with os.fdopen(fd, "rb") as file:
            mine = os.fstat(fd).st_uid in (os.geteuid(), 0)
            data = b"\n" + file.read(MAX_BYTES) if mine else b""
        if len(data) <= _KEPT_BYTES and not _is_young(stamp):
            _lines[path] = stamp, data
        return data


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


def by_user() -> bool:
    """Whether what is written now is the user's word, and not an agent's, nor found somewhere."""
    who = journal.by.get()
    return who.users and (who.surface == "mcp" or not agents_shell())  # an agent starts the server, too


def agents_shell() -> str:
    """The variable by which this process knows that an agent has started it; "" when none has."""
    return next((name for name in AGENTS if os.environ.get(name)), "")


def note_file(path: str, data: bytes, before: bytes | None) -> None:
    """A memory's file was written; `before` is what it held. A change to somebody else's text leaves it his."""
    written = _keeper(path)
    was = written.what(key_of(before)) if written and before is not None else None
    if written:
        written.note({key_of(data): _now(was) if was is None or was in OWN else was or CHANGED})


def note_back(path: str, data: bytes) -> None:
    """A memory's file is back that was deleted. Not as the user's word, unless the user brings it back."""
    written = _keeper(path)
    if written and not by_user() and written.what(key_of(data)) in WORD:
        written.note({key_of(data): HERE})


def _now(was: str | None) -> str:
    """Whose a memory is that was just written; `was` is whose it was before, None for a new one."""
    return USER if by_user() and (was is None or was in WORD) else HERE


def note_lines(path: str, data: bytes) -> None:
    """Lines were appended to a log. A new version of somebody else's record leaves it his."""
    if written := _keeper(path):
        for line in data.splitlines():
            keys, version = record_keys(line)
            was = None if version == 1 else _record_was(written, path, keys[1], version) if keys else ""
            if was is None or was in OWN:
                written.note(dict.fromkeys(keys, _now(was)))


def _record_was(written: Written, path: str, key: str, version: int) -> str:
    """Whose a record was before this version of it: the user's only if the version before it was, and not git's."""
    was = written.what(key)
    if was not in WORD:
        return was
    latest, word = 0, True
    with suppress(OSError), open(path, "rb") as log:  # we have just appended to it
        for line in log:
            keys, older = record_keys(line) if b'"version"' in line else ((), 0)
            if keys and keys[1] == key and latest <= older < version:
                word = written.what(keys[0]) in WORD and (word or older > latest)
                latest = older
    return was if word else HERE


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
