"""What other programs remember, as values: one module per format, each with `read(path) -> Iterator[Found]`.

    for found in importers.read("obsidian", Path("vault")):
        ...  # an Item, a Problem or a Skipped

A reader decides nothing: `exchange/imports.py` says whether an item is new, and the gate whether it may be stored.
Nothing here writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from memlane.core.errors import InvalidInput, NotFound
from memlane.exchange.importers.item import Found as Found
from memlane.exchange.importers.item import Item as Item
from memlane.exchange.importers.item import Skipped as Skipped

KINDS = {  # what --from takes, and what it means
    "markdown": "a folder of Markdown files, or one file",
    "obsidian": "an Obsidian vault",
    "claude": "Claude Code's own memory folder",
    "serena": "Serena's .serena/memories",
    "cline": "a Cline memory bank",
    "memory-json": "the memory.jsonl of the MCP reference server",
    "mem0": "a JSON export of mem0",
    "jsonl": "what `memlane export` wrote",
    "bank": "another project with a bank",
    "notes": "another bank's notes",
    "vault": "another vault.jsonl",
    "topics": "another folder of topics",
    "records": "another folder of records",
    "layers": "another folder of layers",
}
STORES = ("notes", "vault", "topics", "records", "layers")
OWN = ("jsonl", "bank", *STORES)  # memories of memlane's own, which come back as they were


def read(kind: str, path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    """Everything at a path that can be remembered, damage and what was passed over between it.

    `skip` names folders (absolute) that are not looked into.
    """
    if kind not in KINDS:
        raise InvalidInput("There is no such kind of source.", hint=f"Use one of: {', '.join(KINDS)}.")
    if kind in STORES or kind == "bank":
        from memlane.exchange.importers.jsonl import read_bank, read_store

        return read_bank(path) if kind == "bank" else read_store(kind, path)
    module: Any = import_module(f"memlane.exchange.importers.{kind.replace('-', '_')}")
    found: Iterator[Found] = module.read(path, skip)
    return found


def detect(path: Path) -> str:
    """The kind of source that lies at a path, judged by its content. Raises NotFound, InvalidInput."""
    if not os.path.lexists(path):
        raise NotFound("There is nothing at that path.", hint="Name a folder or a file that exists.")
    found = _kind_of_folder(path) if path.is_dir() else _kind_of_file(path)
    if found is None:
        raise InvalidInput(
            f"{path.name or path} is nothing that can be told by its content.",
            hint=f"Say what it is with --from: {', '.join(KINDS)}.",
        )
    return found


def _kind_of_folder(path: Path) -> str | None:
    from memlane import config
    from memlane.exchange.importers import claude, cline, folder, serena

    if (path / ".obsidian").is_dir():
        return "obsidian"
    if serena.home(path) is not None:
        return "serena"
    if cline.home(path) is not None:
        return "cline"
    if claude.home(path) is not None:
        return "claude"
    if (path / config.PROJECT_FILE).is_file():
        return "bank"
    return "markdown" if any(isinstance(found, str) for found in folder.walk(path)) else None


def _kind_of_file(path: Path) -> str | None:
    from memlane.exchange.importers import folder, mem0

    if path.suffix.lower() in folder.SUFFIXES:
        return "markdown"
    try:
        with open(path, "rb") as file:
            line = next((line for line in file if line.strip(b" \t\r\n\xef\xbb\xbf")), b"")
        first = json.loads(line)
    except (OSError, ValueError, RecursionError):
        first = None
    if isinstance(first, dict):
        if first.get("type") in ("entity", "relation"):
            return "memory-json"
        if {"id", "lane", "text"} <= first.keys():
            return "jsonl"
        if {"id", "text", "created_at"} <= first.keys():
            return "vault"
    return "mem0" if mem0.memories(path) is not None else None
