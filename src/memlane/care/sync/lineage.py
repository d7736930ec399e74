"""Whether a content of a file was made by somebody who knew another one: how many changes of each member are in it.

    5f0c1a:812043 77ab20:93310       all changes by one member until a certain one, and by another

With one remote its versions tell that. With several, what one remote has may come back over another, as if it were new:
members who share both would hand each other the old and the new content for ever. A content that has nothing in it that
we had not seen is old, whichever way it comes.

What a remote says of it is a claim, as all that it says. A false one can let something of its author's be taken for
newer than it is, which they could do anyhow. It cannot cover what was changed here and not yet sent: each change adds a
number that nobody guesses.

A state folder may be an old one, from a backup, or a copy on another machine. Then somebody else has given numbers
under the same name: `forked` tells, and neither side counts as the later one.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from memlane.care.sync.state import digest

if TYPE_CHECKING:
    from memlane.care.sync.state import State

_MEMBER = re.compile(r"([0-9a-f]{6}):([1-9][0-9]{0,11})")
_MOST = 60  # members: an object store takes 2,000 bytes beside a content, which the author is part of
_LARGEST = 10**12 - 1

Lineage = dict[str, int]


def parsed(text: str) -> Lineage:
    """What a remote says; nothing where it says nothing that can be."""
    found = [_MEMBER.fullmatch(word) for word in text[:2000].split()]
    return {match[1]: int(match[2]) for match in found if match}


def spelt(lineage: Lineage) -> str:
    return " ".join(f"{member}:{count}" for member, count in sorted(_largest(lineage, _MOST)))


def _largest(lineage: Lineage, most: int) -> list[tuple[str, int]]:
    if len(lineage) <= most:
        return list(lineage.items())
    return sorted(lineage.items(), key=lambda item: (-item[1], item[0]))[:most]


def covers(one: Lineage, other: Lineage) -> bool:
    """Whether all changes that the other has are in this one, too."""
    return all(one.get(member, 0) >= count for member, count in other.items())


def joined(one: Lineage, other: Lineage) -> Lineage:
    return {member: max(one.get(member, 0), other.get(member, 0)) for member in one.keys() | other.keys()}


def of(state: State, path: str, data: bytes | None) -> Lineage:
    """The lineage of what a file holds here. What nobody has told us of was changed here."""
    seen, text = state.lineage(path)
    lineage = parsed(text)
    if seen != digest(data):
        lineage = _changed(state, path, lineage)
        state.set_lineage(path, digest(data), spelt(lineage))
    return lineage


def forked(state: State, path: str, said: Lineage) -> set[str]:
    """The names of ours under which somebody else has counted changes of a file, too."""
    return _unknown(state, path, said, state.names(path) | {state.me})


def is_our_own(state: State, path: str, said: Lineage) -> bool:
    """Whether changes were counted under a name that we have or had, and nothing here tells of them: then what came may
    be from here, and what is known here older than that.
    """
    return bool(_unknown(state, path, said, state.called))


def _unknown(state: State, path: str, said: Lineage, names: set[str]) -> set[str]:
    return {name for name in names & said.keys() if not state.is_counted(path, name, said[name])}


def without_ours(state: State, said: Lineage) -> Lineage:
    """The changes by others."""
    return {name: count for name, count in said.items() if name not in state.called}


def met(state: State, path: str, said: Lineage) -> None:
    """Note that a content has come whose numbers may be somebody else's under a name of ours."""
    for name in state.names(path) & said.keys():
        state.count(path, name, said[name], given=False)


def told(state: State, path: str, lineage: Lineage, *, changed: bool) -> str:
    """What is told of a content with all this in it; `changed` when nobody else has it so."""
    return spelt(_changed(state, path, lineage) if changed else lineage)


def _changed(state: State, path: str, lineage: Lineage) -> Lineage:
    """The lineage after a change made here. Whatever others have claimed, the change is in it."""
    me, count = state.me, lineage.get(state.me, 0)
    if count > _LARGEST - 1_000_000:  # nobody counts so far: it was claimed, and another name is as good
        me, count = secrets.token_hex(3), 0
    others = _largest({member: counted for member, counted in lineage.items() if member != me}, _MOST - 1)
    count += 1 + secrets.randbelow(1_000_000)
    state.count(path, me, count)
    return {**dict(others), me: count}
