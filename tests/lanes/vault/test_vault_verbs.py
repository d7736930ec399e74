"""The vault by the bank's verbs: put, revise, extend, drop, recover."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import Clock
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, Refused
from memlane.core.model import Draft, Memory
from memlane.lanes.vault.store import MemoryVault
from vault_samples import MISSION, add
from vault_samples import vault as vault


def test_a_memory_of_the_vault(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    when = datetime(2024, 5, 6, tzinfo=UTC)
    memory = vault.put(
        Draft(
            "Stabilize the runtime\nin layers",
            tags=("a",),
            type="Mission",
            scope="orion",
            thread="t1",
            created_at=when,
            fields={"tier": "register", "topic_id": "now", "source": "chat"},
        )
    )
    assert memory == Memory(
        id=memory.id,
        lane="vault",
        text="Stabilize the runtime\nin layers",
        title="Stabilize the runtime",
        file=str(vault.path),
        tags=("a",),
        type="mission",
        status="active",
        scope="orion",
        thread="t1",
        created_at=when,
        fields={"tier": "register", "topic_id": "now", "source": "chat", "version": 1, "category": "mission"},
    )
    assert vault.fetch(memory.native_id) == memory


def test_put_has_defaults(vault: MemoryVault) -> None:
    memory = vault.put(Draft(MISSION, title="The mission"))
    found = (memory.scope, memory.type, memory.title, memory.fields["tier"])
    assert found == ("shared", "other", "The mission", "canon")


def test_put_refuses_unknown_fields(vault: MemoryVault) -> None:
    with pytest.raises(InvalidInput):
        vault.put(Draft(MISSION, fields={"colour": "red"}))


def test_revise_and_extend(vault: MemoryVault) -> None:
    native = vault.put(Draft(MISSION, title="old")).native_id
    changes = {"type": "goal", "tags": ("x",), "scope": "orion", "title": None, "topic_id": "t", "tier": "register"}
    memory = vault.revise(native, changes)
    assert (memory.type, memory.tags, memory.scope, memory.title, memory.text) == (
        "goal", ("x",), "orion", MISSION, MISSION,
    )  # fmt: skip
    assert (memory.fields["topic_id"], memory.fields["tier"], memory.fields["version"]) == ("t", "register", 2)
    assert vault.extend(native, "  And beyond\n").text == f"{MISSION}\n\n  And beyond"
    with pytest.raises(InvalidInput):
        vault.extend(native, 5)  # type: ignore[arg-type]
    with pytest.raises((Refused, InvalidInput)):
        vault.revise(native, {"scope": "mars"})


def test_drop_and_recover(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    native = vault.put(Draft(MISSION)).native_id
    removed = vault.drop(native)
    assert (removed.id, removed.how, removed.path, removed.removed_at) == (
        f"vault:{native}", "tombstone", vault.path, clock.now,
    )  # fmt: skip
    assert list(vault.removed()) == [removed]
    recovered = vault.recover(native)
    assert (recovered.text, recovered.fields["version"], list(vault.removed())) == (MISSION, 3, [])
    with pytest.raises(AlreadyExists):
        vault.recover(native)
    with pytest.raises(NotFound):
        vault.recover("ffffffffffff")


def test_a_change_says_which_memory_it_repeats(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl")
    first = add(vault, "Deploys go out on Tuesdays")
    other = add(vault, "Nobody may merge on Fridays")
    record = vault.update_memory(other, text="Deploys  go out on Tuesdays")
    assert record.remarks == (f"vault:{first} says the same, word for word: delete one of the two",)
    assert vault.update_memory(other, text="Reviews are due on Mondays").remarks == ()
