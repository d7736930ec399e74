"""What doctor looks for in the journal: is it written, is it whole, and does it know more than the disk?"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from memlane.care.inventory import Inventory
from memlane.config.places import journal_folder
from memlane.history.noticing import summary
from memlane.lanes.answers import Sign


def unrecorded(inventory: Inventory) -> Iterator[Sign]:
    """No journal, though one is wanted, or a damaged one that was put aside."""
    kept = inventory.bank.journal
    if kept is None:
        if journal_folder() is None:
            yield "journal", "there is no home folder to keep it in", "Set HOME."
        return
    folder = kept.folder
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if kept.absent or not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        why = kept.absent or "its folder cannot be written"
        yield kept.folder, f"changes are not recorded: {why}", f"Make {folder} a folder that you can write."
    for path in kept.asides():
        if path.endswith(".damaged"):
            yield path, "is a damaged journal that was put aside; a new one was begun", shlex.join(["rm", path])


def vanished(inventory: Inventory) -> Iterator[Sign]:
    found = [one for one in inventory.bank.lost() if not one.branch]
    if found:
        first = ", ".join(id for one in found[:3] for id in one.ids[:1])
        why = f"{summary(len(found))}: {first}{' …' if len(found) > 3 else ''}"
        yield os.fspath(inventory.bank.root), why, inventory.command("recover", "--apply")
