"""The process that writes in the place of a server that has readers.

In one process Python does one thing at a time: where a server wrote by itself, each answer of a reader would wait for
the write several times on its way to the client. So it is started together with the readers, takes all calls that
change something, and answers them as the server would: one at a time works on the bank, and one that waits for a lock
lets the next one go on. What it was asked it finishes, also when the server is killed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from memlane.core.access import EVERYTHING, Access
from memlane.core.errors import StorageError
from memlane.surfaces.mcp import answers, calls, processes
from memlane.surfaces.mcp.answers import Packed
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.processes import LONGEST, Process, Say, Told
from memlane.surfaces.mcp.shared_bank import SharedBank

BEHIND = 5  # how nice it is to the readers and the server where cores are short: they get three times as much
T = TypeVar("T")


class Writer:
    """The writer of one server. All of it runs in the server's event loop."""

    def __init__(self, bank: SharedBank, tools: tuple[str, ...]) -> None:
        self._bank, self._tools = bank, tools
        self._process: Process | None = None  # None while there is none that is ready
        self._waiting: dict[int, asyncio.Future[Packed]] = {}  # by the number of their call
        self._asked = 0
        self._outdated = 0  # how many calls may have left the index behind, of those of this process
        self._tasks: set[asyncio.Task[Any]] = set()  # what goes on without anybody who waits for it
        self._access: Access | None = None  # who was the first to need it; None before
        self._ends = False

    def start(self, access: Access = EVERYTHING) -> None:
        """Start it beside what goes on, once. It takes part as soon as it says that it is ready."""
        if self._access is None:
            self._access = access
            self._begin(self._run(access))

    @property
    def ready(self) -> bool:
        return self._process is not None

    async def answer(self, call: Call, *, tells_index: bool) -> Packed | None:
        """The answer to a call, which tells the index what it writes or not; None when there is no writer.

        Where it ends meanwhile, the answer says that nobody knows what became of the call.
        """
        if self._process is None:
            return None
        # also when the client goes away: a call that was begun is finished, and the readers hear of it
        return await asyncio.shield(self._begin(self._answered(self._process, call, tells_index)))

    async def _answered(self, process: Process, call: Call, tells_index: bool) -> Packed:
        view = self._bank.seen_by(call.access)
        with view.tells() if tells_index else nullcontext():
            self._asked += 1
            number = self._asked
            answer: asyncio.Future[Packed] = asyncio.get_running_loop().create_future()
            self._waiting[number] = answer
            with suppress(OSError):  # it is gone: who listens to it says so
                await process.send({**call.plain(), "number": number})
            return await answer

    async def _run(self, access: Access) -> None:
        """Start it, and pass on what it says until it ends; then start another one, unless the server ends."""
        with suppress(OSError, ValueError):  # the server writes by itself
            process = await Process.started(__name__, self._bank, self._tools, access)
            self._process, self._outdated = process, 0
            try:
                while True:
                    self._said(*await process.receive())
            finally:
                self._process = None
                self._bank.outdate()
                self._break()
                await process.end() if self._ends else await process.kill()
                if not self._ends:
                    self._begin(self._run(access))

    def _said(self, message: dict[str, Any], inside: bytes) -> None:
        number, outdated = message.pop("number"), message.pop("outdated")
        if outdated != self._outdated:  # before anybody hears that something was written
            self._outdated = outdated
            self._bank.outdate()
        self._bank.wrote_elsewhere()
        self._waiting.pop(number).set_result(Packed(inside, **message))

    def _break(self) -> None:
        """Answer what is left of a process that has ended."""
        lost = StorageError(
            "The process that writes for the server has ended: whether this was written is not known.",
            hint="Look whether it is there, and if not, ask for it again.",
        )
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_result(answers.packed(answers.failure(lost, "", ())))

    async def close(self) -> None:
        """End it, after what it was asked."""
        self._access, self._ends = self._access or EVERYTHING, True
        if self._process is not None:
            await self._process.end()
        else:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def main() -> None:
    """Answer calls until the input ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server ends first, and answers what was asked
    os.nice(BEHIND)
    asyncio.run(_serve(processes.begun()))


async def _serve(say: Say) -> None:
    lines = asyncio.StreamReader(limit=LONGEST)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    told = processes.told(await lines.readline())
    _warm(told)
    say(ready=True)
    async with asyncio.TaskGroup() as tasks:
        while (line := await lines.readline()).endswith(b"\n"):  # else the server was killed before it said all
            tasks.create_task(_answer(told, line, say))
    told.users.close_all()


async def _answer(told: Told, line: bytes, say: Say) -> None:
    message = json.loads(line)
    call = calls.told(message)
    answer = await calls.answered(told.users, told.tools, call, _silent, beside_readers=True)
    inside, failed, code, ids = answers.packed(answer)
    with suppress(BrokenPipeError):  # the server is gone; what it asked for before is still done
        say(inside, number=message["number"], outdated=told.users.writes, failed=failed, code=code, ids=ids)


async def _silent(done: float, total: float) -> None:
    """No tool that writes waits for the index."""


def _warm(told: Told) -> None:
    """Have in memory what a write needs. What is wrong with the bank, the calls will say."""
    with suppress(Exception), told.users.seen_by(told.access).opened() as bank:
        _ = bank.index.encoder
    gc.collect()
    gc.freeze()
