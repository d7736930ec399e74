"""What the journal knows better than the disk: files that vanished, or went back, without memlane.

`git clean`, `git checkout`, `rm` or an editor may take away what was stored. Nothing comes back by itself, because that
may have been meant: `lost` says what there is, `recover` brings it back. What was deleted through memlane is never
among it, nor is a file that somebody has changed by hand since. What git has on another branch is not lost. What was
stored at a place of the bank that is gone, a work tree or a clone that was removed, is offered here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha1
from typing import TYPE_CHECKING, Any

from memlane.core.errors import AlreadyExists, MemlaneError, StorageError
from memlane.core.model import Memory
from memlane.core.values import asdict, dataclass, replace
from memlane.disk import files, journal, log, written
from memlane.disk.journal import APPEND, CUT, SEEN, Change, Entry, Journal
from memlane.disk.trash import TRASH
from memlane.gate import shown
from memlane.history import git
from memlane.history.journaled import Reader, own_name, reading
from memlane.history.undo import stamp, who
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

GONE, BACK = "gone", "changed back"


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that the journal knows better. `ids` are its memories that are not there as they were; `branch` is where
    git has it, so that nothing is lost; `place` is the folder where it was, if that is not this one.
    """

    name: str
    what: str  # "gone" or "changed back"
    ids: tuple[str, ...]
    change: str
    at: str
    by: str
    branch: str = ""
    place: str = ""
    data: bytes = b""  # what the file should be; of a log, the lines that are missing
    now: bytes | None = None  # what it is

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(replace(self, data=b"", now=None)), "ids": list(self.ids), "data": None, "now": None}


# -- what there is


def lost(bank: Bank) -> list[Lost]:
    """All that could be brought back, and what is only on another branch. Reads only."""
    kept = bank.journal
    if kept is None or not kept.path:
        return []
    places = [place for place in kept.places() if place == kept.home or not os.path.isdir(place)]
    found: dict[str, Lost] = {}
    with reading(bank) as reader:
        for place in sorted(places, key=lambda each: each != kept.home):  # here first
            for one in _at(bank, kept, reader, place):
                other = found.setdefault(one.name, one)
                if other is not one and _is_lane(reader, one.name):
                    have = set(other.data.splitlines())
                    more = b"".join(line + b"\n" for line in one.data.splitlines() if line not in have)
                    ids = tuple(dict.fromkeys((*other.ids, *one.ids)))
                    found[one.name] = replace(other, data=other.data + more, ids=ids)
    return _with_branches(bank, list(found.values()))


def _at(bank: Bank, kept: Journal, reader: Reader, place: str) -> Iterator[Lost]:
    own = kept.heads()
    heads = own if place == kept.home else kept.heads(place)
    derived = {own_name(bank, path) for name in NAMES if (path := bank.lane(name).answers.derived())}
    changes: dict[int, Change | None] = {}  # one that brought ten thousand files takes long to read
    for name, entry in heads.items():
        if TRASH in name.split("/") or name in derived:
            continue
        here = own.get(name)
        if place != kept.home and here is not None and here.row > entry.row and not _is_lane(reader, name):
            continue  # changed or deleted here since; a lane that is a log is told line by line
        if entry.change not in changes:
            changes[entry.change] = kept.get(entry.change)
        if change := changes[entry.change]:
            yield from _compared(bank, kept, reader, entry, change, place)


def _compared(bank: Bank, kept: Journal, reader: Reader, entry: Entry, change: Change, place: str) -> Iterator[Lost]:
    """A file that is not as its last entry at a place says, if that is nobody's wish."""
    name, is_log = entry.name, entry.kind in (APPEND, CUT, SEEN) or entry.name.endswith(".jsonl")
    path = os.path.normpath(os.path.join(kept.home, name))
    now = _bytes(path)
    if is_log:
        data = kept.content(name, place=place)
        if data is None or data == now:
            return
        have = set((now or b"").splitlines())
        if place != kept.home:  # what was here once, and is not any more, was taken out here
            rows = kept.rows_of([name], here=True)
            known = (kept.text(hash) for row in rows for hash in (row.before, row.after))
            have.update(line for text in known if text for line in text.splitlines())
        data = b"".join(line + b"\n" for line in data.splitlines() if line.strip() and line not in have)
        if not data:
            return
    else:
        found = kept.text(entry.after)
        hash = None if now is None else journal.hashed(now)
        if found is None or hash == entry.after or (not change.done and hash == entry.before):
            return
        if now is not None and not kept.knows(name, hash, place):
            return  # somebody has changed it by hand
        data = found
    ids = tuple(_ids(bank, reader, name, data, now, is_log=is_log))
    if ids or is_log or not _memories(reader, name, data, is_log=is_log):
        away = "" if place == kept.home else place
        what = GONE if now is None else BACK
        ids = ids or (name,)
        yield Lost(name, what, ids, change.id, stamp(change.at), who(change), change.branch, away, data, now)


def _ids(bank: Bank, reader: Reader, name: str, data: bytes, now: bytes | None, *, is_log: bool) -> Iterator[str]:
    """The memories that would come back: not those that were deleted, here or, as git has brought, by somebody else."""
    present = {} if is_log or now is None else _memories(reader, name, now, is_log=False)
    for id, memory in _memories(reader, name, data, is_log=is_log).items():
        as_before = id in present and present[id].text == memory.text
        if not as_before and not bank.tombstones.held(memory):
            yield id


def _memories(reader: Reader, name: str, data: bytes, *, is_log: bool) -> dict[str, Memory]:
    if is_log and not _is_lane(reader, name):
        return {}  # a file beside the lanes
    return reader.memories(name, data)


def _is_lane(reader: Reader, name: str) -> bool:
    """Whether a file is all of a lane."""
    found = reader.lane_of(name)
    return found is not None and found[1] == os.fspath(found[0].root)


def _bytes(path: str) -> bytes | None:
    try:
        return files.read_bytes(path, files.MAX_LOG_BYTES)
    except (OSError, StorageError):
        return None


# -- branches


def _with_branches(bank: Bank, found: list[Lost]) -> list[Lost]:
    """Name a branch only where another one is checked out now, and git has what was there."""
    here = journal.branch_of(files.real(os.fspath(bank.root)))
    away = [one for one in found if one.branch and one.branch != here]
    known: set[str] = set()
    try:
        top = git.top(bank.root) if away else None
        if top is not None and away:
            known = {
                one.name for one, size in zip(away, git.sizes(top, [_blob(one) for one in away]), strict=True) if size
            }
    except MemlaneError:
        known = set()
    return [one if one.name in known else replace(one, branch="") for one in found]


def _blob(one: Lost) -> str:
    """What git calls a content. Of a log, what is there now and the lines that are missing."""
    data = (one.now or b"") + one.data if one.name.endswith(".jsonl") else one.data
    return sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


# -- bringing back


def recover(bank: Bank, names: Collection[str] = ()) -> tuple[list[Lost], list[str]]:
    """Bring back what is lost, or of these ids and names only; what was brought back, and remarks about the rest.

    What another branch has is left there unless it is named. Raises StorageError.
    """
    done: list[Lost] = []
    remarks: list[str] = []
    with journal.change("recover"), written.copying():
        for one in chosen(lost(bank), names):
            path = os.path.normpath(os.path.join(files.real(os.fspath(bank.root)), one.name))
            journal.step(one.ids[0], "recover")
            try:
                _put(path, one)
            except (AlreadyExists, StorageError) as error:
                remarks.append(f"{shown(one.name)}: {error}")
                continue
            journal.about(*one.ids)
            done.append(one)
        for name in NAMES:
            root = os.path.realpath(bank.config.lane_root(name))
            if any(os.path.join(bank.journal.home, one.name).startswith(root) for one in done if bank.journal):
                bank.lane(name).answers.rebuild()
    return done, remarks


def chosen(found: Iterable[Lost], names: Collection[str]) -> list[Lost]:
    """Those of these ids or names; without any, those that no branch has."""
    return [one for one in found if ({one.name, *one.ids} & set(names) if names else not one.branch)]


def _put(path: str, one: Lost) -> None:
    if one.name.endswith(".jsonl"):
        files.append_lines(path, one.data)
    elif one.now is None:
        files.create(path, one.data)
    else:
        with files.locked(path):
            if log.read_all(path) != one.now:
                raise StorageError("it was changed just now.", hint="Try again.")
            files.replace(path, one.data)
