"""`memlane doctor --only format` and `memlane doctor --only damage`: what breaks a format's rules is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from samples import LANES, draft


def entries(count: int) -> str:
    return "\n".join(f"## 2025-01-{count - n:02}: Entry {count - n}\n**Problem:** p\n---\n" for n in range(count))


def test_a_sound_bank_has_no_findings(run: Run, bank: Bank) -> None:
    for lane in LANES[:-1]:
        bank.add(draft(lane, 1).text, lane=lane, **draft(lane, 1).fields)
    bank.layers.create(
        {
            "layer": "shared-project",
            "project_name": "api",
            "file_type": "common_patterns",
            "content": "Handlers live in `src/api/routes.py`.",
        }
    )
    result = run("doctor", "--only", "format", "--json")
    assert (result.code, result.json) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.md", "---\ntype: poem\n---\nx", "unknown type"),
        ("a.md", "---\nstatus: lost\n---\nx", "unknown status"),
        ("a.md", "---\ncreated_at: soon\n---\nx", "created_at that is not a date"),
        ("a.md", "---\ntags: {a: b}\n---\nx", "tags that are not a list"),
        ("a.md", "---\nx: [\n---\n", "not valid YAML"),
        ("vault.jsonl", '{"id":"zz","text":"x","created_at":"2025-01-01T00:00:00Z"}\n', "not 12 hex digits"),
        ("vault.jsonl", '{"id":"3f9a1c0b7d2e","text":"x"}\n', "no created_at"),
        ("vault.jsonl", '{"id":"3f9a1c0b7d2e","text":"x","created_at":"soon"}\n', "not a date"),
        ("vault.jsonl", '{"id":"3f9a1c0b7d2e","text":"x","created_at":"2025-01-01","source":"me"}\n', "source"),
        ("vault.jsonl", "{\n", "not JSON"),
        ("topics/a/b.md", "## 2025-13-45: Never\n**Problem:** x\n---\n", "no day of any calendar"),
        ("topics/a/b.md", entries(11), "more entries than"),
        ("records/a.md", "text", "no front matter"),
        ("layers/projects/api/known.md", "# x\nSee `src/a.py`.\n", "Last Updated"),
        ("layers/projects/api/known.md", "<!-- Last Updated: 2025-01-01 -->\n\n# x\n", "says nothing yet"),
        ("layers/projects/api/known.md", "<!-- Last Updated: 2025-01-01 -->\n" + "See `src/a.py`.\n" * 600, "lines"),
    ],
)
def test_what_breaks_a_rule_is_found(run: Run, bank: Bank, name: str, text: str, why: str) -> None:
    path = bank.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    result = run("doctor", "--only", "format", "--json")
    assert (result.code, [problem["path"] for problem in result.json]) == (6, [str(path)])
    assert why in result.json[0]["why"]


def test_single_memories_can_be_validated(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "good")
    (bank.root / "bad.md").write_text("---\ntype: poem\n---\nx")
    (bank.root / "records").mkdir()
    (bank.root / "records/odd.md").write_text("x")
    assert run("doctor", "--only", "format", "good").code == 0
    assert [
        Path(problem["path"]).name for problem in run("doctor", "--only", "format", "good", "bad", "--json").json
    ] == ["bad.md"]
    assert run("doctor", "--only", "format", "records:odd").code == 6
    assert run("doctor", "--only", "format", "gone").code == 3
    assert run("doctor", "--only", "format", "bad", "--lane", "notes").code == 2


def test_stats_and_problems(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "a")
    assert run("doctor", "--only", "damage").code == 0
    (bank.root / "bad.md").write_text("---\nx: [\n---\n")
    assert run("stats", "--json").json["problems"] == 1
    result = run("doctor", "--only", "damage", "--json")
    assert (result.code, [Path(problem["path"]).name for problem in result.json]) == (6, ["bad.md"])
