"""Processes that answer a server's reads, so that reads run beside each other, beside writes and on every core.

They are started when a read comes while another call is under way, so a server with one client has none. The first line
of a reader's input names the bank, every further line is a call, and each is answered with a line of JSON, after lines
on progress where indexing takes long. It ends when its input does, also when the server is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from anyio import Semaphore

from memlane.bank import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.core.values import astuple
from memlane.disk import children, locks
from memlane.surfaces.mcp import answers, toolsets
from memlane.surfaces.mcp.shared_bank import MANY, PATIENCE, SLICE, SharedBank

LONGEST = 1 << 30  # bytes of an answer
T = TypeVar("T")
Progress = Callable[[float, float], Awaitable[None]]


class Call(NamedTuple):
    """A call of a tool: its arguments as the client sent them, who asks, and what he may do."""

    tool: str
    arguments: Mapping[str, Any]
    who: str
    access: Access = EVERYTHING


class Readers:
    """The readers of one server. `count` 0 is none: every call is answered by the server itself.

    All of it runs in the server's event loop: an answer needs no thread to wait for it.
    """

    def __init__(self, bank: SharedBank, tools: tuple[str, ...], count: int) -> None:
        self._bank, self._tools, self._count = bank, tools, count
        self._free: list[_Reader] = []
        self._up = 0  # free ones, and those that are answering
        self._turns = Semaphore(max(count, 1))  # in the order in which the calls came
        self._tasks: set[asyncio.Task[Any]] = set()  # what goes on without anybody who waits for it
        self._started = False

    def start(self) -> None:
        """Start them beside what goes on, once. Each takes part as soon as it says that it is ready."""
        if not self._started:
            self._started = True
            for _ in range(self._count):
                self._begin(self._add())

    @property
    def ready(self) -> bool:
        """Whether one of them can take a call, now or when it has answered another."""
        return self._up > 0

    async def answer(self, call: Call, progress: Progress) -> answers.Answer | None:
        """The answer to a call; None when the reader broke, so that the caller answers it."""
        came = time.monotonic()
        await self._turns.acquire()
        try:
            reader = self._free.pop()
        except IndexError:  # fewer are up than may be
            self._turns.release()
            return None
        waiting = True

        async def tell(done: float, total: float) -> None:
            if waiting:
                await progress(done, total)

        try:  # also when the client goes away: a call that was begun is answered first
            return await asyncio.shield(self._begin(self._answered(reader, call, came, tell)))
        finally:
            waiting = False

    async def _answered(self, reader: _Reader, call: Call, came: float, progress: Progress) -> answers.Answer | None:
        try:
            given = await reader.answer(call, self._bank.writes, came, progress)
            self._free.append(reader)
            return given
        except BaseException as error:
            self._up -= 1
            await reader.close()
            if not isinstance(error, OSError | ValueError):  # the server ends
                raise
            self._begin(self._add())
            return None
        finally:
            self._turns.release()

    async def close(self) -> None:
        """End them. A call that one of them is answering is given up."""
        self._started, self._up = True, 0
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._free:
            await self._free.pop().close()

    async def _add(self) -> None:
        with suppress(OSError, ValueError):  # the server answers by itself
            self._free.append(await _started(self._bank, self._tools))
            self._up += 1

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _started(bank: SharedBank, tools: tuple[str, ...]) -> _Reader:
    """A reader that is ready. Raises OSError or ValueError when it does not start."""
    pipe = asyncio.subprocess.PIPE
    command = children.command(__name__, "main")
    reader = _Reader(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST))
    folder = None if bank.folder is None else os.path.abspath(bank.folder)
    try:
        await reader.send({"folder": folder, "flags": bank.flags, "tools": tools, "held": bank.held})
        await reader.receive()
    except BaseException:
        await reader.close()
        raise
    return reader


class _Reader:
    """One process and its pipes. What is asked of one that broke raises OSError or ValueError."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._input = cast(asyncio.StreamWriter, process.stdin)
        self._output = cast(asyncio.StreamReader, process.stdout)

    async def answer(self, call: Call, writes: int, came: float, progress: Progress) -> answers.Answer:
        await self.send({**call._asdict(), "access": astuple(call.access), "writes": writes, "came": came})
        while "done" in (line := await self.receive()):
            await progress(line["done"], line["total"])
        return answers.Answer(**line)

    async def close(self) -> None:
        """End the process. A reader writes nothing but the index, which outlives anything."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self._input.close()
        await self.process.wait()

    async def send(self, message: dict[str, Any]) -> None:
        self._input.write(json.dumps(message).encode() + b"\n")
        await self._input.drain()

    async def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._output.readline())  # ValueError at the end of the output
        return message


def main() -> None:
    """Answer calls until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    locks.patience.set(PATIENCE)
    output, sys.stdout = sys.stdout, sys.stderr

    def say(**message: Any) -> None:
        try:
            print(json.dumps(message), file=output, flush=True)
        except BrokenPipeError:  # the server is gone
            os._exit(0)

    first = json.loads(sys.stdin.readline())
    users = SharedBank(first["folder"] and Path(first["folder"]), first["flags"], held=first["held"])
    tools = {tool.name: tool for tool in toolsets.tools(first["tools"])}
    say(ready=True)
    writes = -1
    for line in sys.stdin:
        call = json.loads(line)
        if call["writes"] != writes:
            writes = call["writes"]
            users.outdate()
        name, right, scopes = call["access"]
        access = Access(name, right, None if scopes is None else tuple(scopes))
        bank = users.seen_by(access)
        tool = tools[call["tool"]]
        try:
            arguments = tool.checked(call["arguments"])
            with bank.opened(call["came"]) as opened:
                behind, now = 0, time.monotonic()
                # calls that waited together are answered by one look at the disk, made after they came
                if tool.reads_index and (bank.outdated or call["came"] >= bank.looked):
                    behind = _indexed(bank, opened, say)
                    bank.looked = bank.looked if behind else now
                answer = answers.answer(opened, tool, arguments, call["who"], tools, access)
                if behind:
                    many = f"{behind:,}" if access.scopes is None else "Some"
                    answer = answer._replace(text=f"{answer.text}\n({many} files are not indexed yet: ask again soon.)")
        except Exception as error:
            answer = answers.failure(error, tool.name, tools)
        say(**answer._asdict())


def _indexed(bank: SharedBank, opened: Bank, say: Callable[..., None]) -> int:
    """Bring the index up to date, and return the number of files that are missing in it.

    A new index is made whole. Else a read does not wait for files that somebody brings in great numbers.
    """
    try:
        new = not opened.index.columns().used
    except (sqlite3.Error, ValueError, LookupError):  # it is damaged, and will be replaced
        new = True
    most, wait = 0, SLICE
    shown = bank.access.scopes is None  # how many files there are is not for everybody to know
    while True:
        done, total = bank.index_slice(opened, wait)
        most = max(most, total)
        if done == total or not new:
            break
        if shown:
            say(done=most - total + done, total=most)
        wait *= 1 if done else 2  # so large a bank that looking for changes took the whole slice
    if shown and most >= MANY and done == total:
        say(done=most, total=most)
    return total - done
