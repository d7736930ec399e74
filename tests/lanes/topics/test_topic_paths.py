"""Where the topics are: the base folder, the names of topics, and links that lead out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Clock, tree
from memlane import AlreadyExists, InvalidInput, TopicLane
from memlane.core.errors import ConfigError, StorageError
from topic_samples import fill, write
from topic_samples import lane as lane


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
    assert TopicLane.resolve(tmp_path, {"memory_configuration.external_path": "~/memory"}).root == home / "memory"


def test_an_external_folder_is_created(tmp_path: Path) -> None:
    """S000-22"""
    TopicLane.resolve(tmp_path, {"memory_configuration": {"external_path": str(tmp_path / "new" / "folder")}})
    assert (tmp_path / "new" / "folder").is_dir()


@pytest.mark.parametrize("config", [None, {}, {"memory_configuration": {}}, {"memory_configuration": None}])
def test_the_default_is_memory_in_the_project(tmp_path: Path, config: Any) -> None:
    """S000-24"""
    assert TopicLane.resolve(tmp_path, config).root == tmp_path / "memory"
    assert tree(tmp_path) == {}


def test_a_configured_memory_path_is_used(tmp_path: Path) -> None:
    """S000-25"""
    assert (
        TopicLane.resolve(tmp_path, {"directory_structure": {"memory_path": "docs/memory"}}).root
        == tmp_path / "docs" / "memory"
    )


def test_a_path_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        TopicLane.resolve(tmp_path, {"memory_configuration": {"external_path": 5}})


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


@pytest.mark.parametrize("name", ["auth/oauth2", "topics:auth/oauth2", "topics:auth/oauth2/2025-01-10-late"])
def test_the_id_of_an_entry_loads_its_topic(lane: TopicLane, name: str) -> None:
    stored = lane.store("auth/oauth2", "It came too late.", title="Late", date="2025-01-10")
    assert [entry.id for entry in lane.load(name)] == [stored.entry.id]
