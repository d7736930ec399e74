"""`memlane promote`, `prune`, `stale` and `validate`: what is shown is what is done, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank
from samples import LANES, draft


def entries(count: int) -> str:
    return "\n".join(f"## 2025-01-{count - n:02}: Entry {count - n}\n**Problem:** p\n---\n" for n in range(count))


@pytest.fixture
def overfull(bank: Bank) -> Bank:
    """A bank with something to prune in every lane that has a rule."""
    bank.vault.add_memory("too short", "shared", "other", tier="register", topic_id="x")
    path = bank.root / "topics/auth/oauth2.md"
    path.parent.mkdir(parents=True)
    path.write_text(entries(12))
    issue = "### Bug\n**Status**: Resolved (2020-01-01)\n"
    bank.layers.create(
        {"layer": "shared-project", "project_name": "api", "file_type": "known_issues", "content": issue}
    )
    return bank


# -- promote


def test_a_register_becomes_canon_in_its_own_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register", "--topic", "ship").out.strip()
    assert run("promote", id).out == f"{id}\n"
    memory = bank.get(id)
    assert (memory.text, memory.fields["tier"]) == ("We ship on Tuesdays.", "canon")
    assert run("promote", id, "again").code == 2


def test_a_register_becomes_canon_in_other_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register").out.strip()
    promoted = run("promote", id, "-", "-t", "release", "--json", stdin="Releases are on Tuesdays.").json
    assert (promoted["text"], promoted["tags"]) == ("Releases are on Tuesdays.", ["release"])


def test_only_registers_are_promoted(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "a")
    assert run("promote", "a").code == 2
    assert run("promote", "vault:gone").code == 3


# -- prune


def test_a_plan_is_shown_and_nothing_is_done(run: Run, overfull: Bank, tmp_path: Path) -> None:
    before = tree(tmp_path)
    for command in (["prune"], ["prune", "--dry-run"]):
        assert [line.split("\t")[1] for line in run(*command).out.splitlines()] == [
            "delete",
            "archive",
            "archive",
            "remove",
        ]
    assert tree(tmp_path) == before


def test_a_plan_is_applied_on_request(run: Run, overfull: Bank) -> None:
    planned = run("prune", "--json").json
    done = run("prune", "--apply", "--json").json
    assert (planned["applied"], done["applied"]) == (False, True)
    assert [(step["id"], step["action"]) for step in done["steps"]] == [
        (step["id"], step["action"]) for step in planned["steps"]
    ]
    assert run("prune").err == "nothing to prune\n"
    assert run("validate", "--lane", "topics").code == 0
    assert (overfull.root / "topics/auth/oauth2.md").read_text() == entries(12).partition("\n## 2025-01-02")[0]
    assert [entry.title for entry in overfull.topics.search("p", 20, True) if not entry.id] == ["Entry 2", "Entry 1"]


def test_what_was_pruned_can_come_back(run: Run, overfull: Bank) -> None:
    deleted = run("prune", "--lane", "vault", "--apply", "--json").json["steps"]
    assert run("restore", deleted[0]["id"]).code == 0
    assert len(run("prune", "--lane", "vault", "--json").json["steps"]) == 1


def test_a_topic_file_with_merge_markers_is_left_alone(run: Run, overfull: Bank) -> None:
    path = overfull.root / "topics/auth/oauth2.md"
    path.write_text(f"<<<<<<< ours\n{entries(12)}>>>>>>> theirs\n")
    before = path.read_text()
    assert run("prune", "--lane", "topics", "--apply", "--json").json["steps"] == []
    assert path.read_text() == before


def test_a_killed_prune_leaves_no_entry_twice(run: Run, overfull: Bank) -> None:
    """The archive is written first: the next prune finds what is there already."""
    path = overfull.root / "topics/auth/oauth2.md"
    whole = path.read_text()
    overfull.topics.reindex()
    index = (overfull.root / "topics/index.md").read_text()
    overfull.topics.prune()
    path.write_text(whole)  # as if killed before the topic file and index.md were written
    (overfull.root / "topics/index.md").write_text(index)
    assert len(run("prune", "--lane", "topics", "--apply", "--json").json["steps"]) == 2
    assert (overfull.root / "topics/archive/auth/2025.md").read_text().count("## 2025-01-01") == 1


def test_showing_and_applying_exclude_each_other(run: Run, bank: Bank) -> None:
    assert run("prune", "--apply", "--dry-run").code == 2
    assert run("prune", "--lane", "notes").code == 2


# -- stale


def test_stale_memory_is_listed_the_oldest_first(run: Run, bank: Bank) -> None:
    for name, day in (("fresh", "2999-01-01"), ("old", "2020-01-01"), ("older", "2019-01-01"), ("undated", "")):
        path = bank.root / f"layers/projects/api/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!-- Last Updated: {day} -->\n\n# x\n")
    bank.add("Projects: dashboard and more", lane="vault", tier="register", created_at="2018-01-01T00:00:00Z")
    bank.add("A note of old is no less true.", created_at="2001-01-01T00:00:00Z")
    rows = run("stale", "--json").json
    assert [(row["id"].partition(":")[0], row["staleness"], row["updated_at"]) for row in rows] == [
        ("layers", "stale", None),
        ("vault", "stale", "2018-01-01"),
        ("layers", "stale", "2019-01-01"),
        ("layers", "stale", "2020-01-01"),
    ]
    assert len(run("stale", "--all", "--json").json) == 5
    assert run("stale").code == 0


# -- validate


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
    result = run("validate", "--json")
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
    result = run("validate", "--json")
    assert (result.code, [problem["path"] for problem in result.json]) == (6, [str(path)])
    assert why in result.json[0]["why"]


def test_single_memories_can_be_validated(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "good")
    (bank.root / "bad.md").write_text("---\ntype: poem\n---\nx")
    (bank.root / "records").mkdir()
    (bank.root / "records/odd.md").write_text("x")
    assert run("validate", "good").code == 0
    assert [Path(problem["path"]).name for problem in run("validate", "good", "bad", "--json").json] == ["bad.md"]
    assert run("validate", "records:odd").code == 6
    assert run("validate", "gone").code == 3
    assert run("validate", "bad", "--lane", "notes").code == 2
