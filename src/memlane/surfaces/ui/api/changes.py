"""Taking back what the page has changed."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.core.model import USERS
from memlane.disk.journal import Group
from memlane.recall import under
from memlane.surfaces.ui.asking import Asked, Question, texts


def made_by(change: Group, bank: Bank) -> list[str]:
    """What "undo" takes to take a change back: its id, and that of its part in the user's own bank."""
    places = [("", bank.journal), (USERS, bank.under and bank.under.journal)]
    numbers = [(whose, change.number(kept)) for whose, kept in places if kept]
    return [f"{whose}c{number}" for whose, number in numbers if number]


def undo(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Take changes back; what has changed since is left alone and named."""
    done = []
    for id in texts(asked, "changes"):
        own = id.removeprefix(USERS)
        done.append((bank if own == id else under.users(bank)).undo(own))
    return {"conflicts": [{"path": path, "why": why} for each in done for path, why in each.conflicts]}


WRITES: dict[str, Question] = {"undo": undo}
