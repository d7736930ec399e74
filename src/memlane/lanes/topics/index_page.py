"""index.md of a topic lane (seed 000): topics and sub-topics with a description and counts, kept up to date.

It is derived from the topic files and the archive; only a description may be a person's. Entries are never read
from it. entries.py knows how its lines look.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.lanes.topics import archive, listing, pages
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
    titles = {entry.title for entry in folder.entries(path)}
    pages.write(path, document.text)
    try:
        write(folder, path, titles)
    except (StorageError, AlreadyExists, InvalidInput, NotFound):
        return False
    return True


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


def write(folder: Folder, path: str | None = None, titles: Collection[str] = ()) -> None:
    """Bring index.md up to date: the line of this file (None: every line), of new files and of files that are gone.

    A description that is one of the entries' titles, or of `titles`, is ours and follows the newest entry; any other
    is a person's.
    """
    index = folder.at(INDEX)
    old = pages.text(index)
    new = _edited(folder, old, path, titles)
    if new != old:
        pages.write(index, new)


def is_current(folder: Folder) -> bool:
    """Whether index.md says what the files say, so that writing it anew would change nothing. Raises StorageError."""
    old = pages.text(folder.at(INDEX))
    if not old and not any(isinstance(file, str) for file in folder.topic_files()):
        return True
    return _edited(folder, old) == old


def _edited(folder: Folder, old: str, path: str | None = None, titles: Collection[str] = ()) -> str:
    known = listing.read_index(old)
    paths = (file for file in folder.topic_files() if isinstance(file, str))
    present = {name: file for file in paths if _fits_a_line(name := "/".join(folder.named(file)))}
    changes: dict[str, Listed | None] = {
        name: None for name, line in known.items() if name not in present and line.entries is not None
    }
    for name, file in present.items():
        if path in (None, file) or name not in known or known[name].entries is None:
            changes[name] = _facts(folder, file, known.get(name), titles if file == path else ())
    return listing.edit_index(old, changes)


def _facts(folder: Folder, path: str, old: Listed | None, titles: Collection[str]) -> Listed:
    topic, subtopic = folder.named(path)
    entries = folder.entries(path)
    ours = {"", *titles, *(entry.title for entry in entries)}
    description = old.description if old and old.description not in ours else ""
    return Listed(
        description or (entries[0].title if entries else ""),
        len(entries),
        archive.count(archive.by_year(folder, topic), subtopic),
        entries[0].date if entries else "-",
    )


def _fits_a_line(name: str) -> bool:
    """Whether index.md can name a file that somebody made by hand."""
    return not re.search("[\n\r\ud800-\udfff]|<!-- ", name)
