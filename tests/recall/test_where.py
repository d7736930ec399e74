"""Filters on the fields of memories: the same answer from the index, from the files, and before the cut."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import Bank
from memlane.core.errors import InvalidInput
from memlane.core.model import Memory
from memlane.core.where import fits_where, where_given
from memlane.index import database, fields

PEOPLE: dict[str, dict[str, Any]] = {
    "ann": {"user": {"level": 1, "team": "shop"}, "topics": ["db", "api"], "active": True},
    "bob": {"user": {"level": 3, "team": "web"}, "topics": [], "since": date(2025, 1, 15)},
    "cem": {"user": {"level": 5.5, "team": "Shop"}, "active": False, "note": None},
    "dot": {"user.level": 9, "level": "3"},
    "eve": {},
}


@pytest.fixture
def people(bank: Bank) -> Bank:
    for name, extra in PEOPLE.items():
        bank.add(f"{name} likes tea in the morning.", title=name, extra=extra)
    return bank


CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ann bob cem dot eve"),
    ({"user.team": "shop"}, "ann"),
    ({"user": {"team": "shop"}}, "ann"),
    ({"user.level": 3}, "bob"),
    ({"user.level": {"$eq": 3.0}}, "bob"),
    ({"user.level": {"$gte": 3}}, "bob cem dot"),
    ({"user.level": {"$gt": 3, "$lt": 9}}, "cem"),
    ({"user.level": {"$lte": 3}}, "ann bob"),
    ({"user.level": {"$ne": 3}}, "ann cem dot eve"),
    ({"user.level": {"$gte": "a"}}, ""),
    ({"user.team": {"$gte": "shop"}}, "ann bob"),
    ({"user.team": {"$in": ["shop", "web", 7]}}, "ann bob"),
    ({"user.team": {"$in": []}}, ""),
    ({"user.team": {"$exists": True}, "active": {"$exists": False}}, "bob"),
    ({"active": True}, "ann"),
    ({"active": False}, "cem"),
    ({"topics": "db"}, "ann"),
    ({"topics": ["db", "api"]}, "ann"),
    ({"topics": ["api", "db"]}, ""),
    ({"topics": []}, "bob"),
    ({"topics": {"$ne": "db"}}, "bob cem dot eve"),
    ({"note": None}, "ann bob cem dot eve"),
    ({"active": None}, "bob dot eve"),
    ({"active": {"$ne": None}}, "ann cem"),
    ({"note": {"$exists": True}}, "cem"),
    ({"since": {"$lt": datetime(2025, 2, 1, tzinfo=UTC)}}, "bob"),
    ({"since": date(2025, 1, 15)}, "bob"),
    ({"level": 3}, ""),
    ({"level": "3"}, "dot"),
    ({"user.team": "shop", "active": False}, ""),
]


@pytest.mark.parametrize(("where", "names"), CASES, ids=[str(where) for where, _ in CASES])
def test_search_and_list_answer_the_same(people: Bank, where: dict[str, Any], names: str) -> None:
    wanted = names.split()
    assert sorted(hit.memory.title for hit in people.search("tea", 10, where=where)) == wanted
    assert sorted(memory.title for memory in people.list(where=where)) == wanted  # from the index
    assert sorted(memory.title for memory in people.list(where=where, limit=10)) == wanted
    (people.root / "indices" / "index.db").unlink()
    with Bank.open(people.root.parent) as fresh:
        assert sorted(memory.title for memory in fresh.list(where=where)) == wanted  # from the files


def test_it_is_a_filter_before_the_cut(people: Bank) -> None:
    for number in range(30):
        people.add(f"Tea number {number}: tea, tea and tea in the morning.", title=f"Tea {number}")
    assert [hit.memory.title for hit in people.search("tea tea tea", 1, where={"user.level": {"$gte": 9}})] == ["dot"]
    assert [memory.title for memory in people.list(limit=1, where={"user.team": "web"})] == ["bob"]
    block = people.context("who likes tea?", where={"user.team": "web"})
    assert [memory.title for memory in block.memories] == ["bob"]


def test_what_is_changed_deleted_or_written_by_hand_counts_at_once(people: Bank) -> None:
    def found() -> list[str]:
        hits = [hit.memory.title for hit in people.search("tea", 10, where={"user.team": "shop"})]
        assert sorted(hits) == sorted(memory.title for memory in people.list(limit=10, where={"user.team": "shop"}))
        return sorted(hits)

    people.update("notes:bob", extra={"user": {"team": "shop"}})
    assert found() == ["ann", "bob"]
    people.delete("notes:ann")
    assert found() == ["bob"]
    people.get("notes:eve").path.write_text("---\nuser:\n  team: shop\n---\n# eve\n\nLikes tea.\n")
    assert found() == ["bob", "eve"]
    people.put("eve", "Likes tea no more.", title="eve")
    assert found() == ["bob"]


def test_other_lanes_have_fields_as_well(bank: Bank) -> None:
    canon = bank.add("The mission is tea.", lane="vault", type="mission", scope="shared")
    register = bank.add(
        "We drink tea now.", lane="vault", type="state", scope="shared", tier="register", topic_id="now"
    )
    assert [memory.id for memory in bank.list(where={"tier": "canon"})] == [canon.id]
    assert [hit.memory.id for hit in bank.search("tea", where={"tier": {"$ne": "canon"}})] == [register.id]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"level": {"$regex": "x"}}, "has an operator that there is not"),
        ({"level": {"$gte": 3, "other": 4}}, "has an operator that there is not"),
        ({"level": {"$in": "abc"}}, "is not a list"),
        ({"level": {"$exists": 1}}, "is not True or False"),
        ({"level": {"$gt": None}}, "compares numbers, text and dates"),
        ({"level": {"$gt": [1]}}, "compares numbers, text and dates"),
        ({"type": "plan"}, "type is not a field that where knows"),
        ({3: 4}, "is not a mapping from names"),
        (["level"], "is not a mapping from names"),
    ],
)
def test_what_cannot_be_asked_is_said(bank: Bank, where: Any, said: str) -> None:
    for ask in (bank.list, lambda **given: bank.search("x", **given), lambda **given: bank.context("x", **given)):
        with pytest.raises(InvalidInput, match=said):
            ask(where=where)


NAMES = st.sampled_from(["a", "b", "a.b", "c'\""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([0, 1, "1"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
ASKED = st.dictionaries(
    NAMES,
    SCALARS
    | st.lists(SCALARS, max_size=3)
    | st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), SCALARS, max_size=2)
    | st.fixed_dictionaries({"$in": st.lists(SCALARS, max_size=3)})
    | st.fixed_dictionaries({"$exists": st.booleans()}),
    max_size=3,
)


@given(extras=st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=4), asked=ASKED)
def test_the_index_and_python_agree(extras: list[dict[str, Any]], asked: dict[str, Any]) -> None:
    try:
        where = where_given(asked)
    except InvalidInput:
        return
    db = database.open_in_memory()
    memories = [Memory(f"notes:{n}", "notes", "", "", "", fields=extra) for n, extra in enumerate(extras)]
    for n, memory in enumerate(memories):
        db.execute("INSERT INTO shapes VALUES (?, '')", (n,))
        fields.add(db, n, memory)
    query, values = "SELECT n FROM shapes", []
    for at, (clause, wanted) in enumerate(fields.clauses(where)):
        query += f" {'AND' if at else 'WHERE'} {clause}"
        values += wanted
    found = {n for (n,) in db.execute(query, values)}
    db.close()
    assert found == {n for n, memory in enumerate(memories) if fits_where(where, memory.fields)}


def test_nothing_is_left_in_the_index_of_fields_that_are_gone(people: Bank) -> None:
    people.search("tea")
    people.put("ann", "Nothing more.", title="ann")
    people.delete("notes:bob")
    people.search("tea")
    keys = {key for (key,) in people.index._db.execute("SELECT DISTINCT key FROM fields")}
    assert keys == {"user.level", "user.team", "active", "note", "level"}


@pytest.mark.parametrize("where", [{"$and": [{"level": 3}]}, {"$or": []}, {"level": 3, "$eq": 3}])
def test_an_operator_is_no_field(bank: Bank, where: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="in the place of a field"):
        bank.list(where=where)
