"""Which tools a server has: remember and recall, seed 003's ten, three more over all lanes, and `[mcp] toolsets`.

A toolset is another lane's verbs, by its seed's own names after the lane's: `vault_add_memory`, `topics_store`; or the
tools of the MCP reference memory server, under their own names; or those for agents that keep names of their own. It
consists of everything in its module that is made by `@tool`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from memlane.config.settings import TOOLSETS as NAMES
from memlane.surfaces.mcp import all_lanes, notes, remember_recall
from memlane.surfaces.mcp.tools import Tool


def _defined_in(module: ModuleType) -> list[Tool]:
    """A module's tools, in the order they are written in: clients list them so, and prompt caches depend on it."""
    return [value for value in vars(module).values() if isinstance(value, Tool)]


DEFAULT = (*_defined_in(remember_recall), *_defined_in(notes), *_defined_in(all_lanes))


def tools(names: Iterable[str] = ()) -> tuple[Tool, ...]:
    """The default tools and those of the named sets, always in the order of NAMES."""
    chosen = set(names)
    modules = [import_module(f"memlane.surfaces.mcp.{name.replace('-', '_')}") for name in NAMES if name in chosen]
    return (*DEFAULT, *(tool for module in modules for tool in _defined_in(module)))
