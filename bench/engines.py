"""Three ways to look up words, side by side: memlane's arrays, SQLite FTS5, and tantivy where it is installed.

    python bench/engines.py --data FOLDER [--sizes 10000 100000]

FOLDER is that of bench/search.py and bench/retrieval.py. Each engine gets the same chunks. Prints

quality     nDCG@10 of LoCoMo's turns and LongMemEval's sessions through memlane's fusion, with the engine's scores for
            the words: each engine's own BM25, with its own stemmer, scaled so that its best is as good as ours
query       CPU ms for the words of a query alone: the chunks that have them, at most 1,000 from the others, with scores

and, in a table of their own, because memlane's are of a whole bank and the others' of the words alone,

cold        CPU ms of a new process for its imports, opening the index and a first query
8 writers   CPU ms for each of 80 texts, added one by one by eight processes at once and found by a search of the index
            alone (memlane: also its durable file and the gate), and how many are there in the end
disk        MB: memlane's has vectors, memories and links in it, too
install     MB beside memlane's own needs
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from memlane import Bank
from memlane.index.words import STOP_WORDS
from memlane.recall import search
from memlane.recall.layout import layout_of
from memlane.recall.query import parse
from retrieval import SETS
from search import paragraphs, spent, write_notes
from stages import queries

MOST = 1_000  # chunks that an engine gives for a query
WRITERS, ADDED = 8, 10
Scored = list[tuple[int, float]]


def asked_words(query: str) -> list[str]:
    words = ["".join(letter for letter in word if letter.isalnum()) for word in query.lower().split()]
    return [word for word in words if word and word not in STOP_WORDS] or [word for word in words if word]


# -- the engines: each a folder with an index of (number, text)


class Fts5:
    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "fts.db", timeout=60, isolation_level=None)
        self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS chunks USING fts5(text, tokenize = 'porter unicode61')")

    def fill(self, texts: Sequence[tuple[int, str]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO chunks (rowid, text) VALUES (?, ?)", texts)
        self._db.execute("COMMIT")

    def found(self, query: str) -> Scored:
        words = " OR ".join(f'"{word}"' for word in asked_words(query))
        which = "SELECT rowid, -rank FROM chunks WHERE chunks MATCH ? ORDER BY rank LIMIT ?"
        return self._db.execute(which, (words, MOST)).fetchall() if words else []


class Tantivy:
    def __init__(self, folder: Path) -> None:
        import tantivy

        fields = tantivy.SchemaBuilder()
        fields.add_integer_field("n", stored=True)
        fields.add_text_field("text", stored=False, tokenizer_name="en_stem")
        self._tantivy, self._index = tantivy, tantivy.Index(fields.build(), path=os.fspath(folder))

    def fill(self, texts: Sequence[tuple[int, str]]) -> None:
        while True:
            with suppress(ValueError):  # another process has the only writer
                writer = self._index.writer(15_000_000, 1)
                break
            time.sleep(0.01)
        for number, text in texts:
            writer.add_document(self._tantivy.Document(n=number, text=text))
        writer.commit()
        writer.wait_merging_threads()

    def found(self, query: str) -> Scored:
        self._index.reload()
        searcher = self._index.searcher()
        words = " ".join(asked_words(query))
        if not words:
            return []
        hits = searcher.search(self._index.parse_query(words, ["text"]), MOST).hits
        return [(searcher.doc(address)["n"][0], score) for score, address in hits]


ENGINES: dict[str, Callable[[Path], Any]] = {"FTS5": Fts5, "tantivy": Tantivy}


# -- quality


def replaced_words(engine: Any) -> Callable[..., Any]:
    """memlane's word scores with those of an engine in their place, on the same scale."""
    ours = search._word_scores

    def scores(index: Any, layout: Any, query: Any, beside: Any) -> Any:
        own = ours(index, layout, query, beside)
        found = [(number, score) for number, score in engine.found(query.text) if number < len(layout.row)]
        best = max((score for _, score in found), default=1.0)
        chunks, memories = np.zeros_like(own.chunks), np.zeros_like(own.memories)
        for number, score in found:
            chunks[number] = score / best * own.chunks.max()
            row = layout.row[number]
            memories[row] = max(memories[row], score / best * own.memories.max())
        own.chunks, own.memories = chunks, memories
        return own

    return scores


def quality(data: Path, folder: Path) -> Iterator[tuple[str, str, float]]:
    """(engine, set, nDCG@10)"""
    ours = search._word_scores
    for name in ("LoCoMo turns", "LongMemEval sessions"):
        sums: dict[str, list[float]] = {}
        for at, collection in enumerate(SETS[name](data)):
            place = folder / f"{name}{at}"
            place.mkdir()
            Bank.init(place).close()
            with Bank.open(place) as bank:
                ids: list[str] = []
                for text in collection.texts:
                    memory = bank.add(text.text, created_at=text.created_at, thread=text.thread)
                    ids.append(memory.id)
                bank.search("first")
                texts = bank.index._db.execute("SELECT n, text FROM chunks").fetchall()
                for engine, make in {"memlane": None, **installed()}.items():
                    search._word_scores = replaced_words(filled(make, place / engine, texts)) if make else ours
                    for question in (one for one in collection.questions if one.counts):
                        found = [ids.index(hit.memory.id) for hit in bank.search(question.text, limit=10)]
                        gains = [1 / math.log2(2 + rank) for rank, one in enumerate(found) if one in question.gold]
                        ideal = sum(1 / math.log2(2 + rank) for rank in range(min(len(question.gold), 10)))
                        sums.setdefault(engine, []).append(sum(gains) / ideal)
                search._word_scores = ours
        yield from ((engine, name, statistics.fmean(values)) for engine, values in sums.items())


def installed() -> dict[str, Callable[[Path], Any]]:
    try:
        import tantivy  # noqa: F401
    except ImportError:
        return {"FTS5": Fts5}
    return ENGINES


def filled(make: Callable[[Path], Any], folder: Path, texts: Sequence[tuple[int, str]]) -> Any:
    folder.mkdir()
    engine = make(folder)
    engine.fill(texts)
    return engine


# -- cost


def words_of(bank: Bank) -> Callable[[str], Any]:
    index = bank.index

    def found(query: str) -> Any:
        return search._word_scores(index, layout_of(index, index.columns()), parse(query), search.ALONE)

    return found


def median_ms(call: Callable[[str], Any], asked: Sequence[str]) -> float:
    for query in asked:
        call(query)
    return statistics.median(spent(partial(call, query)) for query in asked) * 1000


def cold(engine: str, folder: Path) -> float:
    """CPU ms of a process that finds something once, beyond one that does nothing."""

    def cpu(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    ways = {
        "memlane": "import sys; from memlane import Bank; Bank.open(sys.argv[1]).search('docker containers')",
        "FTS5": "import sys, sqlite3; sqlite3.connect(sys.argv[1] + '/fts.db').execute(\"SELECT rowid FROM chunks "
        "WHERE chunks MATCH 'docker OR containers' ORDER BY rank LIMIT 5\").fetchall()",
        "tantivy": "import sys, tantivy; index = tantivy.Index.open(sys.argv[1]); searcher = index.searcher(); "
        "[searcher.doc(at) for _, at in searcher.search(index.parse_query('docker containers', ['text']), 5).hits]",
    }
    runs = [cpu("-c", ways[engine], os.fspath(folder)) - cpu("-c", "pass") for _ in range(5)]
    return statistics.median(runs)


def write_some(engine: str, folder: Path, writer: int) -> None:
    """What one of the eight processes does; prints the CPU time of it, once everything is imported and open."""
    texts = {number: f"quokka{writer}x{number} was added by one of eight" for number in range(ADDED)}
    if engine != "memlane":
        opened = ENGINES[engine](folder)
        opened.found("docker")
        start = time.process_time()
        for number, text in texts.items():
            opened.fill([(10_000_000 + writer * ADDED + number, text)])
            assert opened.found(text)
    else:
        bank = Bank.open(folder)
        bank.search("docker")
        start = time.process_time()
        for number, text in texts.items():
            bank.add(text, title=f"w{writer} {number}")
            assert bank.search(f"quokka{writer}x{number}", 1)
    print(time.process_time() - start)


def writers(engine: str, folder: Path) -> tuple[float, int]:
    """CPU ms of an added text, and how many of them are there."""
    command = [sys.executable, __file__, "--write", engine, "--folder", os.fspath(folder), "--writer"]
    running = [subprocess.Popen([*command, str(writer)], stdout=subprocess.PIPE) for writer in range(WRITERS)]
    cpu = sum(float(process.communicate()[0]) for process in running)
    names = [f"quokka{writer}x{number}" for writer in range(WRITERS) for number in range(ADDED)]
    if engine == "memlane":
        with Bank.open(folder) as bank:
            there = sum(any(name in hit.memory.text for hit in bank.search(name, 1)) for name in names)
    else:
        opened = ENGINES[engine](folder)
        there = sum(bool(opened.found(name)) for name in names)
    return cpu * 1000 / len(names), there


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def install_size(engine: str) -> float:
    if engine != "tantivy":
        return 0.0
    import tantivy

    return megabytes(Path(tantivy.__file__).parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--no-quality", action="store_true")
    for hidden in ("--write", "--folder", "--writer"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_some(options.write, Path(options.folder), int(options.writer))
        return
    texts = paragraphs(options.data) if options.data else []
    if not texts:
        sys.exit("name a folder with notes-*.tar.gz by --data")
    asked = queries(texts)
    os.fsync = lambda _: None  # type: ignore[assignment]  # of what is prepared here: the writers are processes of their own
    with tempfile.TemporaryDirectory() as temporary:
        if not options.no_quality:
            print(
                "| nDCG@10 | " + " | ".join(["memlane", *installed()]) + " |\n|---|" + "--:|" * (1 + len(installed()))
            )
            rows: dict[str, list[float]] = {}
            for _, name, value in quality(options.data, Path(temporary)):
                rows.setdefault(name, []).append(value)
            for name, values in rows.items():
                print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)
            print()
        whole = ["| notes | | cold | 8 writers | there of 80 | disk | install |\n|---|---|--:|--:|--:|--:|--:|"]
        names = ["memlane", *installed()]
        print(f"| words of a query | {' | '.join(names)} |\n|---|{'--:|' * len(names)}")
        for size in options.sizes:
            folder = Path(temporary, str(size))
            write_notes(folder / ".memories", texts, size)
            Bank.init(folder).close()
            with Bank.open(folder) as bank:
                bank.search("first")
                chunks = bank.index._db.execute("SELECT n, text FROM chunks").fetchall()
                costs = {"memlane": median_ms(words_of(bank), asked)}
            places = {"memlane": folder}
            for engine, make in installed().items():
                places[engine] = folder / engine
                costs[engine] = median_ms(filled(make, places[engine], chunks).found, asked)
            print(f"| {size:,} notes | {' | '.join(f'{costs[engine]:.2f} ms' for engine in names)} |", flush=True)
            for engine, place in places.items():
                on_disk = megabytes(folder / ".memories" / "indices" if engine == "memlane" else place)
                opened = cold(engine, place)
                each, there = writers(engine, place)
                what = "memlane, the whole bank" if engine == "memlane" else f"{engine}, words alone"
                whole.append(
                    f"| {size:,} | {what} | {opened:.0f} ms | {each:.0f} ms | {there} "
                    f"| {on_disk:.0f} MB | {install_size(engine):.0f} MB |"
                )
        print("", *whole, sep="\n")


if __name__ == "__main__":
    main()
