"""The verbs of a bank over time: taking back what was changed, and reading what was."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, cast

from memlane import config, gate
from memlane.bank.opened import Opened, verb
from memlane.core.errors import NotFound
from memlane.core.model import Memory
from memlane.recall import address, under

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.care.sync import Synced
    from memlane.history.feed import Changes
    from memlane.history.past import Change
    from memlane.history.recover import Lost
    from memlane.history.undo import Undone
    from memlane.lanes.answers import Version
    from memlane.recall.judged import Judged


class Journaled(Opened):
    """A bank whose changes can be listed and taken back, and that git can show as it was."""

    def undo(self, id: str | None = None) -> Undone:
        """Take back the last change, or the one of this id; what has changed since is left alone and named."""
        from memlane.history import undo

        done = undo.undo(cast("Bank", self), id)
        self._look_again()
        return done

    def redo(self) -> Undone:
        """Take back the last undo. Raises NotFound when something else was changed since."""
        from memlane.history import undo

        done = undo.redo(cast("Bank", self))
        self._look_again()
        return done

    def history(self, id: str) -> builtins.list[Version]:
        """Every version of a memory that the journal, its lane or git has, the newest first. Raises NotFound."""
        from memlane.history import versions

        return versions.history(cast("Bank", self), id)

    @under.by_id
    @verb
    def restore(self, id: str, version: str | None = None) -> Memory:
        """Bring back what was archived or deleted, or what a memory said in one of the versions that `history` names.

        Of an id that was deleted more than once, the latest. One that is held back is kept from now on.
        """
        from memlane.care.restore import restore

        return restore(cast("Bank", self), id, version)

    def lost(self) -> builtins.list[Lost]:
        """What is gone or changed back without memlane, and could be brought back. Reads only."""
        from memlane.history import recover

        return recover.lost(cast("Bank", self))

    def recover(self, *names: str) -> builtins.list[Lost]:
        """Bring back what is lost, or of these ids and files only; returns what was. Raises StorageError."""
        from memlane.history import recover

        done, _ = recover.recover(cast("Bank", self), names)
        self._look_again()
        return done

    def changes(self, since: str | None = None, limit: int | None = None) -> Changes:
        """What was changed in this bank, memory by memory, the oldest first: after `since`, an earlier call's cursor.

        "now" gives the cursor alone, to begin with. `complete` is False where the journal does not reach back that far,
        or there is none. A change is never cut in two, so there may be some more than `limit`. What comes after one
        that is being made waits while its process lives. What was written without memlane is in no journal.
        """
        from memlane.history import feed

        return feed.changes(cast("Bank", self), since, limit)

    def sync(self, remote: str | None = None, *, deletions: bool = False) -> builtins.list[Synced]:
        """Bring the bank into step with a remote that `memlane sync add` named, or with all; what was done for each.

        With `deletions`, also where many files are gone here. What was done until an error is done, and the next call
        goes on. Where much came, it is indexed. Raises NotFound, Unreachable, StorageError.
        """
        from memlane.care import sync

        bank = cast("Bank", self)
        try:
            done = sync.sync(bank, remote, deletions=deletions)
        finally:
            self._look_again()
        sync.index(bank, done)
        return done

    def judge(
        self,
        id: str,
        verdict: str | None,
        *,
        session: str | None = None,
        at: datetime | str | None = None,
    ) -> Judged:
        """Say what you think of a memory that your agent was given: "useful", "wrong" or "never"; None takes it back.

        It is about the last time that a session was given it, or this `session`, or at this time; for one that was
        never given, about the memory itself. "never": no prompt gets it unasked any more; "wrong": not until it says
        something else, and `review` lists it. Without session and time, None takes back all that was said of it.
        Changes no file of the bank. Raises NotFound, InvalidInput.
        """
        from memlane.history.judging import judge

        return judge(cast("Bank", self), id, verdict, session, at)

    def as_of(self, when: datetime | str) -> Bank:
        """The bank as it was at a commit, or at the last commit of this branch up to a date: to be read, not changed.

        Its files are a private copy, which `close` removes. Raises MemlaneError outside of git, InvalidInput for
        what is no date and no commit, NotFound when no commit is that old.
        """
        from memlane.history import past

        copy = past.copy(self.config, when)
        bank = cast("Bank", type(self)(copy.settings))
        bank._copy, bank.left_out = copy, copy.problems
        bank.tombstones.private = self.tombstones.private
        return bank

    def log(self, id: str | None = None, limit: int | None = None) -> builtins.list[Change]:
        """The commits that changed memories, or this one, the newest first. Raises MemlaneError outside of git, and
        NotFound when no commit knows the id.
        """
        from memlane.history import past

        if id is not None:
            with suppress(NotFound):
                id = address.find_any(cast("Bank", self), id).id

        def memories(settings: config.Config) -> Iterator[Memory]:
            bank = type(self)(settings)
            bank.tombstones.private = self.tombstones.private  # a title tells, too
            return bank.memories()

        found = past.log(self.config, memories, id, limit)
        if id is not None and not found:
            raise NotFound(f"No commit has a memory {gate.shown(id)}.", hint="`memlane history` shows what they have.")
        return found
