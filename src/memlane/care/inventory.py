"""All that a bank holds: every file with its mode, every memory without its text, all damage.

Taking an inventory never raises for what is wrong with a bank or its configuration: the inventory reports that. Reads
only, and does not open the index. `memlane.care.doctor` judges what is in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memlane import config
from memlane.bank import Bank
from memlane.care import audit
from memlane.config import Config
from memlane.core.errors import MemlaneError, NotEnabled, StorageError
from memlane.core.markdown import lines_with_code
from memlane.core.model import Memory, Problem
from memlane.disk import anchors, files
from memlane.gate import Guard
from memlane.index.links import links_in
from memlane.index.rows import shape
from memlane.lanes import NAMES, Lane

_SKIPPED = frozenset({".git", "node_modules", ".venv"})
_MARKER = re.compile(r"(?:<{7}|>{7}) ")
Progress = Callable[[Sequence[Any], str], Iterable[Any]]


def unseen(items: Sequence[Any], label: str) -> Iterable[Any]:
    return items


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder of the bank as it lies on disk. `conflict` is the line of a marker that a merge has left."""

    path: str
    root: str  # the bank's folder, or the lane's outside it
    info: os.stat_result
    readable: bool
    leaks: tuple[audit.Leak, ...] = ()
    conflict: int | None = None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def is_aside(self) -> bool:
        """Whether it lies where nobody expects it to be read: the trash, the index, a hidden folder."""
        return any(part == "indices" or part[:1] == "." for part in self.path[len(self.root) + 1 :].split(os.sep))

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.info.st_mode)


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory without its text: `shape` is the digest that the index has of it, `words` that of its text alone."""

    memory: Memory
    shape: bytes
    words: bytes | None  # None when there are none
    links: tuple[str, ...]
    suspicious: tuple[str, ...]
    deleted: str | None = None  # the day, when it came back since and is held back


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that there is. Where no bank could be opened, `error` says why."""

    folder: str | None  # as the caller named it
    config: Config | None = None
    error: MemlaneError | None = None
    opened: Bank | None = None
    files: tuple[File, ...] = ()
    memories: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()
    alone: Mapping[str, str] = field(default_factory=dict, hash=False)  # ids by file, where it holds one memory alone

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
    return shlex.join(["memlane", *(["--bank", folder] if folder else []), *words])


def take(folder: str | None = None, flags: Mapping[str, Any] | None = None, progress: Progress = unseen) -> Inventory:
    """The inventory of a folder's bank. `progress` is handed the files to read, and hands them on."""
    settings = None
    try:
        settings = config.load(folder, flags)
        config.profile(settings)
        bank = Bank(settings)
    except MemlaneError as error:
        return Inventory(folder, settings, error)
    memories: list[Entry] = []
    problems: list[Problem] = []
    for name in NAMES:
        try:
            for item in read_lane(bank.lane(name), progress):
                if isinstance(item, Problem):
                    problems.append(item)
                else:
                    memories.append(_entry(item, bank.tombstones.held(item)))
        except (MemlaneError, OSError) as error:
            problems.append(Problem(settings.lane_root(name), f"cannot be read: {error}"))
    problems += bank.tombstones.problems()
    problems += anchors.problems(os.path.join(bank.root, anchors.NAME))
    problems += bank.replaced.problems()
    paths = [file for place in places(bank) for file in walk(os.fspath(place))]
    found = tuple(_read(file, bank.guard) for file in progress(paths, "auditing"))
    listed = [entry.memory for entry in memories]
    alone = {memory.file: memory.id for memory in listed if not bank.lane(memory.lane).answers.shares_files}
    return Inventory(folder, settings, None, bank, found, tuple(memories), tuple(dict.fromkeys(problems)), alone)


def read_lane(lane: Lane, progress: Progress) -> Iterator[Memory | Problem]:
    """Every memory of a lane, and its damage."""
    for path in progress(list(lane.files()), "reading"):
        if isinstance(path, Problem):
            yield path
        else:
            yield from lane.parse(path)


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
    pending = [root]
    while pending:
        path = pending.pop()
        try:
            info = os.stat(path) if path == root else os.lstat(path)
        except OSError:
            continue
        yield File(path, root, info, stat.S_ISLNK(info.st_mode) or may(path, os.R_OK))
        if stat.S_ISDIR(info.st_mode) and os.path.basename(path) not in _SKIPPED:
            try:
                names = sorted(files.names_in(path), reverse=True)
            except (OSError, StorageError):
                continue  # it is known as one that cannot be read
            pending += [os.path.join(path, name) for name in names]


def _read(file: File, guard: Guard) -> File:
    """The file with what its bytes say."""
    relevant = file.path.endswith(audit.SUFFIXES) and f"{os.sep}indices{os.sep}" not in file.path
    if not relevant or not stat.S_ISREG(file.info.st_mode) or file.info.st_size > audit.MAX_BYTES:
        return file
    try:
        data = files.read_bytes(file.path, audit.MAX_BYTES)
    except (OSError, StorageError):
        return replace(file, readable=False)
    leaks = () if guard.secrets == "off" else tuple(audit.scan_data(data, file.path, guard))
    conflict = _conflict(data, file.path) if b"<<<<<<< " in data or b">>>>>>> " in data else None
    return replace(file, leaks=leaks, conflict=conflict) if leaks or conflict else file


def _conflict(data: bytes, path: str) -> int | None:
    """The line of the first marker that a merge has left; in Markdown, outside code."""
    lines = lines_with_code(data.decode(errors="replace"))
    markdown = path.endswith((".md", ".markdown"))
    return next((n for n, (line, code) in enumerate(lines, 1) if _MARKER.match(line) and not (markdown and code)), None)


def _entry(memory: Memory, deleted: str | None) -> Entry:
    text = memory.text.strip()
    _, digest = shape(memory)
    return Entry(
        memory=replace(memory, text=""),
        shape=digest,
        words=hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest() if text else None,
        links=tuple(dict.fromkeys(node for node, _, _ in links_in(memory.text))),
        suspicious=memory.suspicious,
        deleted=deleted,
    )


def is_left_over(file: File, now: float) -> bool:
    """Whether it is a temporary file of ours whose writer is gone."""
    ours = file.name.startswith(files.TEMP_PREFIX) and file.name.endswith(files.TEMP_SUFFIX)
    return ours and not file.is_folder and now - file.info.st_mtime > files.LEFT_OVER
