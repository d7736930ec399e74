"""What members of simulate_sync.py say of memories: what took the place of what, what the code was that a memory names,
and which secrets their gates let pass. In the end everybody has to know what was said, unless somebody else did
something to the same memory, or said something else of the same place without knowing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from memlane import Bank
from memlane.config import allowing
from memlane.disk import anchors
from memlane.disk.replaced import FILE, Replaced
from memlane.gate import secrets as rules
from memlane.gate.fingerprints import fingerprint
from torture_sync import kin
from torturing import secret_of
from torturing_sync import MARK, Member

CODE = re.compile(r"src/part\d\.py")
SPOILING = ("rename", "forget", "delete", "restore")  # what was said of a memory may be gone with these


class Claiming(Member):
    """A member whose bank is open for the length of a step, and who says things of memories."""

    folder: Path
    lanes: tuple[str, ...]

    def claim(self, kind: str, text: str, **what: Any) -> None:
        """Note what was said, once it is done, of the memories of these texts."""
        line = {"kind": kind, "n": self.count, "by": self.number, "marks": sorted({*_marks(text)}), **what}
        with open(self.place / f"claims{self.number}.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def replace(self) -> None:
        """Let a new memory take the place of one."""
        if memory := self.any(self.lanes):
            text = self.text()
            title = f"Title {self.number} {self.count}" if memory.lane in ("notes", "topics", "records") else None
            new = self.do("replace", lambda: self.bank.add(text, title=title, replaces=memory.id), new=True)
            self.claim("replaced", f"{memory.text} {text}", old=memory.id, new=new.id)

    # -- what the code was

    def speak(self) -> None:
        """Write a memory that names a file of the project."""
        path = self._code()
        text, lane = f"{self.text()} See {path}.", self._lane()
        memory = self.do(f"add {lane}", lambda: self._add(text, lane), new=True)
        self._anchored(memory.id, path, "", text)

    def _lane(self) -> str:
        return self.dice.choice([lane for lane in self.lanes if lane in ("notes", "topics", "vault")] or ["notes"])

    def _add(self, text: str, lane: str) -> Any:
        fields = {"topic": "area", "subtopic": "part0"} if lane == "topics" else {}
        title = f"Title {self.number} {self.count}" if lane != "vault" else None
        return self.bank.add(text, lane=lane, title=title, **fields)

    def renew(self) -> None:
        """Write such a memory anew, after the file was changed."""
        if found := self._speaking():
            memory, path = found
            self._code(path)
            text, before = f"{self.text()} See {path}.", self._anchor(memory.id, path)
            self.do(f"update {memory.lane}", lambda: self.bank.update(memory.id, text=text), new=True, old=memory.text)
            self._anchored(memory.id, path, before.at if before else "", f"{memory.text} {text}")

    def accept(self) -> None:
        """Say that a memory is right about the file as it is now."""
        if found := self._speaking():
            memory, path = found
            self._code(path)
            before = self._anchor(memory.id, path)
            self.do("accept", lambda: self.bank.accept(memory.id))
            self._anchored(memory.id, path, before.at if before else "", memory.text)

    def append(self) -> None:
        """Add to a memory. Of one that names a file, that says what the file is now, for whoever has the file."""
        if memory := self.any(("notes", "layers")):
            text, paths = self.text(), CODE.findall(memory.text)[:1]
            before = [anchor.at if (anchor := self._anchor(memory.id, path)) else "" for path in paths]
            self.do("append", lambda: self.bank.append(memory.id, text), new=True, old=memory.text, kept=True)
            for path, at in zip(paths, before, strict=True):
                now = self._anchor(memory.id, path)
                if now and now.at != at:
                    self._anchored(memory.id, path, at, f"{memory.text} {text}")

    def _code(self, path: str = "") -> str:
        """Write a file of the project; its path."""
        path = path or f"src/part{self.dice.randrange(3)}.py"
        (self.folder / "src").mkdir(exist_ok=True)
        (self.folder / path).write_text(f"def go():\n    return {self.count}\n")
        return path

    def _speaking(self) -> tuple[Any, str] | None:
        found = [memory for memory in self.bank.memories() if CODE.search(memory.text)]
        if not found:
            return None
        memory = self.dice.choice(found)
        return memory, CODE.findall(memory.text)[0]

    def _anchor(self, id: str, path: str) -> anchors.Anchor | None:
        return anchor_of(Path(self.bank.root), id, path)

    def _anchored(self, id: str, path: str, before: str, text: str) -> None:
        now = self._anchor(id, path)
        if now and now.at != before:
            self.claim("anchored", text, id=id, path=path, before=before, at=now.at, blob=now.blob)
        else:
            self.claim("anchored", text, id=id, path=path, before=before, at="not written", blob="")

    # -- what the gate lets pass

    def allow(self) -> None:
        """Let a secret pass that somebody else has stored, or one of its own, and store that."""
        known = [number for number in secrets_in(self.place) if not self.passes(number)]
        if known and self.dice.random() < 0.6:
            self.let_pass(self.dice.choice(known))
            return
        text = f"{self.text()} The token is {_secret(self.count)} there."
        self.let_pass(self.count)
        with Bank.open(self.folder) as self.bank:
            with open(self.place / "secrets", "a") as file:
                file.write(f"{self.count}\n")
            lane = self._lane()
            self.do(f"add {lane}", lambda: self._add(text, lane), new=True)

    def let_pass(self, number: int) -> None:
        if not self.passes(number):
            value = _secret(number)
            (finding,) = rules.scan(f"The token is {value} there.")
            name = fingerprint(finding.rule, value, self.bank.guard.salt)
            allowing.allow(self.bank.config, [name], "It is only simulated.")

    def passes(self, number: int) -> bool:
        return not [*rules.scan(f"The token is {_secret(number)} there.", allow=self.bank.guard.allow)]


def _secret(number: int) -> str:
    return secret_of(7, number)


def secrets_in(place: Path) -> list[int]:
    """The numbers of those that were stored, or nearly."""
    path = place / "secrets"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def _marks(text: str) -> list[str]:
    return [match[0] for match in MARK.finditer(text)]


def anchor_of(root: Path, id: str, path: str) -> anchors.Anchor | None:
    return anchors.load(os.fspath(root / anchors.NAME), id)[0].get(id, {}).get((path, ""))


# -- the end


def leaked_to(member: Claiming, bank: dict[str, bytes]) -> list[str]:
    """The secrets that are with a member, whose bank is open, and that it has not let pass."""
    whole = b"\n".join(bank.values())
    found = [number for number in secrets_in(member.place) if _secret(number).encode() in whole]
    return [f"the secret of step {each} with member {member.number}" for each in found if not member.passes(each)]


def missing(place: Path, tried: list[dict[str, Any]], roots: Sequence[Path]) -> list[str]:
    """What was said, and is not so with everybody."""
    spoilt = kin({mark for line in tried if line["verb"].startswith(SPOILING) for mark in line["touched"]}, tried)
    paths = sorted(place.glob("claims*.jsonl"))
    claims = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    claims = sorted((each for each in claims if not spoilt.intersection(each["marks"])), key=lambda each: each["n"])
    found = []
    for number, root in enumerate(roots):
        links = Replaced(root / FILE).links()
        for claim in claims:
            if claim["kind"] == "replaced" and claim["new"] not in links.get(claim["old"], ()):
                found.append(f"{claim['new']} for {claim['old']} (replace) is not with member {number}")
        places: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for claim in claims:
            if claim["kind"] == "anchored":
                places.setdefault((claim["id"], claim["path"]), []).append(claim)
        for (id, path), said in places.items():
            knew = all(late["before"] == early["at"] for early, late in pairwise(said))
            now = anchor_of(root, id, path)
            if knew and not said[0]["before"] and (now is None or now.blob != said[-1]["blob"]):
                found.append(f"{path} of {id} (step {said[-1]['n']}) is not anchored so with member {number}")
    return found
