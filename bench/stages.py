"""Where the time of a warm search goes, stage by stage, and what a filter, a context and a prompt cost beside it.

    python bench/stages.py --data FOLDER [--sizes 600 10000 100000]

FOLDER is that of bench/search.py, whose notes are searched. The queries are runs of three to eight words out of the
notes, each asked once before it counts, but for those that are asked for the first time. All times are CPU medians in
ms; a stage is without the stages in it.

With --before SRC, the `src` folder of another memlane, the two are compared instead, in turns: of each query the least
of some rounds counts, so that what else the machine does hardly matters.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from memlane import Bank
from memlane.bank import Bank as BankClass
from memlane.index import closeness
from memlane.index.store import Index
from memlane.recall import finding, leaving, search
from memlane.recall.layout import Layout
from search import paragraphs, spent, write_notes

QUERIES = 60
ROUNDS = 4
STAGES: tuple[tuple[str, tuple[tuple[Any, str], ...]], ...] = (
    ("is anything new on the disk", ((Index, "refresh"),)),
    ("what the query says", ((search, "parse"), (search, "spans"))),
    ("filters", ((Layout, "passing"),)),
    ("words: postings read", ((Index, "postings"),)),
    ("words: scored", ((search, "_word_scores"),)),
    ("vector of the query", ((search, "_query_vector"),)),
    ("vectors compared", ((search, "_cosines"),)),
    ("closer look at 30", ((search, "_looked_at_closely"), (closeness, "look"), (Index, "passages"))),
    ("put together", ((search, "_score_parts"), (search, "best_of"))),
    ("the best, as memories", ((search, "_best_rows"), (Index, "memories"), (search, "_renewals"))),
    ("hits and why", ((search, "_search"), (search, "_best_piece"))),
    ("secrets blanked", ((leaving, "cleaned"),)),
    ("all the rest", ((finding, "found"), (BankClass, "search"))),
)


class Clock:
    """CPU time by stage: the time within a stage's functions, without that of the stages they call."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def watch(self, stage: str, place: Any, name: str) -> Callable[[], None]:
        function = getattr(place, name)

        def timed(*args: Any, **more: Any) -> Any:
            self._inner.append(0.0)
            start = time.process_time()
            try:
                return function(*args, **more)
            finally:
                whole = time.process_time() - start
                self.spent[stage] += whole - self._inner.pop()
                self._inner[-1] += whole

        setattr(place, name, timed)
        return partial(setattr, place, name, function)


def queries(texts: Sequence[str]) -> list[str]:
    dice, found = random.Random(5), list[str]()
    while len(found) < 2 * QUERIES:
        words = re.findall(r"[A-Za-z][\w'-]+", dice.choice(texts))
        size = dice.randint(3, 8)
        if len(words) > 12:
            start = dice.randrange(len(words) - size)
            found.append(" ".join(words[start : start + size]))
    return found


def median(call: Callable[[str], Any], asked: Sequence[str], repeats: int = 3) -> float:
    for query in asked:
        call(query)
    return statistics.median(spent(partial(call, query)) for _ in range(repeats) for query in asked) * 1000


def calls(bank: Bank) -> dict[str, Callable[[str], Any]]:
    return {
        "bank.search": bank.search,
        "… with lane and since": lambda query: bank.search(query, lane="notes", since="2024-01-10"),
        "bank.context": bank.context,
        "bank.for_prompt": bank.for_prompt,
    }


def measured(folder: str, asked: Sequence[str]) -> dict[str, float]:
    with Bank.open(folder) as bank:
        known, new = asked[:QUERIES], asked[QUERIES:]
        found = {name: median(call, known) for name, call in calls(bank).items()}
        found["bank.search, never asked before"] = statistics.median(spent(partial(bank.search, q)) for q in new) * 1000
        clock = Clock()
        ends = [clock.watch(stage, *function) for stage, functions in STAGES for function in functions]
        stages: defaultdict[str, list[float]] = defaultdict(list)
        for query in [*known] * 3:
            clock.spent.clear()
            bank.search(query)
            for stage, _ in STAGES:
                stages[stage].append(clock.spent[stage] * 1000)
        for end in ends:
            end()
    return found | {stage: statistics.median(times) for stage, times in stages.items()}


def answer_times(folder: str) -> None:
    """Read queries and then names of calls, a line each, and print what each query took."""
    with Bank.open(folder) as bank:
        asked = json.loads(sys.stdin.readline())
        for name in sys.stdin:
            call = calls(bank)[name.rstrip("\n")]
            print(json.dumps([spent(partial(call, query)) for query in asked]), flush=True)


def compared(folder: str, asked: Sequence[str], sources: Sequence[str]) -> dict[str, str]:
    command = [sys.executable, __file__, "--answer", folder]
    found = {}
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    env={**os.environ, "PYTHONPATH": source},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for source in sources
        ]
        for one in both:
            print(json.dumps(asked), file=one.stdin, flush=True)
        with Bank.open(folder) as bank:
            names = list(calls(bank))
        for name in names:
            times: list[list[list[float]]] = [[], []]
            for _ in range(1 + ROUNDS):
                for one, rounds in zip(both, times, strict=True):
                    print(name, file=one.stdin, flush=True)
                    assert one.stdout
                    rounds.append(json.loads(one.stdout.readline()))
            before, now = (statistics.median(map(min, zip(*rounds[1:], strict=True))) * 1000 for rounds in times)
            found[name] = f"{before:.2f} → {now:.2f} ({now / before:.2f})"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[600, 10_000, 100_000])
    parser.add_argument("--folder", type=Path, help="where banks of an earlier run are, or are kept")
    parser.add_argument("--before", type=Path, metavar="SRC", help="compare with the memlane of this folder")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer_times(options.answer)
        return
    texts = paragraphs(options.data) if options.data else []
    if not texts:
        sys.exit("name a folder with notes-*.tar.gz by --data")
    asked = queries(texts)
    columns: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in options.sizes:
            folder = (options.folder or Path(temporary)) / f"b{size}"
            if not folder.exists():
                write_notes(folder / ".memories", texts, size)
                Bank.init(folder).close()
            if options.before:
                own = Path(__file__).resolve().parents[1] / "src"
                columns.append(
                    compared(os.fspath(folder), asked[:QUERIES], [os.fspath(options.before), os.fspath(own)])
                )
            else:
                times = measured(os.fspath(folder), asked)
                columns.append({name: f"{value:.2f}" for name, value in times.items()})
    print("| | " + " | ".join(f"{size:,} notes" for size in options.sizes) + " |")
    print("|---|" + "--:|" * len(columns))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


if __name__ == "__main__":
    main()
