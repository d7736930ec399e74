"""Kill writers at random points and see what is left. Run by test_survival.py as a program of its own:

    python killing.py LANE FOLDER KILLS SEED

A writer says on a pipe what it is about to do and what is done; this program kills it with SIGKILL at a random
moment, again and again on the same lane, and then compares. Prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from memlane import Memory, Problem
from memlane.lanes import scan
from samples import draft, make_lane, root_of, words


def write_until_killed(name: str, folder: Path, pipe: int, start: int) -> None:
    """Put, extend, revise, drop and recover for ever. One line a step: `try NUMBER VERB`, then `done NUMBER VERB`."""
    lane = make_lane(name, folder)

    def say(*parts: object) -> None:
        os.write(pipe, (" ".join(map(str, parts)) + "\n").encode())

    def step(number: int, verb: str, call: Callable[[], Any]) -> Any:
        say("try", number, verb)
        result = call()
        say("done", number, verb)
        return result

    for number in range(start, start + 1_000_000):
        native = step(number, "put", partial(lane.put, draft(name, number))).native_id
        if number % 3 == 1:
            native = step(number, "extend", partial(lane.extend, native, words(f"more {number}"))).native_id
        if number % 4 == 3:
            native = step(number, "revise", partial(lane.revise, native, {"text": words(f"new {number}")})).native_id
        if number % 5 == 2:
            step(number, "drop", partial(lane.drop, native))
            if number % 2:
                step(number, "recover", partial(lane.recover, native))


def load(name: str) -> None:
    """Do once what the writers do: what is loaded on first use is loaded here, and not by each of them anew."""
    with tempfile.TemporaryDirectory() as folder:
        lane = make_lane(name, Path(folder))
        native = lane.extend(lane.put(draft(name, 1)).native_id, words("more")).native_id
        native = lane.revise(native, {"text": words("new")}).native_id
        lane.drop(native)
        lane.recover(native)
    gc.collect()
    gc.freeze()


def kill_one(name: str, folder: Path, dice: random.Random, start: int) -> list[list[str]]:
    """Start a writer, kill it after a random number of steps and a random moment more; return what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write_until_killed(name, folder, writing, start)
        finally:
            os._exit(1)
    os.close(writing)
    said, steps = b"", dice.randint(1, 12)
    while said.count(b"\n") < steps:
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        said += chunk
    select.select([], [], [], dice.random() * 0.002)
    os.kill(child, signal.SIGKILL)
    while chunk := os.read(reading, 65536):
        said += chunk
    os.close(reading)
    os.waitpid(child, 0)
    return [line.split() for line in said.decode().splitlines()]


def main() -> None:
    name, folder, kills, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    dice = random.Random(seed)
    load(name)
    done: dict[int, set[str]] = {}
    tried: dict[int, set[str]] = {}
    start = 0
    for _ in range(kills):
        for state, number, verb in kill_one(name, folder, dice, start):
            (tried if state == "try" else done).setdefault(int(number), set()).add(verb)
        start = max(tried, default=-1) + 1

    items = list(scan(make_lane(name, folder)))
    problems = [str(item) for item in items if isinstance(item, Problem)]
    alive = "\n".join(item.text for item in items if isinstance(item, Memory))
    base = root_of(name, folder)
    stored = [path for path in (base.rglob("*") if base.is_dir() else [base]) if path.is_file()]
    stored = [path for path in stored if not path.name.endswith(".tmp") and ".trash" not in path.parts]
    everything = alive + "\n".join(path.read_text() for path in stored)
    lost = []
    for number, verbs in done.items():
        old, more, new = words(number), words(f"more {number}"), words(f"new {number}")
        if "drop" in tried[number] and "recover" not in verbs:
            gone = "drop" in verbs and "recover" not in tried[number]
            lost += [f"{number} came back"] if gone and (old in alive or new in alive) else []
            continue
        if "revise" in tried[number]:
            there = new in everything or ("revise" not in verbs and old in everything)
        else:
            there = old in everything
            lost += [f"{number} lost its end"] if "extend" in verbs and more not in everything else []
        lost += [] if "put" not in verbs or there else [f"{number} is gone"]
    whole = [words(number) for number in tried] + [words(f"new {number}") for number in tried]
    halves = [item.id for item in items if isinstance(item, Memory) and not any(text in item.text for text in whole)]
    print(
        json.dumps(
            {
                "kills": kills,
                "acknowledged": sum(map(len, done.values())),
                "lost": lost,
                "halves": halves,
                "problems": problems,
            }
        )
    )


if __name__ == "__main__":
    main()
