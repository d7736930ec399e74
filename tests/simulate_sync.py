"""Members who share their memory, simulated: the same seed makes the same run, and a failure is cut short.

    python tests/simulate_sync.py --seeds 1-200 [--steps 60] [--jobs 2] [--shrink] [--scopes]

torture_sync.py has real processes, databases and broken connections, and makes a thousand steps a minute; what fails
there cannot be run again. Here a seed decides who uses which remotes and which lanes, and every step is decided by its
seed and its number alone: which member does what (verbs of torturing_sync.py and simulated.py), with which remote it
syncs, at which call its connection breaks, and at which write it is killed (that one in a child, which ends there as a
killed process does). Some members join late, or share some lanes alone. In some runs they also edit files, decide about
versions, undo, leave a remote and come back, lose what they know of remotes, or bring back an old copy of their disk,
say what took the place of what, what the code was, and what their gates let pass (simulated_claims.py), and somebody
puts harm into the remotes, or brings one of them back from a backup. Those are folders. In the end all members must
hold the same files, with everything that was acknowledged and nothing that was taken away.

With `--shrink`, steps of a run that fails are left out as long as it still fails. Prints the steps that are left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from simulated import Simulated, Step  # it sets the clock, before anything else asks for it

# isort: split
from memlane import Bank, Memory
from memlane.care import sync
from memlane.care.sync import travel
from memlane.config import trust, user_state
from memlane.exchange import sharing
from memlane.lanes import scan
from simulated_claims import leaked_to, missing, secrets_in
from torture_sync import CONFIG, Figures, Team, check_marks, contents
from torturing_sync import LANES, MARK, SHARED, VERBS, marks, unarchived

REMOTES = ("a b", "b c", "c a", "a", "b", "c", "a b c")
EVERY_LANE = ("notes", "vault", "topics", "records", "layers")
FEW_LANES = (("notes",), ("topics",), ("topics", "notes"), ("vault",), ("layers", "records"))
SOME_LANES = (("notes",), ("topics", "vault"), ("records", "layers", "notes"))  # that a member shares alone
OFTEN: tuple[dict[str, int], ...] = (  # what happens more often than in the torture
    {},
    {"share": 40, "add": 5, "sync": 40},
    {"append": 30, "update": 30, "sync": 40},
    {"delete": 15, "restore": 15, "forget": 10, "sync": 40},
)
ALSO: tuple[dict[str, int], ...] = (  # what happens in some runs
    {},
    {"decide": 25, "edit": 10, "rm": 5},
    {"undo": 20, "edit": 5, "decide": 10},
    {"rejoin": 20},
    {"backup": 20, "revert": 12},
    {"lose": 6},
    {"harm": 15},
    {"decide": 10, "edit": 8, "rm": 4, "undo": 8, "rejoin": 5, "backup": 8, "revert": 4, "harm": 5},
)
CLAIMS: tuple[dict[str, int], ...] = (  # what members say of memories, in some runs
    {},
    {},
    {"replace": 20},
    {"speak": 10, "renew": 10, "accept": 15},
    {"allow": 15},
    {"replace": 8, "speak": 5, "renew": 5, "accept": 8, "allow": 6},
)
ROUNDS = 12


class Plan(NamedTuple):
    """What a seed decides: the remotes of each member, the lanes, those that each shares (none for all), who joins
    late, and the steps.
    """

    uses: tuple[str, ...]
    lanes: tuple[str, ...]
    shares: tuple[tuple[str, ...], ...]
    late: tuple[int, ...]
    steps: tuple[Step, ...]
    scopes: tuple[tuple[str, ...], ...] = ()  # of each member, with `--scopes`: simulated_scopes.py


def plan(seed: int, count: int, scopes: bool = False) -> Plan:
    if scopes:
        from simulated_scopes import scoped

        return scoped(plan(seed, count), seed)
    dice = random.Random(f"plan {seed}")
    members = dice.randint(3, 6)
    uses = [*REMOTES[:2], *dice.choices(REMOTES, k=members - 2)]  # the first two are what holds all remotes together
    lanes = EVERY_LANE if dice.random() < 0.5 else dice.choice(FEW_LANES)
    verbs = VERBS | dice.choice(OFTEN) | dice.choice(ALSO)
    verbs |= random.Random(f"claims {seed}").choice(CLAIMS)
    if not verbs.keys() & {"revert", "lose"} and random.Random(f"rewinding {seed}").random() < 0.25:
        verbs |= {"save": 12, "rewind": 8}  # what a member and all of its remotes have lost is lost
    late = tuple(number for number in range(2, members) if dice.random() < 0.15)
    shares = [dice.choice(SOME_LANES) if number > 1 and dice.random() < 0.15 else () for number in range(members)]
    fates = dice.choice(((70, 15, 15), (30, 35, 35)))
    found = []
    for number in range(1, count + 1):
        verb = dice.choices(list(verbs), list(verbs.values()))[0]
        fate = dice.choices(("", "cut", "killed"), fates if verb == "sync" else (95, 0, 5))[0]
        found.append(Step(number, dice.randrange(members), verb, fate, dice.randint(1, 25), dice.random() < 0.5))
    for member in late:
        at = dice.randrange(count)
        found[at] = found[at]._replace(member=member, verb="join", fate="")
    return Plan(tuple(uses), lanes, tuple(shares), late, tuple(found))


@dataclass
class Run:
    place: Path
    seed: int
    plan: Plan
    figures: Figures = field(default_factory=Figures)
    kind: ClassVar[type[Simulated]] = Simulated

    @property
    def members(self) -> int:
        return len(self.plan.uses)

    def begin(self) -> list[Simulated]:
        for name in "abc":
            (self.place / name).mkdir()
        everybody = []
        for number, uses in enumerate(self.plan.uses):
            folder = self.place / f"member{number}"
            folder.mkdir()
            (self.place / f"home{number}").mkdir()
            os.environ["HOME"] = str(self.place / f"home{number}")
            (folder / "memlane.toml").write_text(CONFIG)
            trust.record(user_state(), folder / "memlane.toml")
            (self.place / f"remotes{number}").write_text(uses)
            member = self.kind(self.place, number, self.plan.lanes, self.plan.shares[number])
            member.scopes = self.plan.scopes[number] if self.plan.scopes else ()
            with Bank.init(folder) as member.bank:
                sharing.share(member.bank, ["records"])
                for name in SHARED if number == 0 else ():
                    member.bank.add("A page that all members write to.", title=name)
                if number not in self.plan.late:
                    member.join()
                    sync.sync(member.bank)
            everybody.append(member)
        return everybody

    def go(self) -> Figures:
        everybody = self.begin()
        for step in self.plan.steps:
            if step.verb in ("harm", "save", "rewind"):
                getattr(self, step.verb)(step)
                continue
            with everybody[step.member].at(self.seed, step.number):
                everybody[step.member].do_step(step)
        self.settle(everybody, len(self.plan.steps))
        self.let_pass(everybody)
        self.check(everybody)
        return self.figures

    def harm(self, step: Step) -> None:
        """Put something into a remote that nobody may take."""
        urls = {name: str(self.place / name) for name in "abc"}
        team = SimpleNamespace(dice=random.Random(f"harm {self.seed} {step.number}"), urls=urls, harmed=step.number)
        Team.harm(team)  # type: ignore[arg-type]

    def save(self, step: Step) -> None:
        """Copy a remote."""
        name = random.Random(f"save {self.seed} {step.number}").choice("abc")
        shutil.rmtree(self.place / f"{name} then", ignore_errors=True)
        shutil.copytree(self.place / name, self.place / f"{name} then")

    def rewind(self, step: Step) -> None:
        """Bring back a remote as it was copied, unless it has lost so much that members want to be asked."""
        name = random.Random(f"rewind {self.seed} {step.number}").choice("abc")
        now, then = self.place / name, self.place / f"{name} then"
        if then.is_dir() and 2 * len([*then.glob("default/??/*")]) > len([*now.glob("default/??/*")]):
            shutil.rmtree(now)
            shutil.copytree(then, now)

    def settle(self, everybody: Sequence[Simulated], number: int) -> None:
        for round in range(1, ROUNDS + 1):
            moved = 0
            for member in everybody:
                with member.at(self.seed, 10_000 + number + round):
                    member.join()
                    for one in sync.sync(member.bank, deletions=True):
                        moved += one.sent + one.received + one.removed + one.merged + one.forgotten
            self.figures.rounds = round
            if not moved:
                return
        self.figures.broken.append(f"files still move after {ROUNDS} rounds")

    def let_pass(self, everybody: Sequence[Simulated]) -> None:
        """Let everybody allow what some have let their gates pass: until then nobody else may have it."""
        if stored := secrets_in(self.place):
            for member in everybody:
                with member.at(self.seed, 20_000):
                    self.figures.leaked += leaked_to(member, contents(member.folder))
                for number in stored:
                    with member.at(self.seed, 20_000 + number):
                        member.let_pass(number)
            self.settle(everybody, 20_000)

    def check(self, everybody: Sequence[Simulated]) -> None:
        banks = [contents(self.place / f"member{number}") for number in range(self.members)]
        for member, bank in zip(everybody, banks, strict=True):
            for name in sorted(bank.keys() | banks[0].keys()):
                if bank.get(name) != banks[0].get(name) and is_shared(name, member.shares):
                    self.figures.differing.append(f"{name} of member {member.number} and of member 0")
            self.figures.leaked += [f"{name} of {member.number}" for name, data in bank.items() if b"harm98h" in data]
        memories, shown, everywhere = [], [], []
        for member, bank in zip(everybody, banks, strict=True):
            with member.at(self.seed, 99_999):
                items = [item for lane in dict.fromkeys(LANES) for item in scan(member.bank.lane(lane))]
            found = [item for item in items if isinstance(item, Memory)]
            memories.append({*marks(found)})
            shown.append({*marks(unarchived(found))})
            self.figures.broken += [f"member {member.number}: {item}" for item in items if not isinstance(item, Memory)]
            whole = b"\n".join(bank.values()).decode(errors="replace")
            everywhere.append({match[0] for match in MARK.finditer(whole)})
        full = [member.number for member in everybody if not member.shares]
        check_marks(self, *([each[number] for number in full] for each in (memories, shown, everywhere)))  # type: ignore[arg-type]
        roots = [self.place / f"member{number}" / ".memories" for number in range(self.members)]
        lines = [json.loads(line) for path in self.place.glob("[0-9].jsonl") for line in path.read_bytes().splitlines()]
        tried = [line for line in lines if line.get("said") == "try"]
        self.figures.lost += missing(self.place, tried, roots)
        done = {line["n"] for line in lines if line.get("said") == "done"}
        gone = {mark for line in tried if line["verb"] == "forget" and line["n"] in done for mark in line["touched"]}
        there = {match[0] for member in everybody for text in member.at_remotes() for match in MARK.finditer(text)}
        self.figures.back += [f"{mark} (forget) is at a remote" for mark in sorted(gone & there)]
        if self.figures.refusals["lose lost"]:  # what was deleted or changed may be back with whoever lost all bases
            self.figures.back = [each for each in self.figures.back if "(forget)" in each]


def is_shared(name: str, lanes: Sequence[str]) -> bool:
    """Whether a file is one of these lanes, or all of them count."""
    lane = name.partition("/")[0].removesuffix(".jsonl")
    return not lanes or (lane if lane in EVERY_LANE else "notes") in lanes or name in travel.SIDE


def run_of(given: Plan) -> type[Run]:
    if not given.scopes:
        return Run
    from simulated_scopes import ScopedRun

    return ScopedRun


def simulate(seed: int, given: Plan, keep: str = "") -> dict[str, list[str]]:
    """What is wrong in the end; {} for nothing. In a process of its own."""
    shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
    place = Path(tempfile.mkdtemp(prefix="memlane-simulated-", dir=shm))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        wrong: dict[str, Any] = {}
        try:
            figures = run_of(given)(place, seed, given).go()
            kinds = ("differing", "lost", "back", "leaked", "broken")
            wrong = {name: getattr(figures, name) for name in kinds if getattr(figures, name)}
        except BaseException as error:
            import traceback

            wrong = {"crashed": [f"{error!r}", *traceback.format_exc().splitlines()[-14:]]}
        finally:
            with open(writing, "w") as out:
                json.dump(wrong, out)
            os._exit(0)
    os.close(writing)
    with open(reading) as said:
        told = said.read()
    os.waitpid(child, 0)
    if keep:
        shutil.copytree(place, keep, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    return json.loads(told) if told else {"crashed": ["without a word"]}


def shrunk(seed: int, given: Plan, wrong: dict[str, list[str]]) -> tuple[Step, ...]:
    """The steps that it still fails with, in the same way."""

    def fails(some: Sequence[Step]) -> bool:
        return bool(simulate(seed, given._replace(steps=tuple(some))).keys() & wrong.keys())

    left, size = list(given.steps), max(1, len(given.steps) // 2)
    while size:
        at = 0
        while at < len(left):
            if fails(fewer := left[:at] + left[at + size :]):
                left = fewer
            else:
                at += size
        size //= 2
    for at, step in enumerate(left):
        if step.fate and fails(plainer := [*left[:at], step._replace(fate=""), *left[at + 1 :]]):
            left = plainer
    return tuple(left)


def _one(job: tuple[int, int, bool]) -> tuple[int, dict[str, list[str]]]:
    seed, count, scopes = job
    return seed, simulate(seed, plan(seed, count, scopes))


def main() -> int:
    words = argparse.ArgumentParser(description="Members who share their memory, simulated.")
    words.add_argument("--seeds", default="1-20", help="such as 7, or 1-200")
    words.add_argument("--steps", type=int, default=60)
    words.add_argument("--jobs", type=int, default=1)
    words.add_argument("--shrink", action="store_true")
    words.add_argument("--scopes", action="store_true", help="members with some scopes each")
    words.add_argument("--keep", default="", help="copy what one seed leaves to this folder")
    words.add_argument("--left", default="", help="the numbers of the steps that are made; the others are left out")
    given = words.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if given.left or given.keep:
        whole = plan(seeds[0], given.steps, given.scopes)
        chosen = {int(number) for number in given.left.split(",") if number}
        some = tuple(step for step in whole.steps if not chosen or step.number in chosen)
        wrong = simulate(seeds[0], whole._replace(steps=some), given.keep)
        print(json.dumps(wrong, indent=1))
        return bool(wrong)
    bad = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for seed, wrong in pool.map(_one, [(seed, given.steps, given.scopes) for seed in seeds]):
            if not wrong:
                continue
            bad += 1
            print(f"seed {seed}: {json.dumps(wrong, indent=1)}", flush=True)
            if given.shrink:
                whole = plan(seed, given.steps, given.scopes)
                left = shrunk(seed, whole, wrong)
                print(f"seed {seed}, {whole.uses}, with --left {','.join(str(step.number) for step in left)}")
                print("\n".join(f"  {step}" for step in left), flush=True)
    print(f"{len(seeds)} runs, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
