"""Who uses a bank, and what for: the name that changes are made in, what may be done, and in which scopes."""

from __future__ import annotations

from collections.abc import Iterable

from memlane.core.values import dataclass

RIGHTS = ("read", "write", "remove")  # each includes those before it
EVERYWHERE = "global"  # what has no scope is in this one


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody may do. `scopes` are names, or beginnings of names such as `team/*`; None is the whole bank.

    `name` is empty for the user, who may do everything.
    """

    name: str = ""
    right: str = RIGHTS[-1]
    scopes: tuple[str, ...] | None = None

    def may(self, right: str) -> bool:
        return self.right in RIGHTS and RIGHTS.index(right) <= RIGHTS.index(self.right)

    def covers(self, scope: str | None) -> bool:
        """Whether memories of this scope may be seen, and written where writing is allowed."""
        if self.scopes is None:
            return True
        name = scope or EVERYWHERE
        return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in self.scopes)


EVERYTHING = Access()


def highest(rights: Iterable[str]) -> str:
    """The one of these rights that includes the others; "" where there is none."""
    known = set(rights)
    return next((right for right in reversed(RIGHTS) if right in known), "")
