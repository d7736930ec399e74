"""What asks about a whole bank: CPU and memory of each command, the first time and when nothing has changed.

    python bench/whole.py --data FOLDER [--sizes 20000 100000] [--only stats doctor] [--before SRC]

FOLDER is that of bench/search.py, whose notes these are. Each command runs in a process of its own. "first" begins
with nothing known of the files (the index is there), "unchanged" is the same again, "one changed" after one note was
written anew. With --before, the folder `src` of an earlier memlane, each command runs with that one and this one in
turns, each in a bank of its own, when nothing has changed: the least CPU and the most memory of --turns, and the ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import memlane
from search import paragraphs, write_notes

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMMANDS = {
    "stats": ["stats"],
    "damage": ["doctor", "--only", "damage"],
    "format": ["doctor", "--only", "format"],
    "stale": ["review", "--only", "stale", "--all"],
    "graph": ["links"],
    "links": ["links", "src/auth.py"],
    "list": ["list"],
    "list by tag": ["list", "--tag", "nowhere"],
    "list by date": ["list", "--since", "2024-01-28", "--limit", "20"],
    "fresh": ["review", "--only", "drifted", "--show"],
    "similar": ["review", "--only", "similar"],
    "doctor": ["doctor"],
    "review": ["review"],
    "secrets": ["doctor", "--only", "secrets"],
    "doctor --deep": ["doctor", "--deep"],
}
MAKE = """
import sys, memlane
with memlane.Bank.init(sys.argv[1]) as bank:
    bank.index.refresh(force=True)
    print(f"\\n{len(bank.index.ids()):,} notes, with the index made:\\n", flush=True)
"""
READS_ALL = ("secrets", "doctor --deep")  # by design


def spent(folder: str, words: list[str], src: Path | None = None) -> tuple[float, float]:
    """(CPU seconds, peak MB) of a command, of the memlane in this folder."""
    command = [sys.executable, "-m", "memlane", "--bank", folder, *words]
    process = os.posix_spawn(
        command[0],
        command,
        {**os.environ, "PYTHONPATH": os.fspath(src)} if src else os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)],
    )
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 4, 6):
        sys.exit(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def forget_facts() -> None:
    for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*.facts"):
        path.unlink()


def measure(folder: Path, names: list[str]) -> None:
    note = next((folder / ".memories").rglob("n7.md"))
    print(f"| {'command':14} | first s | MB | unchanged s | MB | one changed s |\n|---|---|---|---|---|---|")
    for name in names:
        forget_facts()
        first = spent(os.fspath(folder), COMMANDS[name])
        if name in READS_ALL:
            print(f"| {name:14} | {first[0]:.2f} | {first[1]:.0f} | | | |", flush=True)
            continue
        again = spent(os.fspath(folder), COMMANDS[name])
        note.write_text(note.read_text() + f"\nAnd one word more: {time.time_ns()}.\n")
        time.sleep(2.1)  # until the file is old enough to be known by its times
        changed = spent(os.fspath(folder), COMMANDS[name])
        figures = f"{first[0]:.2f} | {first[1]:.0f} | {again[0]:.2f} | {again[1]:.0f} | {changed[0]:.2f}"
        print(f"| {name:14} | {figures} |", flush=True)


def compare(folder: Path, names: list[str], before: Path, turns: int) -> None:
    now = Path(memlane.__file__).parent.parent
    banks = {before: folder.with_name(f"{folder.name}-before"), now: folder}
    shutil.copytree(folder / ".memories", banks[before] / ".memories", ignore=shutil.ignore_patterns("indices"))
    env = {**os.environ, "PYTHONPATH": os.fspath(before)}
    subprocess.run([sys.executable, "-c", MAKE, os.fspath(banks[before])], check=True, env=env)
    print("| command        | before s | MB | now s | MB | ratio |\n|---|---|---|---|---|---|")
    for name in names:
        for src, place in banks.items():
            spent(os.fspath(place), COMMANDS[name], src)  # what can be known beforehand is known
        costs: dict[Path, list[tuple[float, float]]] = {before: [], now: []}
        for _ in range(turns):
            for src, place in banks.items():
                costs[src].append(spent(os.fspath(place), COMMANDS[name], src))
        cpu, most = ([pick(one[at] for one in costs[src]) for src in costs] for at, pick in ((0, min), (1, max)))
        figures = f"{cpu[0]:.2f} | {most[0]:.0f} | {cpu[1]:.2f} | {most[1]:.0f} | {cpu[1] / cpu[0]:.2f}"
        print(f"| {name:14} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--bank", type=Path, help="a folder with a bank of such notes, instead of making one")
    parser.add_argument("--before", type=Path, metavar="SRC", help="the sources of an earlier memlane")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    texts = paragraphs(options.data) if options.data and not options.bank else []
    if not texts and not options.bank:
        sys.exit("name a folder with notes-*.tar.gz by --data")
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = os.path.join(place, "state")
        for size in options.sizes if not options.bank else [0]:
            folder = options.bank or Path(place, f"bank{size}")
            if not options.bank:
                write_notes(folder / ".memories", texts, size)
            # in a process of its own: the memory of a child begins with what its parent had
            subprocess.run([sys.executable, "-c", MAKE, os.fspath(folder)], check=True)
            if options.before:
                compare(folder, options.only, options.before, options.turns)
            else:
                measure(folder, options.only)


if __name__ == "__main__":
    main()
