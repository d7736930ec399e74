"""An Obsidian vault: a folder of Markdown, whose tags may also stand in the text (`#project/alpha`).

A tag has letters, digits, `_`, `-` and `/`, at least one letter among them, and white space before its #. Wikilinks,
aliases and other properties stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from memlane.core.markdown import lines_with_code
from memlane.core.model import Draft
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found

_TAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def find(path: Path) -> Path | None:
    """The path, if it is a vault."""
    return path if (path / ".obsidian").is_dir() else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(path, skip, draft=_draft)


def _draft(page: folder.Page) -> Draft:
    return folder.draft_of(page, inline_tags(page.body))


def inline_tags(text: str) -> Iterator[str]:
    """The tags that stand in a text, outside code."""
    if "#" not in text:
        return
    for line, code in lines_with_code(text):
        if not code and "#" in line:
            yield from filter(None, (match[1].strip("/") for match in _TAG.finditer(_CODE.sub(" ", line))))
