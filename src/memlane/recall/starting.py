"""What a session starts with, beyond what every prompt gets: chosen by worth, not by date.

    rules         rules and preferences, by their tag; those that the user wrote are the user's standing instructions
    open work     what is not done yet, by its tag; of what was said on a branch of git, only that of this one
    about files   what is said of the files that are being worked on
    the rest      a few more: those written on purpose, the newest first, then the surest that nobody has confirmed

In each of them, what nobody has confirmed comes last, the surest first, and the later the longer it was not said. What
the assistant said in a session is no rule and no lesson: such records are only among the rest, and only where they are
looked at at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memlane.core import triggers
from memlane.core.choosing import Fits, list_order
from memlane.core.dates import utc_now
from memlane.core.model import UNCONFIRMED, Memory
from memlane.core.patterns import lazily
from memlane.recall.unconfirmed import weight

if TYPE_CHECKING:
    from memlane.index.peek import Peek

RULES = ("rule", "preference")  # tags
PINNED = "pinned"  # the tag of a note that goes into every snapshot
OPEN = "open"
MOST = 5  # rules that nobody confirmed, open work, memories about files
FILES = 20  # that are looked for
_PATH = r"[\w@+./-]*"
# A name that many folders of a project have says nothing without its folder.
_COMMON = lazily(
    r"(?:__init__|__main__|index|main|mod|lib|types|utils|readme|changelog|package|makefile)\b", re.IGNORECASE
)


def chosen(peek: Peek, fits: Fits, files: Sequence[str], recent: int, branch: str | None = None) -> list[list[Memory]]:
    """Rules, open work, memories about these files, and so many of the rest; none of them twice.

    Open work that was said on another `branch` is in none of them; None means that the branch is not known.
    """
    taken: set[str] = set()
    now = utc_now()

    def order(memory: Memory) -> tuple[object, ...]:
        """Confirmed ones first, the newest of them first; then the surest."""
        sure = memory.fields.get("confidence") if memory.unconfirmed else 0.0
        sure = sure * weight(memory, now) if isinstance(sure, float) else 0.0
        return memory.unconfirmed, -sure, list_order(memory)

    def here(memory: Memory) -> bool:
        elsewhere = OPEN in memory.tags and branch is not None and memory.fields.get("branch") not in (None, "", branch)
        return not elsewhere and fits(memory)

    def kept(memories: Iterable[Memory], most: int | None = None) -> list[Memory]:
        found = [memory for memory in memories if memory.id not in taken][:most]
        taken.update(memory.id for memory in found)
        return found

    def lasting(memories: Iterable[Memory]) -> list[Memory]:
        return sorted((one for one in memories if one.lane != "records" and here(one)), key=order)

    rules = lasting(peek.tagged(*RULES))
    sure = kept(memory for memory in rules if not memory.unconfirmed)
    rules = [*sure, *kept(rules, MOST)]
    work = kept(lasting(peek.tagged(OPEN)), MOST)
    names = _names(files)
    about = lasting(peek.holding(names)) if names else []
    places = {memory.id: place for memory in about if (place := _place(memory, names)) is not None}
    about = kept(
        sorted((one for one in about if one.id in places), key=lambda one: (one.unconfirmed, places[one.id])), MOST
    )

    def at_any_time(one: Memory) -> bool:  # what says when it applies waits for that moment
        return here(one) and not one.unconfirmed and one.id not in taken and not triggers.of(one.fields)

    rest = kept(peek.first(at_any_time, limit=recent))
    rest = [memory for memory in rest if memory.created_at or memory.updated_at]
    if len(rest) < recent:
        rest += kept(lasting(peek.tagged(UNCONFIRMED)), recent - len(rest))
    return [rules, work, about, rest]


def rules_in(peek: Peek, fits: Fits) -> list[Memory]:
    """The rules and preferences, the newest first."""
    return sorted((one for one in peek.tagged(*RULES) if one.lane != "records" and fits(one)), key=list_order)


def is_rule(memory: Memory) -> bool:
    """Whether a memory is meant as an instruction: canon, or tagged as one. Whose word it is, its origin says."""
    if memory.unconfirmed or memory.superseded_by or memory.status == "archived":
        return False
    if memory.lane == "vault":
        return memory.fields.get("tier") == "canon"
    return memory.lane in ("notes", "topics") and not {*RULES, PINNED}.isdisjoint(memory.tags)


def _names(files: Sequence[str]) -> dict[str, list[str]]:
    """The names of files, each with the paths that it stands for, in their order."""
    names: dict[str, list[str]] = {}
    for path in files[:FILES]:
        names.setdefault(path.rpartition("/")[2], []).append(path)
    return names


def _place(memory: Memory, names: dict[str, list[str]]) -> int | None:
    """Which of the files a memory names, the first if several; None when it is none of them."""
    said = f"{memory.scope or ''}\n{memory.title}\n{memory.text}"
    for place, (name, paths) in enumerate(names.items()):
        for match in re.finditer(rf"(?<![\w@+./-])({_PATH}?){re.escape(name)}(?![\w-])", said):
            folder = match[1].removeprefix("./")
            if any(f"/{path}".endswith(f"/{folder}{name}") for path in paths) and (folder or not _COMMON.match(name)):
                return place
    return None
