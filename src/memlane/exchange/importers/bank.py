"""Memlane's own stores lying elsewhere: the bank of another project, or a single lane. The memories come back as they
were."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from memlane import config
from memlane.core.model import Memory
from memlane.disk.replaced import FILE, Replaced
from memlane.exchange.importers.item import Found, Item
from memlane.lanes import NAMES, open_lane, scan


def find(path: Path) -> Path | None:
    """The path, if it is a folder with the configuration of a bank."""
    return path if (path / config.PROJECT_FILE).is_file() else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    settings = config.load(path)
    config.require_enabled(settings)
    links = Replaced(settings.root / FILE)
    for item in _read(settings, skip):
        if isinstance(item, Item) and item.memory is not None:
            item = Item.of(replace(item.memory, replaces=tuple(links.predecessors(item.memory.id))))
        yield item


def _read(settings: config.Config, skip: Collection[str]) -> Iterator[Found]:
    roots = {name: settings.lane_root(name) for name in NAMES}
    yield from read_lane("notes", roots.pop("notes"), skip=[*roots.values()])
    yield from read_lane("vault", roots.pop("vault"), home=settings.root)
    for name, root in roots.items():
        yield from read_lane(name, root)


def read_lane(name: str, root: Path, **options: Any) -> Iterator[Found]:
    """What a lane holds; topics oldest first, as they were written."""
    found = list(scan(open_lane(name, root, **options)))
    for memory in reversed(found) if name == "topics" else found:
        yield Item.of(memory) if isinstance(memory, Memory) else memory
