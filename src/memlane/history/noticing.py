"""Whether files are gone that the journal knows of: asked after every command, so that hardly anything is loaded."""

from __future__ import annotations

import os
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
    """How many files are gone or changed back, if that was not said before. A quick look, at the latest changes."""
    kept = bank.journal
    if kept is None or not kept.path:
        return 0
    here = journal.branch_of(kept.home)
    suspects = []
    for entry, branch in kept.latest(_QUICK):
        if TRASH in entry.name.split("/") or (entry.after is None and entry.kind not in (APPEND, CUT, SEEN)):
            continue
        if branch == here and files.size_of(os.path.join(kept.home, entry.name)) != entry.size:
            suspects.append(entry.name)
    if not suspects:
        return 0
    from memlane.history.recover import lost

    found = [one for one in lost(bank) if not one.branch]
    told = ",".join(sorted(f"{one.name} {one.change}" for one in found))
    return len(found) if kept.says_anew(journal.hashed(told.encode()).hex()) else 0
