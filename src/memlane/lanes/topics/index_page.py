"""index.md of a topic lane (seed 000): topics and sub-topics with a description and counts, kept up to date.

It is derived from the topic files and the archive; only a description may be a person's. Entries are never read
from it. entries.py knows how its lines look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.lanes.topics import archive, listing, pages
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Document
from memlane.lanes.topics.listing import Listed
from memlane.lanes.topics.pages import INDEX, Folder


def listed(folder: Folder) -> dict[str, Listed]:
    """The lines of index.md by their "topic/subtopic"; {} when it cannot be read."""
    return listing.read_index(folder.text(folder.at(INDEX)))


def left_in_both(folder: Folder, topic: str, subtopic: str, raws: Sequence[str]) -> set[int]:
    """Which entries of a topic file a killed prune has left in the archive as well.

    Two entries may say the same, so an equal text is not enough: the archive must also hold more entries
    than index.md, which is written last, knows of. Where that does not know, nothing is taken out.
    """
    archives = archive.by_year(folder, topic)
    twins = archive.twins(archives, subtopic, raws)
    line = listed(folder).get(f"{topic}/{subtopic}") if twins else None
    if line is None or line.archived is None:
        return set()
    return set(twins[: max(archive.count(archives, subtopic) - line.archived, 0)])


def save(folder: Folder, path: str, document: Document) -> bool:
    """Write a topic file, then its line of index.md. Raises StorageError, InvalidInput when the file cannot be written.

    The entries are stored by then, so False says that only the index could not be.
    """
    could = _tried(lambda: let_go(folder, path, document.raws))
    pages.write(path, document.text)
    return _tried(lambda: write(folder, path)) and could


def _tried(change: Callable[[], None]) -> bool:
    try:
        change()
    except (StorageError, AlreadyExists, InvalidInput, NotFound):
        return False
    return True


def let_go(folder: Folder, path: str, raws: Sequence[str]) -> None:
    """Before a topic file gets these entries: take its description out where that is the title of one that goes. Should
    a kill come then, the title of something that is gone would be taken for a person's words, and stay.
    """
    name = "/".join(folder.named(path))
    line = listed(folder).get(name)
    title = line.description if line else ""
    is_ours = title in {entry.title for entry in folder.entries(path)}
    if line and is_ours and title not in (text_of.parse(raw).title for raw in raws):
        index = folder.at(INDEX)
        bare = Listed("", line.entries or 0, line.archived or 0, line.newest or "-")
        pages.write(index, listing.edit_index(pages.text(index), {name: bare}))


def expect_fewer(folder: Folder, topic: str, subtopic: str) -> None:
    """Write down that an entry is about to leave the archive, so that `left_in_both` knows it, should a kill come
    between the topic file and the archive.
    """
    name = f"{topic}/{subtopic}"
    line = listed(folder).get(name)
    if line and line.archived:
        index = folder.at(INDEX)
        fewer = line._replace(archived=line.archived - 1)
        pages.write(index, listing.edit_index(pages.text(index), {name: fewer}))


def write(folder: Folder, path: str | None = None) -> None:
    """Bring index.md up to date: the line of this file (None: every line), of new files and of files that are gone.

    A description that is one of the entries' titles is ours and follows the newest entry; any other is a person's.
    """
    index = folder.at(INDEX)
    old = pages.text(index)
    new = edited(folder, old, path)
    if new != old:
        pages.write(index, new)


def is_current(folder: Folder) -> bool:
    """Whether index.md says what the files say, so that writing it anew would change nothing. Raises StorageError."""
    old = pages.text(folder.at(INDEX))
    if not old and not any(isinstance(file, str) for file in folder.topic_files()):
        return True
    return edited(folder, old) == old


def edited(folder: Folder, old: str, path: str | None = None) -> str:
    """What `write` makes of this page."""
    known = listing.read_index(old)
    present = _present(folder)
    changes: dict[str, Listed | None] = {
        name: None for name, line in known.items() if name not in present and line.entries is not None
    }
    for name, file in present.items():
        if path in (None, file) or name not in known or known[name].entries is None:
            changes[name] = _facts(folder, file, known.get(name))
    return listing.edit_index(old, changes)


def _present(folder: Folder) -> dict[str, str]:
    """The topic files by their "topic/subtopic"."""
    paths = (file for file in folder.topic_files() if isinstance(file, str))
    return {name: file for file in paths if _fits_a_line(name := "/".join(folder.named(file)))}


def _facts(folder: Folder, path: str, old: Listed | None) -> Listed:
    topic, subtopic = folder.named(path)
    entries = folder.entries(path)
    return Listed(
        _described(folder, path, old) or (entries[0].title if entries else ""),
        len(entries),
        archive.count(archive.by_year(folder, topic), subtopic),
        entries[0].date if entries else "-",
    )


def _described(folder: Folder, path: str, line: Listed | None) -> str:
    """What a person says of a topic file in its line; "" for nothing."""
    ours = {entry.title for entry in folder.entries(path)}
    return line.description if line and line.description not in ours else ""


# -- what others are told of it


def told(folder: Folder, page: str) -> str:
    """What a person wrote into a page: the rest each member makes of the files that it has."""
    bare = listing.without_lines(page)
    if bare is None:  # written by hand, in a way of its own
        return page
    known = listing.read_index(page)
    said = {name: _described(folder, file, known.get(name)) for name, file in _present(folder).items()}
    return listing.edit_index(bare, {name: _saying(text) for name, text in said.items() if text})


def completed(folder: Folder, told: str, before: str) -> str:
    """What is told of a page, and what was told `before` of files that are not here: that is left to others."""
    lines, present = listing.read_index(before), _present(folder)
    absent = {
        name: _saying(line.description) for name, line in lines.items() if line.description and name not in present
    }  # fmt: skip
    return listing.edit_index(told, absent) if absent else told


def _saying(description: str) -> Listed:
    return Listed(description, 0, 0, "-")


def _fits_a_line(name: str) -> bool:
    """Whether index.md can name a file that somebody made by hand."""
    return not re.search("[\n\r\ud800-\udfff]|<!-- ", name)
