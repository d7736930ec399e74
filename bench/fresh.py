"""What `memlane review --only drifted --show` costs: many anchored memories over some files of code.

    python bench/fresh.py [--memories 10000] [--files 500]

Half of the memories name a file, half a function in it. All times are CPU; the git processes that are called when
something changed are counted, too. Search is measured in the same bank with and without its anchors.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools

from memlane import Bank

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

WORDS = "cache login retry queue parser token limit batch index schema socket worker order price route shard".split()


def make(project: Path, memories: int, files: int) -> None:
    for number in range(files):
        path = project / f"src/part{number % 20}/module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        functions = (f"def step{step}(value):\n    return value + {number * step}\n\n" for step in range(40))
        path.write_text("".join(functions))
        os.utime(path, (1_700_000_000, 1_700_000_000))
    Bank.init(project).close()
    for number in range(memories):
        place = project / ".memories" / f"{number // 1000}"
        place.mkdir(exist_ok=True)
        file = number % files
        symbol = f":step{number % 40}" if number % 2 else ""
        words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7))
        text = f"The {words} of number {number} lives in `src/part{file % 20}/module{file}.py{symbol}`.\n"
        (place / f"n{number}.md").write_text(
            f'---\ncreated_at: "2024-01-{number % 28 + 1:02}T00:00:00Z"\n---\n\n{text}'
        )
    run = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*run, "init", "-q"], cwd=project, check=True)
    subprocess.run([*run, "add", "."], cwd=project, check=True)
    subprocess.run([*run, "commit", "-q", "-m", "one"], cwd=project, check=True)


def cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def spent(call: Callable[[], Any]) -> float:
    start = cpu()
    call()
    return (cpu() - start) * 1000


def judged(project: Path) -> dict[str, int]:
    with Bank.open(project) as bank:
        found = bank.fresh()
    counts: dict[str, int] = {}
    for verdict in found:
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
    return counts


def show(what: str, milliseconds: float, more: object = "") -> None:
    print(f"{what:<62} {milliseconds:>9.2f} ms  {more}", flush=True)


def searching(project: Path) -> float:
    with Bank.open(project) as bank:
        queries = [f"{one} {other}" for one, other in itertools.pairwise(WORDS)]
        for query in queries:
            bank.search(query)
        return statistics.median(spent(partial(bank.search, query)) for _ in range(10) for query in queries)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        make(project, given.memories, given.files)
        print(f"{given.memories:,} memories over {given.files:,} files")
        show("the first run: everything is read and anchored", spent(lambda: judged(project)))
        show("nothing changed", statistics.median(spent(lambda: judged(project)) for _ in range(5)), judged(project))
        command = [sys.executable, "-m", "memlane", "--bank", folder, "review", "--only", "drifted", "--show"]
        run = lambda: subprocess.run(command, check=True, capture_output=True)  # noqa: E731
        show(
            "nothing changed: `memlane review --only drifted --show`, the interpreter included",
            statistics.median(spent(run) for _ in range(5)),
        )
        with Bank.open(project) as bank:
            named, plain = "It lives in `src/part1/module1.py:step1`.", "It lives somewhere in the code, they say."
            for what, text in (("that names a function", named), ("that names no code", plain)):
                times = [spent(partial(bank.add, text, title=f"{what} {n}")) for n in range(20)]
                show(f"adding a memory {what}", statistics.median(times))
        judged(project)
        searching(project)
        with_anchors = searching(project)
        for number in range(given.files // 100):
            path = project / f"src/part{number % 20}/module{number}.py"
            path.write_text(
                path.read_text().replace("def step1(value):\n    return value", "def step1(value):\n    return 7")
            )
        show(f"{given.files // 100} files changed", spent(lambda: judged(project)), judged(project))
        show("searching with anchors, nothing changed", with_anchors)
        show(f"searching with anchors, {given.files // 100} files changed", searching(project))
        (project / ".memories" / "anchors.jsonl").unlink()
        show("searching without anchors", searching(project))


if __name__ == "__main__":
    main()
