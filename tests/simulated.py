"""A member of simulate_sync.py: what it does, what goes wrong with its machine, and what is expected after that."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from memlane.core import dates

clock = [datetime(2026, 3, 1, tzinfo=UTC)]
dates.utc_now = lambda: clock[0]  # what asks for the time is imported after this

from memlane import Bank  # noqa: E402
from memlane.care import sync  # noqa: E402
from memlane.care.sync import engine, state  # noqa: E402
from memlane.config import trust, user_state  # noqa: E402
from memlane.core import alternatives  # noqa: E402
from memlane.disk import files, log, together, written  # noqa: E402
from memlane.exchange import remotes  # noqa: E402
from memlane.exchange.remotes import Unreachable  # noqa: E402
from memlane.history import undo  # noqa: E402
from simulated_claims import Claiming  # noqa: E402
from synced import Cut  # noqa: E402
from torturing_sync import MARK  # noqa: E402

SKEWS = (0, 3, -40, 400, -1, 0.1, -700, 30)  # days that a member's clock is wrong by
WRITES = (
    *((state.State, name) for name in ("save", "intend", "send", "set_lineage", "has", "note", "settle", "stamp")),
    *((files, name) for name in ("create", "replace", "remove", "append_lines")),
    (log, "rewrite"),
    (together, "create_all"),
)


class Step(NamedTuple):
    """One thing that one member does; a sync may be `cut` or `killed` at its nth call, before or after that."""

    number: int
    member: int
    verb: str
    fate: str = ""
    at: int = 0
    after: bool = False


class Simulated(Claiming):
    """A member as torturing_sync.py has it, whose bank is open for the length of one step. With `shares`, it shares
    these lanes alone.
    """

    scopes: tuple[str, ...] = ()

    def __init__(self, place: Path, number: int, lanes: tuple[str, ...], shares: tuple[str, ...] = ()) -> None:
        self.place, self.number, self.count, self.shares = place, number, 0, shares
        self.lanes = tuple(lane for lane in lanes if not shares or lane in shares) or shares
        self.deleted: list[Any] = []
        self.journal = os.open(place / f"{number}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @contextmanager
    def at(self, seed: int, number: int) -> Iterator[None]:
        """The surroundings of a step: a home, a clock and dice of its own."""
        os.environ["HOME"] = str(self.home)
        clock[0] = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=SKEWS[self.number % 8], seconds=number)
        self.dice, self.count = random.Random(f"{seed} {number}"), number
        secrets.randbelow = self.dice.randrange
        trust.record(user_state(), self.folder / "memlane.toml")  # who is killed while allowing something says so again
        with Bank.open(self.folder) as self.bank:
            yield

    @property
    def folder(self) -> Path:  # type: ignore[override]
        return self.place / f"member{self.number}"

    @property
    def home(self) -> Path:
        return self.place / f"home{self.number}"

    def do_step(self, step: Step) -> None:
        if step.fate != "killed":
            self.dare(step)
            return
        if (child := os.fork()) == 0:
            try:
                _die_at(step.at, after=step.after)
                with Bank.open(self.folder) as self.bank:
                    self.dare(step)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def dare(self, step: Step) -> None:
        if step.verb == "sync":
            for name in self.dice.sample(self.added(), k=min(1, len(self.added()))):
                self.sync_with(name, step)
        else:
            self.step({step.verb: 1})

    def sync_with(self, name: str, step: Step) -> None:
        with state.opened(self.bank.root) as kept:
            assert kept is not None
            settings = kept.remote(name)
            remote: Any = remotes.opened(settings.url)
            if step.fate == "cut":
                remote = Cut(remote, step.at, after=step.after)
            with closing(remote), suppress(Unreachable):
                engine.run(self.bank, kept, settings, remote, deletions=True)

    # -- verbs

    def add(self) -> None:
        lane, text = self.dice.choice(self.lanes), self.text()
        fields: dict[str, str] = {}
        if lane == "topics":  # few files, so that entries are archived
            fields = {"topic": "area", "subtopic": f"part{self.dice.randrange(1 + len(self.lanes) // 2)}"}
        if lane == "layers":
            fields = {"project": f"project{self.count}", "file_type": "common_patterns"}
        title = f"Title {self.number} {self.count}" if lane in ("notes", "topics", "records") else None
        if lane == "notes" and self.dice.random() < 0.25:  # a name that others take as well, or that is free again
            title = f"Plan {self.dice.randrange(3)}"
        self.do(f"add {lane}", lambda: self.bank.add(text, lane=lane, title=title, **fields), new=True)

    def decide(self) -> None:
        """Let one of the versions stay that something is in."""
        found = [memory for memory in self.bank.memories() if alternatives.MARK in memory.text]
        if found:
            memory = self.dice.choice(found)
            text = alternatives.decided(memory.text, self.dice.randint(0, alternatives.most(memory.text)))
            gone = " ".join({*_marks(memory.text)} - {*_marks(text)})
            self.do("decide", lambda: self.bank.update(memory.id, text=text), old=gone)

    def edit(self) -> None:
        """Write into the file of a note, as an editor does."""
        if memory := self.any(("notes",)):
            text = self.text()

            def write() -> None:
                with open(memory.file, "a") as file:
                    file.write(f"\n{text}\n")

            self.do("edit", write, new=True, old=memory.text, kept=True)

    def rm(self) -> None:
        """Remove the file of a note, as a shell does."""
        if memory := self.any(("notes",)):
            self.do("delete by hand", lambda: os.remove(memory.file), old=memory.text)

    def undo(self) -> None:
        """Take back what was done last, or what the last sync brought."""
        changes = [change for change in undo.applied(self.bank) if change.state != "undone" and not change.undoes]
        only_syncs = self.dice.random() < 0.3
        changes = [each for each in changes if self._changed(each.id) and (each.what == written.SYNC or not only_syncs)]
        if changes:
            id = changes[0].id
            self.do("restore by undo", lambda: self.bank.undo(id), old=" ".join(self._changed(id)))

    def _changed(self, id: str) -> set[str]:
        """The marks that came or went with a change."""
        kept = self.bank.journal
        found: set[str] = set()
        for entry in kept.entries(int(id[1:])) if kept else ():
            before, after = ((kept.text(hash) or b"").decode(errors="replace") for hash in (entry.before, entry.after))
            found |= {*_marks(before)} ^ {*_marks(after)}
        return found

    # -- remotes

    def added(self) -> list[str]:
        """The remotes that it knows of."""
        with state.opened(self.bank.root) as kept:
            return [each.name for each in kept.remotes()] if kept else []

    def join(self) -> None:
        """Add the remotes that it should have, and does not."""
        for name in set(self.remotes()) - set(self.added()):
            sync.add(
                self.bank, name, str(self.place / name), lanes=self.shares, author=f"member{self.number}"
            )  # fmt: skip

    def rejoin(self) -> None:
        """Remove a remote, and add it again."""
        for name in self.dice.sample(self.added(), k=min(1, len(self.added()))):
            sync.remove(self.bank, name)
            self.join()

    # -- what goes wrong with its machine

    def lose(self) -> None:
        """Lose what is known of remotes."""
        if self.added():
            path = state.path_of(self.bank.root)
            for file in path.parent.glob(f"{path.name}*"):
                file.unlink()
            self.say(n=self.count, verb="lose", no="lost")
            self.join()

    def backup(self) -> None:
        """Copy the bank and the home."""
        for folder in (self.folder, self.home):
            shutil.rmtree(f"{folder} then", ignore_errors=True)
            shutil.copytree(folder, f"{folder} then", symlinks=True)
        (self.place / f"lines{self.number}").write_text(str(len(self._lines())))

    def revert(self) -> None:
        """Bring back what was copied, as whoever has lost a disk. What it did since, and no remote has, is lost."""
        if not os.path.isdir(f"{self.folder} then"):
            return
        self.bank.close()
        for folder in (self.folder, self.home):
            shutil.rmtree(folder)
            shutil.copytree(f"{folder} then", folder, symlinks=True)
        shared = {*_marks("\n".join(self.at_remotes()))}
        lines = self._lines()
        before = int((self.place / f"lines{self.number}").read_text())
        tried = [line for line in lines[before:] if line.get("said") == "try"]
        lost = {line["n"] for line in tried if line["new"] not in shared}  # or it had no new text
        left = [line for line in lines if not (line.get("said") == "done" and line["n"] in lost)]
        os.ftruncate(self.journal, 0)
        for line in left:
            self.say(**line)
        touched = sorted({mark for line in tried for mark in (*line["touched"], line["new"]) if mark})
        self.say(n=self.count, verb="restore by revert", touched=touched, kept=True, new="", said="try")
        self.deleted.clear()

    def _lines(self) -> list[Any]:
        return [json.loads(line) for line in (self.place / f"{self.number}.jsonl").read_bytes().splitlines()]

    def at_remotes(self) -> Iterator[str]:
        """Everything that its remotes have."""
        for name in self.remotes():
            with closing(remotes.opened(str(self.place / name))) as remote:
                entries = [entry for page, _ in remote.changes("") for entry in page if not entry.deleted]
                found = [remote.get(entry.path, entry.scope, 1 << 30) for entry in entries]
                yield from (each[1].decode(errors="replace") for each in found if each)


def _marks(text: str) -> list[str]:
    return [match[0] for match in MARK.finditer(text)]


def _die_at(at: int, *, after: bool) -> None:
    """Let this process end at its nth write, before it or after it."""
    left = [at]

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*words: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and not after:
                os._exit(9)
            result = call(*words, **named)
            if left[0] <= 0:
                os._exit(9)
            return result

        return called

    for owner, name in WRITES:
        setattr(owner, name, dying(getattr(owner, name)))
