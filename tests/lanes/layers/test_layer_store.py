"""Layers: create, read, update, append and delete, as seed 004 describes them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock, tree
from layer_samples import COPY, ISSUES, OVERVIEW, PROFILE, STAMP, entry, memories, place, review, reviews
from layer_samples import clock as clock
from layer_samples import store as store
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.gate import Guard
from memlane.lanes.layers.entries import MemoryEntry
from memlane.lanes.layers.store import MemoryStore
from samples import tries

OPEN = Guard(secrets="off", characters="keep")


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
@settings(max_examples=tries(25, 250))
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
