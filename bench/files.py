"""Speed of reading, writing and starting, each beside the plain way to do it, in one run.

    python bench/files.py [--data FOLDER]        FOLDER holds notes-tldr.tar.gz and the like; without it, made-up notes

Prints a Markdown table: medians of repeats, ours and the plain way taken in turns because machines are noisy.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from memlane import Bank, Memory
from memlane.lanes import scan

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

FRONT = b'---\ntype: "fact"\nstatus: "active"\ntags: ["release", "ops"]\ncreated_at: "2025-01-10T10:00:00Z"\n---\n\n'


def side_by_side(ours: Callable[[], object], plain: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of each, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, spent in zip((ours, plain), times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def cpu(code: str, repeats: int = 21) -> float:
    """Median CPU seconds of a fresh interpreter that runs this code."""
    spent = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(spent)


def read_plainly(folder: Path) -> int:
    """Read every note's bytes, and parse front matter with PyYAML's C loader where there is any."""
    count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(place, name), "rb") as file:
                    data = file.read()
                if data.startswith(b"---\n") and (end := data.find(b"\n---", 4)) > 0:
                    yaml.load(data[4:end], Loader=yaml.CSafeLoader)
                count += 1
    return count


def write_plainly(folder: str, name: str, data: bytes) -> None:
    """Temp file, fsync, rename, fsync of the folder: by hand."""
    temp = os.path.join(folder, f"{name}.tmp")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.replace(temp, os.path.join(folder, name))
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def made_up_notes(folder: Path, count: int = 2000) -> None:
    dice = random.Random(1)
    for number in range(count):
        words = " ".join(f"word{dice.randrange(5000)}" for _ in range(100))
        (folder / f"note{number}.md").write_bytes((FRONT if number % 2 else b"") + words.encode())


def bench_reading(name: str, folder: Path, repeats: int) -> tuple[str, ...]:

    def ours() -> int:
        bank = Bank.open(folder, memory__enabled=True, lanes__notes=str(folder))
        return sum(isinstance(item, Memory) for item in scan(bank.notes))

    def plain() -> int:
        return read_plainly(folder)

    mine, theirs = side_by_side(ours, plain, repeats)
    return (
        f"open and read {ours():,} notes ({name})",
        f"{mine * 1000:.0f} ms",
        f"{theirs * 1000:.0f} ms",
        ratio(mine, theirs),
    )


def bench_writing(folder: Path, what: str, guarded: bool, count: int, repeats: int) -> tuple[str, ...]:
    Bank.init(folder)
    words = {} if guarded else {"gate__secrets": "off", "gate__characters": "keep"}
    bank = Bank.open(folder, **words)
    plain_folder = folder / "plain"
    plain_folder.mkdir()
    text = "Deploys go out on Tuesdays. " * 30
    numbers = iter(range(10**9))

    def ours() -> None:
        for _ in range(count):
            answer = bank.notes.create_memory(f"note{next(numbers)}.md", text, ["release"])
            assert answer["status"] == "created"

    def plain() -> None:
        for _ in range(count):
            write_plainly(str(plain_folder), f"note{next(numbers)}.md", FRONT + text.encode())

    mine, theirs = side_by_side(ours, plain, repeats)
    return (
        what,
        f"{mine / count * 1e6:.0f} µs",
        f"{theirs / count * 1e6:.0f} µs",
        ratio(mine, theirs),
    )


def ratio(mine: float, theirs: float) -> str:
    return f"{mine / theirs:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with notes-*.tar.gz and vault-*.tar.gz")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as scratch:
        archives = sorted(options.data.glob("*.tar.gz")) if options.data else []
        archives = [path for path in archives if path.name.startswith(("notes-", "vault-"))]
        if not archives:
            print("no notes-*.tar.gz given with --data: reading made-up notes instead", file=sys.stderr)
            folder = Path(scratch, "made-up")
            folder.mkdir()
            made_up_notes(folder)
            rows.append(bench_reading("made up", folder, options.repeats))
        for archive in archives:
            folder = Path(scratch, archive.name)
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            rows.append(bench_reading(archive.name.removesuffix(".tar.gz"), folder, options.repeats))
        for number, (what, guarded) in enumerate(
            {"durable write of a note, 850 bytes": False, "the same through the gate": True}.items()
        ):
            folder = Path(scratch, f"writing{number}")
            folder.mkdir()
            rows.append(bench_writing(folder, what, guarded, 50, options.repeats))
    bare = cpu("pass")
    for name, code in {
        "`import memlane`": "import memlane",
        "`from memlane import Bank`": "from memlane import Bank",
        "`memlane --version`": "import sys; sys.argv[1:] = ['--version']; from memlane.__main__ import main; main()",
    }.items():
        spent = cpu(code)
        rows.append(
            (
                f"{name}, CPU beyond a bare interpreter",
                f"{(spent - bare) * 1000:.0f} ms",
                f"({bare * 1000:.0f} ms bare)",
                "",
            )
        )
    print("| what | memlane | the plain way | ratio |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
