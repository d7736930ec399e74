"""Pruning: what goes to the archive, and that every entry stays somewhere exactly once."""

from __future__ import annotations

from collections import Counter

from conftest import tree
from memlane import TopicLane
from memlane.core.model import Memory
from memlane.lanes import scan
from memlane.lanes.topics.entries import archived, parse
from topic_samples import everything, fill, main_file, titles, write
from topic_samples import lane as lane


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
