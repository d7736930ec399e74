"""The memory store of Strands Agents over a bank: alone, and with an agent whose model is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: its memory store is not tried")

from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from memlane import Bank
from memlane.adapters.strands import MemlaneMemoryStore

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


def test_a_store_finds_and_adds(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.")

    async def run() -> list[Any]:
        store = MemlaneMemoryStore(bank)
        first = await store.add("Ann likes tea.", {"source": "chat"})
        assert await store.add("Ann likes tea.") == first  # writes are at least once
        return [entry.content for entry in await store.search("what does Ann like?", {"max_search_results": 1})]

    assert asyncio.run(run()) == ["Ann likes tea."]
    assert sorted(memory.text for memory in bank.list()) == ["Ann likes tea.", "Deploys go out on Tuesdays."]


def test_a_scope_leaves_out_others(bank: Bank) -> None:
    async def run() -> list[str]:
        for user in ("ann", "bob"):
            await MemlaneMemoryStore(bank, scope=f"user:{user}").add(f"{user} likes tea.")
        return [entry.content for entry in await MemlaneMemoryStore(bank, scope="user:ann").search("who likes tea?")]

    assert asyncio.run(run()) == ["ann likes tea."]


def test_what_the_assistant_said_is_captured(bank: Bank) -> None:
    advice = "Roll the shop back with `make rollback` first.\nThen open an incident and tell Maria about it."
    messages: list[Any] = [
        {"role": "user", "content": [{"text": "The shop is down!"}]},
        {"role": "assistant", "content": [{"text": advice}]},
    ]
    asyncio.run(MemlaneMemoryStore(bank).add_messages(messages))
    assert [(memory.lane, memory.text.strip()) for memory in bank.list()] == [("records", advice)]


class _Scripted(Model):
    """A model that calls tools as it was told, and notes what it was sent."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.sent: list[str] = []

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *args: Any, **given: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **given: Any) -> AsyncIterator[Any]:
        self.sent.append(str(messages))
        turn = self.turns.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(turn, str):
            yield {"contentBlockDelta": {"delta": {"text": turn}}}
        else:
            name, arguments = turn
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"t{len(self.sent)}", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


def test_an_agent_adds_and_a_later_one_is_given_it(bank: Bank) -> None:
    """The refusal of a secret reaches the model, and not the end of the run."""
    manager = MemoryManager(stores=[MemlaneMemoryStore(bank)], add_tool_config=True)
    secret, fact = f'{{"entries": ["{TOKEN}"]}}', '{"entries": ["Ann likes oolong tea."]}'
    model = _Scripted(("add_memory", secret), ("add_memory", fact), "Done.")
    Agent(model=model, memory_manager=manager, callback_handler=None)("Remember it.")
    assert "secret" in model.sent[1].rpartition("toolResult")[2]
    assert [memory.text for memory in bank.list()] == ["Ann likes oolong tea."]
    later = _Scripted("Tea.")
    again = MemoryManager(stores=[MemlaneMemoryStore(bank)])
    Agent(model=later, memory_manager=again, callback_handler=None)("Which tea does Ann like?")
    assert "Ann likes oolong tea." in later.sent[0]
