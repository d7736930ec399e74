"""A folder as a remote: a mounted drive that several members write to, or a second disk.

    ROOT/BANK/5f/5f0c…/7/entry      the seventh version of a file: a line of JSON that describes it, then its content
    ROOT/BANK/new/…/entry           one that is being written

There are no locks, because a mounted drive's are not to be relied on, and because a killed writer would leave one
behind. A version is written as a folder of its own and renamed to its number: that happens in one step, and fails when
the number is taken, on every file system that keeps its promises (it is tried before the first write). Then the older
versions are removed, by whoever comes along if the writer was killed.

A number is free again once a later one is there, so that a writer who was stopped for long may still succeed in taking
an old one. Therefore each writer looks again after its rename: if there is a later version that does not name this one
among its last forerunners, it came too late.

The files belong to several users, and any of them may be hostile: nothing here follows a link, waits for a pipe, or
believes what an entry says of its size.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import quote

from memlane.core.errors import MemlaneError, StorageError
from memlane.core.waiting import side_by_side
from memlane.exchange.remotes import (
    Conflict,
    Entry,
    Looks,
    New,
    Seen,
    TooLarge,
    Unreachable,
    checked,
    conflict,
    emptied,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
_NEW = "new"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_HEX = re.compile(r"[0-9a-f]{32}")
_HEAD = 8192  # bytes that the description of an entry may take: a path of 700 bytes, escaped, and room
_MARKS = 64  # forerunners that an entry names; whoever is stopped while more are written is told that it came too late
_LOOK = 1.0  # seconds between two looks while somebody waits
_PAGE = 1000
_MOST_KNOWN = 20_000  # versions that are not read again; of those that somebody has made to be large, 150 MB
_LONGEST_MARK, _LONGEST_AUTHOR, _LONGEST_LINEAGE = 40, 200, 2000  # characters
_LEFT_BEHIND = 24 * 3600  # seconds after which what is being written was left by somebody who was killed


class _Version(NamedTuple):
    """One version of a file, as its entry describes it."""

    number: int
    marks: tuple[str, ...]  # a random word for this version, then those of the ones before it
    entry: Entry
    start: int  # where the content begins


class FolderRemote:
    """See `remotes.Remote`."""

    def __init__(self, root: str, bank: str) -> None:
        self.root = os.path.abspath(os.path.expanduser(root))
        self._bank = quote(bank, safe=" ")
        self._known: dict[tuple[str, int], _Version | None] = {}  # a version never changes
        self._contents: dict[Entry, bytes] = {}  # of what the last page lists: the short ones, read with their heads
        self._tried = False
        self._looks = Looks(_LOOK)

    # -- reading

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        seen = Seen()
        page: list[Entry] = []
        self._contents.clear()
        with self._reached(), self._folder(missing=cursor) as bank:
            same = cursor != "" and _cursor(bank) == cursor  # the numbers alone are looked at far more quickly
            for name, home, numbers in () if same else _files(bank):
                seen.add(name, str(max(numbers)))
                if len(numbers) > 1 or (name, max(numbers)) not in self._known:
                    self._looks_at(home, name, numbers)
                if found := self._known[name, max(numbers)]:
                    page.append(found.entry)
                if len(page) == _PAGE:
                    yield page, ""
                    page = []
                    self._contents.clear()
        if cursor and not same and not seen.cursor():
            raise emptied(self.root)
        if page:
            yield page, ""
        yield [], cursor if same else seen.cursor()

    def _looks_at(self, home: int, name: str, numbers: list[int]) -> None:
        """Know the last version of a file that has these, and tidy up."""
        last = _latest(home, name, numbers)
        if last and len(numbers) > 1:
            _remove_older(home, last[0])
        if last and len(last[1]) == last[0].entry.size:
            self._contents[last[0].entry] = last[1]
        self._knows(name, max(numbers), last[0] if last else None)

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        name = _name(path, scope)
        with self._reached(), self._folder() as bank:
            for _ in range(100):  # what we look at may be replaced and removed at that moment
                last = _latest_of(bank, name)
                if last is None:
                    return None
                found, data = last
                if found.entry.size > most:
                    raise TooLarge(f"{path} has {found.entry.size} bytes at the remote.", hint="Make it smaller there.")
                if len(data) == found.entry.size:
                    return found.entry, data
                with suppress(FileNotFoundError), _opened(bank, *_at(name, found.number), "entry") as fd:
                    return found.entry, _read(fd, found.start, found.entry.size)
        raise Unreachable(f"{path} is changing all the time at {self.root}.", hint="Try again later.")

    def get_many(self, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        def one(entry: Entry) -> tuple[Entry, bytes] | None:
            name = _name(entry.path, entry.scope)
            known = self._known.get((name, int(entry.version.partition("-")[0])))
            if known and known.entry == entry:
                with _passing_over_links(), _opened(bank, *_at(name, known.number), "entry") as fd:
                    return entry, _read(fd, known.start, entry.size)
            return None

        read = [(entry, self._contents[entry]) for entry in listed if entry in self._contents]
        left = [entry for entry in listed if entry not in self._contents]
        with self._reached(), self._folder() as bank:
            return [*read, *filter(None, side_by_side(one, left))]

    def watch(self, cursor: str, seconds: float) -> bool:
        return self._looks.until(lambda: self._cursor(missing=cursor) != cursor, seconds)

    def _cursor(self, missing: str) -> str:
        with self._reached(), self._folder(missing=missing) as bank:
            return _cursor(bank)

    def keeps_history(self) -> bool:
        return False

    def close(self) -> None:
        self._known.clear()
        self._contents.clear()

    # -- writing

    def put(self, path: str, data: bytes, expected: str | None, *, scope: str, author: str, lineage: str = "") -> str:
        return self._publish(path, data, expected, {"scope": scope, "author": author, "lineage": lineage})

    def put_many(self, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        def one(file: New) -> tuple[New, str] | None:
            with suppress(Conflict):
                return file, self.put(file.path, file.data, None, scope=file.scope, author=author, lineage=file.lineage)
            return None

        for first in new[:1]:  # the folder is made and tried before several threads use it
            yield from filter(None, [one(first)])
        yield from filter(None, side_by_side(one, new[1:]))

    def delete(self, path: str, expected: str, *, scope: str, author: str, lineage: str = "") -> str:
        return self._publish(path, None, expected, {"scope": scope, "author": author, "lineage": lineage})

    def _publish(self, path: str, data: bytes | None, expected: str | None, said: dict[str, str]) -> str:
        name = _name(path, said["scope"])
        with self._reached(), self._folder(missing=expected or "", make=True) as bank:
            mode = stat.S_IMODE(os.stat(self.root).st_mode)
            if not self._tried:
                _refuse_careless(bank, mode)
                self._tried = True
            with _made(bank, mode, *_at(name)) as home:
                # The number comes first: taken after a look at the latest version, it could pass over one that somebody
                # has published in between, and was told that it is there.
                number = max(_numbers(home), default=0) + 1
                if not _NUMBER.fullmatch(str(number)):  # somebody has taken the last one
                    raise conflict(path)
                before, _ = _latest(home, name) or (None, b"")
                if expected != (_version(before) if before else None):
                    raise conflict(path, _version(before) if before else None)
                mark = os.urandom(6).hex()
                marks = (mark, *(before.marks if before else ()))[: _MARKS + 1]
                described = {"path": path, **said, "deleted": data is None, "marks": marks}
                new = _written(bank, mode, json.dumps(described).encode() + b"\n" + (data or b""))
                try:
                    os.rename(f"{_NEW}/{new}", str(number), src_dir_fd=bank, dst_dir_fd=home)
                except OSError as error:
                    _remove(bank, f"{_NEW}/{new}")
                    if error.errno in _TAKEN:
                        raise conflict(path) from None
                    raise
                _sync(home)
                last, _ = _latest(home, name) or (None, b"")
                if last:
                    self._knows(name, last.number, last)
                    _remove_older(home, last)
                if last is None or mark not in last.marks:
                    raise conflict(path, _version(last) if last else None)
        return f"{number}-{mark}"

    def _knows(self, name: str, number: int, found: _Version | None) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name, number] = found

    # -- the folder

    @contextmanager
    def _folder(self, missing: str = "", make: bool = False) -> Iterator[int]:
        """The bank's folder. Where it should be because it has been seen before (`missing` is a cursor or a version),
        it is neither made nor taken for empty: the drive is not mounted, or somebody has removed it.
        """
        root = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)  # the user's own word, so that it may be a link
        try:
            if make and not missing:
                with suppress(FileExistsError):
                    os.mkdir(self._bank, dir_fd=root)
                    _give(self._bank, stat.S_IMODE(os.fstat(root).st_mode), root)
            try:
                bank = os.open(self._bank, _FOLDER, dir_fd=root)
            except FileNotFoundError:
                if missing:
                    raise emptied(self.root) from None
                bank = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)  # nothing is there yet
        finally:
            os.close(root)
        try:
            yield bank
        finally:
            os.close(bank)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unreached(error) from error

    def _unreached(self, error: OSError) -> MemlaneError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StorageError(f"{self.root} is full.", hint="Free some space there.", code="disk_full")
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return StorageError(
                f"No permission to use {self.root}.",
                hint="Everybody who shares it needs to read and write it: check its group and mode.",
                code="no_permission",
            )
        why = "it is not there" if error.errno == errno.ENOENT else error.strerror or str(error)
        return Unreachable(
            f"{self.root} cannot be reached: {why}.",
            hint="Mount the drive, or bring the folder back; where it is to be a new one, make it.",
        )


# -- names and numbers


def _name(path: str, scope: str) -> str:
    """What a file is called here: any path, on file systems that ignore case or know few characters."""
    return _named(checked("path", path), checked("scope", scope))


def _named(path: str, scope: str) -> str:
    return hashlib.sha256(f"{scope}\n{path}".encode()).hexdigest()[:32]


def _at(name: str, number: int | None = None) -> tuple[str, ...]:
    return (name[:2], name) if number is None else (name[:2], name, str(number))


def _version(found: _Version) -> str:
    return f"{found.number}-{found.marks[0]}"


def _files(bank: int) -> Iterator[tuple[str, int, list[int]]]:
    """Each file with its folder, open until the next one, and the numbers of its versions; by name."""
    for group in sorted(_names(bank)):
        if len(group) == 2:
            with _opened(bank, group) as folder:
                for name in sorted(_names(folder)):
                    if _HEX.fullmatch(name) and name[:2] == group:
                        home = os.open(name, _FOLDER, dir_fd=folder)
                        try:
                            if numbers := _numbers(home):
                                yield name, home, numbers
                        finally:
                            os.close(home)


def _cursor(bank: int) -> str:
    seen = Seen()
    for name, _, numbers in _files(bank):
        seen.add(name, str(max(numbers)))
    return seen.cursor()


def _numbers(home: int) -> list[int]:
    return [int(name) for name in _names(home) if _NUMBER.fullmatch(name)]


def _names(folder: int) -> list[str]:
    """The folders in a folder; none in what is not one."""
    try:
        with os.scandir(folder) as listing:
            return [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
    except NotADirectoryError:
        return []


# -- entries


def _latest_of(bank: int, name: str) -> tuple[_Version, bytes] | None:
    try:
        with _opened(bank, *_at(name)) as home:
            return _latest(home, name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _latest(home: int, name: str, numbers: Sequence[int] = ()) -> tuple[_Version, bytes] | None:
    """The last version that can be read, and its content as far as that lies beside its description. One that is
    damaged does not hide that the members have the file: they put it once more, under a later number.

    `numbers` are those of its versions, if the caller has looked just now.
    """
    before: list[int] = []
    for _ in range(100):  # what we look at may be replaced and removed at that moment
        there = sorted(numbers or _numbers(home), reverse=True)
        if there == before:
            break
        for number in there:
            with suppress(ValueError, RecursionError), _passing_over_links():
                found = _described(home, number)
                if _named(found[0].entry.path, found[0].entry.scope) == name:
                    return found
        before, numbers = there, ()
    return None


@contextmanager
def _passing_over_links() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO):
            raise


def _described(home: int, number: int) -> tuple[_Version, bytes]:
    """A version, and its content as far as one look at its description has it: nearly always all of it.

    Raises ValueError for what is not an entry, FileNotFoundError for one that was removed.
    """
    with _opened(home, str(number), "entry") as fd:
        info = os.fstat(fd)
        line, end, data = os.read(fd, _HEAD).partition(b"\n") if stat.S_ISREG(info.st_mode) else (b"", b"", b"")
    said = json.loads(line) if end else None
    if not isinstance(said, dict):
        raise ValueError("no description")
    path, scope, author, marks = (said.get(key) for key in ("path", "scope", "author", "marks"))
    if not (isinstance(path, str) and isinstance(scope, str) and isinstance(author, str) and isinstance(marks, list)):
        raise ValueError("not of the kinds that are expected")
    if not marks or not all(isinstance(mark, str) and len(mark) <= _LONGEST_MARK for mark in marks):
        raise ValueError("no marks")
    start = len(line) + 1
    checked("path", path), checked("scope", scope)  # InvalidInput is a ValueError
    version = f"{number}-{marks[0]}"
    author, lineage = author[:_LONGEST_AUTHOR], str(said.get("lineage", ""))[:_LONGEST_LINEAGE]
    entry = Entry(path, scope, version, info.st_size - start, said.get("deleted") is True, author, lineage)
    return _Version(number, tuple(marks[: _MARKS + 1]), entry, start), data


def _read(fd: int, start: int, size: int) -> bytes:
    os.lseek(fd, start, os.SEEK_SET)
    parts = []
    while size and (part := os.read(fd, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _written(bank: int, mode: int, content: bytes) -> str:
    """Write a new entry, durably; the name of its folder."""
    with _made(bank, mode, _NEW) as new:
        name = os.urandom(8).hex()
        os.mkdir(name, dir_fd=new)
        _give(name, mode, new)
        try:
            with _opened(new, name) as folder:
                fd = os.open("entry", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
                try:
                    with suppress(OSError):  # not every file system has modes
                        os.fchmod(fd, mode & 0o666)
                    view = memoryview(content)
                    while view:
                        view = view[os.write(fd, view) :]
                    os.fsync(fd)
                finally:
                    os.close(fd)
                _sync(folder)
        except BaseException:  # a drive that is full must not get fuller with every try
            _remove(new, name)
            raise
    return name


def _remove_older(home: int, last: _Version) -> None:
    for number in _numbers(home):
        if number < last.number:
            _remove(home, str(number))


def _remove_left_behind(new: int, now: float) -> None:
    """What killed writers left. The time is the drive's own: it has just been given to a folder."""
    for name in _names(new):
        with suppress(OSError):
            if now - os.stat(name, dir_fd=new, follow_symlinks=False).st_mtime > _LEFT_BEHIND:
                _remove(new, name)


def _remove(folder: int, name: str) -> None:
    """Remove a version. Whoever comes next tries again."""
    with suppress(OSError), _opened(folder, *name.split("/")) as at:
        os.unlink("entry", dir_fd=at)
    with suppress(OSError):
        os.rmdir(name, dir_fd=folder)


def _refuse_careless(bank: int, mode: int) -> None:
    """Raise StorageError where a rename replaces a folder that has something in it: there writes would be lost."""
    one, other = (_written(bank, mode, b"memlane tries whether a rename keeps what is there\n") for _ in "12")
    try:
        os.rename(f"{_NEW}/{one}", f"{_NEW}/{other}", src_dir_fd=bank, dst_dir_fd=bank)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        with _opened(bank, _NEW) as new:
            _remove_left_behind(new, os.stat(one, dir_fd=new).st_mtime)
    else:
        raise StorageError(
            "This folder lies on a file system that lets one writer overwrite another: memories would be lost.",
            hint="Share through another drive, PostgreSQL or an object store.",
            code="no_compare_and_swap",
        )
    finally:
        _remove(bank, f"{_NEW}/{one}")
        _remove(bank, f"{_NEW}/{other}")


# -- folders, without following a link


@contextmanager
def _opened(folder: int, *names: str) -> Iterator[int]:
    """A descriptor of what lies below an open folder; only an `entry` may be a file."""
    at = folder
    try:
        for name in names:
            above, at = at, os.open(name, _FILE if name == "entry" else _FOLDER, dir_fd=at)
            if above != folder:
                os.close(above)
        yield at
    finally:
        if at != folder:
            os.close(at)


@contextmanager
def _made(folder: int, mode: int, *names: str) -> Iterator[int]:
    """`_opened`, where what is missing is made, for whoever may use the shared folder itself."""
    at = os.dup(folder)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
                _give(name, mode, at)
                _sync(at)
            below = os.open(name, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _give(name: str, mode: int, folder: int) -> None:
    with suppress(OSError):  # not every file system has modes
        os.chmod(name, mode, dir_fd=folder)


def _sync(folder: int) -> None:
    with suppress(OSError):  # not every file system can sync a folder
        os.fsync(folder)
