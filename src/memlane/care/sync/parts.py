"""What was deleted or changed in a file of many memories stays so, whichever way an older content of the file comes.

A merge knows by its base what one side has taken out. With several remotes that is not enough: a memory reaches two
members over different remotes, one of them deletes it, and the other, who never had it from where the deletion is,
takes what it has for something new. So three more things are asked:

    what `tombstones.jsonl` says      a memory was deleted that said just this
    which versions were ever here     a memory that has another text here now was this before
    what a version came with          whoever has all changes of that content, and another text, has changed this one

Versions side by side that were all here before, as one became the other, are nothing new either. Whoever knows one of
these never takes such a version back, and whoever made the change knows. So each version comes and goes once at every
member, and all of them come to rest without it. A version that somebody has made meanwhile is another one, and stays.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from memlane.care.sync import local
from memlane.care.sync.lineage import Lineage, covers, parsed
from memlane.care.sync.state import State
from memlane.care.sync.travel import Place
from memlane.core.alternatives import decided, most
from memlane.lanes.answers import Part

if TYPE_CHECKING:
    from memlane.bank import Bank

Parts = dict[bytes, Part]  # by what stands for a version


def note(
    bank: Bank, state: State, place: Place, data: bytes | None, told: str, of: bytes | None = None, said: str = ""
) -> None:
    """Note which versions are in what a file holds here; those that it did not hold before came with its lineage, or
    with that of the content that it was made `of`.
    """
    if not place.shares_files:
        return
    found = {*_parts(bank, place, data)}
    here = {hash for hash, version in state.had(place.path).items() if version.here}
    if found != here:
        came = {*_parts(bank, place, of)}
        state.has(place.path, {hash: said if hash in came else told for hash in found - here}, gone=here - found)


def note_past(bank: Bank, state: State, place: Place, data: bytes) -> None:
    """Note which versions are in what a file held here before, perhaps between two syncs."""
    if place.lane and bank.lane(place.lane).answers.shares_files:
        new = _parts(bank, place, data).keys() - state.had(place.path).keys()
        state.has(place.path, dict.fromkeys(new, ""), gone=new)


def merged(
    bank: Bank,
    state: State,
    place: Place,
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    said: Lineage,
    *,
    apart: bool,
) -> bytes | None:
    """As `local.merged`, without what one side has and the other side is known to have deleted or changed. `said` is
    the lineage of what comes. With `apart`, neither side was made knowing the other, and the base says nothing. Raises
    Unmergeable.
    """
    left = None if apart else base
    mine, yours, old = (_parts(bank, place, data) for data in (ours, theirs, base))
    if mine.keys() == yours.keys():
        return local.merged(place, left, ours, theirs)
    wanted = _wanted(bank, place, mine, yours, old)
    had = state.had(place.path)
    came = {hash: parsed(had[hash].lineage) for hash in mine if hash in had}
    seen = {*old, *(hash for hash, lineage in came.items() if lineage and covers(said, lineage))}
    gone = {
        hash: part for hash, part in _gone(bank, mine, yours, {*had}, seen).items() if hash not in wanted
    }  # fmt: skip
    if not gone and not wanted:
        return local.merged(place, left, ours, theirs)
    ids = {part.id for part in gone.values()}
    kept = {  # of what goes nothing else: a version that one side alone has would look as if the other had deleted it
        hash: part for hash, part in old.items()
        if not apart and hash not in wanted and (part.id not in ids or (hash in mine and hash in yours))
    }  # fmt: skip
    with_parts = bank.lane(place.lane).answers.with_parts
    before = with_parts(place.file, left or b"", [part.raw for part in (kept | gone).values()])
    if ours is None or theirs is None:  # all that is left to tell is what else was in the file
        empty = with_parts(place.file, ours or theirs or b"", [])
        after = local.merged(place, before, ours or empty, theirs or empty)
        return after if _parts(bank, place, after) else None
    return local.merged(place, before, ours, theirs)


def _gone(bank: Bank, mine: Parts, yours: Parts, had: set[bytes], seen: set[bytes]) -> Parts:
    """What is on one side alone, and was deleted or became another version on the other side: we `had` it, they have
    `seen` it.
    """
    sides = ((mine, yours, seen), (yours, mine, had))
    gone: Parts = {}
    stays: set[bytes] = set()
    for this, other, other_had in sides:
        for hash, part in this.items():
            ways = _ways(part) if hash not in other else set()
            if not ways.isdisjoint(other) and ways <= other_had | other.keys():
                gone[hash] = part
                stays |= ways
    for this, other, other_had in sides:
        for hash, part in this.items():
            if hash in other or hash in stays:
                continue
            versions = [each for each in other if other[each].id == part.id]
            # others may have put it back in the place of what it had become: whoever has seen that is the later one
            put_back = this is yours and any(each in seen and each not in yours for each in versions)
            was_there = hash in other_had and (not put_back if versions else bank.tombstones.knows(part.id, part.text))
            if was_there or bank.tombstones.was(part.id, part.text):
                gone[hash] = part
    return gone


def _wanted(bank: Bank, place: Place, mine: Parts, yours: Parts, old: Parts) -> set[bytes]:
    """What was taken out here, and others have as it was, because somebody has restored it meanwhile: that is a change,
    though nothing of it shows.
    """
    out = [hash for hash in old if hash in yours and hash not in mine and bank.tombstones.wanted(old[hash].text)]
    archived = bank.lane(place.lane).answers.archived if out else None
    return {hash for hash in out if archived and not archived(place.file, old[hash].raw)}


def _parts(bank: Bank, place: Place, data: bytes | None) -> Parts:
    if data is None or not place.shares_files:
        return {}
    return {_hash(part.body): part for part in bank.lane(place.lane).answers.parts(place.file, data)}


def _hash(body: str) -> bytes:
    """What stands for a version, whatever empty lines are in it."""
    return sha256("\n".join(line for line in body.splitlines() if line.strip()).encode()).digest()[:16]


def _ways(part: Part) -> set[bytes]:
    """What stands for each of the versions that a memory has side by side; nothing where it has one."""
    return {_hash(decided(part.body, number)) for number in range(1, most(part.body) + 1)}


def are_in(bank: Bank, place: Place, data: bytes | None) -> bool:
    """Whether a content has memories that `merged` looks at one by one."""
    return bool(_parts(bank, place, data))
