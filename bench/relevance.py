"""Where memory should stay silent: the relevance of memories for prompts that they are about, and for others.

    python bench/relevance.py --data FOLDER

FOLDER holds locomo-dev.json.gz and longmemeval-dev.json.gz. Each bank (two LoCoMo conversations as turns, one as
sessions, all LongMemEval sessions) is asked its own questions, the questions of the other data set, and prompts of
everyday programming work that no memory in it is about. For several cut-offs the table says how many questions with
the right memory among the best five keep one, how many memories they get, and how many of the other prompts stay
without any. `memlane.recall.blocks.RELEVANT` is the cut-off that hooks use.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from memlane import Bank
from memlane.recall.blocks import RELEVANT
from retrieval import FILES, Collection, locomo, longmemeval

WORK = """
fix the failing test|run the linter and fix all errors|add type hints to utils.py|why does the build fail on windows?
refactor this function to be shorter|write a README for the project|rename the variable foo to bar everywhere
explain what this regex does|make the button blue|update dependencies to the latest version
add logging to the request handler|the page is blank after login, please investigate
create a migration that adds an email column to users|can you optimise the SQL query in reports.py?
convert this class to a dataclass|write unit tests for the parser|what does this error mean: KeyError: 'id'
increase the timeout to 30 seconds|remove dead code in src/legacy|implement pagination for the /orders endpoint
"""
CUTS = (0.0, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
TOP = 5
Found = list[tuple[float, bool]]  # (relevance, whether it is what was asked for) of the best five


def answers(bank: Bank, places: dict[str, int], asked: Iterator[tuple[str, set[int]]]) -> Iterator[Found]:
    for question, gold in asked:
        hits = bank.search(question, limit=TOP)
        yield [(hit.why["relevance"], places[hit.memory.id] in gold) for hit in hits]


def filled(collection: Collection, folder: Path) -> tuple[Bank, dict[str, int]]:
    bank = Bank.init(folder)
    places = {}
    for place, text in enumerate(collection.texts):
        places[bank.add(text.text, thread=text.thread, created_at=text.created_at).id] = place
    return bank, places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    turns = list(locomo(data / FILES[0], sessions=False))
    sessions = list(locomo(data / FILES[0], sessions=True))
    (long,) = longmemeval(data / FILES[1])
    others = {"LoCoMo": [q.text for q in long.questions], "LongMemEval": [q.text for c in turns for q in c.questions]}
    work = [line.strip() for line in WORK.replace("|", "\n").splitlines() if line.strip()]
    banks = [("LoCoMo", turns[0]), ("LoCoMo", turns[3]), ("LoCoMo", sessions[0]), ("LongMemEval", long)]
    own: list[Found] = []
    foreign: list[Found] = []
    working: list[Found] = []
    for name, collection in banks:
        with tempfile.TemporaryDirectory() as folder:
            bank, places = filled(collection, Path(folder))
            picked = random.Random(0).sample(others[name], 140)
            own += answers(bank, places, ((q.text, q.gold) for q in collection.questions[:200] if q.counts))
            foreign += answers(bank, places, ((text, set()) for text in picked))
            working += answers(bank, places, ((text, set()) for text in work))
            bank.close()
    print("| cut-off | own questions that keep a right memory | memories each | other questions without any | work |")
    print("|---|---|---|---|---|")
    right = [found for found in own if any(gold for _, gold in found)]
    for cut in CUTS:
        kept = sum(any(gold and relevance >= cut for relevance, gold in found) for found in right) / len(right)
        shown = sum(relevance >= cut for found in own for relevance, _ in found) / len(own)
        silent, idle = (
            sum(all(relevance < cut for relevance, _ in found) for found in group) / len(group)
            for group in (foreign, working)
        )
        mark = " (used)" if cut == RELEVANT else ""
        print(f"| {cut:.2f}{mark} | {kept:.0%} | {shown:.1f} of {TOP} | {silent:.0%} | {idle:.0%} |")


if __name__ == "__main__":
    main()
