"""The vault of a bank: a changed fact is stored, a repetition is not; `MemoryVault` alone keeps the seed's verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane import Bank
from memlane.core.errors import Refused
from memlane.exchange.imports import import_from
from memlane.lanes.vault.store import MemoryVault
from vault_samples import BURST, BURST_AGAIN


@pytest.fixture
def vault(tmp_path: Path) -> MemoryVault:
    return Bank.init(tmp_path).vault


def texts(vault: MemoryVault) -> list[str]:
    return [record.text for record in vault.recall_memories()]


def test_another_value_is_a_fact_of_its_own(vault: MemoryVault) -> None:
    facts = [f"The API server port is {port}" for port in (8080, 9090, 7070)]
    for text in facts:
        vault.add_memory(text, "shared", "infra")
    assert sorted(texts(vault)) == sorted(facts)


def test_a_repetition_is_refused_with_what_is_there(vault: MemoryVault) -> None:
    id = vault.add_memory(BURST, "shared", "meta")
    with pytest.raises(Refused) as refusal:
        vault.add_memory(BURST_AGAIN, "shared", "meta")
    assert refusal.value.to_dict() == {
        "code": "duplicate",
        "check": "duplicate",
        "message": f"Not stored: Duplicate of {id} (similarity 0.78), which says: {BURST}.",
        "hint": f"`memlane update vault:{id}` changes it; "
        f"`memlane add --lane vault --replaces vault:{id}` takes its place.",
    }


def test_a_repetition_behind_a_changed_fact_is_found(vault: MemoryVault) -> None:
    vault.add_memory("The API server port is 8080", "shared", "infra")
    vault.add_memory("The API server port is 9090", "shared", "infra")
    with pytest.raises(Refused, match="9090"):
        vault.add_memory("The port of the API server is 9090", "shared", "infra")


def test_a_register_of_another_topic_is_no_duplicate(vault: MemoryVault) -> None:
    for topic in ("api_port", "admin_port"):
        vault.add_memory("The gateway listens on port 7001", "shared", "infra", tier="register", topic_id=topic)
    assert vault.vault_stats()["register_topics"] == 2


def test_a_register_without_a_topic_can_get_one(vault: MemoryVault) -> None:
    id = vault.add_memory("Working on the dashboard", "shared", "project", tier="register")
    again = vault.add_memory(
        "Working on the dashboard", "shared", "project", tier="register", topic_id="current_projects"
    )
    record = vault.get_memory(id)
    assert (again, record.topic_id, record.version) == (id, "current_projects", 2)


def test_the_class_alone_keeps_the_seeds_verdicts(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl")
    vault.add_memory("The API server port is 8080", "shared", "infra")
    with pytest.raises(Refused, match="Duplicate"):
        vault.add_memory("The API server port is 9090", "shared", "infra")


@pytest.mark.parametrize(
    "text",
    [
        "The heartbeat interval of the worker is 30 s",
        "No changes to the schema are allowed without a migration",
        "Ephemeral environments are created for every pull request",
        "Heartbeats of the agents go to the monitoring topic",
        "no changes added to commit",
        "The heartbeat interval of the websocket is 30 seconds",
        "Ephemeral environments are created per pull request",
    ],
)
def test_a_signal_in_a_statement_is_no_noise(vault: MemoryVault, text: str) -> None:
    vault.add_memory(text, "shared", "infra")
    assert texts(vault) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "tick marker for burst 5",
        "Heartbeat ok",
        "No changes since the last check-in",
        "Status unchanged: 14:30",
        "Routine scan done, nothing to report",
        "heartbeat 42 received",
    ],
)
def test_noise_is_still_refused(vault: MemoryVault, text: str) -> None:
    with pytest.raises(Refused) as refusal:
        vault.add_memory(text, "shared", "infra")
    assert refusal.value.hint.startswith("Keep it as a note, outside the vault.")


def test_an_import_keeps_changed_facts(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    folder = tmp_path / "facts"
    folder.mkdir()
    for port in (8080, 9090):
        (folder / f"{port}.md").write_text(f"The API server port is {port}")
    outcomes = list(import_from(bank, folder, kind="markdown", lane="vault"))
    assert [outcome.status for outcome in outcomes] == ["new", "new"]
