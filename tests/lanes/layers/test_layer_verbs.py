"""Layers by the bank's verbs: scan, put, revise, extend, drop, recover."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conftest import Clock
from layer_samples import OVERVIEW, PROFILE, REVIEWS, entry, place
from layer_samples import clock as clock
from layer_samples import filled as filled
from layer_samples import store as store
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.model import Draft, Memory, Problem
from memlane.lanes import scan
from memlane.lanes.layers.store import MemoryStore


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
    place(filled, "projects/my-api/deep/x.md", "x")
    place(filled, "plan.md", "x")
    place(filled, "drafts/a.md", "x")
    for name in ("lifecycle", "quality_guidance", "index", "README", "skills/README"):
        place(filled, f"{name}.md", "x")
    place(filled, "agents/zeus/broken.md", "").write_bytes(b"ok\n\xff")
    found = list(scan(filled))
    archived = [item.id for item in found if isinstance(item, Memory) and item.status == "archived"]
    problems = {item.path.name: (item.why, item.line) for item in found if isinstance(item, Problem)}
    assert (len(found), archived) == (17, [f"layers:{REVIEWS}_archive"])
    assert problems == {
        "stray.md": ("is not named as memories in projects are; move or rename it", None),
        "x.md": ("is not named as memories in projects are; move or rename it", None),
        "plan.md": ("lies in no layer and is not read; memories are in projects, skills, commands, agents", None),
        "a.md": ("lies in no layer and is not read; memories are in projects, skills, commands, agents", None),
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
        Draft("T", title="…", fields={"project": "p"}),
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
