"""A process of its own for questions that look through the whole bank (`api.ASIDE`): they take seconds of a core, and
threads of the server would share theirs with a search or the picture of the graph.

It is started by the first such question and answers one at a time, behind everything else that wants a core. What it is
asked is a line of JSON, {"name", "asked"}; its answer is a line as well, a status and JSON. It ends when its input
does, also when the server is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, cast

from memlane.disk import children, locks
from memlane.surfaces.mcp.shared_bank import PATIENCE, SharedBank
from memlane.surfaces.ui.asking import Asked

LONGEST = 1 << 28  # bytes of an answer
_POLITE = 5  # how far behind others it stands, as `nice` has it


class Answer(NamedTuple):
    status: int
    body: bytes


class Aside:
    """The process, once it is needed."""

    def __init__(self, bank: SharedBank) -> None:
        self._bank = bank
        self.process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def answer(self, name: str, asked: Asked, is_gone: Callable[[], Awaitable[bool]]) -> Answer | None:
        """What it answers; None where it cannot be had, so that the caller answers.

        A question whose page is gone when its turn comes is not looked into.
        """
        async with self._turn:
            if await is_gone():
                return Answer(499, b"")  # nobody reads it
            try:
                process = self.process = self.process or await self._started()
                return await _asked(process, {"name": name, "asked": asked})
            except BaseException as error:
                await self.close()  # an answer that nobody has read would be taken for that of the next question
                if isinstance(error, OSError | ValueError):
                    return None
                raise

    async def _started(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        folder = None if self._bank.folder is None else os.path.abspath(self._bank.folder)
        command = children.command(__name__, "main", json.dumps(folder), json.dumps(self._bank.flags))
        return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST)

    async def close(self) -> None:
        """End it. It writes nothing but what is derived."""
        process, self.process = self.process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _asked(process: asyncio.subprocess.Process, question: object) -> Answer:
    """Raises OSError or ValueError where it broke."""
    asking, answers = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)
    asking.write(json.dumps(question).encode() + b"\n")
    await asking.drain()
    status, _, body = (await answers.readline()).partition(b" ")
    return Answer(int(status), body)  # ValueError at the end of its output


def main(folder: str, flags: str) -> None:
    """Answer questions until the input ends."""
    from memlane.surfaces.ui import api

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with suppress(OSError):
        os.nice(_POLITE)
    locks.patience.set(PATIENCE)
    output, sys.stdout = sys.stdout, sys.stderr
    bank = SharedBank(json.loads(folder), json.loads(flags))
    for line in sys.stdin:
        question = json.loads(line)
        try:
            with bank.opened() as opened:
                status, value = 200, api.answered(opened, api.READS[question["name"]], question["asked"])
        except Exception as error:
            status, value = api.failed(error)
        try:
            print(status, json.dumps(value), file=output, flush=True)
        except BrokenPipeError:  # the server is gone
            os._exit(0)
