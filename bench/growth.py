"""How a bank grows: building the index, searching, adding and starting at several sizes, each in a process of its own.

    python bench/growth.py --data FOLDER [--sizes 10000 100000 300000] [--paragraphs 2] [--place FOLDER]

FOLDER holds notes-*.tar.gz and vault-*.tar.gz; notes are made of their paragraphs as in bench/search.py, --paragraphs
of them put together anew for each note: 640 are about 100 KB, so that 10,000 such notes are a bank of 1 GB. The bank is
made in a folder below --place (default: the system's own for temporary files) and deleted afterwards: a million notes
need 12 GB there for a while. Times are CPU medians, except where they say "wall": the building, which uses other
processes as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from search import QUERIES, median_ms, paragraphs, peak_memory, spent

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

HEAD = (
    "| notes | text | index | built in (wall) | CPU, notes/s | peak memory, building | first search | memory "
    "| search | with a lane | add | add, found | list | memory | doctor | memory |"
)


def write_notes(folder: Path, texts: list[str], size: int, count: int) -> int:
    """Notes of so many paragraphs each, a thousand in a folder; the bytes of them all."""
    dice, total = random.Random(2), 0
    for number in range(size):
        place = folder / f"{number // 1000}"
        if number % 1000 == 0:
            place.mkdir(parents=True)
        body = "\n\n".join(dice.choices(texts, k=count))
        head = f'---\ncreated_at: "20{number % 20 + 10}-01-{number % 28 + 1:02}T00:00:00Z"\n---\n\n'
        total += (place / f"n{number}.md").write_text(f"{head}{body}\n\nref {number}\n")
    return total


def build(folder: str) -> dict[str, float]:
    from memlane import Bank

    began = time.monotonic()
    with Bank.open(folder) as bank:
        bank.index.refresh(force=True)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "wall": time.monotonic() - began,
        "cpu": sum(one.ru_utime + one.ru_stime for one in used),
        "peak": peak_memory(),
        "helper": used[1].ru_maxrss / 1024,
    }


def search(folder: str) -> dict[str, float]:
    from memlane import Bank

    bank = Bank.open(folder)
    result = {"first": spent(lambda: bank.search(QUERIES[0])) * 1000}
    result["search"] = median_ms(lambda query: bank.search(query))
    result["lane"] = median_ms(lambda query: bank.search(query, lane="notes"))
    result["memory"] = peak_memory()

    def add(number: int, also_found: bool = False) -> None:
        bank.add(f"A new note {number} about quokkas and wombats.", title=f"new {number} {also_found}")
        if also_found:
            bank.search("quokkas wombats", 1)

    result["add"] = statistics.median(spent(partial(add, number)) for number in range(15)) * 1000
    result["found"] = statistics.median(spent(partial(add, number, True)) for number in range(15)) * 1000
    return result


def newest(folder: str) -> dict[str, float]:
    from memlane import Bank

    with Bank.open(folder) as bank:
        return {"cpu": spent(lambda: bank.list(limit=20)) * 1000, "memory": peak_memory()}


def doctor(folder: str) -> dict[str, float]:
    from memlane.care.doctor import examine

    return {"cpu": spent(lambda: examine(folder)), "memory": peak_memory()}


def measured(what: str, folder: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, f"--{what}", folder], stdout=-1, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def row(texts: list[str], size: int, count: int, place: str | None) -> str:
    from memlane import Bank

    with tempfile.TemporaryDirectory(dir=place) as folder:
        text = write_notes(Path(folder, ".memories"), texts, size, count)
        Bank.init(folder).close()
        built, found, first, checked = (measured(what, folder) for what in MEASURES)
        index = os.path.getsize(Path(folder, ".memories/indices/index.db"))
    return (
        f"| {size:,} | {text / 1e6:,.0f} MB | {index / 1e6:,.0f} MB | {built['wall']:,.0f} s "
        f"| {size / built['cpu']:,.0f} | {built['peak']:.0f} MB + {built['helper']:.0f} MB | {found['first']:,.0f} ms "
        f"| {found['memory']:,.0f} MB | {found['search']:.1f} ms | {found['lane']:.1f} ms | {found['add']:.1f} ms "
        f"| {found['found']:.1f} ms | {first['cpu']:.0f} ms | {first['memory']:.0f} MB | {checked['cpu']:.1f} s "
        f"| {checked['memory']:.0f} MB |"
    )


MEASURES = {"build": build, "search": search, "newest": newest, "doctor": doctor}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 300_000])
    parser.add_argument("--place")
    parser.add_argument("--paragraphs", type=int, default=2)
    for name in MEASURES:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, measure in MEASURES.items():
        if folder := getattr(options, name):
            print(json.dumps(measure(folder)))
            return
    texts = paragraphs(options.data) if options.data else []
    if not texts:
        sys.exit("name a folder with notes-*.tar.gz by --data")
    print(f"{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}")
    for size in options.sizes:
        print(row(texts, size, options.paragraphs, options.place), flush=True)


if __name__ == "__main__":
    main()
