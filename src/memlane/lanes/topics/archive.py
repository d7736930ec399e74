"""The yearly archive of a topic lane (seed 000): where pruned entries go, and what it holds.

    memory/archive/auth/2024.md       entries of every sub-topic of "auth", each below a comment that names its own

Entries are added, read and taken out, never changed. entries.py knows how the file looks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memlane.core.model import Problem
from memlane.core.values import replace
from memlane.disk import files, walking
from memlane.disk.names import inside
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics import pages
from memlane.lanes.topics.entries import GENERAL, Entry
from memlane.lanes.topics.pages import ARCHIVE, Folder


def add(folder: Folder, topic: str, subtopic: str, raws: Sequence[str]) -> list[str]:
    """Put pruned entries on top of the archive of their year; return the files."""
    years: dict[str, list[str]] = {}
    for raw in raws:
        years.setdefault(text_of.parse(raw).date[:4], []).append(raw)
    written = []
    for year, pruned in sorted(years.items()):
        path = inside(folder.root, ARCHIVE, topic, f"{year}.md")
        files.replace(path, files.encoded(text_of.add_archived(pages.text(path), subtopic, pruned)))
        written.append(path)
    return written


def by_year(folder: Folder, topic: str) -> dict[str, str]:
    """The text of a topic's archive files by year; "" where one cannot be read."""
    with suppress(FileNotFoundError, NotADirectoryError):
        names = sorted(name for name in files.names_in(folder.at(ARCHIVE, topic)) if name.endswith(".md"))
        return {name.removesuffix(".md"): folder.text(folder.at(ARCHIVE, topic, name)) for name in names}
    return {}


def paths(folder: Folder) -> Iterator[str | Problem]:
    """The archive files, and a Problem for each file that lies where none is read."""
    for path in walking.walk(folder.at(ARCHIVE)):
        if isinstance(path, Problem) or os.path.relpath(path, folder.at(ARCHIVE)).count(os.sep) == 1:
            yield path
        else:
            yield Problem(Path(path), "is not read; archives are archive/<topic>/<year>.md")


def is_archive(folder: Folder, path: str) -> bool:
    return path.startswith(folder.at(ARCHIVE, ""))


def read(folder: Folder, path: str) -> list[tuple[bool, Entry]]:
    """The entries of an archive file, without their ids, the newest first; [] where it cannot be read.

    Each with whether its sub-topic is written above it: one without, of somebody else's making, counts as general.
    """
    topic = os.path.basename(os.path.dirname(path))
    found = []
    for name, raw in text_of.archived(folder.text(path)):
        marked = bool(name) and "/" not in name
        entry = replace(text_of.parse(raw), topic=topic, subtopic=name if marked else GENERAL, path=path)
        found.append((marked, entry))
    return found


def entries(folder: Folder) -> Iterator[Entry]:
    """Every archived entry, without an id: topic by topic, the newest first."""
    newest_first = sorted((path for path in paths(folder) if isinstance(path, str)), reverse=True)
    for path in sorted(newest_first, key=os.path.dirname):
        yield from (entry for _, entry in read(folder, path))


def take_out(folder: Folder, path: str, subtopic: str, raw: str) -> None:
    """Remove an entry from an archive file, which goes with its last one."""
    text = pages.text(path)
    for piece in (text_of.archive_mark(subtopic) + raw, raw):
        if piece in text:
            left = text.replace(piece, "", 1)
            files.replace(path, files.encoded(left)) if left.strip() else files.remove(path)
            return


def count(archives: Mapping[str, str], subtopic: str) -> int:
    """How many entries of a sub-topic the archives of its topic (`by_year`) hold."""
    mark = text_of.archive_mark(subtopic)
    return sum(text.count(mark) for text in archives.values())


def twins(archives: Mapping[str, str], subtopic: str, raws: Sequence[str]) -> list[int]:
    """Which of a topic file's entries stand in the archives in the same words, the last in the file first."""
    mark = text_of.archive_mark(subtopic)
    bare = [raw.rstrip("\r\n") for raw in raws]
    holding = [text for text in archives.values() if any(mark + raw in text for raw in bare)]
    left = Counter(raw.rstrip("\r\n") for text in holding for name, raw in text_of.archived(text) if name == subtopic)
    numbers = []
    for number, raw in reversed([*enumerate(bare)]):
        if left[raw]:
            left[raw] -= 1
            numbers.append(number)
    return numbers
