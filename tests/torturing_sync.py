"""One of the members of torture_sync.py: random verbs on a bank of its own, and syncs with the remotes that it has.

    python torturing_sync.py work PLACE NUMBER GENERATION SEED     until it is killed, or the file `stop` is there
    python torturing_sync.py settle PLACE NUMBER                   sync once with each remote; prints what that did
    python torturing_sync.py tell PLACE NUMBER                     print the marks of all memories, and damage

It writes into its journal what it is about to do, and then that it is done. Every text has a mark of its own, so that a
text which is lost, or comes back, is found by it. The clock of a member is wrong by days.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from memlane.core import dates

MARK = re.compile(r"mark(\d+)z(\d+)z")
SHARED = ("shared", "common", "board")  # notes that all members write to
VERBS = {
    "add": 26, "update": 10, "append": 12, "share": 8, "delete": 5, "rename": 4, "forget": 3, "restore": 1, "sync": 24,
}  # fmt: skip
LANES = ("notes", "notes", "vault", "topics", "records", "layers")


def skewed(number: int) -> None:
    """Let this process live in another time. What asks for the time is imported after this."""
    now, by = dates.utc_now, timedelta(days=(0, 3, -40, 400, -1, 0.1, -700, 30)[number % 8])
    dates.utc_now = lambda: now() + by


class Member:
    def __init__(self, place: Path, number: int, seed: str) -> None:
        from memlane import Bank

        self.number, self.place = number, place
        self.bank = Bank.open(place / f"member{number}")
        self.dice = random.Random(seed)
        self.deleted: list[Any] = []
        self.journal = os.open(place / f"{number}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        lines = map(json.loads, (place / f"{number}.jsonl").read_bytes().splitlines())
        self.count = max((line["n"] for line in lines), default=0)

    def say(self, **what: Any) -> None:
        os.write(self.journal, json.dumps(what).encode() + b"\n")

    def step(self, verbs: dict[str, int]) -> None:
        from memlane import MemlaneError

        self.count += 1
        verb = self.dice.choices(list(verbs), list(verbs.values()))[0]
        try:
            getattr(self, verb)()
        except MemlaneError as error:
            self.say(n=self.count, no=error.code, verb=verb, why=str(error)[:300])

    def text(self) -> str:
        from samples import words

        return f"mark{self.number}z{self.count}z {words((self.number, self.count), 8)}."

    def do(self, verb: str, call: Any, *, new: bool = False, old: str = "", kept: bool = False) -> Any:
        """Make a call that adds a mark (`new`), and touches the text `old`, whose marks stay in it where `kept`."""
        touched = sorted({match[0] for match in MARK.finditer(old)})
        what = {"n": self.count, "verb": verb, "touched": touched, "kept": kept}
        self.say(**what, new=f"mark{self.number}z{self.count}z" if new else "", said="try")
        result = call()
        self.say(n=self.count, said="done")
        return result

    def any(self, lanes: tuple[str, ...] = ()) -> Any:
        """Some memory of somebody, not one of those that all write to."""
        from memlane import Memory
        from memlane.lanes import scan

        found = [
            item for lane in (lanes or ("notes", "vault", "topics", "records", "layers"))
            for item in scan(self.bank.lane(lane)) if isinstance(item, Memory) and item.native_id not in SHARED
        ]  # fmt: skip
        return self.dice.choice(found) if found else None

    # -- verbs

    def add(self) -> None:
        lane, text = self.dice.choice(LANES), self.text()
        fields: dict[str, str] = {}
        if lane == "topics":
            fields = {"topic": "area", "subtopic": f"part{self.count % 3}"}
        if lane == "layers":
            fields = {"project": f"project{self.number}n{self.count}", "file_type": "common_patterns"}
        title = f"Title {self.number} {self.count}" if lane in ("notes", "topics", "records") else None
        self.do(f"add {lane}", lambda: self.bank.add(text, lane=lane, title=title, **fields), new=True)

    def share(self) -> None:
        """Add to what all members add to."""
        name, text = self.dice.choice(SHARED), self.text()
        self.do("share", lambda: self.bank.append(f"notes:{name}", text), new=True)

    def append(self) -> None:
        if memory := self.any(("notes", "layers")):
            text = self.text()
            self.do("append", lambda: self.bank.append(memory.id, text), new=True, old=memory.text, kept=True)

    def update(self) -> None:
        if memory := self.any():
            text = self.text()
            verb = f"update {memory.lane}"
            self.do(verb, lambda: self.bank.update(memory.id, text=text), new=True, old=memory.text)

    def delete(self) -> None:
        if memory := self.any():
            self.do(f"delete {memory.lane}", lambda: self.bank.delete(memory.id), old=memory.text)
            self.deleted.append(memory)

    def restore(self) -> None:
        if self.deleted:
            memory = self.deleted.pop()
            self.do("restore", lambda: self.bank.restore(memory.id), old=memory.text)

    def rename(self) -> None:
        if memory := self.any(("notes",)):
            new = f"renamed/n{self.number}x{self.count}"
            self.do("rename", lambda: self.bank.move(memory.id, new), old=memory.text, kept=True)

    def forget(self) -> None:
        """Forget a memory, and the others that say something of it: else those would stay."""
        if memory := self.any():
            marks = set(MARK.findall(memory.text))
            others = [each for each in self.bank.memories() if marks.intersection(MARK.findall(each.text))]
            gone = {each.id: each.text for each in (memory, *others) if each.native_id not in SHARED}
            self.do("forget", lambda: self.bank.forget(*gone), old="\n".join(gone.values()))

    def sync(self) -> None:
        from memlane.care import sync

        self.do("sync", lambda: sync.sync(self.bank, self.dice.choice(self.remotes())))

    def remotes(self) -> list[str]:
        return (self.place / f"remotes{self.number}").read_text().split()


def marks(memories: Iterable[Any]) -> list[str]:
    return sorted({match[0] for memory in memories for match in MARK.finditer(memory.text)})


def unarchived(memories: Iterable[Any]) -> list[Any]:
    return [memory for memory in memories if memory.status != "archived"]


def main() -> None:
    what, place, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    skewed(number)
    if what == "settle":
        from memlane import Bank
        from memlane.care import sync

        with Bank.open(place / f"member{number}") as bank:
            done = [one.to_dict() for one in sync.sync(bank)]
        print(json.dumps(done))
        return
    if what == "tell":
        from memlane import Bank, Memory
        from memlane.lanes import scan

        with Bank.open(place / f"member{number}") as bank:
            items = [item for lane in dict.fromkeys(LANES) for item in scan(bank.lane(lane))]
        memories = [item for item in items if isinstance(item, Memory)]
        damage = [str(item) for item in items if not isinstance(item, Memory)]
        print(json.dumps({"marks": marks(memories), "shown": marks(unarchived(memories)), "damage": damage}))
        return
    os.nice(5)
    member = Member(place, number, f"{sys.argv[5]} {number} {sys.argv[4]}")
    away = (place / f"away{number}").exists()
    verbs = {verb: weight for verb, weight in VERBS.items() if not (away and verb == "sync")}
    while not (place / "stop").exists():
        member.step(verbs)


if __name__ == "__main__":
    main()
