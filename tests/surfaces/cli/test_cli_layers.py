"""`memlane layers`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_layers_verbs(run: Run, bank: Bank) -> None:
    id = "shared-project/api/known_issues"
    made = run(
        "layers", "create", "### Bug\n**Status**: Resolved (2020-01-01)\n", "--project", "api", "--type", "known_issues"
    )
    assert made.json == {"id": id, "path": "projects/api/known_issues.md", "created": True}
    assert run("layers", "read", "--project", "api", "--type", "known_issues").json["staleness"] == "fresh"
    assert [item["action"] for item in run("layers", "prune", "--dry-run", "--json").json["steps"]] == ["remove"]
    assert run("layers", "append", id, "### Other\n**Status**: In Progress\n").json["pruned"] is True
    assert run("layers", "update", id, "# Issues\n").json["updated"] is True
    assert [entry["id"] for entry in run("layers", "project", "api", "--json").json] == [id]
    assert [entry["id"] for entry in run("layers", "stale", "--json").json["fresh"]] == [id]
    assert run("layers", "validate", id).json["id"] == id
    assert len(run("layers", "search", "Issues", "--json").json["matches"]) == 1
    assert run("layers", "read", "--project", "api", "--type", "gone").code == 3
    assert run("layers", "search", "(").code == 2


def test_a_match_is_shown_between_its_lines(run: Run, bank: Bank) -> None:
    """S004-38"""
    run("layers", "create", "one\ntwo\nneedle\nfour\nfive\nsix", "--project", "api", "--type", "x")
    assert run("layers", "search", "needle").out == "\tone\n\ttwo\nprojects/api/x.md:5\tneedle\n\tfour\n\tfive\n"


def test_the_topics_are_listed_and_loaded_by_their_first_name(run: Run, bank: Bank) -> None:
    run("topics", "store", "auth/oauth2", "Refresh fails.", "--date", "2025-01-10")
    assert run("topics", "list").out == "auth/oauth2\t1\t2025-01-10\n"
    assert "Refresh fails." in run("topics", "load", "auth").out
    assert run("topics", "load", "nothing").err == "nothing is stored there; `memlane topics list` shows the topics\n"
