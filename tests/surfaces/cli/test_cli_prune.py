"""`memlane review --only prune` and `memlane review --only stale`: what is shown is what is done, and nothing else."""

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


def pruned(run: Run, *options: str) -> list[tuple[str, str]]:
    """The lane and the action of each step that a review of this kind has."""
    steps = run("review", "--only", "prune", *options, "--json").json["steps"]
    return [(step["id"].partition(":")[0], step["action"]) for step in steps]


def test_a_plan_is_shown_and_nothing_is_done(run: Run, overfull: Bank, tmp_path: Path) -> None:
    before = tree(tmp_path)
    assert pruned(run) == [("vault", "look at"), ("topics", "archive"), ("layers", "archive")]
    assert tree(tmp_path) == before


def test_a_plan_is_applied_on_request(run: Run, overfull: Bank) -> None:
    """What needs a decision, such as a short text in the vault, is left."""
    assert pruned(run, "--apply") == [("topics", "archive"), ("layers", "archive")]
    assert pruned(run) == [("vault", "look at")]
    assert run("doctor", "--only", "format", "--lane", "topics").code == 0
    assert (overfull.root / "topics/auth/oauth2.md").read_text() == entries(12).partition("\n## 2025-01-02")[0]
    assert [memory.title for memory in overfull.list(status="archived")] == ["Entry 2", "Entry 1"]


@pytest.mark.parametrize("command", [["review", "--only", "prune", "--lane", "layers"], ["layers", "prune"]])
def test_every_prune_shows_does_and_is_undone_alike(run: Run, overfull: Bank, command: list[str]) -> None:
    before = tree(overfull.layers.root)
    shown = run(*command, "--json").json
    assert (tree(overfull.layers.root), shown["applied"]) == (before, False)
    done = run(*command, "--apply", "--json").json
    assert [step["id"] for step in done["steps"]] == [step["id"] for step in shown["steps"]]
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
    assert run("review", "--only", "prune", "--lane", "topics", "--apply", "--json").json["steps"] == []
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
    assert len(run("review", "--only", "prune", "--lane", "topics", "--apply", "--json").json["steps"]) == 1
    assert (overfull.root / "topics/archive/auth/2025.md").read_text().count("## 2025-01-01") == 1


def test_how_old_memory_is_is_listed_the_oldest_first(run: Run, bank: Bank) -> None:
    for name, day in (("fresh", "2999-01-01"), ("old", "2020-01-01"), ("older", "2019-01-01"), ("undated", "")):
        path = bank.root / f"layers/projects/api/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!-- Last Updated: {day} -->\n\n# x\n")
    bank.add("Projects: dashboard and more", lane="vault", tier="register", created_at="2018-01-01T00:00:00Z")
    bank.add("A note of old is no less true.", created_at="2001-01-01T00:00:00Z")
    rows = run("review", "--only", "stale", "--all", "--json").json
    assert [(row["id"].partition(":")[0], row["staleness"], row["updated_at"]) for row in rows] == [
        ("layers", "stale", None),
        ("vault", "stale", "2018-01-01"),
        ("layers", "stale", "2019-01-01"),
        ("layers", "stale", "2020-01-01"),
        ("layers", "fresh", "2999-01-01"),
    ]
    assert len(run("review", "--only", "stale", "--all", "--lane", "vault").out.splitlines()) == 1
    assert len(run("review", "--only", "stale", "--json").json["steps"]) == 4
