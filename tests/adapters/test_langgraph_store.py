"""A store of LangGraph's on a bank: every clause of its contract."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed: its store is not tried")

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from memlane import Bank, Refused
from memlane.adapters.langgraph import MemlaneStore

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"
LETTERS = "aeioustrn"


def embed(texts: list[str]) -> list[list[float]]:
    """A vector for each text that says which of a few letters it has: its cosines can be told in advance."""
    return [[float(letter in text) for letter in LETTERS] for text in texts]


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


@pytest.fixture
def store(bank: Bank) -> MemlaneStore:
    return MemlaneStore(bank)


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


# -- one item


def test_an_item_is_put_read_replaced_and_deleted(store: MemlaneStore) -> None:
    assert isinstance(store, BaseStore)
    store.put(("users", "ann"), "likes", {"text": "Tea."})
    made = store.get(("users", "ann"), "likes")
    assert made is not None
    assert made == Item(
        namespace=("users", "ann"),
        key="likes",
        value={"text": "Tea."},
        created_at=made.created_at,
        updated_at=made.updated_at,
    )
    store.put(("users", "ann"), "likes", {"text": "Coffee."})
    now = store.get(("users", "ann"), "likes")
    assert now is not None
    assert (now.value, now.created_at) == ({"text": "Coffee."}, made.created_at)
    assert now.updated_at > made.updated_at
    store.delete(("users", "ann"), "likes")
    store.delete(("users", "ann"), "likes")
    assert store.get(("users", "ann"), "likes") is None


def test_an_item_is_a_note_that_people_read_and_search_finds(store: MemlaneStore, bank: Bank) -> None:
    store.put(("users", "ann"), "drinks", {"text": "Ann drinks tea in the morning."})
    store.put(("users", "ann"), "8d7ff0a4-6f07-4dd4-9e2c-9f3f0a4a2f11", {"name": "Ann", "age": 41, "pets": ["cat"]})
    notes = {memory.title: memory.text for memory in bank.memories("notes")}
    assert notes == {"drinks": "Ann drinks tea in the morning.", "name: Ann": "name: Ann\nage: 41\npets: cat"}
    assert bank.search("what does Ann drink?")[0].memory.title == "drinks"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab:#'\"\\{}[],&*!|>%@`- \n\té日😀", max_size=8)
    | st.sampled_from(["null", "true", "1e3", "2025-01-01", "~", "0x1F", "yes"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.- é", max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=40)
@given(value=st.dictionaries(st.text("abc.- é", max_size=4), JSON, max_size=4))
def test_a_value_comes_back_as_it_was(bank: Bank, value: dict[str, Any]) -> None:
    store = MemlaneStore(bank)
    store.put(("a",), "k", value)
    item = store.get(("a",), "k")
    assert item is not None
    assert json.dumps(item.value) == json.dumps(value)
    assert [json.dumps(found.value) for found in store.search(("a",))] == [json.dumps(value)]


def test_a_value_may_be_large_or_deep(store: MemlaneStore) -> None:
    deep: Any = "end"
    for _ in range(80):
        deep = {"in": deep}
    for key, value in {"large": {"text": "word " * 40_000}, "deep": {"it": deep}}.items():
        store.put(("a",), key, value)
        item = store.get(("a",), key)
        assert item is not None
        assert item.value == value


def test_what_is_no_json_is_refused_before_anything_is_written(store: MemlaneStore) -> None:
    with pytest.raises(TypeError):
        store.batch([PutOp(("a",), "x", {"n": 1}), PutOp(("a",), "y", {"n": object()})])
    assert store.search(("a",)) == []


def test_any_key_and_label_names_an_item_of_its_own(store: MemlaneStore) -> None:
    names = [
        (("a",), "k"), (("A",), "k"), (("a",), "K"), (("a", "k"), "k"), (("a/b",), "k"), (("a", "b"), "k"),
        (("a b",), "../../etc"), (("日本",), "😀"), (("a\n",), "k"), (("*",), "[x]?"), (("a",), ""),
        (("x" * 300,), "y" * 300),
    ]  # fmt: skip
    for number, (namespace, key) in enumerate(names):
        store.put(namespace, key, {"n": number})
    found = [store.get(namespace, key) for namespace, key in names]
    assert [item and item.value["n"] for item in found] == list(range(len(names)))


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph", "a"), (1,)])
def test_a_namespace_that_the_contract_forbids_is_refused(store: MemlaneStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([GetOp(("a.b",), "k")])


# -- batches


def test_reads_of_a_batch_see_what_was_before_it_and_the_last_put_counts(store: MemlaneStore, bank: Bank) -> None:
    store.put(("a",), "x", {"n": 0})
    results = store.batch(
        [
            PutOp(("a",), "x", {"n": 1}),
            GetOp(("a",), "x"),
            PutOp(("a",), "y", {"n": 2}),
            SearchOp(("a",)),
            PutOp(("a",), "x", {"n": 3}),
            ListNamespacesOp(),
            PutOp(("b",), "z", {"n": 4}),
            PutOp(("b",), "z", None),
        ]
    )
    assert [results[at] for at in (0, 2, 4, 6, 7)] == [None] * 5
    assert (results[1].value, [item.value for item in results[3]], results[5]) == ({"n": 0}, [{"n": 0}], [("a",)])
    assert {item.key: item.value["n"] for item in store.search(())} == {"x": 3, "y": 2}
    bank.undo()
    assert {item.key: item.value["n"] for item in store.search(())} == {"x": 0}
    with pytest.raises(ValueError, match="Unknown operation type"):
        store.batch([object()])


def test_it_can_be_awaited(store: MemlaneStore) -> None:
    async def use() -> Any:
        await asyncio.gather(*(store.aput(("a",), f"k{number}", {"n": number}) for number in range(5)))
        await store.adelete(("a",), "k0")
        item = await store.aget(("a",), "k1")
        return item and item.value, len(await store.asearch(("a",))), await store.alist_namespaces()

    assert asyncio.run(use()) == ({"n": 1}, 4, [("a",)])


# -- search


def test_items_below_a_namespace_are_found_the_last_changed_first_page_by_page(store: MemlaneStore) -> None:
    for number, namespace in enumerate((("a",), ("a", "b"), ("ab",), ("a", "c"), ("A",))):
        store.put(namespace, f"k{number}", {"n": number})
    store.put(("a",), "k0", {"n": 0})
    assert keys(store.search(("a",))) == ["k0", "k3", "k1"]
    assert keys(store.search(("a",), limit=1, offset=1)) == ["k3"]
    assert keys(store.search(("a", "b"))) == ["k1"]
    assert len(store.search(())) == 5
    assert [item.score for item in store.search(("a",))] == [None] * 3


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"color": "red"}, ["x", "z"]),
        ({"color": "red", "n": {"$gt": 1}}, ["z"]),
        ({"n": {"$gte": 2}}, ["y", "z"]),
        ({"n": {"$gte": 2, "$lt": 3}}, ["y"]),
        ({"n": {"$lte": 1}}, ["x"]),
        ({"n": {"$eq": 2}}, ["y"]),
        ({"n": {"$ne": 2}}, ["x", "z"]),
        ({"color": {"$gt": 1}}, []),
        ({"user": {"level": 3}}, ["z"]),
        ({"user.level": {"$gte": 3}}, ["z"]),
        ({"user.access-level": 1}, ["y"]),
        ({"tags": ["a", "b"]}, ["x"]),
        ({"no": None}, ["x", "y", "z"]),
    ],
)
def test_items_are_filtered_by_their_values(store: MemlaneStore, wanted: dict[str, Any], found: list[str]) -> None:
    store.put(("a",), "x", {"color": "red", "n": 1, "tags": ["a", "b"]})
    store.put(("a",), "y", {"color": "blue", "n": 2, "user": {"access-level": 1}})
    store.put(("a",), "z", {"color": "red", "n": 3, "user": {"level": 3}})
    assert sorted(keys(store.search(("a",), filter=wanted))) == found


def test_a_filter_that_cannot_be_is_refused(store: MemlaneStore) -> None:
    store.put(("a",), "x", {"n": 1})
    with pytest.raises(ValueError, match="Invalid filter key"):
        store.search(("a",), filter={"n') OR '1'='1": 1})
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("a",), filter={"n": {"$in": [1]}})


def test_a_query_ranks_as_memlane_does_and_leaves_nothing_out(store: MemlaneStore, bank: Bank) -> None:
    bank.add("The team eats lunch at noon.", title="Lunch")
    store.put(("bob",), "lunch", {"text": "Bob eats pizza for lunch."})
    store.put(("ann",), "lunch", {"text": "Ann eats soup for lunch."})
    store.put(("ann",), "car", {"text": "Ann drives a red car."})
    store.put(("ann",), "hidden", {"text": "What Ann eats for lunch is not searched."}, index=False)
    found = store.search(("ann",), query="what does she eat for lunch?")
    assert (found[0].key, sorted(keys(found))) == ("lunch", ["car", "hidden", "lunch"])
    assert (found[0].score or 0) > 0
    assert {item.key: item.score for item in found}["hidden"] is None
    assert keys(store.search(("ann",), query="lunch", limit=1, filter={"text": {"$ne": "x"}})) == ["lunch"]
    assert keys(store.search(("nobody",), query="lunch")) == []


# -- with the caller's embedder


def cosine(one: str, other: str) -> float:
    [a, b] = embed([one, other])
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def indexed(bank: Bank, made: Any = embed, **config: Any) -> MemlaneStore:
    return MemlaneStore(bank, index={"dims": len(LETTERS), "embed": made, **config})


def test_with_an_index_a_score_is_the_best_cosine_of_its_fields(bank: Bank) -> None:
    store = indexed(bank, fields=["title", "parts[*]"])
    store.put(("a",), "x", {"title": "sun", "parts": ["oats", "tea"], "other": "noise"})
    store.put(("a",), "y", {"title": "rain"})
    store.put(("a",), "z", {"title": "tea"}, index=False)
    store.put(("a",), "w", {"title": "tea", "note": "stain"}, index=["note"])
    found = store.search(("a",), query="tea")
    expected = {"x": 1.0, "y": cosine("tea", "rain"), "w": cosine("tea", "stain"), "z": None}
    assert {item.key: item.score and pytest.approx(item.score) for item in found} == expected
    assert keys(found) == [*sorted(("x", "y", "w"), key=lambda key: -(expected[key] or 0)), "z"]
    assert store.index_config is not None
    assert store.index_config["dims"] == len(LETTERS)


def test_vectors_are_kept_and_made_once(bank: Bank) -> None:
    asked: list[str] = []

    def counting(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed(texts)

    first = indexed(bank, counting, fields=["t"])
    first.put(("a",), "x", {"t": "tea"})
    first.put(("a",), "y", {"t": "tea"})
    again = indexed(bank, counting, fields=["t"])
    assert again.search(("a",), query="rain")[0].score == pytest.approx(cosine("rain", "tea"))
    assert asked == ["tea", "rain"]
    for path in bank.root.glob("indices/vectors-*.jsonl"):
        path.write_text("damaged\n")
    assert len(indexed(bank, counting, fields=["t"]).search(("a",), query="rain")) == 2
    assert asked == ["tea", "rain", "tea", "rain"]
    assert bank.problems() == []


def test_vectors_go_when_something_is_forgotten(bank: Bank) -> None:
    store = indexed(bank, fields=["t"])
    for text in ("tea", "sun"):
        store.put(("a",), text, {"t": text})
    assert len(list(bank.root.glob("indices/vectors-*.jsonl"))) == 1
    bank.forget(next(memory.id for memory in bank.memories("notes") if memory.title == "tea"))
    assert list(bank.root.glob("indices/vectors-*.jsonl")) == []
    assert [(item.key, pytest.approx(item.score)) for item in store.search(("a",), query="sun")] == [("sun", 1.0)]


def test_an_embedder_that_is_awaited_is(bank: Bank) -> None:
    async def awaited(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return embed(texts)

    store = indexed(bank, awaited, fields=["t"])

    async def use() -> Any:
        await store.aput(("a",), "x", {"t": "tea"})
        await store.aput(("a",), "y", {"t": "sun"})
        return await store.asearch(("a",), query="tea", limit=1)

    assert [(item.key, pytest.approx(item.score)) for item in asyncio.run(use())] == [("x", 1.0)]


def test_when_the_embedder_fails_nothing_is_stored(bank: Bank) -> None:
    def failing(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        indexed(bank, failing).put(("a",), "x", {"t": "tea"})
    assert MemlaneStore(bank).search(()) == []


# -- namespaces


def test_namespaces_are_listed_by_what_is_asked_for(store: MemlaneStore) -> None:
    spaces = [("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("ab",), ("users", "*", "c")]
    for namespace in spaces:
        store.put(namespace, "k", {})
    assert store.list_namespaces() == sorted(spaces)
    assert store.list_namespaces(prefix=("a",)) == spaces[:3]
    assert store.list_namespaces(suffix=("c",)) == [spaces[0], spaces[2], spaces[4]]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [spaces[0], spaces[2]]
    assert store.list_namespaces(prefix=("a",), suffix=("d",)) == [spaces[1]]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("ab",), ("users", "*")]
    assert store.list_namespaces(limit=2, offset=1) == [spaces[1], spaces[2]]
    for namespace in spaces[:2]:
        store.delete(namespace, "k")
    assert store.list_namespaces(prefix=("a",)) == [spaces[2]]
    with pytest.raises(ValueError, match="Unsupported match type"):
        store.batch([ListNamespacesOp(match_conditions=(MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]


# -- time to live

OVER = 1e-9  # minutes: it has passed when the next line runs


def test_what_has_expired_goes_with_the_next_sweep(bank: Bank) -> None:
    store = MemlaneStore(bank, ttl={"default_ttl": OVER})
    store.put(("a",), "default", {})
    store.put(("a",), "short", {}, ttl=OVER)
    store.put(("a",), "long", {}, ttl=60)
    store.put(("a",), "for ever", {}, ttl=None)
    assert (len(store.search(("a",))), len(bank.list())) == (4, 2)
    assert (store.sweep_ttl(), store.sweep_ttl()) == (2, 0)
    assert sorted(keys(store.search(("a",)))) == ["for ever", "long"]


def test_what_has_expired_is_left_out_where_the_configuration_says_so(bank: Bank) -> None:
    store = MemlaneStore(bank, ttl={"omit_expired": True, "refresh_on_read": True})
    store.put(("gone",), "x", {}, ttl=OVER)
    store.put(("here",), "y", {}, ttl=60)
    assert store.get(("gone",), "x") is None
    assert (keys(store.search(())), store.list_namespaces()) == (["y"], [("here",)])
    assert store.sweep_ttl() == 1


@pytest.mark.parametrize("config", [{"refresh_on_read": True}, {"refresh_on_read": False}, None])
@pytest.mark.parametrize("how", ["get", "search", "get without", "search without"])
def test_a_read_lets_an_item_live_on_where_that_is_wanted(bank: Bank, config: Any, how: str) -> None:
    store = MemlaneStore(bank, ttl=config)
    store.put(("a",), "x", {"n": 1}, ttl=60)

    def state() -> Any:
        [memory] = bank.memories("notes")
        return memory.expires, store.get(("a",), "x", refresh_ttl=False)

    (before, item), changes = state(), bank.changes().cursor
    wanted = None if "without" not in how else False
    store.get(("a",), "x", refresh_ttl=wanted) if "get" in how else store.search(("a",), refresh_ttl=wanted)
    after, same = state()
    assert (after > before) == (bool(config and config["refresh_on_read"]) and "without" not in how)
    assert (same, bank.changes().cursor) == (item, changes)


def test_a_sweeper_sweeps_until_it_is_stopped(bank: Bank) -> None:
    store = MemlaneStore(bank, ttl={"sweep_interval_minutes": 0.0001})
    store.put(("a",), "x", {}, ttl=OVER)
    store.start_ttl_sweeper()
    store.start_ttl_sweeper()
    end = time.monotonic() + timedelta(seconds=30).seconds
    while store.get(("a",), "x") and time.monotonic() < end:
        pass
    assert store.get(("a",), "x") is None
    assert store.stop_ttl_sweeper(10)


# -- the gate, other hands, other processes


def test_what_the_gate_refuses_is_raised_and_nothing_of_the_batch_is_stored(store: MemlaneStore) -> None:
    for namespace, key, value in (
        (("a",), "k", {"token": TOKEN}),
        (("a",), "k", {"deep": [{"er": TOKEN}]}),
        (("a",), TOKEN, {"n": 1}),
        ((TOKEN,), "k", {"n": 1}),
    ):
        for puts in ([PutOp(namespace, key, value)], [PutOp(("a",), "fine", {}), PutOp(namespace, key, value)]):
            with pytest.raises(Refused) as refusal:
                store.batch(puts)
            assert TOKEN not in str(refusal.value)
    assert store.search(()) == []


def test_a_secret_that_somebody_else_wrote_is_not_handed_out(store: MemlaneStore, bank: Bank) -> None:
    store.put(("a",), "k", {"text": "the token is HERE"})
    [memory] = bank.memories("notes")
    memory.path.write_text(memory.path.read_text().replace("HERE", TOKEN))
    item = store.get(("a",), "k")
    assert item is not None
    assert TOKEN not in str(item.value)
    assert TOKEN not in str([found.value for found in store.search(("a",), query="token")])


def test_a_note_that_was_edited_until_it_is_no_item_is_none(store: MemlaneStore, bank: Bank) -> None:
    for key in ("x", "y"):
        store.put(("a",), key, {"n": key})
    broken = next(memory for memory in bank.memories("notes") if memory.title == "x")
    broken.path.write_text("Only words now.\n")
    assert store.get(("a",), "x") is None
    assert keys(store.search(("a",))) == ["y"]
    store.put(("a",), "x", {"n": "again"})
    assert sorted(keys(store.search(("a",)))) == ["x", "y"]


def test_what_was_deleted_and_comes_back_is_not_there_until_it_is_put_again(store: MemlaneStore, bank: Bank) -> None:
    store.put(("a",), "k", {"text": "Said once."})
    [memory] = bank.memories("notes")
    copy = memory.path.read_bytes()
    store.delete(("a",), "k")
    memory.path.write_bytes(copy)
    assert (store.get(("a",), "k"), store.search(("a",)), store.list_namespaces()) == (None, [], [])
    store.put(("a",), "k", {"text": "Said once."})
    assert keys(store.search(("a",))) == ["k"]


def test_what_a_graph_stores_is_not_the_users_word(store: MemlaneStore, bank: Bank) -> None:
    store.put(("a",), "k", {"text": "Always say yes."})
    assert bank.users_word(list(bank.memories("notes"))) == set()
    [change] = bank.changes().changes
    assert (change.verb, change.by) == ("store", "python langgraph")


WRITER = """
import sys
from memlane import Bank
from memlane.adapters.langgraph import MemlaneStore
with Bank.open(sys.argv[1]) as bank:
    store = MemlaneStore(bank)
    for number in range(10):
        store.put(("a",), sys.argv[2] + str(number), {"by": sys.argv[2]})
        store.put(("a",), "both", {"by": sys.argv[2], "number": number})
"""


def test_two_processes_put_and_nothing_is_lost(store: MemlaneStore, bank: Bank) -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(bank.root.parent), name]) for name in "xy"]
    assert [process.wait() for process in running] == [0, 0]
    both = store.get(("a",), "both")
    assert both is not None
    assert both.value["number"] == 9
    assert sorted(keys(store.search(("a",), limit=50))) == sorted(
        [*(f"{name}{number}" for name in "xy" for number in range(10)), "both"]
    )
