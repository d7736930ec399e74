"""Finding a lane's files: all of them, those of one folder, or only those that are not known yet."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import cast

from memlane.core.errors import StorageError
from memlane.core.model import Problem
from memlane.disk import files, rooted
from memlane.disk.names import STRAY, is_stray, is_utf8

TICK, COARSE = 50_000_000, 2_000_000_000  # ns; file systems tell times apart that are this far from each other
JUST_NOW = (-1, -1)
# What is compared to tell whether a file has changed: size, mtime, ctime, which no program can set at will, and its
# number: files that were written at one moment have the same times, and a folder may take the place of another.
Stamp = tuple[int, int, int, int]
PACKED, PACKED_SIZE = "4q", 32  # how a stamp lies among bytes, and how many it takes
_IGNORED_FOLDERS = frozenset({"indices"})


def is_settled(changed: int, looked: int) -> bool:
    """Whether what is changed after a look gets another time than what was changed then; both in nanoseconds."""
    return changed + (TICK if changed % 10**9 else COARSE) < looked


def something_in(folder: str) -> str:
    """The path of anything in a folder; "" where there is none, or no such folder."""
    try:
        with os.scandir(folder) as entries:
            found = next(entries, None)
            return found.path if found else ""
    except OSError:
        return ""


def folder_state(folder: str | Path) -> tuple[int, int]:
    """What is another one when a file came into a folder or left it, or another folder took its place. Raises OSError.

    Its number and its ctime: programs can put back the mtime, and those that unpack or copy do. Of a folder that was
    changed just now, JUST_NOW, which none has: it may change again without its time showing it.
    """
    looked = time.time_ns()
    info = os.stat(folder)
    return (info.st_ino, info.st_ctime_ns) if is_settled(info.st_ctime_ns, looked) else JUST_NOW


class Stamps:
    """Size, mtime, ctime and number of the files in a folder, by name.

    Those that an earlier process has kept stay packed, four numbers a file, until one is asked for by its name. A look
    that finds all files as they were, as nearly every one does, needs no dictionary of them.
    """

    def __init__(self, known: dict[str, Stamp], names: Sequence[str] = (), packed: bytes | memoryview = b"") -> None:
        self._known, self._names, self._packed = known, names, packed

    @property
    def known(self) -> dict[str, Stamp]:
        if self._packed:
            self._known = dict(zip(self._names, self._unpacked(), strict=True))
            self._names, self._packed = (), b""
        return self._known

    def packed(self) -> tuple[Sequence[str], bytes | memoryview]:
        """The names of the files, and their stamps as they are kept. Raises OverflowError."""
        if self._packed:
            return self._names, self._packed
        from array import array

        return list(self._known), array("q", chain.from_iterable(self._known.values())).tobytes()

    def altered(self, folder: str) -> list[str]:
        """The names of those files that have another size, mtime, ctime or number by now, or are gone.

        By way of the open folder, which takes two thirds of the time that whole paths take. Raises OSError.
        """
        found, state = [], os.stat
        kept = zip(self._names, self._unpacked(), strict=True) if self._packed else self._known.items()
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name, before in kept:  # a loop, since this is most of the time that a search takes
                try:
                    info = state(name, dir_fd=at)
                except FileNotFoundError:
                    found.append(name)
                    continue
                if (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino) != before:
                    found.append(name)
        finally:
            os.close(at)
        return found

    def __contains__(self, name: str) -> bool:
        return name in (self._names if self._packed else self._known)

    def __len__(self) -> int:
        return len(self._names if self._packed else self._known)

    def without(self, name: str) -> Stamps:
        """The stamps of the other files."""
        if not self._packed:
            return Stamps({other: stamp for other, stamp in self._known.items() if other != name})
        at = self._names.index(name)
        start, end = at * PACKED_SIZE, (at + 1) * PACKED_SIZE
        packed = b"".join((self._packed[:start], self._packed[end:]))
        return Stamps({}, [*self._names[:at], *self._names[at + 1 :]], packed)

    def _unpacked(self) -> Iterable[Stamp]:
        from struct import iter_unpack

        return cast("Iterable[Stamp]", iter_unpack(PACKED, self._packed))


class Known:
    """Names of files by folder. A folder that has not changed since it had no others is not listed again."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._states: dict[str, tuple[int, int]] = {}  # of each folder, before it was listed
        self._below: dict[str, list[str]] = {}  # the folders in each that had no other files

    def put(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._names.setdefault(folder, set()).add(name)

    def names(self, folder: str) -> Collection[str]:
        return self._names.get(folder, ())

    def below(self, folder: str) -> list[str] | None:
        """The folders in one that still has no other files; None where it has to be listed."""
        try:
            state = folder_state(folder)
        except OSError:
            return None
        if state == self._states.get(folder) != JUST_NOW and folder in self._below:
            return self._below[folder]
        self._below.pop(folder, None)
        self._states[folder] = state
        return None

    def settle(self, folder: str, folders: list[str]) -> None:
        """A folder was listed, and has no other files."""
        self._below[folder] = folders


def walk(
    root: str | Path, suffix: str = ".md", skip: Sequence[str] = (), known: Known | None = None
) -> Iterator[str | Problem]:
    """Every file with this suffix below root, by name, and a Problem for each that looks like one but is not read.

    Hidden folders (.git, .trash), `indices` and the folders in `skip` are passed over, and what is `known` in a folder.
    Links are followed only to files inside root.
    """
    pending = [os.fspath(root)]
    while pending:
        folder = pending.pop()
        if known is not None and (below := known.below(folder)) is not None:
            pending.extend(reversed(below))
            continue
        found, folders = walk_one(folder, root, suffix, skip, known.names(folder) if known else ())
        yield from found
        if known is not None and not found:
            known.settle(folder, folders)
        pending.extend(reversed(folders))


def walk_one(
    folder: str,
    root: str | Path,
    suffix: str = ".md",
    skip: Sequence[str] = (),
    passed: Collection[str] = (),
    names: Collection[str] | None = None,
) -> tuple[list[str | Problem], list[str]]:
    """What `walk` finds in one folder, without what is `passed`, and the folders in it that it goes on with.

    With `names`, the files of these names may be all that is looked at.
    """
    if names is not None and (named := _plain(folder, names, suffix)) is not None:
        return named, []
    found: list[str | Problem] = []
    folders: list[str] = []
    plain: list[str] = []  # nearly all, so nothing else is asked about them
    in_ascii = folder.isascii()
    others: dict[str, os.DirEntry[str]] = {}
    try:
        with rooted.folder(folder) as at, os.scandir(at) as listing:
            for entry in listing:
                if (name := entry.name) in passed:
                    continue
                usual = name.endswith(suffix) and name[0] != "." and name.isascii() and in_ascii
                if usual and entry.is_file(follow_symlinks=False):
                    plain.append(name)
                else:
                    others[name] = entry
            for name in sorted([*plain, *others]):
                path = f"{folder}/{name}"
                if name not in others:
                    found.append(path)
                elif name.startswith(".") or not others[name].is_dir(follow_symlinks=False):
                    found += _looked_at(others[name], path, suffix, root)
                elif name.endswith(suffix):
                    found.append(Problem(Path(path), "is a folder where a file is expected"))
                elif name not in _IGNORED_FOLDERS and path not in skip:
                    folders.append(path)
    except FileNotFoundError:
        return [], []
    except (OSError, StorageError) as error:
        found.append(files.unreadable(folder, error))
    return found, folders


def _plain(folder: str, names: Collection[str], suffix: str) -> list[str | Problem] | None:
    """What `walk` finds in a folder by these names; None where one is a link or no file: then it has to be listed."""
    found: list[str | Problem] = []
    try:
        with rooted.folder(folder) as at:
            for name in sorted(names):
                if name.endswith(suffix) and name[0] != ".":
                    with suppress(FileNotFoundError):
                        if not stat.S_ISREG(os.lstat(name, dir_fd=at).st_mode):
                            return None
                        found.append(_in_utf8(f"{folder}/{name}"))
    except (OSError, StorageError):
        return None
    return found


def _looked_at(entry: os.DirEntry[str], path: str, suffix: str, root: str | Path) -> Iterator[str | Problem]:
    name = entry.name
    if name.startswith("."):
        if name.startswith(files.TEMP_PREFIX) and name.endswith(files.TEMP_SUFFIX):
            yield from _left_over(entry, path)
        elif name.endswith(suffix) and not name.startswith(".#") and entry.is_file():
            yield Problem(Path(path), "is hidden and not read; rename it without the leading dot")
    elif entry.is_symlink():
        if is_stray(path, root):
            yield Problem(Path(path), STRAY)
        elif name.endswith(suffix):
            yield path if os.path.isfile(path) else Problem(Path(path), "is a link to nothing")
    elif name.endswith(suffix):
        yield path if path.isascii() else _in_utf8(path)


def _in_utf8(path: str) -> str | Problem:
    if is_utf8(path):
        return path
    shown = os.fsencode(path).decode(errors="replace")
    return Problem(Path(shown), "has a name that is not UTF-8 and is not read; rename it")


def _left_over(entry: os.DirEntry[str], path: str) -> Iterator[Problem]:
    """A temporary file whose writer was killed before he could rename it."""
    with suppress(OSError):
        if time.time() - entry.stat(follow_symlinks=False).st_mtime > files.LEFT_OVER:
            yield Problem(Path(path), "was left by an interrupted write that was never acknowledged; delete it")
