"""Consolidating, promoting, and the history of a memory in the vault."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from conftest import Clock
from memlane.core.errors import InvalidInput, Refused
from memlane.core.progress import listener
from memlane.gate import likeness
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, BURST_AGAIN, MISSION, add, lines, write
from vault_samples import vault as vault


def test_consolidation_candidates(vault: MemoryVault) -> None:
    """S002-46"""
    vault.similarity_threshold = vault.token_overlap_threshold = 2.0
    texts = [BURST, BURST_AGAIN, "Burst mode has one tool", words(1)]
    ids = [add(vault, text) for text in texts]
    add(vault, BURST, scope="orion")
    before = vault.path.read_bytes()
    pairs = vault.find_consolidation_candidates("shared", similarity_floor=0.40)
    assert {(newer.id, older.id) for newer, older, _ in pairs} <= {(b, a) for a, b in combinations(ids, 2)}
    assert [score for *_, score in pairs] == sorted((score for *_, score in pairs), reverse=True)
    newer, older, score = next(pair for pair in pairs if pair[0].id == ids[1])
    assert (newer.id, older.id, score) == (ids[1], ids[0], 7 / 9)
    assert all(0.40 <= score <= 1 for *_, score in pairs)
    assert vault.find_consolidation_candidates("shared", 0.40) == pairs
    assert vault.find_consolidation_candidates("shared", 1.0) == []
    assert vault.path.read_bytes() == before


class Notebook(dict[str, bytes]):
    """What is kept until the next time."""

    kept = dict.get
    keep = dict.__setitem__


def test_what_was_compared_before_is_not_compared_again(vault: MemoryVault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "_MANY", 1)  # pairs of which it is told how many there are
    rows = [
        {"id": f"{at:012x}", "text": words(at % 290), "created_at": f"2025-01-01T00:{at // 60:02}:{at % 60:02}Z"}
        for at in range(310)
    ]
    write(vault, *rows)
    notebook, pairs = Notebook(), 0

    def check() -> None:
        """The answer with what is kept is the one without, and how many pairs were compared for it."""
        nonlocal pairs
        pairs = 0

        def told(what: str, done: int, total: int | None) -> None:
            nonlocal pairs
            pairs = max(pairs, done)

        token = listener.set(told)
        try:
            found = vault.answers.prunable(notebook)
        finally:
            listener.reset(token)
        assert found == vault.answers.prunable()
        assert len(found.steps) > 20

    check()
    assert pairs == 310 * 309 // 2
    check()
    assert pairs == 0
    rows[5]["text"], rows[7]["scope"], rows[9]["created_at"] = words(30), "orion", "2026-01-01T00:00:00Z"
    write(vault, *rows[:-2], {**rows[0], "id": "f" * 12})
    check()
    assert pairs == 307 + 306 + 305  # of what is new in a scope, with all the rest; not of what is gone
    notebook["vault pairs"] = b"damaged"
    check()
    assert pairs == 308 * 307 // 2


def test_proposed_deletions_have_reasons(tmp_path: Path, clock: Clock) -> None:
    """S002-47"""
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    vault.checks = ()  # as before there was a gate
    old = add(vault, words(1), tier="register")
    clock.advance(days=91)
    ids = {
        "short_text": add(vault, "ok noted", tier="register"),
        "noise": add(vault, "heartbeat of the machine room", tier="register"),
        "near_duplicate": add(vault, BURST),
        "stale_register": old,
    }
    clock.advance(minutes=1)
    add(vault, BURST_AGAIN)
    add(vault, "ok")  # canon: proposed for near-duplicates only
    keyed = [add(vault, "ok", tier="register", topic_id=key) for key in ("open", "closed")]  # values of their keys
    fresh = add(vault, words(2), tier="register", topic_id="t")
    write(vault, *lines(vault), {**lines(vault)[-1], "id": "a" * 12, "created_at": "2025-01-02T00:00:00Z"})
    before = vault.path.read_bytes()
    proposed = vault.propose_deletions("shared")
    assert {item["reason"]: item["id"] for item in proposed} == {**ids, "duplicate_topic": "a" * 12}
    assert len(proposed) == 5
    short = next(item for item in proposed if item["reason"] == "short_text")
    assert short == {
        "id": ids["short_text"], "scope": "shared", "tier": "register", "text": "ok noted", "reason": "short_text",
        "detail": "8 characters say little",
    }  # fmt: skip
    assert not {fresh, *keyed} & {item["id"] for item in proposed}
    assert vault.path.read_bytes() == before


def test_promotion_makes_canon(vault: MemoryVault) -> None:
    """S002-48"""
    id = add(vault, words(1), tier="register", topic_id="t", tags=["a"])
    record = vault.promote_to_canon(memory_id=id, canonical_text="The canonical wording", tags=["b"])
    assert (record.id, record.tier, record.source, record.text, record.version, record.tags, record.topic_id) == (
        id, "canon", "promotion", "The canonical wording", 2, ["b"], None,
    )  # fmt: skip
    assert vault.recall_memories() == [record]
    assert add(vault, words(2), tier="register", topic_id="t") != id


def test_promotion_refuses_what_cannot_be_canon(vault: MemoryVault) -> None:
    """S002-48"""
    canon, register = add(vault), add(vault, words(1), tier="register")
    with pytest.raises(KeyError):
        vault.promote_to_canon("ffffffffffff", "x")
    with pytest.raises((Refused, InvalidInput)):
        vault.promote_to_canon(canon, "x")
    with pytest.raises(ValueError, match="too long"):
        vault.promote_to_canon(register, "x" * 1201)
    with pytest.raises(ValueError, match="PII"):
        vault.promote_to_canon(register, "password: hunter2")
    assert len(lines(vault)) == 2


def test_history_has_all_versions(vault: MemoryVault) -> None:
    id = add(vault)
    add(vault, words(1))
    second = vault.update_memory(id, text=words(2))
    vault.delete_memory(id)
    versions = vault.history(id)
    assert [(record.version, record.text) for record in versions] == [(1, MISSION), (2, words(2)), (3, words(2))]
    assert versions[1] == second
    assert versions[2].deleted_at is not None
    assert vault.history("ffffffffffff") == []
