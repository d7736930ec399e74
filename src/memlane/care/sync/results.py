"""What a sync says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from memlane import gate
from memlane.core.invisible import visible

_COUNTS = ("sent", "received", "removed", "merged", "forgotten")


@dataclass(frozen=True, slots=True)
class Held:
    """A file that did not pass, as a whole or in part, and why. Never what is in it."""

    path: str
    why: str

    def to_dict(self) -> dict[str, str]:
        return {"path": self.path, "why": self.why}


@dataclass(slots=True)
class Synced:
    """What one sync did. `held` came from the remote and was not written here, `unsent` is here and was not sent."""

    remote: str
    sent: int = 0
    received: int = 0
    removed: int = 0
    merged: int = 0
    forgotten: int = 0
    held: list[Held] = field(default_factory=list)
    unsent: list[Held] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything was changed, here or there."""
        return bool(self.sent) or self.brought

    @property
    def brought(self) -> bool:
        """Whether anything was changed here."""
        return any((self.received, self.removed, self.forgotten))

    def then(self, later: Synced) -> Synced:
        """What this sync and a later one with the same remote did together."""
        counts = {name: getattr(self, name) + getattr(later, name) for name in _COUNTS}
        return replace(later, **counts)

    def to_dict(self) -> dict[str, Any]:
        lists = {name: [each.to_dict() for each in getattr(self, name)] for name in ("held", "unsent")}
        return {"remote": self.remote, **{name: getattr(self, name) for name in _COUNTS}, **lists}


def shown_path(path: str) -> str:
    """A name that somebody else may have chosen, as it can be shown."""
    return gate.shown(visible(path).replace("\n", " "))
