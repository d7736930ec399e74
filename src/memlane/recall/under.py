"""The user's own bank below a project's: read together in every answer, and each memory says whose it is.

`bank.under` is the user's bank, or None. A memory of it has an id of its own in the project, `user/notes:tabs`, which
names it wherever an id does; writing and deleting by such an id happens in the user's bank, with its gate, its trash
and its tombstones. The scope `user` is that bank: what is added to it is the user's, and what is looked for in it is
only the user's. Anything else is written to the project.

The project wins where both speak of the same thing (`hidden`): then the user's memory stays out of the answer.

    notes            the same name, or the same title in one answer
    vault            a register of the same topic and scope
    topics, layers   the same id
    any lane         the same text, in one answer

A memory that somebody else wrote and nobody here has reviewed wins over nothing, so neither does a project that the
user does not trust: then both are shown. Over a rule of the user's, only the user's own word wins. What is written out
of a project (exports, git, the graph, doctor) never has the user's memories: those rooms ask for `bank.memories()`, or
`bank.alone()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from memlane import config, gate
from memlane.core.dates import iso, utc_now
from memlane.core.errors import InvalidInput, MemlaneError, NotEnabled, NotFound
from memlane.core.model import USERS, Hit, Memory, Removed
from memlane.core.patterns import lazily
from memlane.core.values import replace
from memlane.lanes import NAMES
from memlane.recall import address
from memlane.recall.leaving import shown
from memlane.recall.starting import is_rule
from memlane.recall.superseded import marked, there

if TYPE_CHECKING:
    from memlane.bank import Bank

SCOPE = USERS.removesuffix("/")  # the scope that means the user's bank
_IN_EVERY_PROJECT = "it is in the user's own memory, which is read in every project"
_ID = lazily(rf"(?<![\w/:.-])({'|'.join(NAMES)}):(?=[^\s,;])")
V = TypeVar("V", bound=Callable[..., Any])
T = TypeVar("T")
Scopes = str | Sequence[str] | None


# -- whose a memory is


def home(bank: Bank, text: str) -> tuple[Bank, str]:
    """The bank that a name is of, and the name there: `user/notes:tabs` is `notes:tabs` in the user's.

    Raises NotEnabled where the user's bank is not read.
    """
    plain = address.unwrapped(text)
    own = plain.removeprefix(USERS)
    lane, colon, _ = own.partition(":")
    if own == plain or not colon or lane not in (*NAMES, "memory"):
        return bank, text
    return users(bank), own


def users(bank: Bank) -> Bank:
    """The user's bank: the one below this one, or this one. Raises NotEnabled."""
    if found := bank.under:
        return found
    if config.is_user_bank(bank.config):
        return bank
    why = config.under(bank.config)
    hint = "Leave scope out to keep it with this project."
    raise NotEnabled(f"The user's own memory cannot be used here: {why}.", hint=hint)


def as_users(memory: Memory) -> Memory:
    """A memory of the user's bank as the project above it names it."""
    return replace(
        memory,
        id=USERS + memory.id,
        superseded_by=USERS + memory.superseded_by if memory.superseded_by else None,
        replaces=tuple(USERS + id for id in memory.replaces),
        similar=tuple(like._replace(id=USERS + like.id) for like in memory.similar),
        remarks=tuple(map(_told, memory.remarks)),
    )


def of_hit(hit: Hit) -> Hit:
    return replace(hit, memory=as_users(hit.memory))


def removed_by(bank: Bank) -> list[Removed]:
    """What `restore` can bring back, the project's and the user's, the latest first."""
    below = bank.under
    theirs = [replace(gone, id=USERS + gone.id) for gone in below.removed()] if below else []
    return sorted([*bank.removed(), *theirs], key=lambda gone: gone.removed_at, reverse=True)


def _told(text: str) -> str:
    """A sentence of the user's bank, with the ids that the project has for its memories."""
    return _ID.sub(rf"{USERS}\1:", text)


@contextmanager
def telling() -> Iterator[None]:
    """Let errors of the user's bank name its memories as the project does."""
    try:
        yield
    except MemlaneError as error:
        error.message, error.hint = _told(error.message), _told(error.hint)
        if isinstance(error, NotFound):
            error.near = tuple(USERS + id for id in error.near)
        raise


# -- the verbs of a bank


def get(bank: Bank, text: str, *, expired: bool = False) -> Memory:
    """As `Bank.get`: what the project does not have may be the user's. Raises as `found_in`."""
    at, memory = found_in(bank, text, expired=expired)
    [memory] = shown(at, [memory])
    return memory if at is bank else as_users(memory)


def found_in(bank: Bank, text: str, *, expired: bool = True) -> tuple[Bank, Memory]:
    """The bank that has what a text names, and the memory as it is called there. Raises as `address.get`, and NotFound
    for what has expired where that must not be.
    """
    at, name = home(bank, text)
    if at is not bank:
        with telling():
            return at, _marked(at, name, expired)
    try:
        return bank, _marked(bank, name, expired)
    except NotFound as error:
        below = bank.under
        try:
            if below is None:
                raise
            return below, _marked(below, name, expired)
        except (NotFound, InvalidInput):
            raise error from None


def to_change(bank: Bank, text: str) -> tuple[Bank, Memory]:
    """As `found_in`, for a memory that is to be changed: one of the user's must be named as the user's."""
    at, name = home(bank, text)
    if at is not bank:
        with telling():
            return at, address.get(at, name)
    try:
        return bank, address.get(bank, name)
    except NotFound as error:
        raise _nearer(bank, [name], error) from None


def _marked(bank: Bank, text: str, expired: bool) -> Memory:
    [memory] = marked(bank, [address.get(bank, text)])
    if not expired and memory.expired(utc_now()):
        named = gate.shown(memory.id)
        raise NotFound(f"{named} expired on {iso(memory.expires)}.", hint=f"`memlane restore {named}` keeps it.")
    return memory


def by_id(verb: V) -> V:
    """Let a verb of the bank that takes an id take one of the user's as well."""

    @wraps(verb)
    def routed(bank: Bank, id: str, *rest: Any, **more: Any) -> Any:
        return _at_home(bank, [id], lambda at, names: verb(at, *names, *rest, **more))

    return cast("V", routed)


def by_ids(verb: V) -> V:
    """The same for a verb that takes nothing but ids. Raises InvalidInput for some of the project's and some of the
    user's, which no call can change as one.
    """

    @wraps(verb)
    def routed(bank: Bank, *ids: str, **more: Any) -> Any:
        return _at_home(bank, ids, lambda at, names: verb(at, *names, **more))

    return cast("V", routed)


def _at_home(bank: Bank, ids: Sequence[str], work: Callable[[Bank, Sequence[str]], Any]) -> Any:
    homes = [home(bank, id) for id in ids]
    at = homes[0][0] if homes else bank
    if any(other is not at for other, _ in homes):
        raise InvalidInput("Some of these are the project's, and some the user's.", hint="Name them in two calls.")
    names = [name for _, name in homes]
    if at is not bank:
        with telling():
            return _as_users(work(at, names))
    try:
        return work(bank, names)
    except NotFound as error:
        raise _nearer(bank, names, error) from None


def _nearer(bank: Bank, names: Sequence[str], error: NotFound) -> NotFound:
    """The error, with the user's memory of that name: it is not changed unless it is named as the user's."""
    below = bank.under
    for name in names if below else ():
        try:
            near = USERS + address.get(cast("Bank", below), name).id
        except (NotFound, InvalidInput):
            continue
        return NotFound(error.message, hint=error.hint, near=(near,))
    return error


def _as_users(value: Any) -> Any:
    if isinstance(value, Memory):
        return as_users(value)
    if isinstance(value, Removed):
        return replace(value, id=USERS + value.id)
    return replace(value, ids=tuple(USERS + id for id in value.ids))  # what was forgotten


def adding(add: V) -> V:
    """Let `Bank.add` and `put` write to the user's bank: with the scope `user`, or in the place of one of its own.

    Where no project has a bank, everything is written to the user's: then it is said, for nobody may have meant that.
    """

    @wraps(add)
    def routed(bank: Bank, *given: Any, **labels: Any) -> Any:
        is_meant = labels.get("scope") == SCOPE
        at, labels = written_to(bank, labels)
        if at is bank:
            memory = add(bank, *given, **labels)
            unmeant = not is_meant and config.is_user_bank(bank.config)
            return replace(memory, remarks=(*memory.remarks, _IN_EVERY_PROJECT)) if unmeant else memory
        with telling():
            return as_users(add(at, *given, **labels))

    return cast("V", routed)


def written_to(bank: Bank, labels: dict[str, Any]) -> tuple[Bank, dict[str, Any]]:
    """The bank that `Bank.add` writes to, and what it is given there. Raises NotEnabled."""
    at = bank
    if labels.get("replaces"):
        at, name = home(bank, labels["replaces"])
        labels = {**labels, "replaces": name}
    if labels.get("scope") == SCOPE:
        at, labels = users(bank), {**labels, "scope": None}
    return at, labels


# -- both in one answer


def asked(bank: Bank, scopes: Scopes) -> tuple[Bank, Scopes]:
    """The bank that scopes ask about, and those that are left to look in: `user` is the user's bank.

    A scope of that name that memories of the project have, as they could before, is one like any other; but not that
    of a project that the user does not trust, which would get in by it.
    """
    names = (scopes,) if isinstance(scopes, str) else scopes
    if not names or not isinstance(names, Sequence) or SCOPE not in names:
        return bank, scopes
    from memlane.recall.scopes import is_used

    if not bank.config.distrust and is_used(bank, SCOPE):
        return bank, scopes
    return users(bank), tuple(name for name in names if name != SCOPE) or None


def hidden(bank: Bank, beside: Sequence[Memory]) -> Callable[[Memory], bool]:
    """Whether a memory of the user's stays out of an answer with these of the project's beside it: see above."""
    texts = {_folded(memory.text): memory for memory in beside if memory.text.strip()}
    titles = {_folded(memory.title): memory for memory in beside if memory.lane == "notes"}
    present = {lane.name for lane in bank.present()}

    def rival(memory: Memory) -> Memory | None:
        if same := texts.get(_folded(memory.text)):
            return same
        if memory.lane not in present or memory.lane == "records":
            return None
        if memory.lane == "vault":
            return _register(bank, memory)
        named = titles.get(_folded(memory.title)) if memory.lane == "notes" else None
        return named or there(bank, memory.id)

    def stays_out(memory: Memory) -> bool:
        other = rival(memory)
        if other is None or other.status == "archived" or bank.origins([other]):
            return False
        return not is_rule(memory) or not _users_word(bank, memory) or bool(bank.users_word([other]))

    return stays_out


def _users_word(bank: Bank, memory: Memory) -> bool:
    below = bank.under
    return bool(below and below.users_word([memory]))


def _register(bank: Bank, memory: Memory) -> Memory | None:
    topic = memory.fields.get("topic_id")
    same = (
        other
        for other in (bank.memories("vault") if topic else ())
        if other.fields.get("topic_id") == topic and other.scope == memory.scope
    )
    return next(same, None)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
