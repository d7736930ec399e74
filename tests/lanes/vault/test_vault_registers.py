"""Registers: one memory per topic, updated in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlane.core.errors import InvalidInput
from memlane.core.model import Draft
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, BURST_AGAIN, add
from vault_samples import vault as vault


def test_a_register_is_upserted_by_topic(vault: MemoryVault) -> None:
    """S002-32"""
    id = add(vault, words(1), tier="register", topic_id="t", tags=["a"])
    assert add(vault, words(2), tier="register", topic_id="t") == id
    (record,) = vault.recall_memories()
    assert (record.id, record.version, record.text, record.tags) == (id, 2, words(2), ["a"])
    assert record.updated_at is not None


def test_an_upsert_keeps_tags_and_source_unless_given(vault: MemoryVault) -> None:
    """S002-32"""
    fields: dict[str, Any] = {"tier": "register", "topic_id": "t"}
    id = add(vault, words(1), tags=["a"], source="chat", **fields)
    vault.put(Draft(words(2), type="goal", fields=fields))
    vault.update_by_topic("t", "shared", words(3))
    vault.bulk_add([{"text": words(4), "scope": "shared", **fields}])
    record = vault.get_memory(id)
    assert (record.version, record.tags, record.source, record.category) == (4, ["a"], "chat", "goal")
    vault.put(Draft(words(5), tags=("b",), fields={**fields, "source": "tool"}))
    assert (vault.get_memory(id).tags, vault.get_memory(id).source) == (["b"], "tool")
    assert vault.update_memory(id, tags=[]).tags == []


def test_another_scope_is_another_register(vault: MemoryVault) -> None:
    """S002-33"""
    first = add(vault, words(1), tier="register", topic_id="t")
    assert add(vault, words(2), scope="orion", tier="register", topic_id="t") != first
    assert vault.vault_stats()["register_topics"] == 2


def test_a_deleted_register_is_not_revived(vault: MemoryVault) -> None:
    """S002-34"""
    first = add(vault, words(1), tier="register", topic_id="t")
    vault.delete_memory(first)
    second = add(vault, words(2), tier="register", topic_id="t")
    assert second != first
    assert [record.version for record in vault.recall_memories()] == [1]


def test_the_seeds_two_calls(vault: MemoryVault) -> None:
    """S002-35"""
    for text in ("Projects: dashboard, memory upgrade", "Projects: dashboard, memory upgrade, email integration"):
        vault.add_memory(text, "shared", "project", tier="register", topic_id="current_projects")
    (record,) = vault.recall_memories()
    assert "email integration" in record.text
    assert record.version == 2


def test_an_upsert_passes_duplicates_and_a_full_vault(tmp_path: Path) -> None:
    """S002-36"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=2)
    add(vault, BURST)
    id = add(vault, words(1), tier="register", topic_id="t")
    assert add(vault, BURST_AGAIN, tier="register", topic_id="t") == id


def test_canon_is_never_overwritten_by_a_topic(vault: MemoryVault) -> None:
    """S002-32: a canon with the same topic is stored beside, and never upserted."""
    add(vault, words(1), tier="canon", topic_id="t")
    add(vault, words(2), tier="canon", topic_id="t")
    add(vault, words(3), tier="register", topic_id="t")
    assert sorted((record.tier, record.version) for record in vault.recall_memories()) == [
        ("canon", 1),
        ("canon", 1),
        ("register", 1),
    ]


def test_update_by_topic_creates_then_updates(vault: MemoryVault) -> None:
    """S002-37"""
    first = vault.update_by_topic("t", "shared", words(1), category="project")
    assert (first.tier, first.version, first.topic_id, first.category) == ("register", 1, "t", "project")
    second = vault.update_by_topic("t", "shared", words(2))
    assert (second.id, second.version, second.text, second.category) == (first.id, 2, words(2), "project")
    assert vault.update_by_topic("t", "orion", words(3)).id != first.id
    assert vault.recall_memories("shared") == [second]


@pytest.mark.parametrize("topic", ["", "  ", None])
def test_update_by_topic_needs_a_topic(vault: MemoryVault, topic: Any) -> None:
    """S002-37"""
    with pytest.raises(InvalidInput):
        vault.update_by_topic(topic, "shared", words(1))
