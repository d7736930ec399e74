"""Durable memory for AI agents, kept as plain files.

    from memlane import Bank

    with Bank.open() as bank:
        bank.add("Deploys go out on Tuesdays.", tags=["release"])

Names are loaded when they are first used, so that `import memlane` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for typing's own, which costs more to import than this module
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_HOME = {
    "AlreadyExists": "core.errors",
    "AsyncBank": "bank.asynchronous",
    "Bank": "bank",
    "ConfigError": "core.errors",
    "Conflict": "core.errors",
    "Hit": "core.model",
    "InvalidInput": "core.errors",
    "Link": "core.model",
    "Memory": "core.model",
    "MemoryEntry": "lanes.layers.entries",
    "MemlaneError": "core.errors",
    "MemoryStore": "lanes.layers.store",
    "MemoryVault": "lanes.vault.store",
    "NotEnabled": "core.errors",
    "NotFound": "core.errors",
    "NotTrusted": "core.errors",
    "NoteLane": "lanes.notes.store",
    "Problem": "core.model",
    "RecordLane": "lanes.records.store",
    "Refused": "core.errors",
    "Removed": "core.model",
    "StorageError": "core.errors",
    "TopicLane": "lanes.topics.store",
}

__all__ = [
    "AlreadyExists",
    "AsyncBank",
    "Bank",
    "ConfigError",
    "Conflict",
    "Hit",
    "InvalidInput",
    "Link",
    "MemlaneError",
    "Memory",
    "MemoryEntry",
    "MemoryStore",
    "MemoryVault",
    "NotEnabled",
    "NotFound",
    "NotTrusted",
    "NoteLane",
    "Problem",
    "RecordLane",
    "Refused",
    "Removed",
    "StorageError",
    "TopicLane",
    "__version__",
]

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.bank.asynchronous import AsyncBank
    from memlane.core.errors import (
        AlreadyExists,
        ConfigError,
        Conflict,
        InvalidInput,
        MemlaneError,
        NotEnabled,
        NotFound,
        NotTrusted,
        Refused,
        StorageError,
    )
    from memlane.core.model import Hit, Link, Memory, Problem, Removed
    from memlane.lanes.layers.entries import MemoryEntry
    from memlane.lanes.layers.store import MemoryStore
    from memlane.lanes.notes.store import NoteLane
    from memlane.lanes.records.store import RecordLane
    from memlane.lanes.topics.store import TopicLane
    from memlane.lanes.vault.store import MemoryVault


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'memlane' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"memlane.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
