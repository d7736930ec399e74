"""The bank that all calls of a server share.

One call at a time touches the bank, on a worker thread, so that the server goes on answering meanwhile. Calls wait for
their turn in the order they came; building the index is cut into slices of about a second, with a turn for others
after each. The bank is opened by the first call that finds one: a server that was started before `memlane init`
begins to work after it, and a change of the configuration counts from the next call on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

from memlane import config
from memlane.bank import Bank
from memlane.surfaces.mcp.toolsets import check

SLICE = 1.0  # seconds of indexing before another call has its turn
MANY = 500  # files to index that are worth a word about how far it is

T = TypeVar("T")
Report = Callable[[float, float, str], Awaitable[None]]


class SharedBank:
    """A bank that is opened when it is needed. `folder` and `flags` are those of the command line."""

    def __init__(self, folder: str | Path | None = None, flags: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.flags = dict(flags or {})
        self._bank: Bank | None = None
        self._turn = CapacityLimiter(1)
        self._behind = True  # whether the index may have missed something

    async def run(self, work: Callable[[Bank], T], *, behind: bool = False) -> T:
        """What `work` makes of the bank; `behind` says that it writes what the index is not told of.

        Raises NotEnabled, ConfigError, and whatever `work` raises. Once begun, it is finished even when the caller goes
        away: a write is never left half-done.
        """

        def turn() -> T:
            bank = self._open()
            self._behind = self._behind or behind
            return work(bank)

        return await to_thread.run_sync(turn, limiter=self._turn)

    async def catch_up(self, report: Report) -> None:
        """Bring the index up to date, and say how far it is where that takes long."""
        most, wait = 0, SLICE
        while True:
            done, total = await self.run(partial(self._slice, wait=wait))
            most = max(most, total)
            if done == total:
                break
            if not done:  # so large a bank that looking for changes took the whole slice
                wait *= 2
            await report(most - total + done, most, "indexing")
        if most >= MANY:
            await report(most, most, "indexed")

    @asynccontextmanager
    async def serving(self, server: object) -> AsyncIterator[Self]:
        """The time in which calls may come; afterwards the bank is closed."""
        try:
            yield self
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(self._close, limiter=self._turn)

    def _close(self) -> None:
        if self._bank is not None:
            self._bank.close()
            self._bank = None

    def _open(self) -> Bank:
        settings = config.load(self.folder, self.flags)
        if self._bank is None or settings != self._bank.config:
            self._close()
            check(settings)
            self._bank = Bank(settings)
        return self._bank

    def _slice(self, bank: Bank, wait: float) -> tuple[int, int]:
        """Index for so many seconds. (files indexed, files that had to be)"""
        at = (0, 0)

        def note(done: int, total: int) -> None:
            nonlocal at
            at = (done, total)

        # Most of the lanes' own verbs write without telling the index; it need not look where none of them did.
        force = self._behind
        with suppress(sqlite3.Error, ValueError, IndexError):  # a damaged index is mended by whoever asks it next
            bank.index.refresh(force=force, wait=wait, progress=note)
            self._behind = False
            return at
        return 0, 0
