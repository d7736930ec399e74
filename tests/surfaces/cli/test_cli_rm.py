"""`memlane rm`, `restore` and `trash`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_rm_and_restore(run: Run, bank: Bank) -> None:
    for title in ("a", "b"):
        run("add", "text", "--title", title)
    assert run("rm", "a", "b").out == "notes:a\nnotes:b\n"
    assert {item["id"] for item in run("restore", "--json").json} == {"notes:a", "notes:b"}
    assert run("restore", "a").out == "notes:a\n"
    assert [memory.id for memory in bank.list()] == ["notes:a"]
