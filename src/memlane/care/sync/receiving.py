"""What comes from a remote: judged, merged into what is here, and noted as somebody else's."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane import config
from memlane.care.sync import forgetting, lineage, local, travel
from memlane.care.sync.results import Held, Synced, shown_path
from memlane.care.sync.sieve import Sieve
from memlane.care.sync.state import Known, Settings, State, digest
from memlane.care.sync.travel import Place
from memlane.core import progress
from memlane.core.errors import InvalidInput, StorageError
from memlane.core.invisible import visible
from memlane.disk import files, names, written
from memlane.exchange.remotes import Entry, Remote, TooLarge
from memlane.lanes import NAMES
from memlane.lanes.merging import Unmergeable

if TYPE_CHECKING:
    from memlane.bank import Bank

OWN = ".memlane/"  # what at a remote is no file of a bank
MOST_FILES, MOST_BYTES = 100_000, 2 << 30  # that one sync takes from a remote
MOST_ENTRIES = 2_000_000  # that a remote lists
EVERY = 100  # files between two words on how far it is
_AGAIN = "could not be written"
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
        """Finish what was being written or sent when the last sync was interrupted.

        Else what we have from the remote, or sent there, would look like something of our own, and come back when
        somebody else deletes it.
        """
        for known, base, after, told in self.state.intents(self.name):
            place = travel.place_of(self.bank, known.path)
            if isinstance(place, Place) and digest(local.read(place)) == after:
                self.state.set_lineage(known.path, after, told)
                self._save(known, base)
        self.state.settle(self.name)
        for known, base in self.state.unheard(self.name):
            found = None
            with suppress(TooLarge):  # then it is not what we sent
                found = self.remote.get(known.path, known.scope, files.MAX_LOG_BYTES)
            if found and not found[0].deleted and digest(found[1]) == known.seen:
                known.version = found[0].version
                self._save(known, base)

    def forget(self) -> None:
        """Tell each other what was forgotten, and clear this bank of it: before anything else comes or goes."""
        news = False
        for scope in self.settings.scopes:
            removed, new = forgetting.exchange(
                self.bank, self.state, self.remote, scope=scope, author=self.settings.author, many=self.deletions
            )
            self.done.forgotten += removed
            news = news or new
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
                if listed % EVERY == 0:
                    progress.tell("fetching", listed, None)
            last = after
            if not later:
                self.state.note(self.name, cursor=after)
        for entry in sorted(later, key=lambda entry: entry.path.endswith("index.md")):
            self._take(entry)
        if later:
            self.state.note(self.name, cursor=last)
        if listed >= EVERY:
            progress.tell("fetching", listed, listed)
        while self.outdated:
            self.bank.lane(self.outdated.pop()).answers.rebuild()

    def _place(self, path: str) -> Place | str:
        """Where a file of the remote goes, or why it is not taken."""
        place = travel.place_of(self.bank, path)
        if isinstance(place, str):
            return place
        return TWIN if travel.has_plainer_twin(self.bank, place) or not self._claims(path) else place

    def _claims(self, path: str) -> bool:
        """Whether a name is free for this file, or is made so."""
        folded = names.folded(path)
        twin = self.taken.setdefault(folded, path)
        if twin != path and not self._gives_way(twin, path):
            return False
        self.taken[folded] = path
        return True

    def _gives_way(self, twin: str, path: str) -> bool:
        """Whether a file makes room for one whose name differs from its own in case alone: the plainer name has it, for
        every member, so that nobody can take a name away by another spelling. What was written or changed here stays.
        """
        place = travel.place_of(self.bank, twin)
        if path != names.folded(path) or not isinstance(place, Place):
            return False
        for known in [each for each in self.known.values() if each.path == twin]:
            base = self._base(known)

            def decide(now: bytes | None, base: bytes | None = base) -> bytes | None:
                return None if now == base and not _is_ours(now) else now

            ours, after = local.settle(self.bank, place, decide)
            if after is not None:
                return False
            if ours is not None:
                self._wrote(place, ours, None, "")
            known.held, known.stamp = TWIN, ""
            self._save(known, None)
        return True

    def _take(self, entry: Entry) -> None:
        place = self._place(entry.path)
        if isinstance(place, str):
            if not entry.deleted:
                self._save(Known(entry.scope, entry.path, entry.version, b"?", place), None)
        elif place.lane and place.lane not in self.lanes:
            return
        elif entry.deleted and travel.is_gone(place.file):
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
        said = lineage.parsed(entry.lineage)
        have: lineage.Lineage = {}

        def decide(ours: bytes | None) -> bytes | None:
            nonlocal have
            have = lineage.of(self.state, place.path, ours)
            if theirs is None and reasons and base is None:
                return ours  # all of it is held back, and what is here is something else
            if said and lineage.covers(have, said) and not reasons:
                return ours  # it is old: it came from here, or over another remote before
            # with several remotes, what changed at one of them may lack what another one brought: no side is the later
            apart = self.several and said and not lineage.covers(said, have) and base in (ours, theirs)
            if said and (base is None or theirs == base) and self._is_later(place, ours, said, have):
                after = theirs  # this remote knows more of it than we know of this remote
            else:
                after = local.merged(place, None if apart else base, ours, theirs)
            if after != ours:
                told = lineage.told(self.state, lineage.joined(have, said), changed=after != theirs)
                self.state.intend(self.name, known, theirs, after, told)
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
        lineage.note(self.state, place.path, after, lineage.joined(have, said), changed=after != theirs)
        if after != ours:
            self._wrote(place, ours, after, entry.author)
            self.done.merged += after != theirs
        if after == theirs and full == data and not place.is_log:
            known.stamp = travel.stamp_of(place.file)
        self._save(known, theirs)
        return True

    def _is_later(self, place: Place, ours: bytes | None, said: lineage.Lineage, have: lineage.Lineage) -> bool:
        """Whether a content was made by somebody who had all that is here, and of it nothing stayed here alone."""
        mine = self.state.me
        if not lineage.covers(said, have) or said.get(mine, 0) != have.get(mine, 0):
            return False
        return ours is None or self.sieve.sendable(place, ours)[0] == ours

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

    # -- what is known

    def _base(self, known: Known) -> bytes | None:
        return self.state.base(self.name, known.scope, known.path)

    def _save(self, known: Known, base: bytes | None) -> None:
        self.state.save(self.name, known, base)
        self.known[known.scope, known.path] = known


def _is_ours(data: bytes | None) -> bool:
    kept = config.written()
    return data is not None and kept is not None and kept.what(written.key_of(data)) in written.OWN


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
