"""A layers store in a temporary folder, empty or filled, and the entries that its tests use."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import Clock, tree
from memlane.lanes.layers.entries import MemoryEntry
from memlane.lanes.layers.store import MemoryStore

STAMP = "<!-- Last Updated: 2026-02-10 -->\n\n"
REVIEWS = "skill-specific/python-code-review/my-api/review_history"
ISSUES = "skill-specific/python-code-review/my-api/known_issues"
COPY = ".trash/skills/python-code-review/my-api/known_issues~before-prune_20260210_090000.md"
PROFILE = "shared-project/my-api/project_profile"
OVERVIEW = "# Project Overview - My API\n\n## Framework\n- FastAPI 0.104"


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 2, 10, 9, 0, tzinfo=UTC))


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> MemoryStore:
    return MemoryStore(tmp_path / "memory", clock=clock)


def entry(id: str, content: str = "Text\n") -> dict[str, str]:
    """The seed's entry for an id."""
    layer, *names, file_type = id.split("/")
    keys = {
        "shared-project": ["projectName"],
        "skill-specific": ["skillName", "projectName"],
        "command": ["projectName"],
        "agent": ["agentName"],
    }[layer]
    return {"layer": layer, **dict(zip(keys, names, strict=True)), "fileType": file_type, "content": content}


def review(number: int) -> str:
    return f"## Review #{number} - 2026-01-{number:02}\n\nFound {number} issues.\n\n"


def reviews(first: int, last: int) -> str:
    return "".join(review(number) for number in range(first, last + 1))


def place(store: MemoryStore, relative: str, text: str) -> Path:
    """A file as a person or another tool left it."""
    path = store.root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def memories(store: MemoryStore) -> dict[str, bytes]:
    """All files but the side files."""
    return {name: data for name, data in tree(store.root).items() if not name.endswith(".stats.jsonl")}


def ids(entries: list[MemoryEntry]) -> list[str]:
    return [entry.id for entry in entries]


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    for id in (
        PROFILE,
        "shared-project/my-api/technology_stack",
        "shared-project/other/project_profile",
        REVIEWS,
        ISSUES,
        "skill-specific/python-code-review/other/known_issues",
        "skill-specific/testing/my-api/testing_patterns",
        "command/my-api/command_history",
        "command/other/command_history",
        "agent/zeus/notes",
        "agent/zeus/plans",
    ):
        store.create(entry(id, f"# {id}\n"))
    for folder in (
        "projects/my-api",
        "skills/python-code-review/my-api",
        "skills/python-code-review",
        "commands/my-api",
        "agents/zeus",
        ".",
    ):
        place(store, f"{folder}/index.md", "# Index\n")
    place(store, "skills/python-code-review/my-api/review_history_archive.md", STAMP + review(1))
    place(store, "projects/my-api/readme.txt", "no memory")
    return store
