"""What an importer finds at a source, on its way into a bank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from memlane.core.model import Draft, Memory, Problem


@dataclass(frozen=True, slots=True)
class Item:
    """Something to remember. `key` names it at its source and stays the same when its text changes."""

    key: str
    draft: Draft
    name: str = ""  # the note that it should become: a path without `.md`
    memory: Memory | None = None  # one of memlane's own, which comes back as it was

    @classmethod
    def of(cls, memory: Memory) -> Item:
        """One of memlane's own memories."""
        return cls(memory.id, Draft(memory.text, memory.title, memory.tags), memory=memory)


class Skipped(NamedTuple):
    """Something at a source that is no memory, and why."""

    key: str
    why: str


Found = Item | Problem | Skipped
