"""What an add costs in vaults of different sizes, all in one run: durable (fsync) and through the whole gate.

    python bench/vault.py [--sizes 100 1000 10000 100000] [--repeats 200] [--words 6 16] [--openings 5]
    python bench/vault.py --bank [--before SRC] [--sizes 1000 10000 100000]

The texts are made from a seeded word list: distinct memories of --words words, one in twenty of 30 to 60 words.
The adds go round over the vaults, so that a busy moment of the machine hits all of them alike. Opening is told in CPU
time: of the first add, which reads every line and keeps what is known of them, of an add to a vault that is opened
anew after it, the median of --openings, and of one after a line in the middle was changed by hand.

With --bank, it is told what a bank with such a vault takes: CPU of a process that has it open and its index (the
median of an add, and of a search after another process has added), and of new processes (an add, the newest twenty, a
search of the vault's own, the snapshot for a prompt; that of more than --canon records is left out). With --before,
the folder `src` of an earlier memlane, both are measured, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import memlane
from memlane.core.errors import Refused
from memlane.lanes.vault.record import Record, render_line
from memlane.lanes.vault.store import MemoryVault

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

WARM_UP = 8  # a vault that is asked often enough builds an index; the column "first add" is without one
COMMON = """
the to and of in is for with on that user prefers project uses deploy server release weekly team budget meeting
agent memory vault index python rust service cluster queue worker cache database backup restore monday tuesday
friday review branch merge commit staging production incident latency report customer invoice payment refund account
login session policy security audit network firewall router storage volume snapshot schedule calendar travel flight
hotel berlin lisbon tokyo oslo madrid dublin warsaw piano violin garden kitchen coffee tea vegetarian allergic
peanuts runs cycling marathon swimming chess novel history biology physics chemistry medicine hospital doctor sister
brother mother father daughter wedding birthday anniversary apartment mortgage tax salary contract lawyer court
license patent design logo colour purple green orange yellow silver dark bright mode theme font layout screen
keyboard mouse monitor laptop phone tablet camera printer scanner driver kernel module package library compiler
debugger profiler benchmark test coverage fixture mock stub parser lexer token grammar syntax semantic type class
function method variable constant array list tuple mapping graph tree heap stack buffer stream socket thread process
signal lock mutex semaphore atomic never always often rarely before after during while until unless because although
however therefore instead besides small large quick slow early late first second third final daily monthly yearly
annual quarterly remote local shared private public internal external upstream downstream primary replica leader
follower shard partition bucket object wants needs avoids chose moved learned teaches writes reads builds breaks
fixes ships plans owns leads joins leaves
""".split()
SYLLABLES = "ba cel di for gu ha jin lo mu nap per qui ro sat ti vor wu xa yon zu bra cle dri flo gru".split()


def texts(seed: int, low: int, high: int) -> Iterator[str]:
    """Endless sentences: common words, the first of them more often, and names from a vocabulary of 20,000."""
    dice = random.Random(0)
    names = ["".join(dice.choices(SYLLABLES, k=dice.randint(2, 3))) for _ in range(20_000)]
    weights = [1 / (place + 3) ** 0.7 for place in range(len(COMMON))]
    dice = random.Random(seed)
    while True:
        size = dice.randint(30, 60) if dice.random() < 0.05 else dice.randint(low, high)
        words = dice.choices(COMMON, weights, k=size)
        for place in range(size):
            if dice.random() < 0.5:
                words[place] = dice.choice(names)
        yield " ".join(words).capitalize() + "."


def vault_of(folder: Path, size: int, made: Iterator[str]) -> MemoryVault:
    """A vault that holds `size` active memories, written as lines, as an earlier session would have left it."""
    path = folder / f"{size}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            when = f"2025-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
            file.write(render_line(Record(f"{number:012x}", next(made), created_at=when, source="manual")) + "\n")
    return opened(path, size)


def opened(path: Path, size: int) -> MemoryVault:
    return MemoryVault(path, max_active=size + 1_000_000, kept_at=lambda: path.with_suffix(".kept"))


def opening_cost(path: Path, size: int, made: Iterator[str]) -> float:
    """CPU seconds of opening a vault and adding a memory to it, which may be refused as a duplicate."""
    text = next(made)
    start = time.process_time()
    with suppress(Refused):
        opened(path, size).add_memory(text, "shared", "other")
    return time.process_time() - start


def edit(path: Path) -> None:
    """Change a line in the middle of a vault, as an editor or a merge does."""
    lines = path.read_bytes().split(b"\n")
    lines[len(lines) // 2] = lines[len(lines) // 2].replace(b'"text":"', b'"text":"By hand: ')
    path.write_bytes(b"\n".join(lines))


BANK = """
import json, os, statistics, subprocess, sys, time
from contextlib import suppress
from memlane import Bank
from memlane.core.errors import Refused

folder, size, canon, *texts = json.load(sys.stdin)
settings = {"vault__max_active": 10_000_000}

def spent(call):
    start = time.process_time()
    with suppress(Refused):
        call()
    return time.process_time() - start

def anew(call):
    with Bank.open(folder, **settings) as bank:
        return spent(lambda: call(bank))

found = {}
with Bank.open(folder, **settings) as bank:
    with suppress(Refused):
        bank.add(texts.pop(), lane="vault")  # what is known of a long vault is kept from now on
    bank.index.refresh(force=True)
    bank.search("budget of the server")
    found["add"] = statistics.median(spent(lambda: bank.add(texts.pop(), lane="vault")) for _ in range(5))
    costs = []
    for _ in range(3):
        other = f"from memlane import Bank; Bank.open({folder!r}, **{settings!r}).add({texts.pop()!r}, lane='vault')"
        subprocess.run([sys.executable, "-c", other], check=False, stderr=subprocess.DEVNULL)
        costs.append(spent(lambda: bank.search("budget of the server")))
    found["search after another's"] = statistics.median(costs)
found["add, anew"] = statistics.median(anew(lambda bank: bank.add(texts.pop(), lane="vault")) for _ in range(3))
found["newest 20"] = anew(lambda bank: bank.vault.recall_memories(limit=20))
found["vault search"] = anew(lambda bank: bank.vault.search_memories("budget of the server", limit=5))
if size <= canon:
    found["snapshot"] = anew(lambda bank: bank.snapshot())
print(json.dumps(found))
"""


def in_bank(folder: Path, size: int, canon: int, words: tuple[int, int], src: Path | None) -> dict[str, float]:
    """CPU seconds of what a bank with a vault of this size is asked for, by name."""
    place = folder / ("before" if src else "now") / f"{size}"
    place.mkdir(parents=True)
    with memlane.Bank.init(place) as bank:
        vault_of(bank.vault.path.parent, size, texts(size, *words))
        os.rename(bank.vault.path.with_name(f"{size}.jsonl"), bank.vault.path)
    fresh = texts(-1, *words)
    given = [os.fspath(place), size, canon, *(next(fresh) for _ in range(20))]
    env = {**os.environ, **({"PYTHONPATH": os.fspath(src)} if src else {})}
    done = subprocess.run(
        [sys.executable, "-c", BANK], input=json.dumps(given), text=True, env=env, stdout=-1, check=True
    )
    return dict(json.loads(done.stdout))


def banks(folder: Path, sizes: list[int], canon: int, words: tuple[int, int], before: Path | None) -> None:
    os.environ["XDG_STATE_HOME"] = os.fspath(folder / "state")
    for size in sizes:
        now = in_bank(folder, size, canon, words, None)
        old = in_bank(folder, size, canon, words, before) if before else {}
        for name, cost in now.items():
            was = f"{old[name] * 1e3:>9.1f} ms → " if name in old else ""
            ratio = f"  {cost / old[name]:.2f}x" if name in old else ""
            print(f"{size:>8}  {name:24}  {was}{cost * 1e3:>9.1f} ms{ratio}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    options.add_argument("--repeats", type=int, default=200)
    options.add_argument("--words", type=int, nargs=2, default=[6, 16], metavar=("LOW", "HIGH"))
    options.add_argument("--openings", type=int, default=5)
    options.add_argument("--bank", action="store_true", help="measure a whole bank")
    options.add_argument("--before", type=Path, metavar="SRC", help="the sources of an earlier memlane")
    options.add_argument("--canon", type=int, default=1000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.bank:
            banks(Path(folder), given.sizes, given.canon, tuple(given.words), given.before)
            return
        vaults, first, again, edited = {}, {}, {}, {}
        fresh = texts(-1, *given.words)
        for size in given.sizes:
            vaults[size] = vault_of(Path(folder), size, texts(size, *given.words))
            first[size] = opening_cost(vaults[size].path, size, fresh)
            again[size] = statistics.median(opening_cost(vaults[size].path, size, fresh) for _ in range(given.openings))
            edit(vaults[size].path)
            edited[size] = opening_cost(vaults[size].path, size, fresh)
            for _ in range(WARM_UP):
                with suppress(Refused):
                    vaults[size].add_memory(next(fresh), "shared", "other")
        costs: dict[int, list[float]] = {size: [] for size in given.sizes}
        refused = 0
        while min(map(len, costs.values())) < given.repeats:
            text = next(fresh)
            for size, vault in vaults.items():
                if len(costs[size]) == given.repeats:
                    continue
                start = time.perf_counter()
                try:
                    id = vault.add_memory(text, "shared", "other")
                except Refused:
                    refused += 1
                    continue
                costs[size].append(time.perf_counter() - start)
                vault.delete_memory(id)  # so that the size stays what the row says
    opening = f"{'first add':>10}  {'next, anew':>10}  {'edited':>10}"
    print(f"{'active':>8}  {opening}  {'add, median':>11}  {'95 %':>8}  {'ratio':>6}")
    base = statistics.median(costs[given.sizes[0]])
    for size, seconds in costs.items():
        middle = statistics.median(seconds)
        high = statistics.quantiles(seconds, n=20)[-1]
        opening = "  ".join(f"{cost[size] * 1e3:>7.1f} ms" for cost in (first, again, edited))
        print(f"{size:>8}  {opening}  {middle * 1e3:>8.2f} ms  {high * 1e3:>5.2f} ms  {middle / base:>5.1f}x")
    print(f"{refused} texts were refused as duplicates and not counted")


if __name__ == "__main__":
    main()
