"""A bank on several machines, or of several people: `sync` brings it into step with a remote.

add(bank, "team", "/mnt/team/memory")    where it is; kept in the user's state folder, never in the project
sync(bank, "team")                       fetch, merge, send
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memlane import config, gate
from memlane.care.sync import engine, receiving
from memlane.care.sync import state as states
from memlane.care.sync.results import Held, Synced, shown_path
from memlane.care.sync.state import Settings
from memlane.core.choosing import scope_given
from memlane.core.errors import Busy, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.disk import files, journal
from memlane.disk.written import SYNC
from memlane.exchange import remotes
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

_ADDRESS = re.compile(r"^(?!\.)(postgres(ql)?:|s3:|file:|.*:[^/]*@)", re.IGNORECASE)
PATIENCE = 30.0  # seconds that one sync waits for another
MANY = 500  # files; fewer are indexed by the next search in a moment
__all__ = ["Held", "Settings", "Status", "Synced", "add", "index", "on_write", "remove", "status", "sync"]


def add(
    bank: Bank,
    name: str,
    url: str,
    *,
    lanes: Sequence[str] = (),
    scopes: Sequence[str] = (),
    mine: bool = False,
    author: str = "",
) -> tuple[Settings, tuple[str, ...]]:
    """Add a remote, and reach it once; also tell what a person should know of it.

    What is sent there begins with the first sync. `memlane.exchange.remotes` knows the addresses. Raises InvalidInput,
    AlreadyExists, Unreachable.
    """
    config.require_trust(bank.config)
    states.refuse_name(name)
    if unknown := set(lanes) - set(NAMES):
        raise InvalidInput(f"There is no lane {gate.shown(min(unknown))!r}.", hint=f"Use some of: {', '.join(NAMES)}.")
    for scope in scopes:
        remotes.checked("scope", scope_given(scope) or "")
    if not url.strip():
        raise InvalidInput("This is no address.", hint="Name a folder, or where a database or a bucket is.")
    if "://" not in url and _ADDRESS.match(url) and not os.path.isdir(url):  # a password must not be shown
        raise InvalidInput(
            "This looks like an address without its beginning.",
            hint="Put postgresql:// or s3:// before it; a folder of such a name is ./NAME.",
        )
    folder = os.path.realpath(os.path.expanduser(url.removeprefix("file://")))
    if f"{folder}{os.sep}".startswith(os.path.realpath(bank.root) + os.sep):
        raise InvalidInput("That folder is in the bank itself.", hint="Name a folder outside of it.")
    if folder == os.path.realpath(os.path.dirname(bank.root)):
        raise InvalidInput("That is the folder of the bank itself.", hint="Name one that is for sharing alone.")
    chosen = tuple(dict.fromkeys(scopes)) or (remotes.SHARED,)
    url = os.path.abspath(os.path.expanduser(url)) if "://" not in url else url
    settings = Settings(name, url, tuple(dict.fromkeys(lanes)), chosen, mine, author or _user())
    with closing(remotes.opened(url)) as remote:
        entries, _ = next(iter(remote.changes("")), ([], ""))
        remarks = []
        if any(not entry.deleted and not entry.path.startswith(receiving.OWN) for entry in entries):
            remarks.append(
                "there is a bank already: if it is another one, remove the remote now, or the two become one"
            )
        if remote.keeps_history():
            remarks.append("it keeps what is replaced there: what is forgotten stays in its history")
    with states.made(bank.root) as state:
        state.add(settings)
    return settings, tuple(remarks)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def remove(bank: Bank, name: str) -> None:
    """Forget a remote. Nothing is deleted, neither here nor there. Raises NotFound."""
    with states.opened(bank.root) as state:
        if state is None:
            raise states.no_remote(name)
        state.remove(name)


def without_remote() -> NotFound:
    return NotFound("This bank has no remote.", hint="`memlane sync add NAME FOLDER-OR-URL` adds one.")


def sync(bank: Bank, name: str | None = None, *, deletions: bool = False) -> list[Synced]:
    """Bring a bank into step with one of its remotes, or with all of them: one that fails keeps none from the others.
    What one of them brings goes to all.

    Raises NotFound where there is none, and what `engine.run` does, of several failures the first.
    """
    with states.opened(bank.root) as state:
        settings = state.remotes() if state else []
        chosen = [each for each in settings if name in (None, each.name)]
        if state is None or not chosen:
            if name is not None and settings:
                raise states.no_remote(name)
            raise without_remote()
        with _alone(state):
            done, failed = _each(bank, state, chosen, deletions=deletions)
            last = max((at for at, one in enumerate(done) if one.brought), default=0)
            before = {one.remote: one for one in done[:last]}
            again, failed_now = _each(
                bank, state, [each for each in chosen if each.name in before], deletions=deletions
            )
        done = [*(before[one.remote].then(one) for one in again), *done[last:]]
        failed += failed_now
        if failed and done:
            failed[0].hint = f"{failed[0].hint} In step with {', '.join(each.remote for each in done)}.".strip()
        if failed:
            raise failed[0]
        return done


def index(bank: Bank, done: Sequence[Synced]) -> None:
    """Index what syncs brought, where that is much: else the first search would wait for it, and the hooks, which may
    not wait long, would find nothing for a while.
    """
    if sum(one.received for one in done) >= MANY:
        with suppress(StorageError):  # what came is there; the next search says why it cannot be indexed
            bank.index.ask(lambda: None)


def _each(
    bank: Bank, state: states.State, chosen: Sequence[Settings], **how: Any
) -> tuple[list[Synced], list[MemlaneError]]:
    """One sync with each of these remotes, by whoever is `_alone`: what was done, and what failed."""
    done: list[Synced] = []
    failed: list[MemlaneError] = []
    for each in chosen:
        try:
            # a change of its own, also within a command or a tool's call: what it brings is not the user's work
            with closing(remotes.opened(each.url)) as remote, journal.change(SYNC, joins=False):
                done.append(engine.run(bank, state, each, remote, **how))
        except MemlaneError as error:
            state.note(each.name, failed=str(error))
            failed.append(error)
    return done, failed


@contextmanager
def _alone(state: states.State) -> Iterator[None]:
    """One sync of a bank at a time. Raises Busy."""
    with ExitStack() as held:
        try:
            held.enter_context(files.locked(os.fspath(state.path), PATIENCE))
        except Busy:
            raise Busy("Another sync of this bank is under way.", hint="Wait for it, or end it.") from None
        yield


def on_write(bank: Bank, change: journal.Group) -> None:
    """Send what was just changed, where the bank has remotes: a server does so before it acknowledges a write.

    Raises MemlaneError, which says that it is stored here and not yet at the remote.
    """
    for each in filter(None, (bank, bank.under)):
        kept = each.journal
        number = change.number(kept) if kept else 0
        if kept and number:
            home = os.path.realpath(each.root)
            names = {name for entry in kept.entries(number) for name in (entry.name, entry.other) if name}
            _send(each, {os.path.normpath(os.path.join(home, name)) for name in names})
        elif kept is None or not kept.wanted:
            _send(each, None)


def _send(bank: Bank, paths: set[str] | None) -> None:
    home, root = os.path.realpath(bank.root), os.fspath(bank.root)
    only = paths and {root + path[len(home) :] if path.startswith(home + os.sep) else path for path in paths}
    try:
        with states.opened(bank.root) as state:
            settings = state.remotes() if state else []
            if state is not None and settings:
                with _alone(state):
                    _, failed = _each(bank, state, settings, only=only)
                if failed:
                    raise failed[0]
    except MemlaneError as error:
        raise MemlaneError(
            f"Stored here, not yet at the remote: {error}",
            hint=f"Do not store it again: `memlane sync` sends it. {error.hint}".strip(),
            code="not_shared",
        ) from error


@dataclass(frozen=True, slots=True)
class Status:
    """How a bank stands with a remote: when they were last in step, why the last sync failed ("" when it did not), how
    many files they share, which ones here wait to be sent, and what is held back or cannot be sent.
    """

    settings: Settings
    at: str
    failed: str
    files: int
    waiting: tuple[str, ...]
    held: tuple[Held, ...]
    unsent: tuple[Held, ...]

    def to_dict(self) -> dict[str, Any]:
        lists = {name: [each.to_dict() for each in getattr(self, name)] for name in ("held", "unsent")}
        facts = {"at": self.at or None, "failed": self.failed, "files": self.files, "waiting": list(self.waiting)}
        return {**self.settings.to_dict(), **facts, **lists}


def status(bank: Bank, *, waiting: bool = True) -> list[Status]:
    """How a bank stands with each of its remotes, which are not asked. Without `waiting`, no file is looked at."""
    with states.opened(bank.root) as state:
        return [_status(bank, state, each, waiting=waiting) for each in state.remotes()] if state else []


def _status(bank: Bank, state: states.State, settings: Settings, *, waiting: bool) -> Status:
    noted, known = state.noted(settings.name), list(state.files(settings.name))
    held, unsent = (
        tuple(Held(shown_path(each.path), getattr(each, what)) for each in known if getattr(each, what))
        for what in ("held", "unsent")
    )
    todo = tuple(map(shown_path, engine.waiting(bank, state, settings, known))) if waiting else ()
    there = sum(each.common and each.seen != b"" for each in known)
    return Status(settings, noted.at, noted.failed, there, todo, held, unsent)
