"""The verbs of a bank that its journal makes possible: taking back what was changed."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, cast

from memlane.bank.opened import Opened, verb
from memlane.core.model import Memory
from memlane.recall import under

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.disk.journal import Change
    from memlane.history.recover import Lost
    from memlane.history.undo import Undone
    from memlane.lanes.answers import Version


class Journaled(Opened):
    """A bank whose changes can be listed and taken back."""

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

    def changes(self, since: int = 0, limit: int | None = None) -> builtins.list[Change]:
        """What was changed after the change of this number, the newest first, wherever the bank lies on this machine.

        Empty without a journal.
        """
        return self.journal.changes(since=since, limit=limit) if self.journal else []
