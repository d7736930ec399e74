"""An Obsidian vault: as a folder of Markdown, and tags may also stand in the text (`#project/alpha`).

A tag has letters, digits, `_`, `-` and `/`, at least one letter among them, and white space before its #. Wikilinks,
aliases and other properties stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memlane.core.markdown import lines_with_code
from memlane.core.model import Draft
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found

_TAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    return folder.notes(path, _draft, skip)


def _draft(relative: str, values: Mapping[str, Any], body: str, written: datetime | None) -> Draft:
    return folder.draft_of(relative, values, body, written, tuple(inline_tags(body)))


def inline_tags(text: str) -> Iterator[str]:
    """The tags that stand in a text, outside code."""
    if "#" not in text:
        return
    for line, code in lines_with_code(text):
        if not code and "#" in line:
            yield from (match[1].strip("/") for match in _TAG.finditer(_CODE.sub(" ", line)) if match[1].strip("/"))
