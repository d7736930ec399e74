"""One sync of a bank with one remote: what others forgot, what they changed, then what was changed here.

Files replicate; a remote holds the current content of each, and takes another only from somebody who has seen the one
that it replaces. So whoever comes second fetches, merges as git does here (`memlane.history.merge`), and tries again.

When both are in step, a file here is what the remote has, without what the gate of this bank refuses. That stays at the
remote: what goes up is merged with all that is there. Every step can be interrupted; the next sync goes on, and asks no
clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memlane import config, gate
from memlane.care.sync import forgetting, local, travel
from memlane.care.sync.sieve import Sieve
from memlane.care.sync.state import Known, Settings, State, digest
from memlane.care.sync.travel import Place
from memlane.core import progress
from memlane.core.dates import iso, utc_now
from memlane.core.errors import Conflict, InvalidInput, StorageError
from memlane.core.invisible import visible
from memlane.disk import journal, names, written
from memlane.disk.written import SYNC
from memlane.exchange.remotes import Entry, Remote, TooLarge
from memlane.history.journaled import own_name
from memlane.lanes import NAMES
from memlane.lanes.merging import Unmergeable

if TYPE_CHECKING:
    from memlane.bank import Bank

OWN = ".memlane/"  # what at a remote is no file of a bank
_AGAIN = "could not be written"
MOST_FILES, MOST_BYTES = 100_000, 2 << 30  # that one sync takes from a remote
MOST_ENTRIES = 2_000_000  # that a remote lists
MANY, SHARE = 20, 2  # files that may vanish here without a question: so many, or less than one in two
_ROUNDS = 5
_ATTEMPTS = 50  # at one file, while others change it at the same time
_EVERY = 100  # files between two words on how far it is


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
                return this.result()
            this.forget()
            this.look_again()
            for _ in range(_ROUNDS):
                this.pull()
                if not this.push():
                    break  # else there is more: what others did meanwhile, and how far we are now
        finally:
            this.sieve.close()
    state.note(settings.name, at=iso(utc_now()) or "", failed="")
    return this.result()


class _Run:
    def __init__(self, bank: Bank, state: State, settings: Settings, remote: Remote, *, deletions: bool) -> None:
        self.bank, self.state, self.settings, self.remote = bank, state, settings, remote
        self.deletions = deletions
        self.name = settings.name
        self.lanes: Collection[str] = settings.lanes or NAMES
        self.sieve = Sieve(bank)
        self.done = Synced(settings.name)
        self.known = {(known.scope, known.path): known for known in state.files(settings.name)}
        self.taken = {names.folded(path): path for _, path in self.known}  # some file systems know no case
        self.files = self.bytes = 0
        self.outdated: set[str] = set()  # lanes whose derived file has to be made anew

    def result(self) -> Synced:
        for known in self.known.values():
            if known.held:
                self.done.held.append(Held(shown_path(known.path), known.held))
            if known.unsent:
                self.done.unsent.append(Held(shown_path(known.path), known.unsent))
        return self.done

    def go_on(self) -> None:
        """Finish what was being written when the last sync was interrupted."""
        for known, base, after in self.state.intents(self.name):
            place = travel.place_of(self.bank, known.path)
            if isinstance(place, Place) and digest(local.read(place)) == after:
                self._save(known, base)
        self.state.settle(self.name)

    def forget(self) -> None:
        """Tell each other what was forgotten, and clear this bank of it: before anything else comes or goes."""
        scope, author = self.settings.scopes[0], self.settings.author
        removed, news = forgetting.exchange(
            self.bank, self.state, self.remote, scope=scope, author=author, many=self.deletions
        )
        self.done.forgotten = removed
        if news:
            self.known = {(known.scope, known.path): known for known in self.state.files(self.name)}
            self._fetch_again([each for each in self.known.values() if each.held])

    def look_again(self) -> None:
        """Look again at what was held back, where the gate has changed."""
        if self.state.noted(self.name).gate != self.sieve.rules:
            self._fetch_again([each for each in self.known.values() if each.held])
            for known in [each for each in self.known.values() if each.unsent]:
                known.stamp = ""
            self.state.note(self.name, gate=self.sieve.rules)
        else:
            self._fetch_again([each for each in self.known.values() if each.held.startswith(_AGAIN)])

    def _fetch_again(self, these: Collection[Known]) -> None:
        for known in these:
            place = self._place(known.path)
            if isinstance(place, Place):
                self._fetch(place, known.scope)

    # -- from the remote

    def pull(self) -> None:
        """Take what has changed at the remote.

        What lies in a lane beside its main files comes after them: an entry that somebody has archived must not be in
        both, should this be interrupted, or it would be archived twice.
        """
        listed, last = 0, ""
        later: list[Entry] = []
        cursor = self.state.noted(self.name).cursor
        for entries, after in self.remote.changes(cursor):
            for entry in entries:
                listed += 1
                if listed > MOST_ENTRIES:
                    raise InvalidInput("The remote lists files without end.", hint="Look at what it is.")
                if entry.scope not in self.settings.scopes or entry.path.startswith(OWN):
                    continue
                known = self.known.get((entry.scope, entry.path))
                if known is None or known.version != entry.version:
                    place = travel.place_of(self.bank, entry.path)
                    if isinstance(place, Place) and place.comes_later:
                        later.append(entry)
                    else:
                        self._take(entry)
                if listed % _EVERY == 0:
                    progress.tell("fetching", listed, None)
            last = after
            if not later:
                self.state.note(self.name, cursor=after)
        for entry in sorted(later, key=lambda entry: entry.path.endswith("index.md")):
            self._take(entry)
        if later:
            self.state.note(self.name, cursor=last)
        if listed >= _EVERY:
            progress.tell("fetching", listed, listed)
        while self.outdated:
            self.bank.lane(self.outdated.pop()).answers.rebuild()

    def _place(self, path: str) -> Place | str:
        """Where a file of the remote goes, or why it is not taken."""
        place = travel.place_of(self.bank, path)
        twin = self.taken.setdefault(names.folded(path), path)
        if isinstance(place, Place) and twin != path:
            return "has a name that differs from another one only in case or Unicode form"
        return place

    def _take(self, entry: Entry) -> None:
        place = self._place(entry.path)
        if isinstance(place, str):
            if not entry.deleted:
                self._save(Known(entry.scope, entry.path, entry.version, b"?", place), None)
        elif place.lane and place.lane not in self.lanes:
            return
        elif entry.deleted:
            self._take_content(place, entry, None)
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
            if lost := self.known.get((scope, place.path)):
                del self.known[scope, place.path]
                self.state.drop(self.name, lost)
            return True
        entry, data = found
        self.files += 1
        self.bytes += len(data)
        if self.files > MOST_FILES or self.bytes > MOST_BYTES:
            raise InvalidInput(
                f"The remote has sent more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GiB in one sync.",
                hint=f"If you expect that, `memlane sync {self.name}` goes on.",
            )
        return self._take_content(place, entry, None if entry.deleted else data)

    def _take_content(self, place: Place, entry: Entry, data: bytes | None) -> bool:
        """Merge what the remote has of a file, None for nothing, into what is here; False where that cannot be."""
        full = self.sieve.remembered(place, data)
        theirs, reasons = self.sieve.admitted(place, full) if full is not None else (None, ())
        if other := self._other_scope(place, entry):
            theirs, reasons = None, (f"has a name that is taken here in the scope {other}",)
        before = self.known.get((entry.scope, entry.path))
        base = self._base(before) if before else None
        if mine := self.state.sent(self.name, entry.scope, entry.path):
            seen, then = mine
            if seen == digest(data) or local.is_in(base, then, theirs):
                base = then  # it arrived, though we were not told
        known = Known(entry.scope, entry.path, entry.version, digest(data), "; ".join(reasons))
        known.unsent = before.unsent if before else ""

        def decide(ours: bytes | None) -> bytes | None:
            if theirs is None and reasons and base is None:
                return ours  # all of it is held back, and what is here is something else
            after = local.merged(place, base, ours, theirs)
            if after not in (ours, theirs):
                self.state.intend(self.name, known, theirs, after)
            return after

        try:
            ours, after = local.settle(self.bank, place, decide)
        except Unmergeable as error:
            known = before or Known(entry.scope, entry.path)
            known.unsent = f"both sides changed it, and it cannot be merged: {error}"
            known.stamp = ""
            self._save(known, base)
            return False
        except StorageError as error:
            if error.code in ("disk_full", "no_permission", "busy"):
                raise
            known = before or Known(entry.scope, entry.path)
            known.held = f"{_AGAIN}: {error}"
            self._save(known, base)
            return False
        if after != ours:
            self._wrote(place, ours, after, entry.author)
            self.done.merged += after != theirs
        if after == theirs and full == data and not place.is_log:
            known.stamp = travel.stamp_of(place.file)
        self._save(known, theirs)
        return True

    def _other_scope(self, place: Place, entry: Entry) -> str:
        """The scope that this name here belongs to, where it is another one."""
        if len(self.settings.scopes) == 1 or self._is_there(self.known.get((entry.scope, entry.path))):
            return ""
        others = (scope for scope in self.settings.scopes if scope != entry.scope)
        if taken := next((scope for scope in others if self._is_there(self.known.get((scope, entry.path)))), ""):
            return taken
        ours = local.read(place) if place.lane else None
        scope = self._scope_of(place, ours, None) if ours is not None else entry.scope
        return scope if scope != entry.scope else ""

    def _scope_of(self, place: Place, data: bytes, known: Known | None) -> str:
        """The scope that a file of ours goes to: the one that its memory names, if we share it; else where it is."""
        usual = known.scope if known else self.settings.scopes[0]
        if len(self.settings.scopes) == 1 or not place.lane or self.bank.lane(place.lane).answers.shares_files:
            return usual
        named = travel.scope_in(data)
        return named if named in self.settings.scopes else usual

    def _is_there(self, known: Known | None) -> bool:
        return known is not None and known.seen != b"" and known.common

    def _wrote(self, place: Place, before: bytes | None, after: bytes | None, author: str) -> None:
        """A file here was changed by what came."""
        if after is None:
            self.done.removed += 1
        else:
            self.done.received += 1
            _note_origin(place, before, after, written.HERE if self.settings.mine else _origin(author))
        if place.lane:
            if self.bank.lane(place.lane).answers.derived():
                self.outdated.add(place.lane)
            self.bank.wrote(place.lane, place.file)

    # -- to the remote

    def push(self, only: Collection[str] | None = None) -> bool:
        """Send what was changed here, or these files only; whether anything was."""
        before = self.done.sent
        here = {place.path: (place, why) for place, why in self._here(only)}
        gone: Collection[Known] = self.known.values()
        if only is None:
            self._refuse_mass_deletion(here)
        else:
            gone = [known for path in here if (known := self._known_of(path))]
            here = {path: each for path, each in here.items() if not travel.is_gone(each[0].file)}
        stamped: list[Known] = []
        for number, (place, why) in enumerate(here.values()):
            known = self._known_of(place.path)
            stamp = travel.stamp_of(place.file)
            if stamp and known and known.stamp == stamp and not why:
                continue
            if why:
                self._refuse(place, known, why, stamp)
            elif known := self._send(place, known, stamp):
                stamped.append(known)
            if number % _EVERY == 0:
                progress.tell("sending", number, len(here))
        if here:
            progress.tell("sending", len(here), len(here))
        self.state.stamp(self.name, stamped)
        for known in [each for each in gone if each.path not in here]:
            self._send_deletion(known)
        return self.done.sent != before

    def _here(self, only: Collection[str] | None) -> Iterator[tuple[Place, str]]:
        paths = {path for (_, path), known in self.known.items() if known.version}
        if only is None:
            return travel.here(self.bank, self.lanes, paths.__contains__)
        return travel.among(self.bank, only, self.lanes, paths.__contains__)

    def _key_of(self, path: str) -> tuple[str, str]:
        """The scope and name that a file here has at the remote."""
        own = ((scope, path) for scope in self.settings.scopes if self._is_there(self.known.get((scope, path))))
        return next(own, (self.settings.scopes[0], path))

    def _known_of(self, path: str) -> Known | None:
        return self.known.get(self._key_of(path))

    def _refuse(self, place: Place, known: Known | None, why: str, stamp: str) -> None:
        """Note that a file is here and is not sent."""
        scope, path = self._key_of(place.path)
        known = known or Known(scope, path)
        known.unsent, known.stamp = why, stamp
        self._save(known, self._base(known))

    def _send(self, place: Place, known: Known | None, stamp: str) -> Known | None:
        """Bring the remote to what is here; where it is already, what is known with a new stamp."""
        for _ in range(_ATTEMPTS):
            ours = local.read(place)
            if ours is None:
                return None  # it went just now: the next sync sees that
            clean, reasons = self.sieve.sendable(place, ours)
            clean = self.sieve.remembered(place, clean)
            if clean is None:
                self._refuse(place, known, "; ".join(reasons) or "says what was forgotten", stamp)
                return None
            try:
                up, expected = self._going_up(place, known, clean)
            except Unmergeable as error:
                self._refuse(place, known, f"both sides changed it, and it cannot be merged: {error}", "")
                return None
            if up is None:
                self._refuse(place, known, "the remote has a version that is held back", stamp)
                return None
            unsent = "; ".join(reasons)
            if known and digest(up) == known.seen and known.unsent == unsent:
                known.stamp = stamp
                return known
            scope = self._scope_of(place, ours, known)
            if known and known.scope != scope:  # its memory was given another one
                self._send_deletion(known)
                known = self.known.get((scope, place.path))
                continue
            new = Known(scope, place.path, expected or "", digest(up), known.held if known else "", unsent)
            theirs = self.sieve.admitted(place, up)[0] if new.held else up
            try:
                if known is None or digest(up) != known.seen:
                    self.state.send(self.name, new, theirs)
                    new.version = self.remote.put(place.path, up, expected, scope=scope, author=self.settings.author)
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

    def _going_up(self, place: Place, known: Known | None, clean: bytes | None) -> tuple[bytes | None, str | None]:
        """What the remote should have of a file, and the version that it replaces. Raises Unmergeable.

        None where it cannot be told from what is held back.
        """
        if known is None or not known.version:
            return clean, None
        if not known.held:
            return clean, known.version
        found = self.remote.get(place.path, known.scope, place.most)
        if found is None or found[0].deleted:
            return clean, found[0].version if found else None
        full = self.sieve.remembered(place, found[1])
        up = local.merged(place, self._base(known) or b"", clean or b"", full)
        if clean is not None and up and self.sieve.admitted(place, up)[0] is None:
            return None, None
        return up or None, found[0].version

    def _send_deletion(self, known: Known) -> None:
        """Delete at the remote what is not here any more; what others changed meanwhile comes back."""
        place = self._place(known.path)
        if isinstance(place, str) or known.seen == b"" or (known.held and not known.common):
            if known.unsent:  # what was never sent is gone
                known.unsent = ""
                self._save(known, self._base(known))
            return
        if (place.lane and place.lane not in self.lanes) or not travel.is_gone(place.file):
            return  # what cannot be read now is not deleted
        for _ in range(_ATTEMPTS):
            up, expected = self._going_up(place, known, None)
            try:
                if up is not None:
                    if digest(up) != known.seen:
                        version = self.remote.put(
                            place.path, up, expected, scope=known.scope, author=self.settings.author
                        )
                        self.done.sent += 1
                        self._save(Known(known.scope, known.path, version, digest(up), known.held), None)
                    return
                version = expected or ""
                if expected is not None:
                    version = self.remote.delete(place.path, expected, scope=known.scope, author=self.settings.author)
                    self.done.sent += 1
                self._save(Known(known.scope, known.path, version), None)
                return
            except Conflict:
                if not self._fetch(place, known.scope):
                    return
                found = self.known.get((known.scope, known.path))
                if found is None or found.seen == b"" or local.read(place) is not None:
                    return
                known = found

    def _refuse_mass_deletion(self, here: Collection[str]) -> None:
        there = [known for known in self.known.values() if self._is_there(known)]
        gone = [known for known in there if known.path not in here and self._is_ours(known.path)]
        if gone and not self.bank.root.is_dir():
            raise StorageError(
                "The bank's folder is gone.", hint="Bring it back: `memlane recover` shows what it held."
            )
        if self.deletions or len(gone) <= MANY or len(gone) * SHARE <= len(there):
            return
        gone = [known for known in gone if not self._is_meant(known)]
        if len(gone) > MANY and len(gone) * SHARE > len(there):
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
        name = own_name(self.bank, place.file) if isinstance(place, Place) else known.path
        last = self.bank.journal.rows_of([name], here=True) if self.bank.journal else []
        return bool(last) and last[-1].after is None and last[-1].kind in (journal.WRITE, journal.OUT)

    def _is_ours(self, path: str) -> bool:
        place = travel.place_of(self.bank, path)
        return isinstance(place, Place) and (not place.lane or place.lane in self.lanes)

    # -- what is known

    def _base(self, known: Known) -> bytes | None:
        return self.state.base(self.name, known.scope, known.path)

    def _save(self, known: Known, base: bytes | None) -> None:
        self.state.save(self.name, known, base)
        self.known[known.scope, known.path] = known


def shown_path(path: str) -> str:
    """A name that somebody else may have chosen, as it can be shown."""
    return gate.shown(visible(path).replace("\n", " "))


def waiting(bank: Bank, settings: Settings, known: Collection[Known]) -> Iterator[str]:
    """The files here that the remote does not have, or has otherwise, as far as we know."""
    at = {each.path: each for each in known if each.version or each.unsent}
    here = {place.path: place for place, _ in travel.here(bank, settings.lanes or NAMES, at.__contains__)}
    for path, place in here.items():
        one = at.get(path)
        if one is None or not (one.unsent or one.held or one.stamp == travel.stamp_of(place.file) != ""):
            with suppress(StorageError):
                if one is None or digest(local.read(place)) != one.seen:
                    yield path
    yield from (each.path for each in known if each.common and each.seen and each.path not in here)


def _origin(author: str) -> str:
    return f"{written.SYNC} {' '.join(visible(author).split())[:60]}".strip()


def _note_origin(place: Place, before: bytes | None, after: bytes, what: str) -> None:
    """Note whose the memories are that a file has now and did not have: unless they were written here before."""
    kept = config.written()
    if kept is None or not place.lane:
        return
    if place.is_log:
        had = set(local.lines_of(before or b""))
        keys = [key for line in local.lines_of(after) if line not in had for key in written.record_keys(line)[0]]
    else:
        keys = [written.key_of(after)]
    kept.note({key: what for key in keys if not kept.what(key)})
