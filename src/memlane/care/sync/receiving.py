"""What comes from a remote: judged, merged into what is here, and noted as somebody else's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from memlane.care.sync import forgetting, lineage, local, parts, scopes, travel
from memlane.care.sync.coming import (
    Coming,
    either,
    is_our_past,
    is_shared,
    is_written_here,
    note_origins,
    recognize,
    told_of,
)
from memlane.care.sync.results import Held, Synced, shown_path
from memlane.care.sync.sieve import Sieve
from memlane.care.sync.state import Known, Settings, State, digest
from memlane.care.sync.travel import Place
from memlane.core import progress
from memlane.core.errors import InvalidInput, StorageError
from memlane.disk import names, tombstones
from memlane.exchange.remotes import Entry, Remote, TooLarge, exchanged
from memlane.history.journaled import own_name
from memlane.lanes import NAMES
from memlane.lanes.merging import Unmergeable

if TYPE_CHECKING:
    from memlane.bank import Bank

OWN = ".memlane/"  # what at a remote is no file of a bank
MOST_FILES, MOST_BYTES = 100_000, 2 << 30  # that one sync takes from a remote
MOST_ENTRIES = 2_000_000  # that a remote lists
EVERY = 100  # files between two words on how far it is
BATCH_FILES, BATCH_BYTES = 1000, 4 << 20  # that are fetched, or sent, at once
_AGAIN = "could not be written"
_LIKE = "is like something that was forgotten"
APART = "both sides changed it, and it cannot be merged"
TWIN = "has a name that differs from another one only in case or Unicode form"


class Receiving:
    """A sync under way, as far as it takes what comes from the remote."""

    def __init__(self, bank: Bank, state: State, settings: Settings, remote: Remote, *, deletions: bool) -> None:
        self.bank, self.state, self.settings, self.remote = bank, state, settings, remote
        self.deletions = deletions
        self.name = settings.name
        self.lanes: Collection[str] = settings.lanes or NAMES
        self.sieve = Sieve(bank)
        self.done = Synced(settings.name)
        self.known = {(known.scope, known.path): known for known in state.files(settings.name)}
        there = [known.path for known in self.known.values() if known.seen and known.held != TWIN]
        self.taken = {names.folded(path): path for path in there}  # some file systems know no case
        self.several = len(state.remotes()) > 1
        self.fetched_files = self.fetched_bytes = 0
        self.asked: set[str] = set()  # the scopes of which it is known what was deleted, as the remote has it now

    def result(self) -> Synced:
        for known in self.known.values():
            if known.held:
                self.done.held.append(Held(shown_path(known.path), known.held))
            if known.unsent:
                self.done.unsent.append(Held(shown_path(known.path), known.unsent))
        return self.done

    def go_on(self) -> None:
        """Finish what was being written or sent when the last sync was interrupted.

        Else what we have from the remote, or sent there, would look like something of our own, and come back when
        somebody else deletes it.
        """
        for remote in self.state.remotes():  # what came over another one, too: else it looks changed here
            for intent in self.state.intents(remote.name):
                known = intent.known
                place = travel.place_of(self.bank, known.path)
                if isinstance(place, Place) and not place.lane and len(remote.scopes) > 1:
                    continue  # such lines are merged again, and mean the same
                found = _written(self.bank, place, intent.after) if isinstance(place, Place) else []
                if isinstance(place, Place) and found:
                    base = intent.base(found[0])
                    self.state.set_lineage(known.path, intent.after, intent.lineage)
                    self.state.save(remote.name, known, base)
                    if digest(base) == intent.after:
                        parts.note(self.bank, self.state, place, base, intent.lineage)
                    self._is_outdated(place.lane)
                    if remote.name == self.name:
                        self.known[known.scope, known.path] = known
            self.state.settle(remote.name)
        for scope, path in self.state.unheard(self.name):
            place = self._free(travel.place_of(self.bank, path))
            if isinstance(place, Place):
                self._fetch(place, scope)

    def forget(self) -> None:
        """Tell each other what was forgotten, and clear this bank of it: before anything else comes or goes."""
        cursor = self.state.noted(self.name).cursor
        removed, news = forgetting.exchange(
            self.bank, self.state, self.remote, self.settings, self.known, many=self.deletions, cursor=cursor
        )
        self.done.forgotten += removed
        if news:
            self.known = {(known.scope, known.path): known for known in self.state.files(self.name)}
            self._fetch_again([each for each in self.known.values() if each.held])

    def look_again(self) -> None:
        """Look again at what could not be taken, and at what was held back, where the gate has changed."""
        if self.state.noted(self.name).gate != self.sieve.rules:
            self._fetch_again([each for each in self.known.values() if each.held])
            for known in [each for each in self.known.values() if each.unsent]:
                known.stamp = ""
            self.state.note(self.name, gate=self.sieve.rules)
        failed = [each for each in self.known.values() if each.held.startswith(_AGAIN) or each.unsent.startswith(APART)]
        self._fetch_again(failed)

    def _fetch_again(self, these: Collection[Known]) -> None:
        for known in these:
            if isinstance(place := self._free(travel.place_of(self.bank, known.path)), Place):
                self._fetch(place, known.scope)

    # -- from the remote

    def pull(self) -> None:
        """Take what has changed at the remote.

        What lies in a lane beside its main files comes after them: an entry that somebody has archived must not be in
        both, should this be interrupted, or it would be archived twice.
        """
        listed, last, everything = 0, "", False
        first: list[tuple[Entry, Place | str]] = []
        later: list[tuple[Entry, Place | str]] = []
        cursor = self.state.noted(self.name).cursor
        unlisted = {key for key, known in self.known.items() if known.version}
        there = len(unlisted)
        for entries, after in self.remote.changes(cursor):
            everything = everything or not after
            news: list[tuple[Entry, Place | str]] = []
            for entry in entries:
                listed += 1
                unlisted.discard((entry.scope, entry.path))
                if listed > MOST_ENTRIES:
                    raise InvalidInput("The remote lists files without end.", hint="Look at what it is.")
                if entry.scope not in self.settings.scopes or entry.path.startswith(OWN):
                    continue
                known = self.known.get((entry.scope, entry.path))
                if known is None or known.version != entry.version:
                    place = travel.place_of(self.bank, entry.path)
                    if isinstance(place, Place) and not self._is_in_lanes(place):
                        continue  # nor does it take a name away from what is
                    comes_later = isinstance(place, Place) and place.comes_later
                    (later if comes_later else news).append((entry, place))
            if everything and there and len(first) < MOST_FILES:
                first += news  # before that, it has to be known whether it is the same remote
            else:
                self._take_all(news, listed - len(news))
            last = after or last
            if not later and not everything:
                self.state.note(self.name, cursor=after)
            elif len(later) > MOST_FILES:
                break
        if everything and len(later) <= MOST_FILES:
            self._lost(unlisted, there)
        self._take_all(first, listed - len(first))
        self._take_all(sorted(later, key=lambda each: each[0].path.endswith("index.md")), listed)
        self._refuse_flood(len(later))
        if later or everything:
            self.state.note(self.name, cursor=last)
        self._fetch_again(scopes.freed(self.known))
        if listed >= EVERY:
            progress.tell("fetching", listed, listed)
        self.rebuild()

    def _lost(self, keys: Collection[tuple[str, str]], there: int) -> None:
        """Send anew what the remote had and has no trace of, not even of a deletion: it was brought back from a backup.
        Raises Unreachable where that is so much of what was `there` that it may be another bank's.
        """
        if travel.is_much(len(keys), there):
            raise exchanged(self.name, len(keys), there)
        for scope, path in keys:
            self._drop(scope, path)

    def rebuild(self) -> None:
        """Make anew what is derived from what came."""
        for lane in self.state.outdated():
            self.bank.lane(lane).answers.rebuild()
            self.state.set_outdated(lane, False)

    def _is_outdated(self, lane: str) -> None:
        if lane and travel.is_derived_from(self.bank, lane):
            self.state.set_outdated(lane, True)

    def _is_in_lanes(self, place: Place) -> bool:
        """Whether a file is of a lane that this remote has, or beside the lanes."""
        return not place.lane or place.lane in self.lanes

    def _free(self, place: Place | str) -> Place | str:
        """The place that a file of the remote goes to, or why it is not taken."""
        if isinstance(place, str):
            return place
        return TWIN if travel.has_plainer_twin(self.bank, place) or not self._claims(place.path) else place

    def _part(self, place: Place, scope: str) -> Place:
        """A file beside the lanes, as far as it is about memories of this scope; any other as it is."""
        return scopes.part(self.bank, self.state, self.settings, self.known, place, scope)

    def _claims(self, path: str) -> bool:
        """Whether a name is free for this file, or is made so."""
        folded = names.folded(path)
        twin = self.taken.setdefault(folded, path)
        if twin != path and not _gives_way(self, twin, path):
            return False
        self.taken[folded] = path
        return True

    def _take_all(self, entries: Iterable[tuple[Entry, Place | str]], done: int) -> None:
        """`_take` for each, where many are fetched at once, and those that are new here written at once."""
        batch: dict[str, tuple[Place, Entry]] = {}
        size = 0
        for number, (entry, usual_place) in enumerate(entries):
            name = names.folded(entry.path)
            if name in batch or len(batch) == BATCH_FILES or size + entry.size > BATCH_BYTES:
                self._take_batch(list(batch.values()))
                batch, size = {}, 0
                progress.tell("fetching", done + number, None)
            place = self._free(usual_place)
            usual = isinstance(place, Place) and place.lane and not entry.deleted
            if isinstance(place, Place) and usual and 0 <= entry.size <= min(BATCH_BYTES, place.most):
                batch[name] = place, entry
                size += entry.size
            else:
                self._take(entry, place)
        self._take_batch(list(batch.values()))

    def _take_batch(self, batch: list[tuple[Place, Entry]]) -> None:
        asked = [entry for _, entry in batch]
        found = {(entry.scope, entry.path): (entry, data) for entry, data in self.remote.get_many(asked)}
        new: list[Coming] = []
        try:
            for place, entry in batch:
                if (entry.scope, entry.path) not in found:  # larger than it was, or gone
                    self._fetch(place, entry.scope, entry.version)
                    continue
                entry, data = found[entry.scope, entry.path]
                self._count(data)
                coming = self._judged(place, entry, None if entry.deleted else data)
                if self._is_new(place):
                    new.append(coming)
                else:
                    self._merge(coming)
        finally:
            self._write_new(new)

    def _is_new(self, place: Place) -> bool:
        """Whether a file can be written without a look at what is there, or at others of its lane."""
        return not (place.is_log or place.shares_files) and travel.is_gone(place.file)

    def _write_new(self, comings: Collection[Coming]) -> None:
        """`_merge` for files that are not here, with one wait for the disk instead of several for each."""
        after: dict[Place, bytes | None] = {}
        with self.state.transaction():
            for coming in comings:
                recognize(self.name, self.state, coming)
                after[coming.place] = self._decided(coming, None)
        note_origins(self.settings.mine, ((coming, None, after[coming.place]) for coming in comings))
        made = local.create_all({place: data for place, data in after.items() if data is not None})
        with self.state.transaction():
            for coming in comings:
                if after[coming.place] is None or coming.place in made:
                    self._settled(coming, None, after[coming.place])
        for coming in comings:
            if after[coming.place] is not None and coming.place not in made:
                self._merge(coming)  # somebody was quicker, or it says why it cannot be written

    def _take(self, entry: Entry, place: Place | str) -> None:
        if isinstance(place, str):
            if not entry.deleted:
                self._count(b"")
                self._save(Known(entry.scope, entry.path, entry.version, b"?", place), None)
        elif entry.deleted and travel.is_gone(place.file) and not self.several:
            self._merge(self._judged(place, entry, None))  # with several, it counts who deleted what: `get` tells
        else:
            self._fetch(place, entry.scope, entry.version)

    def _fetch(self, place: Place, scope: str, version: str = "") -> bool:
        """Take what the remote has of a file now; False where it is left as it is. `version` was listed just now."""
        try:
            found = self.remote.get(place.path, scope, place.most)
        except TooLarge as error:
            known = self.known.get((scope, place.path)) or Known(scope, place.path, version)
            known.held = str(error)
            self._save(known, self._base(known))
            return False
        if found is None:  # the remote has lost it, or is another one now: what is here is sent anew
            self._drop(scope, place.path)
            return True
        entry, data = found
        self._count(data)
        return self._merge(self._judged(place, entry, None if entry.deleted else data))

    def _count(self, data: bytes) -> None:
        """Raise InvalidInput where the remote sends too much."""
        self.fetched_files += 1
        self.fetched_bytes += len(data)
        self._refuse_flood()

    def _refuse_flood(self, listed: int = 0) -> None:
        if max(self.fetched_files, listed) > MOST_FILES or self.fetched_bytes > MOST_BYTES:
            raise InvalidInput(
                f"The remote has sent more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GiB in one sync.",
                hint=f"If you expect that, `memlane sync {self.name}` goes on.",
            )

    def _judged(self, place: Place, entry: Entry, data: bytes | None) -> Coming:
        """What the remote has of a file, None for nothing, as it may come in."""
        place = self._part(place, entry.scope)
        full = self.sieve.remembered(place, data)
        is_cut = self.sieve.is_cut(place, data, full)
        theirs, reasons = self.sieve.admitted(place, full) if full is not None else (None, ())
        if full is None and data is not None and not is_cut and len(self.settings.scopes) > 1:
            reasons = (_LIKE,)  # who wrote it need not know: it may have been forgotten in another scope
        if other := scopes.other(self.bank, self.state, self.settings, self.known, place, entry):
            theirs, reasons = None, (f"{scopes.TAKEN} {other}",)
        before = self.known.get((entry.scope, entry.path))
        base = self._base(before) if before else None
        deleted = place.lane and theirs is not None and theirs == base and travel.is_gone(place.file)
        if entry.scope not in self.asked and (deleted or parts.are_in(self.bank, place, theirs)):
            self.asked.add(entry.scope)  # what was deleted may be wanted again: that counts before anything is left out
            stones = travel.place_of(self.bank, tombstones.FILE)
            if isinstance(stones, Place):
                self._fetch(stones, entry.scope)
        known = Known(entry.scope, entry.path, entry.version, digest(data), "; ".join(reasons), lineage=entry.lineage)
        known.unsent = before.unsent if before else ""
        said = lineage.parsed(entry.lineage)
        return Coming(place, entry, data, full, is_cut, theirs, reasons, before, base, known, said)

    def _decided(self, coming: Coming, ours: bytes | None) -> bytes | None:
        """What becomes of what is here; noted before it is written. Raises Unmergeable."""
        place, base, theirs, said = coming.place, coming.base, coming.theirs, coming.said
        have = coming.have = self._looked_at(place, ours)
        if theirs is None and coming.reasons and base is None:
            return ours  # all of it is held back, and what is here is something else
        forked = coming.is_forked
        if said and lineage.covers(have, said) and not coming.reasons and not forked:
            # nearly always it is old: it came from here, or over another remote before
            alike = said == have and is_shared(self.sieve, place, ours)
            return self._noted(coming, ours, either(ours, theirs) if alike else ours)
        # with several remotes, what changed at one of them may lack what another one brought: no side is the later
        # but whoever deletes a file has seen what it held: a deletion of just what the other side has is one
        there = ours is not None and theirs is not None
        knew = lineage.covers(said, have) and not forked
        apart = bool(self.several and said and there and not knew and base in (ours, theirs))
        if ours is None and theirs is not None and theirs == base and said and self.sieve.is_wanted(place, theirs):
            base = None  # somebody has deleted it, too, and restored it: that is a change, though nothing of it shows
        if is_past := is_our_past(self.bank, self.state, coming, ours):
            base, apart = theirs, False  # what is here was made of it, though we do not know that we sent it
        # or it was made of what is here, which came over another remote: what this one had before does not count
        counts = base is not None and theirs != base and bool(coming.reasons or place.is_log)
        later = said and not counts and not forked and _is_later(self, place, ours, said, have)
        after = parts.merged(
            self.bank, self.state, place, ours if later else base, ours, theirs, {} if forked else said, apart=apart
        )
        if after not in (ours, theirs):
            after = self.sieve.without_gone(place, after)
        coming.is_shared = after == theirs or (not is_past and is_shared(self.sieve, place, ours))
        return self._noted(coming, ours, after)

    def _noted(self, coming: Coming, ours: bytes | None, after: bytes | None) -> bytes | None:
        if after != ours:
            coming.told = told_of(self.state, coming, ours, after)
            self.state.intend(self.name, coming.known, coming.theirs, after, coming.told)
        return after

    def _merge(self, coming: Coming) -> bool:
        """Merge what comes into what is here; False where that cannot be."""
        known = coming.before or Known(coming.entry.scope, coming.entry.path)
        recognize(self.name, self.state, coming)
        try:
            ours, after = local.settle(self.bank, coming.place, lambda ours: self._decided(coming, ours))
        except Unmergeable as error:
            known.unsent = f"{APART}: {error}"
            known.stamp = ""
            self._save(known, coming.base)
            return False
        except StorageError as error:
            if error.code in ("disk_full", "no_permission", "busy"):
                raise
            known.held = f"{_AGAIN}: {error}"
            self._save(known, coming.base)
            return False
        note_origins(self.settings.mine, [(coming, ours, after)])
        self._settled(coming, ours, after)
        return True

    def _settled(self, coming: Coming, ours: bytes | None, after: bytes | None) -> None:
        """A file here holds now what was made of what came."""
        place, known, theirs = coming.place, coming.known, coming.theirs
        told = coming.told if after != ours else told_of(self.state, coming, ours, after)
        self.state.set_lineage(place.key, digest(after), told)
        if coming.is_forked:
            lineage.met(self.state, place.key, coming.said)
        parts.note(self.bank, self.state, place, after, told, theirs, lineage.spelt(coming.said))
        if after != ours:
            self._wrote(place, after)
            self.done.merged += after != theirs
        if after == theirs and coming.full == coming.data and not place.is_log:
            known.stamp = travel.stamp_of(place.file)
        self._save(known, theirs)

    def _sendable(self, place: Place, data: bytes) -> tuple[bytes | None, tuple[str, ...]]:
        """What of a content of ours may be sent, and why the rest may not."""
        if why := scopes.doubt(self.bank, self.settings.scopes, place, data):
            return None, (why,)
        return self.sieve.sendable(place, data, scopes.foreign(self.settings.scopes, self.known, place))

    def _wrote(self, place: Place, after: bytes | None) -> None:
        """A file here was changed by what came."""
        self.done.removed += after is None
        self.done.received += after is not None
        if place.lane:
            self._is_outdated(place.lane)
            self.bank.wrote(place.lane, place.file)

    # -- what is known

    def _looked_at(self, place: Place, ours: bytes | None) -> lineage.Lineage:
        """Note what is here of a file; whose changes are in it."""
        found = lineage.of(self.state, place.key, ours)
        parts.note(self.bank, self.state, place, ours, lineage.spelt(found))
        return found

    def _base(self, known: Known) -> bytes | None:
        return self.state.base(self.name, known.scope, known.path)

    def _drop(self, scope: str, path: str) -> None:
        self.known.pop((scope, path), None)
        self.state.drop(self.name, scope, path)

    def _save(self, known: Known, base: bytes | None) -> None:
        self.state.save(self.name, known, base)
        self.known[known.scope, known.path] = known


def _gives_way(run: Receiving, twin: str, path: str) -> bool:
    """Whether a file makes room for one whose name differs from its own in case alone: the plainer name has it, for
    every member, so that nobody can take a name away by another spelling. What was written or changed here stays.
    """
    place = travel.place_of(run.bank, twin)
    if path != names.folded(path) or not isinstance(place, Place):
        return False
    for known in [each for each in run.known.values() if each.path == twin]:
        base = run._base(known)

        def decide(now: bytes | None, base: bytes | None = base) -> bytes | None:
            return None if now == base and not is_written_here(now) else now

        ours, after = local.settle(run.bank, place, decide)
        if after is not None:
            return False
        if ours is not None:
            run._wrote(place, None)
        known.held, known.stamp = TWIN, ""
        run._save(known, None)
    return True


def _is_later(run: Receiving, place: Place, ours: bytes | None, said: lineage.Lineage, have: lineage.Lineage) -> bool:
    """Whether a content was made by somebody who had all that is here, and of it nothing stayed here alone."""
    mine = run.state.me
    if not lineage.covers(said, have) or said.get(mine, 0) != have.get(mine, 0):
        return False
    return ours is None or run._sendable(place, ours)[0] == ours


def _written(bank: Bank, place: Place, after: bytes) -> list[bytes | None]:
    """The content that a file was to get, if it has it, or had it when somebody changed it: the journal tells."""
    if digest(now := local.read(bank, place)) == after:
        return [now]
    kept = bank.journal
    if kept is None or place.is_log:
        return []
    rows = kept.rows_of([own_name(bank, place.file)], here=True)
    for early, late in reversed([*pairwise(rows)]):
        if digest(was := kept.text(early.after)) == after:
            return [was] if digest(kept.text(late.before)) == after else []
    return []
