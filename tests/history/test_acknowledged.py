"""Random work on every lane, mixed with what takes files away: nothing that was acknowledged is lost, and undoing
everything in reverse gives the bank of the start, byte for byte."""

from __future__ import annotations

import os
import random
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, MemlaneError
from repositories import git, save
from samples import tries

FIELDS = {
    "notes": {"title": "Note {n}"},
    "vault": {},
    "topics": {"title": "Entry {n}", "topic": "ops", "subtopic": "release"},
    "records": {"title": "Said {n}"},
    "layers": {"project": "p{n}", "file_type": "common_patterns"},
}
WORDS = "amber birch cedar delta ember fjord grove haven islet jetty knoll larch maple north ocean prism".split()


def said(dice: random.Random, number: int) -> str:
    """A text unlike the others."""
    return " ".join([f"mark{number}x", *(f"{dice.choice(WORDS)}{dice.randrange(100)}" for _ in range(12))])


def state(bank: Bank) -> dict[str, bytes]:
    return {name: data for name, data in tree(bank.root).items() if not name.startswith("indices/")}


class Work:
    """Verbs at random. `stored` has every text that a call has acknowledged, by the id it was stored under."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = 0
        self.stored: list[tuple[str, str]] = []
        self.live: list[str] = []
        self.deleted: list[str] = []

    def step(self, bank: Bank) -> None:
        self.number += 1
        verb = self.dice.choice(("add", "add", "add", "update", "append", "rm", "restore", "compact"))
        with suppress(MemlaneError):  # refused: nothing was acknowledged
            if verb == "add" or not self.live:
                lane = self.dice.choice(list(FIELDS))
                text = said(self.dice, self.number)
                fields = {name: value.format(n=self.number) for name, value in FIELDS[lane].items()}
                self.live.append(bank.add(text, lane=lane, **fields).id)
                self.stored.append((self.live[-1], text.split()[0]))
            elif verb in ("update", "append"):
                at = self.dice.randrange(len(self.live))
                text = said(self.dice, self.number)
                done = bank.update(self.live[at], text=text) if verb == "update" else bank.append(self.live[at], text)
                self.live[at] = done.id
                self.stored.append((done.id, text.split()[0]))
            elif verb == "rm":
                id = self.dice.choice(self.live)
                bank.delete(id)
                self.live.remove(id)
                self.deleted.append(id)
            elif verb == "restore" and self.deleted:
                id = self.deleted.pop()
                self.live.append(bank.restore(id).id)
            elif verb == "compact":
                bank.vault.compact()

    def killed(self, bank: Bank) -> None:
        """Somebody else works here, and is killed."""
        child = os.fork()
        if child == 0:
            try:
                other = Work(self.number)
                other.number = 1000 + self.number * 10
                signal.setitimer(signal.ITIMER_REAL, self.dice.random() * 0.05)
                signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
                with Bank.open(bank.root.parent) as own:
                    for _ in range(50):
                        other.step(own)
            finally:
                os._exit(1)
        os.waitpid(child, 0)


@pytest.mark.parametrize("seed", range(tries(2, 4)))
def test_undoing_everything_in_reverse_gives_the_start(tmp_path: Path, seed: int) -> None:
    with Bank.init(tmp_path) as bank:
        bank.add("There from the start.", title="Start")
        first = state(bank)
        begun = len(bank.journal.changes())
        work = Work(seed)
        for _ in range(25):
            work.step(bank)
        for _ in range(len(bank.journal.changes()) - begun):
            undone = bank.undo()
            assert undone.conflicts == ()
        assert state(bank) == first


@pytest.mark.parametrize("seed", range(tries(2, 4)))
def test_every_version_that_was_acknowledged_can_be_brought_back(repo: Path, seed: int) -> None:
    work = Work(seed + 100)
    for _ in range(5):
        with Bank.open(repo) as bank:
            for _ in range(6):
                work.step(bank)
            what = work.dice.choice(("clean", "checkout", "remove", "kill", "commit"))
            if what == "kill":
                work.killed(bank)
        if what == "clean":
            git(repo, "clean", "-fdq")
        elif what == "checkout":
            git(repo, "checkout", "-q", ".")
        elif what == "remove":
            shutil.rmtree(repo / ".memories")
        elif what == "commit":
            save(repo)
        with Bank.open(repo) as bank:
            bank.recover()
            assert [one for one in bank.lost() if not one.branch] == []
            there = {memory.id for memory in bank.memories()}
            assert {id for id in work.live if id not in there} == set()
    with Bank.open(repo) as bank:
        texts = [data for _, data in bank.journal.texts()] if bank.journal else []
        missing = [mark for _, mark in work.stored if not any(mark.encode() in data for data in texts)]
        assert missing == []
        for id, mark in work.stored[-3:]:
            if id.startswith("notes:"):
                shown = [version for version in bank.history(id) if not version.what.endswith("deleted")]
                restored = (bank.restore(id, version.version).text for version in shown)
                assert any(mark in text for text in restored)
