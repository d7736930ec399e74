"""memlane beside what people would take instead, in one run: one table.

    python bench/others.py [--data FOLDER] [--notes 3000] [--only NAME ...]

SQLite FTS5 (words), tantivy with vectors (by the ranks of both), chroma (vectors) and mem0 with `infer=False` in a
local qdrant (vectors). All vectors are memlane's built-in ones, since the models of the others would have to be
downloaded; no engine is asked to call a model. What is not installed is named and left out; nothing is installed here.

index       CPU ms for each note: memlane's are files on the disk already, as somebody's notes are; the others are given
            texts, in one go where they can take them so
search      CPU ms of a search for ten, warm
cold        CPU ms of a new process that imports, opens and searches once, beyond one that only runs this file
add         CPU ms until one more text is stored and found; memlane's is durable and has passed the gate
memory      MB of the process that searches
nDCG@10     on LoCoMo's turns, where FOLDER has locomo-dev.json.gz (see bench/retrieval.py): `--conversations` of them

FOLDER also has the notes of bench/search.py; without it they are made up. Every engine runs in processes of its own,
one at a time. In brackets: how many times as much as memlane's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.update(ANONYMIZED_TELEMETRY="False", MEM0_TELEMETRY="False", POSTHOG_DISABLED="1", DO_NOT_TRACK="1")

from search import QUERIES, made_up, median_ms, paragraphs, peak_memory, spent, spent_by_all

TOP = 10
COLUMNS = ("index", "search", "cold", "add", "memory")


class Memlane:
    needs = ""

    def __init__(self, folder: Path) -> None:
        from memlane import Bank

        self._folder = folder
        self._added: dict[str, int] = {}
        if not (folder / "memlane.toml").exists():
            Bank.init(folder).close()
        self._bank = Bank.open(folder)

    def prepare(self, texts: Sequence[str]) -> None:
        """What comes before the index: notes on the disk."""
        for number, text in enumerate(texts):
            place = self._folder / f".memories/{number // 1000}/n{number}.md"
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"{text}\n")

    def fill(self, texts: Sequence[str]) -> None:
        self._bank.index.refresh(force=True)

    def add(self, number: int, text: str) -> None:
        self._added[self._bank.add(text).id] = number

    def add_turn(self, number: int, turn: Any) -> None:
        """As an agent would, with the time and the session that it was said in."""
        memory = self._bank.add(turn.text, created_at=turn.created_at, thread=turn.thread)
        self._added[memory.id] = number

    def found(self, query: str) -> list[int]:
        ids = (hit.memory.id for hit in self._bank.search(query, limit=TOP))
        return [self._added[id] if id in self._added else int(id.rpartition("/n")[2]) for id in ids]


class Fts5:
    needs = ""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "notes.db", isolation_level=None)
        self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS notes USING fts5(text, tokenize = 'porter unicode61')")

    def fill(self, texts: Sequence[str]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO notes (rowid, text) VALUES (?, ?)", enumerate(texts))
        self._db.execute("COMMIT")

    def add(self, number: int, text: str) -> None:
        self._db.execute("INSERT INTO notes (rowid, text) VALUES (?, ?)", (number, text))

    def found(self, query: str) -> list[int]:
        words = ["".join(filter(str.isalnum, word)) for word in query.split()]
        either = " OR ".join(f'"{word}"' for word in words if word)
        rows = self._db.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT ?", (either, TOP))
        return [number for (number,) in rows]


class TantivyAndVectors:
    needs = "tantivy"

    def __init__(self, folder: Path) -> None:
        import numpy as np
        import tantivy

        from memlane.index.encoders import open_encoder

        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("n", stored=True)
        schema.add_text_field("text", stored=False, tokenizer_name="en_stem")
        self._np, self._tantivy, self._encoder = np, tantivy, open_encoder("static")
        self._file, words = folder / "vectors.npy", folder / "words"
        words.mkdir(exist_ok=True)
        self._index = tantivy.Index(schema.build(), path=os.fspath(words))
        self._vectors = np.load(self._file) if self._file.exists() else np.zeros((0, self._encoder.dim), np.float32)

    def fill(self, texts: Sequence[str]) -> None:
        writer = self._index.writer(50_000_000, 1)
        for number, text in enumerate(texts, len(self._vectors)):
            writer.add_document(self._tantivy.Document(n=number, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._vectors = self._np.vstack([self._vectors, self._encoder.encode_texts(list(texts))])
        self._np.save(self._file, self._vectors)
        self._index.reload()

    def add(self, number: int, text: str) -> None:
        self.fill([text])

    def found(self, query: str) -> list[int]:
        searcher = self._index.searcher()
        words = " ".join("".join(filter(str.isalnum, word)) for word in query.split())
        hits = searcher.search(self._index.parse_query(words, ["text"]), 5 * TOP).hits
        by_word = [searcher.doc(address)["n"][0] for _, address in hits]
        near = self._vectors @ self._np.asarray(self._encoder.encode_query(query), self._np.float32)
        by_vector = self._np.argsort(-near)[: 5 * TOP].tolist()
        scores: dict[int, float] = {}
        for ranking in (by_word, by_vector):
            for rank, number in enumerate(ranking):
                scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
        return sorted(scores, key=lambda number: -scores[number])[:TOP]


class Chroma:
    needs = "chromadb"

    def __init__(self, folder: Path) -> None:
        import chromadb

        from memlane.index.encoders import open_encoder

        self._encoder = open_encoder("static")
        client = chromadb.PersistentClient(os.fspath(folder))
        self._notes = client.get_or_create_collection("notes", metadata={"hnsw:space": "cosine"})

    def fill(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), 2_000):
            some = list(texts[start : start + 2_000])
            names = [str(number) for number in range(start, start + len(some))]
            self._notes.add(ids=names, documents=some, embeddings=self._encoder.encode_texts(some))

    def add(self, number: int, text: str) -> None:
        self._notes.add(ids=[str(number)], documents=[text], embeddings=self._encoder.encode_texts([text]))

    def found(self, query: str) -> list[int]:
        answer = self._notes.query(query_embeddings=[self._encoder.encode_query(query)], n_results=TOP)
        return [int(name) for name in answer["ids"][0]]


class Mem0:
    needs = "mem0"

    def __init__(self, folder: Path) -> None:
        os.environ["MEM0_DIR"] = os.fspath(folder / "state")
        from mem0 import Memory

        from memlane.index.encoders import open_encoder

        encoder = open_encoder("static")
        nobody = {"provider": "openai", "config": {"api_key": "none: it is never called"}}
        qdrant = {"path": os.fspath(folder / "qdrant"), "embedding_model_dims": encoder.dim, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "embedder": nobody,
                "llm": nobody,
                "history_db_path": os.fspath(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _OurVectors(encoder)

    def fill(self, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts):
            self.add(number, text)

    def add(self, number: int, text: str) -> None:
        self._memory.add(text, user_id="bench", metadata={"n": number}, infer=False)

    def found(self, query: str) -> list[int]:
        answer = self._memory.search(query, filters={"user_id": "bench"}, top_k=TOP)
        return [hit["metadata"]["n"] for hit in answer["results"]]


class _OurVectors:
    """mem0's interface of an embedder."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self.config = type("Config", (), {"embedding_dims": encoder.dim})

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        found = self._encoder.encode_query(text) if memory_action == "search" else self._encoder.encode_texts([text])[0]
        return [float(value) for value in found]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


ENGINES: dict[str, Callable[[Path], Any]] = {
    "memlane": Memlane,
    "SQLite FTS5": Fts5,
    "tantivy + vectors": TantivyAndVectors,
    "chroma": Chroma,
    "mem0, infer=False": Mem0,
}


# -- what a process of its own does


def filled(engine: str, folder: Path, texts: Sequence[str]) -> dict[str, float]:
    opened = ENGINES[engine](folder)
    if hasattr(opened, "prepare"):
        opened.prepare(texts)
    return {"index": spent_by_all(partial(opened.fill, texts)) * 1000 / len(texts)}


def searched(engine: str, folder: Path, size: int) -> dict[str, float]:
    opened = ENGINES[engine](folder)
    result = {"search": median_ms(opened.found), "memory": peak_memory()}

    def add(number: int) -> None:
        opened.add(number, f"Note {number} tells of quokkas, wombats and the number {number * 7919}.")
        assert number in opened.found(f"quokkas wombats {number * 7919}"), number

    result["add"] = statistics.median(spent(partial(add, size + number)) for number in range(15)) * 1000
    return result


def quality(engine: str, folder: Path, data: Path, conversations: int) -> dict[str, float]:
    from retrieval import SETS

    scores = []
    os.fsync = lambda _: None  # type: ignore[assignment]  # changes nothing that is measured
    for at, collection in enumerate(islice(SETS["LoCoMo turns"](data), conversations)):
        place = folder / str(at)
        place.mkdir()
        opened = ENGINES[engine](place)
        if engine == "memlane":
            for number, turn in enumerate(collection.texts):
                opened.add_turn(number, turn)
        else:
            opened.fill([turn.text for turn in collection.texts])
        for question in (one for one in collection.questions if one.counts):
            gains = [
                1 / math.log2(2 + rank) for rank, one in enumerate(opened.found(question.text)) if one in question.gold
            ]
            ideal = sum(1 / math.log2(2 + rank) for rank in range(min(len(question.gold), TOP)))
            scores.append(sum(gains) / ideal)
    return {"nDCG@10": statistics.fmean(scores)}


def once(engine: str, folder: Path) -> dict[str, float]:
    ENGINES[engine](folder).found(QUERIES[0])
    return {}


# -- the table


def cpu(*arguments: str) -> tuple[float, str]:
    """The CPU ms of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, done.stdout


def measured(engine: str, options: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        given = ["--notes", str(options.notes), "--conversations", str(options.conversations)]
        given += ["--data", os.fspath(options.data)] if options.data else []
        place = Path(temporary, "notes")
        place.mkdir()
        command = [__file__, *given, "--engine", engine, "--folder", os.fspath(place), "--step"]
        found |= json.loads(cpu(*command, "fill")[1].splitlines()[-1])
        bare = [cpu(*command, "nothing")[0] for _ in range(3)]
        found["cold"] = min(cpu(*command, "once")[0] for _ in range(3)) - min(bare)
        found |= json.loads(cpu(*command, "search")[1].splitlines()[-1])
        if options.data and (options.data / "locomo-dev.json.gz").exists() and options.conversations:
            found |= json.loads(cpu(*command, "quality")[1].splitlines()[-1])
    return found


def step(options: argparse.Namespace) -> dict[str, float]:
    folder = Path(options.folder)
    if options.step == "nothing":
        return {}
    if options.step == "quality":
        return quality(options.engine, folder, options.data, options.conversations)
    if options.step == "once":
        return once(options.engine, folder)
    if options.step == "search":
        return searched(options.engine, folder, options.notes)
    texts = paragraphs(options.data) if options.data else made_up()
    return filled(options.engine, folder, [texts[number % len(texts)] for number in range(options.notes)])


def cell(name: str, value: float | None, ours: float | None) -> str:
    if value is None:
        return "-"
    unit = " MB" if name == "memory" else " ms"
    return f"{value:,.{0 if value >= 100 else 2 if value < 10 else 1}f}{unit}" + (
        f" ({value / ours:.2g}x)" if ours else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--notes", type=int, default=3_000)
    parser.add_argument("--conversations", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=ENGINES, default=list(ENGINES))
    for hidden in ("--engine", "--folder", "--step"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(step(options)))
        return
    print(f"| {options.notes:,} notes | {' | '.join(COLUMNS)} | nDCG@10 |\n|---|{'--:|' * (len(COLUMNS) + 1)}")
    ours: dict[str, float] = {}
    missing = []
    for engine in options.only:
        if (needs := ENGINES[engine].needs) and find_spec(needs) is None:  # type: ignore[attr-defined]
            missing.append(f"{engine} is not installed: docs/benchmarks.md says how to have it beside memlane.")
            continue
        found = measured(engine, options)
        ours = ours or (found if engine == "memlane" else {})
        other = engine != "memlane"
        cells = [cell(name, found.get(name), ours.get(name) if other else None) for name in COLUMNS]
        ranked = f"{found['nDCG@10']:.3f}" if "nDCG@10" in found else "-"
        print(f"| {engine} | {' | '.join(cells)} | {ranked} |", flush=True)
    print(*("", *missing) if missing else (), sep="\n", end="\n" if missing else "")


if __name__ == "__main__":
    main()
