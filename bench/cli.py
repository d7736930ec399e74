"""CPU time of commands in a cold process, beside a bare interpreter, in banks of several sizes.

    python bench/cli.py [--sizes 1000 10000] [--beside FOLDER]

With `--beside`, the folder `src` of another version, that one is measured in the same turns: its time, then this one's.
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

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

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


def cpu(commands: list[list[str]], folder: str, repeats: int, sides: tuple[str, ...]) -> list[list[float]]:
    """Median CPU milliseconds of each command, with each of these sources, in turns."""
    spent: list[list[list[float]]] = [[[] for _ in sides] for _ in commands]
    for _ in range(repeats):
        for command, times in zip(commands, spent, strict=True):
            for source, found in zip(sides, times, strict=True):
                env = {**os.environ, "PYTHONPATH": source} if source else None
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                nowhere = subprocess.DEVNULL
                subprocess.run(command, cwd=folder, check=True, env=env, stdout=nowhere, stderr=nowhere)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [[statistics.median(found) * 1000 for found in times] for times in spent]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--beside", default="", help="the folder `src` of another version")
    options = parser.parse_args()
    columns: list[list[list[float]]] = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_notes(Path(folder, ".memories"), size)
            with Bank.init(folder) as bank:
                bank.search("release")
            commands = [[sys.executable, "-c", "pass"], *([MEMLANE, *command] for command in COMMANDS)]
            columns.append(cpu(commands, folder, options.repeats, (options.beside, "") if options.beside else ("",)))
    print(f"| command | {' | '.join(f'{size:,} notes' for size in options.sizes)} |")
    print("|---|" + "--:|" * len(columns))
    names = ["python -c pass", *(" ".join(["memlane", *command]) for command in COMMANDS)]
    for name, *times in zip(names, *columns, strict=True):
        cells = (" → ".join(f"{time:.0f}" for time in found) for found in times)
        print(f"| `{name}` | {' | '.join(f'{cell} ms' for cell in cells)} |")


if __name__ == "__main__":
    main()
