"""The process that writes in the place of an MCP server that has readers."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from memlane import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.surfaces.mcp import processes, toolsets
from memlane.surfaces.mcp.answers import Answer, unpacked
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.processes import Process
from memlane.surfaces.mcp.readers import Readers
from memlane.surfaces.mcp.server import _Handlers, build_server
from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.mcp.writer import Writer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    return tmp_path


def create(name: str) -> Call:
    note = {"filename": f"{name}.md", "content": f"What {name} has to say is its own.", "tags": []}
    return Call("create_memory", note, "test")


@asynccontextmanager
async def one_writer(bank: SharedBank) -> AsyncIterator[Writer]:
    writer = Writer(bank, ("vault",))
    writer.start()
    try:
        await ready(writer)
        yield writer
    finally:
        await writer.close()


async def ready(other: Writer | Readers) -> None:
    with anyio.fail_after(60):
        while not other.ready:
            await anyio.sleep(0.01)


async def answer(writer: Writer, call: Call, *, tells_index: bool = True) -> Answer:
    given = await writer.answer(call, tells_index=tells_index)
    assert given is not None
    return unpacked(given)


def process_of(writer: Writer) -> Process:
    assert writer._process
    return writer._process


def ids(folder: Path) -> list[str]:
    with Bank.open(folder) as bank:
        return sorted(memory.id for memory in bank.list(limit=None))


def test_a_writer_answers_as_the_server_does(folder: Path) -> None:
    again = Call("remember", {"text": "Deploys go out on Tuesdays."}, "test")  # there already: writes nothing

    async def run() -> tuple[Answer, Any]:
        async with one_writer(SharedBank(folder)) as writer, Client(build_server(folder)) as client:
            return await answer(writer, again), await client.call_tool(again.tool, dict(again.arguments))

    given, expected = anyio.run(run)
    assert given == Answer(expected.content[0].text, expected.structured_content)


def test_a_writer_answers_a_mistake_with_the_sentence_of_the_server(folder: Path) -> None:
    async def run() -> tuple[Answer, Any]:
        wrong = create("deploy-day")
        async with one_writer(SharedBank(folder)) as writer, Client(build_server(folder)) as client:
            return await answer(writer, wrong), await client.call_tool(wrong.tool, dict(wrong.arguments))

    given, expected = anyio.run(run)
    assert given == Answer(expected.content[0].text, None, failed=True, code="already_exists")


def test_what_a_writer_was_asked_before_it_is_ended_is_written(folder: Path) -> None:
    names = "heron otter lynx badger falcon salmon".split()

    async def run() -> list[bool]:
        failed: list[bool] = []

        async def one(writer: Writer, name: str) -> None:
            failed.append((await answer(writer, create(name))).failed)

        async with anyio.create_task_group() as tasks, one_writer(SharedBank(folder)) as writer:
            for name in names:
                tasks.start_soon(one, writer, name)
            await anyio.wait_all_tasks_blocked()
        return failed

    assert anyio.run(run) == [False] * len(names)
    assert ids(folder) == sorted(["notes:deploy-day", *(f"notes:{name}" for name in names)])


def test_a_writer_that_does_not_end_is_not_waited_for_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LAST", 0.1)

    async def run() -> int | None:
        async with one_writer(SharedBank(folder)) as writer:
            process = process_of(writer).process
            os.kill(process.pid, signal.SIGSTOP)  # as by a disk that does not answer
        return process.returncode

    assert anyio.run(run) == -signal.SIGKILL


def test_what_a_writer_was_asked_is_written_though_the_server_is_killed(folder: Path) -> None:
    async def run() -> int:
        process = await Process.started(Writer.__module__, SharedBank(folder), (), EVERYTHING)
        os.kill(process.process.pid, signal.SIGSTOP)
        await process.send({**create("heron").plain(), "number": 1})
        process._input.write(b'{"tool": "create_memory", "arg')  # it was killed before it could say all
        process._input.close()
        process._output._transport.close()  # type: ignore[attr-defined]  # nobody listens any more
        os.kill(process.process.pid, signal.SIGCONT)
        with anyio.fail_after(60):
            return await process.process.wait()

    assert anyio.run(run) == 0
    assert ids(folder) == ["notes:deploy-day", "notes:heron"]


def test_a_writer_does_not_end_by_the_signal_that_lets_a_server_finish(folder: Path) -> None:
    """What starts and stops services sends it to all processes of one."""

    async def run() -> Answer:
        async with one_writer(SharedBank(folder)) as writer:
            os.kill(process_of(writer).process.pid, signal.SIGTERM)
            return await answer(writer, create("heron"))

    assert not anyio.run(run).failed


def test_a_writer_that_is_killed_is_replaced_and_its_calls_are_answered(folder: Path) -> None:
    async def run() -> tuple[Answer, int, Answer]:
        bank = SharedBank(folder)
        async with one_writer(bank) as writer:
            killed = process_of(writer)
            os.kill(killed.process.pid, signal.SIGSTOP)
            lost: list[Answer] = []
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    lost.append(await answer(writer, create("heron")))

                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                os.kill(killed.process.pid, signal.SIGKILL)
            with anyio.fail_after(60):
                while writer._process in (None, killed):
                    await anyio.sleep(0.01)
            return lost[0], bank.writes, await answer(writer, create("otter"))

    lost, outdated, given = anyio.run(run)
    assert lost == Answer(
        "The process that writes for the server has ended: whether this was written is not known. "
        "Look whether it is there, and if not, ask for it again.",
        failed=True,
        code="storage",
    )
    assert outdated == 1  # what it wrote, it may not have told the index
    assert not given.failed


def test_a_write_that_waits_for_a_lock_lets_the_next_one_go_on(folder: Path) -> None:
    waits = Call("append_memory", {"filename": "deploy-day.md", "content": "And on Fridays."}, "test")

    async def run() -> list[str]:
        order: list[str] = []

        async def one(writer: Writer, call: Call, name: str) -> None:
            await answer(writer, call)
            order.append(name)

        async with one_writer(SharedBank(folder)) as writer:
            with (folder / ".memories/deploy-day.md").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(one, writer, waits, "waits")
                    await anyio.wait_all_tasks_blocked()
                    await one(writer, create("heron"), "goes on")
                    fcntl.flock(file, fcntl.LOCK_UN)
        return order

    assert anyio.run(run) == ["goes on", "waits"]


def test_readers_have_to_look_where_the_writer_could_not_tell_the_index(folder: Path) -> None:
    kept = Call("vault_add_memory", {"text": "The port is 8765.", "scope": "team", "category": "project"}, "test")

    async def run() -> list[int]:
        bank = SharedBank(folder)
        counts = []
        async with one_writer(bank) as writer:
            await answer(writer, create("heron"))
            counts.append(bank.writes)
            with closing(sqlite3.connect(folder / ".memories/indices/index.db")) as db:
                db.execute("BEGIN IMMEDIATE")
                await answer(writer, create("otter"))
            counts.append(bank.writes)
            assert not (await answer(writer, kept, tells_index=False)).failed
            counts.append(bank.writes)
        return counts

    assert anyio.run(run) == [0, 1, 2]


def test_a_read_finds_what_the_writer_wrote_before_it_was_asked(folder: Path) -> None:
    async def run() -> list[list[str]]:
        bank = SharedBank(folder)
        handlers = _Handlers(bank, toolsets.tools(()), Readers(bank, (), 1), Writer(bank, ()))
        handlers.readers.start()
        assert handlers.writer
        handlers.writer.start()
        found = []
        async with Client(handlers.server()) as client:
            await ready(handlers.readers)
            await ready(handlers.writer)
            for title in ("Mondays", "Sundays", "Fridays"):
                await client.call_tool("remember", {"text": f"No deploys on {title}.", "title": title})
                given = await client.call_tool("search_memories", {"query": "deploys"})
                found.append(sorted(hit["memory_id"] for hit in (given.structured_content or {})["result"]))
        return found

    first, second, third = anyio.run(run)
    assert first == ["memory:deploy-day", "memory:mondays"]
    assert second == [*first, "memory:sundays"]
    assert third == sorted([*second, "memory:fridays"])


def test_a_server_finds_by_itself_what_its_writer_wrote(folder: Path) -> None:
    """As it has to when a reader breaks."""

    async def run() -> list[str]:
        bank = SharedBank(folder)
        handlers = _Handlers(bank, toolsets.tools(()), Readers(bank, (), 0), Writer(bank, ()))
        assert handlers.writer
        handlers.writer.start()
        async with Client(handlers.server()) as client:
            await client.call_tool("search_memories", {"query": "deploys"})
            await ready(handlers.writer)
            await client.call_tool("remember", {"text": "No deploys on Mondays.", "title": "Mondays"})
            given = await client.call_tool("search_memories", {"query": "deploys"})
            return sorted(hit["memory_id"] for hit in (given.structured_content or {})["result"])

    assert anyio.run(run) == ["memory:deploy-day", "memory:mondays"]


def test_a_writer_writes_what_whoever_asks_may_write(folder: Path) -> None:
    reading = create("heron")._replace(access=Access("ann", "read", None))

    async def run() -> Answer:
        async with one_writer(SharedBank(folder)) as writer:
            return await answer(writer, reading)

    given = anyio.run(run)
    assert (given.failed, given.code) == (True, "not_allowed")
    assert ids(folder) == ["notes:deploy-day"]
