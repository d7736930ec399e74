"""Entries of seed 000: how they are stored, ordered, and read from files written by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock, tree
from memlane import InvalidInput, Problem, TopicLane
from memlane.core.model import Draft
from memlane.lanes import scan
from topic_samples import HAND_WRITTEN, fill, main_file, titles, write
from topic_samples import lane as lane

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
    for store in lanes:
        write(store, "kept/by-hand", HAND_WRITTEN)
        fill(store, 12)
        fill(store, 7, "auth/saml", code="x" * 900)
        store.load("auth/saml")
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
