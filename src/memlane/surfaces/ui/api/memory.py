"""One memory: its text, where it came from and whether it is still true."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.care.deciding import evidence
from memlane.surfaces.ui import markdown
from memlane.surfaces.ui.asking import Asked, Question, text


def get(bank: Bank, asked: Asked) -> dict[str, Any]:
    memory = bank.get(text(asked, "id"), expired=True)
    return memory.to_dict() | {
        "body": markdown.tree(memory.text),
        "evidence": evidence(memory),
        "held": bank.held(memory) or "",
        "code": bank.outdated(memory),
        "origin": bank.origins([memory]).get(memory.id, ""),
        "users_word": memory.id in bank.users_word([memory]),
    }


READS: dict[str, Question] = {"memory": get}
WRITES: dict[str, Question] = {}
