"""Adding and deleting many memories of the vault at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, BURST_AGAIN, MISSION, add, lines
from vault_samples import vault as vault


def test_bulk_delete_reports_what_it_did(vault: MemoryVault) -> None:
    """S002-13"""
    a, b, c = (add(vault, words(number)) for number in range(3))
    vault.delete_memory(c)
    assert vault.bulk_delete([a, "ffffffffffff", c, b, a]) == {"deleted": [a, b], "not_found": ["ffffffffffff", c, a]}
    assert vault.bulk_delete([]) == {"deleted": [], "not_found": []}
    assert len(lines(vault)) == 6


def test_bulk_add_stores_the_good_and_reports_the_bad(vault: MemoryVault) -> None:
    """S002-14"""
    result = vault.bulk_add(
        [
            {"text": words(1), "scope": "shared", "category": "bio"},
            {"text": "routine scan done", "scope": "shared", "category": "bio"},
            {"scope": "shared", "category": "bio"},
            {
                "text": words(2),
                "scope": "orion",
                "category": "goal",
                "tier": "register",
                "topic_id": "t",
                "tags": ["x"],
            },
            {"text": words(3), "scope": "nowhere", "category": "bio"},
        ]
    )
    stored, active = result["stored"], {record.id: record for record in vault.recall_memories()}
    assert [(item["index"], active[item["id"]].text) for item in stored] == [(0, words(1)), (3, words(2))]
    assert result["errors"] == [
        {"index": 1, "message": "Not stored: the text contains the journal-only signal 'routine scan'."},
        {"index": 2, "message": "The text is not text."},
        {"index": 4, "message": "Not stored: there is no such scope."},
    ]
    assert vault.bulk_add([]) == {"stored": [], "errors": []}
    assert len(lines(vault)) == 2


def test_bulk_add_finds_duplicates_and_topics_inside_the_batch(vault: MemoryVault) -> None:
    """S002-15"""
    topic = {"scope": "orion", "category": "goal", "tier": "register", "topic_id": "t"}
    result = vault.bulk_add(
        [
            {"text": BURST, "scope": "shared", "category": "meta"},
            {"text": BURST_AGAIN, "scope": "shared", "category": "meta"},
            {"text": words(1), **topic},
            {"text": words(2), **topic},
        ]
    )
    assert [item["index"] for item in result["stored"]] == [0, 2, 3]
    assert [item["index"] for item in result["errors"]] == [1]
    assert "Duplicate" in result["errors"][0]["message"]
    assert [record.version for record in vault.recall_memories("orion")] == [2]
    assert MemoryVault(vault.path).recall_memories() == vault.recall_memories()


def test_bulk_add_respects_the_capacity(tmp_path: Path) -> None:
    """S002-44"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=2)
    result = vault.bulk_add({"text": words(number), "scope": "shared", "category": "x"} for number in range(3))
    assert ([item["index"] for item in result["stored"]], [item["index"] for item in result["errors"]]) == ([0, 1], [2])


def test_bulk_add_forgets_everything_when_the_items_fail(vault: MemoryVault) -> None:
    def items() -> Iterator[dict[str, str]]:
        yield {"text": MISSION, "scope": "shared", "category": "mission"}
        raise OSError("the source of the items broke")

    with pytest.raises(OSError, match="the source"):
        vault.bulk_add(items())
    assert vault.recall_memories() == []
    add(vault)
