"""What layers report: staleness, search, validation."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import tree
from layer_samples import OVERVIEW, PROFILE, STAMP, entry, place
from layer_samples import clock as clock
from layer_samples import filled as filled
from layer_samples import store as store
from memlane.core.errors import InvalidInput, NotFound
from memlane.lanes.layers import search
from memlane.lanes.layers.store import MemoryStore

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


def test_search_reads_the_files_beside_the_layers_too(store: MemoryStore) -> None:
    """S004-39: all but index.md, in a store with the files that say how it is kept."""
    for name in ("index", "lifecycle", "quality_guidance", "README", "drafts/deep/idea"):
        place(store, f"{name}.md", "needle\n")
    place(store, "projects/a/x.md", "needle\n")
    assert [match["id"] for match in store.search("needle")["matches"]] == [
        "README", "lifecycle", "quality_guidance", "drafts/deep/idea", "shared-project/a/x",
    ]  # fmt: skip
    assert [match["id"] for match in store.search("needle", project_name="a")["matches"]] == ["shared-project/a/x"]


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
    monkeypatch.setattr(search, "MAX_SECONDS", 0.5)
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
