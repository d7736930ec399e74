"""A folder of Markdown files, or one of them: front matter, titles, dates, folders as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(path, folder.draft_of, skip)
