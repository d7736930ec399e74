"""Speed of search at several sizes, beside a plain FTS5 table and, where it is installed, chromadb; in one run.

    python bench/search.py --data FOLDER [--sizes 1000 10000 100000]

FOLDER holds notes-*.tar.gz and vault-*.tar.gz; each of their paragraphs becomes a note of its own, again with another
number when they run out. All times are CPU medians. Each size runs in a process of its own, so that its memory can be
told; chromadb gets memlane's own vectors, because its default model would have to be downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

QUERIES = [
    "remove docker containers",
    "how do I configure the network interface",
    "list files in a directory",
    "python asyncio event loop",
    "database backup every night",
    "what is the difference between merge and rebase",
    "ssh key permissions",
    "plan for the release next week",
]


def paragraphs(data: Path) -> list[str]:
    found = []
    for archive in sorted([*data.glob("notes-*.tar.gz"), *data.glob("vault-*.tar.gz")]):
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.name.endswith(".md") else None
                text = file.read().decode(errors="replace") if file else ""
                found += [part.strip() for part in text.split("\n\n") if 60 < len(part) < 600]
    random.Random(1).shuffle(found)
    return found


def made_up(count: int = 20_000) -> list[str]:
    """Paragraphs of invented words, some of them far more common than others, and now and then the words of a query."""
    dice = random.Random(1)
    parts = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "on")]
    words = ["".join(dice.choices(parts, k=dice.randint(1, 3))) for _ in range(8_000)]
    weights = [1 / (place + 10) for place in range(len(words))]
    asked = [word for query in QUERIES for word in query.split()]
    return [
        " ".join([*dice.choices(words, weights, k=dice.randint(10, 60)), *dice.choices(asked, k=dice.randint(0, 4))])
        for _ in range(count)
    ]


def write_notes(folder: Path, texts: list[str], size: int) -> None:
    for number in range(size):
        place = folder / f"{number // 1000}"
        if number % 1000 == 0:
            place.mkdir(parents=True)
        head = f'---\ncreated_at: "2024-01-{number % 28 + 1:02}T00:00:00Z"\n---\n\n'
        (place / f"n{number}.md").write_text(f"{head}{texts[number % len(texts)]}\n\nref {number}\n")


def spent(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def spent_by_all(call: Callable[[], Any]) -> float:
    """As `spent`, with the processes that helped."""
    before = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    call()
    after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(before, after, strict=True))


def median_ms(call: Callable[[str], Any], repeats: int = 5) -> float:
    for query in QUERIES:
        call(query)
    return statistics.median(spent(partial(call, query)) for _ in range(repeats) for query in QUERIES) * 1000


def peak_memory() -> float:
    """MB. Not getrusage's: that of a child begins with what its parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024


def measure_memlane(folder: str) -> dict[str, float]:
    from memlane import Bank

    bank = Bank.open(folder)
    result = {"open and check": spent(lambda: bank.index.refresh(force=True)) * 1000}
    result["first search"] = spent(lambda: bank.search(QUERIES[0])) * 1000
    result["search"] = median_ms(lambda query: bank.search(query))
    result["memory"] = peak_memory()

    def add(number: int) -> None:
        bank.add(f"A new note {number} about quokkas and wombats.", title=f"new {number}")
        assert bank.search("quokkas wombats", 1)

    result["add and find"] = statistics.median(spent(partial(add, number)) for number in range(15)) * 1000
    return result


def measure_fts5(texts: list[str], size: int) -> float:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize = 'porter')")
    db.executemany("INSERT INTO notes VALUES (?)", ((texts[number % len(texts)],) for number in range(size)))

    def search(query: str) -> Any:
        words = " OR ".join(f'"{word}"' for word in query.split())
        return db.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 5", (words,)).fetchall()

    return median_ms(search)


def measure_chromadb(texts: list[str], size: int) -> float | None:
    try:
        import chromadb
    except ImportError:
        return None
    from memlane.index.encoders import open_encoder

    encoder = open_encoder("static")
    collection = chromadb.EphemeralClient().create_collection(f"notes{size}")
    for start in range(0, size, 2000):
        part = [texts[number % len(texts)] for number in range(start, min(start + 2000, size))]
        names = [str(start + at) for at in range(len(part))]
        collection.add(ids=names, documents=part, embeddings=encoder.encode_texts(part))
    return median_ms(lambda query: collection.query(query_embeddings=[encoder.encode_query(query)], n_results=5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure_memlane(options.measure)))
        return
    texts = paragraphs(options.data) if options.data else []
    if not texts:
        sys.exit("name a folder with notes-*.tar.gz by --data")
    rows = []
    for size in options.sizes:
        from memlane import Bank

        with tempfile.TemporaryDirectory() as folder:
            write_notes(Path(folder, ".memories"), texts, size)
            with Bank.init(folder) as bank:
                indexing = size / spent_by_all(partial(bank.index.refresh, force=True))
            command = [sys.executable, __file__, "--measure", folder]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        chroma = measure_chromadb(texts, size)
        rows.append(
            f"| {size:,} | {indexing:,.0f}/s | {found['open and check']:.0f} ms | {found['first search']:.0f} ms "
            f"| {found['search']:.1f} ms | {found['add and find']:.1f} ms | {found['memory']:.0f} MB "
            f"| {measure_fts5(texts, size):.1f} ms | {'not installed' if chroma is None else f'{chroma:.1f} ms'} |"
        )
    print(
        "| notes | indexing | open and check | first search | search | durable add, found | memory | FTS5 | chromadb |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
