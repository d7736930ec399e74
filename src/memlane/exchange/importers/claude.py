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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memlane.core.model import Draft
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found, Item, Skipped

INDEX = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
_POINTER = re.compile(r"\s*(?:[-*+]\s+\[[^\]]*\]\([^)]*\).*|#.*|-{3,}|<!--.*-->)?\s*")


def home(path: Path) -> Path | None:
    """The memory folder that a path is, or has."""
    return next((place for place in (path, path / "memory") if (place / INDEX).is_file()), None)


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    for found in folder.notes(home(path) or path, _draft, skip, below="claude"):
        if (
            isinstance(found, Item)
            and found.key == INDEX
            and all(map(_POINTER.fullmatch, found.draft.text.split("\n")))
        ):
            yield Skipped(found.key, "an index of the other files")
        else:
            yield found


def _draft(relative: str, values: Mapping[str, Any], body: str, written: datetime | None) -> Draft:
    given = dict(values)
    title = given.pop("name", None) if not given.get("title") else given["title"]
    metadata = given.get("metadata")
    kind = given.get("type") or (metadata.get("type") if isinstance(metadata, dict) else None)
    if kind in TYPES:
        given.pop("type", None)
    draft = folder.draft_of(relative, {**given, "title": title}, body, written, [kind] if kind in TYPES else [])
    return replace(draft, type=draft.type or ("fact" if kind in TYPES else None))
