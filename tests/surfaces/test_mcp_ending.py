"""A server that is told to end, runs out of disk, or loses its bank: nothing that it said was written is lost."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client
from mcp.shared.exceptions import MCPError
from sse_starlette.sse import AppStatus
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from memlane import Bank
from memlane.surfaces.connections import Asked, _Server

MEMLANE = str(Path(sys.executable).with_name("memlane"))
NOTES = 12  # written before the signal comes


@contextmanager
def served(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [MEMLANE, "--bank", str(folder), "mcp", "--http", "--port", "0", *args]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            yield process, process.stderr.readline().split()[2].rstrip(";")
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path).close()
    return tmp_path


def note(name: str) -> dict[str, Any]:
    return {"filename": f"{name}.md", "content": f"What {name} has to say is its own.", "tags": []}


def test_streams_are_not_ended_while_something_is_asked_as_the_last_answer_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stream that the answer was to go into was ended with the others."""
    monkeypatch.setattr(AppStatus, "should_exit", False)

    async def run() -> list[bool]:
        answers = [asyncio.Event(), asyncio.Event()]

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await answers[scope["number"]].wait()

        asked = Asked(app)
        server = _Server(uvicorn.Config(asked), asked)

        def ask(number: int) -> asyncio.Task[None]:
            scope = {"type": "http", "method": "POST", "number": number}
            return asyncio.create_task(asked(scope, None, None))  # type: ignore[arg-type]

        first = ask(0)
        await asyncio.sleep(0)
        ending = asyncio.create_task(server._end_streams())
        await asyncio.sleep(0)
        answers[0].set()
        second = ask(1)
        await first
        await asyncio.sleep(0)
        ended = [AppStatus.should_exit]
        answers[1].set()
        await second
        await ending
        return [*ended, AppStatus.should_exit]

    assert asyncio.run(run()) == [False, True]


def test_whoever_comes_after_the_streams_were_ended_is_sent_away_before_anything_is_done() -> None:
    """A connection that was taken in the last moment: its note was written, and its answer had no way to go."""
    called: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        called.append(scope["path"])

    asked = Asked(app)
    asked.ended = True
    answer = TestClient(asked).post("/mcp")
    assert (answer.status_code, answer.text, called) == (503, "The server is ending.\n", [])


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_server_that_ends_answers_what_it_was_asked_and_then_ends_its_streams(folder: Path, era: str) -> None:
    """Four clients write until they are cut off; each has a stream open, too, in the older era."""
    answered: set[str] = set()

    async def run(process: subprocess.Popen[str], url: str) -> None:
        async def write(client: Client, who: int) -> None:
            for number in range(10_000):
                name = f"note-{who}-{number}"
                assert not (await client.call_tool("create_memory", note(name))).is_error
                answered.add(name)
                if len(answered) == NOTES:
                    process.send_signal(signal.SIGTERM)

        async def one(who: int) -> None:
            try:
                async with Client(url, mode=era) as client:
                    await write(client, who)
            except* (MCPError, Exception):  # it is gone
                pass

        async with anyio.create_task_group() as tasks:
            for who in range(4):
                tasks.start_soon(one, who)

    with served(folder) as (process, url):
        anyio.run(run, process, url)
        assert process.wait(120) == 0
        assert process.stderr
        assert process.stderr.read() == ""
    with Bank.open(folder) as bank:
        assert {memory.id.removeprefix("notes:") for memory in bank.list(limit=None)} == answered


def test_what_a_server_with_readers_has_answered_is_there_when_it_is_killed(folder: Path) -> None:
    answered: set[str] = set()

    async def run(process: subprocess.Popen[str], url: str) -> None:
        async def one(who: int) -> None:
            try:
                async with Client(url) as client:
                    for number in range(10_000):
                        name = f"note-{who}-{number}"
                        assert not (await client.call_tool("create_memory", note(name))).is_error
                        answered.add(name)
                        found = await client.call_tool("read_memory", {"filename": f"{name}.md"})
                        assert not found.is_error
                        if len(answered) > NOTES and len(children(process.pid)) == 3:  # two readers and a writer
                            process.kill()
            except* (MCPError, Exception):  # it is gone
                pass

        async with anyio.create_task_group() as tasks:
            for who in range(4):
                tasks.start_soon(one, who)

    with served(folder, "--readers", "2") as (process, url):
        anyio.run(run, process, url)
        assert process.wait(120) == -signal.SIGKILL
    with Bank.open(folder) as bank:
        assert answered <= {memory.id.removeprefix("notes:") for memory in bank.list(limit=None)}


def children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task")
    return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def test_a_full_disk_is_a_sentence_and_the_server_goes_on_when_there_is_room(folder: Path) -> None:
    async def run(process: subprocess.Popen[str], url: str) -> list[tuple[bool, str]]:
        async with Client(url) as client:

            async def said(tool: str, **arguments: Any) -> tuple[bool, str]:
                answer = await client.call_tool(tool, arguments)
                return bool(answer.is_error), answer.content[0].text.splitlines()[0]  # type: ignore[union-attr]

            await said("create_memory", **note("first"))
            unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            full = [await said("create_memory", **note("second")), await said("read_memory", filename="first.md")]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
            return [*full, await said("create_memory", **note("second"))]

    with served(folder, "--readers", "0") as (process, url):
        refused, read, written = anyio.run(run, process, url)
    assert refused == (True, "second.md: File too large. Check the disk.")
    assert (read[0], written[0]) == (False, False)


@pytest.mark.parametrize("left", ["nothing", "an empty folder"])
def test_a_bank_whose_folder_is_gone_is_not_taken_for_an_empty_one(folder: Path, left: str) -> None:
    """As when a disk is not mounted any more; what was written then would be hidden when it is again."""
    place, away = folder / ".memories", folder / "away"

    async def run(url: str) -> list[tuple[bool, str]]:
        async with Client(url) as client:

            async def said(tool: str, **arguments: Any) -> tuple[bool, str]:
                answer = await client.call_tool(tool, arguments)
                return bool(answer.is_error), answer.content[0].text  # type: ignore[union-attr]

            await said("create_memory", **note("first"))
            shutil.move(place, away)
            if left != "nothing":
                place.mkdir()
            gone = [await said("recall", query="first"), await said("create_memory", **note("second"))]
            assert not place.exists() or os.listdir(place) == []
            if place.exists():
                place.rmdir()
            shutil.move(away, place)
            return [*gone, await said("create_memory", **note("second"))]

    with served(folder) as (_, url):
        recalled, written, after = anyio.run(run, url)
    assert recalled == written
    assert recalled[0]
    assert "The bank's folder is gone, or empty" in recalled[1]
    assert not after[0]


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("unshare") is None, reason="needs unshare")
def test_the_first_process_of_a_container_ends_when_it_is_told_to_before_it_serves(folder: Path) -> None:
    """The kernel ends it by no signal that it does not listen to: whoever stops it would wait until it is killed."""
    alone = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
    ]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make namespaces")
    words = [*alone, MEMLANE, "--bank", str(folder), "add", "-"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, stdin=subprocess.PIPE, **quiet) as process:
        try:
            assert process.stdin
            process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: some of it was read
            process.stdin.flush()
            inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            os.kill(int(inside), signal.SIGTERM)
            process.stdin.close()
            assert process.wait(120) == 143
        finally:
            process.kill()
