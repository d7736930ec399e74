"""Linked git worktrees: whose worktree a folder is in, and which bank its memory goes to. Runs no git; nothing writes.

    api/.git/worktrees/feature/gitdir      names feature/.git
    feature/.git                           names api/.git/worktrees/feature

Both must name each other: an unpacked archive may bring a `.git` that leads to any repository of the user's. What is
tracked is read from the worktree's own index, which is looked through rather than parsed: that takes a millisecond or
two, and only in a linked worktree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.core.errors import ConfigError, StorageError
from memlane.core.values import NamedTuple, replace
from memlane.disk import files, rooted
from memlane.lanes import LANES, NAMES

if TYPE_CHECKING:
    from mmap import mmap

    from memlane.config import Config

RECORDS = f"/{LANES['records'].place}/*.md"  # the line in a bank's .gitignore that keeps what was captured out of git

_MOST = 8192  # bytes of a file that names a folder
_EXTENDED = 0x4000  # a flag of an index entry: two more bytes follow before its name
_LENGTH = 0x0FFF


class Linked(NamedTuple):
    """A linked worktree, the main one of its repository, and what git keeps of the linked one alone; all real paths."""

    top: str
    main: str
    admin: str

    def in_main(self, folder: str | Path) -> Path:
        """The folder of the main worktree that one of the linked worktree stands for."""
        return Path(os.path.normpath(os.path.join(self.main, os.path.relpath(os.path.realpath(folder), self.top))))

    def here(self, folder: str | Path) -> Path:
        """The folder of the linked worktree that one of the main worktree stands for."""
        return Path(os.path.normpath(os.path.join(self.top, os.path.relpath(os.path.realpath(folder), self.main))))


def linked(folder: str | Path) -> Linked | None:
    """The linked worktree that a folder is in; None in a main worktree, outside of git, and in a submodule."""
    top = os.path.realpath(folder)
    while True:
        git = os.path.join(top, ".git")
        try:
            mode = os.lstat(git).st_mode
            break
        except OSError:
            if top == os.path.dirname(top):
                return None
            top = os.path.dirname(top)
    if not stat.S_ISREG(mode):
        return None
    try:
        named = _line(git)
        admin = os.path.realpath(os.path.join(top, named.removeprefix("gitdir:").strip()))
        back = os.path.realpath(os.path.join(admin, _line(os.path.join(admin, "gitdir"))))
        common = os.path.realpath(os.path.join(admin, _line(os.path.join(admin, "commondir"))))
    except (OSError, StorageError, ValueError):
        return None
    known = named.startswith("gitdir:") and back == git and os.path.dirname(admin) == os.path.join(common, "worktrees")
    return Linked(top, os.path.dirname(common), admin) if known and os.path.basename(common) == ".git" else None


def _line(path: str) -> str:
    return os.fsdecode(files.beginning(path, _MOST)).strip()


# -- which bank


def chosen(
    worktree: Linked,
    start: Path,
    nearest: Callable[[Path, str], Path | None],
    loaded: Callable[[Path | None], Config],
) -> Config:
    """The configuration for a folder in a linked worktree. One bank has one configuration: the one beside it.

    It is the main worktree's where git does not track the bank of this one, which would be lost with it; what the main
    worktree's configuration says of `memory.worktrees` counts. Raises ConfigError.
    """
    own = nearest(start, "")
    here = own if own and Path(os.path.realpath(own.parent)).is_relative_to(worktree.top) else None
    main = nearest(worktree.in_main(start), worktree.main)
    if main is None:
        return loaded(own)
    try:
        shared = loaded(main)
    except ConfigError:
        if here is None:
            raise
        return loaded(here)
    setting = shared["memory.worktrees"]
    why = f"memory.worktrees is {setting}, by {shared.sources['memory.worktrees']}"
    if setting == "own":
        return replace(loaded(here if own == main else own), why=why)
    tracked = setting == "auto" and tracks(worktree, _paths_in(shared, worktree.main))
    if tracked and here is not None:
        config = loaded(here)
        if not (config.distrust or shared.distrust) and _records_are_private(config):
            config = replace(config, records=shared.lane_root("records"))
        return replace(config, why="git tracks the bank of this worktree")
    if setting == "auto":
        why = "this worktree has no memlane.toml" if tracked else "git does not track the bank of this worktree"
    return replace(shared, worktree=worktree.here(main.parent), why=why)


def described(config: Config) -> str:
    """Which bank a linked worktree uses, and why; "" anywhere else."""
    if not config.why:
        return ""
    whose = "the main worktree's bank is used" if config.worktree else "this worktree's own bank is used"
    records = f"; what is captured goes to {config.records}, so that it outlives the worktree" if config.records else ""
    return f"{whose}: {config.why}{records}"


def _paths_in(config: Config, top: str) -> list[str]:
    """Where the bank and its lanes are, relative to the top of the repository; not what lies elsewhere."""
    places = (os.path.realpath(place) for place in (config.root, *map(config.lane_root, NAMES)))
    return [os.path.relpath(place, top) for place in dict.fromkeys(places) if place.startswith(top + os.sep)]


def _records_are_private(config: Config) -> bool:
    """Whether git is told to leave out what was captured: in a linked worktree it would be lost with it."""
    if config["lanes.records"]:
        return False
    try:
        return RECORDS in files.read_text(os.path.join(config.root, ".gitignore")).splitlines()
    except (OSError, StorageError, UnicodeDecodeError):
        return False


# -- what git tracks


def tracks(worktree: Linked, paths: Collection[str]) -> bool:
    """Whether git tracks any of these files or folders, relative to the top of the worktree."""
    prefixes = [prefix for path in paths for prefix in (os.fsencode(path), os.fsencode(f"{path}/"))]
    try:
        names = [name for name in files.names_in(worktree.admin) if name == "index" or name.startswith("sharedindex.")]
    except (OSError, StorageError):
        return False
    return any(_lists(os.path.join(worktree.admin, name), prefixes) for name in names)


def _lists(index: str, prefixes: Collection[bytes]) -> bool:
    import mmap

    with (
        suppress(OSError, StorageError, ValueError),
        rooted.opened(index, os.O_RDONLY) as fd,
        mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data,
    ):
        version = int.from_bytes(data[4:8])
        if version == 4:
            return _lists_shortened(data, prefixes)
        return data[:4] == b"DIRC" and any(_lists_whole(data, prefix, version) for prefix in prefixes)
    return False


def _lists_whole(data: mmap, prefix: bytes, version: int) -> bool:
    """Whether an entry's name is this, or begins with this where it is a folder's. The length of a name, up to 4,095,
    stands before it, which tells a name from a part of one."""
    at = data.find(prefix, 12)
    while at >= 0:
        length = data.find(b"\0", at) - at
        fits = prefix.endswith(b"/") or length == len(prefix)
        for gap in (2, 4) if version == 3 else (2,):
            flags = int.from_bytes(data[at - gap : at - gap + 2])
            if fits and flags & _LENGTH == min(length, _LENGTH) and bool(flags & _EXTENDED) == (gap == 4):
                return True
        at = data.find(prefix, at + 1)
    return False


def _lists_shortened(data: mmap, prefixes: Collection[bytes]) -> bool:
    """As `_lists_whole`, for version 4, in which a name says only how it differs from the one before it."""
    folders = tuple(prefix for prefix in prefixes if prefix.endswith(b"/"))
    for hash_size in (20, 32):
        at, name = 12, b""
        for _ in range(int.from_bytes(data[8:12])):
            at += 40 + hash_size
            flags = int.from_bytes(data[at : at + 2])
            at += 4 if flags & _EXTENDED else 2
            cut = data[at] & 0x7F
            while data[at] & 0x80:
                at += 1
                cut = ((cut + 1) << 7) | (data[at] & 0x7F)
            end = data.find(b"\0", at)
            name = name[: len(name) - cut] + data[at + 1 : end]
            if flags & _LENGTH != min(len(name), _LENGTH):
                break  # hashes of the other size
            if name in prefixes or name.startswith(folders):
                return True
            at = end + 1
        else:
            return False
    return False
