"""The bank that all calls of a server share.

One call at a time uses the bank, on a worker thread, so that the server can answer other requests meanwhile. Calls take
turns in the order they came. A call that has to wait for the lock of a file gives its turn to the next one and goes on
beside it, for threads may share a bank: so a writer that hangs elsewhere does not stop everybody. Indexing is cut into
slices of about a second, and other calls get a turn between slices.
The first call that finds a bank opens it, so a server that was started before `memlane init` works after it. A changed
configuration takes effect with the next call. A bank that held files and is gone, because its disk is not mounted any
more, is not taken for an empty one: what was written then would be lost under the disk when it comes back.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CapacityLimiter, Semaphore, from_thread, to_thread

from memlane import config
from memlane.bank import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.core.errors import StorageError
from memlane.disk import locks, walking

if TYPE_CHECKING:
    from memlane.index.store import Index

SLICE = 1.0  # seconds of indexing before another call has its turn
PATIENCE = 3.0  # seconds a write waits for a lock
THREADS = 64  # calls that wait for locks, and the one whose turn it is
VIEWS = 24  # of one bank that are open at a time
MANY = 500  # files: indexing so many ends with a report of its own

T = TypeVar("T")
Report = Callable[[float, float], Coroutine[Any, Any, None]]


class SharedBank:
    """A bank that is opened when it is first needed. `folder` and `flags` come from the command line.

    It is the user's own view of it; others have other views of the same bank: `seen_by`. `held` is the folder in which
    a bank with files was seen. `few`: as in `memlane.index.store.Index`.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        flags: Mapping[str, Any] | None = None,
        access: Access = EVERYTHING,
        held: str = "",
        few: int | None = None,
    ) -> None:
        self.folder = folder
        self.flags = dict(flags or {})
        self.access = access
        self.held = held
        self.few = few
        self._entry = ""  # something that was in that folder
        self.views: dict[Access, SharedBank] = {access: self}  # of this bank, the same ones in all of them
        self._settings: config.Config | None = None
        self._bank: Bank | None = None
        self._users: Counter[Bank] = Counter()
        self._opening = Lock()  # guards the two above
        self._settled = 0.0  # when its settings were last looked at
        self._turn = Semaphore(1)
        self._threads = CapacityLimiter(THREADS)
        self.outdated = True  # whether the index may have missed a write
        self.writes = 0  # how many calls may have left it so
        self.looked = 0.0  # when the index was last found up to date, by `time.monotonic`
        self.seen = (0, 0)  # `told` and `untold` of the server, when the index was last looked after
        self.telling = 0  # calls under way that tell the index of this view what they write
        self.told = 0  # how many of these have ended
        self.untold = time.monotonic_ns()  # a number that changes when one of another view has

    def seen_by(self, access: Access) -> SharedBank:
        """The bank as somebody may see it. There are at most VIEWS of them; the oldest is closed, and opens again."""
        if not access.name:
            return self.views[EVERYTHING]
        view = Access("*", access.right, access.scopes) if access.scopes is not None else Access("*")
        if view not in self.views:
            while len(self.views) >= VIEWS:
                self.views.pop(next(key for key in self.views if key is not EVERYTHING)).close()
            made = SharedBank(self.folder, self.flags, view, self.held, self.few)
            made.views = self.views
            self.views[view] = made
        return self.views[view]

    def outdate(self) -> None:
        """Something was written without telling the index: every view has to look."""
        for view in [*self.views.values()]:
            view.outdated = True
            view.writes += 1

    def wrote_elsewhere(self) -> None:
        """Another process has written, and told its index: those of this one have to look, if they are asked."""
        for view in [*self.views.values()]:
            view.outdated = True

    @contextmanager
    def tells(self) -> Iterator[None]:
        """While something is written of which the index of this view is told, and no other."""
        self.telling += 1
        try:
            yield
        finally:
            self.telling -= 1
            self.told += 1
            for view in [*self.views.values()]:
                if view is not self:
                    view.untold += 1

    async def run(self, work: Callable[[Bank], T], *, outdates_index: bool = False) -> T:
        """The result of `work(bank)`; `outdates_index` says that it writes without telling the index.

        Raises NotEnabled, ConfigError, and whatever `work` raises. Work that has begun is finished even when the caller
        goes away: a write is never left half-done.
        """
        has_turn = True

        def give_turn() -> None:
            nonlocal has_turn
            if has_turn:
                has_turn = False
                self._turn.release()

        def on_thread() -> T:
            locks.patience.set(PATIENCE)
            locks.on_wait.set(lambda: from_thread.run_sync(give_turn))
            with self.opened() as bank:
                try:
                    return work(bank)
                finally:
                    if outdates_index:
                        self.outdate()

        await self._turn.acquire()
        try:
            return await to_thread.run_sync(on_thread, limiter=self._threads)
        finally:
            give_turn()

    async def update_index(self, report: Report) -> None:
        """Bring the index up to date, and report progress where that takes long."""
        most, wait = 0, SLICE
        while True:
            done, total = await self.run(partial(self.index_slice, wait=wait))
            most = max(most, total)
            if done == total:
                break
            if not done:  # so large a bank that looking for changes took the whole slice
                wait *= 2
            if self.access.scopes is None:  # how many files there are is not for everybody to know
                await report(most - total + done, most)
        if most >= MANY and self.access.scopes is None:
            await report(most, most)

    def close(self) -> None:
        """Close the bank, as soon as nobody uses it."""
        with self._opening:
            self._use(None)

    def close_all(self) -> None:
        for view in [*self.views.values()]:
            view.close()

    @contextmanager
    def opened(self, came: float = math.inf) -> Iterator[Bank]:
        """The bank with the settings of this moment, which nobody closes meanwhile.

        For a call that came at a time by `time.monotonic`, those of any moment since will do.
        """
        with self._opening:
            bank = self._bank
            if bank is None or came >= self._settled:
                now = time.monotonic()
                settings = config.load(self.folder, self.flags)
                config.require_trust(settings)
                self._require_files(os.fspath(settings.root))
                if bank is None or settings != self._settings:
                    bank = _seen_by(self.access, settings)
                    self._use(bank)
                self._settings = settings
                self._settled = now
            self._users[bank] += 1
        try:
            yield bank
        finally:
            with self._opening:
                if not self.held:
                    self._held(os.fspath(bank.root))
                self._users[bank] -= 1
                self._close_unused(bank)

    def _require_files(self, root: str) -> None:
        """Raise StorageError when the bank held files, and there are none."""
        if not self._held(root) and self.held == root:
            raise StorageError(
                "The bank's folder is gone, or empty: it held files when this server began.",
                hint="Bring it back, or mount its disk again. If it is meant to be empty, start the server again.",
            )

    def _held(self, root: str) -> bool:
        """Whether the folder holds something: a look at what it held before is a hundredth of listing it."""
        if not (self._entry and self.held == root and os.path.lexists(self._entry)):
            self._entry = walking.something_in(root)
            self.held = root if self._entry else self.held
        return bool(self._entry)

    def _use(self, bank: Bank | None) -> None:
        before, self._bank = self._bank, bank
        self._close_unused(before)

    def _close_unused(self, bank: Bank | None) -> None:
        if bank is not None and bank is not self._bank and not self._users[bank]:
            del self._users[bank]
            bank.close()

    def kept(self, wait: float) -> bool:
        """Look at all files and index for `wait` seconds, where the bank is open; whether everything is indexed."""
        if self._bank is None:
            return True
        with self.opened() as bank:
            self.index_slice(bank, wait, now=True)
            return are_current(indexes_of(bank))

    def index_slice(self, bank: Bank, wait: float, *, now: bool = False) -> tuple[int, int]:
        """Index for `wait` seconds. Returns how many files were indexed and how many needed it.

        `now`: every file is looked at, and as many are indexed as it takes.
        """
        progress = [(0, 0)]
        # Most verbs of the lanes write without telling the index; it need not look for changes where none did.
        outdated, self.outdated = self.outdated, False  # before we look: a write may end meanwhile
        try:
            for index in indexes_of(bank):
                index.few = None if now else self.few
                try:
                    index.refresh(
                        now=now or (outdated and not index.is_told),
                        wait=wait,
                        on_progress=lambda done, total: progress.append((done, total or 0)),
                    )
                finally:
                    index.few = self.few
                if progress[-1][0] != progress[-1][1]:
                    break
        except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError):  # the next search repairs it
            self.outdated = True
            return 0, 0
        return progress[-1]


def indexes_of(bank: Bank) -> list[Index]:
    """The index of a bank, and that of the user's own below it."""
    return [one.index for one in (bank, bank.under) if one]


def are_current(indexes: Iterable[Index]) -> bool:
    """Whether they have everything that the files had when they last looked."""
    return all(index.complete for index in indexes)


def _seen_by(access: Access, settings: config.Config) -> Bank:
    """The bank for somebody. What is the user's own, below the project's, is nobody else's."""
    if access == EVERYTHING:
        return Bank(settings)
    if access.scopes is None:
        return Bank(settings.without_user_bank())
    from memlane.bank.limited import Limited

    return Limited(settings, access)
