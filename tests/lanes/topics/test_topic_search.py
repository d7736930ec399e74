"""Searching topics, and embedding what was found into a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from memlane import InvalidInput, TopicLane
from memlane.core.model import Memory
from memlane.lanes import scan
from topic_samples import fill
from topic_samples import lane as lane

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


def test_what_is_archived_keeps_its_id(lane: TopicLane) -> None:
    fill(lane, 11)
    found = {entry.title: entry.to_dict()["id"] for entry in lane.search("problem", 20, include_archive=True)}
    assert found["Entry 0"] == "topics:auth/oauth2/2025-01-10-entry-0"
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


def test_embedding_stays_below_any_limit(lane: TopicLane) -> None:
    """S000-57: to the token, whatever the limit is."""
    fill(lane, 4)
    tokens = [(limit, lane.estimator(lane.embed("auth", max_tokens=limit))) for limit in range(1, 200)]
    assert [pair for pair in tokens if pair[1] > pair[0]] == []
    assert any(used == limit for limit, used in tokens)


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
