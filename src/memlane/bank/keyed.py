"""The verbs of a bank for programs: notes under names of the caller's choice, and many memories at once."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from memlane import gate
from memlane.bank.expected import expecting
from memlane.bank.journaled import Journaled
from memlane.bank.opened import verb
from memlane.core.choosing import Expiry, expiry_given, scope_given, tags_of
from memlane.core.dates import utc_now
from memlane.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from memlane.core.model import Draft, Memory
from memlane.disk.names import PRIVATE, of_key
from memlane.lanes import NAMES
from memlane.lanes.notes.front import KEYS, MEANT
from memlane.recall import under
from memlane.recall.leaving import shown

if TYPE_CHECKING:
    from memlane.bank import Bank

_ATTEMPTS = 20
_FOLDERS = (*NAMES, PRIVATE, "indices")  # these are not for notes of a program's
_KEY = "key"  # where a note says what it is called, if that is no file name


class Keyed(Journaled):
    """A bank in which a program can choose the names of notes."""

    @verb
    def put(
        self,
        key: str,
        text: str,
        *,
        title: str | None = None,
        tags: Sequence[str] = (),
        type: str | None = None,
        scope: str | None = None,
        expires: Expiry = None,
        extra: Mapping[str, Any] | None = None,
        expected: str | None = None,
    ) -> Memory:
        """Make the note of this name say this, whether it is there or not; the text is taken as it is.

        Any string is a name, and upper and lower case differ; one that can be a file's is. Everything that the note
        said before is replaced, but when it was made. `expires` is that of `add`. With `expected`, a `Memory.version`,
        or "" for a note that is not there: raises Conflict where it is another by now. Raises Refused, InvalidInput,
        StorageError.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("There is no text to remember.", hint="Give some text.")
        native = of_key(key, _FOLDERS)
        own = {**(extra or {}), **({} if native == key else {_KEY: key})}
        own |= {"expires": expiry_given(expires)} if expires is not None else {}
        if taken := sorted(KEYS & own.keys()):
            raise InvalidInput(f"{', '.join(taken)} cannot be under extra.", hint="It is an argument of its own.")
        said: dict[str, Any] = {
            "title": title or None,
            "tags": tags_of(tags),
            "type": type,
            "scope": scope_given(scope),
        }
        for _ in range(_ATTEMPTS):
            try:
                memory = self._overwritten(key, native, text, said, own, expected)
            except NotFound:
                if expected:
                    raise Conflict(f"{gate.shown(key)} is gone.", hint="Read what is there now.") from None
                try:
                    memory = self.notes.put(Draft(text, **said, fields={**own, "filename": native}))
                except AlreadyExists:
                    continue  # somebody else made it at this moment
            bank = cast("Bank", self)
            return bank._anchored(bank._indexed(memory))
        raise Conflict(f"{gate.shown(key)} comes and goes.", hint="Try again.")

    def _overwritten(
        self,
        key: str,
        native: str,
        text: str,
        said: Mapping[str, Any],
        own: Mapping[str, Any],
        expected: str | None,
    ) -> Memory:
        there = self.notes.fetch(native)
        if there.fields.get(_KEY, native) != key:
            raise InvalidInput("Another name means that note.", hint="Choose another name.")
        anew: dict[str, Any] = {}
        if there.expired(utc_now()):  # as if there were none
            if expected:
                raise NotFound("It has expired.")
            anew["created_at"] = utc_now()
            expected = expected if expected is None else shown(cast("Bank", self), [there])[0].version
        elif expected == "":
            raise Conflict(f"{gate.shown(key)} is there already.", hint="Read it, and expect its version.")
        gone: dict[str, Any] = dict.fromkeys(there.fields)
        fields = {**gone, **own}
        meant = {name: fields.pop(name) for name in MEANT & fields.keys()}
        changes = {**said, "type": said["type"] or "journal", "text": text, "extra": fields, **meant, **anew}
        with expecting(cast("Bank", self), self.notes, native, expected):
            return self.notes.revise(native, changes)

    @under.by_id
    @verb
    def move(self, id: str, new: str) -> Memory:
        """Give a note another name, in another folder or not; links, anchors and its history follow.

        Raises NotFound, AlreadyExists, InvalidInput for what has no name of its own.
        """
        from memlane.exchange.moving import move

        return move(cast("Bank", self), id, new)

    @under.by_id
    @verb
    def edit(self, id: str, old: str, new: str) -> Memory:
        """Put `new` in the place of a passage that is there once, and leave the rest as it is."""
        from memlane.exchange.editing import change

        return change(cast("Bank", self), id, old, new)

    @verb
    def add_many(self, items: Iterable[Mapping[str, Any]]) -> builtins.list[Memory]:
        """`add` for each of these, a mapping of its arguments; one change for `undo`.

        Raises what `add` raises for the first that cannot be stored; those before it are.
        """
        bank = cast("Bank", self)
        return [bank.add(**item) for item in items]

    def check(
        self, /, text: str, *, lane: str = "notes", title: str | None = None, scope: str | None = None, **fields: Any
    ) -> Draft:
        """What the lane's gate makes of a text: the draft as it would be stored. Raises Refused; stores nothing."""
        return gate.admit(self.lane(lane).checks, Draft(text, title, scope=scope, fields=fields), self.lane(lane))
