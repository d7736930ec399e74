"""A vault in a temporary folder, and what its tests write and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlane.core.model import Memory, Problem
from memlane.lanes.vault.store import MemoryVault

MISSION = "Mission: stabilize the runtime and explore boundaries in layers"
BURST = "Burst mode enforces 1 tool call per tick in the runtime"
BURST_AGAIN = "In burst mode only 1 tool call is allowed per tick"
SSN = "-".join(("123", "45", "6789"))


@pytest.fixture
def vault(tmp_path: Path) -> MemoryVault:
    return MemoryVault(tmp_path / "data" / "memory" / "vault.jsonl")


def lines(vault: MemoryVault) -> list[dict[str, Any]]:
    return [json.loads(line) for line in vault.path.read_text("utf-8").splitlines()] if vault.path.exists() else []


def write(vault: MemoryVault, *entries: object) -> None:
    """Lines as a person or an older version left them."""
    vault.path.parent.mkdir(parents=True, exist_ok=True)
    rows = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    vault.path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


def add(vault: MemoryVault, text: str = MISSION, **fields: Any) -> str:
    return vault.add_memory(text, fields.pop("scope", "shared"), fields.pop("category", "mission"), **fields)


def parsed(vault: MemoryVault) -> list[Memory | Problem]:
    return [item for path in vault.files() if isinstance(path, str) for item in vault.parse(path)]
