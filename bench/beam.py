"""How well search finds the turns that answer a question in long conversations: BEAM, by ability, beside BM25.

    git clone https://github.com/mohammadtavakoli78/BEAM
    python bench/beam.py BEAM/chats/100K [--json FILE]

One bank for each conversation, one `bank.add` for each turn ("role: text", the batch as thread, the date that the batch
is at), then `bank.search(question, limit=10)`. Right are the turns that a question names as its source
(`source_chat_ids`); questions without, and those that have no answer (abstention), are left out. Nothing is answered
and nothing judged, so that no model is needed. A turn that looks like it has a secret in it is refused, and counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from retrieval import METRICS, Collection, Fts, Memlane, Question, Text, run

_TAIL = re.compile(r"\s*->->.*$", re.DOTALL)  # where in its plan the generator was


def numbers(value: Any) -> Iterator[int]:
    """The ids in a question's sources, which are lists, or lists by role."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int):
        yield value


def conversation(folder: Path) -> Collection:
    found, places, when = Collection([]), {}, datetime(2024, 1, 1, tzinfo=UTC)
    for batch in json.loads((folder / "chat.json").read_text(encoding="utf-8")):
        if anchor := batch.get("time_anchor"):
            when = max(when, datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC))
        for turn in (turn for group in batch["turns"] for turn in group):
            if text := _TAIL.sub("", turn["content"]).strip():
                when += timedelta(seconds=1)
                places[turn["id"]] = len(found.texts)
                thread = f"batch {batch['batch_number']}"
                found.texts.append(Text(str(turn["id"]), f"{turn['role']}: {text}", when, thread))
    asked = json.loads((folder / "probing_questions/probing_questions.json").read_text(encoding="utf-8"))
    for ability, questions in asked.items():
        for question in questions if ability != "abstention" else ():
            if gold := {places[id] for id in numbers(question.get("source_chat_ids")) if id in places}:
                found.questions.append(Question(question["question"], gold, ability, 0))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of conversations, such as BEAM/chats/100K")
    parser.add_argument("--json", type=Path, help="write all numbers there, too")
    given = parser.parse_args()
    os.fsync = lambda _: None  # type: ignore[assignment]
    folders = sorted(path.parent for path in given.data.glob("*/chat.json"))
    collections = [conversation(folder) for folder in folders]
    refused: list[int] = []

    def memlane(texts: Any, folder: Path) -> Memlane:
        bank = Memlane(texts, folder, "static")
        refused.append(bank.refused)
        return bank

    results = {
        "memlane": run(collections, memlane),
        "BM25, stop words": run(collections, lambda t, _: Fts(t, stop=True)),
    }
    texts = sum(len(collection.texts) for collection in collections)
    count = results["memlane"]["questions"]
    print(f"{len(collections)} conversations, {texts:,} turns ({sum(refused)} refused), {count} questions\n")
    print(f"| | {' | '.join(METRICS)} |\n|---|" + "--:|" * len(METRICS))
    for name, result in results.items():
        values = " | ".join(f"{result['all'][metric]:.3f}" for metric in METRICS)
        print(f"| {name} | {values} |")
    print("\nnDCG@10 by ability\n\n| | questions | " + " | ".join(results) + " |\n|---|" + "--:|" * (1 + len(results)))
    for ability, row in results["memlane"]["categories"].items():
        cells = " | ".join(f"{result['categories'][ability]['nDCG@10']:.3f}" for result in results.values())
        print(f"| {ability.replace('_', ' ')} | {row['questions']} | {cells} |")
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
