"""Staying in step: a sync whenever something changes, here or at a remote, until somebody ends it.

A change that memlane makes here is in the journal, which is quick to ask. What an editor or git did to the files is
found by a whole sync from time to time. Each remote goes its own way: one that cannot be reached delays no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from memlane.care import sync as syncing
from memlane.care.sync import state as states
from memlane.care.sync.results import Synced
from memlane.core.errors import Busy, MemlaneError
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
    waits: dict[str, float] = {}  # of the remotes that were not reached: how long each waits,
    left: dict[str, float] = {}  # and how much of that is left
    while True:
        before, brought = _last_change(bank), False
        for each in _names(bank, name):
            if left.get(each, 0.0) > 0:
                continue
            try:
                done = syncing.sync(bank, each)
            except (Unreachable, Busy) as error:
                left[each] = waits[each] = min(waits[each] * 2, LONGEST_WAIT) if each in waits else FIRST_WAIT
                yield f"{error} Trying again in {waits[each]:.0f} s."
                continue
            waits.pop(each, None)
            left.pop(each, None)
            brought = brought or any(one.received or one.removed or one.forgotten for one in done)
            yield from done
            syncing.index(bank, done)
        reached = [each for each in _names(bank, name) if each not in waits]
        if reached:
            begun = time.monotonic()
            # what one remote has brought is for those that had their turn before it
            _wait(bank, reached, before, min([PAUSE if brought and len(reached) > 1 else WHOLE, *left.values()]))
            spent = time.monotonic() - begun
        else:
            spent = min(left.values())
            sleep(spent)
        left = {each: seconds - spent for each, seconds in left.items()}


def _names(bank: Bank, name: str | None) -> list[str]:
    """Which remotes to be in step with. Raises NotFound."""
    with states.opened(bank.root) as state:
        found = [each.name for each in state.remotes()] if state else []
    if not found:
        raise syncing.without_remote()
    if name is None:
        return found
    if name not in found:
        raise states.no_remote(name)
    return [name]


def _wait(bank: Bank, names: Sequence[str], before: int, seconds: float) -> None:
    """Wait until something may have changed, here or at one of these remotes, at most so long."""
    until = time.monotonic() + seconds
    with ExitStack() as held:
        with states.opened(bank.root) as state:
            known = [(each.url, state.noted(each.name).cursor) for each in map(state.remote, names)] if state else []
        watched = [(held.enter_context(closing(remotes.opened(url))), cursor) for url, cursor in known]
        while (left := until - time.monotonic()) > 0 and _last_change(bank) == before:
            for remote, cursor in watched:
                try:
                    if remote.watch(cursor, min(left, PAUSE) / len(watched)):
                        return
                except MemlaneError:  # the sync that follows says what is wrong
                    return


def _last_change(bank: Bank) -> int:
    """The number of the last change that is not a sync."""
    kept = bank.journal
    changes = kept.changes(here=True, limit=5) if kept else []
    return max((change.number for change in changes if change.verb != "sync"), default=0)
