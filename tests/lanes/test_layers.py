"""Layers: seed 004's verbs, paths and files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock, tree
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, Refused, StorageError
from memlane.core.model import Draft, Memory, Problem
from memlane.disk import files
from memlane.gate import Guard
from memlane.lanes import scan
from memlane.lanes.layers import store as layer_store
from memlane.lanes.layers.entries import MemoryEntry, path_of
from memlane.lanes.layers.store import MemoryStore

STAMP = "<!-- Last Updated: 2026-02-10 -->\n\n"
REVIEWS = "skill-specific/python-code-review/my-api/review_history"
ISSUES = "skill-specific/python-code-review/my-api/known_issues"
COPY = ".trash/skills/python-code-review/my-api/known_issues~before-prune_20260210_090000.md"
PROFILE = "shared-project/my-api/project_profile"
OPEN = Guard(secrets="off", characters="keep")
OVERVIEW = "# Project Overview - My API\n\n## Framework\n- FastAPI 0.104"


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 2, 10, 9, 0, tzinfo=UTC))


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> MemoryStore:
    return MemoryStore(tmp_path / "memory", clock=clock)


def entry(id: str, content: str = "Text\n") -> dict[str, str]:
    """The seed's entry for an id."""
    layer, *names, file_type = id.split("/")
    keys = {
        "shared-project": ["projectName"],
        "skill-specific": ["skillName", "projectName"],
        "command": ["projectName"],
        "agent": ["agentName"],
    }[layer]
    return {"layer": layer, **dict(zip(keys, names, strict=True)), "fileType": file_type, "content": content}


def review(number: int) -> str:
    return f"## Review #{number} - 2026-01-{number:02}\n\nFound {number} issues.\n\n"


def reviews(first: int, last: int) -> str:
    return "".join(review(number) for number in range(first, last + 1))


def place(store: MemoryStore, relative: str, text: str) -> Path:
    """A file as a person or another tool left it."""
    path = store.root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def memories(store: MemoryStore) -> dict[str, bytes]:
    """All files but the side files."""
    return {name: data for name, data in tree(store.root).items() if not name.endswith(".stats.jsonl")}


def ids(entries: list[MemoryEntry]) -> list[str]:
    return [entry.id for entry in entries]


# -- paths

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
        "agent/a/x y",
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


BAD_NAMES = ["..", "../x", "a/b", "a\\b", "", ".hidden", "/etc", "a b", "a\0b", "-x", "é", "x" * 300, "nul", "indices"]


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


# -- create


def test_create_writes_the_seeds_example(store: MemoryStore) -> None:
    """S004-06: byte for byte."""
    store.create(
        {
            "layer": "skill-specific",
            "skillName": "python-code-review",
            "projectName": "my-api",
            "fileType": "project_overview",
            "content": OVERVIEW,
        }
    )
    assert (store.root / "skills/python-code-review/my-api/project_overview.md").read_bytes() == (
        b"<!-- Last Updated: 2026-02-10 -->\n\n# Project Overview - My API\n\n## Framework\n- FastAPI 0.104"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"layer": "agent", "agent_name": "a", "file_type": "x", "content": "Text"},
        MemoryEntry(layer="agent", agent_name="a", file_type="x", content="Text"),
        {"id": "agent/a/x", "layer": "agent", "agentName": "a", "projectName": "p", "fileType": "x", "content": "Text"},
        {"layer": "agent", "agentName": "a", "fileType": "x", "content": "<!-- Last Updated: 2020-01-01 -->\n\nText"},
    ],
)
def test_create_takes_an_entry_in_several_forms(store: MemoryStore, given: Any) -> None:
    """S004-06: snake_case, a MemoryEntry, with an id, with a timestamp of its own (which is replaced)."""
    assert store.create(given) == {"id": "agent/a/x", "path": "agents/a/x.md", "created": True}
    assert memories(store) == {"agents/a/x.md": (STAMP + "Text").encode()}


def test_create_does_not_replace(store: MemoryStore) -> None:
    """S004-08"""
    store.create(entry(PROFILE, "first"))
    before = tree(store.root)
    with pytest.raises(AlreadyExists):
        store.create(entry(PROFILE, "second"))
    assert tree(store.root) == before


@pytest.mark.parametrize("id", ["shared-project/my-api/Project_Profile", "shared-project/My-API/other"])
def test_create_refuses_names_that_differ_only_in_case(store: MemoryStore, id: str) -> None:
    """S004-08: on macOS and Windows they would be the same file."""
    store.create(entry(PROFILE))
    with pytest.raises(AlreadyExists):
        store.create(entry(id))


@pytest.mark.parametrize(
    "given",
    [
        {"layer": "skill-specific", "projectName": "p", "fileType": "x", "content": ""},
        {"layer": "agent", "projectName": "p", "fileType": "x", "content": ""},
        {"layer": "shared-project", "fileType": "x", "content": ""},
        {"layer": "shared-project", "projectName": "p", "content": ""},
        {"layer": "shared-project", "projectName": "p", "fileType": "x"},
        {"layer": "shared-project", "projectName": "p", "fileType": "x", "content": 5},
        {"layer": "shared-project", "projectName": "p", "fileType": "x", "content": "", "more": 1},
        {"layer": "shared-project", "projectName": "p", "fileType": "x", "content": "", "id": "agent/a/x"},
        {"layer": "shared-project", "projectName": "p", "fileType": "index", "content": ""},
        {"layer": "galaxy", "projectName": "p", "fileType": "x", "content": ""},
        {"layer": ["agent"], "projectName": "p", "fileType": "x", "content": ""},
        {"projectName": "p", "fileType": "x", "content": ""},
        "text",
    ],
)
def test_create_checks_the_entry(store: MemoryStore, given: Any) -> None:
    """S004-09"""
    with pytest.raises(InvalidInput):
        store.create(given)
    assert not store.root.exists()


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs another user to be")
def test_create_in_a_folder_that_cannot_be_read_is_an_error(store: MemoryStore) -> None:
    """S004-07"""
    store.create(entry(PROFILE))
    folder = store.root / "projects/my-api"
    code = (
        "import os, sys; from memlane import MemoryStore, StorageError; from memlane.gate import Guard\n"
        "store = MemoryStore(sys.argv[1], guard=Guard(secrets='off', characters='keep'))\n"
        "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
        "try: store.create({'layer': 'shared-project', 'projectName': 'my-api', 'fileType': 'x', 'content': ''})\n"
        "except StorageError as error: print(error.hint)\n"
    )
    with tempfile.TemporaryDirectory() as other:  # pytest's own folders are closed to other users
        os.chmod(other, 0o755)
        moved = store.root.rename(f"{other}/memory")
        (moved / folder.relative_to(store.root)).chmod(0o300)
        result = subprocess.run([sys.executable, "-c", code, str(moved)], capture_output=True, text=True)
        (moved / folder.relative_to(store.root)).chmod(0o700)
    assert (result.stderr, result.stdout) == ("", "Check the folder.\n")


# -- read


def test_reading_what_is_not_there(store: MemoryStore) -> None:
    """S004-10"""
    assert store.read("shared-project", "my-api", "project_profile") is None


def test_read_returns_the_whole_entry(store: MemoryStore, clock: Clock) -> None:
    """S004-11, S004-14"""
    store.create(entry("skill-specific/python-code-review/my-api/project_overview", OVERVIEW))
    clock.advance(days=3)
    found = store.read("skill-specific", "my-api", "project_overview", skill_name="python-code-review")
    assert found == MemoryEntry(
        id="skill-specific/python-code-review/my-api/project_overview",
        layer="skill-specific",
        project_name="my-api",
        skill_name="python-code-review",
        file_type="project_overview",
        content=OVERVIEW,
        created_at="2026-02-10",
        updated_at="2026-02-10",
        staleness="fresh",
        line_count=6,
    )


def test_an_entry_has_the_seeds_keys(store: MemoryStore) -> None:
    """S004-14: names that the layer does not use are left out, and so is the advisory."""
    place(store, "agents/zeus/notes.md", "Text\n")
    found = store.read("agent", None, "notes", agent_name="zeus")
    assert found is not None
    assert found.to_dict() == {
        "id": "agent/zeus/notes",
        "layer": "agent",
        "agentName": "zeus",
        "fileType": "notes",
        "content": "Text\n",
        "createdAt": None,
        "updatedAt": None,
        "staleness": "stale",
        "lineCount": 1,
    }
    assert found.advisory == "[POTENTIALLY STALE]"


@pytest.mark.parametrize(
    ("days", "expected"), [(0, "fresh"), (30, "fresh"), (31, "aging"), (90, "aging"), (91, "stale")]
)
def test_staleness_moves_with_the_clock(store: MemoryStore, clock: Clock, days: int, expected: str) -> None:
    """S004-12, S004-15: computed on every read, without a write."""
    store.create(entry(PROFILE))
    before = tree(store.root)
    clock.advance(days=days)
    found = store.read("shared-project", "my-api", "project_profile")
    assert found is not None
    assert (found.staleness, found.advisory) == (expected, "[POTENTIALLY STALE]" if expected == "stale" else None)
    assert tree(store.root) == before


@pytest.mark.parametrize(
    "text",
    [
        "# No date\n",
        "\n" + STAMP,
        "# Title\n" + STAMP,
        "**Last Updated**: 2026-02-10\n",
        "<!-- Last Updated: today -->\n",
        "",
    ],
)
def test_a_file_without_the_pattern_on_line_one_is_stale(store: MemoryStore, text: str) -> None:
    """S004-13: missing, elsewhere, in another form; all of the text is content then."""
    place(store, "projects/my-api/project_profile.md", text)
    found = store.read("shared-project", "my-api", "project_profile")
    assert found is not None
    assert (found.staleness, found.updated_at, found.content) == ("stale", None, text)


def test_a_file_that_is_not_text_is_an_error_with_a_next_step(store: MemoryStore) -> None:
    """S004-14"""
    place(store, "projects/my-api/project_profile.md", "x").write_bytes(b"a\n\xff")
    with pytest.raises(StorageError) as caught:
        store.read("shared-project", "my-api", "project_profile")
    assert caught.value.hint == "Mend the file, then try again."


# -- update and upsert


def test_update_of_nothing_is_an_error(store: MemoryStore) -> None:
    """S004-16"""
    with pytest.raises(NotFound):
        store.update(PROFILE, "x")
    assert not store.root.exists()


def test_update_replaces_content_and_date(store: MemoryStore, clock: Clock) -> None:
    """S004-17"""
    store.create(entry(PROFILE, "old"))
    clock.advance(days=40)
    assert store.update(PROFILE, "# New\n") == {"id": PROFILE, "updated": True, "lineCount": 3}
    assert memories(store) == {"projects/my-api/project_profile.md": b"<!-- Last Updated: 2026-03-22 -->\n\n# New\n"}


@pytest.mark.parametrize("old", ["plain\n", "\n" + STAMP + "x", STAMP + "x"])
@pytest.mark.parametrize(
    "new", ["new\n", "<!-- Last Updated: 2020-01-01 -->\n\nnew\n", "\ufeff" + STAMP + STAMP + "new\n"]
)
def test_there_is_never_a_second_timestamp(store: MemoryStore, old: str, new: str) -> None:
    """S004-18"""
    path = place(store, "projects/my-api/project_profile.md", old)
    store.update(PROFILE, new)
    assert path.read_text() == STAMP + "new\n"


@pytest.mark.parametrize(
    ("file_type", "limit", "advice"),
    [
        ("technology_stack", 500, "Split into focused sub-files"),
        ("project_overview", 200, "Move detailed sections to separate files"),
        ("review_history", 300, "Archive older entries"),
    ],
)
def test_update_warns_above_the_limit_and_writes(store: MemoryStore, file_type: str, limit: int, advice: str) -> None:
    """S004-19, S004-20, S004-21, S004-22: lines are those of the whole file."""
    id = f"shared-project/my-api/{file_type}"
    store.create(entry(id))
    assert store.update(id, "x\n" * (limit - 2)) == {"id": id, "updated": True, "lineCount": limit}
    assert store.update(id, "x\n" * (limit - 1)) == {
        "id": id,
        "updated": True,
        "lineCount": limit + 1,
        "warning": f"{limit + 1} lines, over {limit}: {advice}.",
    }
    found = store.read("shared-project", "my-api", file_type)
    assert found is not None
    assert found.content == "x\n" * (limit - 1)


def test_an_update_that_changes_nothing_writes_nothing(store: MemoryStore) -> None:
    """S004-17"""
    store.create(entry(PROFILE, "same"))
    path = store.root / "projects/my-api/project_profile.md"
    before = path.stat().st_ino
    store.update(PROFILE, "same")
    assert path.stat().st_ino == before


def test_upsert_creates_then_updates(store: MemoryStore) -> None:
    """S004-59 and R-29"""
    assert store.upsert(PROFILE, "a") == {"id": PROFILE, "path": "projects/my-api/project_profile.md", "created": True}
    assert store.upsert(PROFILE, "b") == {"id": PROFILE, "updated": True, "lineCount": 3}


@pytest.mark.parametrize("taken", ["folder", "link", "case"])
def test_upsert_under_a_name_that_is_taken_is_an_error(store: MemoryStore, taken: str) -> None:
    """S004-08"""
    folder = place(store, "projects/my-api/other.md", "x").parent
    if taken == "folder":
        (folder / "project_profile.md").mkdir()
    elif taken == "link":
        (folder / "project_profile.md").symlink_to("nowhere.md")
    else:
        (folder / "Project_Profile.md").write_text("x")
    with pytest.raises(AlreadyExists):
        store.upsert(PROFILE, "new")


@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200))
@settings(max_examples=60)
def test_content_comes_back_as_it_was_given(text: str) -> None:
    """S004-14: create, update and read keep every byte; CRLF, a byte order mark and no final newline survive."""
    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore(folder, guard=OPEN)
        store.create(entry(PROFILE, text))
        created = store.read("shared-project", "my-api", "project_profile")
        store.update(PROFILE, "other")
        store.update(PROFILE, text)
        updated = store.read("shared-project", "my-api", "project_profile")
    assert created is not None
    assert updated is not None
    assert (created.content, updated.content) == (text, text)


def test_a_byte_order_mark_and_crlf_stay(store: MemoryStore) -> None:
    """S004-17, S004-24"""
    path = place(store, "projects/my-api/project_profile.md", "\ufeff<!-- Last Updated: 2020-01-01 -->\r\n\r\nA\r\n")
    store.append(PROFILE, "B\nC")
    assert path.read_bytes().decode() == "\ufeff<!-- Last Updated: 2026-02-10 -->\r\n\r\nA\r\nB\r\nC"
    store.update(PROFILE, "D\r\n")
    assert path.read_bytes().decode() == "\ufeff<!-- Last Updated: 2026-02-10 -->\r\n\r\nD\r\n"


# -- append


def test_append_adds_at_the_end_and_refreshes_the_date(store: MemoryStore, clock: Clock) -> None:
    """S004-24: a missing final newline is added first."""
    store.create(entry(PROFILE, "# Profile\n\nOne"))
    clock.advance(days=1)
    assert store.append(PROFILE, "Two\n") == {"id": PROFILE, "appended": True, "pruned": False, "lineCount": 6}
    assert memories(store) == {
        "projects/my-api/project_profile.md": b"<!-- Last Updated: 2026-02-11 -->\n\n# Profile\n\nOne\nTwo\n"
    }


def test_append_to_nothing_is_an_error(store: MemoryStore) -> None:
    """S004-24"""
    with pytest.raises(NotFound):
        store.append(PROFILE, "x")
    assert not store.root.exists()


def test_append_prunes_by_file_type_and_says_so(store: MemoryStore) -> None:
    """S004-25"""
    store.create(entry(ISSUES, "### Old\n**Status**: Resolved (2026-01-05)\n\n"))
    assert store.append(ISSUES, "### New\n") == {
        "id": ISSUES,
        "appended": True,
        "pruned": True,
        "lineCount": 3,
        "pruneDetails": f"removed: resolved 30 or more days ago: Old (the file as it was: {COPY})",
    }


def test_append_checks_the_size(store: MemoryStore) -> None:
    """S004-26"""
    store.create(entry(PROFILE, "x\n" * 497))
    assert "warning" not in store.append(PROFILE, "x\n")
    assert store.append(PROFILE, "x\n")["warning"] == "501 lines, over 500: Split into focused sub-files."


def test_a_type_without_a_rule_is_never_pruned(store: MemoryStore) -> None:
    """S004-27"""
    id = "command/my-api/command_history"
    store.create(entry(id, reviews(1, 20)))
    assert store.append(id, review(21))["pruned"] is False
    assert memories(store) == {"commands/my-api/command_history.md": (STAMP + reviews(1, 21)).encode()}


# -- delete


def test_delete_leaves_the_folders_and_a_way_back(store: MemoryStore) -> None:
    """S004-28"""
    store.create(entry(PROFILE))
    assert store.delete(PROFILE) == {"id": PROFILE, "deleted": True}
    assert memories(store) == {".trash/projects/my-api/project_profile_20260210_090000.md": (STAMP + "Text\n").encode()}
    assert (store.root / "projects/my-api").is_dir()


def test_delete_of_nothing(store: MemoryStore) -> None:
    """S004-29"""
    assert store.delete(PROFILE) == {"id": PROFILE, "deleted": False}


# -- loading


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    for id in (
        PROFILE,
        "shared-project/my-api/technology_stack",
        "shared-project/other/project_profile",
        REVIEWS,
        ISSUES,
        "skill-specific/python-code-review/other/known_issues",
        "skill-specific/testing/my-api/testing_patterns",
        "command/my-api/command_history",
        "command/other/command_history",
        "agent/zeus/notes",
        "agent/zeus/plans",
    ):
        store.create(entry(id, f"# {id}\n"))
    for folder in (
        "projects/my-api",
        "skills/python-code-review/my-api",
        "skills/python-code-review",
        "commands/my-api",
        "agents/zeus",
        ".",
    ):
        place(store, f"{folder}/index.md", "# Index\n")
    place(store, "skills/python-code-review/my-api/review_history_archive.md", STAMP + review(1))
    place(store, "projects/my-api/readme.txt", "no memory")
    return store


def test_the_project_profile_is_one_read(filled: MemoryStore) -> None:
    """S004-30"""
    assert filled.get_project_profile("my-api") == filled.read("shared-project", "my-api", "project_profile")
    assert filled.get_project_profile("new") is None


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (lambda store: store.get_shared_project_memory("my-api"), [PROFILE, "shared-project/my-api/technology_stack"]),
        (lambda store: store.get_skill_memory("python-code-review", "my-api"), [ISSUES, REVIEWS]),
        (
            lambda store: store.get_skill_memory("python-code-review", "my-api", include_archives=True),
            [ISSUES, REVIEWS, f"{REVIEWS}_archive"],
        ),
        (lambda store: store.get_command_memory("my-api"), ["command/my-api/command_history"]),
        (lambda store: store.get_agent_memory("zeus"), ["agent/zeus/notes", "agent/zeus/plans"]),
        (lambda store: store.get_shared_project_memory("new"), []),
        (lambda store: store.get_skill_memory("python-code-review", "new"), []),
        (lambda store: store.get_skill_memory("new", "my-api"), []),
        (lambda store: store.get_command_memory("new"), []),
        (lambda store: store.get_agent_memory("new"), []),
    ],
)
def test_a_folder_is_loaded_without_index_and_archives(
    filled: MemoryStore, load: Callable[[MemoryStore], list[MemoryEntry]], expected: list[str]
) -> None:
    """S004-31, S004-32, S004-33, S004-34, S004-58 and R-32"""
    found = load(filled)
    assert (ids(found), {entry.staleness for entry in found} <= {"fresh"}) == (expected, True)


def test_a_project_over_all_layers(filled: MemoryStore) -> None:
    """S004-37"""
    found = filled.get_by_project("my-api")
    assert {**found, "shared": ids(found["shared"]), "commands": ids(found["commands"])} | {
        "skills": {skill: ids(entries) for skill, entries in found["skills"].items()}
    } == {
        "shared": [PROFILE, "shared-project/my-api/technology_stack"],
        "skills": {
            "python-code-review": [ISSUES, REVIEWS],
            "testing": ["skill-specific/testing/my-api/testing_patterns"],
        },
        "commands": ["command/my-api/command_history"],
    }


def test_a_new_project_is_empty_everywhere_and_nothing_is_written(store: MemoryStore) -> None:
    """S004-58: the first-time signal."""
    assert store.get_by_project("new") == {"shared": [], "skills": {}, "commands": []}
    assert not store.root.exists()


def test_a_damaged_file_hides_no_other(filled: MemoryStore) -> None:
    """S004-31"""
    place(filled, "projects/my-api/broken.md", "x").write_bytes(b"\xff")
    (filled.root / "projects/my-api/folder.md").mkdir()
    assert len(filled.get_shared_project_memory("my-api")) == 2


# -- reports


def test_the_staleness_report(store: MemoryStore) -> None:
    """S004-35, S004-36: recursive, by first lines, without the structural files."""
    for name in ("index", "lifecycle", "quality_guidance"):
        place(store, f"{name}.md", "# Structure\n")
        place(store, f"skills/review/{name}.md", "# Structure\n")
    place(store, "projects/a/fresh.md", STAMP)
    place(store, "skills/review/a/aging.md", "<!-- Last Updated: 2025-12-01 -->\n")
    place(store, "agents/zeus/stale.md", "<!-- Last Updated: 2025-11-01 -->\n")
    place(store, "commands/a/undated.md", "# None\n")
    place(store, "commands/a/broken.md", "").write_bytes(STAMP.encode() + b"\xff\xfe\x00")

    def row(id: str, path: str, updated: str | None, days: int | None) -> dict[str, Any]:
        return {"id": id, "path": path, "updatedAt": updated, "daysSinceUpdate": days}

    assert store.get_staleness_report() == {
        "fresh": [
            row("command/a/broken", "commands/a/broken.md", "2026-02-10", 0),
            row("shared-project/a/fresh", "projects/a/fresh.md", "2026-02-10", 0),
        ],
        "aging": [row("skill-specific/review/a/aging", "skills/review/a/aging.md", "2025-12-01", 71)],
        "stale": [
            row("agent/zeus/stale", "agents/zeus/stale.md", "2025-11-01", 101),
            row("command/a/undated", "commands/a/undated.md", None, None),
        ],
    }


@pytest.mark.parametrize(
    "text", [STAMP, STAMP.replace("\n", "\r\n"), "\ufeff" + STAMP, STAMP.strip(), "# None\r\n", ""]
)
def test_the_staleness_report_says_what_read_says(store: MemoryStore, text: str) -> None:
    """S004-35: whatever the line ends are."""
    place(store, "projects/my-api/project_profile.md", text)
    found = store.read("shared-project", "my-api", "project_profile")
    assert found is not None
    assert [row["updatedAt"] for row in store.get_staleness_report()[found.staleness]] == [found.updated_at]


def test_search_shows_two_lines_around(store: MemoryStore) -> None:
    """S004-38: fewer at the ends of the file; line numbers are the file's."""
    place(store, "projects/a/x.md", "needle\n2\n3\n4\nneedle 5\n6\n7\n8\n")
    rest = {"id": "shared-project/a/x", "path": "projects/a/x.md"}
    assert store.search("needle") == {
        "matches": [
            {**rest, "lineNumber": 1, "lineContent": "needle", "context": "needle\n2\n3"},
            {**rest, "lineNumber": 5, "lineContent": "needle 5", "context": "3\n4\nneedle 5\n6\n7"},
        ]
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, 12),
        ({"layer": "agent"}, 2),
        ({"layer": "skill-specific"}, 5),
        ({"project_name": "other"}, 3),
        ({"layer": "command", "project_name": "my-api"}, 1),
    ],
)
def test_search_respects_its_filters(filled: MemoryStore, filters: dict[str, str], expected: int) -> None:
    """S004-39: index.md is never searched; archives are."""
    assert len(filled.search("^# .*|## Review", **filters)["matches"]) == expected


def test_search_takes_a_regular_expression(filled: MemoryStore) -> None:
    """S004-40"""
    found = filled.search(r"# agent/\w+/(notes|plans)$")
    assert [match["lineContent"] for match in found["matches"]] == ["# agent/zeus/notes", "# agent/zeus/plans"]


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{9999999999999}", "x" * 1001, 5, None])
def test_search_refuses_a_pattern_that_is_none(store: MemoryStore, pattern: Any) -> None:
    """S004-40"""
    with pytest.raises(InvalidInput):
        store.search(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(?:a?){40}a{40}$"])
def test_a_pattern_without_end_is_stopped(store: MemoryStore, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S004-40: these need ages on forty letters."""
    monkeypatch.setattr(layer_store, "MAX_SECONDS", 0.5)
    place(store, "projects/a/x.md", "a" * 39 + "b\n")
    with pytest.raises(InvalidInput, match=r"more than 0.5 seconds"):
        store.search(pattern)


@pytest.mark.parametrize(
    "pattern", ["needle", "n[e]{2}dle", "(?i)NEEDLE$", "x|needle", "^.*dle", "(ne)edle", "\u00e9|needle"]
)
def test_simple_and_other_patterns_find_the_same(store: MemoryStore, pattern: str) -> None:
    """S004-40: with and without a process of its own, in any text."""
    place(store, "projects/a/x.md", "").write_bytes("日本\x1c\nneedle\n".encode() + b"\xff")
    place(store, "agents/a/empty.md", "")
    assert [match["lineContent"] for match in store.search(pattern)["matches"]] == ["needle"]


def test_search_refuses_an_unknown_layer(store: MemoryStore) -> None:
    """S004-39"""
    with pytest.raises(InvalidInput):
        store.search("x", layer="galaxy")


# -- pruning


def test_append_up_to_ten_reviews_archives_none(store: MemoryStore) -> None:
    """S004-41"""
    store.create(entry(REVIEWS, reviews(1, 9)))
    assert store.append(REVIEWS, review(10))["pruned"] is False
    assert memories(store) == {"skills/python-code-review/my-api/review_history.md": (STAMP + reviews(1, 10)).encode()}


@pytest.mark.parametrize(("timing", "archived"), [("after_append", 4), ("before_append", 3)])
def test_the_seeds_example_of_thirteen_reviews(tmp_path: Path, clock: Clock, timing: str, archived: int) -> None:
    """S004-42, S004-43 and R-27: ten remain, or with before_append ten and the new one."""
    store = MemoryStore(tmp_path, prune_timing=timing, clock=clock)
    store.create(entry(REVIEWS, "# Reviews\n\n" + reviews(1, 13)))
    answer = store.append(REVIEWS, review(14))
    assert answer["pruneDetails"] == (
        f"archived: {archived} reviews beyond the 10 most recent moved to review_history_archive"
    )
    assert memories(store) == {
        "skills/python-code-review/my-api/review_history.md": (
            STAMP + "# Reviews\n\n" + reviews(archived + 1, 14)
        ).encode(),
        "skills/python-code-review/my-api/review_history_archive.md": (STAMP + reviews(1, archived)).encode(),
    }


def test_an_unknown_timing_is_refused(tmp_path: Path) -> None:
    """S004-43"""
    with pytest.raises(InvalidInput):
        MemoryStore(tmp_path, prune_timing="sometimes")


def test_the_archive_is_extended(store: MemoryStore, clock: Clock) -> None:
    """S004-44: what it has stays, and both files get today's date."""
    place(store, "skills/python-code-review/my-api/review_history_archive.md", "# Archive\n\nBy hand.\n")
    store.create(entry(REVIEWS, reviews(1, 10)))
    clock.advance(days=5)
    store.append(REVIEWS, review(11))
    stamp = "<!-- Last Updated: 2026-02-15 -->\n\n"
    assert memories(store) == {
        "skills/python-code-review/my-api/review_history.md": (stamp + reviews(2, 11)).encode(),
        "skills/python-code-review/my-api/review_history_archive.md": (
            stamp + "# Archive\n\nBy hand.\n" + review(1)
        ).encode(),
    }


def test_an_old_review_that_is_appended_late_goes_to_the_archive(store: MemoryStore) -> None:
    """S004-42: the file stays as it is, and the review is not lost."""
    store.create(entry(REVIEWS, reviews(2, 11)))
    assert store.append(REVIEWS, review(1))["pruned"] is True
    assert memories(store) == {
        "skills/python-code-review/my-api/review_history.md": (STAMP + reviews(2, 11)).encode(),
        "skills/python-code-review/my-api/review_history_archive.md": (STAMP + review(1)).encode(),
    }


def test_a_kill_between_archive_and_file_archives_nothing_twice(store: MemoryStore) -> None:
    """S004-44: the state that such a kill leaves, and the next prune."""
    place(store, "skills/python-code-review/my-api/review_history_archive.md", STAMP + reviews(1, 2))
    store.create(entry(REVIEWS, reviews(1, 13)))
    store.prune({"scope": "all"})
    assert memories(store) == {
        "skills/python-code-review/my-api/review_history.md": (STAMP + reviews(4, 13)).encode(),
        "skills/python-code-review/my-api/review_history_archive.md": (STAMP + reviews(1, 3)).encode(),
    }


def test_an_archive_that_cannot_be_written_stops_the_append(store: MemoryStore) -> None:
    """S004-44: the review history is as it was."""
    store.create(entry(REVIEWS, reviews(1, 10)))
    (store.root / "skills/python-code-review/my-api/review_history_archive.md").mkdir()
    with pytest.raises(StorageError):
        store.append(REVIEWS, review(11))
    assert memories(store) == {"skills/python-code-review/my-api/review_history.md": (STAMP + reviews(1, 10)).encode()}


def test_before_an_issue_is_removed_the_file_is_copied_to_the_trash(store: MemoryStore) -> None:
    """S004-46: nothing goes without a way back."""
    old = "### Old\n**Status**: Resolved (2026-01-05)\n\n"
    store.create(entry(ISSUES, old))
    store.append(ISSUES, "### New\n")
    assert memories(store) == {
        "skills/python-code-review/my-api/known_issues.md": (STAMP + "### New\n").encode(),
        COPY: (STAMP + old + "### New\n").encode(),
    }


def test_the_copy_before_pruning_is_not_a_deleted_memory(store: MemoryStore) -> None:
    """S004-54: the file lives. The result says where the copy lies; a dry run makes none."""
    store.create(entry(ISSUES, "### Old\n**Status**: Resolved (2026-01-05)\n"))
    removed = {"id": ISSUES, "action": "removed", "reason": "resolved 30 or more days ago: Old"}
    assert store.prune(dry_run=True)["pruned"] == [removed]
    assert store.prune()["pruned"] == [{**removed, "reason": f"{removed['reason']} (the file as it was: {COPY})"}]
    assert (store.root / COPY).is_file()
    assert list(store.removed()) == []
    store.delete(ISSUES)
    assert [item.id for item in store.removed()] == [f"layers:{ISSUES}"]
    assert store.recover(ISSUES).text == ""


def test_identical_reviews_are_all_archived(store: MemoryStore) -> None:
    """S004-42: undated reviews with the same words are different reviews."""
    store.create(entry(REVIEWS, "## Review\n\nNothing found.\n\n" * 15))
    assert store.prune()["pruned"][0]["reason"].startswith("5 reviews")
    archive = (store.root / "skills/python-code-review/my-api/review_history_archive.md").read_text()
    assert archive.count("## Review") == 5


def test_folded_sessions_are_kept_in_full_in_the_archive(store: MemoryStore) -> None:
    """S004-51"""
    id = "skill-specific/testing/my-api/test_results_history"
    sessions = [f"## Session {number}\n\n{number} passed\n\n" for number in range(1, 17)]
    store.create(entry(id, "".join(sessions[:15])))
    assert store.append(id, sessions[15])["pruned"] is True
    assert memories(store) == {
        "skills/testing/my-api/test_results_history.md": (
            STAMP
            + "".join(sessions[1:])
            + "## Historical Summary\n\n**Sessions summarised**: 1\n\n- Session 1: 1 passed\n"
        ).encode(),
        "skills/testing/my-api/test_results_history_archive.md": (STAMP + sessions[0]).encode(),
    }


@pytest.fixture
def overgrown(store: MemoryStore) -> MemoryStore:
    for project in ("a", "b"):
        place(store, f"skills/one/{project}/review_history.md", reviews(1, 11))
        place(store, f"skills/two/{project}/review_history.md", reviews(1, 11))
        place(store, f"projects/{project}/known_issues.md", "### It\n**Status**: Open (2020-01-01)\n")
    return store


ARCHIVED = {
    "action": "archived",
    "reason": "1 review beyond the 10 most recent moved to review_history_archive",
}
FLAGGED = {"action": "flagged", "reason": "no status update for 90 or more days: It"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            {"scope": "all"},
            [
                {"id": "shared-project/a/known_issues", **FLAGGED},
                {"id": "shared-project/b/known_issues", **FLAGGED},
                {"id": "skill-specific/one/a/review_history", **ARCHIVED},
                {"id": "skill-specific/one/b/review_history", **ARCHIVED},
                {"id": "skill-specific/two/a/review_history", **ARCHIVED},
                {"id": "skill-specific/two/b/review_history", **ARCHIVED},
            ],
        ),
        (
            {"scope": "project", "projectName": "a"},
            [
                {"id": "shared-project/a/known_issues", **FLAGGED},
                {"id": "skill-specific/one/a/review_history", **ARCHIVED},
                {"id": "skill-specific/two/a/review_history", **ARCHIVED},
            ],
        ),
        (
            {"scope": "skill", "skillName": "two"},
            [
                {"id": "skill-specific/two/a/review_history", **ARCHIVED},
                {"id": "skill-specific/two/b/review_history", **ARCHIVED},
            ],
        ),
        (
            {"scope": "skill", "skillName": "two", "projectName": "b"},
            [{"id": "skill-specific/two/b/review_history", **ARCHIVED}],
        ),
    ],
)
def test_prune_reports_what_it_did_within_its_scope(
    overgrown: MemoryStore, policy: dict[str, Any], expected: list[dict[str, str]]
) -> None:
    """S004-53, S004-54: a dry run reports the same and writes nothing; a second run has nothing to do."""
    before = tree(overgrown.root)
    assert overgrown.prune({**policy, "dryRun": True}) == {"pruned": expected, "warnings": []}
    assert tree(overgrown.root) == before
    assert overgrown.prune(policy) == {"pruned": expected, "warnings": []}
    after = memories(overgrown)
    assert {name for name in after if name not in before or after[name] != before[name]} == {
        name
        for item in expected
        for name in (
            [overgrown._path(item["id"])[len(str(overgrown.root)) + 1 :]]
            + [overgrown._path(item["id"] + "_archive")[len(str(overgrown.root)) + 1 :]]
            * (item["action"] == "archived")
        )
    }
    assert overgrown.prune(policy) == {"pruned": [], "warnings": []}


def test_prune_takes_keywords(overgrown: MemoryStore) -> None:
    """S004-53"""
    assert len(overgrown.prune(scope="project", project_name="a", dry_run=True)["pruned"]) == 3


@pytest.mark.parametrize(
    "policy",
    [
        {"scope": "galaxy"},
        {"scope": "project"},
        {"scope": "skill", "projectName": "a"},
        {"scope": "project", "projectName": "../x"},
        {"scope": "all", "force": True},
    ],
)
def test_prune_refuses_a_policy_it_does_not_understand(overgrown: MemoryStore, policy: dict[str, Any]) -> None:
    """S004-53"""
    before = tree(overgrown.root)
    with pytest.raises(InvalidInput):
        overgrown.prune(policy)
    assert tree(overgrown.root) == before


def test_prune_warns_of_long_and_damaged_files(store: MemoryStore) -> None:
    """S004-54"""
    place(store, "projects/a/long.md", "x\n" * 501)
    place(store, "projects/a/broken.md", "").write_bytes(b"\xff")
    assert store.prune() == {
        "pruned": [],
        "warnings": [
            "shared-project/a/broken: broken.md is not UTF-8 text; save it as UTF-8.",
            "shared-project/a/long: 501 lines, over 500: Split into focused sub-files.",
        ],
    }


def test_every_fifth_load_flags_common_patterns(store: MemoryStore) -> None:
    """S004-54: lifecycle.md's rule for common_patterns; the file itself stays."""
    id = "shared-project/a/common_patterns"
    store.create(entry(id))
    before = memories(store)
    for _ in range(5):
        store.get_shared_project_memory("a")
    assert store.prune()["pruned"] == [
        {"id": id, "action": "flagged", "reason": "loaded 5 times: verify that its patterns still hold"}
    ]
    assert memories(store) == before


# -- validate


def test_validate_answers_in_the_seeds_shape_and_writes_nothing(store: MemoryStore) -> None:
    """S004-55"""
    id = "skill-specific/python-code-review/my-api/project_overview"
    store.create(entry(id, OVERVIEW))
    before = tree(store.root)
    assert store.validate(id) == {
        "id": id,
        "checks": {"completeness": False, "specificity": True, "growthRate": "unknown"},
        "details": {
            "completeness": {
                "score": 0.2,
                "missing": ["language and version", "architecture pattern", "key conventions", "testing approach"],
            },
            "specificity": {"claims": 1, "unspecific": 0},
            "staleness": "fresh",
            "lineCount": 6,
            "invocations": 0,
            "warnings": [],
        },
        "suggestions": [
            "Add the language and version.",
            "Add the architecture pattern.",
            "Add the key conventions.",
            "Add the testing approach.",
            "It has fewer than 10 lines: add what was learned.",
        ],
    }
    assert tree(store.root) == before


def test_validate_sees_growth_over_invocations(store: MemoryStore) -> None:
    """S004-55"""
    store.create(entry(PROFILE))
    for _ in range(5):
        store.get_project_profile("my-api")
    stagnant = store.validate(PROFILE)["checks"]["growthRate"]
    store.append(PROFILE, "More.\n")
    assert (stagnant, store.validate(PROFILE)["checks"]["growthRate"]) == ("stagnant", "healthy")


def test_validate_of_nothing_is_an_error(store: MemoryStore) -> None:
    """S004-55"""
    with pytest.raises(NotFound):
        store.validate(PROFILE)


# -- the side file


CONFLICT = """<<<<<<< HEAD
{"project_profile": 3}
=======
{"project_profile": 4}
>>>>>>> branch
"""


def problems(store: MemoryStore) -> list[tuple[str, int | None]]:
    found = [item for item in scan(store) if isinstance(item, Problem)]
    return [(str(item.path.relative_to(store.root)), item.line) for item in found]


@pytest.mark.parametrize(
    "damage",
    [
        CONFLICT,
        "{\n",
        "[]\n",
        "\0\n",
        "[" * 100_000 + "\n",
        '{"project_profile": "x"}\n',
    ],
)
def test_damage_in_a_side_file_hurts_only_its_line(store: MemoryStore, damage: str) -> None:
    """S004-14 and R-31: it is reported, the other lines count, and the next write does not wipe it out."""
    store.create(entry(PROFILE))
    side = store.root / "projects/my-api/.stats.jsonl"
    side.write_text(side.read_text() + damage)
    expected = [("projects/my-api/.stats.jsonl", 2)]
    assert problems(store) == expected
    found = store.get_project_profile("my-api")
    assert found is not None
    assert (found.created_at, problems(store), problems(MemoryStore(store.root))) == ("2026-02-10", expected, expected)
    assert side.read_text().startswith('{"project_profile": {"createdAt": "2026-02-10"}}\n' + damage)


def test_a_torn_last_line_is_closed_off(store: MemoryStore) -> None:
    """S004-14: while it is the last it may just be being written."""
    store.create(entry(PROFILE))
    side = store.root / "projects/my-api/.stats.jsonl"
    side.write_text(side.read_text() + '{"project_pro')
    assert problems(store) == []
    store.update(PROFILE, "new")
    assert problems(store) == [("projects/my-api/.stats.jsonl", 2)]
    assert store.validate(PROFILE)["details"]["invocations"] == 1


def test_a_side_file_is_folded_and_what_is_damaged_set_aside(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S004-14: the counts stay, the file stays short."""
    monkeypatch.setattr(layer_store, "FOLD_BYTES", 1000)
    store.create(entry(PROFILE))
    side = store.root / "projects/my-api/.stats.jsonl"
    damaged = side.read_text() + CONFLICT
    side.write_text(damaged)
    for _ in range(100):
        store.get_project_profile("my-api")
    assert len(side.read_bytes()) < 2000
    assert problems(store) == []
    assert (store.root / ".trash/projects/my-api/.stats_20260210_090000.jsonl").read_text().startswith(damaged)
    assert list(store.removed()) == []
    found = store.read("shared-project", "my-api", "project_profile")
    assert found is not None
    assert found.created_at == "2026-02-10"
    assert [other.validate(PROFILE)["details"]["invocations"] for other in (store, MemoryStore(store.root))] == [
        102
    ] * 2


def test_a_side_file_that_cannot_be_read_is_not_folded(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """S004-14: one that is too large is reported, and stays."""
    store.create(entry(PROFILE))
    side = place(store, "projects/my-api/.stats.jsonl", '{"project_profile": 1}\n' * 100)
    monkeypatch.setattr(layer_store, "FOLD_BYTES", 10)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    store.update(PROFILE, "new")
    assert side.read_text() == '{"project_profile": 1}\n' * 100 + '{"project_profile": 3}\n'
    assert problems(store) == [("projects/my-api/.stats.jsonl", None)]


def test_the_side_file_of_earlier_versions_is_read(store: MemoryStore) -> None:
    """R-31: one for the whole store. It goes on where that one ends, and does not touch it."""
    place(store, "projects/my-api/project_profile.md", STAMP + "Text\n")
    old = place(
        store, ".stats.json", json.dumps({PROFILE: {"createdAt": "2020-01-02", "invocations": 3, "lines": [3] * 3}})
    )
    before = old.read_bytes()
    for _ in range(2):
        store.get_project_profile("my-api")
    found = store.read("shared-project", "my-api", "project_profile")
    assert found is not None
    assert (found.created_at, store.validate(PROFILE)["details"]["invocations"]) == ("2020-01-02", 5)
    assert store.validate(PROFILE)["checks"]["growthRate"] == "stagnant"
    store.delete(PROFILE)
    store.create(entry(PROFILE))
    assert store.fetch(PROFILE).created_at == datetime(2026, 2, 10, tzinfo=UTC)
    assert (old.read_bytes(), problems(store)) == (before, [])


@pytest.mark.parametrize("damage", ["{", "[]", CONFLICT, "\0", "[" * 100_000])
def test_a_damaged_side_file_of_earlier_versions_is_reported_and_kept(store: MemoryStore, damage: str) -> None:
    """S004-14: createdAt is unknown until somebody mends it."""
    place(store, "projects/my-api/project_profile.md", STAMP + "Text\n")
    old = place(store, ".stats.json", damage)
    store.get_project_profile("my-api")
    store.update(PROFILE, "new")
    assert (problems(store), old.read_text()) == ([(".stats.json", None)], damage)
    old.write_text(json.dumps({PROFILE: {"createdAt": "2020-01-02"}}))
    assert (problems(store), store.fetch(PROFILE).created_at) == ([], datetime(2020, 1, 2, tzinfo=UTC))


def test_a_write_costs_the_same_in_a_large_store(store: MemoryStore) -> None:
    """S004-07: what is noted beside a memory does not grow with the number of memories."""
    folder = place(store, "projects/p/first.md", STAMP).parent
    notes = "".join(json.dumps({f"x{number}": {"createdAt": "2026-01-01"}}) + "\n" for number in range(3000))
    side = place(store, "projects/p/.stats.jsonl", notes)
    inode, size = side.stat().st_ino, side.stat().st_size
    store.create(entry("shared-project/p/new"))
    store.create(entry("shared-project/other/new"))
    assert (side.stat().st_ino, side.stat().st_size - size < 100) == (inode, True)
    assert (store.root / "projects/other/.stats.jsonl").stat().st_size < 100
    assert sorted(path.name for path in folder.iterdir()) == [".stats.jsonl", "first.md", "new.md"]
    assert not (store.root / ".stats.json").exists()


def test_a_side_file_that_cannot_be_written_hurts_nobody(store: MemoryStore) -> None:
    """S004-31: a folder stands in its place, and is reported."""
    (store.root / "projects/my-api/.stats.jsonl").mkdir(parents=True)
    store.create(entry(PROFILE))
    store.update(PROFILE, "new")
    assert ids(store.get_shared_project_memory("my-api")) == [PROFILE]
    assert problems(store) == [("projects/my-api/.stats.jsonl", None)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_store_can_be_read(store: MemoryStore) -> None:
    """S004-31"""
    store.create(entry(PROFILE))
    folder = store.root / "projects/my-api"
    (folder / ".stats.jsonl").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert ids(store.get_shared_project_memory("my-api")) == [PROFILE]
    finally:
        folder.chmod(0o755)


def test_loading_leaves_the_memories_alone(filled: MemoryStore) -> None:
    """S004-31: only the side file counts."""
    before = memories(filled)
    filled.get_by_project("my-api")
    filled.get_agent_memory("zeus")
    filled.get_staleness_report()
    filled.search("x")
    list(scan(filled))
    assert memories(filled) == before


# -- the four patterns of the seed


def test_pattern_1_a_skill_loads_project_memory(store: MemoryStore) -> None:
    """S004-59"""
    assert store.get_skill_memory("python-code-review", "my-api") == []
    store.create(entry(REVIEWS))
    store.create(entry(PROFILE))
    assert ids(store.get_skill_memory("python-code-review", "my-api")) == [REVIEWS]
    assert ids(store.get_shared_project_memory("my-api")) == [PROFILE]


def test_pattern_2_a_command_loads_its_history(store: MemoryStore) -> None:
    """S004-59"""
    store.create(entry("command/my-api/command_history"))
    store.create(entry("command/my-api/analyze_insights"))
    assert ids(store.get_command_memory("my-api")) == [
        "command/my-api/analyze_insights",
        "command/my-api/command_history",
    ]


def test_pattern_3_a_skill_updates_its_memory(store: MemoryStore, clock: Clock) -> None:
    """S004-59: update refreshes and checks, append archives, and issues go with the next prune."""
    overview = "skill-specific/python-code-review/my-api/project_overview"
    store.create(entry(overview))
    store.create(entry(REVIEWS, reviews(1, 10)))
    store.create(entry(ISSUES))
    clock.advance(days=40)
    assert store.update(overview, "x\n" * 300)["warning"].startswith("302 lines, over 200")
    assert store.append(REVIEWS, review(11))["pruned"] is True
    assert store.update(ISSUES, "### It\n**Status**: Resolved (2026-01-05)\n")["updated"] is True
    assert store.prune()["pruned"] == [
        {
            "id": ISSUES,
            "action": "removed",
            "reason": f"resolved 30 or more days ago: It (the file as it was: {COPY.replace('20260210', '20260322')})",
        }
    ]


def test_pattern_4_shared_project_memory(store: MemoryStore, clock: Clock) -> None:
    """S004-59"""
    assert store.get_project_profile("my-api") is None
    store.upsert(PROFILE, "# Profile\n")
    clock.advance(days=100)
    stale = store.get_project_profile("my-api")
    store.update(PROFILE, "# Profile\n\nNew.\n")
    fresh = store.get_project_profile("my-api")
    assert stale is not None
    assert fresh is not None
    assert (stale.staleness, fresh.staleness) == ("stale", "fresh")


# -- the gate

SECRET = "AKIA" + "Q3EGRIBPZ7VSVGX2"


@pytest.mark.parametrize(
    "call",
    [
        lambda store, text: store.create(entry("agent/a/new", text)),
        lambda store, text: store.upsert("agent/a/new", text),
        lambda store, text: store.update(PROFILE, text),
        lambda store, text: store.append(PROFILE, text),
        lambda store, text: store.put(Draft(text, fields={"project": "p", "file_type": "x"})),
        lambda store, text: store.revise(PROFILE, {"text": text}),
        lambda store, text: store.extend(PROFILE, text),
    ],
)
def test_a_secret_is_refused_and_leaves_no_trace(store: MemoryStore, call: Callable[..., Any]) -> None:
    """S004-60: every way of writing passes the gate."""
    store.create(entry(PROFILE))
    before = tree(store.root)
    with pytest.raises(Refused) as caught:
        call(store, f"aws_access_key_id = {SECRET}")
    assert SECRET not in str(caught.value) + caught.value.hint
    assert tree(store.root) == before


def test_what_the_gate_returns_is_stored(store: MemoryStore) -> None:
    """S004-60: invisible characters are taken out."""
    store.create(entry(PROFILE, "a\u200bb"))
    assert memories(store) == {"projects/my-api/project_profile.md": (STAMP + "ab").encode()}


REMARK = "1 invisible or control characters were removed"


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.put(Draft("a\u200bb", fields={"project": "p", "file_type": "x"})),
        lambda store: store.revise(PROFILE, {"text": "a\u200bb"}),
        lambda store: store.extend(PROFILE, "a\u200bb"),
    ],
)
def test_what_the_gate_changed_is_remarked(store: MemoryStore, call: Callable[..., Memory]) -> None:
    """S004-60"""
    store.create(entry(PROFILE))
    assert call(store).remarks == (REMARK,)


def test_what_the_gate_changed_is_a_warning_of_update_and_append(store: MemoryStore) -> None:
    """S004-22, S004-26: the seed's answers have room for it, beside the size."""
    store.create(entry(PROFILE))
    assert store.update(PROFILE, "a\u200bb")["warning"] == REMARK
    assert store.append(PROFILE, "a\u200bb")["warning"] == REMARK
    assert store.update(PROFILE, "\u200bx\n" * 500)["warning"] == (
        "500 invisible or control characters were removed; 502 lines, over 500: Split into focused sub-files."
    )


# -- the bank's verbs


def test_a_memory_says_what_the_layer_knows(store: MemoryStore) -> None:
    id = "skill-specific/python-code-review/my-api/project_overview"
    store.create(entry(id, OVERVIEW))
    assert store.fetch(id) == Memory(
        id=f"layers:{id}",
        lane="layers",
        text=OVERVIEW,
        title="Project Overview - My API",
        file=str(store.root / "skills/python-code-review/my-api/project_overview.md"),
        type="project_overview",
        status="active",
        scope="skill-specific",
        project="my-api",
        created_at=datetime(2026, 2, 10, tzinfo=UTC),
        updated_at=datetime(2026, 2, 10, tzinfo=UTC),
        fields={"layer": "skill-specific", "skill": "python-code-review", "staleness": "fresh", "line_count": 6},
    )


def test_scan_finds_memories_and_archives_and_reports_the_rest(filled: MemoryStore) -> None:
    place(filled, "projects/stray.md", "x")
    place(filled, "projects/my api/x.md", "x")
    place(filled, "agents/zeus/broken.md", "").write_bytes(b"ok\n\xff")
    found = list(scan(filled))
    archived = [item.id for item in found if isinstance(item, Memory) and item.status == "archived"]
    problems = {item.path.name: (item.why, item.line) for item in found if isinstance(item, Problem)}
    assert (len(found), archived) == (15, [f"layers:{REVIEWS}_archive"])
    assert problems == {
        "stray.md": ("is not named as memories in projects are; move or rename it", None),
        "x.md": ("is not named as memories in projects are; move or rename it", None),
        "broken.md": ("is not UTF-8 text; save it as UTF-8", 2),
    }


@pytest.mark.parametrize(
    ("draft", "id"),
    [
        (Draft("T", title="Known Issues", fields={"project": "p"}), "shared-project/p/known_issues"),
        (Draft("T", type="known_issues", fields={"project": "p"}), "shared-project/p/known_issues"),
        (Draft("T", scope="command", type="x", fields={"project": "p"}), "command/p/x"),
        (Draft("T", fields={"layer": "agent", "agent": "zeus", "file_type": "x"}), "agent/zeus/x"),
        (
            Draft("T", type="x", fields={"layer": "skill-specific", "skillName": "s", "projectName": "p"}),
            "skill-specific/s/p/x",
        ),
    ],
)
def test_put_finds_the_place_of_a_draft(store: MemoryStore, draft: Draft, id: str) -> None:
    memory = store.put(draft)
    assert (memory.id, memory.text, memory.remarks) == (f"layers:{id}", "T", ())


@pytest.mark.parametrize(
    "draft",
    [
        Draft("T", type="x"),
        Draft("T", fields={"project": "p"}),
        Draft("T", title="日本", fields={"project": "p"}),
        Draft("T", type="x", fields={"project": "p", "mood": "good"}),
    ],
)
def test_put_refuses_a_draft_without_a_place(store: MemoryStore, draft: Draft) -> None:
    with pytest.raises(InvalidInput):
        store.put(draft)
    assert not store.root.exists()


def test_put_says_what_the_layer_does_not_keep(store: MemoryStore) -> None:
    draft = Draft(
        "T", type="x", tags=("a",), thread="t", created_at=datetime(2020, 1, 2, tzinfo=UTC), fields={"project": "p"}
    )
    memory = store.put(draft)
    assert memory.remarks == ("the layers lane keeps no tags and no thread",)
    assert memory.created_at == datetime(2020, 1, 2, tzinfo=UTC)


def test_revise_extend_drop_and_recover(store: MemoryStore, clock: Clock) -> None:
    store.put(Draft("one", type="x", fields={"project": "p"}))
    id = "shared-project/p/x"
    assert store.revise(id, {"text": "two"}).text == "two"
    assert store.extend(id, "three").text == "two\n\nthree"
    removed = store.drop(id)
    assert list(store.removed()) == [removed]
    assert (removed.id, removed.how, removed.removed_at) == (f"layers:{id}", "trash", clock())
    with pytest.raises(NotFound):
        store.fetch(id)
    assert store.recover(id).text == "two\n\nthree"
    with pytest.raises(AlreadyExists):
        store.recover(id)


def test_revise_refuses_what_a_layer_does_not_have(store: MemoryStore) -> None:
    store.create(entry(PROFILE))
    with pytest.raises(InvalidInput):
        store.revise(PROFILE, {"tags": ("a",)})


# -- many writers

WRITER = """
import sys
from memlane.gate import Guard
from memlane.lanes.layers.store import MemoryStore
store = MemoryStore(sys.argv[1], guard=Guard(secrets="off", characters="keep"))
for number in range(int(sys.argv[3])):
    text = f"## Review #{sys.argv[2]}{number:03} - 2026-01-01\\n\\nText.\\n\\n"
    store.append("skill-specific/s/p/review_history", text)
    store.upsert(f"shared-project/p/x{number}", sys.argv[2])
    store.get_shared_project_memory("p")
    print(number, flush=True)
"""


def writer(root: Path, name: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(name), str(count)], stdout=subprocess.PIPE, text=True
    )


def archived_and_kept(store: MemoryStore) -> list[str]:
    folder = store.root / "skills/s/p"
    texts = [path.read_text() for path in sorted(folder.glob("review_history*.md"))]
    return [found for text in texts for found in re.findall(r"^## Review #(\d+)", text, re.MULTILINE)]


def test_writers_at_once_lose_no_review(store: MemoryStore) -> None:
    """S004-42: three processes append, prune and count in one store, each review exactly once in the end."""
    store.create(entry("skill-specific/s/p/review_history", ""))
    running = [writer(store.root, name, 15) for name in (1, 2, 3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    for process in running:
        process.stdout.close()  # type: ignore[union-attr]
    assert sorted(archived_and_kept(store)) == [f"{name}{number:03}" for name in (1, 2, 3) for number in range(15)]
    assert store.validate("skill-specific/s/p/review_history")["details"]["invocations"] == 45


def test_a_killed_writer_loses_no_acknowledged_review(store: MemoryStore) -> None:
    """S004-42: kill -9 at any point leaves every section in the file, the archive, or for a moment both."""
    store.create(entry("skill-specific/s/p/review_history", ""))
    for name in range(1, 9):
        process = writer(store.root, name, 1000)
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(2 + name)]
        process.kill()
        acknowledged += process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        found = set(archived_and_kept(store))
        assert {f"{name}{number:03}" for number in range(len(acknowledged))} <= found
    store.append("skill-specific/s/p/review_history", "## Review #99999 - 2026-01-01\n")
    assert len(archived_and_kept(store)) == len(set(archived_and_kept(store)))
