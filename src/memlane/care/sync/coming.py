"""What comes of one file from a remote: what is known of it, what it was made of, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from memlane import config
from memlane.care.sync import lineage, local, parts
from memlane.care.sync.sieve import Sieve
from memlane.care.sync.state import Known, State
from memlane.care.sync.travel import Place
from memlane.core.invisible import visible
from memlane.disk import written
from memlane.exchange.remotes import Entry
from memlane.history.journaled import earlier

if TYPE_CHECKING:
    from memlane.bank import Bank

_EARLIER = 100  # contents of a file that are looked at where it seems to come from here


@dataclass(slots=True)
class Coming:
    """What the remote has of a file (`data`, None for nothing), judged: what of it may be written here (`theirs`), why
    the rest may not, and what both sides had in common.
    """

    place: Place
    entry: Entry
    data: bytes | None
    full: bytes | None  # without what was forgotten
    is_cut: bool  # whether that is less, and what is gone was forgotten itself
    theirs: bytes | None
    reasons: tuple[str, ...]
    before: Known | None
    base: bytes | None
    known: Known  # of the file, once it is written
    said: lineage.Lineage
    have: lineage.Lineage = field(default_factory=dict)  # of what is here
    is_forked: bool = False  # whether somebody else has counted under our name, or one that we had
    is_shared: bool = False  # whether others can have all that it was merged with
    told: str = ""  # the lineage of what is written


def either(ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """What stays of two contents with the same changes in them.

    Members who merged these in different orders have made something else of them: everybody keeps the same one.
    """
    if ours is None or theirs is None:
        return ours
    return max(ours, theirs, key=lambda data: (len(data), data))


def recognize(remote: str, state: State, coming: Coming) -> None:
    """Know whether what comes was counted, or sent, by us, and was made of what the remote had when we last looked: one
    that was brought back from a backup has lost that. Where somebody else counts under our name, take another.
    """
    entry, said = coming.entry, coming.said
    forked = lineage.forked(state, coming.place.key, said)
    if state.me in forked:
        state.take_new_name()  # else both would go on counting under one
    coming.is_forked = bool(forked)
    had = lineage.parsed(coming.before.lineage) if coming.before else {}
    if said and not lineage.covers(said, had):
        coming.base = None
    if mine := state.sent(remote, entry.scope, entry.path):
        seen, mark, then = mine
        mine_is_in = mark and not coming.is_forked and lineage.covers(said, lineage.parsed(mark))
        if seen == coming.known.seen or mine_is_in:
            coming.base = then  # it arrived, though we were not told


def is_our_past(bank: Bank, state: State, coming: Coming, ours: bytes | None) -> bool:
    """Whether just this content became what is here, and came from here: what is known of remotes is from an old copy
    of a disk, which does not tell that it was sent.
    """
    said, have = coming.said, coming.have
    if coming.theirs is None or not lineage.is_our_own(state, coming.place.key, said):
        return False
    was_here = False
    for before in islice(earlier(bank, coming.place.file, ours), _EARLIER):
        parts.note_past(bank, state, coming.place, before)
        was_here = was_here or before == coming.theirs
    others = lineage.without_ours(state, said)
    return was_here and lineage.covers(have, others) and not (have and lineage.covers(said, have))


def is_shared(sieve: Sieve, place: Place, ours: bytes | None) -> bool:
    """Whether others can have all that is here of a file. Of files with many memories each makes something else:
    it depends on what was ever there.
    """
    if place.is_log or not place.lane or place.shares_files:
        return False
    return ours is None or sieve.sendable(place, ours)[0] == ours


def note_origins(mine: bool, changes: Iterable[tuple[Coming, bytes | None, bytes | None]]) -> None:
    """Note whose the memories are that files get with this, and did not have: unless they were written here before.
    Each comes with what its file held, and what it holds then.
    """
    kept = config.written()
    whose: dict[str, str] = {}
    for coming, before, after in changes:
        if after is not None and after != before:
            author = written.HERE if mine else _origin(coming.entry.author)
            whose |= dict.fromkeys(_keys(coming.place, before, after), author)
    if kept and whose:
        kept.note({key: whose[key] for key in kept.unknown(whose)})


def told_of(state: State, coming: Coming, ours: bytes | None, after: bytes | None) -> str:
    """The lineage of what was made of what is here and what came."""
    have, said = coming.have, coming.said
    path, is_old = coming.place.key, bool(said) and lineage.covers(have, said) and not lineage.covers(said, have)
    if after == ours and (is_old or coming.reasons):
        return lineage.spelt(have)  # nobody has changed it: else each member's would be something else
    if coming.reasons:  # what was held back is not in it
        return lineage.told(state, path, have, changed=True)
    # merged from what others have, too, it is nobody's change: whoever merges the same says the same of it. But of two
    # numbers that were given under one name, the larger one does not tell that the other's changes are in it
    is_nobodys = said and coming.is_shared and not coming.is_forked
    # but whoever does not know what was forgotten has what we took out, and would take this for something old
    changed = coming.is_cut or (after != coming.theirs and not is_nobodys)
    return lineage.told(state, path, lineage.joined(have, said), changed=changed)


def is_written_here(data: bytes | None) -> bool:
    kept = config.written()
    return data is not None and kept is not None and kept.what(written.key_of(data)) in written.OWN


def _origin(author: str) -> str:
    return f"{written.SYNC} {' '.join(visible(author).split())[:60]}".strip()


def _keys(place: Place, before: bytes | None, after: bytes) -> list[str]:
    """What the memories are known by that a file has now and did not have."""
    if not place.lane:
        return []
    if not place.is_log:
        return [written.key_of(after)]
    had = set(local.lines_of(before or b""))
    return [key for line in local.lines_of(after) if line not in had for key in written.record_keys(line)[0]]
