"""Members who share their memory, simulated: the same seed makes the same run, and a failure is cut short.

    python tests/simulate_sync.py --seeds 1-200 [--steps 60] [--jobs 2] [--shrink]

torture_sync.py has real processes, databases and broken connections, and makes a thousand steps a minute; what fails
there cannot be run again. Here a seed decides who uses which remotes and which lanes, and every step is decided by its
seed and its number alone: which member does what (verbs of torturing_sync.py), with which remote it syncs, at which
call its connection breaks, and at which write it is killed (that one in a child, which ends there as a killed process
does). Remotes are folders. In the end all members must hold the same files, with everything that was acknowledged and
nothing that was taken away.

With `--shrink`, steps of a run that fails are left out as long as it still fails. Prints the steps that are left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from memlane.core import dates

_clock = [datetime(2026, 3, 1, tzinfo=UTC)]
dates.utc_now = lambda: _clock[0]  # what asks for the time is imported after this

from memlane import Bank, Memory  # noqa: E402
from memlane.care import sync  # noqa: E402
from memlane.care.sync import engine, state  # noqa: E402
from memlane.config import trust, user_state  # noqa: E402
from memlane.disk import files, log, together  # noqa: E402
from memlane.exchange import remotes, sharing  # noqa: E402
from memlane.exchange.remotes import Unreachable  # noqa: E402
from memlane.lanes import scan  # noqa: E402
from synced import Cut  # noqa: E402
from torture_sync import CONFIG, Figures, check_marks, contents  # noqa: E402
from torturing_sync import LANES, MARK, SHARED, VERBS, Member, marks, unarchived  # noqa: E402

SKEWS = (0, 3, -40, 400, -1, 0.1, -700, 30)  # days that a member's clock is wrong by
REMOTES = ("a b", "b c", "c a", "a", "b", "c", "a b c")
EVERY_LANE = ("notes", "vault", "topics", "records", "layers")
FEW_LANES = (("notes",), ("topics",), ("topics", "notes"), ("vault",), ("layers", "records"))
OFTEN: tuple[dict[str, int], ...] = (  # what happens more often than in the torture
    {},
    {"share": 40, "add": 5, "sync": 40},
    {"append": 30, "update": 30, "sync": 40},
    {"delete": 15, "restore": 15, "forget": 10, "sync": 40},
)
ROUNDS = 12
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


class Plan(NamedTuple):
    """What a seed decides: the remotes of each member, the lanes, and the steps."""

    uses: tuple[str, ...]
    lanes: tuple[str, ...]
    steps: tuple[Step, ...]


def plan(seed: int, count: int) -> Plan:
    dice = random.Random(f"plan {seed}")
    members = dice.randint(3, 6)
    uses = [*REMOTES[:2], *dice.choices(REMOTES, k=members - 2)]  # the first two are what holds all remotes together
    lanes = EVERY_LANE if dice.random() < 0.5 else dice.choice(FEW_LANES)
    verbs = VERBS | dice.choice(OFTEN)
    fates = dice.choice(((70, 15, 15), (30, 35, 35)))
    found = []
    for number in range(1, count + 1):
        verb = dice.choices(list(verbs), list(verbs.values()))[0]
        fate = dice.choices(("", "cut", "killed"), fates if verb == "sync" else (95, 0, 5))[0]
        found.append(Step(number, dice.randrange(members), verb, fate, dice.randint(1, 25), dice.random() < 0.5))
    return Plan(tuple(uses), lanes, tuple(found))


class Simulated(Member):
    """A member as torturing_sync.py has it, whose bank is open for the length of one step."""

    def __init__(self, place: Path, number: int, lanes: tuple[str, ...]) -> None:
        self.place, self.number, self.count, self.lanes = place, number, 0, lanes
        self.deleted: list[Any] = []
        self.journal = os.open(place / f"{number}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @contextmanager
    def at(self, seed: int, number: int) -> Iterator[None]:
        """The surroundings of a step: a home, a clock and dice of its own."""
        os.environ["HOME"] = str(self.place / f"home{self.number}")
        _clock[0] = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=SKEWS[self.number % 8], seconds=number)
        self.dice, self.count = random.Random(f"{seed} {number}"), number
        secrets.randbelow = self.dice.randrange
        with Bank.open(self.place / f"member{self.number}") as self.bank:
            yield

    def do_step(self, step: Step) -> None:
        if step.fate != "killed":
            self.dare(step)
            return
        if (child := os.fork()) == 0:
            try:
                _die_at(step.at, after=step.after)
                with Bank.open(self.place / f"member{self.number}") as self.bank:
                    self.dare(step)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def dare(self, step: Step) -> None:
        if step.verb == "sync":
            self.sync_with(self.dice.choice(self.remotes()), step)
        else:
            self.step({step.verb: 1})

    def add(self) -> None:
        lane, text = self.dice.choice(self.lanes), self.text()
        fields: dict[str, str] = {}
        if lane == "topics":  # few files, so that entries are archived
            fields = {"topic": "area", "subtopic": f"part{self.dice.randrange(1 + len(self.lanes) // 2)}"}
        if lane == "layers":
            fields = {"project": f"project{self.count}", "file_type": "common_patterns"}
        title = f"Title {self.number} {self.count}" if lane in ("notes", "topics", "records") else None
        self.do(f"add {lane}", lambda: self.bank.add(text, lane=lane, title=title, **fields), new=True)

    def sync_with(self, name: str, step: Step) -> None:
        with state.opened(self.bank.root) as kept:
            assert kept is not None
            settings = kept.remote(name)
            remote: Any = remotes.opened(settings.url)
            if step.fate == "cut":
                remote = Cut(remote, step.at, after=step.after)
            with closing(remote), suppress(Unreachable):
                engine.run(self.bank, kept, settings, remote)


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


@dataclass
class Run:
    place: Path
    seed: int
    plan: Plan
    figures: Figures = field(default_factory=Figures)

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
            with Bank.init(folder) as bank:
                sharing.share(bank, ["records"])
                for name in uses.split():
                    sync.add(bank, name, str(self.place / name), author=f"member{number}")
                for name in SHARED if number == 0 else ():
                    bank.add("A page that all members write to.", title=name)
                sync.sync(bank)
            everybody.append(Simulated(self.place, number, self.plan.lanes))
        return everybody

    def go(self) -> Figures:
        everybody = self.begin()
        for step in self.plan.steps:
            with everybody[step.member].at(self.seed, step.number):
                everybody[step.member].do_step(step)
        self.settle(everybody, len(self.plan.steps))
        self.check(everybody)
        return self.figures

    def settle(self, everybody: Sequence[Simulated], number: int) -> None:
        for round in range(1, ROUNDS + 1):
            moved = 0
            for member in everybody:
                with member.at(self.seed, 10_000 + number + round):
                    for one in sync.sync(member.bank):
                        moved += one.sent + one.received + one.removed + one.merged + one.forgotten
            self.figures.rounds = round
            if not moved:
                return
        self.figures.broken.append(f"files still move after {ROUNDS} rounds")

    def check(self, everybody: Sequence[Simulated]) -> None:
        banks = [contents(self.place / f"member{number}") for number in range(self.members)]
        for number, bank in enumerate(banks):
            for name in sorted(bank.keys() | banks[0].keys()):
                if bank.get(name) != banks[0].get(name):
                    self.figures.differing.append(f"{name} of member {number} and of member 0")
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
        check_marks(self, memories, shown, everywhere)  # type: ignore[arg-type]


def simulate(seed: int, given: Plan, keep: str = "") -> dict[str, list[str]]:
    """What is wrong in the end; {} for nothing. In a process of its own."""
    shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
    place = Path(tempfile.mkdtemp(prefix="memlane-simulated-", dir=shm))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        wrong: dict[str, Any] = {}
        try:
            figures = Run(place, seed, given).go()
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


def _one(job: tuple[int, int]) -> tuple[int, dict[str, list[str]]]:
    seed, count = job
    return seed, simulate(seed, plan(seed, count))


def main() -> int:
    words = argparse.ArgumentParser(description="Members who share their memory, simulated.")
    words.add_argument("--seeds", default="1-20", help="such as 7, or 1-200")
    words.add_argument("--steps", type=int, default=60)
    words.add_argument("--jobs", type=int, default=1)
    words.add_argument("--shrink", action="store_true")
    words.add_argument("--keep", default="", help="copy what one seed leaves to this folder")
    words.add_argument("--left", default="", help="the numbers of the steps that are made; the others are left out")
    given = words.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if given.left or given.keep:
        whole = plan(seeds[0], given.steps)
        chosen = {int(number) for number in given.left.split(",") if number}
        some = tuple(step for step in whole.steps if not chosen or step.number in chosen)
        wrong = simulate(seeds[0], whole._replace(steps=some), given.keep)
        print(json.dumps(wrong, indent=1))
        return bool(wrong)
    bad = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for seed, wrong in pool.map(_one, [(seed, given.steps) for seed in seeds]):
            if not wrong:
                continue
            bad += 1
            print(f"seed {seed}: {json.dumps(wrong, indent=1)}", flush=True)
            if given.shrink:
                whole = plan(seed, given.steps)
                left = shrunk(seed, whole, wrong)
                print(f"seed {seed}, {whole.uses}, with --left {','.join(str(step.number) for step in left)}")
                print("\n".join(f"  {step}" for step in left), flush=True)
    print(f"{len(seeds)} runs, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
