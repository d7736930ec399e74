"""The word list of seed 000: what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Clock, tree
from memlane import Refused, TopicLane, gate
from memlane.core.errors import ConfigError
from memlane.core.model import Draft
from memlane.lanes.topics.checks import CHECKS, PATTERNS
from memlane.lanes.topics.store import SecurityViolation
from topic_samples import fill, main_file, write
from topic_samples import lane as lane


@pytest.mark.parametrize("pattern", ["password", "token", "key", "secret", "credential"])
def test_general_words_are_refused(lane: TopicLane, pattern: str) -> None:
    """S000-10"""
    with pytest.raises(SecurityViolation) as caught:
        lane.store("auth/oauth2", f"the {pattern} is here")
    assert pattern in caught.value.patterns


@pytest.mark.parametrize("pattern", ["ghp_", "sk-", "ak_", "-----BEGIN", "api_key"])
def test_beginnings_of_values_are_refused(lane: TopicLane, pattern: str) -> None:
    """S000-11"""
    with pytest.raises(SecurityViolation) as caught:
        lane.store("auth/oauth2", f"use {pattern} here")
    assert pattern in caught.value.patterns


@pytest.mark.parametrize("pattern", ["@gmail.com", "amazonaws.com/key", "bearer "])
def test_service_words_are_refused(lane: TopicLane, pattern: str) -> None:
    """S000-12"""
    with pytest.raises(SecurityViolation) as caught:
        lane.store("auth/oauth2", f"use {pattern}here")
    assert pattern in caught.value.patterns


@pytest.mark.parametrize(
    ("text", "pattern"), [("PASSWORD", "password"), ("Bearer X", "bearer "), ("-----begin", "-----BEGIN")]
)
def test_case_does_not_matter(lane: TopicLane, text: str, pattern: str) -> None:
    """S000-13"""
    with pytest.raises(SecurityViolation) as caught:
        lane.store("auth/oauth2", text)
    assert caught.value.patterns == (pattern,)


def test_a_refused_store_touches_nothing(tmp_path: Path, clock: Clock) -> None:
    """S000-14"""
    empty = TopicLane(tmp_path / "none" / "memory", clock=clock)
    with pytest.raises(SecurityViolation):
        empty.store("auth/oauth2", "a password")
    assert not (tmp_path / "none").exists()
    lane = TopicLane(tmp_path / "memory", clock=clock)
    fill(lane, 11)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in lane.root.rglob("*")}
    with pytest.raises(SecurityViolation):
        lane.store("auth/oauth2", "a password")
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in lane.root.rglob("*")} == before


def test_the_words_of_a_refusal(lane: TopicLane) -> None:
    """S000-15, S000-16"""
    with pytest.raises(Refused) as caught:
        lane.store("auth/oauth2", "the api_key is hunter2")
    assert caught.value.to_dict() == {
        "code": "SECURITY_VIOLATION",
        "message": "Security violation: Cannot store sensitive data",
        "hint": "It matches 'key', 'api_key'. Store the location or method of access instead of the value. "
        'Where the word is harmless: topics.security = "smart" refuses only what is shaped like a secret.',
        "check": "blocked_words",
        "patterns": ["key", "api_key"],
    }


@pytest.mark.parametrize("text", ["keyboard shortcut", "a monkey", "the tokenizer", "my secretary"])
def test_strict_words_are_substrings(lane: TopicLane, text: str) -> None:
    """S000-17"""
    with pytest.raises(SecurityViolation):
        lane.store("auth/oauth2", text)


def test_invisible_characters_do_not_hide_a_word(lane: TopicLane) -> None:
    with pytest.raises(SecurityViolation):
        lane.store("auth/oauth2", "the pass\u200bword")
    assert not lane.root.exists()


def test_smart_security_lets_words_pass(tmp_path: Path) -> None:
    lane = TopicLane(tmp_path / "memory", security="smart")
    assert lane.store("auth/oauth2", "A keyboard shortcut; the token lives in the vault").stored


def test_smart_security_refuses_values(tmp_path: Path) -> None:
    lane = TopicLane(tmp_path / "memory", security="smart")
    value = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    with pytest.raises(SecurityViolation) as caught:
        lane.store("auth/oauth2", f"Deploy with {value} please")
    assert caught.value.patterns
    assert value not in f"{caught.value} {caught.value.hint} {caught.value.to_dict()}"
    assert not lane.root.exists()


def test_clean_content_is_stored(lane: TopicLane) -> None:
    """S000-18"""
    assert lane.store("auth/oauth2", "Refresh a minute early").stored
    assert "Refresh a minute early" in main_file(lane)


@pytest.mark.parametrize("field", ["title", "context", "problem", "solution", "code", "results"])
def test_every_field_is_scanned(lane: TopicLane, field: str) -> None:
    """S000-19"""
    with pytest.raises(SecurityViolation):
        lane.store("auth/oauth2", **{"problem": "fine", field: "a password"})
    assert not lane.root.exists()


def test_known_labels_are_not_scanned(lane: TopicLane) -> None:
    """S000-19"""
    lane.store("auth/oauth2", problem="P", key_insights="Measure first")
    assert lane.load("auth/oauth2")[0].get("Key Insights") == "Measure first"


def test_what_stands_in_the_file_is_not_scanned(lane: TopicLane) -> None:
    """S000-19"""
    write(lane, "auth/oauth2", "## 2024-01-01: Old\n**Problem:** the password\n---\n")
    assert lane.store("auth/oauth2", "fine").stored


@pytest.mark.parametrize("verb", ["put", "revise", "extend"])
def test_the_banks_verbs_pass_the_same_gate(lane: TopicLane, verb: str) -> None:
    native = lane.put(Draft("fine", fields={"topic": "a/b"})).native_id
    before = tree(lane.root)
    attempts = {
        "put": lambda: lane.put(Draft("a password", fields={"topic": "a/b"})),
        "revise": lambda: lane.revise(native, {"solution": "a password"}),
        "extend": lambda: lane.extend(native, "a password"),
    }
    with pytest.raises(SecurityViolation):
        attempts[verb]()
    assert tree(lane.root) == before


def test_the_seeds_check_comes_first_and_describes_itself(lane: TopicLane) -> None:
    assert lane.checks[: len(CHECKS)] == CHECKS
    assert len(lane.checks) == len(CHECKS) + len(gate.common())
    assert [check.__doc__ for check in CHECKS] == [
        'words such as "password" and "token" are refused (smart: values shaped like secrets)'
    ]
    assert len(PATTERNS) == 13


def test_unknown_security_mode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        TopicLane(tmp_path, security="none")


@pytest.mark.parametrize("topic", ["system/task-tools", "risk-review", "desk-setup/keyboard", "auth/token-bucket"])
def test_a_topics_name_is_no_content(lane: TopicLane, topic: str) -> None:
    """S000-19: title, context, problem, solution and code are scanned; a name with a word of the list is a name."""
    stored = lane.store(topic, "A harmless entry.")
    assert lane.put(Draft("Another one.", scope=topic)).fields["topic"] == stored.entry.topic
    assert len(lane.load(topic)) == 2


def test_a_secret_as_a_topics_name_is_refused(lane: TopicLane) -> None:
    with pytest.raises(Refused):
        lane.store("ghp_" + "xK7pQ2mZ9wL4vB8nT1cR6yJ3sD5fG0hA2eU7", "A harmless entry.")
    assert not lane.root.exists()
