"""How well and how fast encoders find what was asked for, by vectors alone.

    python bench/encoder.py --data FOLDER [--encoder static --encoder onnx:FOLDER ...] [--json FILE]

FOLDER holds locomo-dev.json.gz, longmemeval-dev.json.gz and stsb-dev.tar.gz. Prints a Markdown table.
LoCoMo: turns (speaker and date before the text), each conversation its own collection, categories 1–4; recall@10 and
nDCG@10 on the first (tuned on) and the other half of the conversations. LongMemEval: chunks of sessions in one
collection, a session as near as its best chunk. `static+counts` weighs a query's tokens by the collection's counts.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import resource
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlane.index.encoders import Encoder, StaticEncoder, open_encoder

FILES = ("locomo-dev.json.gz", "longmemeval-dev.json.gz", "stsb-dev.tar.gz")
Opener = Callable[[Sequence[str]], Encoder]  # the texts of a collection → the encoder to use for it
Scores = NDArray[np.float32]


def opener(name: str) -> Opener:
    if name == "static+counts":
        counter = StaticEncoder()
        return lambda texts: StaticEncoder(counter.count_tokens(texts))
    encoder = open_encoder(name)
    return lambda _: encoder


def read_json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def locomo(path: Path, *, plain: bool = False) -> list[tuple[list[str], list[str], list[tuple[str, set[str]]]]]:
    """(turn ids, turn texts, (question, gold ids)) of each conversation; `plain` leaves speaker and date out."""
    found = []
    for sample in read_json(path):
        talk = sample["conversation"]
        ids, texts = [], []
        for number in range(1, 100):
            for turn in talk.get(f"session_{number}") or []:
                ids.append(turn["dia_id"])
                said = turn["text"] + (f" [{turn['blip_caption']}]" if turn.get("blip_caption") else "")
                when = talk[f"session_{number}_date_time"]
                texts.append(said if plain else f"{when} {turn['speaker']}: {said}")
        known = set(ids)
        questions = [(q["question"], set(q["evidence"]) & known) for q in sample["qa"] if q["category"] in (1, 2, 3, 4)]
        found.append((ids, texts, [(question, gold) for question, gold in questions if gold]))
    return found


def longmemeval(path: Path, size: int = 1000) -> tuple[list[str], list[str], list[tuple[str, set[str]]]]:
    """(session id of each chunk, chunks, (question, gold session ids)); chunks are runs of whole turns."""
    ids: list[str] = []
    texts: list[str] = []
    questions, seen = [], set()
    for sample in read_json(path):
        for id, session in zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True):
            if id in seen:
                continue
            seen.add(id)
            chunk = ""
            for turn in session:
                for start in range(0, len(turn["content"]), size):
                    part = turn["content"][start : start + size]
                    if chunk and len(chunk) + len(part) > size:
                        ids.append(id)
                        texts.append(chunk)
                        chunk = ""
                    chunk += part + "\n"
            ids.append(id)
            texts.append(chunk)
        if not sample["question_id"].endswith("_abs"):
            questions.append((sample["question"], set(sample["answer_session_ids"])))
    return ids, texts, questions


def stsb(path: Path, part: str) -> tuple[list[str], list[str], list[float]]:
    with tarfile.open(path) as tar:
        member = tar.extractfile(f"sts-{part}.csv")
        assert member is not None
        rows = list(csv.reader(io.TextIOWrapper(member, "utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[5] for row in rows], [row[6] for row in rows], [float(row[4]) for row in rows]


def ranked(ids: Sequence[str], scores: Scores) -> list[str]:
    """Ids by their best score, each once."""
    return list(dict.fromkeys(ids[at] for at in np.argsort(-scores, kind="stable")))


def ndcg(order: Sequence[str], gold: set[str], cut: int = 10) -> float:
    gain = sum(1 / math.log2(at + 2) for at, id in enumerate(order[:cut]) if id in gold)
    return gain / sum(1 / math.log2(at + 2) for at in range(min(cut, len(gold))))


def recall(order: Sequence[str], gold: set[str], cut: int = 10) -> float:
    return len(gold & set(order[:cut])) / len(gold)


def search(encoder: Encoder, ids: Sequence[str], texts: Sequence[str], queries: Iterable[str]) -> list[list[str]]:
    vectors = encoder.encode_texts(texts)
    return [ranked(ids, vectors @ encoder.encode_query(query)) for query in queries]


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> NDArray[np.float64]:
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[inverse]

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(list(values))


def quality(open_for: Opener, data: Path) -> dict[str, float]:
    result = {}
    for label, plain in (("LoCoMo", False), ("LoCoMo plain", True)):
        scores = []
        for ids, texts, questions in locomo(data / FILES[0], plain=plain):
            orders = search(open_for(texts), ids, texts, (question for question, _ in questions))
            scores.append([(recall(o, gold), ndcg(o, gold)) for o, (_, gold) in zip(orders, questions, strict=True)])
        half = (len(scores) + 1) // 2
        for part, group in (("tuned", scores[:half]), ("held", scores[half:]), ("all", scores)):
            result[f"{label} recall@10 {part}"] = mean(r for talk in group for r, _ in talk)
            result[f"{label} nDCG@10 {part}"] = mean(n for talk in group for _, n in talk)
    ids, texts, asked = longmemeval(data / FILES[1])
    orders = search(open_for(texts), ids, texts, (question for question, _ in asked))
    result["LongMemEval recall_all@5"] = mean(gold <= set(o[:5]) for o, (_, gold) in zip(orders, asked, strict=True))
    result["LongMemEval nDCG@10"] = mean(ndcg(o, gold) for o, (_, gold) in zip(orders, asked, strict=True))
    for part in ("train", "dev"):
        left, right, gold_scores = stsb(data / FILES[2], part)
        encoder = open_for([])
        cosines = (encoder.encode_texts(left) * encoder.encode_texts(right)).sum(1)
        result[f"STS-B {part}"] = spearman(cosines.tolist(), gold_scores)
    return result


def speed(name: str, data: Path) -> dict[str, float]:
    """Short texts a second, CPU and memory of a fresh interpreter that encodes one text."""
    texts = [text for _, talk, _ in locomo(data / FILES[0], plain=True) for text in talk]
    encoder = opener(name)(texts[:100])
    encoder.encode_texts(texts[:100])
    if name.startswith(("onnx", "fastembed")):
        texts = texts[:300]
    start = time.process_time()
    encoder.encode_texts(texts)
    rate = len(texts) / (time.process_time() - start)
    # Linux's own figure: ru_maxrss would count the process that started this one.
    code = (
        "from memlane.index.encoders import open_encoder; from pathlib import Path; "
        f"encoder = open_encoder({name.removesuffix('+counts')!r}); encoder.encode_query('where does the key live?'); "
        "status = Path('/proc/self/status'); "
        "print(status.read_text().partition('VmRSS:')[2].split()[0] if status.exists() else 0)"
    )
    spent, memory = [], 0.0
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        memory = int(run.stdout) / 1024
    return {"texts/s (one core)": rate, "cold start ms CPU": statistics.median(spent) * 1000, "RSS MB": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the development data")
    parser.add_argument("--encoder", action="append", help="a name for open_encoder, or static+counts; repeatable")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    missing = [name for name in FILES if not (options.data / name).is_file()]
    if missing:
        print(f"Skipped: {options.data} has no {', '.join(missing)}.", file=sys.stderr)
        return
    names = options.encoder or ["static", "static+counts"]
    table = {name: {**quality(opener(name), options.data), **speed(name, options.data)} for name in names}
    print(f"| | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for measure in table[names[0]]:
        cells = (f"{value:.3f}" if value <= 1 else f"{value:.0f}" for value in (table[name][measure] for name in names))
        print(f"| {measure} | {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps(table, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
