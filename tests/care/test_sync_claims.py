"""What is said of memories beside them, with whom a bank is shared: what the code was, and what took whose place."""

from __future__ import annotations

from pathlib import Path

from memlane import Bank
from memlane.disk import anchors
from memlane.disk.anchors import Anchor
from synced import at_remote, member, synced


def _anchors(bank: Bank) -> list[str]:
    return sorted(anchors.load(str(bank.root / anchors.NAME))[0])


def test_a_member_without_a_lane_keeps_what_is_said_of_the_code_of_its_memories(tmp_path: Path) -> None:
    """It took those memories for gone, and tidied up for all."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob", lanes=["topics"])
    for bank in (ann, bob):
        (bank.root.parent / "code.py").write_text("x = 1\n")
    ann.add("See `code.py`.", title="Code")
    bob.add("See `code.py`.", lane="topics", topic="area", subtopic="code", title="Code")
    many = [
        Anchor(f"notes:old-{number}", "code.py", "", "a" * 40, "", "2025-01-01T00:00:00Z") for number in range(2000)
    ]
    anchors.append(str(ann.root / anchors.NAME), many)
    synced(ann, bob)
    bob.fresh()
    synced(bob, ann)
    assert (len(_anchors(ann)), "notes:code" in _anchors(ann)) == (2002, True)


def test_what_was_said_of_the_only_memory_that_names_code_goes_with_it_at_the_remote(tmp_path: Path) -> None:
    """The empty file that was left was nothing to send."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    (tmp_path / "ann/code.py").write_text("x = 1\n")
    ann.add("See `code.py`.", title="Code")
    synced(ann, bob)
    assert anchors.NAME in at_remote(tmp_path)
    ann.forget("notes:code")
    synced(ann, bob)
    assert (_anchors(bob), sorted(at_remote(tmp_path))) == ([], [".memlane/forgotten"])


def test_a_log_that_was_emptied_without_memlane_is_not_deleted_for_all(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("The port of the API is 8080.", lane="vault")
    synced(ann, bob)
    before = at_remote(tmp_path)
    (ann.root / "vault.jsonl").write_bytes(b"")
    synced(ann, bob)
    assert at_remote(tmp_path) == before
    assert [memory.text for memory in bob.memories("vault")] == ["The port of the API is 8080."]
