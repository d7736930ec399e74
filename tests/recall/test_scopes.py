"""Scopes: what is stored under one can be recalled under it, in every lane, and an unknown one is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane import Bank, InvalidInput
from memlane.recall.blocks import Block


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def fill(bank: Bank) -> dict[str, str]:
    """A memory about herons in every lane, by what it is called below."""
    return {
        name: bank.add(f"Herons, says {name}.", **options).id  # type: ignore[arg-type]
        for name, options in {
            "plain note": {"title": "Plain"},
            "alice's note": {"title": "Alice", "scope": "user:alice"},
            "bob's note": {"title": "Bob", "scope": "user:bob"},
            "alice's fact": {"lane": "vault", "scope": "user:alice", "type": "bio"},
            "bob's fact": {"lane": "vault", "scope": "user:bob", "type": "bio"},
            "shared fact": {"lane": "vault", "type": "bio"},
            "global record": {"lane": "records", "tags": ["herons"]},
            "area record": {"lane": "records", "tags": ["herons"], "scope": "area:birds"},
            "herons entry": {"lane": "topics", "scope": "birds/herons", "title": "E"},
            "gulls entry": {"lane": "topics", "scope": "birds/gulls", "title": "O"},
            "layer": {"lane": "layers", "type": "known_issues", "project": "p"},
        }.items()
    }


def considered(block: Block) -> set[str]:
    """What a block shows, or leaves out because others fit better."""
    return {memory.id for memory in block.memories} | {item.id for item in block.left_out}


PLACES = {"herons entry", "gulls entry", "layer"}
EVERYWHERE = {"plain note", "global record"}


@pytest.mark.parametrize(
    ("scopes", "seen"),
    [
        ("user:alice", {"alice's note", "alice's fact", *EVERYWHERE, *PLACES}),
        ("User:Alice", {"alice's note", "alice's fact", *EVERYWHERE, *PLACES}),
        (["user:bob", "shared"], {"bob's note", "bob's fact", "shared fact", *EVERYWHERE, *PLACES}),
        ("area:birds", {"area record", *EVERYWHERE, *PLACES}),
        ("birds/herons", {"herons entry", "layer", *EVERYWHERE}),
        (["user:alice", "birds/herons"], {"alice's note", "alice's fact", "herons entry", "layer", *EVERYWHERE}),
        ("shared-project", {*EVERYWHERE, *PLACES}),
        ("global", {*EVERYWHERE, *PLACES}),
    ],
)
def test_a_scope_leaves_out_what_is_in_others(
    bank: Bank, tmp_path: Path, scopes: str | list[str], seen: set[str]
) -> None:
    ids = fill(bank)
    expected = {ids[name] for name in seen}
    assert {hit.memory.id for hit in bank.search("herons", 50, scope=scopes)} == expected
    block = bank.context("herons", 10_000, scopes=scopes)
    assert considered(block) == expected
    with Bank.open(tmp_path, hook__records=True) as start:
        assert considered(start.snapshot(scopes, recent=50)) == {id for id in expected if not id.startswith("layers:")}


def test_the_profile_shows_every_scope_unless_it_names_some(tmp_path: Path, bank: Bank) -> None:
    ids = fill(bank)
    assert considered(bank.context("herons", 10_000)) == set(ids.values())
    alice = Bank.open(tmp_path, profile__scopes=["user:alice", "user:nobody-yet"])
    assert considered(alice.context("herons", 10_000)) == {
        ids[name] for name in {"alice's note", "alice's fact", *EVERYWHERE, *PLACES}
    }
    assert ids["bob's fact"] not in alice.snapshot()
    assert ids["alice's fact"] in alice.snapshot()


def test_an_unknown_scope_is_an_error_that_names_the_known_ones(bank: Bank) -> None:
    fill(bank)
    for ask in (
        lambda: bank.search("herons", scope="user:carol"),
        lambda: bank.context("herons", scopes=["user:alice", "user:carol"]),
        lambda: bank.snapshot("user:carol"),
        lambda: bank.list(scope="user:carol"),
    ):
        with pytest.raises(InvalidInput) as caught:
            ask()  # type: ignore[no-untyped-call]
        assert str(caught.value) == "There is no scope 'user:carol' here."
        assert caught.value.hint == (
            "Use one of: shared, global, area:birds, user:alice, user:bob, birds/gulls, birds/herons, shared-project."
        )
    assert bank.search("herons", scope="shared") != []


def test_a_list_has_exactly_one_scope(bank: Bank) -> None:
    ids = fill(bank)
    assert {memory.id for memory in bank.list(scope="user:alice")} == {ids["alice's note"], ids["alice's fact"]}
    assert [memory.id for memory in bank.list(scope="AREA:birds", limit=5)] == [ids["area record"]]


def test_a_bank_takes_any_scope_name_unless_some_are_configured(tmp_path: Path, bank: Bank) -> None:
    assert bank.add("Paints at night.", lane="vault", scope="agent:Reviewer").scope == "agent:reviewer"
    assert bank.vault.vault_stats()["by_scope"] == {"agent:reviewer": 1}
    assert bank.problems() == []
    closed = Bank.open(tmp_path, vault__scopes=["team", "ada"])
    with pytest.raises(ValueError, match="no such scope"):
        closed.add("Reads at noon.", lane="vault", scope="shared")
    assert closed.add("Reads at noon.", lane="vault").scope == "team"


@pytest.mark.parametrize("scope", ["", " a", "a ", "a,b", "a\nb", "a\u2028b", "x" * 201, 5])
def test_a_scope_that_is_no_name_is_refused(bank: Bank, scope: str) -> None:
    with pytest.raises(InvalidInput, match="A scope is a name"):
        bank.add("Something to remember.", scope=scope)
    memory = bank.add("Something to remember.")
    with pytest.raises(InvalidInput, match="A scope is a name"):
        bank.update(memory.id, scope=scope)


def test_a_scope_that_ends_with_a_star_stands_for_all_that_begin_like_it(bank: Bank) -> None:
    for scope in ("team/alice", "team/alice/work", "team/alice/home/garden", "team/alicea/x", "Team/alice/work", None):
        bank.add(f"Herons, says {scope}.", title=f"{scope}", scope=scope)

    def listed(scope: str | list[str]) -> list[str]:
        return sorted(str(memory.scope) for memory in bank.list(scope=scope))

    def found(scope: str | list[str]) -> list[str]:
        return sorted(str(hit.memory.scope) for hit in bank.search("herons", 10, scope=scope))

    below = ["team/alice/home/garden", "team/alice/work"]
    assert listed("team/alice/*") == below
    assert listed(["team/alice", "team/alice/*"]) == ["team/alice", *below]
    assert listed("team/alice") == ["team/alice"]
    assert listed("team/alice*") == ["team/alice", *below, "team/alicea/x"]
    assert listed("team/bob/*") == []
    assert found("team/alice/*") == ["None", *below]
    assert found("team/bob/*") == ["None"]
    block = bank.context("what of herons?", scopes="team/alice/*")
    assert {memory.scope for memory in block.memories} <= {None, *below}


def test_a_star_narrows_topics_as_a_name_does(bank: Bank) -> None:
    ids = fill(bank)
    assert [memory.id for memory in bank.list(scope="birds/he*")] == [ids["herons entry"]]
    found = {hit.memory.id for hit in bank.search("herons", 20, scope="birds/he*")}
    assert (ids["herons entry"] in found, ids["gulls entry"] in found) == (True, False)


def test_context_takes_scope_as_search_and_list_do(bank: Bank) -> None:
    fill(bank)
    told = bank.context("herons", scope="user:alice")
    assert told == bank.context("herons", scopes="user:alice") != bank.context("herons")
    with pytest.raises(InvalidInput, match="both given"):
        bank.context("herons", scope="user:alice", scopes="user:bob")
