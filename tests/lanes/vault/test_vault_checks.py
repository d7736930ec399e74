"""The vault's gate: noise, length, scopes, secrets and personal data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlane import Bank, gate
from memlane.core.errors import InvalidInput, NotFound, Refused
from memlane.core.model import Draft
from memlane.gate import Guard
from memlane.lanes.vault.checks import CHECKS, NOISE
from memlane.lanes.vault.record import SOURCES
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, BURST_AGAIN, MISSION, SSN, add, lines, write
from vault_samples import vault as vault

CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize("signal", NOISE)
@pytest.mark.parametrize("form", [str.lower, str.upper, str.title])
def test_noise_is_refused(vault: MemoryVault, signal: str, form: Any) -> None:
    """S002-16"""
    with pytest.raises(ValueError, match="journal-only signal"):
        add(vault, f"Log: {form(signal)} at noon")
    assert lines(vault) == []


def test_the_seeds_ten_signals() -> None:
    """S002-16"""
    assert NOISE == (
        "tick marker", "runtime snapshot", "check-in", "heartbeat", "burst tick", "no changes", "nothing to report",
        "status unchanged", "routine scan", "ephemeral",
    )  # fmt: skip


def test_the_seeds_noise_example(vault: MemoryVault) -> None:
    """S002-17"""
    with pytest.raises(Refused) as refusal:
        add(vault, "tick marker for burst 5")
    assert refusal.value.to_dict() == {
        "code": "noise",
        "check": "noise",
        "message": "Not stored: the text contains the journal-only signal 'tick marker'.",
        "hint": "Keep it as a note, outside the vault. Or store what was learned from it, in other words.",
    }


@pytest.mark.parametrize("tier", ["log", "LOG"])
def test_the_log_tier_is_refused(vault: MemoryVault, tier: str) -> None:
    """S002-18"""
    with pytest.raises(ValueError, match="journal-only"):
        add(vault, tier=tier)


def test_twelve_hundred_characters_are_allowed(vault: MemoryVault) -> None:
    """S002-19: counted as code points, after stripping."""
    add(vault, "é" * 1200 + "  \n")
    with pytest.raises(ValueError, match="too long"):
        add(vault, "ü" * 1201)
    assert len(lines(vault)) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("scope", "mars"), ("scope", ""), ("tier", "gold"), ("source", "rumour"), ("source", "CHAT")]
)
def test_unknown_words_are_refused(vault: MemoryVault, field: str, value: str) -> None:
    """S002-20 S002-21 S002-22"""
    with pytest.raises(Refused) as refusal:
        add(vault, **{field: value})
    assert value == "" or value not in str(refusal.value)
    assert lines(vault) == []


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_the_five_sources_are_accepted(vault: MemoryVault, source: str | None) -> None:
    """S002-22"""
    add(vault, source=source)
    assert lines(vault)[0]["source"] == (source or "manual")


@pytest.mark.parametrize("scope", ["shared", "orion", "elysia", "ORION"])
def test_the_three_scopes_are_accepted(vault: MemoryVault, scope: str) -> None:
    """S002-20"""
    add(vault, scope=scope)
    assert lines(vault)[0]["scope"] == scope.lower()


def test_scopes_can_be_configured(tmp_path: Path) -> None:
    """S002-20 (R-23)"""
    vault = MemoryVault(tmp_path / "vault.jsonl", scopes=("team", "Ada"))
    add(vault, scope="ada")
    with pytest.raises((Refused, InvalidInput)):
        add(vault, words(1), scope="shared")


def test_a_free_category_is_accepted_and_counted(vault: MemoryVault) -> None:
    """S002-23"""
    add(vault, category="Cooking")
    stats = vault.vault_stats()
    assert (stats["by_category"], stats["unknown_categories"]) == ({"cooking": 1}, 1)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u200b"])
def test_empty_text_is_refused(vault: MemoryVault, text: str) -> None:
    """S002-24"""
    with pytest.raises(ValueError, match="empty"):
        add(vault, text)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a"]])
def test_text_that_is_no_text_is_refused(vault: MemoryVault, text: Any) -> None:
    """S002-24"""
    with pytest.raises(InvalidInput):
        add(vault, text)


@pytest.mark.parametrize(
    ("item", "secret"),
    [
        (f"The SSN is {SSN}", SSN),
        (f"Card {CARD}", CARD),
        (f"Card {CARD.replace(' ', '')}", CARD.replace(" ", "")),
        (f"Card {CARD.replace(' ', '-')}", CARD.replace(" ", "-")),
        ("password: hunter2", "hunter2"),
        ("api_key: sk-abc123", "sk-abc123"),
    ],
)
def test_pii_is_refused_without_repeating_it(vault: MemoryVault, item: str, secret: str, tmp_path: Path) -> None:
    """S002-25 S002-26 S002-27 S002-28 S002-30"""
    with pytest.raises(ValueError, match="PII") as refusal:
        add(vault, item)
    assert secret not in json.dumps(refusal.value.to_dict())  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", [MISSION, "The API key lives in the operators' safe", "Order 123456789 shipped", "Tick at 1736519422000"]
)
def test_harmless_text_passes(vault: MemoryVault, text: str) -> None:
    """S002-29"""
    from memlane.gate.secrets import check_pii

    assert check_pii(text) == []
    add(vault, text)


def test_secrets_are_refused_in_every_field(vault: MemoryVault, tmp_path: Path) -> None:
    """S002-30: the common scanner guards tags and topics too."""
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    for fields in ({"tags": [token]}, {"category": token}, {"tier": "register", "topic_id": token}):
        with pytest.raises(Refused) as refusal:
            add(vault, **fields)
        assert token.lower() not in json.dumps(refusal.value.to_dict()).lower()
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_the_checks() -> None:
    """S002-31: emptiness, then the seed's eight steps."""
    assert [check.__name__ for check in CHECKS] == [
        "not_empty", "noise", "log_tier", "length", "known_words", "pii", "upsert", "duplicate", "capacity",
    ]  # fmt: skip
    assert [check.__name__ for check in MemoryVault("unused").checks] == [
        "characters", "not_empty", "noise", "log_tier", "length", "known_words", "pii", "secrets", "upsert",
        "duplicate", "capacity",
    ]  # fmt: skip
    assert all(check.__doc__ and check.__doc__.splitlines()[0].strip() for check in CHECKS)


def test_each_step_wins_over_the_later_ones(tmp_path: Path) -> None:
    """S002-31"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=1)
    add(vault, BURST)
    worst = f"heartbeat password: hunter2 {'x' * 1300}"
    steps = [
        (worst, {"tier": "log", "scope": "mars"}, "noise"),
        (worst[10:], {"tier": "log", "scope": "mars"}, "log_tier"),
        (worst[10:], {"scope": "mars"}, "too_long"),
        ("password: hunter2", {"scope": "mars"}, "unknown_scope"),
        ("password: hunter2", {"tier": "register", "topic_id": "t"}, "sensitive"),
        (BURST_AGAIN, {}, "duplicate"),
        (words(1), {}, "full"),
    ]
    for text, fields, code in steps:
        with pytest.raises(Refused) as refusal:
            add(vault, text, **fields)
        assert refusal.value.code == code
    assert len(lines(vault)) == 1


def test_redaction_stores_the_rest(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", guard=Guard(secrets="redact"))
    memory = vault.put(Draft(f"The SSN of the test person is {SSN}, as agreed"))
    assert SSN not in memory.text
    assert "[REDACTED:" in memory.text
    assert len(memory.remarks) == 1


def test_a_text_that_redaction_makes_too_long_is_refused(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", guard=Guard(secrets="redact"))
    with pytest.raises(ValueError, match="too long"):
        add(vault, "x" * 1184 + f" SSN {SSN}")
    id = add(vault)
    with pytest.raises(ValueError, match="too long"):
        vault.update_memory(id, text="x" * 1184 + f" SSN {SSN}")
    assert len(lines(vault)) == 1


def test_a_text_that_stays_is_not_judged_again(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "heartbeat of the city"}, {"id": "b", "text": "x" * 1300})
    assert vault.update_memory("a", tags=["city"]).text == "heartbeat of the city"
    assert vault.update_memory("b", category="bio").version == 2
    with pytest.raises(Refused):
        vault.update_memory("a", text="heartbeat of the town")
    with pytest.raises(Refused):
        vault.update_memory("a", tags=[f"ssn {SSN}"])
    with pytest.raises(Refused):
        vault.update_memory("a", tier="log")


@pytest.mark.parametrize(
    "changes",
    [{"topic_id": 5}, {"source": 5}, {"category": 5}, {"tags": 5}, {"title": 5}, {"thread": 5}, {"text": None}],
)
def test_a_change_of_the_wrong_type_is_refused(vault: MemoryVault, changes: dict[str, Any]) -> None:
    id = add(vault)
    with pytest.raises(InvalidInput):
        vault.revise(id, changes)
    assert len(lines(vault)) == 1


def test_questions_of_the_wrong_type_are_refused(vault: MemoryVault) -> None:
    add(vault)
    for wrong in (5, [5]):
        with pytest.raises(InvalidInput):
            vault.recall_memories(scope=wrong)  # type: ignore[arg-type]
    wrong_filters: list[dict[str, Any]] = [{"category": 5}, {"limit": "all"}, {"tags": 5}]
    for filters in wrong_filters:
        with pytest.raises(InvalidInput):
            vault.recall_memories(**filters)
    with pytest.raises(InvalidInput):
        vault.search_memories(5)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        vault.update_memory(["a"], text="x")  # type: ignore[arg-type]
    assert vault.bulk_delete([["a"]])["deleted"] == []  # type: ignore[list-item]


def test_a_changed_topic_is_stripped(vault: MemoryVault) -> None:
    id = add(vault, tier="register")
    assert vault.update_memory(id, topic_id="  a b ").topic_id == "a b"
    assert vault.revise(id, {"topic_id": "  "}).fields["topic_id"] is None


def test_custom_scopes_hold_everywhere(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", scopes=("team", "ada"))
    assert vault.put(Draft(MISSION)).scope == "team"
    with pytest.raises(Refused, match="Duplicate"):
        gate.admit(vault.checks, Draft(MISSION), vault)


def test_invisible_characters_are_removed_and_remarked(vault: MemoryVault) -> None:
    memory = vault.put(Draft("Stabilize\u200b the \u202eruntime"))
    assert (memory.text, memory.remarks) == (
        "Stabilize the runtime",
        ("2 invisible or control characters were removed",),
    )


@pytest.mark.parametrize("text", ["a\0b", "lone \ud800 surrogate"])
def test_what_no_line_can_hold_is_refused(vault: MemoryVault, text: str) -> None:
    with pytest.raises(InvalidInput):
        add(vault, text)
    assert lines(vault) == []


def test_labels_are_bounded(vault: MemoryVault) -> None:
    for fields in ({"category": "c" * 201}, {"tags": ["t" * 201]}, {"tags": [str(number) for number in range(101)]}):
        with pytest.raises(InvalidInput):
            add(vault, **fields)
    assert lines(vault) == []


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "Q3EGRZ5KYBN2VXWT",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN RSA PRIVATE KEY----- MIIEpAIBAAKCAQEA7bq2vKx9Jc3T -----END RSA PRIVATE KEY-----",
    ],
)
def test_a_category_is_scanned_as_it_was_written(vault: MemoryVault, secret: str) -> None:
    with pytest.raises(Refused, match="secret"):
        vault.add_memory(words(1), "shared", secret)
    id = vault.add_memory(words(2), "shared", "Goal")
    with pytest.raises(Refused, match="secret"):
        vault.update_memory(id, category=secret)
    assert vault.get_memory(id).category == "goal"
    assert vault.update_memory(id, category="PLAN").category == "plan"


def test_a_record_that_is_deleted_while_it_is_judged_breaks_no_rule(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        memory = bank.add("Deploys go out on Tuesdays.", lane="vault")
        bank.delete(memory.id)
        assert list(bank.vault.answers.broken_rules(memory)) == []
