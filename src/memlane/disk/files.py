"""Files of a bank: reading, durable writing, locks, walking. Does not know what is in a file.

A call that writes returns only when the bytes and the name are on stable storage, so that an acknowledged write
survives kill -9 and loss of power. A file has either its old content or its new one, never a part of it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Problem
from memlane.disk import journal, locks, renaming, rooted, written
from memlane.disk.names import STRAY
from memlane.disk.rooted import Stray, opened, sync_folder
from memlane.disk.rooted import names_in as names_in
from memlane.disk.rooted import real as real
from memlane.disk.rooted import take_root as take_root

try:
    import fcntl
except ImportError:
    raise ImportError("memlane runs on Linux and macOS; on Windows, use it inside WSL.") from None

MAX_BYTES = 10 * 1024 * 1024  # of a memory
MAX_LOG_BYTES = 128 * 1024 * 1024  # of an append-only file of lines
MAX_SIDE_BYTES = 1024 * 1024  # of a configuration and the like
LEFT_OVER = 3600.0  # seconds after which nobody is still writing a temporary file
TEMP_PREFIX, TEMP_SUFFIX = ".memlane-", ".tmp"
NO_LINKS = renaming.NO_LINKS


# -- reading


def read_bytes(path: str, limit: int | None = None) -> bytes:
    """The whole file. Raises OSError, and StorageError above the limit (MAX_BYTES) or for a file of another user."""
    limit = MAX_BYTES if limit is None else limit
    fd, info = rooted.open_file(path, os.O_RDONLY)
    try:
        refuse_size(info.st_size, limit)
        chunks = []
        size = 0
        while chunk := os.read(fd, max(info.st_size + 1, 65536)):
            chunks.append(chunk)
            size += len(chunk)
            if len(chunk) <= info.st_size:
                break  # a short read is the end of a regular file
            refuse_size(size, limit)  # it grows as we read
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(fd)


def refuse_size(size: int, limit: int) -> None:
    """Raise StorageError above the limit."""
    if size > limit:
        raise StorageError(f"The file has {size:,} bytes; {limit:,} are read.", hint="Split it into several.")


def read_text(path: str, limit: int | None = None) -> str:
    """The file as text, line ends and byte order mark as they are. Raises OSError, StorageError, UnicodeDecodeError."""
    return read_bytes(path, limit).decode()


def beginning(path: str, size: int) -> bytes:
    """The first bytes of a file of any size. Raises OSError, StorageError."""
    with opened(path, os.O_RDONLY) as fd:
        return os.read(fd, size)


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
    if isinstance(error, Stray):
        return Problem(Path(path), STRAY)
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


# Asked before this thread changes a file, with its new content where it gets one as a whole: may refuse it.
on_write: ContextVar[Callable[[str, bytes | None], None] | None] = ContextVar("on_write", default=None)
_read_only: dict[str, MemlaneError] = {}  # folders that nothing may be written below, and what to say


def set_read_only(folder: str | Path, why: MemlaneError | None) -> None:
    """Refuse every write below a folder with this error, in this process; with None, allow them again."""
    for path in {os.fspath(folder), os.path.realpath(folder)}:  # some callers work on real paths
        if why is None:
            _read_only.pop(path, None)
        else:
            _read_only[path] = why


def refuse_read_only(path: str, data: bytes | None = None) -> None:
    """Raise what `set_read_only` was given for a folder that this path is in, and what `on_write` raises."""
    for folder, why in _read_only.items():
        if path == folder or path.startswith(folder + os.sep):
            raise why
    if (check := on_write.get()) is not None:
        check(path, data)


def create(path: str, data: bytes, *, ahead: Callable[[], None] = lambda: None) -> None:
    """Make a new file. Raises AlreadyExists, and never replaces, even if somebody else makes it at the same moment.

    A hard link gives the finished file its name, in one step that fails when the name is taken. Where the system can
    write a file without a name, a killed writer leaves nothing behind. `ahead` is called when the content is on the
    disk, before it gets its name: for what has to be known of the file as soon as anybody sees it.
    """
    refuse_read_only(path, data)
    with storage(path), rooted.parent(path, make=True) as (at, name):
        if os.path.lexists(path):
            raise _taken(name)
        if not _create_from_nameless(path, at, name, data, ahead):
            _create_from_temp(path, at, name, data, ahead)
        with in_place(path):
            os.fsync(at)
    if written.notes(path):
        written.note_file(path, data, None)


def _create_from_nameless(path: str, at: int, name: str, data: bytes, ahead: Callable[[], None]) -> bool:
    """False where the file system or the machine does not support it."""
    fd = nameless(at)
    if fd is None:
        return False
    try:
        write(fd, data)
        sync(fd)
        ahead()
        with journal.writing(path, None, data):
            give_name(fd, at, name)
    except FileExistsError:
        raise _taken(name) from None
    except OSError as error:
        if error.errno in (*NO_LINKS, errno.ENOENT, errno.EXDEV):
            return False
        raise
    finally:
        os.close(fd)
    return True


def nameless(at: int) -> int | None:
    """A new file without a name in an open folder, which the caller closes; None where the system has none: it is
    Linux that does (O_TMPFILE).
    """
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise


def give_name(fd: int, at: int, name: str) -> None:
    """Give a nameless file a free name in its folder, through /proc. Raises OSError."""
    # naming src_dir_fd makes Python call linkat() so that it follows the link in /proc
    os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=at, dst_dir_fd=at)


def _create_from_temp(path: str, at: int, name: str, data: bytes, ahead: Callable[[], None]) -> None:
    temp = write_temp(at, data)
    try:
        ahead()
        with journal.writing(path, None, data):
            try:
                os.link(temp, name, src_dir_fd=at, dst_dir_fd=at)
            except FileExistsError:
                raise _taken(name) from None
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                _take_name(at, name)
                os.replace(temp, name, src_dir_fd=at, dst_dir_fd=at)
    finally:
        unlink(at, temp)


def _taken(name: str, hint: str = "Choose another name, or update the existing one.") -> AlreadyExists:
    return AlreadyExists(f"The file already exists: {name}", hint=hint)


def _take_name(at: int, name: str) -> None:
    """Reserve a name where the file system has no hard links, by an empty file that the real one then replaces."""
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=at))
    except FileExistsError:
        raise _taken(name) from None


def replace(path: str, data: bytes) -> None:
    """Write a file's whole content: temporary file in the same folder, fsync, rename, fsync of the folder."""
    refuse_read_only(path, data)
    with storage(path):
        path = rooted.real(path)  # a link stays a link; the file it names is replaced
        with rooted.parent(path, make=True) as (at, name):
            before = rooted.refuse_foreign(at, name, path)
            noted = written.notes(path)
            content = _content(path) if before and (noted or journal.records(path)) else None
            temp = write_temp(at, data, stat.S_IMODE(before.st_mode) if before else None)
            try:
                with journal.writing(path, content, data):
                    os.replace(temp, name, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                unlink(at, temp)  # gone when Ctrl-C came just after the rename
                raise
            with in_place(path):
                os.fsync(at)
        if noted:
            written.note_file(path, data, content)


def _content(path: str) -> bytes:
    try:
        return read_bytes(path, MAX_LOG_BYTES)
    except (OSError, StorageError):  # whatever it is, nobody here wrote it
        return b""


def append_lines(path: str, data: bytes) -> None:
    """Append whole lines with one write(), then fsync. Needs no lock. A torn last line gets its line end first.

    When the file was replaced meanwhile (compaction), the lines are appended to the new file as well. Raises
    StorageError when the file would get larger than MAX_LOG_BYTES, which nobody could read any more.
    """
    refuse_read_only(path)
    with storage(path):
        path = rooted.real(path)
        make_folder(os.path.dirname(path))
        while True:
            with opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
                before = os.fstat(fd)
                if before.st_size + len(data) >= MAX_LOG_BYTES:
                    raise StorageError(
                        f"{os.path.basename(path)} is full: {MAX_LOG_BYTES:,} bytes are allowed.",
                        hint="Compact it, or move old lines to another file.",
                    )
                torn = before.st_size > 0 and os.pread(fd, 1, before.st_size - 1) != b"\n"
                line = b"\n" + data if torn else data
                with journal.appending(path, fd, before.st_size, line):
                    taken = os.write(fd, line)
                    if taken != len(line):
                        _blank(path, fd, taken)
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
                with in_place(path):
                    sync(fd)
                    if before.st_size == 0:
                        sync_folder(os.path.dirname(path))
                if is_at(fd, path):
                    break
    written.note_lines(path, data)


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
            sync(over)


@contextmanager
def locked(path: str, wait: float | None = None) -> Iterator[None]:
    """Hold the lock of a file or folder for a read-modify-write.

    The lock is on the file itself, so there is nothing to clean up, and a killed holder frees it. A holder replaces
    the file; whoever waited on the old one sees that the name now means another file, and waits again. Raises NotFound
    when there is no such file, and Busy when the lock is not free within `wait` seconds (locks.patience).
    Whoever wants to see the file before it is changed sets `locks.once_locked`, which may raise.
    """
    deadline = locks.deadline(wait)
    while True:
        with storage(path):
            try:
                fd, _ = rooted.open_file(path, os.O_RDONLY, or_folder=True)
            except FileNotFoundError:
                raise NotFound(f"There is no file {os.path.basename(path)}.") from None
        try:
            with storage(path):
                locks.take(fd, path, deadline)
                current = is_at(fd, path)
            if current:
                if look := locks.once_locked.get():
                    look(path)
                yield
                return
        finally:
            os.close(fd)


def is_at(fd: int, path: str) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def move(source: str, target: str) -> None:
    """Move a file to a free name. Raises AlreadyExists or NotFound.

    What is moved is whatever has the name at that moment: a save in between is moved too, and not lost.
    """
    refuse_read_only(source)
    refuse_read_only(target)
    with (
        storage(source),
        rooted.parent(target, make=True) as (there, new),
        _parent_of_existing(source) as (here, old),
    ):
        data = _content(source) if journal.records(source) or journal.records(target) else b""
        try:
            with journal.moving(source, target, data):
                renaming.to_free_name(here, old, there, new)
        except FileExistsError:
            raise _taken(new, "Rename or delete the one that is there first.") from None
        except FileNotFoundError:
            raise _gone(old) from None
        with in_place(source, "moved"):
            os.fsync(there)
            os.fsync(here)


@contextmanager
def _parent_of_existing(path: str) -> Iterator[tuple[int, str]]:
    try:
        at = rooted.open_folder(os.path.dirname(path))
    except FileNotFoundError:
        raise _gone(path) from None
    try:
        yield at, os.path.basename(path)
    finally:
        os.close(at)


def _gone(path: str) -> NotFound:
    return NotFound(f"There is no file {os.path.basename(path)}.")


def remove(path: str) -> None:
    """Delete a file whose content is safe elsewhere; of a link, the link itself. No error when it is already gone."""
    refuse_read_only(path)
    with storage(path), suppress(FileNotFoundError), rooted.parent(path) as (at, name):
        data = _content(path) if journal.records(path) and os.path.lexists(path) else None
        with journal.writing(path, data, None):
            os.unlink(name, dir_fd=at)
        with in_place(path, "deleted"):
            os.fsync(at)


def remove_folder(path: str) -> bool:
    """Delete a folder if it is empty; whether it is gone."""
    with suppress(OSError, StorageError), rooted.parent(path) as (at, name):
        os.rmdir(name, dir_fd=at)
        return True
    return False


def change_mode(path: str, add: int, take: int) -> None:
    """chmod: add these bits, and for a folder the right to enter it with them, then take those away.

    Raises StorageError, also for a link: what it names is not ours to change.
    """
    with storage(path), rooted.parent(path) as (at, name):
        fd = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            info = os.fstat(fd)
            if stat.S_ISLNK(info.st_mode):
                raise Stray(path)
            enter = stat.S_IXUSR if stat.S_ISDIR(info.st_mode) and add else 0
            mode = (stat.S_IMODE(info.st_mode) | add | enter) & ~take
            os.chmod(f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else fd, mode)
        finally:
            os.close(fd)


def make_folder(path: str, *, private: bool = False) -> None:
    """mkdir -p, on stable storage when it returns. With `private`, only its owner may open a new folder."""
    refuse_read_only(path)
    with storage(path), rooted.folder(path, 0o700 if private else 0o777):
        pass


# -- walking


def tree(folder: str | Path, *, links: bool = False, skip: Collection[str] = ()) -> Iterator[str]:
    """Every regular file below a folder, by name, hidden ones too. No folder, no files.

    No link is followed; with `links`, their own names are among the files. Folders of the names in `skip` are left out.
    """
    pending = [os.fspath(folder)]
    while pending:
        place = pending.pop()
        found: list[tuple[str, bool]] = []
        with suppress(OSError, StorageError), rooted.folder(place) as at, os.scandir(at) as listing:
            for entry in listing:
                is_file = entry.is_file(follow_symlinks=False) or (links and entry.is_symlink())
                is_folder = entry.is_dir(follow_symlinks=False) and entry.name not in skip
                if is_file or is_folder:
                    found.append((os.path.join(place, entry.name), is_folder))
        found.sort()
        yield from (path for path, is_folder in found if not is_folder)
        pending.extend(path for path, is_folder in reversed(found) if is_folder)


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
def in_place(path: str, done: str = "written") -> Iterator[None]:
    """The change is made and has yet to reach the disk: an OSError must not make anybody do it once more."""
    try:
        yield
    except OSError as error:
        name, why = os.path.basename(path), error.strerror or error
        raise StorageError(
            f"{name} was {done}, but that may not survive a loss of power: {why}.",
            hint="Check the disk. Do not do it again: it is done.",
            code="not_durable",
        ) from error


def write_temp(at: int, data: bytes, mode: int | None = None) -> str:
    """Write a temporary file into an open folder, durably; return its name, for the caller to rename or remove."""
    temp = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}{TEMP_SUFFIX}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=at)
    try:
        if mode is not None:
            os.fchmod(fd, mode)
        write(fd, data)
        sync(fd)
    except BaseException:
        os.unlink(temp, dir_fd=at)
        raise
    finally:
        os.close(fd)
    return temp


def unlink(at: int, name: str) -> None:
    """Delete a name in an open folder, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=at)


def write(fd: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync(fd: int) -> None:
    """Bring an open file to stable storage. Raises OSError."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
    if full is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, full)
