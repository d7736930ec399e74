"""Processes that answer a server's reads, so that reads run beside each other, beside writes and on every core.

They are started when a read comes while another call is under way, so a server with one client has none. A reader is
told one call at a time, and says how far it is where a new index is made. An answer is JSON twice: what the server has
to know of it, and what the client is sent, which the server need not read.

No read waits for what takes long. Every few seconds all files have to be looked at, and somebody may bring thousands of
them: that is done between calls, by one reader at a time, while the others answer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import Semaphore

from memlane.bank import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.surfaces.mcp import answers, calls, processes
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.processes import Process
from memlane.surfaces.mcp.shared_bank import MANY, SLICE, SharedBank, are_current, indexes_of

if TYPE_CHECKING:
    from memlane.index.store import Index

FEW = 100  # files that a call indexes by itself: that takes a few hundredths of a second
LOOK = 4.0  # seconds after which all files are looked at between calls: before a call would have to
PAUSE = 0.2  # seconds between looks while the server itself writes, and tells the index of it
LATELY = 0.05  # seconds that settings are taken to stay as they are: to read them takes a tenth of a search
SPARE = 20  # a reader is busy with that for a twentieth of its time at most
T = TypeVar("T")
Progress = Callable[[float, float], Awaitable[None]]


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
        self._access: Access | None = None  # who was the first to need them; None before
        self._keeping = False  # whether one of them looks at all files

    def start(self, access: Access = EVERYTHING) -> None:
        """Start them beside what goes on, once. Each takes part as soon as it says that it is ready.

        Then it has the bank open, as somebody with this access sees it.
        """
        if self._access is None:
            self._access = access
            for _ in range(self._count):
                self._begin(self._add(access))

    @property
    def ready(self) -> bool:
        """Whether one of them can take a call, now or when it has answered another."""
        return self._up > 0

    async def answer(self, call: Call, progress: Progress) -> answers.Packed | None:
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

    async def _answered(self, reader: _Reader, call: Call, came: float, progress: Progress) -> answers.Packed | None:
        view = self._bank.seen_by(call.access)
        state = {"writes": self._bank.writes, "told": (view.told, view.untold), "telling": view.telling > 0}
        given = await self._said(reader, reader.answer(call, {**state, "came": came}, progress))
        if given is not None and reader.due <= time.monotonic() and not self._keeping:
            self._keeping = True
            self._begin(self._kept(reader))
        elif given is not None:
            self._give_back(reader)
        return given

    async def _kept(self, reader: _Reader) -> None:
        """Let a reader bring the index up to date, which ends its turn; where it is the only one, after each slice."""
        try:
            while (done := await self._said(reader, reader.keep())) is False:
                if self._up == 1 and self._turns.statistics().tasks_waiting:
                    break
        finally:
            self._keeping = False
        if done is not None:
            self._give_back(reader)

    def _give_back(self, reader: _Reader) -> None:
        self._free.append(reader)
        self._turns.release()

    async def _said(self, reader: _Reader, saying: Coroutine[Any, Any, T]) -> T | None:
        """What a reader says; None when it broke: then its turn is over, and another one is started."""
        try:
            return await saying
        except BaseException as error:
            self._up -= 1
            self._turns.release()
            await reader.kill()
            if not isinstance(error, OSError | ValueError):  # the server ends
                raise
            self._begin(self._add(self._access or EVERYTHING))
            return None

    async def close(self) -> None:
        """End them. A call that one of them is answering is given up."""
        self._access, self._up = self._access or EVERYTHING, 0
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._free:
            await self._free.pop().kill()

    async def _add(self, access: Access) -> None:
        with suppress(OSError, ValueError):  # the server answers by itself
            self._free.append(await _Reader.started(__name__, self._bank, self._tools, access))
            self._up += 1

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Reader(Process):
    """One of them. To kill it does no harm: it writes nothing but the index, which outlives anything."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(process)
        self.due = time.monotonic() + LOOK  # when it has to look at all files

    async def answer(self, call: Call, state: Mapping[str, Any], progress: Progress) -> answers.Packed:
        await self.send({**call.plain(), **state})
        while True:
            line, inside = await self.receive()
            if "done" not in line:
                break
            await progress(line["done"], line["total"])
        if line.pop("behind"):
            self.due = 0.0
        return answers.Packed(inside, **line)

    async def keep(self) -> bool:
        """Bring the index up to date for a while; whether it is."""
        await self.send({"keep": True})
        kept, _ = await self.receive()
        self.due = time.monotonic() + max(LOOK, SPARE * kept["took"])
        return bool(kept["current"])


def main() -> None:
    """Answer calls until the input ends."""
    say = processes.begun()
    try:
        _serve(say)
    except BrokenPipeError:  # the server is gone
        os._exit(0)


def _serve(say: processes.Say) -> None:
    users, tools, access = processes.told(sys.stdin.readline(), FEW)
    _warm(users.seen_by(access))
    say(ready=True)
    writes = -1
    for line in sys.stdin:
        call = json.loads(line)
        if "keep" in call:
            say(**_kept(users))
            continue
        if call["writes"] != writes:
            writes = call["writes"]
            users.outdate()
        access = calls.access_in(call["access"])
        bank = users.seen_by(access)
        tool = tools[call["tool"]]
        behind = False
        try:
            arguments = tool.checked(call["arguments"])
            with bank.opened(call["came"] - LATELY) as opened:
                now, indexes = time.monotonic(), indexes_of(opened) if tool.reads_index else []
                if indexes and _has_to_look(bank, call, now):
                    bank.seen = call["told"]
                    _indexed(bank, opened, say)
                    bank.looked = now if are_current(indexes) else bank.looked
                behind = not are_current(indexes)
                with _resting(indexes):
                    answer = answers.answer(opened, tool, arguments, call["who"], tools, access)
                if behind:
                    answer = answer._replace(text=f"{answer.text}\n(Some files are not indexed yet: ask again soon.)")
        except Exception as error:
            answer = answers.failure(error, tool.name, tools)
        inside, failed, code, ids = answers.packed(answer)
        say(inside, failed=failed, code=code, ids=ids, behind=behind)


def _has_to_look(bank: SharedBank, call: Mapping[str, Any], now: float) -> bool:
    """Whether files may have changed of which the index does not know.

    Calls that waited together are answered by one look at the disk, made after they came. While the server writes, and
    tells the index of it, nearly all that a look finds is what it has just told or is about to, which would be indexed
    twice: then there is one every PAUSE, and what others change meanwhile is found so much later.
    """
    if bank.outdated:
        return True
    if call["came"] < bank.looked:
        return False
    told, untold = call["told"]
    if bank.seen[1] != untold or (bank.seen[0] == told and not call["telling"]):
        return True
    return now >= bank.looked + PAUSE


@contextmanager
def _resting(indexes: Sequence[Index]) -> Iterator[None]:
    """While an answer is made of indexes that were looked after before."""
    for index in indexes:
        index.rests = True
    try:
        yield
    finally:
        for index in indexes:
            index.rests = False


def _warm(bank: SharedBank) -> None:
    """Have everything in memory that a search needs. What is wrong with the bank, the calls will say.

    What is there then stays: nobody need look through it again for what could be thrown away, which would take longer
    than a search.
    """
    with suppress(Exception), bank.opened() as opened:
        bank.index_slice(opened, SLICE)
        opened.search("memory", limit=1)
    gc.collect()
    gc.freeze()


def _kept(users: SharedBank) -> dict[str, Any]:
    """Look at all files and index what has changed, for a while; whether all of it is, and the CPU seconds of that."""
    began, current = time.thread_time(), True
    for bank in [*users.views.values()]:
        with suppress(Exception):  # a call will say it
            current = bank.kept(SLICE) and current
    return {"current": current, "took": time.thread_time() - began}


def _indexed(bank: SharedBank, opened: Bank, say: Callable[..., None]) -> None:
    """Bring the index up to date, as far as that is quick. A new index is made whole."""
    try:
        new = not opened.index.columns().used
    except (sqlite3.Error, ValueError, LookupError):  # it is damaged, and will be replaced
        new = True
    if not new:
        bank.index_slice(opened, SLICE)
        return
    most, wait = 0, SLICE
    shown = bank.access.scopes is None  # how many files there are is not for everybody to know
    while True:
        done, total = bank.index_slice(opened, wait, now=True)
        most = max(most, total)
        if done == total:
            break
        if shown:
            say(done=most - total + done, total=most)
        wait *= 1 if done else 2  # so large a bank that looking for changes took the whole slice
    if shown and most >= MANY:
        say(done=most, total=most)
