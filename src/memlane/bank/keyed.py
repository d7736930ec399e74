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
from memlane.core.errors import AlreadyExists, Conflict, InvalidInput, MemlaneError, NotFound
from memlane.core.model import Draft, Memory
from memlane.core.values import replace
from memlane.disk import journal
from memlane.disk.names import PRIVATE, is_private
from memlane.lanes.notes import keys
from memlane.lanes.notes.front import KEYS, MEANT
from memlane.recall import under
from memlane.recall.leaving import shown

if TYPE_CHECKING:
    from memlane.bank import Bank

_ATTEMPTS = 20
_NOT_EXTRA = KEYS | {keys.FIELD, "filename", "private"}


class Keyed(Journaled):
    """A bank in which a program can choose the names of notes."""

    def get(self, id: str | None = None, *, key: str | None = None, expired: bool = False) -> Memory:
        """One memory by its id, path, file name or title, or the note that was put under exactly this `key`; the user's
        as well. Secrets are blanked. Raises NotFound, also for one that has expired, unless that is asked for.
        """
        if (id is None) == (key is None):
            hint = "Give the id of a memory, or the key that a note was put under."
            raise InvalidInput("An id or a key is needed, and not both.", hint=hint)
        bank = cast("Bank", self)
        if key is None:
            return under.get(bank, cast("str", id), expired=expired)
        try:
            return under.get(bank, keys.get(self.notes, key).id, expired=expired)
        except NotFound as error:
            if (below := bank.under) is None:
                raise
            try:
                return under.as_users(below.get(key=key, expired=expired))
            except (NotFound, InvalidInput):
                raise error from None

    @under.adding
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
        """Make the note under this key say this, whether it is there or not; the text is taken as it is.

        Any string is a key, upper and lower case differ, and `get(key=…)` finds it. Everything that the note said
        before is replaced, but when it was made. The scopes `private` and `user` are those of `add`; a note that is
        private stays so. `expires` is that of `add`. With `expected`, a `Memory.version`, or "" for a note that is not
        there: raises Conflict where it is another by now. Raises Refused, InvalidInput, StorageError.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("There is no text to remember.", hint="Give some text.")
        native = keys.native_of(key)
        if taken := sorted(_NOT_EXTRA & (extra or {}).keys()):
            raise InvalidInput(f"{', '.join(taken)} cannot be under extra.", hint="It is an argument of its own.")
        own = {**(extra or {}), **({} if native == key else {keys.FIELD: key})}
        own |= {"expires": expiry_given(expires)} if expires is not None else {}
        own |= {"author": author} if (author := journal.by.get().author) else {}  # of what it says from now on
        said: dict[str, Any] = {"title": title or None, "tags": tags_of(tags), "type": type}
        private = (scope_given(scope) or "").strip().lower() == PRIVATE
        said["scope"] = None if private else scope
        place = {"private": True} if private else {}
        for _ in range(_ATTEMPTS):
            try:
                memory = self._overwritten(key, text, said, own, expected, private=private)
            except NotFound:
                if expected:
                    raise Conflict(f"{gate.shown(key)} is gone.", hint="Read what is there now.") from None
                try:
                    memory = self.notes.put(Draft(text, **said, fields={**own, **place, "filename": native}))
                except AlreadyExists:
                    continue  # somebody else made it at this moment
            bank = cast("Bank", self)
            return bank._anchored(bank._indexed(memory))
        raise Conflict(f"{gate.shown(key)} comes and goes.", hint="Try again.")

    def _overwritten(
        self,
        key: str,
        text: str,
        said: Mapping[str, Any],
        own: Mapping[str, Any],
        expected: str | None,
        *,
        private: bool,
    ) -> Memory:
        bank, there = cast("Bank", self), keys.fetch(self.notes, key)
        if not keys.has(there, key):
            raise InvalidInput("The note of that name has another key.", hint="Choose another key.")
        anew: dict[str, Any] = {}
        if there.expired(utc_now()):  # as if there were none
            if expected:
                raise NotFound("It has expired.")
            anew["created_at"] = utc_now()
            expected = expected if expected is None else shown(bank, [there])[0].version
        elif expected == "":
            version = shown(bank, [there])[0].version
            raise Conflict(
                f"{gate.shown(key)} is there already.", hint="Read it, and expect its version.", version=version
            )
        gone: dict[str, Any] = dict.fromkeys(there.fields)
        fields = {**gone, **own}
        meant = {name: fields.pop(name) for name in MEANT & fields.keys()}
        changes = {**said, "type": said["type"] or "journal", "text": text, "extra": fields, **meant, **anew}
        with expecting(bank, self.notes, there.native_id, expected):
            if not private or is_private(there.id):
                return self.notes.revise(there.native_id, changes)
            return self._made_private(there, changes)

    def _made_private(self, there: Memory, changes: Mapping[str, Any]) -> Memory:
        """Move a note to where git leaves it out, and only then let it say something else."""
        from memlane.exchange import sharing

        bank, native = cast("Bank", self), f"{PRIVATE}/{there.native_id}"
        moved = sharing.move(bank, there, private=True)
        try:
            memory = self.notes.revise(native, changes)
        except MemlaneError:
            sharing.move(bank, self.notes.fetch(native), private=False)
            raise
        return replace(memory, remarks=(*memory.remarks, *moved.remarks))

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
        """Put `new` in the place of a passage that is there once in the text, and leave the rest as it is."""
        from memlane.exchange.editing import change

        return change(cast("Bank", self), id, old, new)

    @verb
    def add_many(self, items: Iterable[Mapping[str, Any] | str]) -> builtins.list[Memory]:
        """`add` for each of these, a mapping of its arguments or a text alone; one change for `undo`.

        All are checked before the first is written: where one is refused or wrong, nothing is. A StorageError or an
        AlreadyExists on the way leaves those before it; `undo` takes them back.
        """
        from memlane.recall.adding import refuse

        bank, given = cast("Bank", self), _many(items)
        for item in given if len(given) > 1 else ():  # one alone is checked when it is stored
            at, labels = under.written_to(bank, item)
            refuse(at, **labels)
        return [bank.add(**item) for item in given]

    def check(
        self, /, text: str, *, lane: str = "notes", title: str | None = None, scope: str | None = None, **fields: Any
    ) -> Draft:
        """What the lane's gate makes of a text: the draft as it would be stored. Stores nothing.

        Raises Refused, and InvalidInput for an empty text, as `add` does.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("There is no text to remember.", hint="Give some text.")
        return gate.admit(self.lane(lane).checks, Draft(text, title, scope=scope, fields=fields), self.lane(lane))


def _many(items: Any) -> builtins.list[dict[str, Any]]:
    """What `add` is to be given for each of these. Raises InvalidInput."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidInput("These are not several memories.", hint='Give a list, such as ["A text.", {"text": "…"}].')
    given = [{"text": item} if isinstance(item, str) else item for item in items]
    for number, item in enumerate(given, 1):
        if not isinstance(item, Mapping) or not all(isinstance(name, str) for name in item):
            hint = 'Give a text, or the arguments of add: {"text": "…", "tags": […]}.'
            raise InvalidInput(f"Number {number} is not a text or a mapping.", hint=hint)
        if "text" not in item:
            raise InvalidInput(f"Number {number} has no text.", hint='Give it as {"text": "…"}.')
    return [dict(item) for item in given]
