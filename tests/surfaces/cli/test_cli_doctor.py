"""`memlane doctor --only`: one check by itself, and what goes with it."""

from __future__ import annotations

import pytest

from commands import Run
from memlane import Bank


def test_one_check_can_be_had_by_itself(run: Run, bank: Bank) -> None:
    run("add", "See [[memory:nothing]].", "--title", "a")
    (bank.root / "odd.md").write_text("---\ntype: poem\n---\nx")
    assert {one["check"] for one in run("doctor", "--json").json["findings"]} == {"links", "format"}
    assert [one["check"] for one in run("doctor", "--only", "links", "--json").json["findings"]] == ["links"]


def test_a_check_that_there_is_not_is_answered_with_the_nearest(run: Run, bank: Bank) -> None:
    result = run("doctor", "--only", "link")
    assert (result.code, result.err.splitlines()[1]) == (2, "next: Did you mean links?")


def test_the_index_is_made_anew(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "a")
    assert run("doctor", "--reindex", "--json").json == {"indexed": 1}


@pytest.mark.parametrize(
    "options",
    [
        ["notes:a"],
        ["--lane", "notes"],
        ["--history"],
        ["--only", "damage", "notes:a"],
        ["--only", "format", "--fix"],
        ["--only", "secrets", "--lane", "notes"],
        ["--only", "links", "--reindex"],
        ["--reindex", "--fix"],
    ],
)
def test_what_does_not_go_together_is_a_usage_error(run: Run, bank: Bank, options: list[str]) -> None:
    assert run("doctor", *options).code == 2
