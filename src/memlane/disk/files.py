"""Files of a bank: reading, durable writing, locks, walking. Does not know what is in a file.

A call that writes returns only when the bytes and the name are on stable storage, so that an acknowledged write
survives kill -9 and loss of power. A file has either its old content or its new one, never a part of it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Problem
from memlane.disk.names import STRAY, is_stray

try:
    import fcntl
except ImportError:
    raise ImportError("memlane runs on Linux and macOS; on Windows, use it inside WSL.") from None

MAX_BYTES = 10 * 1024 * 1024
LEFT_OVER = 3600.0  # seconds after which nobody is still writing a temporary file
TEMP_PREFIX, TEMP_SUFFIX = ".memlane-", ".tmp"
_IGNORED_FOLDERS = frozenset({"indices"})
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # the file system has no hard links


class Witness(Protocol):
    """Is told of every change before it is made, and may raise to prevent it."""

    def changing(self, path: str, data: bytes | None) -> None:
        """The file is about to get this content; None: to be deleted."""

    def moving(self, source: str, target: str) -> None: ...

    def appending(self, path: str, data: bytes) -> None: ...


witness: ContextVar[Witness | None] = ContextVar("witness", default=None)  # of this thread; see memlane.history.undo


# -- reading


def read_bytes(path: str) -> bytes:
    """The whole file. Raises OSError, and StorageError above MAX_BYTES."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EISDIR, "not a regular file", path)
        if info.st_size > MAX_BYTES:
            raise StorageError(
                f"The file has {info.st_size:,} bytes; {MAX_BYTES:,} are read.", hint="Split it into several."
            )
        chunks = []
        while chunk := os.read(fd, max(info.st_size + 1, 65536)):
            chunks.append(chunk)
            if len(chunk) <= info.st_size:
                break  # a short read is the end of a regular file
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(fd)


def read_text(path: str) -> str:
    """The file as text, line ends and byte order mark as they are. Raises OSError, StorageError, UnicodeDecodeError."""
    return read_bytes(path).decode()


def size_of(path: str) -> int:
    """The file's size; 0 when it has just gone."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def unreadable(path: str, error: Exception) -> Problem:
    """The Problem to report for a file that could not be read."""
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return Problem(Path(path), "is not UTF-8 text; save it as UTF-8", line)
    if isinstance(error, OSError):
        why = "is not a file" if error.errno == errno.EISDIR else (error.strerror or "cannot be read")
        return Problem(Path(path), why)
    return Problem(Path(path), str(error))


def encoded(text: str) -> bytes:
    """The text as UTF-8. Raises InvalidInput for NUL, lone surrogates, or more than MAX_BYTES."""
    if "\0" in text:
        raise InvalidInput("The text contains a NUL character.", hint="Store text, not binary data.")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The text is not valid Unicode.", hint="Decode it as UTF-8 first.") from None
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"The text has {len(data):,} bytes; {MAX_BYTES:,} are allowed.",
            hint="Split it, or store a summary.",
        )
    return data


# -- writing


_read_only: dict[str, MemlaneError] = {}  # folders that nothing may be written below, and what to say


def set_read_only(folder: str | Path, why: MemlaneError | None) -> None:
    """Refuse every write below a folder with this error, in this process; with None, allow them again."""
    if why is None:
        _read_only.pop(os.fspath(folder), None)
    else:
        _read_only[os.fspath(folder)] = why


def _refuse_read_only(path: str) -> None:
    for folder, why in _read_only.items():
        if path == folder or path.startswith(folder + os.sep):
            raise why


def create(path: str, data: bytes) -> None:
    """Make a new file. Raises AlreadyExists, and never replaces, even if somebody else makes it at the same moment.

    A hard link gives the finished file its name, in one step that fails when the name is taken. Where the system can
    write a file without a name, a killed writer leaves nothing behind.
    """
    _refuse_read_only(path)
    if (told := witness.get()) and not os.path.lexists(path):
        told.changing(path, data)
    with storage(path):
        folder = _make_folders(os.path.dirname(path))
        if not _create_from_nameless(path, folder, data):
            _create_from_temp(path, folder, data)
            sync_folder(folder)


def _create_from_nameless(path: str, folder: str, data: bytes) -> bool:
    """Linux: O_TMPFILE, then a link through /proc. False where the file system or the machine does not support it."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    with opened(folder, os.O_RDONLY) as at:
        try:
            fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                return False
            raise
        try:
            _write(fd, data)
            # naming src_dir_fd makes Python call linkat() so that it follows the link in /proc
            os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=at)
        except FileExistsError:
            raise _taken(path) from None
        except OSError as error:
            if error.errno in (*NO_LINKS, errno.ENOENT, errno.EXDEV):
                return False
            raise
        finally:
            os.close(fd)
        os.fsync(at)
        return True


def _create_from_temp(path: str, folder: str, data: bytes) -> None:
    temp = write_temp(folder, data)
    try:
        os.link(temp, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _take_name(path)
        os.replace(temp, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temp)


def _taken(path: str, hint: str = "Choose another name, or update the existing one.") -> AlreadyExists:
    return AlreadyExists(f"The file already exists: {os.path.basename(path)}", hint=hint)


def _take_name(path: str) -> None:
    """Reserve a name where the file system has no hard links, by an empty file that the real one then replaces."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    except FileExistsError:
        raise _taken(path) from None


def replace(path: str, data: bytes) -> None:
    """Write a file's whole content: temporary file in the same folder, fsync, rename, fsync of the folder."""
    _refuse_read_only(path)
    with storage(path):
        path = os.path.realpath(path)  # a link stays a link; the file it names is replaced
        if told := witness.get():
            told.changing(path, data)
        folder = _make_folders(os.path.dirname(path))
        mode = None
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(path).st_mode)
        temp = write_temp(folder, data, mode)
        try:
            os.replace(temp, path)
        except BaseException:
            with suppress(FileNotFoundError):  # gone when Ctrl-C came just after the rename
                os.unlink(temp)
            raise
        sync_folder(folder)


def append_lines(path: str, data: bytes) -> None:
    """Append whole lines with one write(), then fsync. Needs no lock. A torn last line gets its line end first.

    When the file was replaced meanwhile (compaction), the lines are appended to the new file as well.
    """
    _refuse_read_only(path)
    if told := witness.get():
        told.appending(path, data)
    with storage(path):
        folder = _make_folders(os.path.dirname(path))
        while True:
            with opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
                before = os.fstat(fd)
                torn = before.st_size > 0 and os.pread(fd, 1, before.st_size - 1) != b"\n"
                line = b"\n" + data if torn else data
                written = os.write(fd, line)
                if written != len(line):
                    _blank(path, fd, written)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
                _sync(fd)
                if before.st_size == 0:
                    sync_folder(folder)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(fd), os.stat(path)):
                        return


def _blank(path: str, fd: int, count: int) -> None:
    """Overwrite with spaces the part of an append that a full disk took.

    That needs no new room. Truncating the file instead could cut off a line that somebody else appends right now. A
    kill before this is done leaves a torn line, which readers report.
    """
    end = os.lseek(fd, 0, os.SEEK_CUR)
    with (
        suppress(OSError),
        opened(path, os.O_WRONLY) as over,
    ):  # through fd, with O_APPEND, Linux would write at the end
        if os.path.samestat(os.fstat(over), os.fstat(fd)):
            os.pwrite(over, b" " * count, end - count)
            _sync(over)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the file's lock for a read-modify-write. Raises NotFound when there is no such file.

    The lock is on the file itself, so there is nothing to clean up, and a killed holder frees it. A holder replaces
    the file; whoever waited on the old one sees that the name now means another file, and waits again.
    """
    while True:
        with storage(path):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                raise NotFound(f"There is no file {os.path.basename(path)}.") from None
        try:
            with storage(path):
                fcntl.flock(fd, fcntl.LOCK_EX)
                try:
                    current = os.path.samestat(os.fstat(fd), os.stat(path))
                except FileNotFoundError:
                    current = False
            if current:
                yield
                return
        finally:
            os.close(fd)


def move(source: str, target: str) -> None:
    """Move a file to a free name. Raises AlreadyExists or NotFound; a kill in between leaves it at both names."""
    _refuse_read_only(source)
    _refuse_read_only(target)
    if told := witness.get():
        told.moving(source, target)
    with storage(source):
        folder = _make_folders(os.path.dirname(target))
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError:
            raise _taken(target, "Rename or delete the one that is there first.") from None
        except FileNotFoundError:
            raise NotFound(f"There is no file {os.path.basename(source)}.") from None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            _take_name(target)
            os.replace(source, target)
        else:
            with suppress(FileNotFoundError):
                os.unlink(source)
        sync_folder(folder)
        sync_folder(os.path.dirname(source))


def remove(path: str) -> None:
    """Delete a file whose content is safe elsewhere. No error when it is already gone."""
    _refuse_read_only(path)
    if told := witness.get():
        told.changing(path, None)
    with storage(path), suppress(FileNotFoundError):
        os.unlink(path)
        sync_folder(os.path.dirname(path))


def make_folder(path: str, *, private: bool = False) -> None:
    """mkdir -p, on stable storage when it returns. With `private`, only its owner may open a new folder."""
    _refuse_read_only(path)
    with storage(path):
        if not os.path.isdir(_make_folders(path, 0o700 if private else 0o777)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


# -- walking


def walk(root: str | Path, suffix: str = ".md", skip: Sequence[str] = ()) -> Iterator[str | Problem]:
    """Every file with this suffix below root, by name, and a Problem for each that looks like one but is not read.

    Hidden folders (.git, .trash), `indices` and the folders in `skip` are passed over. Links are followed
    only to files inside root.
    """
    pending = [os.fspath(root)]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield unreadable(folder, error)
            continue
        folders = []
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                if name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX):
                    yield from _left_over(entry)
                elif name.endswith(suffix) and not name.startswith(".#") and entry.is_file():
                    yield Problem(Path(entry.path), "is hidden and not read; rename it without the leading dot")
            elif entry.is_symlink():
                yield from _linked(entry, suffix, root)
            elif entry.is_dir():
                if name.endswith(suffix):
                    yield Problem(Path(entry.path), "is a folder where a file is expected")
                elif name not in _IGNORED_FOLDERS and entry.path not in skip:
                    folders.append(entry.path)
            elif name.endswith(suffix):
                yield entry.path if entry.path.isascii() else _in_utf8(entry.path)
        pending.extend(reversed(folders))


def _in_utf8(path: str) -> str | Problem:
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        return Problem(Path(shown), "has a name that is not UTF-8 and is not read; rename it")
    return path


def _left_over(entry: os.DirEntry[str]) -> Iterator[Problem]:
    """A temporary file whose writer was killed before he could rename it."""
    with suppress(OSError):
        if time.time() - entry.stat().st_mtime > LEFT_OVER:
            yield Problem(Path(entry.path), "was left by an interrupted write that was never acknowledged; delete it")


def _linked(entry: os.DirEntry[str], suffix: str, root: str | Path) -> Iterator[str | Problem]:
    if is_stray(entry.path, root):
        yield Problem(Path(entry.path), STRAY)
    elif entry.name.endswith(suffix):
        yield entry.path if os.path.isfile(entry.path) else Problem(Path(entry.path), "is a link to nothing")


# -- errors, temporary files, fsync


@contextmanager
def storage(path: str) -> Iterator[None]:
    """Turn an OSError into a StorageError or InvalidInput with a next step."""
    try:
        yield
    except OSError as error:
        name = os.path.basename(path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"The disk is full: {name} was not written.",
                hint="Free some space, then try again.",
                code="disk_full",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                f"No permission to write {name}.",
                hint="Check the owner and mode of the bank's folder.",
                code="no_permission",
            ) from error
        if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY):
            raise StorageError(
                f"{name} cannot be written: a folder stands where a file is expected, or a file where a folder is.",
                hint="Move it out of the way.",
            ) from error
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidInput("The name is too long for this file system.", hint="Choose a shorter name.") from error
        raise StorageError(f"{name}: {error.strerror or error}.", hint="Check the disk.") from error


@contextmanager
def opened(path: str, flags: int) -> Iterator[int]:
    """An open file descriptor, closed at the end. Raises OSError."""
    fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        yield fd
    finally:
        os.close(fd)


def write_temp(folder: str, data: bytes, mode: int | None = None) -> str:
    """Write a temporary file, durably, and return its path; the caller renames or removes it."""
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}{TEMP_SUFFIX}")
    with opened(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
        try:
            if mode is not None:
                os.fchmod(fd, mode)
            _write(fd, data)
        except BaseException:
            os.unlink(temp)
            raise
    return temp


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    _sync(fd)


def _sync(fd: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
    if full is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, full)


def sync_folder(folder: str) -> None:
    """Bring the names in a folder to stable storage."""
    with opened(folder, os.O_RDONLY) as fd:
        os.fsync(fd)


def _make_folders(folder: str, mode: int = 0o777) -> str:
    """mkdir -p that syncs the parent of each new folder; `mode` is for the last one. Returns the folder."""
    if not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent != folder:
            _make_folders(parent)
        with suppress(FileExistsError):
            os.mkdir(folder, mode)
            sync_folder(parent)
    return folder
