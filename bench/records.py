"""What captured messages cost, one file each: CPU and peak memory of what a bank of very many is asked for.

    python bench/records.py [--sizes 10000 100000] [--foreign 0] [--before SRC]

The messages are made up, and their files are as the lane writes them; --foreign of them have ids that were not made
from their message, as of another tool. Each row is a process of its own, but for the adds and the searches: "open",
"warm" are of a process that stays. With --before, the folder `src` of an earlier memlane, both are measured in the same
bank, one after the other, but for what is done once: building the index, and the first look of doctor.
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
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

from memlane import Bank
from search import QUERIES, made_up, peak_memory, spent, spent_by_all

MESSAGE = "The build of branch {} failed because the cache of the runner was full; it was emptied by hand."


def write_records(folder: Path, size: int, foreign: int) -> None:
    """Records as captured messages leave them, in one folder."""
    from memlane.core.text import keywords
    from memlane.lanes.records.record import Record, content_hash, made_id, message_key, render

    folder.mkdir(parents=True)
    dice, texts = random.Random(3), made_up()
    words = [tuple(keywords(text, 10)) for text in texts]
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for number in range(size):
        at = number % len(texts)
        text = f"{texts[at]}\n\nref {number}\n"
        when = (start + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        hash = content_hash(text)
        id = made_id(message_key(when, hash))
        if number < foreign:
            id = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        place = os.fspath(folder / f"{id}.md")
        thread = f"session-{number // 50}"
        record = Record(id, text.split("\n")[0][:150], words[at], "global", when, hash, text, place, thread)
        Path(place).write_text(render(record))


def build(bank: Bank) -> dict[str, float]:
    return {"index, built": spent_by_all(lambda: bank.index.refresh(force=True))}


def warm(bank: Bank) -> dict[str, float]:
    found = {"first search": spent(lambda: bank.search(QUERIES[0]))}
    found["search, warm"] = median(lambda at: bank.search(QUERIES[at % len(QUERIES)]), 24)
    found["add, open"] = median(lambda at: bank.add(MESSAGE.format(f"open-{os.getpid()}-{at}"), lane="records"), 9)
    found["add and find, open"] = median(lambda at: added_and_found(bank, at), 9)
    return found


def added_and_found(bank: Bank, at: int) -> None:
    name = f"found-{os.getpid()}-{at}"
    id = bank.add(MESSAGE.format(name), lane="records").id
    if id not in {hit.memory.id for hit in bank.search(f"build of branch {name}", lane="records")}:
        sys.exit("what was added is not found")


def median(call: Callable[[int], Any], repeats: int) -> float:
    return statistics.median(spent(lambda at=at: call(at)) for at in range(repeats))  # type: ignore[misc]


def alone(name: str, call: Callable[[Bank], Any]) -> Callable[[Bank], dict[str, float]]:
    return lambda bank: {name: spent(lambda: call(bank))}


def doctor(bank: Bank) -> None:
    from memlane.care.doctor import examine

    examine(os.fspath(bank.root))


def update(bank: Bank) -> None:
    newest = bank.list(limit=1, lane="records")[0]
    bank.update(newest.id, text=f"{newest.text}\n\nIt was seen again.")


MEASURES: dict[str, Callable[[Bank], dict[str, float]]] = {
    "build": build,
    "warm": warm,
    "add": alone("add", lambda bank: bank.add(MESSAGE.format(os.getpid()), lane="records")),
    "second-add": alone("add, again", lambda bank: bank.add(MESSAGE.format(os.getpid()), lane="records")),
    "update": alone("the newest, updated", update),
    "newest": alone("bank.list(limit=20)", lambda bank: bank.list(limit=20, lane="records")),
    "list": alone("records.list(limit=20)", lambda bank: bank.records.list(limit=20)),
    "keyword": alone("records.list(keyword=)", lambda bank: bank.records.list(keyword="docker", limit=20)),
    "find": alone("records.find", lambda bank: bank.records.find("docker release", limit=10)),
    "doctor": alone("doctor, first", doctor),
    "doctor-again": alone("doctor, nothing changed", doctor),
}

ONCE = ("build", "doctor")


def measured(what: str, folder: str, src: Path | None) -> dict[str, list[float]]:
    """(CPU seconds, peak MB) by name, of a process of its own."""
    env = {**os.environ, **({"PYTHONPATH": os.fspath(src)} if src else {})}
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what, folder], stdout=-1, text=True, check=True, env=env
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def measure_all(folder: Path, size: int, foreign: int, before: Path | None) -> None:
    folder.mkdir()
    Bank.init(folder).close()
    write_records(folder / ".memories" / "records", size, foreign)
    title = "before: CPU | peak memory | now: CPU | peak memory" if before else "CPU | peak memory"
    print(f"| {size:,} records | {title} |\n|---|{'--:|--:|' * (2 if before else 1)}", flush=True)
    for what in MEASURES:
        now = measured(what, os.fspath(folder), None)
        old = measured(what, os.fspath(folder), before) if before and what not in ONCE else {}
        for name, figures in now.items():
            both = [old.get(name), figures] if before else [figures]
            row = " | ".join(f"{one[0] * 1e3:,.1f} ms | {one[1]:,.0f} MB" if one else " | " for one in both)
            print(f"| {name} | {row} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--foreign", type=int, default=0)
    parser.add_argument("--before", type=Path, metavar="SRC", help="the sources of an earlier memlane")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, folder = options.measure
        with Bank.open(folder) as bank:
            costs = MEASURES[what](bank)
            print(json.dumps({name: [cost, peak_memory()] for name, cost in costs.items()}))
        return
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as place:
            os.environ["XDG_STATE_HOME"] = os.path.join(place, "state")
            measure_all(Path(place, "bank"), size, options.foreign, options.before)
        print()


if __name__ == "__main__":
    main()
