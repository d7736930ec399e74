"""How well search finds what was asked for, through the public API, against plain baselines over the same texts.

    python bench/retrieval.py --data FOLDER [--json FILE] [--encoder NAME]

FOLDER holds locomo-dev.json.gz and longmemeval-dev.json.gz. Prints Markdown tables.

LoCoMo turns: one bank per conversation, one `bank.add` per turn ("Speaker: text [picture]", the session as thread, the
session's date plus a second per turn as created_at). LoCoMo sessions: one `bank.add` per session. LongMemEval: all
sessions in one bank, one `bank.add` each, without ids, since those give the answers away. Then `bank.search(question,
limit=10)`. The fsync of each write is left out, which changes nothing that is measured.
Baselines: SQLite FTS5 (porter) with the words of the question joined by OR; the same without stop words; that with the
date at the beginning of the text; and the encoder's vectors alone (a text is as near as its nearest chunk).
The data is in two halves (LoCoMo: the first three conversations and the other two; LongMemEval: every other question).
Settings were chosen with both in view, for what helps on each: neither half is unseen data.
Totals leave out LoCoMo's category 5 (adversarial) and LongMemEval's abstentions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from memlane import Bank, Refused
from memlane.index.chunks import chunks
from memlane.index.encoders import StaticEncoder, open_encoder
from memlane.index.words import STOP_WORDS

FILES = ("locomo-dev.json.gz", "longmemeval-dev.json.gz")
METRICS = ("recall_any@5", "recall_all@5", "recall@10", "nDCG@10", "MRR")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
TOP = 10
Ranker = Callable[[str], list[int]]


@dataclass
class Text:
    key: str
    text: str
    created_at: datetime
    thread: str | None = None


@dataclass
class Question:
    text: str
    gold: set[int]  # places in the collection's texts
    category: str
    half: int
    counts: bool = True  # in the totals


@dataclass
class Collection:
    """Texts that are searched together, and the questions about them."""

    texts: list[Text]
    questions: list[Question] = field(default_factory=list)


def read_json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def locomo(path: Path, *, sessions: bool) -> Iterator[Collection]:
    for number, sample in enumerate(read_json(path)):
        talk = sample["conversation"]
        found = Collection([])
        for session in range(1, 100):
            turns = talk.get(f"session_{session}") or []
            if not turns:
                continue
            when = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            said = [f"{turn['speaker']}: {turn['text']}{_picture(turn)}" for turn in turns]
            if sessions:
                found.texts.append(Text(f"D{session}", "\n".join(said), when))
                continue
            for at, (turn, text) in enumerate(zip(turns, said, strict=True)):
                found.texts.append(Text(turn["dia_id"], text, when + timedelta(seconds=at), f"session_{session}"))
        places = {text.key: place for place, text in enumerate(found.texts)}
        for question in sample["qa"]:
            evidence = {key.partition(":")[0] if sessions else key for key in question["evidence"]}
            gold = {places[key] for key in evidence if key in places}
            category = question["category"]
            if gold:
                half = 0 if number < 3 else 1
                found.questions.append(Question(question["question"], gold, CATEGORIES[category], half, category != 5))
        yield found


def _picture(turn: dict[str, str]) -> str:
    return f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""


def longmemeval(path: Path) -> Iterator[Collection]:
    found = Collection([])
    places: dict[str, int] = {}
    samples = read_json(path)
    for sample in samples:
        for id, date, session in zip(
            sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
        ):
            if id not in places:
                places[id] = len(found.texts)
                text = "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in session)
                when = datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
                found.texts.append(Text(id, text, when))
    asked = [sample for sample in samples if not sample["question_id"].endswith("_abs")]
    for number, sample in enumerate(asked):
        gold = {places[id] for id in sample["answer_session_ids"]}
        found.questions.append(Question(sample["question"], gold, sample["question_type"], number % 2))
    yield found


SETS: dict[str, Callable[[Path], Iterator[Collection]]] = {
    "LoCoMo turns": lambda data: locomo(data / FILES[0], sessions=False),
    "LoCoMo sessions": lambda data: locomo(data / FILES[0], sessions=True),
    "LongMemEval sessions": lambda data: longmemeval(data / FILES[1]),
}


# -- what is compared


class Memlane:
    """The bank itself."""

    name = "memlane"

    def __init__(self, texts: Sequence[Text], folder: Path, encoder: str) -> None:
        bank = Bank.init(folder)
        if encoder != "static":
            bank.close()
            bank = Bank.open(folder, search__encoder=encoder)
        self._bank = bank
        self._places: dict[str, int] = {}
        self.refused = 0  # what looks like a secret
        for place, text in enumerate(texts):
            try:
                memory = bank.add(text.text, thread=text.thread, created_at=text.created_at)
                self._places[memory.id] = place
            except Refused:
                self.refused += 1
        self._bank.index.refresh(force=True)

    def rank(self, question: str) -> list[int]:
        return [self._places[hit.memory.id] for hit in self._bank.search(question, limit=TOP)]

    def close(self) -> None:
        self._bank.close()


class Fts:
    """SQLite's full-text index."""

    def __init__(self, texts: Sequence[Text], *, stop: bool, dates: bool = False) -> None:
        self._stop = STOP_WORDS if stop else frozenset()
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
        for place, text in enumerate(texts):
            said = f"{text.created_at:%d %B %Y} {text.text}" if dates else text.text
            self._db.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (place, said))

    def rank(self, question: str) -> list[int]:
        words = re.findall(r"\w+", question.lower())
        asked = " OR ".join(f'"{word}"' for word in words if word not in self._stop)
        query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?"
        return [place for (place,) in self._db.execute(query, (asked, TOP))] if asked else []

    def close(self) -> None:
        self._db.close()


class Vectors:
    """The encoder alone."""

    def __init__(self, texts: Sequence[Text], encoder: str) -> None:
        pieces = [(place, chunk.text) for place, text in enumerate(texts) for chunk in chunks(text.text)]
        said = [text for _, text in pieces]
        self._encoder = (
            StaticEncoder(StaticEncoder().count_tokens(said)) if encoder == "static" else open_encoder(encoder)
        )
        self._rows = self._encoder.encode_texts(said)
        self._owners = np.array([place for place, _ in pieces])

    def rank(self, question: str) -> list[int]:
        near = self._rows @ self._encoder.encode_query(question)
        order = self._owners[np.argsort(-near, kind="stable")]
        return list(dict.fromkeys(map(int, order)))[:TOP]

    def close(self) -> None:
        pass


def rankers(encoder: str) -> dict[str, Callable[[Sequence[Text], Path], Any]]:
    return {
        "memlane": lambda texts, folder: Memlane(texts, folder, encoder),
        "FTS5 porter": lambda texts, _: Fts(texts, stop=False),
        "BM25, stop words": lambda texts, _: Fts(texts, stop=True),
        "BM25, stop words, date": lambda texts, _: Fts(texts, stop=True, dates=True),
        "vectors only": lambda texts, _: Vectors(texts, encoder),
    }


# -- measuring


def measures(ranked: Sequence[int], gold: set[int]) -> dict[str, float]:
    hits = [place in gold for place in ranked[:TOP]]
    gain = sum(1 / math.log2(at + 2) for at, hit in enumerate(hits) if hit)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(len(gold), TOP)))
    return {
        "recall_any@5": float(any(hits[:5])),
        "recall_all@5": float(sum(hits[:5]) == len(gold)),
        "recall@10": sum(hits) / len(gold),
        "nDCG@10": gain / ideal,
        "MRR": 1 / (hits.index(True) + 1) if any(hits) else 0.0,
    }


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.fmean(row[name] for row in rows), 4) for name in METRICS} if rows else {}


def run(collections: Sequence[Collection], make: Callable[[Sequence[Text], Path], Any]) -> dict[str, Any]:
    rows: list[tuple[Question, dict[str, float]]] = []
    seconds: list[float] = []
    indexing = 0.0
    for collection in collections:
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            ranker = make(collection.texts, Path(folder))
            indexing += time.process_time() - start
            ranker.rank("warm up")
            for question in collection.questions:
                start = time.process_time()
                ranked = ranker.rank(question.text)
                seconds.append(time.process_time() - start)
                rows.append((question, measures(ranked, question.gold)))
            ranker.close()
    kinds: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for question, row in rows:
        kinds[question.category].append(row)
    cuts = statistics.quantiles(seconds, n=20)
    return {
        "all": mean([row for question, row in rows if question.counts]),
        "first half": mean([row for question, row in rows if question.counts and question.half == 0]),
        "second half": mean([row for question, row in rows if question.counts and question.half == 1]),
        "categories": {kind: {"questions": len(kinds[kind]), **mean(kinds[kind])} for kind in sorted(kinds)},
        "questions": sum(question.counts for question, _ in rows),
        "p50_ms": round(statistics.median(seconds) * 1e3, 3),
        "p95_ms": round(cuts[-1] * 1e3, 3),
        "index_s": round(indexing, 3),
    }


def show(name: str, texts: int, results: dict[str, dict[str, Any]]) -> None:
    questions = next(iter(results.values()))["questions"]
    print(f"\n### {name}: {texts:,} texts, {questions} questions\n")
    print(f"| | {' | '.join(METRICS)} | nDCG@10 of each half | p50 | p95 | adding and indexing |")
    print("|---|" + "--:|" * (len(METRICS) + 4))
    for ranker, result in results.items():
        values = " | ".join(f"{result['all'][metric]:.3f}" for metric in METRICS)
        halves = " / ".join(f"{result[half]['nDCG@10']:.3f}" for half in ("first half", "second half"))
        times = f"{result['p50_ms']:.2f} ms | {result['p95_ms']:.2f} ms | {result['index_s']:.2f} s"
        print(f"| {ranker} | {values} | {halves} | {times} |")
    kinds = list(next(iter(results.values()))["categories"])
    print(f"\nrecall_all@5 / nDCG@10 by category\n\n| | {' | '.join(kinds)} |\n|---|" + "--:|" * len(kinds))
    for ranker, result in results.items():
        cells = (f"{row['recall_all@5']:.3f} / {row['nDCG@10']:.3f}" for row in result["categories"].values())
        print(f"| {ranker} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path, help="write all numbers there, too")
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--set", choices=list(SETS), action="append", help="only this one (may be repeated)")
    given = parser.parse_args()
    missing = [name for name in FILES if not (given.data / name).is_file()]
    if missing:
        print(f"skipped: {given.data} has no {' and no '.join(missing)}")
        return
    os.fsync = lambda _: None  # type: ignore[assignment]
    found: dict[str, Any] = {"encoder": given.encoder}
    print(f"encoder {given.encoder}, Python {sys.version.split()[0]}; times are CPU times")
    for name in given.set or SETS:
        collections = list(SETS[name](given.data))
        found[name] = {ranker: run(collections, make) for ranker, make in rankers(given.encoder).items()}
        show(name, sum(len(collection.texts) for collection in collections), found[name])
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
