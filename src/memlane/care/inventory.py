"""All that a bank holds: every file with its mode, and what is known of its memories and of all damage.

Taking an inventory never raises for what is wrong with a bank or its configuration: the inventory reports that. Reads
only, and does not open the index. `memlane.care.doctor` judges what is in it.
"""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from memlane import config
from memlane.bank import Bank
from memlane.care.known import BYTES, FORM, SAID, Known
from memlane.config import Config
from memlane.core.errors import MemlaneError, NotEnabled, StorageError
from memlane.core.model import Problem
from memlane.disk import anchors, files, rooted
from memlane.lanes import NAMES

_SKIPPED = frozenset({".git", "node_modules", ".venv"})


class File(NamedTuple):
    """A file or folder of the bank as it lies on disk. There may be 100,000: a tuple is made quickly."""

    path: str
    name: str
    root: str  # the bank's folder, or the lane's outside it
    info: os.stat_result
    readable: bool

    @property
    def is_aside(self) -> bool:
        """Whether it lies where nobody expects it to be read: the trash, the index, a hidden folder."""
        return any(part == "indices" or part[:1] == "." for part in self.path[len(self.root) + 1 :].split(os.sep))

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.info.st_mode)


@dataclass(frozen=True)
class Inventory:
    """All that there is. Where no bank could be opened, `error` says why."""

    folder: str | None  # as the caller named it
    config: Config | None = None
    error: MemlaneError | None = None
    opened: Bank | None = None
    files: tuple[File, ...] = ()
    looked: Known | None = None
    problems: tuple[Problem, ...] = ()
    count: int = 0  # of memories

    def close(self) -> None:
        """Let go of what is known; what was read of it stays."""
        if self.looked is not None:
            self.looked.close()

    @property
    def known(self) -> Known:
        """What is known of the bank's files; only for checks that need a bank."""
        if self.looked is None:
            raise NotEnabled("There is no bank.")
        return self.looked

    @cached_property
    def unread(self) -> set[str]:
        """The files that cannot be read."""
        return {file.path for file in self.files if not file.readable} | {fact.path for fact in self.known.of("unread")}

    @cached_property
    def left_over(self) -> list[File]:
        """The temporary files of ours whose writers are gone."""
        ours = (file for file in self.files if file.name.startswith(files.TEMP_PREFIX))
        return [file for file in ours if is_left_over(file, time.time())]

    @cached_property
    def conflicts(self) -> dict[str, int]:
        """The files that a merge has left its markers in, and the line of the first."""
        return {fact.path: int(fact.value) for fact in self.known.of("conflict")}

    @property
    def bank(self) -> Bank:
        """The bank; only for checks that need one."""
        if self.opened is None:
            raise NotEnabled("There is no bank.")
        return self.opened

    @property
    def project(self) -> Path:
        """The folder that the bank belongs to; without one, where its configuration would be."""
        if self.config and self.config.project:
            return self.config.project
        return Path(self.folder or ".").expanduser().absolute()

    def command(self, *words: str) -> str:
        """A command line of memlane for this bank."""
        return command_line(self.folder, *words)


def command_line(folder: str | None, *words: str) -> str:
    """A command line of memlane for the bank that the caller named by this folder, or by none."""
    return " ".join((_memlane(folder), *map(shlex.quote, words)))


@cache
def _memlane(folder: str | None) -> str:
    return shlex.join(["memlane", *(["--bank", folder] if folder else [])])


def take(
    folder: str | None = None,
    flags: Mapping[str, Any] | None = None,
    settings: Config | None = None,
    *,
    anew: bool = False,
) -> Inventory:
    """The inventory of a folder's bank; to be closed. With `anew`, every byte is read, changed or not.

    Whoever has a bank open gives its `settings`: then the folder and flags are not read for them.
    """
    try:
        settings = settings or config.load(folder, flags)
        config.profile(settings)
        bank = Bank(settings)
    except MemlaneError as error:
        return Inventory(folder, settings, error)
    found = tuple(chain.from_iterable(walk(os.fspath(place)) for place in places(bank)))
    known = Known(bank, FORM | SAID | BYTES, anew=anew, walked={file.path: file.info for file in found})
    problems = list(known.problems(held=False))
    problems += (Problem(settings.lane_root(name), f"cannot be read: {error}") for name, error in known.broken.items())
    problems += bank.tombstones.problems()
    problems += anchors.problems(os.path.join(bank.root, anchors.NAME))
    problems += bank.replaced.problems()
    return Inventory(folder, settings, None, bank, found, known, tuple(dict.fromkeys(problems)), known.count)


def places(bank: Bank) -> list[Path]:
    """The bank's folder, and what of the lanes lies outside it."""
    lanes = [bank.lane(name) for name in NAMES]
    beside = (path for lane in lanes for path in lane.answers.files_beside())
    roots = dict.fromkeys([bank.root, *(lane.root for lane in lanes), *beside])
    return [root for root in roots if os.path.lexists(root) and (root == bank.root or bank.root not in root.parents)]


def roots(inventory: Inventory) -> list[str]:
    """The folders that the bank's files lie in."""
    return list(dict.fromkeys(os.fspath(root if root.is_dir() else root.parent) for root in places(inventory.bank)))


def may(path: str, what: int) -> bool:
    """Whether this process may read (os.R_OK) or write (os.W_OK) a file or folder."""
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def walk(root: str) -> Iterator[File]:
    """Everything below a folder and the folder itself, links not followed, without what vanishes meanwhile."""
    own = os.geteuid()
    try:
        pending = [(os.path.dirname(root), iter([(os.path.basename(root), os.stat(root))]))]
    except OSError:
        return
    while pending:
        folder, inside = pending[-1]
        for name, info in inside:
            path, mode = f"{folder}/{name}", info.st_mode
            plainly = (mode & stat.S_IRUSR and info.st_uid == own) or stat.S_ISLNK(mode)
            yield File(path, name, root, info, bool(plainly) or may(path, os.R_OK))
            if stat.S_ISDIR(mode) and name not in _SKIPPED:
                with suppress(OSError, StorageError):  # then it is known as one that cannot be read
                    pending.append((path, iter(rooted.states_in(path))))
                    break
        else:
            pending.pop()


def names_below(root: str) -> Iterator[str]:
    """The name of everything that `walk` finds, in no order."""
    yield os.path.basename(root)
    pending = [root]
    while pending:
        path = pending.pop()
        with suppress(OSError, StorageError):
            for name, is_folder in rooted.kinds_in(path):
                yield name
                if is_folder and name not in _SKIPPED:
                    pending.append(f"{path}/{name}")


def is_left_over(file: File, now: float) -> bool:
    """Whether it is a temporary file of ours whose writer is gone."""
    ours = file.name.startswith(files.TEMP_PREFIX) and file.name.endswith(files.TEMP_SUFFIX)
    return ours and not file.is_folder and now - file.info.st_mtime > files.LEFT_OVER
