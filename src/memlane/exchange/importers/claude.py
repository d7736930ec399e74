"""Claude Code's own memory: MEMORY.md, the index, and a file for each topic.

    ~/.claude/projects/<project>/memory/MEMORY.md
    ~/.claude/projects/<project>/memory/feedback_testing.md

    ---
    name: Testing
    description: Integration tests use a real database
    type: feedback                 # or below `metadata:`; user, feedback, project or reference
    modified: 2026-03-01T10:00:00Z
    ---

The type becomes a tag, the name the title. An index that only points to the other files is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from memlane.core.model import Draft
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found, Item, Skipped

INDEX = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
_POINTER = re.compile(r"\s*(?:[-*+]\s+\[[^\]]*\]\([^)]*\).*|#.*|-{3,}|<!--.*-->)?\s*")


def find(path: Path) -> Path | None:
    """The memory folder that a path is, or has."""
    return next((place for place in (path, path / "memory") if (place / INDEX).is_file()), None)


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    for found in folder.notes(find(path) or path, skip, below="claude", draft=_draft):
        yield Skipped(INDEX, "an index of the other files") if _is_index(found) else found


def _is_index(found: Found) -> bool:
    """Whether this is MEMORY.md, and every line of it only points to another file."""
    if not isinstance(found, Item) or found.key != INDEX:
        return False
    return all(map(_POINTER.fullmatch, found.draft.text.split("\n")))


def _draft(page: folder.Page) -> Draft:
    front = dict(page.front)
    if not front.get("title"):
        front["title"] = front.pop("name", None)
    metadata = front.get("metadata")
    kind = front.get("type") or (metadata.get("type") if isinstance(metadata, dict) else None)
    if kind not in TYPES:
        return folder.draft_of(page._replace(front=front))
    front.pop("type", None)
    return replace(folder.draft_of(page._replace(front=front), [kind]), type="fact")
