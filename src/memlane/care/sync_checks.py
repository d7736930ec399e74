"""What doctor and review say of a bank's remotes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.care.inventory import Inventory
    from memlane.care.sync import Status
    from memlane.lanes.answers import Sign

_LISTED = 20  # files of one remote


def signs(inventory: Inventory) -> Iterator[Sign]:
    """Syncs that failed, and files that did not pass."""
    for each in _status(inventory.bank):
        name = each.settings.name
        fix = inventory.command("sync", "status")
        if each.failed:
            yield name, f"the last sync failed: {each.failed}", inventory.command("sync", name)
        for what, found in (("is held back at", each.held), ("is not sent to", each.unsent)):
            for one in found[:_LISTED]:
                yield one.path, f"{what} {name}: {one.why}", fix
            if len(found) > _LISTED:
                yield name, f"{len(found) - _LISTED:,} more files: {what} it", fix


def remarks(bank: Bank) -> Iterator[str]:
    """What of others' did not pass, in a line for each remote."""
    for each in _status(bank):
        if each.held:
            count = f"{len(each.held):,} file{'s' if len(each.held) != 1 else ''}"
            yield f"{count} at {each.settings.name} did not pass the gate: `memlane sync status` says which and why"


def _status(bank: Bank) -> list[Status]:
    from memlane.care.sync import status

    return status(bank, waiting=False)
