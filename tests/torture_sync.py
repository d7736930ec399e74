"""Proof under fire for sync: members who share their memory through three remotes, while everything fails.

    python tests/torture_sync.py --seconds 300 [--members 8] [--seed 1] [--only folder,postgres,s3] [--keep] [--json]

Each member is a process of its own, with a bank, a home folder and a clock of its own (see torturing_sync.py). Remotes
are a folder, PostgreSQL and an object store; every member uses one or two of them, so that what one member writes
reaches another over a third. Meanwhile this program kills members, stops them for a while, cuts their connections,
restarts the database, takes the drive away, and is itself a member who means harm: it puts secrets, files that leave
the bank, huge and broken ones straight into the remotes. One member never syncs until the end.

Then all members sync until nothing moves any more. All banks must be the same, byte for byte; every acknowledged text
must be there, unless somebody touched it; no forgotten text may be anywhere, nor any secret, nor a file outside. Prints
figures, and ends with exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remote_servers import KEYS, Cluster, Line, bucket_at, object_store, program, s3_url
from torturing import secret_of
from torturing_sync import MARK, SHARED

HERE = Path(__file__).parent
CONFIG = "[vault]\nmax_active = 1000000\n"
KINDS = ("folder", "postgres", "s3")
# What each member uses. The remotes form a ring, so that everything comes back over another one.
USES = [
    uses.split() for uses in ("folder", "folder postgres", "postgres", "postgres s3", "s3", "s3 folder", "folder", "s3")
]
ACTIONS = {"kill": 12, "stop": 15, "cut": 30, "restart": 2, "unmount": 4, "harm": 30}
ENOUGH = 10  # things that were done
LONGER = 300.0  # seconds, at most, until there are so many
ROUNDS = 12  # syncs of everybody until nothing may move any more


@dataclass
class Figures:
    seconds: float = 0.0
    operations: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    chaos: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    files: int = 0
    checked: int = 0
    differing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        return bool(self.differing or self.lost or self.back or self.leaked or self.broken)


# -- the place


class Team:
    """The members and their remotes."""

    def __init__(self, place: Path, members: int, kinds: tuple[str, ...], seed: int, figures: Figures) -> None:
        self.place, self.members, self.kinds, self.seed, self.figures = place, members, kinds, seed, figures
        self.dice = random.Random(f"team {seed}")
        self.urls: dict[str, str] = {}  # straight to each remote
        self.lines: dict[str, dict[int, Line]] = {}
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.stopped: dict[int, float] = {}
        self.generation = 0
        self.cluster: Cluster | None = None
        self.harmed = 0

    @contextmanager
    def remotes(self) -> Iterator[None]:
        with ExitStack() as ends:
            if "folder" in self.kinds:
                (self.place / "drive").mkdir()
                self.urls["folder"] = str(self.place / "drive")
            if "postgres" in self.kinds:
                folder = Path(tempfile.mkdtemp(prefix="memlane-pg-"))
                ends.callback(shutil.rmtree, folder, ignore_errors=True)
                self.cluster = Cluster(folder)
                ends.callback(self.cluster.stop)
                self.urls["postgres"] = self.cluster.url()
                self._connect("postgres", self.cluster.port, ends)
            if "s3" in self.kinds:
                endpoint = ends.enter_context(object_store())
                bucket_at(endpoint, "memory").close()
                self.urls["s3"] = s3_url(endpoint, "memory")
                self._connect("s3", int(endpoint.rpartition(":")[2]), ends)
            yield

    def _connect(self, kind: str, port: int, ends: ExitStack) -> None:
        """A line of its own for each member."""
        self.lines[kind] = {number: Line(port) for number in range(self.members)}
        for line in self.lines[kind].values():
            ends.callback(line.close)

    def url(self, kind: str, number: int) -> str:
        if kind == "postgres" and self.cluster:
            return self.cluster.url(port=self.lines[kind][number].port)
        if kind == "s3":
            return s3_url(f"http://127.0.0.1:{self.lines[kind][number].port}", "memory")
        return self.urls[kind]

    def environment(self, number: int) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLANE_", "XDG_", "PG"))}
        return kept | KEYS | {"HOME": str(self.place / f"home{number}")}

    def make(self, number: int) -> None:
        """A member with its bank, made and joined in a process of its own."""
        folder = self.place / f"member{number}"
        folder.mkdir()
        (self.place / f"home{number}").mkdir()
        (folder / "memlane.toml").write_text(CONFIG)
        uses = [kind for kind in USES[number % len(USES)] if kind in self.kinds] or [self.kinds[0]]
        (self.place / f"remotes{number}").write_text(" ".join(uses))
        code = f"""
import sys
from memlane import Bank
from memlane.care import sync
from memlane.config import trust, user_state
from memlane.exchange import sharing
from pathlib import Path
trust.record(user_state(), Path({str(folder / "memlane.toml")!r}))
bank = Bank.init({str(folder)!r})
sharing.share(bank, ["records"])
for name, url in {[(kind, self.url(kind, number)) for kind in uses]!r}:
    sync.add(bank, name, url, author="member{number}")
if {number == 0!r}:
    for name in {SHARED!r}:
        bank.add("A page that all members write to.", title=name)
sync.sync(bank)
"""
        done = subprocess.run(
            [sys.executable, "-c", code], env=self.environment(number), capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr)

    # -- members at work

    def start(self, number: int) -> None:
        self.generation += 1
        words = ["work", str(self.place), str(number), str(self.generation), str(self.seed)]
        with open(self.place / f"{number}.err", "ab") as errors:
            self.running[number] = subprocess.Popen(
                [sys.executable, str(HERE / "torturing_sync.py"), *words], env=self.environment(number), stderr=errors
            )

    def end(self, number: int, with_signal: int) -> None:
        one = self.running.pop(number)
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGCONT)
            if with_signal:
                os.kill(one.pid, with_signal)
        try:
            status = one.wait(timeout=120)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
            self.figures.broken.append(f"member {number} does not end")
            return
        if status not in (0, -signal.SIGKILL):
            self.figures.broken.append(f"member {number} ended with {status}: {self.last_words(number)}")

    def last_words(self, number: int) -> str:
        return (self.place / f"{number}.err").read_text(errors="replace")[-1500:]

    # -- what happens to them

    def act(self) -> None:
        for number in [one for one, until in self.stopped.items() if until < time.monotonic()]:
            del self.stopped[number]
            if number in self.running:
                os.kill(self.running[number].pid, signal.SIGCONT)
        for number, one in list(self.running.items()):
            if one.poll() is not None:
                self.end(number, 0)
                self.start(number)
        what = self.dice.choices(list(ACTIONS), list(ACTIONS.values()))[0]
        if getattr(self, what)():
            self.figures.chaos[what] += 1

    def kill(self) -> bool:
        number = self.dice.choice(list(self.running))
        self.end(number, signal.SIGKILL)
        self.stopped.pop(number, None)
        self.start(number)
        return True

    def stop(self) -> bool:
        number = self.dice.choice(list(self.running))
        os.kill(self.running[number].pid, signal.SIGSTOP)
        self.stopped[number] = time.monotonic() + self.dice.uniform(0.2, 4)
        return True

    def cut(self) -> bool:
        lines = [line for each in self.lines.values() for line in each.values()]
        if lines:
            self.dice.choice(lines).cut()
        return bool(lines)

    def restart(self) -> bool:
        if self.cluster:
            self.cluster.stop()
            self.cluster.start()
        return bool(self.cluster)

    def unmount(self) -> bool:
        """Take the drive away for a moment."""
        if "folder" not in self.kinds:
            return False
        os.rename(self.place / "drive", self.place / "drive away")
        time.sleep(self.dice.uniform(0, 0.3))
        os.rename(self.place / "drive away", self.place / "drive")
        return True

    def harm(self) -> bool:
        """Put something into a remote that nobody may take."""
        from memlane import MemlaneError
        from memlane.exchange.remotes import opened

        self.harmed += 1
        number = self.harmed
        secret, broken = secret_of(99, number).encode(), b"mark98z%dz \xff\xfe\x00" % number
        line = json.dumps({"id": f"h{number}", "text": f"harm98h {secret.decode()}"}).encode() + b"\n"
        entry = b"## 2025-01-01: Harm\n**Context:** x\n**Problem:** harm98h " + secret + b"\n---\n"
        path, data = self.dice.choice(
            [
                (f"harm{number}.md", b"# Harm\n\nharm98h " + secret + b"\n"),
                (f"topics/area/harm{number}.md", b"harm98h " + secret),
                ("vault.jsonl", line),
                ("topics/area/part0.md", entry),
                (f"broken{number}.md", broken),
                (f"huge{number}.md", b"harm98h " + b"x" * 11_000_000),
                ("memlane.toml", b"harm98h = true\n"),
                ("CLAUDE.md", b"harm98h Obey.\n"),
                (".gitignore", b"harm98h\n"),
                ("indices/index.db", b"harm98h"),
                (f"Shared{number}.MD", b"harm98h"),
                ("SHARED.md", b"harm98h of another case\n"),
                (f"private/harm{number}.md", b"harm98h"),
                (f"records/harm{number}.txt", b"harm98h"),
                ("layers/harm.md", b"harm98h"),
                (f"folder{number}.md/harm.md", b"harm98h"),
                (".memlane/forgotten", b"harm98h {{{\n"),
                ("con.md", b"harm98h"),
            ]
        )
        remote = opened(self.urls[self.dice.choice(list(self.urls))])
        try:
            found = remote.get(path, "shared", 10**8)
            before = found[1] if found and path in ("vault.jsonl", "topics/area/part0.md") else b""
            if found is None or found[1] == before:
                remote.put(path, before + data, found[0].version if found else None, scope="shared", author="member0")
        except MemlaneError:
            return False  # somebody else was quicker
        finally:
            remote.close()
        return True


# -- the end


def asked(team: Team, what: str) -> list[Any]:
    """What each member answers, all at once; nothing of those who fail."""
    members = [
        subprocess.Popen(
            [sys.executable, str(HERE / "torturing_sync.py"), what, str(team.place), str(number)],
            env=team.environment(number), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(team.members)
    ]  # fmt: skip
    answers = []
    for number, member in enumerate(members):
        told, errors = member.communicate()
        if member.returncode:
            team.figures.broken.append(f"member {number} cannot {what}: {errors[-1500:]}")
        answers.append(None if member.returncode else json.loads(told))
    return answers


def settle(team: Team) -> None:
    """Let everybody sync until nothing moves any more."""
    for round in range(1, ROUNDS + 1):
        done = asked(team, "settle")
        if None in done:
            return
        counts = ("sent", "received", "removed", "merged", "forgotten")
        moved = sum(one[name] for each in done for one in each for name in counts)
        team.figures.rounds = round
        print(f"round {round}: {moved} files moved", file=sys.stderr)
        if not moved:
            return
    team.figures.broken.append(f"files still move after {ROUNDS} rounds")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a bank that the others have, too."""
    root = folder / ".memories"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and (path.stat().st_size or path.suffix != ".jsonl")  # a log without a line is none
        and not any(part.startswith((".", "indices", "private")) for part in path.relative_to(root).parts)
    }


def check(team: Team) -> None:
    figures = team.figures
    banks = [contents(team.place / f"member{number}") for number in range(team.members)]
    figures.files = len(banks[0])
    for number, bank in enumerate(banks):
        for name in sorted(bank.keys() | banks[0].keys()):
            if bank.get(name) != banks[0].get(name):
                figures.differing.append(f"{name} of member {number} and of member 0")
    memories, shown, everywhere = [], [], []
    for number, (bank, told) in enumerate(zip(banks, asked(team, "tell"), strict=True)):
        told = told or {"marks": [], "shown": [], "damage": []}
        memories.append(set(told["marks"]))
        shown.append(set(told["shown"]))
        figures.broken += [f"damage at member {number}: {one}" for one in told["damage"]]
        whole = b"\n".join(bank.values()).decode(errors="replace")
        everywhere.append({match[0] for match in MARK.finditer(whole)})
    check_marks(team, memories, shown, everywhere)
    for number, bank in enumerate(banks):
        figures.leaked += [f"{name} of member {number}" for name, data in bank.items() if b"harm98h" in data]
        outside = {path.name for path in (team.place / f"member{number}").iterdir()} - {".memories", "memlane.toml"}
        figures.leaked += [f"{name} beside the bank of member {number}" for name in sorted(outside)]
        if "harm98h" in (team.place / f"member{number}/memlane.toml").read_text():
            figures.leaked.append(f"the configuration of member {number}")
    for number in range(team.members):
        if "Traceback" in team.last_words(number):
            figures.broken.append(f"member {number}: {team.last_words(number)}")


def check_marks(team: Team, memories: list[set[str]], shown: list[set[str]], everywhere: list[set[str]]) -> None:
    """Compare the marks of the memories, of those that are not archived, and of all files, with the journals."""
    tried = read_journals(team)
    replaced = {mark for line in tried if not line["kept"] for mark in line["touched"]}
    forgotten = kin({mark for line in tried if line["verb"] == "forget" for mark in line["touched"]}, tried)
    restored = kin({mark for line in tried if line["verb"].startswith("restore") for mark in line["touched"]}, tried)
    for line in tried:
        if not line.get("done"):
            continue
        new, verb = line["new"], line["verb"].split()[0]
        if new and new not in replaced | forgotten:
            team.figures.checked += 1
            # of a record of the vault that two have changed the later text counts, and the other stays in the file
            seen = everywhere if line["verb"] == "update vault" else memories
            if missing := [number for number, marks in enumerate(seen) if new not in marks]:
                team.figures.lost.append(f"{new} ({line['verb']}) is not with members {missing}")
        for mark in line["touched"] if verb in ("forget", "delete", "update") else ():
            alone = mark not in restored and touched_by(kin({mark}, tried), tried) == {line["by"]}
            if verb == "forget" or alone:
                team.figures.checked += 1
                # what was archived while somebody else changed it stays in the archive
                seen = everywhere if verb == "forget" else shown if verb == "update" else memories
                if there := [number for number, marks in enumerate(seen) if mark in marks]:
                    team.figures.back.append(f"{mark} ({line['verb']}) is with members {there}")


def touched_by(marks: set[str], tried: list[dict[str, Any]]) -> set[int]:
    return {line["by"] for line in tried if marks.intersection(line["touched"])}


def kin(marks: set[str], tried: list[dict[str, Any]]) -> set[str]:
    """Marks, and all that were ever in one memory with them: what others made of a memory is forgotten with it."""
    found, before = set(marks), set[str]()
    while found != before:
        before = set(found)
        for line in tried:
            family = {*line["touched"], *filter(None, (line["new"],))}
            if found & family:
                found |= family
    return found


def read_journals(team: Team) -> list[dict[str, Any]]:
    """What members tried, `done` where they said so."""
    tried: list[dict[str, Any]] = []
    for number in range(team.members):
        mine: dict[int, dict[str, Any]] = {}
        for line in map(json.loads, (team.place / f"{number}.jsonl").read_bytes().splitlines()):
            if line.get("said") == "try":
                mine[line["n"]] = line | {"by": number}
                tried.append(mine[line["n"]])
            elif line.get("said") == "done":
                mine[line["n"]]["done"] = True
                team.figures.operations[mine[line["n"]]["verb"]] += 1
            else:
                team.figures.refusals[f"{line['verb']} {line['no']}"] += 1
                if line["no"] in ("error", "storage"):
                    team.figures.broken.append(f"member {number}: {line['verb']}: {line['why']}")
    return tried


def has_begun(team: Team) -> bool:
    """Whether something has happened to the members, and they have done something: on a busy machine, later."""
    journals = [team.place / f"{number}.jsonl" for number in range(team.members)]
    done = sum(path.read_bytes().count(b'"done"') for path in journals if path.exists())
    return done >= ENOUGH and team.figures.chaos.total() > 0


def run(place: Path, seconds: float, members: int, kinds: tuple[str, ...], seed: int) -> Figures:
    figures = Figures()
    begun = time.monotonic()
    team = Team(place, members, kinds, seed, figures)
    os.environ.update(KEYS)
    with team.remotes():
        team.make(0)  # whoever comes first makes what all write to
        with ThreadPoolExecutor() as pool:
            list(pool.map(team.make, range(1, members)))
        if members > 2:
            (place / f"away{members - 1}").touch()
        try:
            for number in range(members):
                team.start(number)
            end = time.monotonic() + seconds
            while time.monotonic() < end or (time.monotonic() < end + LONGER and not has_begun(team)):
                team.act()
                time.sleep(team.dice.uniform(0, 4 / members))
            (place / "stop").touch()
            for number in list(team.running):
                team.end(number, 0)
        finally:
            for number in list(team.running):
                team.end(number, signal.SIGKILL)
        settle(team)
        check(team)
    figures.seconds = round(time.monotonic() - begun, 1)
    return figures


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--seconds", type=float, default=60)
    words.add_argument("--members", type=int, default=8)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", default=",".join(KINDS))
    words.add_argument("--keep", action="store_true", help="leave the folder, and say where it is")
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nobody is left running
    kinds = tuple(kind for kind in given.only.split(",") if kind != "postgres" or program("initdb"))
    place = Path(tempfile.mkdtemp(prefix="memlane-sync-"))
    place.chmod(0o755)
    try:
        figures = run(place, given.seconds, given.members, kinds, given.seed)
    finally:
        if given.keep:
            print(place, file=sys.stderr)
        else:
            shutil.rmtree(place, ignore_errors=True)
    told = vars(figures)
    if given.json:
        print(json.dumps(told))
    else:
        for name, value in told.items():
            print(f"{name:12}", dict(value) if isinstance(value, Counter) else value)
    return 1 if figures.bad else 0


if __name__ == "__main__":
    threading.excepthook = lambda _: None  # lines that were cut say so
    sys.exit(main())
