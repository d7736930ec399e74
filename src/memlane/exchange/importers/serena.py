"""Serena's memories: Markdown files without front matter in `.serena/memories/`, topics as sub-folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found


def home(path: Path) -> Path | None:
    """The folder of memories that a path is, or has."""
    real = path.absolute()
    if real.name == "memories" and real.parent.name == ".serena":
        return path
    return next((place for place in (path / ".serena/memories", path / "memories") if _is_home(place)), None)


def _is_home(place: Path) -> bool:
    return place.is_dir() and place.absolute().parent.name == ".serena"


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(home(path) or path, folder.draft_of, skip, below="serena")
