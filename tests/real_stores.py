"""Stores in the shapes that people have: as the programs left them that kept memory in these formats."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path


def topics(project: Path) -> None:
    """Topic files whose names have words of the gate's list, an index page with a table, an archive, strays."""
    entry = "## {date}: {title}\n**Context:** STORY-4-TASK-2\n**Problem:** {text}\n**Solution:** Done.\n\n---\n\n"
    root = project / "memory"
    for name, count in {
        "system/task-tool-enforcement": 3,
        "risk-review/keyboard-input": 1,
        "disk-layout/general": 12,
    }.items():
        _write(
            root / f"{name}.md",
            f"# {name}\n\n"
            + "".join(
                entry.format(date=f"2025-01-{28 - n:02}", title=f"Find {n}", text="It stopped.") for n in range(count)
            ),
        )
    _write(root / "archive/system/2024.md", entry.format(date="2024-03-01", title="Old", text="It was slow."))
    _write(root / "index.md", "# Memory Index\n\n## Topics\n\n| ID | Type |\n|---|---|\n| system | core |\n")
    _write(root / "README.md", "# How this works\n")
    _write(root / "learning.md", "# Loose\n")
    _write(root / "system/deep/er.md", entry.format(date="2025-01-01", title="Too deep", text="Nobody reads this."))
    _write(root / "entities/Learning-1.md", "# Learning-1\n\nAn older form without dated entries.\n")


def layers(project: Path) -> None:
    """A layered store with the files that say how it is kept, index pages, and folders deeper than a memory lies."""
    root = project / "forge-plugin/memory"
    stamp = "<!-- Last Updated: 2025-01-10 -->\n\n"
    for name in ("lifecycle", "quality_guidance", "index", "README", "cross_skill_guidance"):
        _write(root / f"{name}.md", f"# {name}\n\nPython memory is kept here.\n")
    for name in ("projects/index", "skills/index", "skills/python-code-review/index", "commands/README"):
        _write(root / f"{name}.md", "# Index\n\nPython\n")
    for name in (
        "projects/my-api/project_profile", "projects/My Shop (old)/technology_stack", "projects/проект/project_profile",
        "skills/python-code-review/my-api/review_history", "skills/python-code-review/my-api/known_issues",
        "commands/my-api/command_history", "agents/hephaestus/forge_insights",
    ):  # fmt: skip
        _write(root / f"{name}.md", f"{stamp}# {name}\n\nPython is used in `src/app.py`.\n")
    _write(root / "skills/azure/templates/deep/deeper/example.md", "# Example\n\nPython\n")
    _write(root / "agents/loose.md", "# Loose\n")


def records(project: Path) -> None:
    """Records with any UUID, an index.json, a record with a thread, and files that are none."""
    root = project / "local-recall/memories"
    for number, scope in enumerate(("global", "file:src/auth.ts", "area:database", "file:src/my file.py")):
        id = str(uuid.uuid5(uuid.NAMESPACE_URL, scope))
        _write(
            root / f"{id}.md",
            f"---\nid: {id}\nsubject: Decision {number}\nkeywords:\n  - decision\n  - 'n: {number}'\n"
            f"applies_to: {scope}\n"
            f"occurred_at: 2025-01-1{number}T10:30:00.000Z\ncontent_hash: a1b2c3d4e5f67890\n---\n\n"
            f"Decision {number}: \x1b[31mred\x1b[0m first\u2028second line, at length.\n",
        )
    _write(root / "index.json", json.dumps({"version": 1, "keywords": {}, "memories": {}}))
    _write(root / "notes.md", "No front matter.\n")
    _write(root / "deep/x.md", "---\nid: x\n---\n\nDeep.\n")


def vault(project: Path) -> None:
    """Lines of the older form, without tier, version and topic_id; later ones, a tombstone, torn and foreign lines."""
    old = {"id": "a1b2c3d4e5f6", "text": "The mission is to be reliable.", "scope": "shared", "category": "mission",
           "tags": [], "created_at": "2025-01-10T10:00:00+00:00"}  # fmt: skip
    lines: list[object] = [
        old,
        {**old, "id": "b1b2c3d4e5f6", "text": "Orion reviews the code.", "scope": "orion", "source": "chat"},
        {**old, "id": "c1b2c3d4e5f6", "text": "Now: the parser.", "tier": "register", "topic_id": "now", "version": 1},
        {**old, "id": "c1b2c3d4e5f6", "text": "Now: the index.", "tier": "register", "topic_id": "now", "version": 2},
        {**old, "id": "d1b2c3d4e5f6", "text": "Gone.", "version": 2, "deleted_at": "2025-01-11T10:00:00+00:00"},
        {**old, "id": "e1b2c3d4e5f6", "text": "Of another agent.", "scope": "lyra", "importance": 5},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "not json\n" + '{"id": "torn", "te'
    _write(project / "data/memory/vault.jsonl", text)


def obsidian(project: Path) -> None:
    """A vault of Obsidian: notes in folders, wikilinks of every form, embeds, tags, properties, a canvas, settings."""
    root = project / "Vault"
    _write(root / ".obsidian/app.json", "{}")
    _write(
        root / "Home.md",
        "# Home\n\nSee [[Alpha]], [[projects/Beta]], [[Alpha#Goals]], [[beta|the second]], ![[pic.png]].\n",
    )
    _write(
        root / "projects/Alpha.md", "---\ntags: [work, ünï]\naliases:\n  - First\n---\n# Goals\n\n![[Beta#^b1]] #todo\n"
    )
    _write(root / "projects/Beta.md", "Beta text ^b1\n\n- [ ] a task [[Nowhere]]\n\n```dataview\nLIST\n```\n")
    _write(root / "Daily Notes/2025-01-10.md", "---\ndate: 2025-01-10\n---\nToday [[Home]] & [[../projects/Alpha]].\n")
    _write(root / "Пусто.md", "")
    _write(root / "Board.canvas", "{}")
    _write(project / "memlane.toml", '[memory]\nenabled = true\n\n[lanes]\nnotes = "Vault"\n')


STORES: dict[str, Callable[[Path], None]] = {
    "topics": topics, "layers": layers, "records": records, "vault": vault, "obsidian": obsidian,
}  # fmt: skip


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="")
