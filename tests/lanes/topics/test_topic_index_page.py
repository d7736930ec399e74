"""index.md: what memlane writes into it and what people do."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from conftest import Clock
from memlane import TopicLane
from memlane.core.errors import StorageError
from topic_samples import fill, write
from topic_samples import lane as lane


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
