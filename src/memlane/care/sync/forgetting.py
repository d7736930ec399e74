"""What one member forgets is gone everywhere: at the remote, and on every member's next sync.

What was forgotten travels as keyed hashes (`memlane.disk.forgotten_shared`), never as text, and before anything else:
so a member that was away cannot bring it back. Each member removes the memory with every trace that it has of it, as
`forget` does. Another memory that repeats it, as a copy under another name to which somebody has added something, loses
the lines that were forgotten, and keeps what was added: every member makes the same of it, so that nobody has to be
asked. What is merely like it is held back until a person decides.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from memlane import config
from memlane.care import forget
from memlane.care.sync import local, scopes, travel
from memlane.care.sync import state as states
from memlane.care.sync.sieve import Sieve
from memlane.care.sync.state import Settings, State, digest
from memlane.care.sync.travel import Place
from memlane.core.errors import Conflict, InvalidInput
from memlane.core.model import Memory
from memlane.disk import journal, written
from memlane.disk.forgotten_shared import MOST_BYTES, lines_in, unite
from memlane.exchange.remotes import Remote
from memlane.history.journaled import own_name, reading
from memlane.lanes import NAMES, scan

if TYPE_CHECKING:
    from memlane.bank import Bank

PATH = ".memlane/forgotten"
MANY, SHARE = 20, 2  # memories that may go without a question: so many, or less than one in two
_ATTEMPTS = 50


def exchange(
    bank: Bank, state: State, remote: Remote, settings: Settings, known: scopes.KnownFiles, *, many: bool, cursor: str
) -> tuple[int, bool]:
    """(how many memories were removed here, whether anything was forgotten since the last time).

    Each scope is told of its own memories. `many` says that it may be much, `cursor` how far we have come with the
    remote. Raises InvalidInput, StorageError, Conflict, Unreachable.
    """
    found = {scope: remote.get(PATH, scope, MOST_BYTES) for scope in settings.scopes}
    there = {scope: lines_in(one[1]) if one else {} for scope, one in found.items()}
    whose = scopes.of_forgotten(bank, state, settings, known, there)
    total, any_news = 0, False
    for scope, one in found.items():
        for _ in range(_ATTEMPTS):
            theirs = one[1] if one else b""
            united, all_known = unite(bank.tombstones.private, theirs, scope, whose)
            news = bool(all_known) and state.forgotten != digest(all_known)
            total += _cleared(bank, many=many) if news else 0
            if news:
                state.forgotten, any_news = digest(all_known), True
            if united == theirs:
                break
            if one is None and cursor:  # a drive that is not mounted would be given this, and look like a bank then
                next(iter(remote.changes(cursor)), None)
            try:
                version = one[0].version if one else None
                remote.put(PATH, united, version, scope=scope, author=settings.author)
                break
            except Conflict:
                one = remote.get(PATH, scope, MOST_BYTES)
        else:
            raise Conflict("Others are forgetting something all the time.", hint="`memlane sync` goes on.")
    return total, any_news


def _cleared(bank: Bank, *, many: bool) -> int:
    gone = bank.tombstones.private.is_gone
    total = 0
    live: dict[str, None] = {}
    repeating: dict[str, None] = {}
    for lane in bank.present():
        for item in scan(lane):
            if isinstance(item, Memory):
                total += 1
                if gone(item.text, item.id, item.title):
                    live[item.id] = None
                elif bank.tombstones.forgotten(item.text, item.id, item.title) and not lane.answers.shares_files:
                    repeating[item.file] = None
    if len(live) > MANY and len(live) * SHARE > total and not many:
        raise InvalidInput(
            f"Others have forgotten {len(live):,} of the {total:,} memories here: they are held back, not removed.",
            hint="If that is meant, `memlane sync --deletions` removes them for good.",
            code="many_deletions",
        )
    if repeating:
        with journal.paused():  # it is not to be told of what it must not know
            cut_out(bank, repeating)
    ids = dict.fromkeys((*live, *_deleted(bank), *_in_journal(bank)))
    if ids:
        forget.forget_again(bank, ids)
    bank.tombstones.drop_again()
    return len(live)


def cut_out(bank: Bank, paths: Collection[str]) -> None:
    """Take the lines that were forgotten out of these files, the journal, and what is known of them at remotes."""
    sieve = Sieve(bank)
    cut: dict[str, Place] = {}
    try:
        for place, _ in travel.among(bank, paths, NAMES, lambda _: True):

            def decide(now: bytes | None, place: Place = place) -> bytes | None:
                left = None if now is None else sieve.without_lines(place, now)
                if now is not None and left is not None:
                    keep_origin(now, left)
                return left or now

            before, after = local.settle(bank, place, decide)
            if before != after:
                cut[own_name(bank, place.file)] = place
                bank.wrote(place.lane, place.file)
        if cut and bank.journal is not None and bank.journal.path:
            bank.journal.purge(lambda name, data: sieve.remembered(cut[name], data) if name in cut else data, ())
    finally:
        sieve.close()
    clean_bases(bank, {place.file for place in cut.values()})


def keep_origin(before: bytes, after: bytes) -> None:
    """Note that what is left of a memory is whose the memory was: but no user's word any more."""
    kept = config.written()
    was = kept.what(written.key_of(before)) if kept and before != after else ""
    if kept and was:
        kept.note({written.key_of(after): written.HERE if was in written.OWN else was})


def _deleted(bank: Bank) -> Iterator[str]:
    """Deleted memories that were forgotten."""
    gone = bank.tombstones.private.is_gone
    for removed in bank.removed():
        lane, _, native = removed.id.partition(":")
        answers = bank.lane(lane).answers
        texts = [trace_text for trace in answers.traces(native) for trace_text in trace.texts]
        if any(gone(text, removed.id, title) for text in texts for title in answers.titles_of(removed)[:1] or [""]):
            yield removed.id


def _in_journal(bank: Bank) -> Iterator[str]:
    """Memories that were forgotten, and of which the journal has a version."""
    gone = bank.tombstones.private.is_gone
    if bank.journal is None or not bank.journal.path:
        return
    with reading(bank) as reader:
        for name, data in bank.journal.texts():
            for id, memory in reader.memories(name, data).items():
                if gone(memory.text, id, memory.title):
                    yield id


def clean_bases(bank: Bank, paths: Collection[str]) -> None:
    """Take what was forgotten out of what is known of remotes, as far as it was in one of these files."""
    with states.opened(bank.root) as state:
        if state is None:
            return
        sieve = Sieve(bank)
        try:
            names = {known.path for each in state.remotes() for known in state.files(each.name) if known.common}
            for path in sorted(names):
                place = travel.place_of(bank, path)
                if isinstance(place, Place) and _is_one_of(place.file, paths):

                    def clean(data: bytes, place: Place = place) -> bytes | None:
                        return sieve.remembered(place, data)

                    state.rebase(path, clean)
            state.shred()
        finally:
            sieve.close()


def _is_one_of(file: str, paths: Collection[str]) -> bool:
    return file in paths or os.path.realpath(file) in paths
