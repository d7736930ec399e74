"""Layers: which id lies at which path, and which names are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import tree
from layer_samples import PROFILE, REVIEWS, STAMP, entry, memories, place
from layer_samples import clock as clock
from layer_samples import store as store
from memlane.core.errors import AlreadyExists, InvalidInput
from memlane.core.model import Memory
from memlane.lanes import scan
from memlane.lanes.layers.entries import path_of
from memlane.lanes.layers.store import MemoryStore

ROWS = [
    ("S004-01", "shared-project/my-api/project_profile", "projects/my-api/project_profile.md"),
    ("S004-01", "shared-project/my-api/technology_stack", "projects/my-api/technology_stack.md"),
    ("S004-01", "shared-project/e-commerce/cross_skill_insights", "projects/e-commerce/cross_skill_insights.md"),
    (
        "S004-02",
        "skill-specific/python-code-review/my-api/project_overview",
        "skills/python-code-review/my-api/project_overview.md",
    ),
    ("S004-02", REVIEWS, "skills/python-code-review/my-api/review_history.md"),
    (
        "S004-02",
        "skill-specific/generate-python-unit-tests/my-api/testing_patterns",
        "skills/generate-python-unit-tests/my-api/testing_patterns.md",
    ),
    (
        "S004-02",
        "skill-specific/dotnet-code-review/e-commerce/known_issues",
        "skills/dotnet-code-review/e-commerce/known_issues.md",
    ),
    ("S004-03", "command/my-api/command_history", "commands/my-api/command_history.md"),
    ("S004-03", "command/my-api/analyze_insights", "commands/my-api/analyze_insights.md"),
    ("S004-04", "agent/hephaestus/forge_insights", "agents/hephaestus/forge_insights.md"),
    ("S004-04", "agent/prometheus/strategic_notes", "agents/prometheus/strategic_notes.md"),
]


@pytest.mark.parametrize(("item", "id", "path"), ROWS)
def test_an_entry_lies_at_the_path_of_its_layer(store: MemoryStore, item: str, id: str, path: str) -> None:
    """S004-01, S004-02, S004-03, S004-04, S004-07: the seed's sample rows; missing folders are made."""
    assert store.create(entry(id)) == {"id": id, "path": path, "created": True}
    assert memories(store) == {path: (STAMP + "Text\n").encode()}


@pytest.mark.parametrize(("item", "id", "path"), ROWS)
def test_an_id_leads_back_to_the_path(store: MemoryStore, item: str, id: str, path: str) -> None:
    """S004-23"""
    place(store, path, "old")
    store.update(id, "new")
    assert memories(store) == {path: (STAMP + "new").encode()}


def test_the_default_root_is_the_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S004-05"""
    monkeypatch.chdir(tmp_path)
    MemoryStore().create(entry(PROFILE))
    assert (tmp_path / "forge-plugin/memory/projects/my-api/project_profile.md").is_file()


@pytest.mark.parametrize(
    "id",
    [
        "",
        "x",
        "shared-project/my-api",
        "shared-project/a/b/c",
        "skill-specific/a/b",
        "other/a/b",
        "agent//x",
        "agent/../x",
        "agent/a/ x",
        "/agent/a/x",
        None,
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda store, given: store.update(given, "x"),
        lambda store, given: store.append(given, "x"),
        lambda store, given: store.upsert(given, "x"),
        lambda store, given: store.delete(given),
        lambda store, given: store.validate(given),
    ],
)
def test_a_malformed_id_is_an_error(store: MemoryStore, call: Callable[..., Any], id: Any) -> None:
    """S004-23"""
    with pytest.raises(InvalidInput) as caught:
        call(store, id)
    assert caught.value.code == "invalid_id"
    assert not store.root.exists()


@pytest.mark.parametrize("id", ["shared-project/p/index", "skill-specific/s/p/lifecycle", "agent/indices/x"])
@pytest.mark.parametrize(
    "call",
    [
        lambda store, given: store.create(entry(given)),
        lambda store, given: store.update(given, "x"),
        lambda store, given: store.append(given, "x"),
        lambda store, given: store.upsert(given, "x"),
        lambda store, given: store.delete(given),
        lambda store, given: store.revise(given, {"text": "x"}),
        lambda store, given: store.extend(given, "x"),
        lambda store, given: store.drop(given),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_structural_files_are_not_touched(store: MemoryStore, call: Callable[..., Any], id: str, exists: bool) -> None:
    """S004-09, S004-35: what is not a memory is not written, appended to or deleted as one."""
    if exists:
        place(store, path_of(id), "# Structure\n")
    before = tree(store.root)
    with pytest.raises(InvalidInput, match="not for memories"):
        call(store, id)
    assert tree(store.root) == before


BAD_NAMES = ["..", "../x", "a/b", "a\\b", "", ".hidden", "/etc", " a", "a\0b", "-x", "a~b", "x" * 300, "nul", "indices"]


@pytest.mark.parametrize("bad", BAD_NAMES)
@pytest.mark.parametrize("field", ["projectName", "skillName", "fileType", "agentName"])
def test_bad_names_are_refused(store: MemoryStore, field: str, bad: str) -> None:
    """S004-60: nothing is written, inside or outside the root."""
    given = entry("agent/a/x") if field == "agentName" else entry("skill-specific/s/p/x")
    with pytest.raises(InvalidInput):
        store.create({**given, field: bad})
    assert tree(store.root.parent) == {}


def test_a_link_out_of_the_store_is_not_followed(store: MemoryStore, tmp_path: Path) -> None:
    """S004-60"""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    place(store, "projects/other/x.md", "x")
    (store.root / "projects/my-api").symlink_to(outside)
    for call in (
        lambda: store.create(entry(PROFILE)),
        lambda: store.update("shared-project/my-api/secret", "x"),
        lambda: store.read("shared-project", "my-api", "secret"),
        lambda: store.get_shared_project_memory("my-api"),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert store.search("secret") == {"matches": []}
    assert tree(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize("name", ["My Project", "проект", "日本語", "café", "App (v2)", "C++ & Rust"])
def test_a_project_may_be_called_what_its_folder_or_repository_is_called(store: MemoryStore, name: str) -> None:
    id = f"skill-specific/review/{name}/known issues"
    store.create(entry("skill-specific/review/p/x") | {"projectName": name, "fileType": "known issues"})
    found = store.get_skill_memory("review", name)
    assert [(item.id, item.project_name, item.file_type) for item in found] == [(id, name, "known issues")]
    assert store.append(id, "More.")["id"] == id
    assert [item.id for item in scan(store) if isinstance(item, Memory)] == [f"layers:{id}"]
    assert [match["id"] for match in store.search("More", project_name=name)["matches"]] == [id]


def test_two_spellings_of_one_name_are_one_name(store: MemoryStore) -> None:
    """Composed and decomposed letters, which some file systems cannot tell apart."""
    store.create(entry("shared-project/p/x") | {"projectName": "cafe\u0301"})
    assert [path.name for path in (store.root / "projects").iterdir()] == ["caf\u00e9"]
    with pytest.raises(AlreadyExists):
        store.create(entry("shared-project/p/x") | {"projectName": "Caf\u00e9"})
