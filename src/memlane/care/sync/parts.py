"""What was deleted or changed in a file of many memories stays so, whichever way an older content of the file comes.

A merge knows by its base what one side has taken out. With several remotes that is not enough: a memory reaches two
members over different remotes, one of them deletes it, and the other, who never had it from where the deletion is,
takes what it has for something new. So two more things are asked:

    what `tombstones.jsonl` says      a memory was deleted that said just this
    which versions were ever here     a memory that has another text here now was this before

Whoever knows one of the two never takes such a version back, and whoever made the change knows. So each version comes
and goes once at every member, and all of them come to rest without it. A version that somebody has made meanwhile is
another one, and stays.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from memlane.care.sync import local
from memlane.care.sync.state import State
from memlane.care.sync.travel import Place
from memlane.lanes.answers import Part

if TYPE_CHECKING:
    from memlane.bank import Bank

Parts = dict[bytes, Part]  # by what stands for a version


def note(bank: Bank, state: State, place: Place, data: bytes | None) -> None:
    """Note which versions are in a file here."""
    found = {*_parts(bank, place, data)}
    if found and (new := found - state.had(place.path)):
        state.has(place.path, new)


def merged(
    bank: Bank, state: State, place: Place, base: bytes | None, ours: bytes | None, theirs: bytes | None, *, apart: bool
) -> bytes | None:
    """As `local.merged`, without what one side has and the other side is known to have deleted or changed. With
    `apart`, neither side was made knowing the other, and the base says nothing. Raises Unmergeable.
    """
    left = None if apart else base
    mine, yours, old = (_parts(bank, place, data) for data in (ours, theirs, base))
    if mine.keys() == yours.keys():
        return local.merged(place, left, ours, theirs)
    wanted = _wanted(bank, place, mine, yours, old)
    gone = {
        hash: part for hash, part in _gone(bank, state.had(place.path), mine, yours, old).items() if hash not in wanted
    }  # fmt: skip
    if not gone and not wanted:
        return local.merged(place, left, ours, theirs)
    ids = {part.id for part in gone.values()}
    kept = {
        hash: part for hash, part in old.items()
        if not apart and hash not in wanted and (part.id not in ids or hash in mine or hash in yours)
    }  # fmt: skip
    with_parts = bank.lane(place.lane).answers.with_parts
    before = with_parts(place.file, left or b"", [part.raw for part in (kept | gone).values()])
    if ours is None or theirs is None:  # all that is left to tell is what else was in the file
        empty = with_parts(place.file, ours or theirs or b"", [])
        after = local.merged(place, before, ours or empty, theirs or empty)
        return after if _parts(bank, place, after) else None
    return local.merged(place, before, ours, theirs)


def _gone(bank: Bank, had: set[bytes], mine: Parts, yours: Parts, old: Parts) -> Parts:
    """What is on one side alone, and was deleted or became another version on the other side."""
    gone: Parts = {}
    for this, other, other_had in ((mine, yours, {*old}), (yours, mine, had)):
        for hash, part in this.items():
            if hash in other:
                continue
            versions = [each for each in other if other[each].id == part.id]
            # others may have put it back in the place of what it had become
            put_back = this is yours and any(each in old and each not in yours for each in versions)
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
    if data is None or not place.lane:
        return {}
    found = bank.lane(place.lane).answers.parts(place.file, data)
    return {sha256(part.body.encode()).digest()[:16]: part for part in found}


def are_in(bank: Bank, place: Place, data: bytes | None) -> bool:
    """Whether a content has memories that `merged` looks at one by one."""
    return bool(_parts(bank, place, data))
