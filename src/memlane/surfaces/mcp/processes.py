"""Processes of a server's own, which answer calls in its place: how they are started, and how the two talk.

The first line of the input names the bank, every further line is a message, and so is every line of the output, which
may have something beside it that the server passes on without reading it. A process ends when its input does, also when
the server is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from memlane.core.access import Access
from memlane.core.values import astuple
from memlane.disk import children, locks
from memlane.surfaces.mcp import toolsets
from memlane.surfaces.mcp.calls import access_in
from memlane.surfaces.mcp.shared_bank import PATIENCE, SharedBank
from memlane.surfaces.mcp.tools import Tool

BESIDE = b"\t"  # between the two halves of a line; JSON writes it as \\t
LONGEST = 1 << 30  # bytes of a line
LAST = 5.0  # seconds that a process has to end
Say = Callable[..., None]


class Process:
    """One process and its pipes. What is asked of one that broke raises OSError or ValueError."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._input = cast(asyncio.StreamWriter, process.stdin)
        self._output = cast(asyncio.StreamReader, process.stdout)

    @classmethod
    async def started(cls, module: str, bank: SharedBank, tools: tuple[str, ...], access: Access) -> Self:
        """One that is ready, with the bank open as somebody with this access sees it.

        Its program is `main` of a module. Raises OSError or ValueError when it does not start.
        """
        pipe = asyncio.subprocess.PIPE
        command = children.command(module, "main")
        made = cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST))
        folder = None if bank.folder is None else os.path.abspath(bank.folder)
        try:
            about = {"folder": folder, "flags": bank.flags, "held": bank.held}
            await made.send({**about, "tools": tools, "access": astuple(access)})
            await made.receive()
        except BaseException:
            await made.kill()
            raise
        return made

    async def send(self, message: Mapping[str, Any]) -> None:
        self._input.write(json.dumps(message).encode() + b"\n")
        await self._input.drain()

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """A message, and what is beside it."""
        about, _, beside = (await self._output.readline()).partition(BESIDE)
        message: dict[str, Any] = json.loads(about)  # ValueError at the end of the output
        return message, beside.rstrip(b"\n")

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self._input.close()
        await self.process.wait()

    async def end(self) -> None:
        """Let it finish what it was asked, and wait for its end; one that does not end is killed."""
        self._input.close()
        try:
            async with asyncio.timeout(LAST):
                await self.process.wait()
        except TimeoutError:
            await self.kill()


class Told(NamedTuple):
    """What such a process is told at first."""

    users: SharedBank
    tools: dict[str, Tool]
    access: Access


def told(line: str | bytes, few: int | None = None) -> Told:
    """What is in the first line. `few` is that of `SharedBank`."""
    first = json.loads(line)
    folder = first["folder"] and Path(first["folder"])
    users = SharedBank(folder, first["flags"], held=first["held"], few=few)
    return Told(users, {tool.name: tool for tool in toolsets.tools(first["tools"])}, access_in(first["access"]))


def begun() -> Say:
    """Be such a process: how it says something. What others print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    locks.patience.set(PATIENCE)
    output, sys.stdout = sys.stdout.buffer, sys.stderr

    def say(beside: bytes = b"", **message: Any) -> None:
        output.write(json.dumps(message).encode() + BESIDE + beside + b"\n")
        output.flush()

    return say
