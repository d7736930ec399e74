"""The folder of a topic lane (seed 000): which of its files are topic files, and how they are read and written.

    memory/auth/oauth2.md             a topic file: entries of "auth/oauth2"
    memory/archive/, memory/index.md  not topic files: archive.py, index_page.py

Texts and entries are kept in memory while their file stays the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memlane.core.errors import AlreadyExists, InvalidInput, StorageError
from memlane.core.model import Problem
from memlane.core.patterns import lazily
from memlane.disk import files, walking
from memlane.disk.names import inside, namesake, safe_parts
from memlane.lanes import read_file, readable
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Document, Entry

ARCHIVE, INDEX = "archive", "index.md"
RESERVED = frozenset({ARCHIVE, INDEX, "indices"})
_SLUG = lazily(r"[a-z0-9][a-z0-9._-]*")
_SETTLED = 2 * 10**9  # ns: a file younger than this may change again without its mtime showing it


class Folder:
    """The files below a lane's root. Paths are absolute."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._parsed: dict[str, tuple[str, tuple[Entry, ...]]] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time. The folder is the lock: it is never replaced, and a killed holder frees it."""
        root = os.fspath(self.root)
        files.make_folder(root)
        with files.locked(root):
            yield

    def at(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def topic_files(self) -> Iterator[str | Problem]:
        """The topic files, and a Problem for each file that lies where none is read."""
        for path in walking.walk(self.root, skip=(self.at(ARCHIVE),)):
            place = os.fspath(path.path if isinstance(path, Problem) else path)
            depth = os.path.relpath(place, self.root).count(os.sep)
            if isinstance(path, Problem) or depth == 1:
                yield path
            elif depth > 1:
                yield Problem(Path(path), "lies too deep and is not read; topic files are <topic>/<sub-topic>.md")
            elif os.path.basename(path).lower() not in (INDEX, "readme.md"):
                yield Problem(Path(path), "lies in no topic and is not read; topic files are <topic>/<sub-topic>.md")

    def path(self, topic: str, subtopic: str, *, new: bool = False) -> str:
        """The file of a sub-topic. Raises InvalidInput for names that cannot be one; an existing file may have any."""
        topic, name = safe_parts(f"{topic}/{subtopic}.md")
        if topic.casefold() in RESERVED:
            raise InvalidInput(f"{topic!r} is reserved and cannot be a topic.", hint="Choose another name.")
        path = inside(self.root, topic, name)
        if new and not os.path.isfile(path):
            if not all(_SLUG.fullmatch(part) and ".." not in part + "." for part in (topic, subtopic)):
                raise InvalidInput(
                    "A topic is named with small letters, digits, single dots and dashes.",
                    hint="Write it like auth/oauth2.",
                )
            _refuse_namesake(os.path.dirname(path))
            _refuse_namesake(path)
        return path

    def named(self, path: str) -> tuple[str, str]:
        """Topic and sub-topic of a topic file."""
        topic, _, name = path[len(os.fspath(self.root)) + 1 :].partition(os.sep)
        return topic, name.removesuffix(".md")

    def read(self, path: str) -> str | Problem | None:
        """The file's text, from memory while the file has not changed."""
        try:
            info = os.stat(path)
        except OSError:
            return read_file(path)
        mark = (info.st_mtime_ns, info.st_size, info.st_ino)
        if (seen := self._texts.get(path)) and seen[0] == mark:
            return seen[1]
        text = read_file(path)
        if isinstance(text, str) and time.time_ns() - info.st_mtime_ns > _SETTLED:
            self._texts[path] = (mark, text)
        return text

    def text(self, path: str) -> str:
        """As `read`; "" where the file is missing or cannot be read."""
        text = self.read(path)
        return text if isinstance(text, str) else ""

    def entries(self, path: str) -> tuple[Entry, ...]:
        """The entries of a topic file; () where it is missing or cannot be read."""
        entries = self.read_entries(path)
        return entries if isinstance(entries, tuple) else ()

    def read_entries(self, path: str) -> tuple[Entry, ...] | Problem | None:
        """The entries of a topic file; the same objects while its text is the same."""
        text = self.read(path)
        if not isinstance(text, str):
            return text
        if (seen := self._parsed.get(path)) and seen[0] == text:
            return seen[1]
        entries = tuple(self.parse(path, raw) for raw in text_of.split(text).raws)
        self._parsed[path] = (text, entries)
        return entries

    def keep(self, path: str, entries: tuple[Entry, ...]) -> None:
        """Let `read_entries` answer these for the text it has last read."""
        self._parsed[path] = (self._parsed[path][0], entries)

    def parse(self, path: str, raw: str) -> Entry:
        """One entry of a topic file, which need not stand in it yet."""
        return text_of.parse(raw, *self.named(path), path)


def text(path: str) -> str:
    """The file's text, "" when there is none. Raises StorageError when it cannot be read."""
    return readable(path) if os.path.lexists(path) else ""


def sound(path: str) -> Document:
    """A topic file that is to be changed, in pieces. Raises StorageError, also for an unresolved merge."""
    found = text(path)
    if line := text_of.conflict(found):
        raise StorageError(
            f"{os.path.basename(path)} has merge-conflict markers (line {line}).",
            hint=f"Resolve the conflict in {path}, then try again. Nothing was changed.",
        )
    return text_of.split(found)


def write(path: str, text: str) -> None:
    """Write a whole file, there or not yet. Raises StorageError, InvalidInput."""
    data = files.encoded(text)
    if os.path.lexists(path):
        files.replace(path, data)
    else:
        files.create(path, data)


def opened(head: str, newline: str) -> str:
    """A preamble that an entry can follow: nothing, or text, no fence left open, and a blank line."""
    if not head.removeprefix("\ufeff"):
        return head
    if not head.endswith("\n"):
        head += newline
    if fence := text_of.open_fence(head):  # it would swallow the entry as soon as that has a fence, too
        head += fence + newline
    return head if head.endswith(("\n\n", "\r\n\r\n")) else head + newline


def _refuse_namesake(path: str) -> None:
    """Raise AlreadyExists when a new name differs from another only in case, which not every file system can tell."""
    other = None
    if not os.path.lexists(path):
        with suppress(OSError):  # the write that follows says what is wrong there
            other = namesake(path)
    if other:
        name = os.path.basename(path)
        raise AlreadyExists(
            f"There is a {other}, which differs from {name} only in case or Unicode form; some file systems "
            "cannot tell them apart.",
            hint=f"Choose another name, or rename {other} to {name} first.",
        )
