"""Where clients keep the transcripts of past sessions, and which of them are of one project.

    Claude Code   $CLAUDE_CONFIG_DIR, else ~/.claude: projects/<the folder's path with dashes>/<session>.jsonl
    Codex         $CODEX_HOME, else ~/.codex: sessions/<year>/<month>/<day>/rollout-….jsonl, and archived_sessions/
    Gemini CLI    .gemini in $GEMINI_CLI_HOME, else in ~: tmp/<project>/chats/session-….jsonl, and the older .json
    opencode      $XDG_DATA_HOME/opencode, else ~/.local/share/opencode: opencode.db, before that storage/

Of a session of another project, no more is read than whose it is: the beginning of a file, or a row of a table. Links
are not followed, nor is anything looked at that belongs to another user. Writes nothing.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import quote

from memlane import config
from memlane.capture.transcripts import codex
from memlane.config import worktrees
from memlane.config.places import expanded
from memlane.core.digests import sha256
from memlane.core.errors import MemlaneError

if TYPE_CHECKING:
    from sqlite3 import Connection

LARGEST = 256 * 1024 * 1024  # bytes of a transcript; a larger one is no talk
MOST = 20_000  # files that are looked at
_HEAD = 512 * 1024  # bytes in which a transcript says whose it is: Codex puts its instructions there
_SHORT = 4096  # bytes of the heads that Gemini CLI writes
_ANSWER = 4000  # characters of a tool's answer
_LONGEST_PART = 16 * 1024 * 1024  # characters; a longer one is a tool's answer
_PROJECT_HASH = re.compile(rb'"projectHash"\s*:\s*"([0-9a-f]{64})"')
_LONGEST_NAME = 200  # characters of a path that Claude Code keeps in a folder's name

Belongs = Callable[[str], bool]


class Past(NamedTuple):
    """A past session. `path` is its transcript, or the database that has the session of this id."""

    client: str
    path: str
    size: int  # bytes
    changed: float  # seconds since 1970
    session: str = ""


def past(settings: config.Config) -> list[Past]:
    """The past sessions that were held in a project, the oldest first. Those of another bank inside it are not its."""
    return sorted(_found(settings), key=lambda one: (one.changed, one.path))


def of_session(settings: config.Config, id: str) -> Past | None:
    """The past session of this id that was held in a project; None when no client has it, or not any more."""
    return next((one for one in _found(settings) if id and _is_called(one, id)), None)


def _found(settings: config.Config) -> Iterator[Past]:
    folders = _folders(settings)
    belongs = _belonging(settings, folders)
    for reader in (_claude_code, _codex, _gemini, _opencode):
        yield from (one for one in reader(folders, belongs) if 0 < one.size <= LARGEST)


def _is_called(one: Past, id: str) -> bool:
    """Whether a session has this id: its file is called after it, or names it at the beginning."""
    if one.session:
        return one.session == id
    return id in os.path.basename(one.path) or id.encode(errors="replace") in _beginning(one.path)


# -- whose a session is


def _folders(settings: config.Config) -> list[str]:
    """The project's folder, and those of its linked worktrees, as they are called and as they are."""
    if settings.project is None:
        return []
    named = [os.fspath(settings.project), *([os.fspath(settings.worktree)] if settings.worktree else [])]
    linked = settings.project / ".git/worktrees"
    with suppress(OSError):
        for entry in sorted(os.listdir(linked)):
            named.append(os.path.dirname(os.fsdecode(_beginning(os.fspath(linked / entry / "gitdir"))).strip()))
    return list(
        dict.fromkeys(path for name in named if name for path in (os.path.abspath(name), os.path.realpath(name)))
    )


def _belonging(settings: config.Config, folders: Sequence[str]) -> Belongs:
    """Whether what is said in a folder goes to the bank of these settings: asked once for each folder."""
    known: dict[str, bool] = {}

    def belongs(cwd: str) -> bool:
        if cwd not in known:
            known[cwd] = os.path.isabs(cwd) and _goes_to(settings, folders, cwd)
        return known[cwd]

    return belongs


def _goes_to(settings: config.Config, folders: Sequence[str], cwd: str) -> bool:
    path = Path(os.path.realpath(cwd))
    if not any(path.is_relative_to(folder) for folder in folders):
        return False
    while not path.is_dir():  # it was removed since
        path = path.parent
    if not any(path.is_relative_to(folder) for folder in folders):
        return False
    with suppress(MemlaneError, OSError):
        if worktrees.linked(path):
            return config.load(path).root == settings.root
        found = config.find_project(path)
        return found is not None and settings.file is not None and os.path.samefile(found, settings.file)
    return False


# -- the clients


def _claude_code(folders: Sequence[str], belongs: Belongs) -> Iterator[Past]:
    names = tuple(re.sub(r"[^a-zA-Z0-9]", "-", folder)[:_LONGEST_NAME] for folder in folders)
    home = _base("CLAUDE_CONFIG_DIR", "~/.claude", "projects")
    for folder in (entry for entry in _entries(home) if entry.name.startswith(names)):
        for entry in _entries(folder.path) if folder.is_dir(follow_symlinks=False) else ():
            if entry.name.endswith(".jsonl") and (size := _own_file(entry)) and _said_in(entry.path, belongs):
                yield Past("claude-code", entry.path, *size)


def _said_in(path: str, belongs: Belongs) -> bool:
    """Whether a transcript of Claude Code, not a subagent's, first names a folder that is ours.

    The name of the folder that it lies in is no proof: `/a/b-c` and `/a/b/c` have the same.
    """
    for line in _first_lines(path):
        if isinstance(cwd := line.get("cwd"), str):
            return belongs(cwd) and not line.get("isSidechain")
    return False


def _codex(folders: Sequence[str], belongs: Belongs) -> Iterator[Past]:
    home = _base("CODEX_HOME", "~/.codex")
    days = (day for year in _under(home / "sessions") for month in _under(year) for day in _under(month))
    for folder in (*days, os.fspath(home / "archived_sessions")):
        for entry in _entries(folder):
            named = entry.name.startswith("rollout-") and entry.name.endswith(".jsonl")
            if named and (size := _own_file(entry)) and _rolled_out_in(entry.path, belongs):
                yield Past("codex", entry.path, *size)


def _rolled_out_in(path: str, belongs: Belongs) -> bool:
    for line in _first_lines(path):
        if codex.knows(line) and line["type"] == "session_meta":
            entry = codex.read(line)
            return bool(entry.cwd) and not entry.aside and belongs(entry.cwd)
    return False


def _gemini(folders: Sequence[str], belongs: Belongs) -> Iterator[Past]:
    hashes = {sha256(os.fsencode(folder)).hexdigest().encode() for folder in folders}
    home = _base("GEMINI_CLI_HOME", "~", ".gemini/tmp")
    for project in _under(home):
        at = _beginning(os.path.join(project, ".project_root")).decode(errors="replace").strip()
        if at and not belongs(at):
            continue
        for entry in _entries(os.path.join(project, "chats")):
            if not entry.name.endswith((".jsonl", ".json")) or not (size := _own_file(entry)):
                continue
            head = _beginning(entry.path)
            named = _PROJECT_HASH.search(head)
            if b'"kind":"subagent"' not in head.replace(b" ", b"") and (at or (named and named[1] in hashes)):
                yield Past("gemini", entry.path, *size)


def _opencode(folders: Sequence[str], belongs: Belongs) -> Iterator[Past]:
    home = _base("XDG_DATA_HOME", "~/.local/share", "opencode")
    if not os.path.lexists(home / "opencode.db"):
        yield from _opencode_files(home / "storage", belongs)
        return
    path = os.fspath(home / "opencode.db")
    whose = """SELECT CAST(id AS TEXT), CAST(directory AS TEXT), CAST(time_updated AS INTEGER) FROM session
               WHERE parent_id IS NULL ORDER BY id"""
    size = "SELECT sum(length(data)) FROM part WHERE session_id = ?"
    with _database(path) as db:
        if db is None:
            return
        for id, folder, updated in db.execute(whose).fetchmany(MOST):
            if id and folder and belongs(folder):
                yield Past("opencode", path, db.execute(size, (id,)).fetchone()[0] or 0, (updated or 0) / 1000, id)


def _opencode_files(storage: Path, belongs: Belongs) -> Iterator[Past]:
    """As opencode kept its sessions before it had a database, to which it moves them by itself."""
    for entry in (entry for project in _under(storage / "session") for entry in _entries(project)):
        info = _document(entry.path) if _own_file(entry) else {}
        folder, id = info.get("directory"), entry.name.removesuffix(".json")
        if isinstance(folder, str) and not info.get("parentID") and belongs(folder):
            spoken = _entries(storage / "message" / id)
            known = [size for message in spoken for part in _parts(storage, message) if (size := _own_file(part))]
            changed = max([when for _, when in known], default=0.0)
            yield Past("opencode", os.fspath(storage), sum(length for length, _ in known), changed, id)


def _parts(storage: Path, message: os.DirEntry[str]) -> Iterator[os.DirEntry[str]]:
    return _entries(storage / "part" / message.name.removesuffix(".json"))


def messages(session: Past) -> Iterator[dict[str, Any]]:
    """The messages of a session of opencode, as `transcripts` reads them, without long answers of tools."""
    if not session.path.endswith(".db"):
        storage = Path(session.path)
        for entry in _entries(storage / "message" / session.session):
            parts = [_document(part.path) for part in _parts(storage, entry)]
            yield _message(entry.name.removesuffix(".json"), session, _document(entry.path), parts)
        return
    said = "SELECT CAST(id AS TEXT), data FROM message WHERE session_id = ? ORDER BY time_created, id"
    parts_of = "SELECT data FROM part WHERE message_id = ? AND length(data) <= ? ORDER BY id"
    with _database(session.path) as db:
        if db is None:
            return
        for id, data in db.execute(said, (session.session,)):
            found = [_parsed(part) for (part,) in db.execute(parts_of, (id, _LONGEST_PART))]
            yield _message(id, session, _parsed(data), found)


def _message(id: str, session: Past, info: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    info = {**info, "id": id, "sessionID": session.session}
    return {"id": id, "info": info, "parts": [_shortened(part) for part in parts]}


def _shortened(part: dict[str, Any]) -> dict[str, Any]:
    state = part.get("state")
    if not isinstance(state, dict) or not isinstance(state.get("output"), str):
        return part
    return {**part, "state": {**state, "output": state["output"][:_ANSWER]}}


@contextmanager
def _database(path: str) -> Iterator[Connection | None]:
    """A database of a client, to be read; None where there is none of the user's own. What is wrong with it ends it."""
    import sqlite3

    try:
        info = os.lstat(path)
        own = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid()
        db = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=1) if own else None
    except (OSError, sqlite3.Error):
        db = None
    with suppress(sqlite3.Error), closing(db) if db else nullcontext():
        yield db


# -- files of others


def _base(variable: str, otherwise: str, below: str = "") -> Path:
    """Where a client keeps its files; a folder that does not exist where there is no home."""
    given = config.variables(variable).get(variable, "")
    try:
        return (Path(given) if os.path.isabs(given) else expanded(otherwise)) / below
    except MemlaneError:
        return Path(os.devnull) / below


def _entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """What is in a folder of the user's own, by name."""
    with suppress(OSError):
        if os.stat(folder).st_uid == os.geteuid():
            with os.scandir(folder) as found:
                yield from sorted(islice(found, MOST), key=lambda entry: entry.name)


def _under(folder: str | Path) -> Iterator[str]:
    """The folders in a folder."""
    return (entry.path for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))


def _own_file(entry: os.DirEntry[str]) -> tuple[int, float] | None:
    """The size of a file of the user's own, and when it was changed; None for anything else."""
    with suppress(OSError):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid():
            return info.st_size, info.st_mtime
    return None


def _parsed(data: Any) -> dict[str, Any]:
    with suppress(ValueError, TypeError, RecursionError):
        value = json.loads(data)
        return value if isinstance(value, dict) else {}
    return {}


def _beginning(path: str) -> bytes:
    with _opened(path) as file:
        return (file.read(_SHORT) or b"") if file else b""


def _document(path: str) -> dict[str, Any]:
    """The object that a file of one JSON value holds."""
    with _opened(path) as file:
        return _parsed(file.read(_LONGEST_PART)) if file else {}


def _first_lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects at the beginning of a file; no more of it is read than is asked for."""
    left = _HEAD
    with _opened(path) as file:
        while file and left > 0 and (data := file.readline(left)):
            left -= len(data)
            if value := _parsed(data):
                yield value


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO | None]:
    """A file; None where it is a link or something else, or cannot be read."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError:
        yield None
        return
    with file:
        yield file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
