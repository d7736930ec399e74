"""Drafts that every lane accepts (distinct texts, so that no duplicate check objects), and transcripts of them."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memlane.core.model import Draft
from memlane.lanes import NAMES, Lane, open_lane

LANES = tuple(NAMES)
FUZZ = "MEMLANE_FUZZ" in os.environ
_SYLLABLES = "ba ce di fo gu ha ji lo mu na pe qui ro sa ti vo wu xa yo zu bra cle dri flo gru".split()
START = datetime(2025, 1, 1, tzinfo=UTC)


def tries(few: int, many: int) -> int:
    """How often something is tried that differs by chance: each is the same in every run, and they are much alike. Who
    looks for new ones, or has time, sets MEMLANE_FUZZ.
    """
    return many if FUZZ else few


def root_of(name: str, folder: Path) -> Path:
    return folder / "vault.jsonl" if name == "vault" else folder / name


def make_lane(name: str, folder: Path, **options: Any) -> Lane:
    if name == "vault":
        options = {"max_active": 100_000, **options}
    return open_lane(name, root_of(name, folder), **options)


def words(seed: object, count: int = 8) -> str:
    """A sentence of invented words that is the same for the same seed and unlike that of any other."""
    dice = random.Random(f"words {seed}")
    return " ".join("".join(dice.choice(_SYLLABLES) for _ in range(4)) for _ in range(count))


def draft(name: str, number: int, text: str | None = None) -> Draft:
    text = words(number) if text is None else text
    fields: dict[str, Any] = {}
    if name == "topics":
        fields = {"topic": "area", "subtopic": f"part{number % 7}"}
    if name == "layers":
        fields = {"project": f"project{number}", "file_type": "common_patterns"}
    title = f"Title {words(number, 2)}" if name in ("notes", "topics", "records") else None
    return Draft(text, title=title, created_at=START + timedelta(minutes=number), fields=fields)


def transcript(path: Path, *texts: str) -> Path:
    """A Claude Code transcript in which the assistant says these texts."""
    lines = [
        {
            "type": "assistant", "uuid": f"u{at}", "sessionId": "s1", "timestamp": f"2025-01-10T10:00:{at:02}Z",
            "message": {"id": f"m{at}", "role": "assistant", "content": [{"type": "text", "text": text}]},
        }
        for at, text in enumerate(texts)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
