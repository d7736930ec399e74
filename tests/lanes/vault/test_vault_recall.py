"""Recalling and searching the vault, its snapshot and its statistics."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from memlane.core.errors import InvalidInput, Refused
from memlane.lanes.vault.search import search_score
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import add, write
from vault_samples import vault as vault

# -- reading and searching


def test_recall_is_newest_first(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    ids = []
    for number in range(3):
        ids.append(add(vault, words(number), scope=["shared", "orion", "elysia"][number], tags=[f"t{number}", "all"]))
        clock.advance(seconds=0.5)

    def recalled(**filters: Any) -> list[int]:
        return [ids.index(record.id) for record in vault.recall_memories(**filters)]

    assert recalled() == [2, 1, 0]
    assert recalled(scope="orion") == [1]
    assert recalled(scope=["shared", "elysia"]) == [2, 0]
    assert recalled(scope=[]) == []
    assert recalled(tags=["t0", "t2"]) == [2, 0]
    assert recalled(category="MISSION", limit=2) == [2, 1]
    assert recalled(category="bio") == []
    assert recalled(limit=0) == []


def test_times_with_offsets_are_compared_as_times(vault: MemoryVault) -> None:
    write(
        vault,
        {"id": "utc", "text": "one", "created_at": "2025-01-01T12:00:00Z"},
        {"id": "central", "text": "two", "created_at": "2025-01-01T07:00:00-06:00"},
        {"id": "none", "text": "three"},
    )
    assert [record.id for record in vault.recall_memories()] == ["central", "utc", "none"]


def test_the_search_score() -> None:
    """S002-56"""
    text = "Deploy the API on Friday"
    matched = SequenceMatcher(None, "api friday", text.lower()).ratio()
    assert search_score("api Friday", text) == pytest.approx(1.0 + 0.4 * matched)
    whole = SequenceMatcher(None, "the api", text.lower()).ratio()
    assert search_score("the API", text) == pytest.approx(1.0 + 0.3 + 0.4 * whole)
    half = SequenceMatcher(None, "api monday", text.lower()).ratio()
    assert search_score("api monday", text) == pytest.approx(0.5 + 0.4 * half)


def test_search_is_best_first_and_scoped(vault: MemoryVault) -> None:
    """S002-56"""
    exact = add(vault, "Deploy the API on Friday")
    near = add(vault, "Friday is for lunch with the whole crew")
    other = add(vault, "Deploy the API on Friday", scope="orion")
    assert [record.id for record in vault.search_memories("API on Friday", scope="shared")] == [exact, near]
    assert {record.id for record in vault.search_memories("friday", scope=["shared", "orion"])} == {exact, near, other}
    assert vault.search_memories("friday", limit=0) == []


def test_search_needs_a_common_word(vault: MemoryVault) -> None:
    """S002-57"""
    add(vault, "Deployment notes")
    assert (vault.search_memories("deploy"), vault.search_memories("the"), vault.search_memories("")) == ([], [], [])


# -- snapshot and statistics


def test_the_snapshot(vault: MemoryVault) -> None:
    """S002-49 S002-50 S002-51"""
    add(vault, "Stabilize the runtime", category="mission")
    add(vault, "Made by two people\nin a garage", category="bio")
    add(vault, "Dashboard and e-mail", category="project", tier="register", topic_id="current_projects")
    add(vault, "A passing thought about lunch", tier="register")
    add(vault, "Elysia paints at night", scope="elysia")
    assert vault.build_snapshot("shared") == (
        "## Memory Snapshot\n\n"
        "### Canon\n\n- Made by two people\n  in a garage\n- Stabilize the runtime\n\n"
        "### Active Registers\n\n- **current_projects**: Dashboard and e-mail\n"
    )
    assert vault.build_snapshot("elysia") == "## Memory Snapshot\n\n### Canon\n\n- Elysia paints at night\n"
    assert vault.build_snapshot("orion") == ""


def test_a_topic_stays_on_its_line(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "one\r### two", "tier": "register", "topic_id": "t\n### Canon\n- x"})
    assert vault.build_snapshot().splitlines()[2:] == [
        "### Active Registers", "", "- **t ### Canon - x**: one", "  ### two",
    ]  # fmt: skip


def test_an_empty_vault_has_no_snapshot(vault: MemoryVault) -> None:
    """S002-51"""
    assert vault.build_snapshot() == ""
    assert not vault.path.parent.exists()


def test_the_placement_table(vault: MemoryVault) -> None:
    """S002-63"""
    for category in ("bio", "mission", "constraint"):
        add(vault, words(category), category=category)
    for topic in ("current_projects", "priorities", "self_state"):
        vault.update_by_topic(topic, "shared", words(topic))
    snapshot = vault.build_snapshot("shared")
    assert all(words(name) in snapshot for name in ("bio", "mission", "constraint", "current_projects", "priorities"))
    for event in ("tick marker 7", "runtime snapshot at noon", "daily check-in"):
        with pytest.raises((Refused, InvalidInput)):
            add(vault, event)


def test_statistics(tmp_path: Path) -> None:
    """S002-58"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=50)
    empty = vault.vault_stats()
    assert (empty["active_count"], empty["raw_lines"], empty["bloat_ratio"]) == (0, 0, 1.0)
    add(vault, words(1), category="bio")
    id = add(vault, words(2), scope="orion", tier="register", topic_id="t", category="project")
    vault.update_memory(id, text=words(3))
    add(vault, words(4), category="bio")
    vault.delete_memory(add(vault, words(5)))
    assert vault.vault_stats() == {
        "active_count": 3,
        "max_active": 50,
        "utilization_pct": 6.0,
        "deleted_count": 1,
        "raw_lines": 6,
        "compactable_lines": 3,
        "bloat_ratio": 2.0,
        "by_scope": {"shared": 2, "orion": 1},
        "by_tier": {"canon": 2, "register": 1},
        "by_category": {"bio": 2, "project": 1},
        "register_topics": 1,
        "unknown_categories": 0,
        "malformed_lines": 0,
    }
