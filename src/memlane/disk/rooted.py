"""Opening what lies below a root, so that no name on the way can be a link that leads out of it.

A root is a folder that the user chose: a project, a bank, a configured lane. What lies below it may come from a
stranger, by `git clone` or from another user of the machine. So a path is never handed to the system as a whole: the
root is opened, then one name after the other below it (openat with O_NOFOLLOW), which no rename in between can mislead.
A link that stays below its root is followed, by walking the path that it really names, but never into `.git`, which no
clone brings: it holds the user's own settings, passwords and hooks. What is opened must be a regular file or a folder
(never a pipe or a device, which is not waited for) and belong to the user or to root.

A path below no root is the user's own word (`export --to`, a client's configuration) and is opened as the system does.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache

from memlane.core.errors import StorageError
from memlane.disk.names import STRAY, is_git

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CAREFUL = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # what systems say to O_NOFOLLOW where a link stands
_roots: dict[str, bool] = {}  # path: whether it was chosen, or is just where a lane lies


class Stray(StorageError):
    """A link leads out of its root."""

    def __init__(self, path: str) -> None:
        hint = "Replace it by what it points to, or name that place in memlane.toml."
        super().__init__(f"{os.path.basename(path)} {STRAY}.", hint=hint)


# -- roots


def take_root(path: str | os.PathLike[str], *, chosen: bool = True) -> None:
    """From now on, nothing below this folder is reached through a link that leads out of it.

    With roots inside each other, the innermost chosen one counts. A lane that is opened by itself is a root that was
    not `chosen`: it counts only where there is no other, so that a link at a lane's own place in a project is seen.
    """
    name = os.path.abspath(path)
    for each in (name, os.path.realpath(name)) if chosen else (name,):
        _roots[each] = chosen or _roots.get(each, False)


def root_of(path: str) -> str | None:
    """The root that an absolute path lies below, or is."""
    alone = None
    while True:
        chosen = _roots.get(path)
        if chosen:
            return path
        if chosen is not None:
            alone = path
        slash = path.rfind("/")
        if slash <= 0:
            return alone
        path = path[:slash]


def real(path: str) -> str:
    """The path without links. Raises Stray when it leads out of its root, or into `.git`."""
    path = _absolute(path)
    home = root_of(path)
    found = os.path.realpath(path)
    if home is not None:
        inside = os.path.realpath(home)
        below = "" if found == inside else found.removeprefix(inside.rstrip("/") + "/")
        if below.startswith("/") or any(map(is_git, below.split("/"))):
            raise Stray(_first_link(home, path))
        if inside not in _roots:  # of a lane by itself, or moved since
            _roots[inside] = _roots[home]
    return found


def _first_link(home: str, path: str) -> str:
    """The first link on the way from a root to a path, which is the one to name."""
    ends = (end for end in range(len(home) + 1, len(path)) if path[end] == "/")
    return next((path[:end] for end in ends if os.path.islink(path[:end])), path)


def _absolute(path: str) -> str:
    odd = path[:1] != "/" or path[-1:] == "/" or "//" in path or "/./" in path or "/../" in path
    return os.path.abspath(path) if odd or path.endswith(("/.", "/..")) else path


# -- folders


def open_folder(path: str, make: int = 0) -> int:
    """A descriptor of the folder; the caller closes it. With `make`, missing folders are made, the last one with that
    mode, and synced to the disk. Raises OSError, Stray.
    """
    path = _absolute(path)
    home = root_of(path)
    if home is None:
        if make:
            _make_plainly(path, make)
        return os.open(path, _FOLDER)
    return _below(home, path, make)


def _below(home: str, path: str, make: int = 0) -> int:
    at = _reached(home, path, make)
    owner = os.fstat(at).st_uid
    if owner not in (os.geteuid(), 0) and owner != os.stat(home).st_uid:  # who could exchange whatever lies in it
        os.close(at)
        _refuse_owner(owner, path, home)
    return at


def _reached(home: str, path: str, make: int) -> int:
    at = _straight(home, path)
    if at is not None:
        return at
    try:
        return _descend(home, path, make)
    except _Met as met:
        link = met.link
    _refuse_owner(os.lstat(link).st_uid, link, home)
    straight = real(link) + path[len(link) :]
    try:
        return _descend(root_of(straight) or home, straight, make)
    except _Met:
        raise Stray(link) from None  # somebody puts links there as we look


def _straight(home: str, path: str) -> int | None:
    """The folder, opened at once, if Linux says that it lies where its name says: then there is no link on the way.

    What is open cannot be exchanged any more, so this is as safe as `_descend` and costs less for every file that is
    read. None where it is not there, lies elsewhere, or cannot be told.
    """
    at = -1
    with suppress(OSError):
        at = os.open(path, _FOLDER)
        if os.readlink(f"/proc/self/fd/{at}") == _real_root(home) + path[len(home) :]:
            return at
    if at >= 0:
        os.close(at)
    return None


@cache
def _real_root(home: str) -> str:
    return os.path.realpath(home)


class _Met(Exception):
    """A link where a folder was expected."""

    def __init__(self, link: str) -> None:
        self.link = link


def _descend(home: str, path: str, make: int) -> int:
    try:
        at = os.open(home, _FOLDER)
    except FileNotFoundError:
        if not make:
            raise
        _make_plainly(home, make if home == path else 0o777)
        at = os.open(home, _FOLDER)
    end = len(home) if home != "/" else 0
    try:
        while end < len(path):
            start, end = end + 1, path.find("/", end + 1)
            if end < 0:
                end = len(path)
            below = _enter(at, path[:end], path[start:end], make and (make if end == len(path) else 0o777))
            os.close(at)
            at = below
    except BaseException:
        os.close(at)
        raise
    return at


def _enter(at: int, path: str, name: str, make: int) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in _LINK and is_link(at, name):
            raise _Met(path) from None
        raise
    with suppress(FileExistsError):
        os.mkdir(name, make, dir_fd=at)
        os.fsync(at)
    return _enter(at, path, name, 0)


def _make_plainly(folder: str, mode: int) -> None:
    """mkdir -p that syncs the parent of each new folder; `mode` is for the last one."""
    if not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent != folder:
            _make_plainly(parent, 0o777)
        with suppress(FileExistsError):
            os.mkdir(folder, mode)
            sync_folder(parent)


@contextmanager
def folder(path: str, make: int = 0) -> Iterator[int]:
    """`open_folder`, closed at the end."""
    at = open_folder(path, make)
    try:
        yield at
    finally:
        os.close(at)


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """The names in a folder, in no order. Raises OSError, StorageError."""
    with folder(os.fspath(path)) as at:
        return os.listdir(at)


def folders(root: str, skip: Collection[str] = ()) -> Iterator[str]:
    """Root and every folder below it that is not hidden or named in `skip`. What cannot be listed is passed over."""
    pending = [root]
    while pending:
        here = pending.pop()
        try:
            with folder(here) as at, os.scandir(at) as listing:
                inner = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        except (OSError, StorageError):
            continue
        yield here
        pending += (f"{here}/{name}" for name in inner if name[0] != "." and name not in skip)


def states_in(path: str) -> list[tuple[str, os.stat_result]]:
    """The names in a folder, each with its state, links not followed, by name. Raises OSError, StorageError."""
    found = []
    with folder(path) as at, os.scandir(at) as listing:
        for entry in listing:
            try:
                found.append((entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue  # it vanished
    return sorted(found)


def kinds_in(path: str) -> list[tuple[str, bool]]:
    """The names in a folder, in no order, and whether each is a folder, links not followed. Raises OSError,
    StorageError.
    """
    with folder(path) as at, os.scandir(at) as listing:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]


@contextmanager
def parent(path: str, make: bool = False) -> Iterator[tuple[int, str]]:
    """(descriptor of the folder that holds this path, the name in it). The name itself may be a link."""
    home, name = os.path.split(_absolute(path))
    with folder(home, 0o777 if make else 0) as at:
        yield at, name


def sync_folder(path: str) -> None:
    """Bring the names in a folder to stable storage."""
    with folder(path) as at:
        os.fsync(at)


def is_link(at: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False


# -- files


def open_file(path: str, flags: int, *, or_folder: bool = False) -> tuple[int, os.stat_result]:
    """(descriptor, what fstat says of it); the caller closes it. Raises OSError, Stray, StorageError.

    Only regular files are opened, and with `or_folder` folders. A link is followed if it stays below its root.
    """
    path = _absolute(path)
    home = root_of(path)
    if home is None or home == path:
        return _checked(os.open(path, flags | _CAREFUL, 0o666), path, None, or_folder)
    try:
        fd = _open_in_folder(home, path, flags)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK) or not os.path.islink(path):
            raise
        _refuse_owner(os.lstat(path).st_uid, path, home)
        try:
            straight = real(path)
            fd = _open_in_folder(root_of(straight) or home, straight, flags)
        except OSError as again:
            if again.errno in (errno.ELOOP, errno.EMLINK):
                raise Stray(path) from None
            raise
    return _checked(fd, path, home, or_folder)


def _open_in_folder(home: str, path: str, flags: int) -> int:
    slash = path.rfind("/")
    at = _below(home, path[:slash] or "/")
    try:
        return os.open(path[slash + 1 :], flags | _CAREFUL | os.O_NOFOLLOW, 0o666, dir_fd=at)
    finally:
        os.close(at)


def _checked(fd: int, path: str, home: str | None, or_folder: bool) -> tuple[int, os.stat_result]:
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) and not (or_folder and stat.S_ISDIR(info.st_mode)):
            raise OSError(errno.EISDIR, "not a regular file", path)
        if home is not None:
            _refuse_owner(info.st_uid, path, home)
    except BaseException:
        os.close(fd)
        raise
    return fd, info


@contextmanager
def opened(path: str, flags: int) -> Iterator[int]:
    """`open_file`, closed at the end."""
    fd, _ = open_file(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def refuse_foreign(at: int, name: str, path: str) -> os.stat_result | None:
    """What stands at a name that is about to be replaced; None when it is free.

    Raises OSError for what is not a regular file, StorageError for a file of another user.
    """
    try:
        info = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(info.st_mode):
        return None  # put there since the path was resolved; a rename replaces the link itself
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EISDIR, "not a regular file", path)
    if (home := root_of(_absolute(path))) is not None:
        _refuse_owner(info.st_uid, path, home)
    return info


def _refuse_owner(uid: int, path: str, home: str) -> None:
    """Raise StorageError for what belongs neither to the user nor to root.

    For root itself the owner of the root folder counts too: a container or `sudo` works on somebody's folder.
    """
    me = os.geteuid()
    if uid in (me, 0) or (me == 0 and uid == os.stat(home).st_uid):
        return
    raise StorageError(
        f"{os.path.basename(path)} belongs to another user of this machine and is not used.",
        hint="If you trust it, make it yours with chown; else delete it.",
        code="not_yours",
    )
