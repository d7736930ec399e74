"""Compaction: what is kept, and that a kill loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

from memlane.core.model import Problem
from memlane.disk import log
from memlane.lanes.vault.record import Record, render_line
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import add, lines, parsed, write
from vault_samples import vault as vault


def test_compaction_keeps_the_latest_active_versions(vault: MemoryVault) -> None:
    """S002-59"""
    ids = [add(vault, words(number), category=["z", "b", "a"][number]) for number in range(3)]
    vault.update_memory(ids[1], text=words(7))
    vault.delete_memory(ids[0])
    before, snapshot = vault.recall_memories(), vault.build_snapshot()
    assert vault.compact() == {"lines_before": 5, "lines_after": 2, "lines_removed": 3}
    assert (vault.recall_memories(), vault.build_snapshot()) == (before, snapshot)
    assert [row["id"] for row in lines(vault)] == [ids[2], ids[1]]
    stats = vault.vault_stats()
    assert (stats["deleted_count"], stats["bloat_ratio"], stats["compactable_lines"]) == (0, 1.0, 0)
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]
    assert vault.compact() == {"lines_before": 2, "lines_after": 2, "lines_removed": 0}


def test_compaction_of_nothing(vault: MemoryVault) -> None:
    """S002-59"""
    assert vault.compact() == {"lines_before": 0, "lines_after": 0, "lines_removed": 0}
    assert not vault.path.parent.exists()


def test_compaction_keeps_malformed_lines_aside(vault: MemoryVault) -> None:
    """S002-59"""
    write(vault, {"id": "a", "text": "one", "mood": "calm"}, "{damaged", '{"id":"b"}')
    with vault.path.open("ab") as file:
        file.write(b'{"torn":')
    vault.compact()
    assert [row["mood"] for row in lines(vault)] == ["calm"]
    rejected = vault.path.with_name("vault.jsonl.rejected")
    assert rejected.read_text() == '{damaged\n{"id":"b"}\n{"torn":\n'
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []


def test_compaction_minds_a_last_line_without_line_end(vault: MemoryVault) -> None:
    """S002-59: a tombstone at the very end still deletes."""
    write(vault, {"id": "a", "text": "one"}, {"id": "b", "text": "two"})
    with vault.path.open("ab") as file:
        file.write(b'{"id":"a","text":"one","version":2,"deleted_at":"2025-01-01T00:00:00Z"}')
    vault.compact()
    assert [row["id"] for row in lines(vault)] == ["b"]


def test_lines_that_arrive_during_compaction_are_carried_over(vault: MemoryVault) -> None:
    """S002-62: written to the old file by somebody who had looked before the rename."""
    add(vault, words(1))
    late = render_line(Record("late00000000", "a late line")) + "\n"

    def change(data: bytes) -> tuple[bytes, bytes]:
        with vault.path.open("ab") as file:
            file.write(late.encode())
        return data, b""

    log.rewrite(str(vault.path), change, lambda _: False)
    assert {record.text for record in vault.recall_memories()} == {words(1), "a late line"}
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_a_killed_compaction_loses_nothing(vault: MemoryVault) -> None:
    """S002-62: killed after the rename, with a line that only the old file has."""
    kept = add(vault, words(1))
    gone = add(vault, words(2))
    vault.delete_memory(gone)
    only_old = add(vault, words(3))
    os.link(vault.path, vault.path.with_name("vault.jsonl.old"))
    successor = vault.path.with_name("successor")
    successor.write_text(vault.path.read_text().splitlines()[0] + "\n")
    os.replace(successor, vault.path)
    assert {record.id for record in MemoryVault(vault.path).recall_memories()} == {kept, only_old}
    vault.compact()
    assert sorted(row["id"] for row in lines(vault)) == sorted([kept, only_old])
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_a_killed_compaction_of_a_linked_vault_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "store.jsonl"
    link = tmp_path / "vault.jsonl"
    link.symlink_to(real)
    write(MemoryVault(real), {"id": "a", "text": "one"})
    real.with_name("store.jsonl.old").write_text('{"id":"b","text":"two"}\n')
    vault = MemoryVault(link)
    assert sorted(record.id for record in vault.recall_memories()) == ["a", "b"]
    assert len(vault.history("b")) == 1
    vault.compact()
    assert link.is_symlink()
    assert sorted(row["id"] for row in lines(vault)) == ["a", "b"]
