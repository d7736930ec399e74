"""A folder of Markdown files, or one of them: front matter, titles, dates and folders as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found


def find(path: Path) -> Path | None:
    """The path, if it is a Markdown file or a folder with one."""
    found = any(isinstance(file, str) for file in folder.walk(path)) if path.is_dir() else folder.is_markdown(path.name)
    return path if found else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(path, skip)
