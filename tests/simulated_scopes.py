"""Members of simulate_sync.py who may read some scopes each: what they do, and what is expected of the walls between.

Every member has some of three scopes, in an order of its own, and the first member all of them. They add notes to one
of their scopes, or to none, and give notes another one. In the end each member has exactly what is in its scopes at the
remotes, byte by byte, and on its disk is nothing that was never in one of them.
"""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memlane.care import sync
from memlane.care.sync import state, travel
from memlane.exchange import remotes
from simulate_sync import Plan, Run, Simulated
from torture_sync import check_marks, contents
from torturing_sync import MARK

SCOPES = ("red", "blue", "green")
VERBS = {
    "add": 26, "update": 10, "append": 12, "rescope": 14, "delete": 5, "rename": 4, "forget": 4, "restore": 2,
    "sync": 30,
}  # fmt: skip


def scoped(given: Plan, seed: int) -> Plan:
    """The same run with scopes: the seed decides who has which."""
    dice = random.Random(f"scopes {seed}")
    members = len(given.uses)
    some = [tuple(dice.sample(SCOPES, dice.choice((1, 1, 2, 2, 3)))) for _ in range(members - 1)]
    uses = (
        ("a", *["a"] * (members - 1))
        if dice.random() < 0.7
        else ("a b", *dice.choices(("a", "b", "a b"), k=members - 1))
    )
    verbs = {"delete": 15, "restore": 10, "forget": 12} if dice.random() < 0.3 else {}
    names, weights = zip(*(VERBS | verbs).items(), strict=True)
    steps = [
        step._replace(verb=dice.choices(names, weights)[0]) if step.verb != "join" else step for step in given.steps
    ]
    steps = [step._replace(fate="" if step.verb != "sync" and step.fate == "cut" else step.fate) for step in steps]
    scopes = (tuple(dice.sample(SCOPES, 3)), *some)
    return given._replace(uses=tuple(uses), lanes=("notes",), shares=((),) * members, steps=tuple(steps), scopes=scopes)


class Recording:
    """A remote that notes which marks were ever put into which scope, and what was put into a wrong one."""

    def __init__(self, remote: Any, path: Path, scopes: Sequence[str]) -> None:
        self.remote, self.path, self.scopes = remote, path, scopes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.remote, name)

    def put(self, path: str, data: bytes, expected: str | None, *, scope: str, **said: str) -> str:
        self.note(path, data, scope)
        return str(self.remote.put(path, data, expected, scope=scope, **said))

    def put_many(self, new: Sequence[remotes.New], *, author: str) -> Iterator[tuple[remotes.New, str]]:
        for one in new:
            self.note(one.path, one.data, one.scope)
        yield from self.remote.put_many(new, author=author)

    def note(self, path: str, data: bytes, scope: str) -> None:
        named = travel.scope_in(data)
        wrong = path if path.endswith(".md") and named in self.scopes and named != scope else ""
        line = {"scope": scope, "marks": sorted(_marks(data)), "wrong": wrong}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


class Scoped(Simulated):
    """A member with scopes."""

    scopes: tuple[str, ...] = ()

    def add(self) -> None:
        text, scope = self.text(), self.dice.choice((*self.scopes, None))
        title = f"Title {self.number} {self.count}"
        self.do("add notes", lambda: self.bank.add(text, title=title, scope=scope), new=True)

    def rescope(self) -> None:
        """Give a note another scope."""
        if memory := self.any(("notes",)):
            scope = self.dice.choice(self.scopes)
            self.do("rescope", lambda: self.bank.update(memory.id, scope=scope), old=memory.text, kept=True)

    def join(self) -> None:
        for name in set(self.remotes()) - set(self.added()):
            url, author = str(self.place / name), f"member{self.number}"
            sync.add(self.bank, name, url, scopes=self.scopes, author=author)


class ScopedRun(Run):
    kind = Scoped

    def begin(self) -> list[Simulated]:
        made = remotes.opened

        def opened(url: str, **more: Any) -> Any:
            number = int(os.environ["HOME"].rpartition("home")[2])
            return Recording(made(url, **more), self.place / "puts", self.plan.scopes[number])

        remotes.opened = opened
        return super().begin()

    def check(self, everybody: Sequence[Simulated]) -> None:
        puts = [json.loads(line) for line in (self.place / "puts").read_text().splitlines()]
        self.figures.leaked += [f"{put['wrong']} was put into {put['scope']}" for put in puts if put["wrong"]]
        tried: dict[int, set[str]] = {}
        union: set[str] = set()
        for member in everybody:
            assert isinstance(member, Scoped)
            there = self.at_remotes(member)
            here = {name: data for name, data in contents(member.folder).items() if name not in travel.SIDE}
            for name in sorted(here.keys() | there.keys()):
                if here.get(name) not in there.get(name, [None]):
                    has = f"{'here' if name in here else 'not here'}, {'there' if name in there else 'not there'}"
                    self.figures.differing.append(f"{name} of member {member.number} with {member.scopes}: {has}")
            union |= _marks(b"\n".join(here.values()))
            may = {mark for put in puts if put["scope"] in member.scopes for mark in put["marks"]}
            tried[member.number] = _marks(b"\n".join(_disk(member))) - may
            own = f"mark{member.number}z"
            self.figures.leaked += [
                f"{mark} is with member {member.number}, who has {member.scopes}"
                for mark in sorted(tried[member.number]) if not mark.startswith(own)
            ]  # fmt: skip
        check_marks(self, [union], [union], [union])  # type: ignore[arg-type]

    def at_remotes(self, member: Scoped) -> dict[str, list[bytes | None]]:
        """What a member should have: of a name that is in several of its scopes, one of them, and the other is held."""
        found: dict[str, list[bytes | None]] = {}
        for name in member.remotes():
            with closing(remotes.opened(str(self.place / name))) as remote:
                entries = [entry for page, _ in remote.changes("") for entry in page if not entry.deleted]
                for entry in entries:
                    if entry.scope in member.scopes and entry.path.endswith(".md"):
                        got = remote.get(entry.path, entry.scope, 1 << 30)
                        found.setdefault(entry.path, []).append(got[1] if got else None)
        return found


def _disk(member: Scoped) -> Iterator[bytes]:
    """All that is on the disk of a member, unpacked."""
    for folder in (member.folder, member.home):
        yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    os.environ["HOME"] = str(member.home)
    with state.opened(member.folder / ".memories") as kept:
        if kept is not None:
            for (base,) in kept.db.execute("SELECT base FROM files WHERE base IS NOT NULL"):
                yield zlib.decompress(base)


def _marks(data: bytes) -> set[str]:
    return {match[0] for match in MARK.finditer(data.decode(errors="replace"))}
