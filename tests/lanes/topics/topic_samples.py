"""A topics lane in a temporary folder, and what the tests of topics say and look up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from memlane import TopicLane
from memlane.lanes.topics.entries import archived, parse, split

HAND_WRITTEN = """\
# OAuth2 Memory

Notes of the login team.

## 2024-12-01: Colon outside
**Context**: PRB-007
**Problem**: Redirects loop
**Key Insights:** The proxy drops a header.
**Solution**: Forward it

## 2024-11-30: Sections
### Problem
Sessions expire early.

### Solution
Renew them:

```sh
## 2020-01-01: not an entry
---
renew --all
```
---
See archive/auth/2023.md
"""


@pytest.fixture
def lane(tmp_path: Path, clock: Clock) -> TopicLane:
    return TopicLane(tmp_path / "memory", clock=clock)


def write(lane: TopicLane, name: str, text: str) -> Path:
    path = lane.root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def main_file(lane: TopicLane, name: str = "auth/oauth2") -> str:
    return (lane.root / f"{name}.md").read_bytes().decode()


def titles(text: str) -> list[str]:
    return [parse(raw).title for raw in split(text).raws]


def fill(lane: TopicLane, count: int, topic: str = "auth/oauth2", **fields: Any) -> None:
    for number in range(count):
        lane.store(topic, title=f"Entry {number}", problem=f"Problem {number}", **fields)


def everything(root: Path) -> Counter[str]:
    """The text of every entry in topic files and archives, and how often it is there."""
    found: Counter[str] = Counter()
    for path in root.rglob("*.md"):
        if path.name == "index.md" or ".trash" in path.parts:
            continue
        text = path.read_bytes().decode()
        raws = [raw for _, raw in archived(text)] if "archive" in path.parts else split(text).raws
        found.update(raw.strip() for raw in raws)
    return found


CONFLICT = """\
# Title

<<<<<<< HEAD
## 2025-01-02: Ours
**Problem:** x
---
=======
## 2025-01-01: Theirs
**Problem:** y
---
>>>>>>> branch

## 2024-01-01: Old
**Problem:** z
---
"""
