"""Processes that answer the reads of an MCP server beside each other."""

from __future__ import annotations

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
from memlane.core.access import Access
from memlane.surfaces.mcp import toolsets
from memlane.surfaces.mcp.answers import Answer, Packed, unpacked
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.readers import FEW, PAUSE, Readers, _has_to_look
from memlane.surfaces.mcp.server import _Handlers, build_server
from memlane.surfaces.mcp.shared_bank import SharedBank
from samples import words

DAY = Call("read_memory", {"id": "deploy-day"}, "test")
FIND = Call("search_memories", {"query": "deploys"}, "test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    return tmp_path


async def unheard(done: float, total: float) -> None:
    """How far it is: a busy machine may say so where others have nothing to tell."""


@asynccontextmanager
async def one_reader(folder: Path) -> AsyncIterator[Readers]:
    readers = Readers(SharedBank(folder), (), 1)
    readers.start()
    try:
        await ready(readers)
        yield readers
    finally:
        await readers.close()


async def ready(readers: Readers) -> None:
    with anyio.fail_after(60):
        while not readers.ready:
            await anyio.sleep(0.01)


async def answer(readers: Readers, call: Call) -> Answer:
    given = await readers.answer(call, unheard)
    assert given is not None
    return unpacked(given)


def test_a_reader_answers_as_the_server_does(folder: Path) -> None:
    async def run() -> tuple[Answer, Any]:
        async with one_reader(folder) as readers, Client(build_server(folder)) as client:
            return await answer(readers, FIND), await client.call_tool(FIND.tool, dict(FIND.arguments))

    given, expected = anyio.run(run)
    assert given == Answer(expected.content[0].text, expected.structured_content)
    assert [hit["memory_id"] for hit in (given.data or {})["result"]] == ["memory:deploy-day"]


def test_a_reader_answers_a_mistake_with_the_sentence_of_the_server(folder: Path) -> None:
    missing = Call("read_memory", {"id": "nothing-here"}, "test")

    async def run() -> tuple[Answer, Any]:
        async with one_reader(folder) as readers, Client(build_server(folder)) as client:
            return await answer(readers, missing), await client.call_tool(missing.tool, dict(missing.arguments))

    given, expected = anyio.run(run)
    assert given == Answer(expected.content[0].text, None, failed=True, code="not_found")


def test_a_reader_sees_what_was_written_before_it_is_asked(folder: Path) -> None:
    async def run() -> list[list[str]]:
        async with one_reader(folder) as readers:
            found = []
            for day in ("Monday", "Sunday"):
                (folder / ".memories" / f"{day.lower()}.md").write_text(f"# {day}\n\nNo deploys on {day}s.\n")
                readers._bank.writes += 1  # as a tool does that writes without telling the index
                given = await answer(readers, FIND)
                found.append(sorted(hit["memory_id"] for hit in (given.data or {})["result"]))
            return found

    assert anyio.run(run) == [
        ["memory:deploy-day", "memory:monday"],
        ["memory:deploy-day", "memory:monday", "memory:sunday"],
    ]


def test_a_project_cannot_put_its_own_modules_into_a_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server runs in the folder of the project, and `python -m` would import from there first."""
    (folder / "memlane").mkdir()
    for name in ("memlane/__init__.py", "json.py", "signal.py", "sqlite3.py"):
        (folder / name).write_text(f"open({os.fspath(folder / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(folder)

    async def run() -> Answer:
        async with one_reader(folder) as readers:
            return await answer(readers, DAY)

    assert not anyio.run(run).failed
    assert not (folder / "ran").exists()


def test_a_reader_that_is_killed_is_replaced(folder: Path) -> None:
    async def run() -> tuple[Packed | None, Answer]:
        async with one_reader(folder) as readers:
            (reader,) = readers._free
            os.kill(reader.process.pid, signal.SIGKILL)
            broken = await readers.answer(DAY, unheard)
            await ready(readers)
            return broken, await answer(readers, DAY)

    broken, given = anyio.run(run)
    assert broken is None
    assert not given.failed


def test_a_client_that_goes_away_leaves_the_reader_to_others(folder: Path) -> None:
    async def run() -> Answer:
        async with one_reader(folder) as readers:
            for _ in range(3):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await readers.answer(DAY, unheard)
            return await answer(readers, DAY)

    assert not anyio.run(run).failed


def test_reads_wait_for_a_reader_rather_than_for_the_server(folder: Path) -> None:
    async def run() -> list[Packed | None]:
        given: list[Packed | None] = []
        async with one_reader(folder) as readers:

            async def ask() -> None:
                assert readers.ready
                given.append(await readers.answer(DAY, unheard))

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(ask)
        return given

    given = anyio.run(run)
    assert [one is not None and not one.failed for one in given] == [True] * 5


def test_a_reader_ends_when_the_server_is_gone(folder: Path) -> None:
    async def run() -> int:
        async with one_reader(folder) as readers:
            (reader,) = readers._free
            reader._input.close()  # as the end of the server's process does
            with anyio.fail_after(60):
                return await reader.process.wait()

    assert anyio.run(run) == 0


def test_calls_that_come_at_once_start_the_readers_and_are_all_answered(folder: Path) -> None:
    names = "heron otter lynx badger falcon salmon beetle walrus gecko ferret magpie turtle".split()

    async def run() -> list[bool]:
        failed: list[bool] = []

        async def ask(client: Client, name: str) -> None:
            note = {"filename": f"{name}.md", "content": f"{name} {words(name)}", "tags": ["animals"]}
            wrote = await client.call_tool("create_memory", note)
            for _ in range(3):
                read = await client.call_tool("read_memory", {"id": name})
                found = await client.call_tool("search_memories", {"query": name})
                ids = [hit["memory_id"] for hit in (found.structured_content or {})["result"]]
                failed.append(bool(wrote.is_error or read.is_error or f"memory:{name}" not in ids))

        async with Client(build_server(folder, readers=2)) as client, anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(ask, client, name)
        return failed

    assert anyio.run(run) == [False] * 3 * len(names)


def bring(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / ".memories" / f"n{number}.md").write_text(f"# Note {number}\n\nNo deploys of quokka{number}.\n")


LATER = "\n(Some files are not indexed yet: ask again soon.)"


def bring_at_once(folder: Path, count: int) -> None:
    """The same in one folder, which comes with all its files."""
    (folder / "apart" / ".memories").mkdir(parents=True)
    bring(folder / "apart", count)
    (folder / "apart" / ".memories").rename(folder / ".memories" / "many")


def test_a_read_does_not_wait_for_files_that_come_in_great_numbers(folder: Path) -> None:
    """It is answered with what is indexed and says so; the rest is indexed between calls."""

    async def run() -> list[Answer]:
        async with one_reader(folder) as readers:
            await answer(readers, FIND)
            bring_at_once(folder, 5 * FEW)
            readers._bank.writes += 1
            early = await answer(readers, FIND)
            with anyio.fail_after(60):
                while LATER in (late := await answer(readers, FIND)).text:
                    await anyio.sleep(0.01)
            return [early, late]

    early, late = anyio.run(run)
    assert "memory:deploy-day" in [hit["memory_id"] for hit in (early.data or {})["result"]]
    assert early.text.endswith(LATER)
    assert len((late.data or {})["result"]) > 1


def test_all_files_are_looked_at_between_calls_by_one_reader_at_a_time(folder: Path) -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        readers = Readers(SharedBank(folder), (), 2)
        readers.start()
        try:
            with anyio.fail_after(60):
                while len(readers._free) < 2:
                    await anyio.sleep(0.01)
            for reader in readers._free:
                reader.due = 0.0
            both = [*readers._free]
            kept = []
            for _ in both:
                await answer(readers, DAY)  # by the one that answered last, or else the other one
                kept.append(readers._keeping)
                with anyio.fail_after(60):
                    while readers._keeping:
                        await anyio.sleep(0.01)
                readers._free.reverse()
            return kept, [reader.due > 0.0 for reader in both]
        finally:
            await readers.close()

    assert anyio.run(run) == ([True, True], [True, True])


def test_a_reader_that_is_killed_while_it_looks_is_replaced(folder: Path) -> None:
    async def run() -> Answer:
        async with one_reader(folder) as readers:
            (reader,) = readers._free
            reader.due = 0.0
            await answer(readers, DAY)
            os.kill(reader.process.pid, signal.SIGKILL)
            with anyio.fail_after(60):
                while readers._keeping or not readers.ready or reader in readers._free:
                    await readers.answer(DAY, unheard)
            return await answer(readers, DAY)

    assert not anyio.run(run).failed


def test_a_reader_that_is_ready_has_the_bank_open_as_the_first_caller_sees_it(folder: Path) -> None:
    async def run() -> bool:
        readers = Readers(SharedBank(folder), (), 1)
        readers.start(Access("ann", "read", ("team",)))
        try:
            await ready(readers)
            return any((folder / ".memories/indices").glob("scopes-*/index.db"))
        finally:
            await readers.close()

    assert anyio.run(run)


def test_a_write_beside_readers_is_told_to_the_index(folder: Path) -> None:
    """Else every reader would have to read and index what was written, one after the other."""

    async def run() -> list[str]:
        handlers = _Handlers(SharedBank(folder), toolsets.tools(()), Readers(SharedBank(folder), (), 1))
        handlers.readers.start()
        async with Client(handlers.server()) as client:
            await ready(handlers.readers)
            await client.call_tool("remember", {"text": "About quicksilver.", "title": "Metal"})
            with sqlite3.connect(folder / ".memories/indices/index.db") as db:
                return [id for (id,) in db.execute("SELECT id FROM memories WHERE id LIKE '%metal'")]

    assert anyio.run(run) == ["notes:metal"]


def test_a_read_finds_what_was_written_beside_readers_before_it_was_asked(folder: Path) -> None:
    async def run() -> list[list[str]]:
        bank = SharedBank(folder)
        handlers = _Handlers(bank, toolsets.tools(()), Readers(bank, (), 1))
        handlers.readers.start()
        found = []
        async with Client(handlers.server()) as client:
            await ready(handlers.readers)
            for title in ("Mondays", "Sundays", "Fridays"):
                await client.call_tool("remember", {"text": f"No deploys on {title}.", "title": title})
                given = await answer(handlers.readers, FIND)
                found.append(sorted(hit["memory_id"] for hit in (given.data or {})["result"]))
        return found

    first, second, third = anyio.run(run)
    assert first == ["memory:deploy-day", "memory:mondays"]
    assert second == [*first, "memory:sundays"]
    assert third == sorted([*second, "memory:fridays"])


@pytest.mark.parametrize(
    ("told", "telling", "came", "looks"),
    [
        ((0, 7), False, 10.05, True),  # nobody has written: what others did is seen at once
        ((1, 7), False, 10.05, False),  # the server has, and told the index
        ((0, 7), True, 10.05, False),  # it is about to
        ((1, 7), True, 10.05 + PAUSE, True),
        ((1, 8), True, 10.05, True),  # somebody has written whose index is another one
        ((0, 7), False, 9.0, False),  # it waited while somebody looked
    ],
)
def test_a_reader_does_not_look_for_what_the_server_tells_the_index(
    told: tuple[int, int], telling: bool, came: float, looks: bool
) -> None:
    bank = SharedBank()
    bank.outdated, bank.looked, bank.seen = False, 10.0, (0, 7)
    assert _has_to_look(bank, {"told": told, "telling": telling, "came": came}, now=max(came, 10.05)) == looks
    bank.outdated = True
    assert _has_to_look(bank, {"told": told, "telling": telling, "came": came}, now=max(came, 10.05))


def test_a_write_that_the_index_could_not_be_told_of_lets_every_reader_look(folder: Path) -> None:
    async def run() -> list[int]:
        handlers = _Handlers(SharedBank(folder), toolsets.tools(()), Readers(SharedBank(folder), (), 1))
        handlers.readers.start()
        counts = []
        async with Client(handlers.server()) as client:
            await ready(handlers.readers)
            for locked in (False, True):
                with closing(sqlite3.connect(folder / ".memories/indices/index.db")) as db:
                    if locked:
                        db.execute("BEGIN IMMEDIATE")
                    await client.call_tool("remember", {"text": f"Quicksilver {locked}.", "title": f"{locked}"})
                counts.append(handlers.bank.writes)
        return counts

    assert anyio.run(run) == [0, 1]


def test_a_write_is_told_to_one_index_and_not_to_those_of_others(tmp_path: Path) -> None:
    bank = SharedBank(tmp_path)
    other = bank.seen_by(Access("ann", "write", ("team",)))
    before = other.told, other.untold
    with bank.tells():
        assert (bank.telling, other.telling) == (1, 0)
    assert (bank.telling, bank.told, other.told - before[0], other.untold - before[1]) == (0, 1, 0, 1)
