"""Staying in step: a sync whenever something changes, here or at the remote, until somebody ends it.

A change that memlane makes here is in the journal, which is quick to ask. What an editor or git did to the files is
found by a whole sync from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from memlane.care import sync as syncing
from memlane.care.sync import state as states
from memlane.care.sync.results import Synced
from memlane.core.errors import MemlaneError
from memlane.exchange import remotes
from memlane.exchange.remotes import Unreachable

if TYPE_CHECKING:
    from memlane.bank import Bank

PAUSE = 2.0  # seconds between two looks at what was changed here
WHOLE = 30.0  # seconds after which a sync looks at every file, whatever the journal says
FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0  # seconds until a remote that was not reached is tried again


def watch(bank: Bank, name: str | None = None, sleep: Callable[[float], None] = time.sleep) -> Iterator[Synced | str]:
    """What each sync did, for ever; or why one failed, which is tried again. Raises NotFound where there is no remote.

    What cannot get better by waiting is raised.
    """
    wait = FIRST_WAIT
    while True:
        before = _last_change(bank)
        try:
            yield from syncing.sync(bank, name)
        except Unreachable as error:
            yield f"{error} Trying again in {wait:.0f} s."
            sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
            continue
        wait = FIRST_WAIT
        _wait(bank, name, before, sleep)


def _wait(bank: Bank, name: str | None, before: int, sleep: Callable[[float], None]) -> None:
    """Wait until something may have changed."""
    until = time.monotonic() + WHOLE
    with states.opened(bank.root) as state:
        chosen = [each for each in (state.remotes() if state else ()) if name in (None, each.name)]
        cursors = {each.url: state.noted(each.name).cursor for each in chosen} if state else {}
    if len(cursors) == 1:
        [(url, cursor)] = cursors.items()
        with closing(remotes.opened(url)) as remote:
            while time.monotonic() < until and _last_change(bank) == before:
                try:
                    if remote.watch(cursor, PAUSE):
                        return
                except MemlaneError:  # the sync that follows says what is wrong
                    return
        return
    while time.monotonic() < until and _last_change(bank) == before:
        sleep(PAUSE)


def _last_change(bank: Bank) -> int:
    """The number of the last change that is not a sync."""
    kept = bank.journal
    changes = kept.changes(here=True, limit=5) if kept else []
    return max((change.number for change in changes if change.verb != "sync"), default=0)
