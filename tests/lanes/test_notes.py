"""Notes: seed 003's verbs and format."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from conftest import Clock, tree, trusted
from memlane import Bank, ConfigError, InvalidInput, Memory, NoteLane, NotFound, Problem
from memlane.core.model import Draft
from memlane.disk import renaming

PLAN = "Plan to refactor [[src/auth.py]] to use JWT tokens.\n\n## Goals\n- Remove session-based auth"
CREATED = """---
type: "plan"
status: "active"
tags: ["refactor", "auth"]
created_at: "2025-01-10T14:30:22Z"
---

"""


@pytest.fixture
def notes(tmp_path: Path, clock: Clock) -> NoteLane:
    return NoteLane(tmp_path / ".memories", clock=clock)


def enable(folder: Path, text: str = "") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "memlane.toml").write_text(f"[memory]\nenabled = true\n{text}")
    trusted(folder / "memlane.toml")


# -- configuration


def test_settings_are_read_from_config_toml(tmp_path: Path) -> None:
    """S003-01: the seed's own file name and keys."""
    (tmp_path / "config.toml").write_text(
        '[memory]\nenabled = true\nstorage_strategy = "project"\nrecency_boost_days = 3\nrecency_boost_factor = 1.5\n'
        "[server]\nport = 1\n"
    )
    trusted(tmp_path / "config.toml")
    bank = Bank.open(tmp_path)
    assert (bank.config["memory.recency_boost_days"], bank.config["memory.recency_boost_factor"]) == (3, 1.5)


def test_the_defaults_are_the_seeds(tmp_path: Path) -> None:
    """S003-01"""
    from memlane.config import load

    config = load(tmp_path)
    assert [config[f"memory.{key}"] for key in ("enabled", "storage_strategy")] == [False, "project"]
    assert [config[f"memory.recency_boost_{key}"] for key in ("days", "factor")] == [7, 1.2]


@pytest.mark.parametrize(
    "call",
    [
        lambda lane: lane.create_memory("a.md", "text", []),
        lambda lane: lane.read_memory("a.md"),
        lambda lane: lane.update_memory("a.md", "text"),
        lambda lane: lane.append_memory("a.md", "text"),
        lambda lane: lane.delete_memory("a.md"),
        lambda lane: lane.merge_memories(["a.md"], "b.md", "text"),
        lambda lane: lane.stats(),
    ],
)
def test_a_lane_that_is_not_enabled_answers_so_and_writes_nothing(tmp_path: Path, call: object) -> None:
    """S003-02"""
    lane = NoteLane(tmp_path / "m", enabled=False)
    assert call(lane) == {"error": "Memory system is not enabled"}  # type: ignore[operator]
    assert tree(tmp_path) == {}


def test_project_storage_is_in_the_project(tmp_path: Path) -> None:
    """S003-03"""
    enable(tmp_path)
    assert Bank.open(tmp_path).notes.create_memory("a.md", "text", [])["path"] == str(tmp_path / ".memories/a.md")


def test_user_storage_is_in_the_users_data_folder(tmp_path: Path, home: Path) -> None:
    """S003-03: at the seed's place by the seed's own file; by memlane.toml, at memlane's."""
    (tmp_path / "config.toml").write_text('[memory]\nenabled = true\nstorage_strategy = "user"\n')
    trusted(tmp_path / "config.toml")
    answer = Bank.open(tmp_path).notes.create_memory("a.md", "text", [])
    assert answer["path"] == str(home / ".local/share/mcp-markdown-ragdocs/memories/a.md")
    (home / ".local/share/mcp-markdown-ragdocs").rename(home / "gone")
    enable(tmp_path, 'storage_strategy = "user"\n')
    answer = Bank.open(tmp_path).notes.create_memory("a.md", "text", [])
    assert answer["path"] == str(home / ".local/share/memlane/bank/a.md")


def test_projects_do_not_see_each_other(tmp_path: Path) -> None:
    """S003-04"""
    for name in ("one", "two"):
        enable(tmp_path / name)
    Bank.open(tmp_path / "one").notes.create_memory("a.md", "text", [])
    assert Bank.open(tmp_path / "two").notes.stats()["count"] == 0


def test_user_storage_is_shared_by_projects(tmp_path: Path) -> None:
    """S003-04"""
    for name in ("one", "two"):
        enable(tmp_path / name, 'storage_strategy = "user"\n')
    Bank.open(tmp_path / "one").notes.create_memory("a.md", "text", [])
    assert Bank.open(tmp_path / "two").notes.stats()["count"] == 1


def test_an_unknown_strategy_is_refused_with_the_allowed_ones(tmp_path: Path) -> None:
    """S003-06"""
    enable(tmp_path, 'storage_strategy = "cloud"\n')
    with pytest.raises(ConfigError) as caught:
        Bank.open(tmp_path)
    assert str(caught.value) == (f'{tmp_path / "memlane.toml"}: memory.storage_strategy must be "project" or "user".')


def test_changing_the_strategy_moves_nothing(tmp_path: Path) -> None:
    """S003-07"""
    enable(tmp_path)
    Bank.open(tmp_path).notes.create_memory("a.md", "text", [])
    before = tree(tmp_path / ".memories")
    enable(tmp_path, 'storage_strategy = "user"\n')
    assert Bank.open(tmp_path).notes.stats()["count"] == 0
    assert tree(tmp_path / ".memories") == before


# -- front matter


def test_a_bare_file_has_the_defaults(notes: NoteLane) -> None:
    """S003-08"""
    notes.root.mkdir()
    (notes.root / "a.md").write_text("just text")
    memory = notes.fetch("a")
    assert (memory.type, memory.status, memory.tags, memory.created_at) == ("journal", "active", (), None)


@pytest.mark.parametrize("kind", ["journal", "plan", "fact", "observation", "reflection"])
@pytest.mark.parametrize("status", ["active", "archived"])
def test_known_types_and_statuses_are_read(notes: NoteLane, kind: str, status: str) -> None:
    """S003-09"""
    notes.root.mkdir()
    (notes.root / "a.md").write_text(f'---\ntype: "{kind}"\nstatus: {status}\n---\ntext')
    memory = notes.fetch("a")
    assert (memory.type, memory.status) == (kind, status)


def test_unknown_types_and_statuses_fall_back_to_the_default(notes: NoteLane) -> None:
    """S003-09"""
    notes.root.mkdir()
    (notes.root / "a.md").write_text('---\ntype: "poem"\nstatus: 3\n---\ntext')
    memory = notes.fetch("a")
    assert (memory.type, memory.status) == ("journal", "active")


@pytest.mark.parametrize("written", ["[a, b]", '"a, b"', "\n  - a\n  - b", "\n- a\n- b"])
def test_tags_are_read_as_people_write_them(notes: NoteLane, written: str) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text(f"---\ntags: {written}\n---\ntext")
    assert notes.fetch("a").tags == ("a", "b")


# -- the verbs


def test_create_writes_front_matter_then_the_content(notes: NoteLane) -> None:
    """S003-10"""
    notes.create_memory("auth-refactor-plan.md", PLAN, ["refactor", "auth"], "plan")
    assert (notes.root / "auth-refactor-plan.md").read_text() == CREATED + PLAN


def test_create_answers_with_status_filename_and_path(notes: NoteLane) -> None:
    """S003-11"""
    assert notes.create_memory("auth-refactor-plan.md", PLAN, ["refactor", "auth"], "plan") == {
        "status": "created",
        "filename": "auth-refactor-plan.md",
        "path": str(notes.root / "auth-refactor-plan.md"),
    }


def test_a_note_without_a_type_is_a_journal(notes: NoteLane) -> None:
    """S003-12"""
    notes.create_memory("a.md", "text", [])
    assert notes.fetch("a").type == "journal"


def test_an_existing_file_is_not_created_again(notes: NoteLane) -> None:
    """S003-13"""
    notes.create_memory("a.md", "first", [])
    before = tree(notes.root)
    assert notes.create_memory("a.md", "second", []) == {
        "error": "Memory file already exists: a.md",
        "hint": "`memlane update a.md` changes it; or choose another name.",
    }
    assert tree(notes.root) == before


def test_read_returns_the_whole_file(notes: NoteLane) -> None:
    """S003-14"""
    notes.create_memory("plan.md", PLAN, ["refactor", "auth"], "plan")
    assert notes.read_memory("plan.md") == {
        "filename": "plan.md",
        "content": CREATED + PLAN,
        "path": str(notes.root / "plan.md"),
    }


@pytest.mark.parametrize("verb", ["read_memory", "update_memory", "append_memory", "delete_memory"])
def test_a_missing_file_is_an_error_object(notes: NoteLane, verb: str) -> None:
    """S003-15"""
    more = ("text",) if verb in ("update_memory", "append_memory") else ()
    assert getattr(notes, verb)("gone.md", *more) == {
        "error": "Memory file not found: gone.md",
        "hint": "`memlane list` shows the ids.",
    }


@pytest.mark.parametrize("verb", ["read_memory", "update_memory", "append_memory", "delete_memory"])
@pytest.mark.parametrize("name", ["a", "a.md", "memory:a", "notes:a", "notes:a.md", "{root}/a.md"])
def test_a_note_is_named_by_its_file_its_id_or_its_path(notes: NoteLane, verb: str, name: str) -> None:
    notes.create_memory("a.md", "text", [])
    more = ("text",) if verb in ("update_memory", "append_memory") else ()
    assert getattr(notes, verb)(name.format(root=notes.root), *more)["filename"] == "a.md"


def test_a_name_that_is_nearly_right_is_answered_with_the_nearest(notes: NoteLane) -> None:
    for name in ("deploy-day", "ops/deploy-days", "deploy-friday", "release-plan"):
        notes.create_memory(name, "text", [])
    near = "Did you mean deploy-day.md, ops/deploy-days.md, deploy-friday.md? `memlane list` shows the ids."
    assert notes.read_memory("deploy-dya") == {"error": "Memory file not found: deploy-dya.md", "hint": near}
    assert notes.merge_memories(["deploy-dya"], "b", "x") == {
        "error": "Source file not found: deploy-dya.md",
        "hint": near,
    }


def test_update_replaces_the_whole_file(notes: NoteLane) -> None:
    """S003-16"""
    notes.create_memory("a.md", "old", ["x"])
    answer = notes.update_memory("a.md", "---\ntype: fact\n---\nnew")
    remark = answer.pop("remark")
    assert answer == {"status": "updated", "filename": "a.md", "path": str(notes.root / "a.md")}
    assert remark.startswith("the whole file was replaced, and with it its front matter (status: active, tags: [x], c")
    assert remark.endswith("; begin the content with it to keep it")
    assert (notes.root / "a.md").read_text() == "---\ntype: fact\n---\nnew"


def test_update_without_front_matter_drops_the_metadata(notes: NoteLane) -> None:
    """S003-17"""
    notes.create_memory("a.md", "old", ["x"], "plan")
    notes.update_memory("a.md", "new")
    memory = notes.fetch("a")
    assert (memory.text, memory.type, memory.tags, memory.created_at) == ("new", "journal", (), None)


def test_append_adds_two_newlines_and_keeps_the_front_matter(notes: NoteLane) -> None:
    """S003-18"""
    notes.create_memory("plan.md", PLAN + "\n\n", ["refactor", "auth"], "plan")
    assert notes.append_memory("plan.md", "More.")["status"] == "appended"
    assert (notes.root / "plan.md").read_text() == CREATED + PLAN + "\n\nMore."


def test_append_to_an_empty_body_leaves_the_front_matter_whole(notes: NoteLane) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text("---\ntype: fact\n---\n")
    notes.append_memory("a.md", "More.")
    assert notes.fetch("a").text.strip() == "More."
    assert notes.fetch("a").type == "fact"


def test_delete_moves_the_file_to_the_trash_unchanged(notes: NoteLane) -> None:
    """S003-20"""
    notes.create_memory("old-notes.md", PLAN, ["refactor", "auth"], "plan")
    moved = notes.root / ".trash/old-notes_20250110_143022.md"
    assert notes.delete_memory("old-notes.md") == {
        "status": "deleted",
        "filename": "old-notes.md",
        "moved_to": str(moved),
    }
    assert tree(notes.root) == {".trash/old-notes_20250110_143022.md": (CREATED + PLAN).encode()}


def test_deleting_a_name_twice_keeps_both(notes: NoteLane) -> None:
    """S003-22"""
    for text in ("first", "second"):
        notes.create_memory("a.md", text, [])
        notes.delete_memory("a.md")
    assert sorted(tree(notes.root)) == [".trash/a_20250110_143022-1.md", ".trash/a_20250110_143022.md"]
    assert notes.recover("a").text == "second"


@pytest.mark.parametrize("name", ["../x.md", "/etc/x.md", "a/../../x.md", "..", "a/./x.md"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, notes: NoteLane, name: str) -> None:
    """S003-23"""
    for answer in (notes.create_memory(name, "text", []), notes.read_memory(name), notes.delete_memory(name)):
        assert list(answer) == ["error", "hint"]
    assert tree(tmp_path) == {}


def test_stats_count_sizes_tags_and_types(notes: NoteLane) -> None:
    """S003-44"""
    notes.create_memory("a.md", "x" * 46200, ["auth", "bug"], "plan")
    notes.create_memory("b.md", "text", ["auth"])
    assert notes.stats() == {
        "count": 2,
        "total_size": "45.3KB",
        "tags": {"auth": 2, "bug": 1},
        "types": {"plan": 1, "journal": 1},
        "memory_path": str(notes.root),
    }


@pytest.mark.parametrize(("size", "shown"), [(0, "0B"), (1023, "1023B"), (46285, "45.2KB"), (1572864, "1.5MB")])
def test_sizes_are_written_for_people(size: int, shown: str) -> None:
    """S003-44"""
    from memlane.lanes.notes.store import human_size

    assert human_size(size) == shown


def test_stats_ignore_trash_indices_hidden_and_other_files(notes: NoteLane) -> None:
    """S003-45"""
    notes.create_memory("a.md", "text", [])
    for name in (".trash/x.md", "indices/y.md", ".hidden/z.md", "image.png", "notes.txt"):
        (notes.root / name).parent.mkdir(exist_ok=True)
        (notes.root / name).write_text("x")
    assert notes.stats()["count"] == 1


def test_merge_writes_exactly_the_summary(notes: NoteLane) -> None:
    """S003-46"""
    for name in ("a", "b"):
        notes.create_memory(name, "text", [])
    summary = '---\ntype: "journal"\ntags: ["auth"]\n---\n\n# Consolidated\n'
    assert notes.merge_memories(["a.md", "b.md"], "c.md", summary) == {
        "status": "merged",
        "target_file": "c.md",
        "sources_merged": "2",
        "target_path": str(notes.root / "c.md"),
    }
    assert (notes.root / "c.md").read_text() == summary


def test_merge_moves_the_sources_to_the_trash(notes: NoteLane) -> None:
    """S003-47"""
    for name in ("a", "b"):
        notes.create_memory(name, "text", [])
    notes.merge_memories(["a.md", "b.md"], "c.md", "both")
    assert sorted(tree(notes.root)) == [".trash/a_20250110_143022.md", ".trash/b_20250110_143022.md", "c.md"]


@pytest.mark.parametrize(
    ("sources", "target", "error"),
    [
        (["a.md"], "b.md", "Target file already exists: b.md"),
        (["a.md", "gone.md"], "c.md", "Source file not found: gone.md"),
        ([], "c.md", "No source files provided"),
    ],
)
def test_a_merge_that_cannot_be_done_changes_nothing(
    notes: NoteLane, sources: list[str], target: str, error: str
) -> None:
    """S003-49"""
    for name in ("a", "b"):
        notes.create_memory(name, "text", [])
    before = tree(notes.root)
    assert notes.merge_memories(sources, target, "both")["error"] == error
    assert tree(notes.root) == before


# -- names and ids


def test_the_suffix_may_be_left_out(notes: NoteLane) -> None:
    assert notes.create_memory("a", "text", [])["filename"] == "a.md"


def test_a_nested_note_has_its_path_as_id(notes: NoteLane) -> None:
    assert notes.create_memory("2025/january/day.md", "text", [])["status"] == "created"
    assert notes.fetch("2025/january/day").id == "notes:2025/january/day"


def test_names_that_differ_only_in_case_are_refused(notes: NoteLane) -> None:
    """On macOS and Windows both would be the same file."""
    notes.create_memory("Auth.md", "text", [])
    assert "differs from auth.md only in case" in notes.create_memory("auth.md", "text", [])["error"]


def test_names_that_differ_only_in_unicode_form_are_the_same_note(notes: NoteLane) -> None:
    notes.create_memory("caf\u00e9.md", "text", [])
    assert notes.read_memory("cafe\u0301.md")["filename"] == "caf\u00e9.md"


def test_another_process_may_have_taken_the_namesake(notes: NoteLane) -> None:
    """The remembered listing is dropped when the folder changed."""
    notes.create_memory("one.md", "text", [])
    NoteLane(notes.root).create_memory("Two.md", "text", [])
    assert "error" in notes.create_memory("two.md", "text", [])


def test_folders_of_other_lanes_are_neither_read_nor_written(tmp_path: Path) -> None:
    notes = NoteLane(tmp_path, skip=[tmp_path / "topics"])
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics/x.md").write_text("text")
    assert notes.stats()["count"] == 0
    assert notes.create_memory("topics/y.md", "text", [])["error"] == "That folder is not for notes."


def test_a_draft_without_a_name_is_named_after_its_title(notes: NoteLane) -> None:
    titles = [notes.put(Draft("text", title="Grüße, Welt!")).id for _ in range(3)]
    assert titles == ["notes:grüsse-welt", "notes:grüsse-welt-2", "notes:grüsse-welt-3"]


def test_a_draft_of_unknown_type_is_refused_with_the_known_ones(notes: NoteLane) -> None:
    with pytest.raises(InvalidInput) as caught:
        notes.put(Draft("text", type="poem"))
    assert caught.value.hint == "Use one of: journal, plan, fact, observation, reflection, rule, preference."


@pytest.mark.parametrize("name", ["what?", "a: b", "con", " lead", "cafe\u0301", "q.md", "trailing."])
def test_files_that_others_named_can_be_read_changed_and_deleted(notes: NoteLane, name: str) -> None:
    notes.root.mkdir()
    (notes.root / f"{name}.md").write_text("text")
    [memory] = [item for path in notes.files() for item in notes.parse(str(path))]
    assert isinstance(memory, Memory)
    assert notes.fetch(memory.native_id) == memory
    assert notes.extend(memory.native_id, "more").text == "text\n\nmore"
    notes.drop(memory.native_id)
    assert notes.recover(memory.native_id).text == "text\n\nmore"


def test_an_id_with_the_suffix_means_its_own_file_first(notes: NoteLane) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text("one")
    assert notes.fetch("a.md").text == "one"
    (notes.root / "a.md.md").write_text("two")
    assert notes.fetch("a.md").text == "two"
    assert notes.put(Draft("three", fields={"filename": "b.md.md"})).id == "notes:b.md"


@pytest.mark.parametrize("name", ["sub/indices/z", "indices/z", "foo.md/bar", ".hidden", "topics/.x/y"])
def test_names_that_would_not_be_listed_are_refused(notes: NoteLane, name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        notes.put(Draft("text", fields={"filename": name}))
    assert tree(tmp_path) == {}


def test_what_is_in_the_trash_is_not_a_note(notes: NoteLane) -> None:
    notes.create_memory("a.md", "text", [])
    notes.delete_memory("a.md")
    answer = notes.read_memory(".trash/a_20250110_143022.md")
    assert answer["error"] == "Memory file not found: .trash/a_20250110_143022.md"


def test_folders_that_differ_only_in_case_are_refused(notes: NoteLane) -> None:
    notes.create_memory("Auth/x.md", "text", [])
    assert "only in case" in notes.create_memory("auth/y.md", "text", [])["error"]
    assert notes.create_memory("Auth/y.md", "text", [])["status"] == "created"


def test_a_title_that_is_a_reserved_name_still_gets_a_file(notes: NoteLane) -> None:
    assert notes.put(Draft("Aux")).id == "notes:note-aux"


@pytest.mark.parametrize(
    "answer",
    [
        lambda lane: lane.create_memory("z.md", None, []),
        lambda lane: lane.create_memory(None, "text", []),
        lambda lane: lane.update_memory("a.md", None),
        lambda lane: lane.append_memory("a.md", 5),
        lambda lane: lane.read_memory(7),
    ],
)
def test_wrong_types_are_error_objects(notes: NoteLane, answer: object) -> None:
    notes.create_memory("a.md", "text", [])
    before = tree(notes.root)
    assert list(answer(notes)) == ["error", "hint"]  # type: ignore[operator]
    assert tree(notes.root) == before


def test_a_delete_holds_the_files_lock(notes: NoteLane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise what is written between the look at a file and its move into the trash is acknowledged and lost."""
    notes.create_memory("a.md", "text", [])
    rename = renaming.to_free_name
    held = []

    def spy(here: int, old: str, there: int, new: str) -> None:
        with open(notes.root / old) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(old)
        rename(here, old, there, new)

    monkeypatch.setattr(renaming, "to_free_name", spy)
    notes.delete_memory("a.md")
    assert held == ["a.md"]


# -- changing


def test_revising_keys_leaves_every_other_byte(notes: NoteLane) -> None:
    notes.root.mkdir()
    before = "\ufeff---\r\n# mine\r\nid: 7  # kept\r\ntags:\r\n  - a\r\n  - b\r\nzeta: {x: 1}\r\n---\r\n\r\nText\r\n"
    (notes.root / "a.md").write_bytes(before.encode())
    notes.revise("a", {"tags": ["c"], "status": "archived"})
    after = before.replace("tags:\r\n  - a\r\n  - b\r\n", 'tags: ["c"]\r\n').replace(
        "zeta: {x: 1}\r\n", 'zeta: {x: 1}\r\nstatus: "archived"\r\n'
    )
    assert (notes.root / "a.md").read_bytes() == after.encode()


def test_revising_the_text_keeps_the_front_matter(notes: NoteLane) -> None:
    notes.create_memory("plan.md", PLAN, ["refactor", "auth"], "plan")
    notes.revise("plan", {"text": "New."})
    assert (notes.root / "plan.md").read_text() == CREATED + "New."


def test_a_body_after_front_matter_that_ends_the_file(notes: NoteLane) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text("---\ntype: plan\n---")
    assert notes.revise("a", {"text": "hello"}).type == "plan"
    assert (notes.root / "a.md").read_text() == "---\ntype: plan\n---\n\nhello"


@pytest.mark.parametrize("text", ["---\nsome: text\n---\nrest", "\nhello", "---"])
@pytest.mark.parametrize("before", ["no front matter", "---\ntype: plan\n---\ntight", "---\ntype: plan\n---\n\nloose"])
def test_a_new_text_is_read_back_as_it_was_given(notes: NoteLane, before: str, text: str) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text(before)
    memory = notes.revise("a", {"text": text})
    assert (memory.text, memory.type) == (text, "plan" if "plan" in before else "journal")


def test_front_matter_over_the_limit_is_reported_and_not_edited(notes: NoteLane) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text(f"---\nx: {'y' * 70_000}\n---\ntext")
    assert [item.why for item in notes.parse(str(notes.root / "a.md")) if isinstance(item, Problem)] == [
        "front matter is larger than 64 KiB; it is read as text"
    ]
    with pytest.raises(InvalidInput):
        notes.revise("a", {"tags": ["b"]})


def test_a_status_of_its_own_is_checked(notes: NoteLane) -> None:
    with pytest.raises(InvalidInput, match="status"):
        notes.put(Draft("text", fields={"status": "bogus"}))


def test_front_matter_that_is_broken_is_not_edited(notes: NoteLane) -> None:
    notes.root.mkdir()
    (notes.root / "a.md").write_text("---\ntags: [a\n---\ntext")
    before = tree(notes.root)
    with pytest.raises(InvalidInput):
        notes.revise("a", {"tags": ["b"]})
    assert tree(notes.root) == before


def test_what_was_never_deleted_cannot_be_recovered(notes: NoteLane) -> None:
    with pytest.raises(NotFound):
        notes.recover("a")


def test_a_note_is_restored_within_the_same_tick_of_the_folders_clock(tmp_path: Path) -> None:
    """What was listed of a folder is not trusted to say that a name is taken: its time may not have moved since."""
    bank = Bank.init(tmp_path)
    bank.add("One.", title="One")
    id = bank.add("Two.", title="Two").id
    listed = os.stat(bank.root).st_mtime_ns
    bank.delete(id)
    os.utime(bank.root, ns=(listed, listed))
    assert bank.restore(id).id == id
