"""Loading the layers of a project, and seed 004's four patterns of use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import Clock
from layer_samples import COPY, ISSUES, PROFILE, REVIEWS, entry, ids, place, review, reviews
from layer_samples import clock as clock
from layer_samples import filled as filled
from layer_samples import store as store
from memlane.lanes.layers.entries import MemoryEntry
from memlane.lanes.layers.store import MemoryStore

# -- loading


def test_the_project_profile_is_one_read(filled: MemoryStore) -> None:
    """S004-30"""
    assert filled.get_project_profile("my-api") == filled.read("shared-project", "my-api", "project_profile")
    assert filled.get_project_profile("new") is None


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (lambda store: store.get_shared_project_memory("my-api"), [PROFILE, "shared-project/my-api/technology_stack"]),
        (lambda store: store.get_skill_memory("python-code-review", "my-api"), [ISSUES, REVIEWS]),
        (
            lambda store: store.get_skill_memory("python-code-review", "my-api", include_archives=True),
            [ISSUES, REVIEWS, f"{REVIEWS}_archive"],
        ),
        (lambda store: store.get_command_memory("my-api"), ["command/my-api/command_history"]),
        (lambda store: store.get_agent_memory("zeus"), ["agent/zeus/notes", "agent/zeus/plans"]),
        (lambda store: store.get_shared_project_memory("new"), []),
        (lambda store: store.get_skill_memory("python-code-review", "new"), []),
        (lambda store: store.get_skill_memory("new", "my-api"), []),
        (lambda store: store.get_command_memory("new"), []),
        (lambda store: store.get_agent_memory("new"), []),
    ],
)
def test_a_folder_is_loaded_without_index_and_archives(
    filled: MemoryStore, load: Callable[[MemoryStore], list[MemoryEntry]], expected: list[str]
) -> None:
    """S004-31, S004-32, S004-33, S004-34, S004-58 and R-32"""
    found = load(filled)
    assert (ids(found), {entry.staleness for entry in found} <= {"fresh"}) == (expected, True)


def test_a_project_over_all_layers(filled: MemoryStore) -> None:
    """S004-37"""
    found = filled.get_by_project("my-api")
    assert {**found, "shared": ids(found["shared"]), "commands": ids(found["commands"])} | {
        "skills": {skill: ids(entries) for skill, entries in found["skills"].items()}
    } == {
        "shared": [PROFILE, "shared-project/my-api/technology_stack"],
        "skills": {
            "python-code-review": [ISSUES, REVIEWS],
            "testing": ["skill-specific/testing/my-api/testing_patterns"],
        },
        "commands": ["command/my-api/command_history"],
    }


def test_a_skill_that_knows_nothing_of_a_project_is_not_named(store: MemoryStore) -> None:
    """S004-37"""
    place(store, "skills/review/my-api/known_issues.md", "x")
    place(store, "skills/testing/other/known_issues.md", "x")
    assert list(store.get_by_project("my-api")["skills"]) == ["review"]


def test_a_new_project_is_empty_everywhere_and_nothing_is_written(store: MemoryStore) -> None:
    """S004-58: the first-time signal."""
    assert store.get_by_project("new") == {"shared": [], "skills": {}, "commands": []}
    assert not store.root.exists()


def test_a_damaged_file_hides_no_other(filled: MemoryStore) -> None:
    """S004-31"""
    place(filled, "projects/my-api/broken.md", "x").write_bytes(b"\xff")
    (filled.root / "projects/my-api/folder.md").mkdir()
    assert len(filled.get_shared_project_memory("my-api")) == 2


# -- the four patterns of the seed


def test_pattern_1_a_skill_loads_project_memory(store: MemoryStore) -> None:
    """S004-59"""
    assert store.get_skill_memory("python-code-review", "my-api") == []
    store.create(entry(REVIEWS))
    store.create(entry(PROFILE))
    assert ids(store.get_skill_memory("python-code-review", "my-api")) == [REVIEWS]
    assert ids(store.get_shared_project_memory("my-api")) == [PROFILE]


def test_pattern_2_a_command_loads_its_history(store: MemoryStore) -> None:
    """S004-59"""
    store.create(entry("command/my-api/command_history"))
    store.create(entry("command/my-api/analyze_insights"))
    assert ids(store.get_command_memory("my-api")) == [
        "command/my-api/analyze_insights",
        "command/my-api/command_history",
    ]


def test_pattern_3_a_skill_updates_its_memory(store: MemoryStore, clock: Clock) -> None:
    """S004-59: update refreshes and checks, append archives, and issues go with the next prune."""
    overview = "skill-specific/python-code-review/my-api/project_overview"
    store.create(entry(overview))
    store.create(entry(REVIEWS, reviews(1, 10)))
    store.create(entry(ISSUES))
    clock.advance(days=40)
    assert store.update(overview, "x\n" * 300)["warning"].startswith("302 lines, over 200")
    assert store.append(REVIEWS, review(11))["pruned"] is True
    assert store.update(ISSUES, "### It\n**Status**: Resolved (2026-01-05)\n")["updated"] is True
    assert store.prune()["pruned"] == [
        {
            "id": ISSUES,
            "action": "removed",
            "reason": f"resolved 30 or more days ago: It (the file as it was: {COPY.replace('20260210', '20260322')})",
        }
    ]


def test_pattern_4_shared_project_memory(store: MemoryStore, clock: Clock) -> None:
    """S004-59"""
    assert store.get_project_profile("my-api") is None
    store.upsert(PROFILE, "# Profile\n")
    clock.advance(days=100)
    stale = store.get_project_profile("my-api")
    store.update(PROFILE, "# Profile\n\nNew.\n")
    fresh = store.get_project_profile("my-api")
    assert stale is not None
    assert fresh is not None
    assert (stale.staleness, fresh.staleness) == ("stale", "fresh")
