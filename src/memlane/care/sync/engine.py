"""One sync of a bank with one remote: what others forgot, what they changed, then what was changed here.

Files replicate; a remote holds the current content of each, and takes another only from somebody who has seen the one
that it replaces. So whoever comes second fetches, merges as git does here (`memlane.history.merge`), and tries again.

When both are in step, a file here is what the remote has, without what the gate of this bank refuses. That stays at the
remote: what goes up is merged with all that is there. Every step can be interrupted; the next sync goes on, and asks no
clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane import config, gate
from memlane.care.sync import lineage, local, scopes, travel
from memlane.care.sync.lineage import Lineage
from memlane.care.sync.receiving import APART, BATCH_BYTES, BATCH_FILES, EVERY, TWIN, Receiving
from memlane.care.sync.results import Synced
from memlane.care.sync.scopes import is_there, of_ours
from memlane.care.sync.state import Known, Settings, State, digest
from memlane.care.sync.travel import Place
from memlane.core import progress
from memlane.core.dates import iso, utc_now
from memlane.core.errors import Conflict, InvalidInput, StorageError
from memlane.disk import files, journal, names
from memlane.disk.written import SYNC
from memlane.exchange.remotes import New, Remote
from memlane.history.journaled import own_name
from memlane.lanes import NAMES
from memlane.lanes.merging import Unmergeable

if TYPE_CHECKING:
    from memlane.bank import Bank

_ROUNDS = 5
_ATTEMPTS = 50  # at one file, while others change it at the same time


def run(
    bank: Bank,
    state: State,
    settings: Settings,
    remote: Remote,
    *,
    deletions: bool = False,
    only: Collection[str] | None = None,
) -> Synced:
    """Bring a bank and a remote into step. `deletions` says that many files were deleted here on purpose.

    With `only`, send these files and nothing else; what others changed in them is merged, too.
    Raises Unreachable, StorageError, InvalidInput; what was done until then is done, and the next sync goes on.
    """
    config.require_trust(bank.config)
    local.refuse_unwritable(bank)
    this = _Run(bank, state, settings, remote, deletions=deletions)
    with journal.unattended(), journal.change(SYNC):
        try:
            this.go_on()
            if only is not None:
                this.push(only)
                this.rebuild()
                return this.result()
            this.forget()
            this.look_again()
            for _ in range(_ROUNDS):
                this.pull()
                if not this.push():
                    break  # else there is more: what others did meanwhile, and how far we are now
            this.rebuild()
        finally:
            this.sieve.close()
    state.note(settings.name, at=iso(utc_now()) or "", failed="")
    return this.result()


class _Run(Receiving):
    """A sync under way: what comes, and what goes."""

    def push(self, only: Collection[str] | None = None) -> bool:
        """Send what was changed here, or these files only; whether anything was."""
        before = self.done.sent
        here = [(part, why) for place, why in self._here(only) for part in self._parts(place)]
        emptied = {place for place, _ in here if self._is_emptied(place)}
        gone: Collection[Known] = self.known.values()
        if only is None:
            self._refuse_mass_deletion({place.path for place, _ in here if place not in emptied})
        else:
            gone = [known for place, _ in here if (known := self._known_of(place))]
            here = [each for each in here if not travel.is_gone(each[0].file)]
        here = [each for each in here if each[0] not in emptied]
        new: list[tuple[Place, str]] = []
        changed: list[tuple[Place, str]] = []
        paths = {place.path for place, _ in here}
        gone = [each for each in gone if each.path not in paths]
        moved = self.done.received or self.done.removed or any(each.seen for each in gone)
        for place, why in sorted(here, key=lambda each: not each[0].lane):  # those beside the lanes last: see below
            if place.scope and (moved or new or changed):
                self._part_anew()
            known = self._known_of(place)
            stamp = travel.stamp_of(place.file)
            unknown = known is None or not known.version
            if unknown and not why and self.taken.setdefault(names.folded(place.path), place.path) != place.path:
                why = TWIN
            if known and place.is_derived and any(each.lane == place.lane for each, _ in (*new, *changed)):
                known.stamp = ""  # what in it is a person's word depends on what it is derived from
                self.state.stamp(self.name, [known])
            if stamp and known and known.stamp == stamp and not why and known.unsent != TWIN:
                continue
            if why:
                self._refuse(place, known, why, stamp)
            else:
                (changed if known else new).append((place, stamp))
        new, changed = (sorted(each, key=lambda one: bool(one[0].lane)) for each in (new, changed))
        if only is None:  # else it was changed just now
            for lane in {place.lane for place, _ in (*new, *changed) if not place.is_derived}:
                self._is_outdated(lane)  # whoever changed it may have been killed before that was written
        total = len(new) + len(changed)
        changed = self._send_new(new, total) + changed
        stamped: list[Known] = []
        stuck: Conflict | None = None
        for number, (place, stamp) in enumerate(changed, total - len(changed)):
            try:
                if known := self._send(place, self._known_of(place), stamp):
                    stamped.append(known)
            except Conflict as error:  # it keeps no other from being sent
                stuck = stuck or error
            if number % EVERY == 0:
                progress.tell("sending", number, total)
        if total:
            progress.tell("sending", total, total)
        self.state.stamp(self.name, stamped)
        for known in gone:
            self._send_deletion(known)
        if stuck:
            raise stuck
        return self.done.sent != before

    def _part_anew(self) -> None:
        """Look again at what is said beside memories: where they are may have changed."""
        outdated = [each for each in self.known.values() if each.path in travel.SIDE and each.stamp]
        for known in outdated:
            known.stamp = ""
        self.state.stamp(self.name, outdated)

    def _here(self, only: Collection[str] | None) -> Iterator[tuple[Place, str]]:
        paths = {path for (_, path), known in self.known.items() if known.version}
        if only is None:
            return travel.here(self.bank, self.lanes, paths.__contains__)
        return travel.among(self.bank, only, self.lanes, paths.__contains__)

    def _parts(self, place: Place) -> list[Place]:
        return [place] if place.lane else [self._part(place, scope) for scope in self.settings.scopes]

    def _key_of(self, place: Place) -> tuple[str, str]:
        """The scope and name that a file here has at the remote."""
        if place.scope:
            return place.scope, place.path
        own = (scope for scope in self.settings.scopes if is_there(self.known.get((scope, place.path))))
        return next(own, self.settings.scopes[0]), place.path

    def _known_of(self, place: Place) -> Known | None:
        return self.known.get(self._key_of(place))

    def _refuse(self, place: Place, known: Known | None, why: str, stamp: str) -> None:
        """Note that a file is here and is not sent."""
        scope, path = self._key_of(place)
        known = known or Known(scope, path)
        known.unsent, known.stamp = why, stamp
        self._save(known, self._base(known))

    def _send_new(self, places: Iterable[tuple[Place, str]], total: int) -> list[tuple[Place, str]]:
        """`_send` for files that the remote does not have, as far as we know, many of them at once. What is left to be
        sent alone: what is large, and where somebody else was quicker.
        """
        alone: list[tuple[Place, str]] = []
        batch: list[tuple[Place, str, bytes]] = []
        size = done = 0
        for place, stamp in places:
            if files.size_of(place.file) > BATCH_BYTES:
                alone.append((place, stamp))
            elif (ours := local.read(self.bank, place)) is not None:  # else it went just now: the next sync sees that
                if len(batch) == BATCH_FILES or size + len(ours) > BATCH_BYTES:
                    alone += self._send_batch(batch)
                    done += len(batch)
                    progress.tell("sending", done, total)
                    batch, size = [], 0
                batch.append((place, stamp, ours))
                size += len(ours)
            elif place.scope:  # nothing of it is of this scope
                self._save(Known(place.scope, place.path, stamp=stamp), None)
        return alone + self._send_batch(batch)

    def _send_batch(self, batch: Iterable[tuple[Place, str, bytes]]) -> list[tuple[Place, str]]:
        ready: dict[New, Known] = {}
        left: dict[tuple[str, str], tuple[Place, str]] = {}
        with self.state.transaction():
            for place, stamp, ours in batch:
                clean, reasons = self._sendable(place, ours)
                clean = self.sieve.remembered(place, clean, cut=False)
                if clean is None:
                    self._refuse(place, None, "; ".join(reasons) or "says what was forgotten", stamp)
                    continue
                scope = of_ours(self.bank, self.state, self.settings, place, ours, None)
                left[scope, place.path] = place, stamp
                if (scope, place.path) not in self.known:
                    told = self._said(place, ours, {})["lineage"]
                    known = Known(scope, place.path, "", digest(clean), "", "; ".join(reasons), stamp, told)
                    self.state.send(self.name, known, clean, told)
                    ready[New(place.path, scope, clean, told)] = known
        stored: list[tuple[New, str]] = []
        try:
            for one in self.remote.put_many(list(ready), author=self.settings.author):
                stored.append(one)
        finally:
            with self.state.transaction():
                for new, version in stored:
                    known = ready[new]
                    known.version = version
                    self._save(known, new.data)
                    del left[new.scope, new.path]
            self.done.sent += len(stored)
        return list(left.values())

    def _send(self, place: Place, known: Known | None, stamp: str) -> Known | None:
        """Bring the remote to what is here; where it is already, what is known with a new stamp."""
        for _ in range(_ATTEMPTS):
            ours = local.read(self.bank, place)
            if ours is None and known and place.scope and not known.version:
                known.stamp = stamp  # nothing of it is of this scope
                return known
            if ours is None:
                return None  # it went just now: the next sync sees that
            if place.is_derived and known and (base := self._base(known)):
                ours = self.bank.lane(place.lane).answers.completed(ours, base)
            same = known and digest(ours) == known.seen and not (known.held or known.unsent)
            if known and same and self.sieve.remembered(place, ours, cut=False) == ours:
                known.stamp = stamp  # the remote has it already, whatever the gate says
                return known
            clean, reasons = self._sendable(place, ours)
            clean = self.sieve.remembered(place, clean, cut=False)
            if clean is None:
                if known and place.is_log and is_there(known) and self._base(known) == b"":
                    self._send_deletion(known, moved=True)  # all that others have of it was forgotten
                    known = self.known[known.scope, known.path]
                self._refuse(place, known, "; ".join(reasons) or "says what was forgotten", stamp)
                return None
            try:
                up, expected, there = self._going_up(place, known, clean)
            except Unmergeable as error:
                self._refuse(place, known, f"{APART}: {error}", "")
                return None
            if up is None:
                self._refuse(place, known, "the remote has a version that is held back", stamp)
                return None
            unsent = "; ".join(reasons)
            if known and digest(up) == known.seen and known.unsent == unsent:
                known.stamp = stamp
                return known
            scope = of_ours(self.bank, self.state, self.settings, place, ours, known)
            if known and known.scope != scope:  # its memory was given another one
                self._send_deletion(known, moved=True)
                known = self.known.get((scope, place.path))
                continue
            new = Known(scope, place.path, expected or "", digest(up), known.held if known else "", unsent)
            new.lineage = known.lineage if known else ""
            theirs = self.sieve.admitted(place, up)[0] if new.held else up
            said = self._said(place, ours, there)
            try:
                if known is None or digest(up) != known.seen:
                    self.state.send(self.name, new, theirs, said["lineage"])
                    new.version = self.remote.put(place.path, up, expected, scope=scope, **said)
                    new.lineage = said["lineage"]
                    self.done.sent += 1
            except Conflict:
                if not self._fetch(place, scope):
                    return None
                known = self.known.get((scope, place.path))
                stamp = travel.stamp_of(place.file)
                continue
            if theirs == clean:
                new.stamp = stamp
            self._save(new, theirs)
            if theirs is not None and theirs != clean:  # the merge has moved lines around: take them as they are

                def decide(now: bytes | None, theirs: bytes = theirs, ours: bytes = ours) -> bytes | None:
                    return theirs if now == ours else now

                local.settle(self.bank, place, decide)
            return None
        raise Conflict(
            f"{gate.shown(place.path)} is changed by others all the time.", hint=f"`memlane sync {self.name}` goes on."
        )

    def _said(self, place: Place, ours: bytes | None, there: Lineage) -> dict[str, str]:
        """What is said of a content that goes up: what is here, and what was `there` and stays."""
        told = lineage.spelt(lineage.joined(self._looked_at(place, ours), there))
        return {"author": self.settings.author, "lineage": told}

    def _going_up(
        self, place: Place, known: Known | None, clean: bytes | None
    ) -> tuple[bytes | None, str | None, Lineage]:
        """What the remote should have of a file, the version that it replaces, and the lineage of what stays of that.

        None where it cannot be told from what is held back. Raises Unmergeable.
        """
        if known is None or not known.version:
            return clean, None, {}
        if not known.held:
            return clean, known.version, {}
        found = self.remote.get(place.path, known.scope, place.most)
        if found is None or found[0].deleted:
            return clean, found[0].version if found else None, {}
        full = self.sieve.remembered(place, found[1])
        up = local.merged(place, self._base(known) or b"", clean or b"", full)
        if clean is not None and up and self.sieve.admitted(place, up)[0] is None:
            return None, None, {}
        return up or None, found[0].version, lineage.parsed(found[0].lineage)

    def _send_deletion(self, known: Known, *, moved: bool = False) -> None:
        """Delete at the remote what is not here any more, or `moved` to another scope; what others changed meanwhile
        comes back.
        """
        place = travel.place_of(self.bank, known.path)
        if isinstance(place, str) or known.seen == b"" or (known.held and not known.common):
            if known.unsent:  # what was never sent is gone
                known.unsent = ""
                self._save(known, self._base(known))
            return
        place = self._part(place, known.scope)
        is_gone = moved or travel.is_gone(place.file) or self._is_emptied(place)
        if not self._is_in_lanes(place) or not is_gone:
            return  # what cannot be read now is not deleted
        if not place.is_derived:
            self._is_outdated(place.lane)
        for _ in range(_ATTEMPTS):
            up, expected, there = self._going_up(place, known, None)
            said = self._said(place, None, there)
            try:
                if up is not None:
                    if digest(up) != known.seen:
                        version = self.remote.put(place.path, up, expected, scope=known.scope, **said)
                        self.done.sent += 1
                        left = Known(known.scope, known.path, version, digest(up), known.held, lineage=said["lineage"])
                        self._save(left, None)
                    return
                version = expected or ""
                if expected is not None:
                    version = self.remote.delete(place.path, expected, scope=known.scope, **said)
                    self.done.sent += 1
                self._save(Known(known.scope, known.path, version, lineage=said["lineage"]), None)
                return
            except Conflict:
                if not self._fetch(place, known.scope):
                    return
                found = self.known.get((known.scope, known.path))
                if found is None or found.seen == b"" or local.read(self.bank, place) is not None:
                    return
                known = found

    def _refuse_mass_deletion(self, here: Collection[str]) -> None:
        there = [known for known in self.known.values() if is_there(known)]
        gone = [known for known in there if known.path not in here and self._may_send(known.path)]
        if gone and not self.bank.root.is_dir():
            raise StorageError(
                "The bank's folder is gone.", hint="Bring it back: `memlane recover` shows what it held."
            )
        if self.deletions or not travel.is_much(len(gone), len(there)):
            return
        gone = [known for known in gone if not self._is_meant(known)]
        if travel.is_much(len(gone), len(there)):
            raise InvalidInput(
                f"{len(gone):,} of {len(there):,} files that {self.name} has are gone here: nothing was sent.",
                hint=f"If that is meant, `memlane sync {self.name} --deletions` deletes them there; "
                f"else bring them back (`memlane recover`).",
                code="many_deletions",
            )

    def _is_meant(self, known: Known) -> bool:
        """Whether memlane itself took a file away here: by forgetting it, or as its journal says."""
        if self._base(known) == b"":
            return True
        place = travel.place_of(self.bank, known.path)
        if isinstance(place, Place) and self._is_emptied(place):
            return True
        name = own_name(self.bank, place.file) if isinstance(place, Place) else known.path
        last = self.bank.journal.rows_of([name], here=True) if self.bank.journal else []
        return bool(last) and last[-1].after is None and last[-1].kind in (journal.WRITE, journal.OUT)

    def _is_emptied(self, place: Place) -> bool:
        """Whether memlane itself took the last line out of a log, which stays as an empty file. One that it did not
        leave so may be an accident.
        """
        if not place.is_log or travel.is_gone(place.file) or files.size_of(place.file):
            return False
        if local.read(self.bank, place) is not None:  # somebody rewrites it just now
            return False
        known, kept = self._known_of(place), self.bank.journal
        if known and self._base(known) == b"":
            return True  # all of it was forgotten
        name = own_name(self.bank, place.file)
        return kept is not None and bool(kept.rows_of([name], here=True)) and not kept.content(name, place=kept.home)

    def _may_send(self, path: str) -> bool:
        place = travel.place_of(self.bank, path)
        return isinstance(place, Place) and self._is_in_lanes(place)


def waiting(bank: Bank, state: State, settings: Settings, known: Collection[Known]) -> Iterator[str]:
    """The files here that the remote does not have, or has otherwise, as far as we know."""
    at: dict[str, Known] = {}
    for each in known:
        if (each.version or each.unsent) and not is_there(at.get(each.path)):  # it may have left a scope
            at[each.path] = each
    keyed = {(each.scope, each.path): each for each in known}
    here = {place.path: place for place, _ in travel.here(bank, settings.lanes or NAMES, at.__contains__)}
    for path, place in here.items():
        if not place.lane and len(settings.scopes) > 1:
            parts = [scopes.part(bank, state, settings, keyed, place, scope) for scope in settings.scopes]
            if any(digest(local.read(bank, part)) != _seen(keyed.get((part.scope, path))) for part in parts):
                yield path
            continue
        one = at.get(path)
        if one is None or not (one.unsent or one.held or one.stamp == travel.stamp_of(place.file) != ""):
            with suppress(StorageError):
                if one is None or digest(local.read(bank, place)) != one.seen:
                    yield path
    yield from (each.path for each in known if each.common and each.seen and each.path not in here)


def _seen(known: Known | None) -> bytes:
    return known.seen if known else b""
