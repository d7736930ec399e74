"""Loading a topic: order, cache, and the statistics of use."""

from __future__ import annotations

import json
import os

import pytest

from conftest import Clock
from memlane import TopicLane
from memlane.core.errors import StorageError
from memlane.lanes.topics.entries import Entry
from topic_samples import lane as lane


def test_load_returns_entries_in_file_order(lane: TopicLane) -> None:
    """S000-51"""
    lane.store("a/b", title="A", problem="p1")
    lane.store("a/b", title="B", context="PRB-1", problem="p2", solution="s2", code="c2")
    assert lane.load("a/b") == [
        Entry("2025-01-10", "B", (("Context", "PRB-1"), ("Problem", "p2"), ("Solution", "s2"), ("Code", "c2"))),
        Entry("2025-01-10", "A", (("Context", "ad-hoc"), ("Problem", "p1"))),
    ]


def test_a_topic_alone_stands_for_all_its_files(lane: TopicLane) -> None:
    """S000-51, S000-52: each sub-topic in the order of its file; the archive is none of them."""
    for name in ("auth/sso", "auth", "authors/x", "auth/oauth2"):
        lane.store(name, title=name.replace("/", " "), problem="p")
    assert [entry.title for entry in lane.load("auth")] == ["auth", "auth oauth2", "auth sso"]
    assert sorted(json.loads((lane.root / ".stats.json").read_text())) == ["auth/general", "auth/oauth2", "auth/sso"]
    assert (lane.load("nothing"), lane.load("archive")) == ([], [])


def test_the_topics_and_how_much_they_hold(lane: TopicLane) -> None:
    lane.store("b/c", "text", date="2025-01-03")
    lane.store("b/c", "other text", date="2025-01-01")
    lane.store("a", "text", date="2025-01-02")
    assert lane.topics() == [
        {"topic": "a/general", "entries": 1, "newest": "2025-01-02"},
        {"topic": "b/c", "entries": 2, "newest": "2025-01-03"},
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
