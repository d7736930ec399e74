"""The side file with statistics of use: damage, folding, earlier versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from layer_samples import PROFILE, STAMP, entry, ids, memories, place
from layer_samples import clock as clock
from layer_samples import filled as filled
from layer_samples import store as store
from memlane.core.model import Problem
from memlane.disk import files
from memlane.lanes import scan
from memlane.lanes.layers import usage
from memlane.lanes.layers.store import MemoryStore

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
    monkeypatch.setattr(usage, "FOLD_BYTES", 1000)
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
    monkeypatch.setattr(usage, "FOLD_BYTES", 10)
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


def test_a_writer_that_is_killed_when_its_file_is_there_has_noted_its_date(store: MemoryStore) -> None:
    """Whoever indexed the file at that moment would not see that its date comes later: the file stays as it is."""
    code = (
        "import os, sys; from memlane import MemoryStore; linked = []\n"
        "def kill(event, args):\n"
        "    if linked: os._exit(9)\n"
        "    linked.extend(args[1:2] if event == 'os.link' else [])\n"
        "store = MemoryStore(sys.argv[1])\n"
        "sys.addaudithook(kill)\n"
        "store.upsert('shared-project/my-api/project_profile', 'It is written in Go.'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(store.root)]).returncode == 9
    found = store.get(PROFILE, counted=False)
    assert found is not None
    assert found.updated_at is not None
    assert found.created_at == found.updated_at
