"""How a memory came to be what it is: what the journal has of it, the versions that its lane keeps, and git's commits.

Reads only, except `restore`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.core.errors import MemlaneError, NotFound, StorageError
from memlane.core.model import Memory
from memlane.core.values import replace
from memlane.disk import files, written
from memlane.disk.journal import APPEND, CUT, OUT, SEEN, Change, Entry
from memlane.gate import shown
from memlane.gate.outgoing import cleaned
from memlane.history import git
from memlane.history.journaled import own_name, reading, under_earlier_names
from memlane.history.undo import who
from memlane.lanes import readable
from memlane.lanes.answers import Version
from memlane.recall.address import Place, find, find_any, split

if TYPE_CHECKING:
    from memlane.bank import Bank

LONGEST = 1_000_000  # characters of two texts that are compared line by line


def history(bank: Bank, id: str) -> list[Version]:
    """Every version, the newest first. Of a deleted memory, too. Raises NotFound when nothing is known of it."""
    place = _place(bank, id)
    return _numbered(bank, place) or [version for version, _ in _versions(bank, place)]


def show(bank: Bank, id: str, version: str) -> Version:
    """One version with its text: `version` is its name, or the beginning of a commit. Raises NotFound.

    What git has is a file, so that the text of a topic's entry is all of its topic file.
    """
    place = _place(bank, id)
    for found in _numbered(bank, place) or ():
        if found.version == version:
            return found
    found, data = _chosen(bank, place, version)
    return replace(found, text=data.decode(errors="replace"))


def difference(bank: Bank, id: str, version: str, before: str | None = None) -> list[str] | None:
    """What a version changed, as the lines of a unified diff: of another version, or without one of nothing.

    Version "" is what is there now. None where the texts are too long to be compared. Raises NotFound.
    """
    from difflib import unified_diff

    old, new = ("" if name is None else _text(bank, id, name) for name in (before, version))
    if len(old) + len(new) > LONGEST:
        return None
    return list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]


def _text(bank: Bank, id: str, version: str) -> str:
    """The text of a version without secrets."""
    text = show(bank, id, version).text if version else _now(bank, _place(bank, id))
    return cleaned(text or "", bank.guard)


def _now(bank: Bank, place: Place) -> str:
    """What is there now, in the form that the versions have; "" where nothing is."""
    with suppress(NotFound, StorageError, OSError):
        if _numbered(bank, place):
            return place.lane.fetch(place.native).text
        return readable(place.path)
    return ""


def restore(bank: Bank, id: str, version: str) -> Memory:
    """Make a memory say again what it said in one of its versions. Raises NotFound, Refused, StorageError.

    Of a memory with a file of its own, the file comes back as it was.
    """
    place = _place(bank, id)
    lane, native = place.lane, place.native
    if numbered := _numbered(bank, place):
        if version not in (each.version for each in numbered):
            raise _unknown(id, version)
        lane.answers.put_version(native, version, _lines(bank, place))
    elif lane.answers.shares_files:
        _, data = _chosen(bank, place, version)
        with reading(bank) as reader:
            old = reader.memories(own_name(bank, place.path), data).get(place.id)
        if old is None:
            hint = f"`memlane history {shown(id)} --show {shown(version)}` prints the file."
            raise NotFound(f"That version of the file has no entry {shown(id)}.", hint=hint)
        with suppress(NotFound):
            lane.fetch(native)
            return _settled(bank, lane.revise(native, lane.answers.changes_to(old)))
        return _settled(bank, lane.answers.put_back(old))
    else:
        _, data = _chosen(bank, place, version)
        with written.copying(), lane.answers.writing():
            if os.path.lexists(place.path):
                with files.locked(place.path):
                    files.replace(place.path, data)
            else:
                files.create(place.path, data)
    return _settled(bank, lane.fetch(native))


def before_removal(bank: Bank, id: str) -> str:
    """The version that a memory had when a change took it away, as a sync does; "" where that is not what happened.

    What a user deletes here is in the trash, and nothing is asked of git.
    """
    place = _place(bank, id)
    name, gone = own_name(bank, place.path), False
    with reading(bank) as reader:
        for version, data in _journaled(bank, place):
            if data and place.id in reader.memories(name, data):
                return version.version if gone else ""
            gone = True
    return ""


def _settled(bank: Bank, memory: Memory) -> Memory:
    """What is back is wanted."""
    remarks = bank.tombstones.lift(memory.text, forgotten=False)
    bank.wrote(memory.lane, memory.file)
    return replace(memory, remarks=(*memory.remarks, *remarks))


def _unknown(id: str, version: str) -> NotFound:
    hint = f"`memlane history {shown(id)}` lists them."
    return NotFound(f"There is no version {shown(version)} of {shown(id)}.", hint=hint)


# -- all of them


def _place(bank: Bank, id: str) -> Place:
    """Where a memory is or was; also a record that only the journal knows. Raises NotFound."""
    try:
        return find_any(bank, id)
    except NotFound:
        name, native = split(id)
        if name and not (lane := bank.lane(name)).answers.is_folder:
            place = Place(lane, native, lane.answers.path_of(native))
            if _numbered(bank, place):
                return place
        raise


def _numbered(bank: Bank, place: Place) -> list[Version] | None:
    """The versions of a lane that numbers them, with those that only the journal has."""
    return place.lane.answers.versions(place.native, _lines(bank, place))


def _lines(bank: Bank, place: Place) -> list[bytes]:
    """What was ever written into a lane that is a log, and what is in it now."""
    if place.lane.answers.is_folder:
        return []
    kept = bank.journal
    rows = kept.rows_of([own_name(bank, place.path)]) if kept else []
    hashes = dict.fromkeys(hash for row in rows for hash in (row.before, row.after) if hash)
    texts = [kept.text(hash) for hash in hashes] if kept else []
    now = files.read_bytes(place.path, files.MAX_LOG_BYTES) if os.path.isfile(place.path) else b""
    return [*filter(None, texts), now]


def _versions(bank: Bank, place: Place) -> list[tuple[Version, bytes | None]]:
    """Those of the journal with their content, and those of git, the newest first. Raises NotFound."""
    found: list[tuple[Version, bytes | None]] = list(_journaled(bank, place))
    try:
        found += [(version, None) for version in _commits(bank, place)]
    except MemlaneError as error:
        if not found or error.code == "git":  # it has something to say that the user can mend
            raise
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda pair: pair[0].at or never, reverse=True)


def _chosen(bank: Bank, place: Place, version: str) -> tuple[Version, bytes]:
    for found, data in _versions(bank, place):
        name = found.version
        if data is not None and name == version:
            return found, data
        if data is None and len(version) >= 4 and name.startswith(version.lower()):
            return found, _content(place.path, found)
    raise _unknown(place.id, version)


def _journaled(bank: Bank, place: Place) -> Iterator[tuple[Version, bytes]]:
    """What the journal has of a memory's file: each change of this memory, the newest first."""
    kept = bank.journal
    if kept is None:
        return
    name = own_name(bank, place.path)
    moved = () if place.lane.answers.shares_files else under_earlier_names(kept, name)
    rows = sorted((row for row in moved if row.kind != OUT), key=lambda row: row.row)
    rows += [row for row in kept.rows_of([name]) if row.kind not in (APPEND, CUT, SEEN)]
    last = {row.change: row for row in rows}  # a change may write a file twice
    changes = {number: kept.get(number) for number in last}
    if not place.lane.answers.shares_files:
        for number in sorted(last, reverse=True):
            if change := changes[number]:
                yield from _as_version(bank, change, last[number], place.path)
        return
    with reading(bank) as reader:
        for number in sorted(last, reverse=True):
            row, change = last[number], changes[number]
            before, after = (reader.memories(name, kept.text(hash)).get(place.id) for hash in (row.before, row.after))
            if change and (before and before.text) != (after and after.text):
                yield from _as_version(bank, change, row, place.path)


def _as_version(bank: Bank, change: Change, row: Entry, path: str) -> Iterator[tuple[Version, bytes]]:
    kept = bank.journal
    data = kept.text(row.after) if kept else None
    elsewhere = f" in {os.path.dirname(change.place)}" if kept and change.place != kept.home else ""
    at = datetime.fromtimestamp(int(change.at), UTC)
    if row.after is None:
        data, what = b"", f"{change.verb}: deleted"
    else:
        what = change.verb
    if data is not None:  # else it is not kept any more
        yield Version(change.id, at, who(change) + elsewhere, what, path), data


# -- git


def _commits(bank: Bank, place: Place) -> list[Version]:
    path = place.path
    top = _repository(path)
    versions = []
    if git.run(top, "rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1)):
        command = ("log", "--follow", "--raw", "--no-abbrev", "-z", "--format=%H", "--no-ext-diff", "--no-textconv")
        out = git.run(top, git.LITERAL, *command, "--", git.relative(top, path) or path)
        paths = {entry.commit: entry.path for entry in git.entries(out) if git.usable(entry.path)}
        for commit in git.facts(top, list(paths)):
            version = Version(commit.id, commit.authored, commit.author, commit.subject, paths[commit.id])
            versions.append(version)
    if not versions:
        find(bank, place.id)  # or else it says which names are near
        hint = "Commit it, and it has a history from then on."
        raise NotFound(f"git knows no version of {shown(os.path.basename(path))}.", hint=hint)
    return versions


def _repository(path: str) -> Path:
    """The top of the repository of a file that may be gone. Raises NotFound when it is in none."""
    top = git.top(os.path.dirname(path))
    if top is None:
        raise NotFound(
            f"There is no history of {shown(os.path.basename(path))}: it is in no git repository.",
            hint="Keep the bank in git (`git init`, then commit it), and every commit is a version.",
        )
    return top


def _content(path: str, version: Version) -> bytes:
    return git.run(_repository(path), "cat-file", "blob", f"{version.version}:{version.path}")
