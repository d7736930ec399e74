"""`memlane prune` and `memlane stale`: what is shown is what is done, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank


def entries(count: int) -> str:
    return "\n".join(f"## 2025-01-{count - n:02}: Entry {count - n}\n**Problem:** p\n---\n" for n in range(count))


@pytest.fixture
def overfull(bank: Bank) -> Bank:
    """A bank with something to prune in every lane that has a rule."""
    bank.vault.add_memory("too short", "shared", "other", tier="register")
    path = bank.root / "topics/auth/oauth2.md"
    path.parent.mkdir(parents=True)
    path.write_text(entries(12))
    issue = "### Bug\n**Status**: Resolved (2020-01-01)\n"
    bank.layers.create(
        {"layer": "shared-project", "project_name": "api", "file_type": "known_issues", "content": issue}
    )
    return bank


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
    assert [memory.title for memory in overfull.list(status="archived")] == ["Entry 2", "Entry 1"]


def test_what_was_pruned_can_come_back(run: Run, overfull: Bank) -> None:
    deleted = run("prune", "--lane", "vault", "--apply", "--json").json["steps"]
    assert run("restore", deleted[0]["id"]).code == 0
    assert len(run("prune", "--lane", "vault", "--json").json["steps"]) == 1


@pytest.mark.parametrize("command", [["prune", "--lane", "layers"], ["layers", "prune"]])
def test_every_prune_shows_does_and_is_undone_alike(run: Run, overfull: Bank, command: list[str]) -> None:
    before = tree(overfull.layers.root)
    shown = run(*command, "--json").json
    assert (tree(overfull.layers.root), shown["applied"]) == (before, False)
    done = run(*command, "--apply", "--json").json
    assert [step["action"] for step in done["steps"]] == ["remove"]
    assert "### Bug" not in overfull.get("layers:shared-project/api/known_issues").text
    assert run("undo").code == 0
    assert "### Bug" in overfull.get("layers:shared-project/api/known_issues").text


def test_the_bank_shows_before_it_prunes(overfull: Bank) -> None:
    before = tree(overfull.root)
    plan = overfull.prune("topics", "layers")
    assert (tree(overfull.root), [step.action for step in plan.steps]) == (before, ["archive", "archive", "remove"])
    assert [step.id for step in overfull.prune("topics", "layers", apply=True).steps] == [s.id for s in plan.steps]
    assert overfull.undo().conflicts == ()
    assert [step.id for step in overfull.prune("topics", "layers").steps] == [step.id for step in plan.steps]


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
