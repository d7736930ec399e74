"""Processes that answer a server's reads, so that reads run beside each other, beside writes and on every core.

They are started when a read comes while another call is under way, so a server with one client has none. The first line
of a reader's input names the bank, every further line is a call, and each is answered with a line of JSON, after lines
on progress where indexing takes long. It ends when its input does, also when the server is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Any, NamedTuple, cast

from anyio import CapacityLimiter, Semaphore, to_thread

from memlane.bank import Bank
from memlane.disk import children, locks
from memlane.surfaces.mcp import answers, toolsets
from memlane.surfaces.mcp.shared_bank import MANY, PATIENCE, SLICE, SharedBank

Progress = Callable[[float, float], None]


class Call(NamedTuple):
    """A call of a tool: its arguments as the client sent them, and who asks."""

    tool: str
    arguments: Mapping[str, Any]
    who: str


class Readers:
    """The readers of one server. `count` 0 is none: every call is answered by the server itself."""

    def __init__(self, bank: SharedBank, tools: tuple[str, ...], count: int) -> None:
        self._bank, self._tools, self._count = bank, tools, count
        self._free: list[_Reader] = []
        self._up = 0  # free ones, and those that are answering
        self._turns = Semaphore(max(count, 1))
        self._threads = CapacityLimiter(max(count, 1))
        self._starting = Lock()
        self._started = False
        self._closed = False

    def start(self) -> None:
        """Start them beside what goes on, once. Each takes part as soon as it says that it is ready."""
        with self._starting:
            if self._started or not self._count:
                return
            self._started = True
        for _ in range(self._count):
            Thread(target=self._add, daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether one of them can take a call, now or when it has answered another."""
        return self._up > 0

    async def answer(self, call: Call, progress: Progress) -> answers.Answer | None:
        """The answer to a call; None when the reader broke, so that the caller answers it."""
        async with self._turns:
            try:
                reader = self._free.pop()
            except IndexError:  # fewer are up than may be
                return None
            broken = False
            try:
                return await to_thread.run_sync(reader.answer, call, self._bank.writes, progress, limiter=self._threads)
            except (OSError, ValueError):
                broken = True
                return None
            finally:  # also when the client goes away: a call that was begun is answered first
                if broken:
                    self._up -= 1
                    reader.close()
                    Thread(target=self._add, daemon=True).start()
                elif self._closed:
                    reader.close()
                else:
                    self._free.append(reader)

    def close(self) -> None:
        """End them. A call that one of them is answering is given up."""
        with self._starting:
            self._started = self._closed = True
        while self._free:
            self._free.pop().close()

    def _add(self) -> None:
        try:
            reader = _Reader(self._bank, self._tools)
        except (OSError, ValueError):  # the server answers by itself
            return
        with self._starting:
            if not self._closed:
                self._free.append(reader)
                self._up += 1
                return
        reader.close()


class _Reader:
    """One process and its pipes. Raises OSError or ValueError when it does not start."""

    def __init__(self, bank: SharedBank, tools: tuple[str, ...]) -> None:
        self._process = children.start(__name__, "main")
        self._input, self._output = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        folder = None if bank.folder is None else os.path.abspath(bank.folder)
        self._send({"folder": folder, "flags": bank.flags, "tools": tools})
        try:
            self._receive()
        except (OSError, ValueError):
            self.close()
            raise

    def answer(self, call: Call, writes: int, progress: Progress) -> answers.Answer:
        self._send({**call._asdict(), "writes": writes})
        while "done" in (line := self._receive()):
            progress(line["done"], line["total"])
        return answers.Answer(**line)

    def close(self) -> None:
        """End the process. A reader writes nothing but the index, which outlives anything."""
        children.end(self._process)

    def _send(self, message: dict[str, Any]) -> None:
        self._input.write(json.dumps(message).encode() + b"\n")
        self._input.flush()

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._output.readline())  # ValueError at the end of the output
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
    bank = SharedBank(first["folder"] and Path(first["folder"]), first["flags"])
    tools = {tool.name: tool for tool in toolsets.tools(first["tools"])}
    say(ready=True)
    writes = -1
    for line in sys.stdin:
        call = json.loads(line)
        if call["writes"] != writes:
            writes = call["writes"]
            bank.outdated = True
        tool = tools[call["tool"]]
        try:
            arguments = tool.checked(call["arguments"])
            with bank.opened() as opened:
                behind = _indexed(bank, opened, say) if tool.reads_index else 0
                answer = answers.answer(opened, tool, arguments, call["who"], tools)
                if behind:
                    answer = answer._replace(
                        text=f"{answer.text}\n({behind:,} files are not indexed yet: ask again soon.)"
                    )
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
    while True:
        done, total = bank.index_slice(opened, wait)
        most = max(most, total)
        if done == total or not new:
            break
        say(done=most - total + done, total=most)
        wait *= 1 if done else 2  # so large a bank that looking for changes took the whole slice
    if most >= MANY and done == total:
        say(done=most, total=most)
    return total - done
