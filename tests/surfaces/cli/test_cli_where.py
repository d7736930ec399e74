"""`--where` on the command line: conditions on fields."""

from __future__ import annotations

import pytest

from commands import Run
from memlane import Bank


@pytest.fixture
def people(bank: Bank, run: Run) -> Run:
    run("add", "Ann likes tea.", "--title", "ann", "--extra", "level=3", "--extra", "team=shop")
    run("add", "Bob drinks coffee, and tea on Sundays.", "--title", "bob", "--extra", "level=7", "--extra", "code=07")
    bank.add("Cem has tea with his breakfast.", title="cem", extra={"level": "3", "user": {"vip": True}})
    return run


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["level>=3"], "ann bob"),
        (["level > 3"], "bob"),
        (["level=3"], "ann cem"),
        (['level="3"'], "cem"),
        (["level!=3"], "bob cem"),
        (["level>=3", "level<7"], "ann"),
        (["team"], "ann"),
        (["team=shop", "level<=3"], "ann"),
        (["code=07"], "bob"),
        (["user.vip=true"], "cem"),
    ],
)
def test_conditions(people: Run, conditions: list[str], names: str) -> None:
    options = [word for condition in conditions for word in ("--where", condition)]
    assert sorted(memory["title"] for memory in people("list", *options, "--json").json) == names.split()
    assert sorted(hit["memory"]["title"] for hit in people("search", "tea", *options, "--json").json) == names.split()
    assert sorted(memory["title"] for memory in people("export", *options, "--json").json) == names.split()


@pytest.mark.parametrize("condition", ["", "<3", "level<>3", "level==3", "=x"])
def test_what_is_no_condition_is_said(people: Run, condition: str) -> None:
    done = people("list", "--where", condition)
    assert (done.code, done.out) == (2, "")
    assert "write it like topic=deploys, level>=3 or topic" in done.err


def test_one_thing_is_asked_once(people: Run) -> None:
    assert "one thing of one field twice" in people("list", "--where", "level=3", "--where", "level=4").err


def test_a_block_takes_them_too(people: Run) -> None:
    block = people("context", "who likes tea?", "--where", "team=shop", "--json").json
    assert block["ids"] == ["notes:ann"]
    assert people("context", "--where", "team=shop").code == 2
