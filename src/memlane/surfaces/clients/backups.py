"""The client files that a connection changed, as they were before.

Each connection has a record, `<state>/connect/<client>-<scope>….json`, with the copies of the files beside it. Only the
user can read the folder, because configuration files may hold keys.
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
class FileBackup:
    """One file that a connection changed."""

    path: str
    backup: str | None  # the name of the copy; None when there was no file
    after: str  # the digest of the file as we left it
    folders: tuple[str, ...] = ()  # the folders made for it, outermost first


@dataclass(frozen=True, slots=True)
class Backups:
    """Everything one connection changed; without files, there is no connection."""

    hooks: bool = False
    files: tuple[FileBackup, ...] = ()

    def of(self, path: Path) -> FileBackup | None:
        return next((file for file in self.files if file.path == os.fspath(path)), None)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def name_of(client: str, scope: str, project: Path) -> str:
    """The name of a connection's record."""
    if scope == "user":
        return f"{client}-user"
    return f"{client}-project-{digest(bytes(project))[:12]}"


def load(folder: Path, name: str) -> Backups:
    """The record of a connection, empty when there is none. Raises StorageError when it is damaged."""
    path = os.fspath(folder / f"{name}.json")
    try:
        record = json.loads(files.read_bytes(path))
        changed = [FileBackup(**{**item, "folders": tuple(item["folders"])}) for item in record["files"]]
        return Backups(bool(record["hooks"]), tuple(changed))
    except FileNotFoundError:
        return Backups()
    except (ValueError, LookupError, TypeError, RecursionError):
        raise StorageError(
            f"{path} is damaged.", hint="Move it away; disconnecting then takes out memlane's entries only."
        ) from None


def original(folder: Path, file: FileBackup | None) -> bytes | None:
    """A file's bytes before we changed it; None when there was no file, or the copy is gone."""
    if file is None or file.backup is None:
        return None
    try:
        return files.read_bytes(os.fspath(folder / file.backup))
    except FileNotFoundError:
        return None


def save(folder: Path, name: str, backups: Backups, copies: dict[str, bytes]) -> None:
    """Write the copies, then the record that names them."""
    for private in (folder.parent, folder):
        files.make_folder(os.fspath(private), private=True)
        private.chmod(0o700)  # an older memlane left it open to others
    record = json.dumps(asdict(backups), indent=2).encode()
    for file_name, data in (*copies.items(), (f"{name}.json", record)):
        files.replace(os.fspath(folder / file_name), data)
        (folder / file_name).chmod(0o600)


def delete(folder: Path, name: str, backups: Backups) -> None:
    """Delete a record and its copies, and the folder when no other connection is left in it."""
    files.remove(os.fspath(folder / f"{name}.json"))
    for file in backups.files:
        if file.backup:
            files.remove(os.fspath(folder / file.backup))
    with suppress(OSError):  # it holds other connections
        os.rmdir(folder)
