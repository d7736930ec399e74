"""The memory service of Google's Agent Development Kit over a bank: alone, and with a runner and its tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: its memory service is not tried")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.genai import types

from memlane import Bank
from memlane.adapters.adk import MemlaneMemoryService
from memlane.core.errors import NotFound

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"
ANN = {"app_name": "shop", "user_id": "ann"}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


def content(text: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


async def session(*texts: str) -> Any:
    service = InMemorySessionService()
    made = await service.create_session(**ANN)
    for number, text in enumerate(texts):
        await service.append_event(made, Event(author=("user", "helper")[number % 2], content=content(text)))
    return await service.get_session(**ANN, session_id=made.id)


def texts(answer: Any) -> list[str]:
    return [memory.content.parts[0].text for memory in answer.memories]


def test_a_session_may_be_added_many_times_and_is_its_users_alone(bank: Bank) -> None:
    async def run() -> None:
        service = MemlaneMemoryService(bank)
        said = await session("My sister Ada moved to Lisbon.", "Noted: Ada lives in Lisbon now.", "")
        for _ in range(2):
            await service.add_session_to_memory(said)
        found = await service.search_memory(**ANN, query="where does my sister live?")
        assert sorted(texts(found)) == ["My sister Ada moved to Lisbon.", "Noted: Ada lives in Lisbon now."]
        first = found.memories[0]
        assert first.author in ("user", "helper")
        assert first.timestamp.startswith("20")
        for other in ({**ANN, "user_id": "bob"}, {**ANN, "app_name": "bank"}):
            assert texts(await service.search_memory(**other, query="where does my sister live?")) == []
            with pytest.raises(NotFound):
                await service.delete_memory(**other, memory_id=first.id)
        await service.delete_memory(**ANN, memory_id=first.id)
        await service.add_session_to_memory(said)  # what was deleted stays deleted
        assert len(texts(await service.search_memory(**ANN, query="where does my sister live?"))) == 1

    asyncio.run(run())
    assert {memory.thread for memory in bank.list()} != {None}


def test_a_secret_is_blanked_and_ends_no_session(bank: Bank) -> None:
    async def run() -> list[str]:
        service = MemlaneMemoryService(bank)
        await service.add_session_to_memory(await session(f"The deploy token is {TOKEN}, use it."))
        return texts(await service.search_memory(**ANN, query="deploy token"))

    [text] = asyncio.run(run())
    assert text.startswith("The deploy token is [REDACTED")
    assert TOKEN not in text


def test_memories_can_be_added_directly(bank: Bank) -> None:
    async def run() -> Any:
        service = MemlaneMemoryService(bank)
        entry = MemoryEntry(content=content("Ann likes tea."), author="crm", custom_metadata={"source": "form"})
        await service.add_memory(**ANN, memories=[entry], custom_metadata={"batch": 1})
        return await service.search_memory(**ANN, query="tea")

    [memory] = asyncio.run(run()).memories
    assert (memory.author, memory.content.parts[0].text) == ("crm", "Ann likes tea.")
    assert {key: memory.custom_metadata[key] for key in ("batch", "source")} == {"batch": 1, "source": "form"}


class _Scripted(BaseLlm):
    """A model that calls load_memory, and then says what it was given."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            yield LlmResponse(content=content(str(last.function_response.response), "model"))
        else:
            call = types.Part(function_call=types.FunctionCall(name="load_memory", args={"query": "Ann's drink"}))
            yield LlmResponse(content=types.Content(role="model", parts=[call]))


def test_an_agent_loads_what_an_earlier_session_said(bank: Bank) -> None:
    async def run() -> str:
        service, sessions = MemlaneMemoryService(bank), InMemorySessionService()
        await service.add_session_to_memory(await session("Ann drinks oolong tea."))
        agent = LlmAgent(name="helper", model=_Scripted(model="scripted"), tools=[load_memory])
        runner = Runner(agent=agent, app_name="shop", session_service=sessions, memory_service=service)
        made = await sessions.create_session(**ANN)
        said = ""
        async for event in runner.run_async(user_id="ann", session_id=made.id, new_message=content("My drink?")):
            said += "".join(part.text or "" for part in event.content.parts)
        return said

    assert "Ann drinks oolong tea." in asyncio.run(run())
