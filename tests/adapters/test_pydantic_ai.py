"""A memory store of the Pydantic AI harness: beside its own in-memory store, alone, and in a run of an agent."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai_harness", reason="pydantic-ai-harness is not installed: its memory store is not tried")

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

from memlane import Bank
from memlane.adapters.pydantic_ai import MemlaneStore

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


def test_it_is_a_store_of_every_kind(bank: Bank) -> None:
    store = MemlaneStore(bank)
    assert isinstance(store, MemoryStore)
    assert isinstance(store, MetadataMemoryStore)
    assert isinstance(store, SearchableMemoryStore)


# -- beside the harness's own

PATHS = st.sampled_from(
    ["MEMORY.md", "memory.md", "main/MEMORY.md", "main/a_b.md", "main/a-b.md", "x/y/z", "bad//path"]
)
TEXTS = st.sampled_from(
    ["", " \n", "One", "Two\r\nlines", "---\ntitle: x\n---\n\nbody", "\n\nThree\n", "# Four", "ünïcode"]
)
OPERATIONS = st.none() | st.builds(MemoryOperation, st.sampled_from("abc"), st.sampled_from("xy"))
VERSIONS = st.sampled_from(["current", "none", "first", "wrong"])
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS, VERSIONS, OPERATIONS, st.sampled_from([None, {}, {"by": "agent"}])),
    st.tuples(st.just("delete"), PATHS, VERSIONS, OPERATIONS),
    st.tuples(st.just("read"), PATHS, st.integers(0, 8)),
    st.tuples(st.just("list"), st.sampled_from(["", "main", "main/", "x/", "M", "../"]), st.integers(0, 3)),
    st.tuples(st.just("operation"), OPERATIONS.filter(bool)),
)


class Run:
    """Steps on a store. Versions are opaque, so each is told by when it was first seen."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.seen: dict[str, int] = {}
        self.current: dict[str, str | None] = {}
        self.first: dict[str, str] = {}

    def version(self, path: str, which: str) -> str | None:
        known = {"current": self.current.get(path), "none": None, "wrong": "wrong"}
        return known.get(which, self.first.get(path, "wrong"))

    def plain(self, answer: Any) -> Any:
        if isinstance(answer, MemoryMutation):
            return answer.replayed, answer.existed, answer.version is None
        if answer is not None and not isinstance(answer, list):
            return answer.content, answer.operation_id, answer.truncated, answer.metadata
        return answer

    async def step(self, kind: str, *args: Any) -> Any:
        try:
            answer = await getattr(self, kind)(*args)
        except (ValueError, MemoryConflictError, MemoryOperationConflictError) as error:
            return "ValueError" if isinstance(error, ValueError) else type(error).__name__
        return self.plain(answer)

    async def write(self, path: str, text: str, which: str, operation: Any, metadata: Any) -> Any:
        answer = await self.store.write_with_metadata(
            path, text, expected_version=self.version(path, which), metadata=metadata, operation=operation
        )
        if not answer.replayed:
            self.current[path] = answer.version
            self.first.setdefault(path, answer.version)
        return answer

    async def delete(self, path: str, which: str, operation: Any) -> Any:
        answer = await self.store.delete(path, expected_version=self.version(path, which), operation=operation)
        if not answer.replayed:
            self.current[path] = None
        return answer

    async def read(self, path: str, most: int) -> Any:
        answer = await self.store.read(path, max_chars=most)
        assert answer is None or answer.version == self.current[path]
        return answer

    async def list(self, prefix: str, limit: int) -> Any:
        return await self.store.list_paths(prefix, limit=limit)

    async def operation(self, operation: MemoryOperation) -> Any:
        return await self.store.get_operation(operation)


def is_aba(run: Run, step: tuple[Any, ...]) -> bool:
    """Whether a step expects a version that came back with the same text: theirs counts writes, ours what is there."""
    kind, path, *rest = step
    which = rest[1] if kind == "write" else rest[0] if kind == "delete" else ""
    return which == "first" and path in run.first and run.first[path] == run.current.get(path)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=14))
def test_the_harnesss_own_store_gives_the_same_answers(steps: list[tuple[Any, ...]]) -> None:
    async def compare(bank: Bank) -> None:
        ours, theirs = Run(MemlaneStore(bank)), Run(InMemoryStore())
        for step in steps:
            if is_aba(ours, step) != is_aba(theirs, step):
                continue
            assert await ours.step(*step) == await theirs.step(*step), step

    with tempfile.TemporaryDirectory() as folder, Bank.init(folder) as bank:
        asyncio.run(compare(bank))


# -- alone


def test_a_file_is_a_note_and_an_edit_by_hand_is_a_change(bank: Bank) -> None:
    async def run() -> None:
        store = MemlaneStore(bank)
        done = await store.write("main/MEMORY.md", "Ann likes tea.\n", expected_version=None)
        [note] = bank.list()
        assert (note.title, note.text, note.fields) == (
            "main/MEMORY.md",
            "Ann likes tea.\n",
            {"path": "main/MEMORY.md"},
        )
        assert note.id.startswith("notes:agents/main/memory-")
        bank.update(note.id, "Ann likes coffee.\n")
        with pytest.raises(MemoryConflictError):
            await store.write("main/MEMORY.md", "Ann likes water.\n", expected_version=done.version)

    asyncio.run(run())


def test_search_is_the_banks_own_and_stays_right_below_the_prefix(bank: Bank) -> None:
    async def run() -> Any:
        store = MemlaneStore(bank)
        for path in ("main/tea.md", "main/deep/tea.md", "other/tea.md", "main/coffee.md"):
            await store.write(path, f"{path}: how the tea is made.", expected_version=None)
        bank.add("Tea is made by hand.")
        bounds = {"max_files": 10, "max_chars": 200, "max_file_chars": 1000}
        found = await store.search("main/", "making tea", limit=1, **bounds)
        nothing = await store.search("nobody/", "tea", limit=5, **bounds)
        return [match.path for match in found.matches], found.scanned, found.truncated, nothing.matches

    assert asyncio.run(run()) == (["main/tea.md"], 2, True, [])


def test_two_stores_with_one_operation_write_once(bank: Bank) -> None:
    async def run() -> list[bool]:
        operation = MemoryOperation("call-1", "f")
        written = [
            await MemlaneStore(bank).write("a", "One", expected_version=None, operation=operation) for _ in range(2)
        ]
        return [done.replayed for done in written]

    assert asyncio.run(run()) == [False, True]


# -- with an agent


def test_an_agent_remembers_and_is_told_of_a_refusal(bank: Bank) -> None:
    """A later run has what the first one wrote in its context."""
    seen: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(str(messages))
        wanted = {1: TOKEN, 2: "Ann likes short answers."}.get(len(seen))
        if wanted is None:
            return ModelResponse(parts=[TextPart("Done.")])
        tool = next(tool for tool in info.function_tools if tool.name == "write_memory")
        names = list(tool.parameters_json_schema["properties"])
        arguments = {"content": wanted} | ({"path": "MEMORY.md"} if "path" in names else {})
        return ModelResponse(parts=[ToolCallPart("write_memory", arguments)])

    agent = Agent(FunctionModel(model), capabilities=[Memory(store=MemlaneStore(bank))])
    agent.run_sync("Remember that Ann likes short answers.")
    assert "not the secret itself" in seen[1]
    assert [note.text.strip() for note in bank.list()] == ["Ann likes short answers."]
    agent.run_sync("How does Ann like answers?")
    assert "Ann likes short answers." in seen[-1]


def test_a_refusal_is_for_the_model(bank: Bank) -> None:
    with pytest.raises(ModelRetry, match="Not stored"):
        asyncio.run(MemlaneStore(bank).write("a", f"The token is {TOKEN}", expected_version=None))
