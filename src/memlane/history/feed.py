"""What has changed since a moment, memory by memory, for programs that follow a bank. From its journal; reads only.

A cursor names a place in the journal, and a later call goes on from there, in whatever process. What was written
without memlane, by an editor or by git, is in no journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memlane.core.dates import iso
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.disk.journal import Change, Entry, Journal
from memlane.history.journaled import Reader, reading
from memlane.history.undo import who
from memlane.lanes import NAMES
from memlane.recall.leaving import shown

if TYPE_CHECKING:
    from memlane.bank import Bank

NOW = "now"
NOWHERE = "0-0"  # the cursor of a bank in which nothing was changed yet


@dataclass(frozen=True, slots=True)
class Changed:
    """One memory that one change was about. `version` is what it has now, None where it is gone."""

    id: str
    verb: str
    at: datetime
    version: str | None
    by: str  # the surface and client
    change: str  # what `undo` takes

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id, "verb": self.verb, "at": iso(self.at), "version": self.version, "by": self.by,
            "change": self.change,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed, the oldest first, and the cursor for what comes after it.

    `complete` is False where the journal does not reach back to where the last call ended: then read everything anew.
    `more` is True where the limit has left out some.
    """

    changes: tuple[Changed, ...]
    cursor: str
    complete: bool
    more: bool = False

    def to_dict(self) -> dict[str, Any]:
        changes = [change.to_dict() for change in self.changes]
        return {"changes": changes, "cursor": self.cursor, "complete": self.complete, "more": self.more}


def changes(bank: Bank, since: str | None, limit: int | None) -> Changes:
    """As `Bank.changes`."""
    kept = bank.journal
    number, made = _place(None if since == NOW else since)
    if kept is None or not kept.path:
        return Changes((), NOWHERE, since in (None, NOW, NOWHERE) and kept is not None)
    name = f"{os.stat(kept.path).st_ino:x}"
    if since == NOW:
        return Changes((), f"{kept.over(0)}-{name}", True)
    known = since in (None, NOWHERE) or (made == name and number <= kept.over(number))
    number = number if known else 0
    last, more = kept.over(number), False  # one that is being made may still grow: what comes after it waits
    found: list[Changed] = []
    with reading(bank) as reader:
        for change in reversed(kept.changes(since=number, upto=last)):
            if limit is not None and len(found) >= max(limit, 0):
                last, more = change.number - 1, True
                break
            if change.place == kept.home:
                found += _changed(bank, kept, reader, change)
    return Changes(tuple(found), f"{last}-{name}", known and kept.reaches(number), more)


def _place(cursor: str | None) -> tuple[int, str]:
    """The number of the last change that was told, and of which journal. Raises InvalidInput."""
    if cursor is None:
        return 0, ""
    number, _, made = cursor.partition("-") if isinstance(cursor, str) else ("", "", "")
    if not (number.isascii() and number.isdecimal() and made):
        raise InvalidInput("That is not a cursor of changes.", hint="Leave it out to begin with the oldest change.")
    return int(number), made


def _changed(bank: Bank, kept: Journal, reader: Reader, change: Change) -> Iterator[Changed]:
    at = datetime.fromtimestamp(change.at, UTC)
    entries = kept.entries(change.number)
    named = [*change.ids, *(id for id, _ in change.steps)] if change.done else []  # or it was about more than it did
    ids = [*(id for entry in entries for id in _ids(kept, reader, entry, named)), *named]
    for id in dict.fromkeys(ids):
        if id.partition(":")[0] in NAMES:
            yield Changed(id, change.verb, at, _version(bank, id), who(change), change.id)


def _ids(kept: Journal, reader: Reader, entry: Entry, named: list[str]) -> Iterator[str]:
    """The memories that an entry of the journal is about. Of a file that many share, those that the change names; where
    it names none, those that are not what they were.
    """
    found = reader.lane_of(entry.name)
    if found is None:
        return
    lane, path = found
    if not lane.answers.shares_files:
        if native := lane.answers.native_of(path):
            yield f"{lane.name}:{native}"
    elif not any(id.startswith(f"{lane.name}:") for id in named):
        before, after = (
            reader.memories(entry.name, kept.content(entry.name, row)) for row in (entry.row - 1, entry.row)
        )
        yield from (id for id in {**before, **after} if before.get(id) != after.get(id))


def _version(bank: Bank, id: str) -> str | None:
    """The version of a memory as a caller sees it now; None where there is none."""
    lane, _, native = id.partition(":")
    try:
        [memory] = shown(bank, [bank.lane(lane).fetch(native)])
    except (MemlaneError, OSError):
        return None
    return None if bank.unseen()(memory) else memory.version
