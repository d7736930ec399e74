"""`memlane promote`: a register becomes canon."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_a_register_becomes_canon_in_its_own_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register", "--topic", "ship").out.strip()
    assert run("promote", id).out == f"{id}\n"
    memory = bank.get(id)
    assert (memory.text, memory.fields["tier"]) == ("We ship on Tuesdays.", "canon")
    assert run("promote", id, "again").code == 2


def test_a_register_becomes_canon_in_other_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register").out.strip()
    promoted = run("promote", id, "-", "-t", "release", "--json", stdin="Releases are on Tuesdays.").json
    assert (promoted["text"], promoted["tags"]) == ("Releases are on Tuesdays.", ["release"])


def test_only_registers_are_promoted(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "a")
    assert run("promote", "a").code == 2
    assert run("promote", "vault:gone").code == 3
