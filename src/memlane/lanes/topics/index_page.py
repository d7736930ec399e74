"""index.md of a topic lane (seed 000): topics and sub-topics with a description and counts, kept up to date.

It is derived from the topic files and the archive; only a description may be a person's. Entries are never read
from it. How its lines look is topic_entries.py's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memlane.core.errors import AlreadyExists, InvalidInput, StorageError
from memlane.lanes.topics import archive, pages
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Entry, Listed
from memlane.lanes.topics.pages import INDEX, Folder


def listed(folder: Folder) -> dict[str, Listed]:
    """The lines of index.md by their "topic/subtopic"; {} when it cannot be read."""
    text = folder.read(folder.at(INDEX))
    return text_of.read_index(text) if isinstance(text, str) else {}


def update(folder: Folder, path: str, before: Sequence[Entry]) -> bool:
    """As `write`. The entries are stored already, so a failure here is answered, not raised."""
    try:
        write(folder, path, before)
    except (StorageError, AlreadyExists, InvalidInput):
        return False
    return True


def write(folder: Folder, path: str = "", before: Sequence[Entry] = (), *, everything: bool = False) -> None:
    """Bring index.md up to date: the line of this file, of files it does not know, and of files that are gone.

    A description that is one of the entries' titles is ours and follows the newest; any other is a person's.
    """
    index = folder.at(INDEX)
    old = pages.text(index)
    new = _edited(folder, old, path, before, everything)
    if new != old:
        pages.write(index, new)


def is_current(folder: Folder) -> bool:
    """Whether index.md says what the files say, so that writing it anew would change nothing. Raises StorageError."""
    old = pages.text(folder.at(INDEX))
    if not old and not any(isinstance(file, str) for file in folder.topic_files()):
        return True
    return _edited(folder, old, "", (), True) == old


def _edited(folder: Folder, old: str, path: str, before: Sequence[Entry], everything: bool) -> str:
    known = text_of.read_index(old)
    paths = (file for file in folder.topic_files() if isinstance(file, str))
    present = {name: file for file in paths if _fits_a_line(name := "/".join(folder.named(file)))}
    changes: dict[str, Listed | None] = {
        name: None for name, line in known.items() if name not in present and line.entries is not None
    }
    for name, file in present.items():
        if file == path or everything or name not in known or known[name].entries is None:
            changes[name] = _facts(folder, file, known.get(name), before if file == path else ())
    return text_of.edit_index(old, changes)


def _facts(folder: Folder, path: str, old: Listed | None, before: Sequence[Entry]) -> Listed:
    topic, subtopic = folder.named(path)
    entries = folder.entries(path)
    entries = entries if isinstance(entries, tuple) else ()
    ours = {"", *(entry.title for entry in (*before, *entries))}
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
