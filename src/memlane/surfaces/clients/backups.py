"""What a connection changed, and the bytes that were there before: `<state>/connect/<client>-<scope>….json` and beside
it the backups. The folder is the user's alone: a configuration may hold keys.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memlane.core.errors import StorageError
from memlane.disk import files


@dataclass(frozen=True, slots=True)
class Kept:
    """One file. `backup` names the copy of what was there, None when there was no file; `after` is our result."""

    path: str
    backup: str | None
    after: str
    folders: tuple[str, ...] = ()  # those that were made for it, outermost first


@dataclass(frozen=True, slots=True)
class Record:
    hooks: bool
    files: tuple[Kept, ...]

    def kept(self, path: Path) -> Kept | None:
        return next((kept for kept in self.files if kept.path == os.fspath(path)), None)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def name_of(client: str, scope: str, project: Path) -> str:
    if scope == "user":
        return f"{client}-user"
    return f"{client}-project-{digest(bytes(project))[:12]}"


def load(folder: Path, name: str) -> Record | None:
    """The record of a connection; None when there is none. Raises StorageError when it is damaged."""
    path = os.fspath(folder / f"{name}.json")
    try:
        found = json.loads(files.read_bytes(path))
        kept = [Kept(**{**item, "folders": tuple(item["folders"])}) for item in found["files"]]
        return Record(bool(found["hooks"]), tuple(kept))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise StorageError(
            f"{path} is damaged.", hint="Move it away; disconnecting then takes out memlane's entries only."
        ) from None


def backup(folder: Path, kept: Kept | None) -> bytes | None:
    """The bytes that were there before; None when there was no file, or the backup is gone."""
    if kept is None or kept.backup is None:
        return None
    try:
        return files.read_bytes(os.fspath(folder / kept.backup))
    except FileNotFoundError:
        return None


def save(folder: Path, name: str, record: Record, backups: dict[str, bytes]) -> None:
    """Write the backups, then the record that names them."""
    files.make_folder(os.fspath(folder.parent))
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    for backup_name, data in backups.items():
        files.replace(os.fspath(folder / backup_name), data)
    found = {"hooks": record.hooks, "files": [asdict(kept) for kept in record.files]}
    files.replace(os.fspath(folder / f"{name}.json"), json.dumps(found, indent=2).encode())


def forget(folder: Path, name: str, record: Record) -> None:
    """Delete a record and its backups; after the last one, the folder too."""
    files.remove(os.fspath(folder / f"{name}.json"))
    for kept in record.files:
        if kept.backup:
            files.remove(os.fspath(folder / kept.backup))
    with suppress(OSError):  # it holds other connections
        os.rmdir(folder)
