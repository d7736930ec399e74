"""The ids of dated entries: `auth/oauth2/2025-01-10-title-of-it`, the file, the date and a slug of the title.

Namesakes are numbered from the oldest on, archived and deleted ones included, so that neither a new entry nor a prune
nor a deletion gives an older entry another id. An archived entry that does not say whose it was, as archives of other
programs' making have them, gets `-archived` behind an id that another one has. Nothing here writes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence

from memlane import gate
from memlane.core.errors import NotFound, StorageError
from memlane.core.model import Problem
from memlane.core.patterns import lazily
from memlane.core.text import slug
from memlane.core.values import replace
from memlane.disk import files, names, trash
from memlane.lanes import read_file
from memlane.lanes.topics import archive, index_page
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Entry
from memlane.lanes.topics.pages import ARCHIVE, Folder

_TELLING = lazily(r"(?=\S{8})\S*\d")  # a long word with a digit in it, as nearly every secret has


def parts(native: str) -> tuple[str, str, str]:
    """Topic, sub-topic and the last part of an id. Raises NotFound, InvalidInput."""
    match names.safe_parts(native):
        case topic, subtopic, tail:
            return topic, subtopic, tail
    raise unknown(native)


def natives(folder: Folder, entries: Sequence[Entry], *, without: str = "") -> list[str]:
    """The native ids of a file's entries. `without`: as if this file were not in the trash."""
    if not entries:
        return []
    topic, subtopic = entries[0].topic, entries[0].subtopic
    years = {entry.date[:4] for entry in entries}
    _, tails = _tails(folder, topic, subtopic, entries, years, without)
    return [f"{topic}/{subtopic}/{tail}" for tail in tails]


def with_id(entry: Entry, native: str) -> Entry:
    return replace(entry, id=f"topics:{native}")


def identified(folder: Folder, path: str) -> tuple[Entry, ...] | Problem | None:
    """The entries of a topic file, each with its id."""
    entries = folder.read_entries(path)
    while isinstance(entries, tuple):
        ids = natives(folder, entries)
        before, entries = entries, folder.read_entries(path)
        if entries is before:  # else a prune came between the topic file and the archive: ids would be wrong
            if [entry.id for entry in entries] != [f"topics:{native}" for native in ids]:
                entries = tuple(map(with_id, entries, ids))
                folder.keep(path, entries)
            break
    return entries


def readable(folder: Folder, path: str) -> tuple[Entry, ...] | None:
    """As `identified`. Raises StorageError for a file that cannot be read."""
    entries = identified(folder, path)
    if isinstance(entries, Problem):
        raise StorageError(f"{os.path.basename(path)} {entries.why}.", hint="Mend the file, then try again.")
    return entries


def archived(folder: Folder, path: str) -> tuple[Entry, ...]:
    """The entries of an archive file, each with its id, the newest first; not those that a killed prune has left in
    the topic file as well.
    """
    topic, year = os.path.basename(os.path.dirname(path)), os.path.basename(path).removesuffix(".md")
    found = archive.read(folder, path)
    tails: dict[int, str | None] = {}  # by place in the file; None: it is in the topic file, too
    taken: dict[str, set[str]] = {}
    for subtopic in dict.fromkeys(entry.subtopic for _, entry in found):
        live = folder.entries(folder.at(topic, f"{subtopic}.md"))
        older, present = _tails(folder, topic, subtopic, live, {year})
        own = [place for place, (marked, entry) in enumerate(found) if marked and entry.subtopic == subtopic]
        for number in index_page.left_in_both(folder, topic, subtopic, [entry.raw for entry in live]) if own else ():
            raw = live[number].raw.rstrip("\r\n")
            for twin in [place for place in own if found[place][1].raw.rstrip("\r\n") == raw][-1:]:
                own.remove(twin)
                tails[twin] = None
        if len(older) == len(own):
            tails |= zip(reversed(own), older, strict=True)
        taken[subtopic] = {*older, *present, *in_trash(folder, topic, subtopic)}
    for place in reversed(range(len(found))):
        entry = found[place][1]
        if place not in tails:
            tails[place] = _free(_named(entry.date, entry.title), taken[entry.subtopic])
            taken[entry.subtopic].add(tails[place] or "")
    pairs = ((entry, tails[place]) for place, (_, entry) in enumerate(found))
    return tuple(with_id(entry, f"{topic}/{entry.subtopic}/{tail}") for entry, tail in pairs if tail)


def named(entry: Entry) -> str:
    """The last part of an entry's id before namesakes are numbered."""
    return _named(entry.date, entry.title)


def _named(date: str, title: str) -> str:
    """The last part of an id before it is numbered. An id is shown everywhere, so no secret of a title is in it."""
    if _TELLING.search(title):
        title = gate.redacted(title)
    return f"{date}-{slug(title) or 'entry'}"


def _free(base: str, taken: Collection[str]) -> str:
    tail, number = base, 1
    while tail in taken:
        tail = f"{base}-archived" if number == 1 else f"{base}-archived-{number}"
        number += 1
    return tail


def in_archive(folder: Folder, native: str) -> Entry | None:
    """The archived entry of this id."""
    topic, _, tail = parts(native)
    years = archive.by_year(folder, topic)
    for year in sorted(years, key=lambda year: year != tail[:4]):  # its own first
        for entry in archived(folder, folder.at(ARCHIVE, topic, f"{year}.md")):
            if entry.id == f"topics:{native}":
                return entry
    return None


def place_for(folder: Folder, entries: Sequence[Entry], back: Entry, native: str, trashed: str) -> int:
    """Where a deleted entry goes back: where every id stays the same, nearest to where its date belongs.

    Where no place does that (its file has changed meanwhile), where most ids stay. `trashed` is its file in the trash.
    """
    old = natives(folder, entries)
    dated = next((number for number, entry in enumerate(entries) if entry.date < back.date), len(entries))

    def unchanged(place: int) -> int:
        new = natives(folder, [*entries[:place], back, *entries[place:]], without=trashed)
        return sum(map(str.__eq__, new, [*old[:place], native, *old[place:]]))

    best, most = dated, -1
    for place in sorted(range(len(entries) + 1), key=lambda place: abs(place - dated)):
        if (same := unchanged(place)) > most:
            best, most = place, same
        if most > len(entries):
            break
    return best


def unknown(native: str) -> NotFound:
    return NotFound(f"There is no entry {gate.shown(native)}.", hint="`memlane list` shows the ids.")


def in_trash(folder: Folder, topic: str, subtopic: str, without: str = "") -> dict[str, str]:
    """The paths of a sub-topic's deleted entries by the last part of their ids."""
    try:
        stamped = files.names_in(folder.at(trash.TRASH, topic, subtopic))
    except OSError:
        return {}
    paths = (folder.at(trash.TRASH, topic, subtopic, name) for name in sorted(stamped))
    # `trash.put` names them <tail>_<date>_<time>.md
    return {os.path.basename(path).rsplit("_", 2)[0]: path for path in paths if path != without}


def _tails(
    folder: Folder, topic: str, subtopic: str, entries: Sequence[Entry], years: set[str], without: str = ""
) -> tuple[list[str], list[str]]:
    """The last parts of the ids of the entries archived in these years, oldest first, and of a topic file's entries."""
    older: list[tuple[str, str]] = []
    archives = archive.by_year(folder, topic)
    for year in sorted(years & archives.keys()):
        older += reversed(text_of.archived_headings(archives[year], subtopic))
    if older:
        for number in index_page.left_in_both(folder, topic, subtopic, [entry.raw for entry in entries]):
            twin = (entries[number].date, entries[number].title)
            if twin in older:
                older.remove(twin)
    deleted = in_trash(folder, topic, subtopic, without)
    counts: Counter[str] = Counter()
    tails: dict[str, None] = {}
    for date, title, raw in [
        *((date, title, None) for date, title in older),
        *((entry.date, entry.title, entry.raw) for entry in reversed(entries)),
    ]:
        tail = base = _named(date, title)
        if counts[base]:
            tail = f"{base}-{counts[base] + 1}"
        while tail in tails or (tail in deleted and not _same(deleted[tail], raw)):
            counts[base] += 1
            tail = f"{base}-{counts[base] + 1}"
        counts[base] += 1
        tails[tail] = None
    return [*tails][: len(older)], [*tails][len(older) :][::-1]


def _same(path: str, raw: str | None) -> bool:
    """Whether a deleted entry stands in its file: a kill came between the two writes, or a file was restored."""
    return raw is not None and read_file(path) == text_of.line(raw)
