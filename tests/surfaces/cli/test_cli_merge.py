"""`memlane merge`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_merge_replaces_several_notes_by_one(run: Run, bank: Bank) -> None:
    for title in ("a", "b"):
        run("add", "text", "--title", title)
    assert run("merge", "notes:a", "b", "--into", "c", "--text", "both").out == "notes:c\n"
    assert [memory.id for memory in bank.list()] == ["notes:c"]
    assert run("merge", "c", "--into", "c", "--text", "x").code == 5
    assert run("merge", "gone", "--into", "d", "--text", "x").code == 3
