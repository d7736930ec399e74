"""Which projects the user has agreed to: `trust.json` in the user's state folder, readable by the user alone.

    {"/home/ann/api": {"owner": 1000, "file": "memlane.toml", "hash": "9f…", "text": "[memory]\\nenabled = true\\n",
                       "tables": {"memory": {"enabled": true}}, "everyone": false}}

A repository that somebody merely cloned may bring a memlane.toml and memories of its own. Until the user says `memlane
init` or `memlane trust` there, its configuration does not count, nothing is written, and hooks and the server do
nothing. Trust is for one real path, owner and content of the configuration: a changed file needs it again. A linked
worktree of a trusted repository is trusted while its configuration is the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memlane.config import worktrees
from memlane.core.digests import sha256
from memlane.core.errors import ConfigError
from memlane.core.toml import load_toml
from memlane.disk import files

MAX_BYTES = 1024 * 1024  # of a configuration file; anything longer is no configuration
NAME = "trust.json"
_loaded: dict[str, tuple[tuple[int, ...], dict[str, dict[str, Any]]]] = {}  # with what the file was like


def read(path: str | Path, *, follow: bool = False) -> bytes:
    """A configuration file. Raises ConfigError for what is no plain file of reasonable size, for one of another user,
    and for a link unless they are followed: a project's may lead to any file of yours, and would be shown.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        with os.fdopen(fd, "rb") as file:
            owner = os.fstat(fd).st_uid
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read.", hint="Check its permissions; it must be UTF-8.") from error
    if not _is_ours(owner):  # it was put there since it was found
        raise ConfigError(f"{path} belongs to another user (uid {owner}).", hint="Delete it, or work elsewhere.")
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} is too large for a configuration.", hint="Delete it, or make it shorter.")
    return data


def owner_problem(*paths: str | Path) -> str:
    """Why files of this owner are not used: another user may change them at any time. "" when all is well."""
    for path in paths:
        for look in (os.lstat, os.stat):  # a link, too, says what its owner wants
            try:
                owner = look(path).st_uid
            except OSError:
                continue
            if not _is_ours(owner):
                return f"{path} belongs to another user (uid {owner}) and is not used"
    return ""


def _is_ours(owner: int) -> bool:
    return owner in (os.geteuid(), 0)


def distrust(state: Path, file: Path, data: bytes) -> str:
    """Why the configuration of a project, with this content, does not count; "" when the user trusts it."""
    digest = sha256(data).hexdigest()
    folder, known = os.path.realpath(file.parent), _load(state)
    entry = _entry(known, folder)
    if entry and entry["hash"] != digest and folder not in known:
        entry = None  # of the main worktree, whose configuration is another
    if entry is None:
        return "is not trusted yet: it may be somebody else's"
    if (entry["file"], entry["hash"]) != (file.name, digest):
        return "has a configuration that has changed since you trusted it"
    if entry["owner"] != os.stat(folder).st_uid:
        return "belongs to another user than when you trusted it"
    return ""


def record(state: Path, file: Path, data: bytes | None = None, everyone: bool | None = None) -> None:
    """Trust a project with a configuration of this content, by default what it has now.

    `everyone` says whether memories count as the user's own whoever commits them; None leaves that as it is.
    Writes trust.json. Raises ConfigError, StorageError.
    """
    data = read(file) if data is None else data
    if everyone is None:
        everyone = trusts_everyone(state, file)
    folder = os.path.realpath(file.parent)
    _change(
        state,
        folder,
        {
            "owner": os.stat(folder).st_uid,
            "file": file.name,
            "hash": sha256(data).hexdigest(),
            "text": data.decode(errors="replace"),
            "tables": _parsed(data),
            "everyone": everyone,
        },
    )


def revoke(state: Path, file: Path) -> None:
    """Trust a project no longer."""
    _change(state, os.path.realpath(file.parent), None)


def trusts_everyone(state: Path, file: Path) -> bool:
    """Whether the user trusts everybody who can commit to this project."""
    entry = _entry(_load(state), os.path.realpath(file.parent))
    return entry is not None and entry.get("everyone") is True


def trusted_text(state: Path, file: Path) -> str | None:
    """The configuration that was trusted last; None when none was."""
    entry = _load(state).get(os.path.realpath(file.parent))
    return entry["text"] if entry else None


def tables(state: Path, file: Path, data: bytes) -> dict[str, Any] | None:
    """What a configuration of this content says, if it was parsed when it was trusted: to load the parser takes longer
    than to read both files."""
    entry = _entry(_load(state), os.path.realpath(file.parent))
    found = entry.get("tables") if entry and entry["hash"] == sha256(data).hexdigest() else None
    return dict(found) if isinstance(found, dict) else None


def _parsed(data: bytes) -> dict[str, Any] | None:
    """What a configuration says, where JSON can say it: no TOML, or a date in it, is left to whoever asks."""
    try:
        found = load_toml(data.decode())
        return found if json.loads(json.dumps(found)) == found else None
    except (ValueError, TypeError):
        return None


def _entry(known: Mapping[str, dict[str, Any]], folder: str) -> dict[str, Any] | None:
    """What is known of a project; of one in a linked worktree that nobody spoke of, what is known of the main one."""
    entry = known.get(folder)
    if entry is None and (worktree := worktrees.linked(folder)):
        entry = known.get(os.fspath(worktree.in_main(folder)))
    return entry


def _change(state: Path, folder: str, entry: dict[str, Any] | None) -> None:
    files.make_folder(os.fspath(state), private=True)
    os.chmod(state, 0o700)  # an older memlane left it open to others
    path = os.path.join(state, NAME)
    with files.locked(os.fspath(state)):
        known = dict(_load(state))
        if entry is None:
            known.pop(folder, None)
        else:
            known[folder] = entry
        files.replace(path, json.dumps(known, indent=1).encode())
        os.chmod(path, 0o600)


def _load(state: Path) -> Mapping[str, dict[str, Any]]:
    """What is trusted; nothing where the file cannot be read, or is not the user's own."""
    path = os.path.join(state, NAME)
    try:
        now = os.stat(path, follow_symlinks=False)
        stamp = (now.st_dev, now.st_ino, now.st_uid, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        if _loaded.get(path, ((), {}))[0] == stamp:  # it is only ever replaced, and another file has another number
            return _loaded[path][1]
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(fd, "rb") as file:
        if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
            return {}
        try:
            found = json.loads(file.read(64 * MAX_BYTES))
        except ValueError:
            return {}
    known = {folder: entry for folder, entry in found.items() if _is_entry(entry)} if isinstance(found, dict) else {}
    _loaded[path] = stamp, known
    return known


def _is_entry(entry: Any) -> bool:
    kinds = {"owner": int, "file": str, "hash": str, "text": str}
    return isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in kinds.items())
