"""What a sync says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memlane import gate
from memlane.core.invisible import visible


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
        return any((self.sent, self.received, self.removed, self.forgotten))

    def to_dict(self) -> dict[str, Any]:
        counts = ("remote", "sent", "received", "removed", "merged", "forgotten")
        lists = {name: [each.to_dict() for each in getattr(self, name)] for name in ("held", "unsent")}
        return {**{name: getattr(self, name) for name in counts}, **lists}


def shown_path(path: str) -> str:
    """A name that somebody else may have chosen, as it can be shown."""
    return gate.shown(visible(path).replace("\n", " "))
