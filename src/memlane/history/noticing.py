"""Whether files are gone that the journal knows of: asked after every command, so that hardly anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from memlane.disk import files, journal
from memlane.disk.journal import APPEND, CUT, SEEN
from memlane.disk.trash import TRASH

if TYPE_CHECKING:
    from memlane.bank import Bank

_QUICK = 2000  # entries that are looked at, the newest


def summary(count: int) -> str:
    """How many files are lost, in a few words."""
    files = "1 file is" if count == 1 else f"{count:,} files are"
    return f"{files} gone or changed back, not by memlane"


def noticed(bank: Bank) -> int:
    """How many files are gone or changed back, if that was not said before. A quick look, at the latest changes: only
    where it finds others than the last time, all files are examined, which takes long where thousands are gone.
    """
    kept = bank.journal
    if kept is None or not kept.path:
        return 0
    here = journal.branch_of(kept.home)
    suspects: list[str] = []
    for entry, branch in kept.latest(_QUICK):
        if TRASH in entry.name.split("/") or (entry.after is None and entry.kind not in (APPEND, CUT, SEEN)):
            continue
        if branch == here and (size := files.size_of(os.path.join(kept.home, entry.name))) != entry.size:
            suspects.append(f"{entry.name} {entry.row} {size}")
    looked = _digest(suspects)
    if not suspects or kept.said("looked") == looked:
        return 0
    from memlane.history.recover import lost

    found = [one for one in lost(bank) if not one.branch]
    told = _digest(f"{one.name} {one.change}" for one in found)
    kept.said("looked", looked)
    return len(found) if kept.said("said", told) != told else 0


def _digest(words: Iterable[str]) -> str:
    return journal.hashed(",".join(sorted(words)).encode(errors="surrogatepass")).hex()
