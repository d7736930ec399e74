"""A Cline memory bank: `memory-bank/` with its six core files, and whatever was added beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found

CORE = ("projectbrief", "productContext", "activeContext", "systemPatterns", "techContext", "progress")


def find(path: Path) -> Path | None:
    """The memory bank that a path is, or has: a folder with two of the core files."""
    places = (path, path / "memory-bank")
    return next((place for place in places if sum((place / f"{name}.md").is_file() for name in CORE) >= 2), None)


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(find(path) or path, skip, below="cline")
