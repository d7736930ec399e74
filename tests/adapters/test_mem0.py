"""mem0's verbs over a bank: alone, and side by side with mem0 itself run with `infer=False`, where it is installed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memlane import Bank, InvalidInput, Refused
from memlane.adapters.mem0 import Memory

SESSION = ("user_id", "agent_id", "run_id")
TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    (tmp_path / "project").mkdir()
    with Bank.init(tmp_path / "project") as bank:
        yield bank


@pytest.fixture
def memory(bank: Bank) -> Memory:
    return Memory(bank)


def texts(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [item["memory"] for item in found["results"]]


def test_what_is_added_is_found_by_its_user_alone(memory: Memory) -> None:
    memory.add("Likes green tea", user_id="alice")
    memory.add("Likes black tea", user_id="bob")
    assert texts(memory.search("which tea?", filters={"user_id": "alice"})) == ["Likes green tea"]
    assert texts(memory.get_all(filters={"user_id": "bob"})) == ["Likes black tea"]
    assert texts(memory.search("which tea?", filters={"user_id": "carol"})) == []


def test_a_memory_is_a_note_that_people_and_other_agents_read(bank: Bank, memory: Memory) -> None:
    [added] = memory.add("Likes green tea", user_id="alice", metadata={"topic": "drinks"})["results"]
    note = bank.get(f"notes:mem0/{added['id']}")
    assert note.text == "Likes green tea"
    assert (note.fields["user_id"], note.fields["metadata"]) == ("alice", {"topic": "drinks"})
    assert [hit.memory.id for hit in bank.search("green tea")] == [note.id]


def test_filters_apply_before_the_cut(memory: Memory) -> None:
    for number in range(80):
        memory.add(f"Tea note {number}", user_id="alice", metadata={"number": number})
    found = memory.search("tea note", filters={"user_id": "alice", "number": {"gte": 78}}, top_k=5, threshold=0)
    assert sorted(texts(found)) == ["Tea note 78", "Tea note 79"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"n": 2}, "2"),
        ({"n": {"gt": 1, "lt": 3}}, "2"),
        ({"n": {"in": [1, 3]}}, "13"),
        ({"n": {"nin": [1, 3]}}, "2"),
        ({"n": {"ne": 1}}, "23"),
        ({"word": {"contains": "Tw"}}, "2"),
        ({"word": {"icontains": "tw"}}, "2"),
        ({"word": "*"}, "123"),
        ({"OR": [{"n": 1}, {"word": "Three"}]}, "13"),
        ({"AND": [{"n": {"gte": 2}}, {"n": {"lte": 2}}]}, "2"),
        ({"NOT": [{"n": 1}]}, "23"),
        ({"n": {"gt": "text"}}, ""),
    ],
)
def test_filters_on_metadata(memory: Memory, filters: dict[str, Any], expected: str) -> None:
    for number, word in enumerate(("One", "Two", "Three"), 1):
        memory.add(f"{number}", user_id="alice", metadata={"n": number, "word": word})
    found = memory.get_all(filters={"user_id": "alice", **filters})
    assert "".join(sorted(texts(found))) == expected


def test_history_tells_what_became_of_a_memory(memory: Memory) -> None:
    [added] = memory.add([{"role": "user", "content": "In Oslo", "name": "alice"}], user_id="a")["results"]
    memory.update(added["id"], "In Bergen")
    memory.delete(added["id"])
    events = [
        {key: event[key] for key in ("event", "old_memory", "new_memory", "is_deleted", "role", "actor_id")}
        for event in memory.history(added["id"])
    ]
    who = {"role": "user", "actor_id": "alice"}
    assert events == [
        {"event": "ADD", "old_memory": None, "new_memory": "In Oslo", "is_deleted": False, **who},
        {"event": "UPDATE", "old_memory": "In Oslo", "new_memory": "In Bergen", "is_deleted": False, **who},
        {"event": "DELETE", "old_memory": "In Bergen", "new_memory": None, "is_deleted": True, **who},
    ]
    assert memory.history("nothing") == []


def test_reset_leaves_the_banks_other_memories(bank: Bank, memory: Memory) -> None:
    bank.add("Deploys go out on Tuesdays.", extra={"user_id": "alice"})
    memory.add("Likes tea", user_id="alice")
    memory.delete_all(user_id="alice")
    memory.add("Likes tea", user_id="alice")
    memory.reset()
    assert [note.text for note in bank.list()] == ["Deploys go out on Tuesdays."]


def test_a_secret_is_refused_and_a_mistake_said(memory: Memory) -> None:
    with pytest.raises(Refused):
        memory.add(f"The token is {TOKEN}", user_id="alice")
    for wrong in (
        lambda: memory.add("x"),
        lambda: memory.add("x", user_id="a b"),
        lambda: memory.add(3, user_id="a"),  # type: ignore[arg-type]
        lambda: memory.add([{"content": "x"}], user_id="a"),
        lambda: memory.add("x", user_id="a", expiration_date="soon"),
        lambda: memory.search("x", user_id="a"),
        lambda: memory.search("x", filters={"topic": "y"}),
        lambda: memory.search(" ", filters={"user_id": "a"}),
        lambda: memory.search("x", filters={"user_id": "a"}, threshold=2),
        lambda: memory.get_all(filters={"user_id": "a"}, top_k=-1),
        lambda: memory.update("nothing", "x"),
        lambda: memory.update("nothing"),
        lambda: memory.delete("nothing"),
        lambda: memory.delete_all(),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    assert memory.get("nothing") is None


# -- side by side


class _Words:
    """An encoder for mem0 without a download: which words a text has."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = [0.0] * 64
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % 64] += 1.0
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


@pytest.fixture
def mem0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in (("MEM0_TELEMETRY", "False"), ("MEM0_DIR", str(tmp_path)), ("OPENAI_API_KEY", "none")):
        monkeypatch.setenv(name, value)
    mem0 = pytest.importorskip("mem0", reason="mem0ai is not installed: its facade is not compared with it")
    config = {
        "vector_store": {"provider": "qdrant", "config": {"path": str(tmp_path / "q"), "embedding_model_dims": 64}},
        "history_db_path": os.fspath(tmp_path / "history.db"),
    }
    theirs = mem0.Memory.from_config(config)
    theirs.embedding_model = _Words()
    yield theirs
    theirs.close()


def story(memory: Any) -> Iterator[Any]:
    """What a program does with a memory; each answer without what chance or the clock puts into it."""
    ids: dict[str, str] = {}
    tomorrow, yesterday = (datetime.now(UTC) + timedelta(days=days) for days in (1, -1))

    def plain(item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        known = {id: name for name, id in ids.items()}
        return {
            key: known.get(value, "?") if key in ("id", "memory_id") else value
            for key, value in item.items()
            if key not in ("created_at", "updated_at", "score", "expiration_date")
            and (key, value) != ("metadata", None)
        }

    def add(name: str, *args: Any, **ids_and_more: Any) -> list[Any]:
        results = memory.add(*args, infer=False, **ids_and_more)["results"]
        ids.update({f"{name}{number}": result["id"] for number, result in enumerate(results)})
        return list(map(plain, results))

    def listed(**filters: Any) -> list[Any]:
        return sorted(map(plain, memory.get_all(filters=filters)["results"]), key=str)

    def found(query: str, **filters: Any) -> list[Any]:
        answer = memory.search(query, filters=filters, threshold=0.05)["results"]
        assert all("score" in item for item in answer)
        return [plain(item) for item in answer[:1]]

    def failed(call: Any) -> bool:
        try:
            call()
        except Exception as error:
            return isinstance(error, ValueError) or "Validation" in type(error).__name__
        return False

    yield add("tea", "Alice likes green tea", user_id="alice", metadata={"topic": "drinks", "n": 1})
    yield add("city", "Alice lives in Oslo", user_id="alice", agent_id="guide", metadata={"topic": "place", "n": 2})
    yield add("bob", {"role": "user", "content": "Bob plays chess", "name": "bob"}, user_id="bob", run_id="r1")
    turns = [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": "Book a table"},
        {"role": "assistant", "content": "Done: seven o'clock"},
    ]
    yield add("turn", turns, agent_id="guide", run_id=" r2 ")
    yield add("old", "Expired offer", user_id="alice", expiration_date=yesterday.date())
    yield add("new", "Standing offer", user_id="alice", expiration_date=tomorrow.date().isoformat())
    yield add("whose", "Stays Alice's", user_id="alice", metadata={"user_id": "eve", "topic": "drinks"})
    yield [listed(user_id="alice"), listed(agent_id="guide"), listed(run_id="r2"), listed(user_id="alice", n=2)]
    yield listed(user_id="alice", agent_id="guide")
    yield len(memory.get_all(filters={"user_id": "alice"}, top_k=2)["results"])
    yield len(memory.get_all(filters={"user_id": "alice"}, show_expired=True)["results"])
    yield [found("green tea", user_id="alice"), found("plays chess", user_id="bob"), found("chess", user_id="nobody")]
    yield found("lives in Oslo", user_id="alice", topic={"in": ["place"]})
    yield found("Alice likes green tea", user_id="alice", OR=[{"n": 2}, {"n": 5}])
    yield plain(memory.get(ids["tea0"]))
    yield memory.update(ids["tea0"], "Alice likes black tea", metadata={"n": 3, "user_id": "eve"})
    yield memory.update(ids["city0"], metadata={"sure": True})
    yield [plain(memory.get(ids[name])) for name in ("tea0", "city0")]
    yield memory.delete(ids["city0"])
    yield memory.get(ids["city0"])
    yield [
        {
            key: event[key]
            for key in ("memory_id", "old_memory", "new_memory", "event", "is_deleted", "role", "actor_id")
        }
        | {"memory_id": "?"}
        for name in ("tea0", "city0", "bob0")
        for event in memory.history(ids[name])
    ]
    yield memory.delete_all(user_id="alice")
    yield [listed(user_id="alice"), listed(user_id="bob"), listed(agent_id="guide")]
    yield [
        failed(lambda: memory.add("x", infer=False)),
        failed(lambda: memory.add("x", user_id="", infer=False)),
        failed(lambda: memory.add("x", user_id="a b", infer=False)),
        failed(lambda: memory.search("x", user_id="a")),
        failed(lambda: memory.search("x", filters={})),
        failed(lambda: memory.search("", filters={"user_id": "a"})),
        failed(lambda: memory.get_all(filters={"user_id": "a"}, top_k=-1)),
        failed(lambda: memory.delete(ids["city0"])),
        failed(lambda: memory.delete_all()),
        failed(lambda: memory.update(ids["bob0"])),
    ]
    yield memory.reset()
    yield [listed(user_id="bob"), memory.get(ids["bob0"])]


def test_mem0_gives_the_same_answers(memory: Memory, mem0: Any) -> None:
    for step, (ours, theirs) in enumerate(zip(story(memory), story(mem0), strict=True)):
        assert ours == theirs, step
