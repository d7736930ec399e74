"""The yearly archive of a topic lane (seed 000): where pruned entries go, and what it holds.

    memory/archive/auth/2024.md       entries of every sub-topic of "auth", each below a comment that names its own

Entries are added and read, never changed. entries.py knows how the file looks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from memlane.disk import files
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


def entries(folder: Folder) -> Iterator[Entry]:
    """Every archived entry, without an id: topic by topic, the newest first."""
    if os.path.isdir(folder.at(ARCHIVE)):
        for topic in sorted(files.names_in(folder.at(ARCHIVE))):
            for year, text in sorted(by_year(folder, topic).items(), reverse=True):
                path = folder.at(ARCHIVE, topic, f"{year}.md")
                for subtopic, raw in text_of.archived(text):
                    yield replace(text_of.parse(raw), topic=topic, subtopic=subtopic or GENERAL, path=path)


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
