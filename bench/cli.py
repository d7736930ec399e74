"""CPU time of commands in a cold process, beside a bare interpreter, in banks of several sizes.

    python bench/cli.py [--sizes 1000 10000]

Prints a Markdown table: medians of user + system time. The index is built before; the notes are made up.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from memlane import Bank

MEMLANE = os.path.join(os.path.dirname(sys.executable), "memlane")
COMMANDS: tuple[list[str], ...] = (
    ["--version"],
    [],
    ["list", "-n", "10"],
    ["get", "notes:0/n7"],
    ["search", "release on tuesday"],
    ["context", "when is the release"],
)


def write_notes(folder: Path, size: int) -> None:
    dice = random.Random(1)
    syllables = "ba ce di fo gu ha ji lo mu na pe ro sa ti vo".split()
    words = ["".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(3000)]
    words += "release tuesday deploy meeting plan review".split() * 20
    for number in range(size):
        place = folder / str(number // 1000)
        place.mkdir(parents=True, exist_ok=True)
        text = " ".join(dice.choices(words, k=60))
        head = f'---\ncreated_at: "2024-01-{number % 28 + 1:02}T00:00:00Z"\ntags: ["{words[number % 40]}"]\n---\n\n'
        (place / f"n{number}.md").write_text(f"{head}# {words[number % 3000]} {number}\n\n{text}\n")


def cpu(command: list[str], folder: str, repeats: int) -> float:
    """Median CPU milliseconds."""
    spent = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(spent) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    columns: list[list[float]] = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_notes(Path(folder, ".memories"), size)
            with Bank.init(folder) as bank:
                bank.search("release")
            commands = [[sys.executable, "-c", "pass"], *([MEMLANE, *command] for command in COMMANDS)]
            columns.append([cpu(command, folder, options.repeats) for command in commands])
    print(f"| command | {' | '.join(f'{size:,} notes' for size in options.sizes)} |")
    print("|---|" + "--:|" * len(columns))
    names = ["python -c pass", *(" ".join(["memlane", *command]) for command in COMMANDS)]
    for name, *times in zip(names, *columns, strict=True):
        print(f"| `{name}` | {' | '.join(f'{time:.0f} ms' for time in times)} |")


if __name__ == "__main__":
    main()
