"""Topics: seed 000's entries, word list, path resolution, pruning, index, search, load and embedding."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock, tree
from memlane import AlreadyExists, Bank, InvalidInput, NotFound, Problem, Refused, TopicLane, gate
from memlane.core.errors import ConfigError, StorageError
from memlane.core.model import Draft, Memory
from memlane.lanes import scan
from memlane.lanes.topics.checks import CHECKS, PATTERNS
from memlane.lanes.topics.entries import (
    Entry,
    Listed,
    archived,
    conflict,
    edit_index,
    label_name,
    parse,
    read_index,
    render,
    split,
)
from memlane.lanes.topics.store import SecurityViolation, base_path
from memlane.surfaces.cli import app, main

HAND_WRITTEN = """\
# OAuth2 Memory

Notes of the login team.

## 2024-12-01: Colon outside
**Context**: PRB-007
**Problem**: Redirects loop
**Key Insights:** The proxy drops a header.
**Solution**: Forward it

## 2024-11-30: Sections
### Problem
Sessions expire early.

### Solution
Renew them:

```sh
## 2020-01-01: not an entry
---
renew --all
```
---
See archive/auth/2023.md
"""


@pytest.fixture
def lane(tmp_path: Path, clock: Clock) -> TopicLane:
    return TopicLane(tmp_path / "memory", clock=clock)


def unguarded(root: Path, clock: Clock) -> TopicLane:
    """A lane that takes any text."""
    lane = TopicLane(root, clock=clock)
    lane.checks = ()
    return lane


def texts(lane: TopicLane) -> dict[str, str]:
    """What each id means."""
    return {memory.native_id: memory.text for memory in scan(lane) if isinstance(memory, Memory)}


def write(lane: TopicLane, name: str, text: str) -> Path:
    path = lane.root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def main_file(lane: TopicLane, name: str = "auth/oauth2") -> str:
    return (lane.root / f"{name}.md").read_bytes().decode()


def titles(text: str) -> list[str]:
    return [parse(raw).title for raw in split(text).raws]


def fill(lane: TopicLane, count: int, topic: str = "auth/oauth2", **fields: Any) -> None:
    for number in range(count):
        lane.store(topic, title=f"Entry {number}", problem=f"Problem {number}", **fields)


def everything(root: Path) -> Counter[str]:
    """The text of every entry in topic files and archives, and how often it is there."""
    found: Counter[str] = Counter()
    for path in root.rglob("*.md"):
        if path.name == "index.md" or ".trash" in path.parts:
            continue
        text = path.read_bytes().decode()
        raws = [raw for _, raw in archived(text)] if "archive" in path.parts else split(text).raws
        found.update(raw.strip() for raw in raws)
    return found


# -- entries


def test_first_store_creates_topic_file_and_index(lane: TopicLane) -> None:
    """S000-01, S000-27, S000-32"""
    stored = lane.store("auth/oauth2", title="Refresh fails", problem="Clock drift", solution="Refresh earlier")
    assert list(tree(lane.root)) == ["auth/oauth2.md", "index.md"]
    assert (stored.stored, stored.path, stored.pruned, stored.archived_to, stored.index_updated) == (
        True,
        lane.root / "auth/oauth2.md",
        0,
        (),
        True,
    )
    assert (stored.entry.topic, stored.entry.subtopic, stored.entry.title) == ("auth", "oauth2", "Refresh fails")


def test_a_stored_entry_to_the_byte(lane: TopicLane) -> None:
    """S000-02, S000-03, S000-05"""
    lane.store("auth/oauth2", title="Refresh fails", context="PRB-042", problem="Clock drift", solution="Refresh early")
    assert main_file(lane) == (
        "## 2025-01-10: Refresh fails\n"
        "**Context:** PRB-042\n"
        "**Problem:** Clock drift\n"
        "**Solution:** Refresh early\n"
        "---\n"
    )


def test_code_appears_only_when_given(lane: TopicLane) -> None:
    """S000-04"""
    lane.store("auth/oauth2", title="Without", problem="Nothing to show")
    assert "**Code:**" not in main_file(lane)


@pytest.mark.parametrize(
    "code",
    [
        "retry()",
        "def refresh():\n    # ## 2025-01-01: no entry\n    return 1\n",
        "a\n---\n## 2024-01-01: x\n---\n",
        "```python\nretry()\n```",
        "```\nbare\n```",
        "````md\n```\ninner\n```\n````",
        "```open\nnever closed",
        "windows\r\nline ends\r\n",
        "\n\n  indented after blank lines",
    ],
)
def test_code_is_kept_verbatim(lane: TopicLane, code: str) -> None:
    """S000-04"""
    lane.store("auth/oauth2", title="First", problem="Below")
    lane.store("auth/oauth2", title="With code", code=code, solution="See code")
    assert code in main_file(lane)
    assert [entry.code for entry in lane.load("auth/oauth2")] == [code, None]


def test_code_that_names_its_language_gets_no_second_fence(lane: TopicLane) -> None:
    lane.store("auth/oauth2", title="T", code="```py\nretry()\n```")
    assert main_file(lane) == "## 2025-01-10: T\n**Context:** ad-hoc\n**Code:**\n```py\nretry()\n```\n---\n"


def test_free_text_is_the_problem_and_its_first_sentence_the_title(lane: TopicLane) -> None:
    lane.store("auth/oauth2", "Logins loop behind the proxy. It drops a header.\nSecond line.")
    assert main_file(lane) == (
        "## 2025-01-10: Logins loop behind the proxy\n"
        "**Context:** ad-hoc\n"
        "**Problem:** Logins loop behind the proxy. It drops a header.\nSecond line.\n"
        "---\n"
    )


def test_content_with_labels_is_taken_apart(lane: TopicLane) -> None:
    entry = lane.store("a/b", "**Context:** PRB-1\n**Problem:** Slow\n**Results:** Fast\n**Solution:** Cache").entry
    assert entry.labels == (("Context", "PRB-1"), ("Problem", "Slow"), ("Solution", "Cache"), ("Results", "Fast"))


def test_content_beside_a_problem_is_kept(lane: TopicLane) -> None:
    entry = lane.store("a/b", "Seen on Monday", problem="Slow").entry
    assert (entry.content, entry.problem) == ("Seen on Monday", "Slow")


def test_a_long_first_sentence_is_cut(lane: TopicLane) -> None:
    title = lane.store("a/b", "word " * 50).entry.title
    assert (len(title) <= 80, title.endswith("...")) == (True, True)


def test_further_labels_follow_in_order(lane: TopicLane) -> None:
    lane.store("a/b", title="T", problem="P", code="c", key_insights="Measure first", results="Twice as fast")
    labels = lane.load("a/b")[0].labels
    assert [name for name, _ in labels] == ["Context", "Problem", "Code", "Key Insights", "Results"]


def test_a_given_date_is_used(lane: TopicLane) -> None:
    """S000-02"""
    lane.store("a/b", "one", date="2023-05-06")
    lane.store("a/b", "two", date=date(2024, 2, 29))
    assert [entry.date for entry in lane.load("a/b")] == ["2024-02-29", "2023-05-06"]


@pytest.mark.parametrize(
    "arguments",
    [{"date": "yesterday"}, {"problem": 5}, {"title": ["x"]}, {"what*": "x"}, {"labels": "abc"}, {"labels": ["abc"]}],
)
def test_arguments_that_cannot_be_stored_are_refused(lane: TopicLane, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        lane.store("a/b", "text", **arguments)
    assert not lane.root.exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("toppic", "topic"), ("Topic", "topic"), ("sub_topic", "subtopic"), ("contxt", "context"), ("tag", "tags")],
)
def test_a_misspelt_field_is_refused(lane: TopicLane, name: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lane.put(Draft("text", fields={name: "auth/x"}))
    assert caught.value.hint.startswith(f"Did you mean {meant}?")
    assert not lane.root.exists()


def test_any_label_can_be_given_as_a_label(lane: TopicLane) -> None:
    fields = {"topic": "a/b", "resolution": "r", "Context": "PRB-1", "results": "s", "labels": {"Toppic": "t"}}
    assert lane.put(Draft("text", fields=fields)).text == (
        "**Context:** PRB-1\n**Problem:** text\n**Resolution:** r\n**Results:** s\n**Toppic:** t"
    )


def test_an_empty_entry_is_refused(lane: TopicLane) -> None:
    with pytest.raises(InvalidInput):
        lane.store("a/b", "  \n ")
    assert not lane.root.exists()


def test_newest_entry_is_on_top(lane: TopicLane, clock: Clock) -> None:
    """S000-06"""
    lane.store("a/b", title="A", problem="first")
    clock.advance(days=1)
    lane.store("a/b", title="B", problem="second")
    assert main_file(lane, "a/b") == (
        "## 2025-01-11: B\n**Context:** ad-hoc\n**Problem:** second\n---\n\n"
        "## 2025-01-10: A\n**Context:** ad-hoc\n**Problem:** first\n---\n"
    )


def test_three_of_one_day_stand_last_stored_first(lane: TopicLane) -> None:
    """S000-07"""
    fill(lane, 3)
    assert titles(main_file(lane)) == ["Entry 2", "Entry 1", "Entry 0"]


def test_an_older_date_is_still_put_on_top(lane: TopicLane) -> None:
    """R-08"""
    lane.store("a/b", title="New", problem="x")
    lane.store("a/b", title="Old", problem="y", date="2020-01-01")
    assert titles(main_file(lane, "a/b")) == ["Old", "New"]


def test_preamble_stays_above_and_old_entries_stay_as_they_are(lane: TopicLane) -> None:
    """S000-08, S000-09"""
    write(lane, "auth/oauth2", HAND_WRITTEN)
    lane.store("auth/oauth2", title="New", problem="x")
    preamble = "# OAuth2 Memory\n\nNotes of the login team.\n\n"
    fresh = "## 2025-01-10: New\n**Context:** ad-hoc\n**Problem:** x\n---\n\n"
    assert main_file(lane) == preamble + fresh + HAND_WRITTEN.removeprefix(preamble)


@pytest.mark.parametrize(
    "old", ["## 2024-01-01: A\ntext\n---\n\n\n", "## 2024-01-01: A\ntext", "## 2024-01-01: A\n---"]
)
def test_old_entries_are_byte_identical(lane: TopicLane, old: str) -> None:
    """S000-09"""
    write(lane, "a/b", old)
    lane.store("a/b", title="New", problem="x")
    assert main_file(lane, "a/b").endswith("---\n\n" + old)


def test_windows_files_stay_windows_files(lane: TopicLane) -> None:
    """S000-09"""
    old = "\ufeff# Title\r\n\r\n## 2024-01-01: A\r\n**Problem:** one\r\ntwo\r\n---\r\n"
    write(lane, "a/b", old)
    lane.store("a/b", title="New", problem="x\ny")
    text = main_file(lane, "a/b")
    assert text.count("\n") == text.count("\r\n")
    assert text.startswith("\ufeff# Title\r\n\r\n## 2025-01-10: New\r\n")
    assert [entry.problem for entry in lane.load("a/b")] == ["x\ny", "one\ntwo"]


def test_same_stores_same_clock_same_bytes(tmp_path: Path, clock: Clock) -> None:
    """S000-60"""
    lanes = [TopicLane(tmp_path / name / "memory", clock=clock) for name in ("one", "two")]
    for lane in lanes:
        write(lane, "kept/by-hand", HAND_WRITTEN)
        fill(lane, 12)
        fill(lane, 7, "auth/saml", code="x" * 900)
        lane.load("auth/saml")
    first, second = (tree(lane.root) for lane in lanes)
    assert first == second
    assert all(data.decode() for data in first.values())


# -- hand-written files


def test_hand_written_entries_are_understood(lane: TopicLane) -> None:
    """S000-51"""
    write(lane, "auth/oauth2", HAND_WRITTEN)
    outside, sections = lane.load("auth/oauth2")
    assert (outside.date, outside.title, outside.context, outside.problem, outside.solution, outside.code) == (
        "2024-12-01",
        "Colon outside",
        "PRB-007",
        "Redirects loop",
        "Forward it",
        None,
    )
    assert outside.get("Key Insights") == "The proxy drops a header."
    assert sections.problem == "Sessions expire early."
    assert sections.solution == "Renew them:\n\n```sh\n## 2020-01-01: not an entry\n---\nrenew --all\n```"


def test_a_fence_on_the_line_of_its_label_is_code(lane: TopicLane) -> None:
    write(lane, "a/b", "## 2024-01-02: A\n**Code:** ```js\n## 2024-01-01: no\n```\n---\n## 2024-01-01: B\n---\n")
    assert [(entry.title, entry.code) for entry in lane.load("a/b")] == [
        ("A", "```js\n## 2024-01-01: no\n```"),
        ("B", None),
    ]


def test_a_fence_that_never_closes_hides_no_entry(lane: TopicLane) -> None:
    write(lane, "a/b", "## 2024-01-02: A\n**Problem:** x\n```\nopen\n---\n\n## 2024-01-01: B\n**Problem:** y\n---\n")
    assert [entry.title for entry in lane.load("a/b")] == ["A", "B"]


def test_a_file_without_dated_entries_is_a_problem(lane: TopicLane) -> None:
    path = write(lane, "a/b", "---\nid: x\n---\nAn older format.\n")
    write(lane, "a/c", "# Only a title\n")
    assert list(scan(lane)) == [Problem(path, "has no dated entries; begin each with `## YYYY-MM-DD: Title`")]


def test_text_in_an_unknown_form_survives_a_store(lane: TopicLane) -> None:
    old = "---\nid: x\n---\nAn older format.\n"
    write(lane, "a/b", old)
    lane.store("a/b", title="New", problem="x")
    assert main_file(lane, "a/b") == old + "\n## 2025-01-10: New\n**Context:** ad-hoc\n**Problem:** x\n---\n"


# -- security


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
        "hint": "It matches 'key', 'api_key'. Store the location or method of access instead of the value.",
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
        "the seed's blocked words are refused (smart: values shaped like secrets)"
    ]
    assert len(PATTERNS) == 13


def test_unknown_security_mode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        TopicLane(tmp_path, security="none")


# -- where the memory is


def test_an_external_path_holds_all_files(tmp_path: Path, clock: Clock) -> None:
    """S000-20, S000-23, S000-26, S000-40"""
    external = tmp_path / "elsewhere"
    project = tmp_path / "project"
    project.mkdir()
    config = {"memory_configuration": {"external_path": str(external)}, "directory_structure": {"memory_path": "own"}}
    lane = TopicLane.resolve(project, config, clock=clock)
    fill(lane, 11)
    lane.load("auth/oauth2")
    assert len(lane.search("problem", limit=20)) == 10
    assert list(tree(external)) == [".stats.json", "archive/auth/2025.md", "auth/oauth2.md", "index.md"]
    assert tree(project) == {}


def test_a_tilde_is_the_home_folder(home: Path, tmp_path: Path) -> None:
    """S000-21"""
    assert base_path(tmp_path, {"memory_configuration.external_path": "~/memory"}) == home / "memory"


def test_an_external_folder_is_created(tmp_path: Path) -> None:
    """S000-22"""
    base_path(tmp_path, {"memory_configuration": {"external_path": str(tmp_path / "new" / "folder")}})
    assert (tmp_path / "new" / "folder").is_dir()


@pytest.mark.parametrize("config", [None, {}, {"memory_configuration": {}}, {"memory_configuration": None}])
def test_the_default_is_memory_in_the_project(tmp_path: Path, config: Any) -> None:
    """S000-24"""
    assert base_path(tmp_path, config) == tmp_path / "memory"
    assert tree(tmp_path) == {}


def test_a_configured_memory_path_is_used(tmp_path: Path) -> None:
    """S000-25"""
    assert base_path(tmp_path, {"directory_structure": {"memory_path": "docs/memory"}}) == tmp_path / "docs" / "memory"


def test_a_path_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        base_path(tmp_path, {"memory_configuration": {"external_path": 5}})


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("auth/oauth2", "auth/oauth2.md"),
        ("errors", "errors/general.md"),
        ("a/b.md", "a/b.md"),
        ("v1.2/x_y", "v1.2/x_y.md"),
    ],
)
def test_topic_and_subtopic_make_the_path(lane: TopicLane, topic: str, path: str) -> None:
    """S000-27"""
    assert lane.store(topic, "text").path == lane.root / path


@pytest.mark.parametrize(
    "topic",
    [
        "../x",
        "..",
        "a/..",
        "/etc/x",
        "a/b/c",
        "a\\b/c",
        "",
        "/",
        "a/",
        "archive/x",
        "Archive",
        ".git/x",
        "a/.b",
        "A/b",
        "a b",
        "indices/x",
        "a\0/b",
        "con/x",
        "a..b/c",
        "a/b..c",
        "a/b.",
    ],
)
def test_unsafe_names_are_refused(lane: TopicLane, topic: str) -> None:
    """S000-28"""
    with pytest.raises(InvalidInput):
        lane.store(topic, "text")
    assert not lane.root.exists()


def test_a_link_out_of_the_base_is_refused(lane: TopicLane, tmp_path: Path) -> None:
    """S000-28"""
    (tmp_path / "outside").mkdir()
    lane.root.mkdir()
    (lane.root / "auth").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInput):
        lane.store("auth/oauth2", "text")
    assert tree(tmp_path / "outside") == {}


@pytest.mark.parametrize("there", ["Auth/y", "auth/X"])
def test_a_name_that_differs_only_in_case_is_refused(lane: TopicLane, there: str) -> None:
    write(lane, there, "## 2024-01-01: A\n---\n")
    with pytest.raises(AlreadyExists):
        lane.store("auth/x", "text")
    assert list(tree(lane.root)) == [f"{there}.md"]
    assert lane.store(there, "text").stored


def test_a_file_where_a_topics_folder_should_be_is_an_error(lane: TopicLane) -> None:
    lane.root.mkdir()
    (lane.root / "auth").write_text("in the way")
    with pytest.raises(StorageError):
        lane.store("auth/x", "text")


# -- pruning


def test_ten_entries_are_kept_and_the_eleventh_prunes(lane: TopicLane) -> None:
    """S000-29, S000-31, S000-32, S000-33, S000-34, S000-36"""
    fill(lane, 10)
    assert not (lane.root / "archive").exists()
    stored = lane.store("auth/oauth2", title="Eleventh", problem="x")
    archive = lane.root / "archive/auth/2025.md"
    assert (stored.pruned, stored.archived_to) == (1, (archive,))
    assert titles(main_file(lane)) == ["Eleventh", *(f"Entry {number}" for number in range(9, 0, -1))]
    assert archive.read_text() == (
        "<!-- subtopic: oauth2 -->\n## 2025-01-10: Entry 0\n**Context:** ad-hoc\n**Problem:** Problem 0\n---\n"
    )


def test_a_large_file_is_pruned_to_its_size(lane: TopicLane) -> None:
    """S000-30, S000-34"""
    fill(lane, 9, solution="x" * 600)
    kept = lane.load("auth/oauth2")
    assert 5 <= len(kept) < 9
    assert len(main_file(lane).encode()) <= 5120
    assert [entry.title for entry in kept] == [f"Entry {number}" for number in range(8, 8 - len(kept), -1)]


def test_five_large_entries_are_not_pruned(lane: TopicLane) -> None:
    """S000-35"""
    fill(lane, 5, solution="x" * 3000)
    assert len(lane.load("auth/oauth2")) == 5
    assert not (lane.root / "archive").exists()


def test_size_never_goes_below_five(lane: TopicLane) -> None:
    """S000-34, S000-35"""
    fill(lane, 8, solution="x" * 3000)
    assert len(lane.load("auth/oauth2")) == 5


def test_size_is_counted_in_bytes(lane: TopicLane) -> None:
    """S000-30: 5 KB of UTF-8, R-03"""
    fill(lane, 6, solution="é" * 500)
    assert len(main_file(lane)) < 5120
    assert len(lane.load("auth/oauth2")) == 5


def test_the_year_is_that_of_the_entry(lane: TopicLane) -> None:
    """S000-37"""
    lane.store("auth/oauth2", title="Old", problem="x", date="2023-03-03")
    lane.store("auth/oauth2", title="Older", problem="y", date="2022-02-02")
    fill(lane, 10)
    assert sorted(tree(lane.root / "archive")) == ["auth/2022.md", "auth/2023.md"]
    assert titles((lane.root / "archive/auth/2022.md").read_text()) == ["Older"]


def test_every_entry_is_somewhere_exactly_once(lane: TopicLane) -> None:
    """S000-38, S000-39"""
    expected = []
    for number in range(40):
        topic = f"auth/{'oauth2' if number % 3 else 'saml'}"
        entry = lane.store(topic, title=f"Entry {number}", problem="x" * (number * 37 % 900)).entry
        expected.append(entry.raw.strip())
    assert everything(lane.root) == Counter(expected)


def test_equal_entries_are_not_taken_for_one(lane: TopicLane) -> None:
    """S000-38"""
    for _ in range(25):
        lane.store("auth/oauth2", title="Same", problem="Same text")
    assert list(everything(lane.root).values()) == [25]


def test_equal_entries_stay_when_the_index_is_lost(lane: TopicLane) -> None:
    """S000-38: without index.md nobody knows which of them a killed prune might have left."""
    for number in range(13):
        if number == 12:
            (lane.root / "index.md").unlink()
        lane.store("auth/oauth2", title="Same", problem="Same text")
    assert list(everything(lane.root).values()) == [13]


def test_a_later_prune_adds_on_top_of_the_archive(lane: TopicLane) -> None:
    """S000-39"""
    write(lane, "archive/auth/2025", "# Archive of 2025\n\n## 2025-01-01: By hand\nNo comment here.\n---\n")
    fill(lane, 13)
    text = (lane.root / "archive/auth/2025.md").read_text()
    assert text.startswith("# Archive of 2025\n\n<!-- subtopic: oauth2 -->\n## 2025-01-10: Entry 2\n")
    assert [(name, parse(raw).title) for name, raw in archived(text)] == [
        ("oauth2", "Entry 2"),
        ("oauth2", "Entry 1"),
        ("oauth2", "Entry 0"),
        ("", "By hand"),
    ]


def test_pruned_text_is_unchanged(lane: TopicLane) -> None:
    """S000-38"""
    old = "## 2024-05-05: By hand\n### Problem\nodd  spacing \n\n**Weird**: yes\n---\n"
    write(lane, "auth/oauth2", old)
    fill(lane, 10)
    assert old in (lane.root / "archive/auth/2024.md").read_text()


def test_a_kill_between_archive_and_topic_file_leaves_no_second_copy(lane: TopicLane) -> None:
    """S000-38: the archive is written first; the next store takes the second copy out."""
    fill(lane, 10)
    before = {path: path.read_bytes() for path in (lane.root / "auth/oauth2.md", lane.root / "index.md")}
    lane.store("auth/oauth2", title="Lost with the kill", problem="x")
    for path, data in before.items():
        path.write_bytes(data)
    ids = [memory.id for memory in scan(lane) if isinstance(memory, Memory)]
    assert ids == [f"topics:auth/oauth2/2025-01-10-entry-{number}" for number in range(9, -1, -1)]
    lane.store("auth/oauth2", title="Next", problem="y")
    found = everything(lane.root)
    assert (len(found), set(found.values())) == (11, {1})
    assert titles(main_file(lane)) == ["Next", *(f"Entry {number}" for number in range(9, 0, -1))]


# -- index.md


def test_index_lists_topics_and_subtopics(lane: TopicLane, clock: Clock) -> None:
    """S000-41, S000-42, S000-43"""
    lane.store("prb-execution/retries", title="Retry twice", problem="x")
    lane.store("auth/saml", title="Clock skew", problem="x")
    clock.advance(days=1)
    fill(lane, 11)
    lane.store("auth", title="Anything", problem="x")
    assert (lane.root / "index.md").read_text() == (
        "# Memory Index\n\n## Topics\n\n"
        "### Auth\n"
        "- `general.md` - Anything <!-- auth/general, entries: 1, archived: 0, newest: 2025-01-11 -->\n"
        "- `oauth2.md` - Entry 10 <!-- auth/oauth2, entries: 10, archived: 1, newest: 2025-01-11 -->\n"
        "- `saml.md` - Clock skew <!-- auth/saml, entries: 1, archived: 0, newest: 2025-01-10 -->\n"
        "\n"
        "### Prb Execution\n"
        "- `retries.md` - Retry twice <!-- prb-execution/retries, entries: 1, archived: 0, newest: 2025-01-10 -->\n"
    )


def test_what_people_write_into_the_index_stays(lane: TopicLane) -> None:
    """S000-42"""
    old = (
        "# Our memory\n\nRead me first.\n\n## Topics\n\n### Auth\n- `oauth2.md` - Login with partners\n"
        "- `gone.md` - Not a file\n\n## Other\n\n- `x` - y\n"
    )
    write(lane, "index", old)
    fill(lane, 2)
    lane.store("zoo/animals", title="Z", problem="x")
    assert (lane.root / "index.md").read_text() == old.replace(
        "Login with partners\n",
        "Login with partners <!-- auth/oauth2, entries: 2, archived: 0, newest: 2025-01-10 -->\n",
    ).replace(
        "\n\n## Other",
        "\n\n### Zoo\n- `animals.md` - Z <!-- zoo/animals, entries: 1, archived: 0, newest: 2025-01-10 -->\n\n## Other",
    )


def test_a_lost_index_is_made_again(lane: TopicLane) -> None:
    """S000-41"""
    fill(lane, 12)
    lane.store("zoo/animals", title="Z", problem="x")
    before = (lane.root / "index.md").read_text()
    (lane.root / "index.md").unlink()
    lane.reindex()
    assert (lane.root / "index.md").read_text() == before


def test_index_follows_files_made_and_removed_by_hand(lane: TopicLane) -> None:
    """S000-41"""
    fill(lane, 1)
    write(lane, "auth/by-hand", "## 2024-01-01: Mine\ntext\n---\n")
    (lane.root / "auth/oauth2.md").unlink()
    lane.store("auth/saml", title="S", problem="x")
    rows = re.findall(r"- `(\S+)\.md` - (\S+) ", (lane.root / "index.md").read_text())
    assert rows == [("by-hand", "Mine"), ("saml", "S")]


def test_an_index_that_cannot_be_written_does_not_undo_the_store(lane: TopicLane) -> None:
    lane.root.mkdir()
    (lane.root / "index.md").write_bytes(b"\xff\xfe not text")
    assert lane.store("auth/oauth2", "text").index_updated is False
    assert (lane.root / "index.md").read_bytes() == b"\xff\xfe not text"
    assert len(lane.load("auth/oauth2")) == 1


@pytest.mark.parametrize("name", ["my topic/x y", "a`b/c`d", "it's, entries/x", "a/b --> c"])
def test_names_made_by_hand_have_one_line_each(lane: TopicLane, name: str) -> None:
    write(lane, name, "## 2024-01-01: Mine <!-- note -->\ntext\n---\n")
    lane.store("zoo/animals", title="Z", problem="x")
    first = (lane.root / "index.md").read_text()
    assert first.count("\n- ") == 2
    lane.store("zoo/animals", title="Z", problem="x")
    assert (lane.root / "index.md").read_text() == first.replace(
        "entries: 1, archived: 0, newest: 2025", "entries: 2, archived: 0, newest: 2025"
    )
    (lane.root / f"{name}.md").unlink()
    lane.reindex()
    assert (lane.root / "index.md").read_text().count("\n- ") == 1


@pytest.mark.parametrize("name", [b"bad \xff.md", b"two\nlines.md"])
def test_a_name_that_no_line_can_hold_is_left_out_of_the_index(lane: TopicLane, name: bytes) -> None:
    fill(lane, 1)
    Path(os.fsdecode(os.path.join(os.fsencode(lane.root), b"auth", name))).write_text("## 2024-01-01: A\n---\n")
    assert lane.store("auth/oauth2", "text").index_updated is True
    assert (lane.root / "index.md").read_text().count("\n- ") == 1


def test_a_number_in_the_index_that_is_none_is_read_over(lane: TopicLane) -> None:
    fill(lane, 1)
    index = lane.root / "index.md"
    index.write_text(index.read_text().replace("entries: 1", "entries: " + "9" * 5000))
    assert lane.store("auth/oauth2", "text").index_updated is True


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_reindex_says_when_it_cannot_write(lane: TopicLane) -> None:
    fill(lane, 1)
    (lane.root / "index.md").write_text("")
    lane.root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(StorageError):
            lane.reindex()
    finally:
        lane.root.chmod(stat.S_IRWXU)


def test_reindex_of_an_index_that_is_not_text_is_an_error(lane: TopicLane) -> None:
    fill(lane, 1)
    (lane.root / "index.md").write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError):
        lane.reindex()


# -- search


@pytest.mark.parametrize("query", [None, 5, b"x"])
def test_a_query_that_is_not_text_is_refused(lane: TopicLane, query: Any) -> None:
    for verb in (lane.search, lane.embed, lane.load):
        with pytest.raises(InvalidInput):
            verb(query)


def test_what_is_found_has_its_id(lane: TopicLane) -> None:
    for problem in ("slow one", "slow two", "slow two"):
        lane.store("a/b", title="T", problem=problem)
    ids = {memory.id for memory in scan(lane) if isinstance(memory, Memory)}
    for found in (lane.search("slow"), lane.load("a/b"), lane.embed("slow").entries):
        assert {entry.id for entry in found} == ids
        for entry in found:
            assert lane.fetch(entry.id.partition(":")[2]).text == entry.text
            assert entry.to_dict()["id"] == entry.id
    lane.drop("a/b/2025-01-10-t")
    assert [entry.id for entry in lane.load("a/b")] == ["topics:a/b/2025-01-10-t-3", "topics:a/b/2025-01-10-t-2"]


def test_what_is_archived_has_no_id(lane: TopicLane) -> None:
    fill(lane, 11)
    found = {entry.title: entry.to_dict()["id"] for entry in lane.search("problem", 20, include_archive=True)}
    assert found["Entry 0"] is None
    assert found["Entry 1"] == "topics:auth/oauth2/2025-01-10-entry-1"


def test_more_keywords_rank_higher(lane: TopicLane) -> None:
    """S000-44, S000-48"""
    lane.store("a/one", title="Both", problem="refresh the session")
    lane.store("a/two", title="One", problem="refresh the page")
    assert [(entry.title, entry.score) for entry in lane.search("refresh session")] == [("Both", 7.0), ("One", 4.0)]


def test_a_named_topic_ranks_higher(lane: TopicLane) -> None:
    """S000-45"""
    lane.store("auth/oauth2", title="There", problem="slow start")
    lane.store("build/cache", title="Elsewhere", problem="slow start")
    assert [(entry.title, entry.score) for entry in lane.search("auth slow")] == [("There", 6.0), ("Elsewhere", 4.0)]


def test_newer_ranks_higher(lane: TopicLane) -> None:
    """S000-46"""
    lane.store("a/b", title="New", problem="slow start", date="2025-01-09")
    lane.store("a/b", title="Old", problem="slow start", date="2024-01-09")
    assert [entry.title for entry in lane.search("slow")] == ["New", "Old"]


def test_the_same_context_ranks_higher(lane: TopicLane) -> None:
    """S000-47"""
    lane.store("a/b", title="That", context="PRB-042", problem="slow start")
    lane.store("a/b", title="Other", context="PRB-043", problem="slow start")
    found = [(entry.title, entry.score) for entry in lane.search("PRB-042 slow")]
    assert found == [("That", 12.0), ("Other", 4.0)]


def test_five_loads_count_one(lane: TopicLane) -> None:
    lane.store("a/b", title="T", problem="slow start")
    for _ in range(5):
        lane.load("a/b")
    assert [entry.score for entry in lane.search("slow")] == [5.0]


def test_results_are_sorted_and_limited(lane: TopicLane) -> None:
    """S000-48"""
    for number in range(6):
        lane.store(
            f"a/n{number}", title=f"T{number}", problem="slow " + " ".join(["start", "cold", "disk"][: number % 4])
        )
    scores = [entry.score for entry in lane.search("slow start cold disk", limit=4)]
    assert (scores, sorted(scores, reverse=True)) == ([13.0, 10.0, 7.0, 7.0], scores)


def test_nothing_found_is_an_empty_list(lane: TopicLane) -> None:
    """S000-49"""
    assert lane.search("anything") == []
    lane.store("a/b", "text")
    assert lane.search("elephant") == []
    assert lane.search("") == []


def test_archived_entries_are_found_only_on_demand(lane: TopicLane) -> None:
    """S000-50"""
    fill(lane, 12)
    assert len(lane.search("problem", limit=50)) == 10
    found = lane.search("problem", limit=50, include_archive=True)
    assert [entry.title for entry in found[-2:]] == ["Entry 1", "Entry 0"]
    assert {(entry.topic, entry.subtopic) for entry in found} == {("auth", "oauth2")}
    assert lane.load("archive/auth") == []
    assert [entry.title for entry in lane.load("auth/oauth2")] == [f"Entry {number}" for number in range(11, 1, -1)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"cold start"', ["Phrase"]),
        ("context:prb-1", ["Phrase"]),
        ("topic:other", ["Words"]),
        ("tag:other slow", ["Words"]),
        ("type:fix", []),
        ("SLOW", ["Phrase", "Words"]),
        ("start cold", ["Phrase", "Words"]),
        ("ow", []),
    ],
)
def test_query_language(lane: TopicLane, query: str, found: list[str]) -> None:
    lane.store("a/b", title="Phrase", context="PRB-1", problem="slow\ncold  start")
    lane.store("other/b", title="Words", problem="slow start when cold", date="2024-01-01")
    assert [entry.title for entry in lane.search(query)] == found


def test_search_in_scripts_without_spaces(lane: TopicLane) -> None:
    lane.store("a/b", title="認証", problem="更新時刻のずれで認証に失敗する")
    assert len(lane.search("失敗")) == 1


def test_search_and_embed_write_nothing(lane: TopicLane) -> None:
    fill(lane, 12)
    before = {path: path.stat().st_mtime_ns for path in lane.root.rglob("*")}
    lane.search("problem", include_archive=True)
    lane.embed("auth/oauth2")
    assert {path: path.stat().st_mtime_ns for path in lane.root.rglob("*")} == before


# -- load


def test_load_returns_entries_in_file_order(lane: TopicLane) -> None:
    """S000-51"""
    lane.store("a/b", title="A", problem="p1")
    lane.store("a/b", title="B", context="PRB-1", problem="p2", solution="s2", code="c2")
    assert lane.load("a/b") == [
        Entry("2025-01-10", "B", (("Context", "PRB-1"), ("Problem", "p2"), ("Solution", "s2"), ("Code", "c2"))),
        Entry("2025-01-10", "A", (("Context", "ad-hoc"), ("Problem", "p1"))),
    ]


def test_load_counts_the_access(lane: TopicLane, clock: Clock) -> None:
    """S000-52"""
    lane.store("a/b", "text")
    lane.load("a/b")
    clock.advance(minutes=1)
    lane.load("a/b")
    stats = json.loads((lane.root / ".stats.json").read_text())
    assert stats == {"a/b": {"count": 2, "last_access": "2025-01-10T14:31:22Z"}}


def test_an_unchanged_file_comes_from_the_cache(lane: TopicLane) -> None:
    """S000-53"""
    lane.store("a/b", "text")
    first, second = lane.load("a/b"), lane.load("a/b")
    assert first[0] is second[0]


@pytest.mark.parametrize("settled", [False, True])
def test_a_changed_file_is_read_again(lane: TopicLane, settled: bool) -> None:
    """S000-53"""
    path = lane.store("a/b", "text").path
    if settled:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert lane.load("a/b")[0].problem == "text"
    path.write_text(path.read_text().replace("Problem:** text", "Problem:** next"))
    assert lane.load("a/b")[0].problem == "next"


def test_statistics_leave_the_topic_file_alone(lane: TopicLane) -> None:
    """S000-54"""
    path = lane.store("a/b", "text").path
    before = path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns
    lane.load("a/b")
    assert (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "damage",
    [
        "not json",
        "[]",
        '{"a/b": 5}',
        '{"a/b": {"count": "many"}}',
        "[" * 200_000,
        '{"a/b": {"count": 1' + "0" * 400 + "}}",
    ],
    ids=range(6),
)
def test_damaged_statistics_start_anew(lane: TopicLane, damage: str) -> None:
    """S000-52"""
    lane.store("a/b", "text")
    (lane.root / ".stats.json").write_text(damage)
    assert len(lane.search("text")) == 1
    lane.load("a/b")
    assert json.loads((lane.root / ".stats.json").read_text())["a/b"]["count"] == 1


@pytest.mark.parametrize("topic", ["never/stored", "never"])
def test_an_unknown_topic_is_empty(lane: TopicLane, topic: str) -> None:
    """S000-55"""
    assert lane.load(topic) == []
    assert not lane.root.exists()


def test_a_file_that_is_not_text_is_an_error(lane: TopicLane) -> None:
    lane.store("a/b", "text").path.write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError):
        lane.load("a/b")
    with pytest.raises(StorageError):
        lane.store("a/b", "more")


# -- embedding


def test_two_or_three_entries_are_embedded(lane: TopicLane) -> None:
    """S000-56"""
    fill(lane, 2)
    assert [entry.title for entry in lane.embed("auth/oauth2").entries] == ["Entry 1", "Entry 0"]
    fill(lane, 6)
    assert [entry.title for entry in lane.embed("auth/oauth2").entries] == ["Entry 5", "Entry 4", "Entry 3"]


def test_two_are_embedded_even_when_the_best_fills_the_block(lane: TopicLane) -> None:
    """S000-56, S000-57"""
    fill(lane, 2)
    lane.store("auth/oauth2", title="Long", problem="x" * 3900)
    assert [entry.title for entry in lane.embed("auth/oauth2").entries] == ["Entry 1", "Entry 0"]


@pytest.mark.parametrize("size", [10, 900, 1300, 1900, 3800, 9000])
@pytest.mark.parametrize("estimator", [None, lambda text: len(text.split()) * 40])
def test_embedding_stays_below_its_limit(tmp_path: Path, clock: Clock, size: int, estimator: Any) -> None:
    """S000-57"""
    options = {"estimator": estimator} if estimator else {}
    lane = TopicLane(tmp_path / "memory", clock=clock, **options)
    fill(lane, 4, solution="x" * size)
    block = lane.embed("auth")
    assert block.tokens == lane.estimator(block) <= 1000
    assert str(block).count("## 2025") == len(block.entries)


def test_topic_match_then_recency(lane: TopicLane) -> None:
    """S000-58"""
    lane.store("auth/oauth2", title="Old", problem="auth auth refresh", date="2020-01-01")
    lane.store("auth/oauth2", title="New", problem="anything", date="2024-01-01")
    lane.store("build/cache", title="Other", problem="auth refresh", date="2025-01-10")
    assert [entry.title for entry in lane.embed("auth").entries] == ["New", "Old", "Other"]


def test_embedded_text_is_whole_and_has_its_source(lane: TopicLane) -> None:
    """S000-59"""
    lane.store("auth/oauth2", title="One", problem="P", code="x = 1\ny = 2")
    lane.store("auth/saml", title="Two", problem="Q")
    assert lane.embed("[MEMORY_SEARCH:auth/oauth2]") == (
        "**Source:** memory/auth/oauth2.md\n"
        "## 2025-01-10: One\n**Context:** ad-hoc\n**Problem:** P\n**Code:**\n```\nx = 1\ny = 2\n```\n---\n"
        "\n"
        "**Source:** memory/auth/saml.md\n"
        "## 2025-01-10: Two\n**Context:** ad-hoc\n**Problem:** Q\n---\n"
    )


def test_nothing_relevant_is_an_empty_block(lane: TopicLane) -> None:
    """S000-59: no placeholder is left."""
    assert (lane.embed("[MEMORY_SEARCH:auth]"), lane.embed("auth").entries) == ("", ())


# -- the bank's verbs


def test_an_entry_as_a_memory(lane: TopicLane) -> None:
    draft = Draft(
        "Clock drift",
        title="Refresh fails",
        tags=("auth", "clock"),
        thread="s1",
        type="fix",
        fields={"topic": "auth", "subtopic": "oauth2", "solution": "Refresh early", "results": "None since"},
    )
    memory = lane.put(draft)
    assert memory.to_dict() | {"path": "", "suspicious": []} == {
        "id": "topics:auth/oauth2/2025-01-10-refresh-fails",
        "lane": "topics",
        "title": "Refresh fails",
        "text": "**Context:** ad-hoc\n**Problem:** Clock drift\n**Solution:** Refresh early\n**Results:** None since",
        "tags": ["auth", "oauth2", "clock"],
        "type": "fix",
        "status": None,
        "scope": "auth/oauth2",
        "project": None,
        "thread": "s1",
        "created_at": "2025-01-10T00:00:00Z",
        "updated_at": None,
        "path": "",
        "suspicious": [],
        "fields": {
            "topic": "auth",
            "subtopic": "oauth2",
            "date": "2025-01-10",
            "context": "ad-hoc",
            "problem": "Clock drift",
            "solution": "Refresh early",
            "labels": {"Results": "None since"},
        },
    }
    assert lane.fetch(memory.native_id) == memory


def test_a_memorys_text_can_be_put_again(lane: TopicLane) -> None:
    fields = {"topic": "a/b", "code": "x\n---\n", "solution": "**Note:** one\n---\n## 2020-01-01: two", "results": "r"}
    first = lane.put(Draft("problem", title="T", fields=fields))
    again = lane.put(Draft(first.text, title="T", fields={**first.fields, "subtopic": "c"}))
    assert again.text == lane.put(Draft(first.text, title="T", fields={"topic": "a/d"})).text == first.text
    assert {**again.fields, "subtopic": "b"} == first.fields


def test_ids_of_namesakes_never_change(lane: TopicLane) -> None:
    """A new entry, a prune and a deletion leave the ids of all others alone."""
    seen: dict[str, str] = {}
    for number in range(14):
        memory = lane.put(Draft(f"text {number}", title="Same title", fields={"topic": "a/b"}))
        seen[memory.id] = memory.text
        if number in (3, 6):
            lane.drop(list(seen)[number - 2].partition(":")[2])
        now = {memory.id: memory.text for memory in scan(lane) if isinstance(memory, Memory)}
        assert now.items() <= seen.items()
    assert list(seen) == [f"topics:a/b/2025-01-10-same-title{f'-{n}' if n > 1 else ''}" for n in range(1, 15)]


def test_a_title_that_ends_in_a_number_keeps_its_own_id(lane: TopicLane) -> None:
    for title in ("Same", "Same", "Same 2", "Same"):
        lane.store("a/b", title=title, problem="x")
    ids = [memory.native_id for memory in scan(lane) if isinstance(memory, Memory)]
    assert ids[::-1] == [f"a/b/2025-01-10-same{tail}" for tail in ("", "-2", "-2-2", "-3")]


def test_files_too_deep_are_a_problem(lane: TopicLane) -> None:
    write(lane, "a/b/c", "## 2024-01-01: A\n---\n")
    write(lane, "README", "not a topic")
    assert [item.why for item in scan(lane) if isinstance(item, Problem)] == [
        "lies too deep and is not read; topic files are <topic>/<sub-topic>.md"
    ]


def test_a_file_in_no_topic_is_a_problem(lane: TopicLane) -> None:
    fill(lane, 1)
    loose = write(lane, "loose", "## 2024-01-01: A\n---\n")
    assert [item for item in scan(lane) if isinstance(item, Problem)] == [
        Problem(loose, "lies in no topic and is not read; topic files are <topic>/<sub-topic>.md")
    ]


CONFLICT = """\
# Title

<<<<<<< HEAD
## 2025-01-02: Ours
**Problem:** x
---
=======
## 2025-01-01: Theirs
**Problem:** y
---
>>>>>>> branch

## 2024-01-01: Old
**Problem:** z
---
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_unresolved_merge_is_a_problem_and_can_be_read(lane: TopicLane, newline: str) -> None:
    path = write(lane, "a/b", CONFLICT.replace("\n", newline))
    problem, *memories = scan(lane)
    assert problem == Problem(path, "has merge-conflict markers; resolve the conflict in an editor", 3)
    assert [memory.title for memory in memories if isinstance(memory, Memory)] == ["Ours", "Theirs", "Old"]


def test_nothing_is_written_into_an_unresolved_merge(lane: TopicLane) -> None:
    lane.store("a/b", title="Deleted", problem="x")
    lane.drop("a/b/2025-01-10-deleted")
    write(lane, "a/b", CONFLICT)
    before = tree(lane.root)
    for attempt in (
        lambda: lane.store("a/b", "text"),
        lambda: lane.extend("a/b/2025-01-02-ours", "more"),
        lambda: lane.drop("a/b/2025-01-02-ours"),
        lambda: lane.recover("a/b/2025-01-10-deleted"),
    ):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert (str(caught.value), "Resolve" in caught.value.hint) == (
            "b.md has merge-conflict markers (line 3).",
            True,
        )
    assert tree(lane.root) == before


def test_an_entry_may_speak_of_conflicts(lane: TopicLane) -> None:
    text = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch"
    for _ in range(2):
        entry = lane.store("a/b", title="T", problem=text, solution=f"Look for:\n{text}", code=text).entry
    assert (entry.problem, entry.solution, entry.code) == (text, f"Look for:\n{text}", text)
    write(lane, "a/c", "## 2025-01-01: A\nHeading\n=======\n---\n")
    assert not [item for item in scan(lane) if isinstance(item, Problem)]


def test_revise_changes_one_entry_and_no_other_byte(lane: TopicLane) -> None:
    path = write(lane, "auth/oauth2", HAND_WRITTEN)
    native = "auth/oauth2/2024-12-01-colon-outside"
    lane.revise(native, {"solution": "Forward all of it"})
    start = HAND_WRITTEN.index("## 2024-12-01")
    end = HAND_WRITTEN.index("\n## 2024-11-30")
    assert path.read_text() == (
        HAND_WRITTEN[:start]
        + "## 2024-12-01: Colon outside\n**Context:** PRB-007\n**Problem:** Redirects loop\n"
        + "**Key Insights:** The proxy drops a header.\n**Solution:** Forward all of it\n---\n"
        + HAND_WRITTEN[end:]
    )


def test_revise_of_text_keeps_context_tags_and_thread(lane: TopicLane) -> None:
    draft = Draft(
        "old", tags=("clock",), thread="s1", fields={"topic": "a/b", "context": "PRB-1", "solution": "old too"}
    )
    memory = lane.revise(lane.put(draft).native_id, {"text": "new"})
    assert (memory.text, memory.tags, memory.thread) == (
        "**Context:** PRB-1\n**Problem:** new",
        ("a", "b", "clock"),
        "s1",
    )


def test_revise_sets_and_removes_fields(lane: TopicLane) -> None:
    native = lane.put(Draft("p", title="T", fields={"topic": "a/b", "code": "c"})).native_id
    memory = lane.revise(native, {"solution": "s", "code": None, "tags": ("x",), "title": "New", "date": "2024-01-01"})
    assert (memory.id, memory.text) == (
        "topics:a/b/2024-01-01-new",
        "**Context:** ad-hoc\n**Problem:** p\n**Solution:** s",
    )
    assert memory.tags == ("a", "b", "x")


def test_revise_without_a_change_writes_nothing(lane: TopicLane) -> None:
    path = write(lane, "auth/oauth2", HAND_WRITTEN)
    before = path.stat().st_ino
    lane.revise("auth/oauth2/2024-12-01-colon-outside", {"solution": "Forward it"})
    assert path.stat().st_ino == before


def test_a_topic_is_not_a_field_to_revise(lane: TopicLane) -> None:
    native = lane.put(Draft("p", fields={"topic": "a/b"})).native_id
    with pytest.raises(InvalidInput):
        lane.revise(native, {"topic": "c/d"})


def test_text_after_code_becomes_a_note(lane: TopicLane) -> None:
    native = lane.put(Draft("p", thread="s1", fields={"topic": "a/b", "code": "c"})).native_id
    assert lane.extend(native, "more").text.endswith("**Code:**\n```\nc\n```\n**Note:** more")


@pytest.mark.parametrize("number", range(4))
def test_a_deleted_entry_comes_back_with_its_id(lane: TopicLane, number: int) -> None:
    """At the place of its date; the ids of all others stay what they were."""
    fill(lane, 2, date="2024-01-01")
    lane.store("auth/oauth2", title="Entry 0", problem="twin", date="2024-01-01")
    fill(lane, 1)
    before = list(scan(lane))
    index = (lane.root / "index.md").read_text()
    removed = lane.drop(before[number].native_id)
    assert removed.path.parent == lane.root / ".trash/auth/oauth2"
    assert [memory for memory in before if memory.id != removed.id] == list(scan(lane))
    assert lane.recover(before[number].native_id) == before[number]
    assert sorted(scan(lane), key=lambda memory: memory.id) == sorted(before, key=lambda memory: memory.id)
    assert [memory.fields["date"] for memory in scan(lane)] == ["2025-01-10", *["2024-01-01"] * 3]
    assert (lane.root / "index.md").read_text() == index
    assert list(lane.removed()) == []


def test_a_deleted_entry_comes_back_below_its_namesake(lane: TopicLane) -> None:
    """The file is not in the order of the dates: the place by date would swap the two ids."""
    lane.store("a/b", title="A", problem="ONE", date="2025-01-01")
    lane.store("a/b", title="A", problem="TWO", date="2025-01-01")
    lane.store("a/b", title="B", problem="x", date="2024-01-01")
    before = texts(lane)
    lane.drop("a/b/2025-01-01-a")
    assert lane.recover("a/b/2025-01-01-a").native_id == "a/b/2025-01-01-a"
    assert texts(lane) == before


def test_one_of_two_equal_entries_is_deleted_and_comes_back(lane: TopicLane) -> None:
    for _ in range(3):
        lane.store("a/b", title="A", problem="Same")
    before = texts(lane)
    for native in before:
        lane.drop(native)
        assert texts(lane) == {name: text for name, text in before.items() if name != native}
        lane.recover(native)
        assert texts(lane) == before


def test_a_kill_within_a_deletion_leaves_the_entry_and_its_id(lane: TopicLane) -> None:
    """The trash is written first."""
    fill(lane, 2)
    old = main_file(lane)
    before = texts(lane)
    lane.drop("auth/oauth2/2025-01-10-entry-0")
    write(lane, "auth/oauth2", old)
    assert texts(lane) == before


STORED = st.tuples(
    st.sampled_from(["2025-01-01", "2024-01-01"]), st.sampled_from(["A", "A 2", "B"]), st.sampled_from("xyz")
)


@settings(max_examples=60)
@given(stored=st.lists(STORED, min_size=1, max_size=9), number=st.integers(0, 8), again=st.integers(0, 8))
def test_a_deletion_and_its_recovery_leave_every_id(
    stored: list[tuple[str, str, str]],
    number: int,
    again: int,
    tmp_path_factory: pytest.TempPathFactory,
    clock: Clock,
) -> None:
    """Ids mean the same text before, between and after, also with a second entry deleted meanwhile."""
    lane = TopicLane(tmp_path_factory.mktemp("bank"), clock=clock)
    for when, title, problem in stored:
        lane.store("a/b", title=title, problem=problem, date=when)
    before = texts(lane)
    natives = list(before)
    gone = list(dict.fromkeys((natives[number % len(natives)], natives[again % len(natives)])))
    for native in gone:
        lane.drop(native)
    assert texts(lane) == {name: text for name, text in before.items() if name not in gone}
    for native in gone:
        assert lane.recover(native).native_id == native
    assert texts(lane) == before


def test_a_deleted_entry_is_put_back_to_the_byte(lane: TopicLane) -> None:
    for year in (2022, 2023, 2024):
        lane.store("a/b", title="T", problem="x", date=f"{year}-01-01")
    before = main_file(lane, "a/b")
    for year in (2022, 2023, 2024):
        lane.drop(f"a/b/{year}-01-01-t")
        lane.recover(f"a/b/{year}-01-01-t")
        assert main_file(lane, "a/b") == before


def test_the_last_entry_can_be_deleted_and_recovered(lane: TopicLane) -> None:
    memory = lane.put(Draft("only", title="T", fields={"topic": "a/b"}))
    lane.drop(memory.native_id)
    assert main_file(lane, "a/b") == ""
    assert "`b.md` -  <!-- a/b, entries: 0, archived: 0, newest: - -->" in (lane.root / "index.md").read_text()
    assert lane.recover(memory.native_id) == memory


def test_recovering_what_is_there_changes_nothing(lane: TopicLane) -> None:
    memory = lane.put(Draft("only", title="T", fields={"topic": "a/b"}))
    text = main_file(lane, "a/b")
    lane.drop(memory.native_id)
    (lane.root / "a/b.md").write_text(text)
    before = tree(lane.root)
    with pytest.raises(AlreadyExists):
        lane.recover(memory.native_id)
    assert tree(lane.root) == before


@pytest.mark.parametrize("native", ["a/b", "a/b/c/d", "a/b/2025-01-10-nothing", "x/y/2025-01-10-t"])
def test_unknown_ids_are_not_found(lane: TopicLane, native: str) -> None:
    lane.store("a/b", title="T", problem="x")
    for verb in (lane.fetch, lane.drop, lane.recover, lambda name: lane.extend(name, "more")):
        with pytest.raises(NotFound):
            verb(native)


def test_an_archived_id_says_where_the_entry_is(lane: TopicLane) -> None:
    fill(lane, 11)
    for _ in range(12):
        lane.store("auth/oauth2", title="Same", problem="x")
    for tail in ("entry-0", "same", "same-2"):
        for verb in (lane.fetch, lane.drop, lambda name: lane.extend(name, "more")):
            with pytest.raises(NotFound) as caught:
                verb(f"auth/oauth2/2025-01-10-{tail}")
            assert "archived" in str(caught.value)
            assert str(lane.root / "archive/auth/2025.md") in caught.value.hint
    for native in ("auth/oauth2/2025-01-10-same-13", "auth/saml/2025-01-10-entry-0"):
        with pytest.raises(NotFound) as caught:
            lane.fetch(native)
        assert "archived" not in str(caught.value)


# -- the command line


def test_the_verbs_print_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> str:
        found = CliRunner().invoke(app, args, catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    run("init")
    id = run("topics", "store", "auth/oauth2", "--title", "Refresh", "--problem", "It fails.").strip()
    assert json.loads(run("get", id, "--json"))["id"] == id
    assert run("topics", "search", "refresh").split("\t")[0] == id
    loaded = run("topics", "load", "auth/oauth2")
    assert loaded == f"<!-- {id} -->\n{Bank.open(tmp_path).topics.load('auth/oauth2')[0].raw}"
    stored = json.loads(run("topics", "store", "auth/oauth2", "--title", "Refresh", "--problem", "Again.", "--json"))
    assert stored["entry"]["id"] == f"{id}-2"
    for args in (("search", "refresh"), ("load", "auth/oauth2")):
        assert {entry["id"] for entry in json.loads(run("topics", *args, "--json"))} == {id, f"{id}-2"}
    run("topics", "reindex")
    for found in (id, f"{id}-2"):
        run("rm", found)
    assert run("topics", "load", "auth/oauth2") == ""


@pytest.mark.parametrize("verb", [("store", "a/b", "text"), ("reindex",)])
def test_the_verbs_fail_with_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = Bank.init(tmp_path)
    write(bank.topics, "a/b", CONFLICT)
    write(bank.topics, "index", "")
    (bank.topics.root / "index.md").write_bytes(b"\xff")
    monkeypatch.setattr(sys, "argv", ["memlane", "topics", *verb])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1


# -- many at once, and kill -9

STORES = """
    import sys
    from memlane import TopicLane
    lane = TopicLane(sys.argv[1])
    for number in range(int(sys.argv[3])):
        lane.store(f"area/part{number % 2}", title=f"Entry {sys.argv[2]} {number}", problem="some text")
        print(f"{sys.argv[2]} {number}", flush=True)
"""


def spawn(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(STORES), str(root), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def entry_titles(root: Path) -> Counter[str]:
    found = everything(root)
    return Counter({parse(raw).title.removeprefix("Entry "): count for raw, count in found.items()})


def test_four_processes_lose_nothing(tmp_path: Path) -> None:
    running = [spawn(tmp_path / "memory", str(number), 60) for number in range(4)]
    outcomes = [(process.communicate()[1], process.returncode) for process in running]
    assert outcomes == [("", 0)] * 4
    assert entry_titles(tmp_path / "memory") == Counter(f"{n} {m}" for n in range(4) for m in range(60))
    index = (tmp_path / "memory/index.md").read_text()
    assert re.findall(r"entries: (\d+), archived: (\d+)", index) == [("10", "110"), ("10", "110")]


@pytest.mark.parametrize("lines", [1, 14, 33])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, lines: int) -> None:
    process = spawn(tmp_path / "memory", "x", 10_000)
    assert process.stdout
    said = [process.stdout.readline().strip() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    said += [line.strip() for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    lane = TopicLane(tmp_path / "memory")
    for part in ("area/part0", "area/part1"):
        lane.store(part, title=f"Entry after {part}", problem="some text")
    found = entry_titles(tmp_path / "memory")
    assert set(said) <= set(found)
    assert set(found.values()) == {1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_bank_can_be_read(lane: TopicLane) -> None:
    fill(lane, 2)
    lane.root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(lane.load("auth/oauth2")) == 2
    finally:
        lane.root.chmod(stat.S_IRWXU)


# -- the laws

NASTY = st.sampled_from(
    [
        "---",
        "--- ",
        "\\---",
        "## 2025-01-01: x",
        "\\## 2025-01-01",
        "  ## 2025-01-01: x",
        "# Title",
        "## Plain",
        "**Problem:** x",
        "**Note**: y",
        "\\**Note:** z",
        "**Code:** ```py",
        "### Solution",
        "\\### Solution:",
        "### Steps",
        "```",
        "```py",
        "````",
        "~~~",
        "\\```",
        "\\\\~~~",
        "   ```",
        "    ```",
        "`x`",
        "- item",
        "1. one",
        "> quote",
        "<!-- subtopic: x -->",
        "",
        " ",
        "\t",
        "text",
        "  text",
        "\\",
        "\u2028",
        "\u00a0",
        "é 認証",
    ]
)
MARKERS = st.sampled_from(["<<<<<<< HEAD", "\\<<<<<<< HEAD", "=======", ">>>>>>> x", "<<<<<<<", "<<<<<<<<"])
LINES = st.lists(
    NASTY | MARKERS | st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12), max_size=8
)
VALUES = LINES.map("\n".join)
PLAIN = VALUES.map(lambda value: value.replace("\r\n", "\n").replace("\r", "\n").strip())
TITLES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).map(
    lambda text: " ".join(text.split())
)
NAMES = st.sampled_from(["Results", "Key Insights", "Note", "Größe"]) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=10
).map(lambda text: label_name(text) or "Other").filter(lambda name: name != "Code")
ENTRIES = st.builds(
    lambda day, title, content, values, extra, code: Entry(
        str(day),
        title,
        (
            *((name, value) for name, value in zip(("Context", "Problem", "Solution"), values, strict=True) if value),
            *((("Code", code),) if code.strip() else ()),
            *extra,
        ),
        content,
    ),
    st.dates(min_value=date(1000, 1, 1)),
    TITLES,
    PLAIN,
    st.tuples(PLAIN, PLAIN, PLAIN),
    st.lists(st.tuples(NAMES, PLAIN), max_size=2),
    VALUES | VALUES.map(lambda code: code.replace("\n", "\r\n")),
)


@settings(max_examples=400)
@given(entry=ENTRIES, newline=st.sampled_from(["\n", "\r\n"]))
def test_parse_undoes_render(entry: Entry, newline: str) -> None:
    """parse(render(entry)) == entry"""
    assert parse(render(entry, newline)) == entry


@settings(max_examples=200)
@given(entries=st.lists(ENTRIES, min_size=1, max_size=4))
def test_entries_do_not_run_into_each_other(entries: list[Entry]) -> None:
    """An entry says the same whatever stands above and below it."""
    document = split("# Title\n\n" + "\n".join(map(render, entries)))
    assert [parse(raw) for raw in document.raws] == entries
    assert conflict("\n".join(map(render, entries))) is None
    assert (document.head, document.tail) == ("# Title\n\n", "")


@settings(max_examples=300)
@given(lines=st.lists(NASTY | st.sampled_from(["## 2024-01-01: A", "## 2023-01-01: B", "---"]), max_size=25))
def test_the_pieces_of_any_file_add_up_to_it(lines: list[str]) -> None:
    text = "\n".join(lines)
    head, raws, tail = split(text)
    assert head + "".join(raws) + tail == text
    for raw in raws:
        assert parse(render(parse(raw))) == parse(raw)


@settings(max_examples=100)
@given(
    lines=st.lists(NASTY | st.sampled_from(["## 2024-01-01: A", "## 2023-01-01: B", "---"]), max_size=20), entry=ENTRIES
)
def test_a_store_into_any_file_keeps_every_byte(
    lines: list[str], entry: Entry, tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> None:
    lane = unguarded(tmp_path_factory.mktemp("bank"), clock)
    old = "\n".join(lines)
    write(lane, "a/b", old)
    before = split(old)
    fields = {**dict(entry.labels), "topic": "a/b"}
    lane.put(Draft(entry.content, title=entry.title or "T", fields=fields))
    assert everything(lane.root).keys() >= {raw.strip() for raw in before.raws}
    assert main_file(lane, "a/b").startswith(before.head)
    assert main_file(lane, "a/b").endswith(before.tail)


@settings(max_examples=25)
@given(entries=st.lists(ENTRIES, min_size=1, max_size=25))
def test_any_sequence_of_stores_keeps_every_entry_once(
    entries: list[Entry], tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> None:
    """S000-34, S000-38"""
    lane = unguarded(tmp_path_factory.mktemp("bank"), clock)
    stored = []
    for number, entry in enumerate(entries):
        fields = {name.lower(): value for name, value in entry.labels if name in ("Context", "Solution", "Code")}
        result = lane.store(f"a/s{number % 2}", title=entry.title or "T", problem="p", date=entry.date, **fields)
        stored.append(result.entry)
    assert everything(lane.root) == Counter(entry.raw.strip() for entry in stored)
    for name in ("a/s0", "a/s1"):
        assert len(lane.load(name)) <= 10


@given(names=st.lists(st.sampled_from(["a/b", "a/c", "a-b/x", "a.b/y", "z/a"]), max_size=8), title=TITLES)
def test_index_lines_are_read_as_written(names: list[str], title: str) -> None:
    text = ""
    expected = {}
    for number, name in enumerate(names):
        expected[name] = Listed(title, number, 0, "2025-01-10")
        text = edit_index(text, {name: expected[name]})
    assert read_index(text) == expected


def test_age_is_counted_from_the_clock(lane: TopicLane, clock: Clock) -> None:
    """S000-46"""
    lane.store("a/b", title="T", problem="slow")
    clock.advance(days=10)
    assert [round(entry.score, 4) for entry in lane.search("slow")] == [3.3679]
    assert lane.load("a/b")[0].date == str(clock.now.date() - timedelta(days=10))
