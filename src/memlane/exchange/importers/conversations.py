"""Conversations of a person with an assistant, as exports of chat programs have them: one private note for each.

What somebody said to an assistant is nobody else's business, so that git leaves these notes out. A secret in a
conversation is blanked: the rest of it is worth remembering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memlane import gate
from memlane.core.dates import moment
from memlane.core.errors import StorageError
from memlane.core.model import Draft, Problem
from memlane.core.text import first_line, slug
from memlane.disk import files
from memlane.exchange.importers import json_lines
from memlane.exchange.importers.folder import safe_name
from memlane.exchange.importers.item import Found, Item, Skipped

_HEAD = 1024 * 1024  # bytes in which the first conversation shows what program it is from


def exported(path: Path, key: str) -> list[Path]:
    """The files of an export: the one that the path is, or those in a folder. `key` is one of a conversation's."""
    names = sorted(files.names_in(path)) if path.is_dir() else []
    places = [path / name for name in names if name.startswith("conversations") and name.endswith(".json")]
    return [place for place in places or [path] if _has(place, key)]


def _has(path: Path, key: str) -> bool:
    try:
        head = files.beginning(str(path), _HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, StorageError):
        return False
    return head.startswith(b"[") and re.search(rb'"%s"\s*:\s*[\[{]' % key.encode(), head) is not None


def objects(path: Path, what: str) -> Iterator[dict[str, Any] | Problem]:
    """The objects of a file that is a list of them."""
    value = json_lines.document(path)
    if not isinstance(value, list):
        yield Problem(path, "is not a JSON list")
        return
    for number, part in enumerate(value, 1):
        if not isinstance(part, dict) or not json_lines.is_unicode(part):
            yield Problem(path, f"{what} {number} is not a whole one")
        else:
            yield part


def found(program: str, key: str, title: Any, turns: Iterable[tuple[str, str]], *dates: Any) -> Found:
    """A conversation: who said what in turn, and the first of these dates that is one."""
    said = [(who, text.strip()) for who, text in turns if text.strip()]
    name = " ".join(title.split()) if isinstance(title, str) else ""
    if not said:
        return Skipped(name or key, "nothing was said")
    name = gate.redacted(name or first_line(said[0][1], 80))
    created = next((when for when in map(moment, dates) if when), None)
    text = "\n".join(f"**{who}:**\n\n{text}\n" for who, text in said)
    draft = Draft(gate.redacted(text), name, (program,), thread=key, created_at=created, fields={"private": True})
    return Item(key, draft, safe_name(f"{program}/{slug(name) or 'conversation'}"))
