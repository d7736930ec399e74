"""What other programs remember, read as values: one module per format.

    for found in importers.read("obsidian", Path("vault")):
        ...  # an Item, a Problem or a Skipped

Nothing here writes or decides: `exchange.imports` says whether an item is new, and the gate whether it may be stored.
To add a format, copy `cline.py`, give it a row in KINDS and a place in _DETECTED.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from memlane.core.errors import InvalidInput, NotFound
from memlane.exchange.importers import json_lines
from memlane.exchange.importers.item import Found as Found
from memlane.exchange.importers.item import Item as Item
from memlane.exchange.importers.item import Skipped as Skipped
from memlane.lanes import NAMES

KINDS = {  # what --from takes, and what it means
    "markdown": "a folder of Markdown files, or one file",
    "obsidian": "an Obsidian vault",
    "claude": "Claude Code's own memory folder",
    "serena": "Serena's .serena/memories",
    "cline": "a Cline memory bank",
    "memory-json": "the memory.jsonl of the MCP reference server",
    "mem0": "a JSON export of mem0",
    "chatgpt": "an export of ChatGPT",
    "claude-ai": "an export of Claude.ai",
    "letta": "an agent file of Letta, .af",
    "basic-memory": "a project of basic-memory",
    "jsonl": "what `memlane export` wrote",
    "bank": "another project with a bank",
    "notes": "another bank's notes",
    "vault": "another vault.jsonl",
    "topics": "another folder of topics",
    "records": "another folder of records",
    "layers": "another folder of layers",
}
OWN = ("jsonl", "bank", *NAMES)  # memories of memlane's own, which come back as they were
_DETECTED = (  # in this order: a folder of an agent is also a folder of Markdown
    "obsidian", "serena", "cline", "claude", "bank", "chatgpt", "claude-ai", "basic-memory", "markdown", "memory-json",
    "jsonl", "letta", "mem0",
)  # fmt: skip


class Importer(Protocol):
    """What the module of a format has."""

    def find(self, path: Path) -> Path | None:
        """Where the memories are: the path, or a folder below it; None when it is of another format."""

    def read(self, path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
        """Everything there that can be remembered, without the folders in `skip` (absolute)."""


def read(kind: str, path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    """As `Importer.read`, for any kind; damage and what was passed over come in between. Raises InvalidInput."""
    if kind not in KINDS:
        raise InvalidInput("There is no such kind of source.", hint=f"Use one of: {', '.join(KINDS)}.")
    if kind in NAMES:
        from memlane.exchange.importers.bank import read_lane

        return read_lane(kind, path)
    return _importer(kind).read(path, skip)


def detect(path: Path) -> str:
    """The kind of source at a path, told by its content. Raises NotFound, InvalidInput."""
    if not os.path.lexists(path):
        raise NotFound("There is nothing at that path.", hint="Name a folder or a file that exists.")
    for kind in _DETECTED:
        if _importer(kind).find(path) is not None:
            return kind
    if {"id", "text", "created_at"} <= json_lines.first(path).keys():
        return "vault"  # the other lanes are folders, which look like any folder of Markdown
    raise InvalidInput(
        f"{path.name or path} cannot be recognised by its content.",
        hint=f"Say what it is with --from: {', '.join(KINDS)}.",
    )


def _importer(kind: str) -> Importer:
    return cast("Importer", import_module(f"memlane.exchange.importers.{kind.replace('-', '_')}"))
