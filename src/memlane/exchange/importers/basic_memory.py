"""A project of basic-memory: a folder of Markdown whose front matter has a `permalink`.

    ---
    title: Search Design
    type: note
    permalink: design/search-design
    ---
    - [decision] Words and vectors are fused #ranking (2025-01-10)
    - implements [[Search Spec]]

A relation becomes a link that carries its wording, `- implements [[specs/search-spec|type:implements]]`, and any link
that names a note by its title or permalink names its file from then on. Tags of observations become the note's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.model import Draft
from memlane.disk.names import folded
from memlane.exchange.importers import folder
from memlane.exchange.importers.item import Found, Item
from memlane.exchange.importers.obsidian import inline_tags
from memlane.index.links import placeless, retargeted
from memlane.lanes import read_file

_LOOKED = 20  # files that tell what the folder is
_RELATION = re.compile(r"^([-*]\s+)([^\[\]|`\n]*?\w)(\s+\[\[[^\[\]|\n]+)\]\]", re.MULTILINE)


def find(path: Path) -> Path | None:
    """The path, if the first Markdown files below it that have front matter have a permalink in it."""
    if not path.is_dir():
        return None
    files = (found for found in folder.walk(path) if isinstance(found, str))
    told = [_permalink(file) for file in islice(files, _LOOKED)]
    return path if told and sum(map(bool, told)) * 2 >= len(told) else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    everything = list(folder.notes(path, skip, draft=_draft))
    names: dict[str, str] = {}  # of notes, by what a link may call them
    for item in everything:
        if isinstance(item, Item):
            for called in (item.draft.title, item.draft.fields.get("permalink")):
                if isinstance(called, str):
                    names.setdefault(folded(called), item.name)

    def name_for(node: str) -> str | None:
        return names.get(folded(placeless(node.partition(":")[2].removeprefix("//"))))

    for item in everything:
        if isinstance(item, Item):
            text = retargeted(_RELATION.sub(r"\1\2\3|type:\2]]", item.draft.text), name_for)
            yield replace(item, draft=replace(item.draft, text=text))
        else:
            yield item


def _draft(page: folder.Page) -> Draft:
    return folder.draft_of(page, inline_tags(page.body))


def _permalink(file: str) -> bool:
    text = read_file(file)
    front = find_front(text) if isinstance(text, str) else None
    if not isinstance(text, str) or front is None:
        return False
    with suppress(FrontMatterError):
        return isinstance(load_front(text[front.start : front.end]).get("permalink"), str)
    return False
