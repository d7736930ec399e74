"""What the vault takes for a duplicate, and how many memories it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane.gate.likeness import ratio, tokens
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, BURST_AGAIN, add
from vault_samples import vault as vault


def test_token_overlap_makes_a_duplicate(vault: MemoryVault) -> None:
    """S002-38: the pair has a ratio below 0.70."""
    id = add(vault, BURST)
    with pytest.raises(ValueError, match="Duplicate") as refusal:
        add(vault, BURST_AGAIN)
    assert str(refusal.value) == f"Not stored: Duplicate of {id} (similarity 0.78)."
    assert ratio(BURST_AGAIN, BURST) < 0.70


@pytest.mark.parametrize(("shared", "duplicate"), [(3, True), (2, False)])
def test_an_overlap_of_exactly_the_threshold_is_a_duplicate(vault: MemoryVault, shared: int, duplicate: bool) -> None:
    """S002-38: 3 of 5 words are 60 %."""
    old = ["harbour", "lantern", "quartz", "meadow", "violin"]
    new = [*old[:shared], *["xenon", "bypass", "drizzle"][: 5 - shared]][::-1]
    add(vault, " ".join(old))
    assert ratio(" ".join(new), " ".join(old)) < 0.70
    if duplicate:
        with pytest.raises(ValueError, match=r"similarity 0.60"):
            add(vault, " ".join(new))
    else:
        add(vault, " ".join(new))


def test_sequence_similarity_makes_a_duplicate(vault: MemoryVault) -> None:
    """S002-39: the pair shares no word."""
    old, new = "alphabets bettered gammas", "alphabet betters gamma"
    assert tokens(old).isdisjoint(tokens(new))
    add(vault, old)
    with pytest.raises(ValueError, match="Duplicate"):
        add(vault, new)


def test_different_texts_are_accepted(vault: MemoryVault) -> None:
    """S002-40: without stop words, those two share nothing."""
    add(vault, "The deployment is in the cloud")
    add(vault, "The cat is in the house")
    assert len(vault.recall_memories()) == 2


def test_the_same_text_in_another_scope_is_accepted(vault: MemoryVault) -> None:
    """S002-41"""
    for scope in ("shared", "orion", "elysia"):
        add(vault, scope=scope)
    assert vault.vault_stats()["by_scope"] == {"shared": 1, "orion": 1, "elysia": 1}


def test_deleted_and_updated_texts_are_no_duplicates(vault: MemoryVault) -> None:
    """S002-42"""
    id = add(vault, BURST)
    vault.delete_memory(id)
    again = add(vault, BURST_AGAIN)
    vault.update_memory(again, text=words(1))
    add(vault, BURST)


def test_thresholds_are_configurable(tmp_path: Path) -> None:
    """S002-43"""
    strict = MemoryVault(tmp_path / "a.jsonl", similarity_threshold=0.3)
    lax = MemoryVault(tmp_path / "b.jsonl", similarity_threshold=0.99, token_overlap_threshold=0.99)
    for store in (strict, lax):
        add(store, "The deployment is in the cloud")
    with pytest.raises(ValueError, match="Duplicate"):
        add(strict, "The cat is in the house")
    add(lax, "The deployment is in a cloud now")
    assert (MemoryVault("x").similarity_threshold, MemoryVault("x").token_overlap_threshold) == (0.70, 0.60)


def test_a_full_vault_refuses(tmp_path: Path) -> None:
    """S002-44"""
    vault = MemoryVault(tmp_path / "vault.jsonl")
    stored = vault.bulk_add({"text": words(number), "scope": "shared", "category": "x"} for number in range(100))
    assert stored["errors"] == []
    with pytest.raises(ValueError, match="full"):
        add(vault)
    vault.delete_memory(stored["stored"][0]["id"])
    add(vault)


def test_capacity_counts_active_records(tmp_path: Path) -> None:
    """S002-45"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=1)
    for number in range(3):
        id = add(vault, words(number))
        vault.update_memory(id, text=words(number + 10))
        vault.delete_memory(id)
    add(vault, words(9))
    with pytest.raises(ValueError, match="full"):
        add(vault, words(8))
