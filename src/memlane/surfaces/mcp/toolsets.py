"""Which tools a server has: seed 003's ten, remember and recall, and the toolsets of `[mcp] toolsets`.

A toolset is another lane's verbs, by its seed's own names after the lane's: `vault_add_memory`, `topics_store`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from memlane.config import Config
from memlane.core.errors import ConfigError
from memlane.surfaces.mcp import notes, remember_recall
from memlane.surfaces.mcp.tools import Tool

NAMES = ("vault", "topics", "layers", "records")
DEFAULT = (*remember_recall.TOOLS, *notes.TOOLS)


def check(settings: Config) -> None:
    """Raise ConfigError for a toolset that does not exist."""
    if not set(settings["mcp.toolsets"]) <= set(NAMES):
        source = settings.sources["mcp.toolsets"]
        raise ConfigError(f"{source}: mcp.toolsets has an unknown name.", hint=f"There are: {', '.join(NAMES)}.")


def tools(names: Iterable[str] = ()) -> tuple[Tool, ...]:
    """The default tools and those of the named sets, always in the same order: prompt caches depend on it."""
    wanted = set(names)
    found = list(DEFAULT)
    for name in NAMES:
        if name in wanted:
            found += import_module(f"memlane.surfaces.mcp.{name}").TOOLS
    return tuple(found)
