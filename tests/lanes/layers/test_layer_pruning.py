"""Pruning layers: what is archived, copied to the trash, or flagged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Clock, tree
from layer_samples import COPY, ISSUES, REVIEWS, STAMP, entry, memories, place, review, reviews
from layer_samples import clock as clock
from layer_samples import store as store
from memlane.core.errors import InvalidInput, StorageError
from memlane.lanes.layers.entries import path_of
from memlane.lanes.layers.store import MemoryStore


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
        for name in ([path_of(item["id"])] + [path_of(item["id"] + "_archive")] * (item["action"] == "archived"))
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


def test_pruning_makes_no_stale_memory_fresh(store: MemoryStore, clock: Clock) -> None:
    """S004-44, S004-48: a review history gets a new date, as the seed says, and nothing else does."""
    sessions = "".join(f"## Session {number}\nAll passed.\n" for number in range(1, 17))
    results = "skill-specific/python-code-review/my-api/test_results_history"
    store.create(entry(ISSUES, "### Old bug\n**Status**: Investigating (2025-10-15)\n"))
    store.create(entry(results, sessions))
    store.create(entry(REVIEWS, reviews(1, 13)))
    clock.advance(days=200)
    done = store.prune()["pruned"]
    assert [item["action"] for item in done] == ["flagged", "archived", "archived"]
    report = store.get_staleness_report()
    assert [item["id"] for item in report["fresh"]] == [REVIEWS, f"{REVIEWS}_archive"]
    assert [item["id"] for item in report["stale"]] == [ISSUES, results, f"{results}_archive"]


def test_the_bank_hears_of_length_and_pruning(store: MemoryStore) -> None:
    store.create(entry(REVIEWS, reviews(1, 10)))
    moved = "archived: 1 review beyond the 10 most recent moved to review_history_archive"
    assert store.extend(REVIEWS, review(11)).remarks == (moved,)
    long = "310 lines, over 300: Archive older entries."
    assert store.revise(REVIEWS, {"text": "a line\n" * 308}).remarks == (long,)
