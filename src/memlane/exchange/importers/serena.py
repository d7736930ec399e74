"""Serena's memories: Markdown files without front matter in `.serena/memories/`, topics as sub-folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found


def find(path: Path) -> Path | None:
    """The folder of memories that a path is, or has."""
    places = (path, path / ".serena/memories", path / "memories")
    return next((place for place in places if place.is_dir() and _is_serenas(place.absolute())), None)


def _is_serenas(place: Path) -> bool:
    return place.name == "memories" and place.parent.name == ".serena"


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(find(path) or path, skip, below="serena")
