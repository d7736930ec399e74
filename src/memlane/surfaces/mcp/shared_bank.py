"""The bank that all calls of a server share.

One call at a time uses the bank, on a worker thread, so that the server can answer other requests meanwhile. Calls take
turns in the order they came. Indexing is cut into slices of about a second, and other calls get a turn between slices.
The first call that finds a bank opens it, so a server that was started before `memlane init` works after it. A changed
configuration takes effect with the next call.
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
from memlane.disk import locks
from memlane.surfaces.mcp import toolsets

SLICE = 1.0  # seconds of indexing before another call has its turn
PATIENCE = 3.0  # seconds a write waits for a lock, while other calls wait for their turn
MANY = 500  # files: indexing so many ends with a report of its own

T = TypeVar("T")
Report = Callable[[float, float, str], Awaitable[None]]


class SharedBank:
    """A bank that is opened when it is first needed. `folder` and `flags` come from the command line."""

    def __init__(self, folder: str | Path | None = None, flags: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.flags = dict(flags or {})
        self._bank: Bank | None = None
        self._turn = CapacityLimiter(1)
        self._outdated = True  # whether the index may have missed a write

    async def run(self, work: Callable[[Bank], T], *, outdates_index: bool = False) -> T:
        """The result of `work(bank)`; `outdates_index` says that it writes without telling the index.

        Raises NotEnabled, ConfigError, and whatever `work` raises. Work that has begun is finished even when the caller
        goes away: a write is never left half-done.
        """

        def turn() -> T:
            locks.patience.set(PATIENCE)
            bank = self._open()
            self._outdated = self._outdated or outdates_index
            return work(bank)

        return await to_thread.run_sync(turn, limiter=self._turn)

    async def update_index(self, report: Report) -> None:
        """Bring the index up to date, and report progress where that takes long."""
        most, wait = 0, SLICE
        while True:
            done, total = await self.run(partial(self._index_slice, wait=wait))
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
        """The server's lifespan: calls may come while it lasts, and at its end the bank is closed."""
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
        config.require_trust(settings)
        if self._bank is None or settings != self._bank.config:
            self._close()
            toolsets.check(settings)
            self._bank = Bank(settings)
        return self._bank

    def _index_slice(self, bank: Bank, wait: float) -> tuple[int, int]:
        """Index for `wait` seconds. Returns how many files were indexed and how many needed it."""
        progress = [(0, 0)]
        with suppress(sqlite3.Error, ValueError, LookupError, TypeError, AttributeError):  # the next search repairs it
            # Most verbs of the lanes write without telling the index; it need not look for changes where none did.
            bank.index.refresh(
                force=self._outdated, wait=wait, progress=lambda done, total: progress.append((done, total))
            )
            self._outdated = False
            return progress[-1]
        return 0, 0
