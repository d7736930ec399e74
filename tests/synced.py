"""Members of a team for tests of sync: banks that share a remote, and connections that break."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import engine, state
from memlane.care.sync.results import Synced
from memlane.exchange import remotes
from memlane.exchange.remotes import Conflict, Entry, New, Remote, TooLarge, Unreachable

TEAM = "team"
T = TypeVar("T")


def member(top: Path, name: str, **options: object) -> Bank:
    """A new member, whose remote is the folder `remote`."""
    (top / "remote").mkdir(exist_ok=True)
    (top / name).mkdir()
    bank = Bank.init(top / name)
    sync.add(bank, TEAM, str(top / "remote"), author=name, **options)  # type: ignore[arg-type]
    return bank


def synced(*banks: Bank, rounds: int = 1) -> list[Synced]:
    """What the last round of syncs did, member by member."""
    done: list[Synced] = []
    for _ in range(rounds):
        done = [sync.sync(bank, TEAM)[0] for bank in banks]
    return done


def contents(bank: Bank) -> dict[str, bytes]:
    """Every file of a bank that others could have, too."""
    root = Path(bank.root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not any(part.startswith((".", "indices", "private")) for part in path.relative_to(root).parts)
    }


def told(bank: Bank) -> dict[str, bytes]:
    """Every file of a bank as others are told of it: of the index of topics what a person wrote."""
    found = contents(bank)
    index = found.get("topics/index.md")
    return found | ({"topics/index.md": bank.topics.answers.told(index)} if index else {})


def at_remote(top: Path) -> dict[str, bytes]:
    """What the remote has."""
    remote = remotes.opened(str(top / "remote"))
    try:
        entries = {(entry.scope, entry.path) for page, _ in remote.changes("") for entry in page if not entry.deleted}
        found = {path: remote.get(path, scope, 1 << 30) for scope, path in entries}
        return {path: each[1] for path, each in sorted(found.items()) if each}
    finally:
        remote.close()


class OneByOne:
    """What a remote that is only a test's own does with many files: one after the other."""

    def get_many(self: Any, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        found = []
        for entry in listed:
            with suppress(TooLarge):
                found += filter(None, [self.get(entry.path, entry.scope, entry.size)])
        return found

    def put_many(self: Any, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        for one in new:
            with suppress(Conflict):
                yield one, self.put(one.path, one.data, None, scope=one.scope, author=author, lineage=one.lineage)


class Cut(OneByOne):
    """A connection that breaks at the nth call: before the call has reached the remote, or after that."""

    def __init__(self, remote: Remote, at: int, *, after: bool) -> None:
        self.remote, self.left, self.after = remote, at, after

    def _call(self, call: Callable[[], T]) -> T:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Unreachable("cut")
        result = call()
        if self.left == 0:
            raise Unreachable("cut")
        return result

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        for page in self._call(lambda: list(self.remote.changes(cursor))):
            yield page
            self._call(lambda: None)

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        return self._call(lambda: self.remote.get(path, scope, most))

    def put(self, path: str, data: bytes, expected: str | None, **said: str) -> str:
        return self._call(lambda: self.remote.put(path, data, expected, **said))

    def delete(self, path: str, expected: str, **said: str) -> str:
        return self._call(lambda: self.remote.delete(path, expected, **said))

    def watch(self, cursor: str, seconds: float) -> bool:
        return self._call(lambda: self.remote.watch(cursor, seconds))

    def close(self) -> None:
        self.remote.close()


def sync_cut(bank: Bank, at: int, *, after: bool) -> bool:
    """Sync over a connection that breaks at the nth call; whether it held to the end."""
    with state.opened(bank.root) as kept:
        assert kept is not None
        settings = kept.remote(TEAM)
        remote = Cut(remotes.opened(settings.url), at, after=after)
        try:
            engine.run(bank, kept, settings, remote)
        except Unreachable:
            return False
        finally:
            remote.close()
        return True


class _Killed(BaseException):
    """Nothing catches it."""


class _Dying(state.State):
    """What is known of remotes, of a process that is killed when it has written files and noted nothing of that."""

    def save(self, *_: object) -> None:
        raise _Killed


def sync_killed(bank: Bank, name: str = TEAM) -> None:
    """Sync until the first files that came are written, and no further."""
    with closing(_Dying(state.path_of(bank.root))) as kept, suppress(_Killed):
        settings = kept.remote(name)
        with closing(remotes.opened(settings.url)) as remote:
            engine.run(bank, kept, settings, remote)
