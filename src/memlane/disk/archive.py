"""A bank as a whole: packed into one file, unpacked from it, or moved.

    memlane-backup.tar.gz
        bank/deploy-day.md      what was packed, regular files alone
        manifest.json           the last member: what the archive is of, and size and SHA-256 of every other one

An archive may have been made or changed by anybody. So it is unpacked into a private folder first, where nothing reads
it, within limits; only what its manifest vouches for is handed on.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.disk import files, renaming, rooted, scratch
from memlane.disk.names import path_problem

MANIFEST = "manifest.json"
MAX_FILES = 500_000
MAX_BYTES = 8 * 1024**3  # of all files together
_MAX_MANIFEST = 128 * 1024 * 1024
_CHUNK = 1 << 20


def pack(path: str, contents: Iterable[tuple[str, bytes | Path]], facts: dict[str, Any], *, replace: bool) -> int:
    """Write an archive of these members, each bytes or a database; return how many. Raises AlreadyExists, StorageError.

    The file appears when it is whole and on stable storage, and is readable by its owner alone.
    """
    folder = os.path.dirname(path)
    temp = os.path.join(folder, f"{files.TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}{files.TEMP_SUFFIX}")
    with files.storage(path):
        fd = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as out:
                members = _pack(out, contents, facts)
                out.flush()
                os.fsync(out.fileno())
            with rooted.folder(folder) as at:
                if replace:
                    os.replace(temp, os.path.basename(path), dst_dir_fd=at)
                else:
                    renaming.to_free_name(at, os.path.basename(temp), at, os.path.basename(path))
                os.fsync(at)
        except FileExistsError:
            hint = "Choose another name, or say --overwrite."
            raise AlreadyExists(f"The file already exists: {os.path.basename(path)}", hint=hint) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temp)
    return members


def _pack(out: IO[bytes], contents: Iterable[tuple[str, bytes | Path]], facts: dict[str, Any]) -> int:
    listed = []
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:

        def member(name: str, size: int, data: IO[bytes]) -> None:
            info = tarfile.TarInfo(name)
            info.size, info.mode = size, 0o600
            tar.addfile(info, data)

        for name, content in contents:
            with _source(content) as (size, data, digest):
                member(name, size, data)
                listed.append({"name": name, "size": size, "sha256": digest})
        manifest = json.dumps({**facts, "files": listed}).encode()  # ASCII: a name need not be UTF-8
        member(MANIFEST, len(manifest), io.BytesIO(manifest))
    return len(listed)


@contextmanager
def _source(content: bytes | Path) -> Iterator[tuple[int, IO[bytes], str]]:
    """A member's size, bytes and SHA-256. Of a database that others write to, a copy of one moment."""
    if isinstance(content, bytes):
        yield len(content), io.BytesIO(content), hashlib.sha256(content).hexdigest()
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="memlane-backup-") as folder:  # 0700
        copy = os.path.join(folder, "copy.db")
        try:
            source = sqlite3.connect(f"file:{content}?mode=ro", uri=True, timeout=10)
            with closing(source), closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        except sqlite3.Error as error:
            raise StorageError(f"{content.name} cannot be read: {error}.", hint="Try again, or leave it out.") from None
        with open(copy, "rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
            data.seek(0)
            yield os.path.getsize(copy), data, digest


def unpack(path: str, state: Path) -> tuple[scratch.Scratch, dict[str, Any]]:
    """Unpack and verify an archive in a private folder; return it and the manifest.

    Raises NotFound, and InvalidInput for what is no archive of ours, damaged, too large, or names what lies elsewhere.
    """
    place = scratch.Scratch(state, "backup")
    try:
        return place, _verified(path, place.path)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, KeyError, TypeError) as error:
        place.remove()
        raise _damaged(str(error) or type(error).__name__) from None
    except FileNotFoundError:
        place.remove()
        raise NotFound(f"There is no file {os.path.basename(path)}.", hint="Give the path of a backup.") from None
    except OSError as error:
        place.remove()
        raise _damaged(error.strerror or str(error)) from None
    except BaseException:
        place.remove()
        raise


def _damaged(why: str) -> InvalidInput:
    return InvalidInput(f"This is no whole backup: {why.rstrip('.')}.", hint="Nothing was written. Use another copy.")


def _verified(path: str, folder: Path) -> dict[str, Any]:
    found: dict[str, tuple[int, str]] = {}
    manifest: dict[str, Any] = {}
    left = MAX_BYTES
    with gzip.open(path) as file, tarfile.open(fileobj=file, mode="r|") as tar:
        for member in tar:
            name = member.name
            if manifest or not member.isreg() or path_problem(name) or name in found:
                raise ValueError("it has a member that no backup has")
            if member.size > left or len(found) >= MAX_FILES:
                raise ValueError("it is too large")
            left -= member.size
            source = tar.extractfile(member)
            if source is None:
                raise ValueError("a member has no content")
            if name == MANIFEST:
                if member.size > _MAX_MANIFEST:
                    raise ValueError("its manifest is too large")
                manifest = json.loads(source.read())
            else:
                found[name] = (member.size, _extract(source, folder / name))
        while file.read(_CHUNK):  # to the checksum at the end of the file
            pass
    if not manifest:
        raise ValueError("its end is missing")
    if {row["name"]: (row["size"], row["sha256"]) for row in manifest["files"]} != found:
        raise ValueError("its content is not what it was when it was made")
    return manifest


def _extract(source: IO[bytes], target: Path) -> str:
    """Write a member, for its owner alone; return its SHA-256."""
    os.makedirs(target.parent, mode=0o700, exist_ok=True)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    digest = hashlib.sha256()
    with os.fdopen(fd, "wb") as out:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()


def place_database(source: Path, target: Path) -> None:
    """Copy a database to where there is none. Raises AlreadyExists, StorageError."""
    files.make_folder(os.fspath(target.parent), private=True)
    with files.storage(os.fspath(target)):
        try:
            fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise AlreadyExists(f"There is a {target.name} already.", hint="It is left as it is.") from None
        with os.fdopen(fd, "wb") as out, open(source, "rb") as data:
            while chunk := data.read(_CHUNK):
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        rooted.sync_folder(os.fspath(target.parent))


def move_folder(source: str, target: str) -> None:
    """Give a folder another name on the same disk, in one step. Raises AlreadyExists, InvalidInput, StorageError."""
    files.refuse_read_only(source)
    files.make_folder(os.path.dirname(target))
    if os.path.lexists(target) and not files.remove_folder(target):
        raise AlreadyExists(f"{target} is there already.", hint="Choose an empty place.")
    if os.stat(source).st_dev != os.stat(os.path.dirname(target)).st_dev:
        hint = "`memlane backup FILE` here, then `memlane restore-backup FILE FOLDER` there."
        raise InvalidInput("That folder is on another disk.", hint=hint)
    with files.storage(target):
        os.rename(source, target)
        for folder in {os.path.dirname(source), os.path.dirname(target)}:
            rooted.sync_folder(folder)
