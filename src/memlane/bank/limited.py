"""A bank as somebody sees it who may use some scopes only: the same verbs, over lanes that have nothing else.

Its index is one of its own, made from these lanes: words are counted, spellings guessed and likenesses found among what
is seen. A verb that is not named here is refused, and so is one that reads more than the lanes: the journal, git, what
sessions were told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, cast

from memlane import config
from memlane.bank import Bank
from memlane.core.access import Access
from memlane.core.model import Memory
from memlane.disk.tombstones import Tombstones
from memlane.index.seal import IndexFile, beside
from memlane.lanes import NAMES, Lane
from memlane.lanes.limited import LimitedLane, checking, limited, refuse

_READ = (
    "alone", "changed_code", "check", "close", "context", "for_prompt", "get", "graph", "guard", "held", "index",
    "index_file", "lane", "linked", "list", "memories", "notes", "vault", "topics", "records", "layers", "origins",
    "original", "outdated", "present", "profile", "removed", "search", "snapshot", "stats", "suggest_merges", "under",
    "unseen", "users_word", "watch", "watch_of", "watching", "whose", "wrote",
)  # fmt: skip
_WRITE = ("add", "anchor", "append", "delete", "edit", "restore", "update")


class _Silent(Tombstones):
    """Says of no text that it was deleted or forgotten before: it may have been in another scope."""

    def lift(self, text: str, id: str = "", title: str = "", *, forgotten: bool = True) -> tuple[str, ...]:
        super().lift(text, id, title, forgotten=forgotten)
        return ()


class Limited(Bank):
    """The part of a bank that an access with scopes may use. Without the user's own bank below it."""

    def __init__(self, settings: config.Config, access: Access = Access(scopes=())) -> None:  # noqa: B008 - a value
        super().__init__(settings.without_user_bank())
        self.access = access
        self.tombstones = _Silent(self.tombstones.path, private=self.tombstones.private)

    def _seen(self, lane: Lane) -> Lane:
        return cast("Lane", limited(super()._seen(lane), self.access))

    @property
    def index_file(self) -> IndexFile:
        return super().index_file.of_scopes(self.access.scopes or ())

    def _vault_kept_at(self) -> Path | None:
        return beside(super().index_file, "vault")  # it has all, and forget knows where it is

    def get(self, id: str | None = None, *, key: str | None = None, expired: bool = False) -> Memory:
        if key is not None:
            refuse("A key")
        return super().get(id, expired=expired)

    def restore(self, id: str, version: str | None = None) -> Memory:
        if version is not None:
            refuse("An earlier version")
        return super().restore(id)

    def stats(self) -> dict[str, Any]:
        """As of any bank, but what is stored is counted by texts: a file may have memories of others."""
        unseen = self.unseen(expired=True)
        seen = [memory for memory in self.memories() if not unseen(memory)]
        lanes = {name: {"count": 0, "archived": 0, "bytes": 0} for name in NAMES}
        active = [memory for memory in seen if memory.status != "archived"]
        for memory in seen:
            lanes[memory.lane]["archived" if memory.status == "archived" else "count"] += 1
            lanes[memory.lane]["bytes"] += len(memory.text.encode(errors="replace"))
        return {
            "root": str(self.root),
            "count": len(active),
            "archived": len(seen) - len(active),
            "lanes": lanes,
            "tags": dict(Counter(tag for memory in active for tag in memory.tags).most_common()),
            "types": dict(Counter(memory.type for memory in active if memory.type).most_common()),
            "problems": 0,
            "removed": len(self.removed()),
            "told": {},
        }


def _refused(name: str) -> Callable[..., Any]:
    def refused(self: Limited, *_: Any, **__: Any) -> Any:
        refuse(name)

    return refused


def _checked(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb, whose writes are looked at whichever way they take."""

    @wraps(verb)
    def run(self: Limited, *given: Any, **labels: Any) -> Any:
        with checking(cast("LimitedLane", self.notes).check_write):
            return verb(self, *given, **labels)

    return run


for _name in dir(Bank):
    if not _name.startswith("_") and _name not in (*_READ, "init", "open"):
        _verb = _checked(getattr(Limited, _name)) if _name in _WRITE else _refused(_name)
        setattr(Limited, _name, _verb)
