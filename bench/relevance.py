"""Does a prompt get the memories that help, and silence when none does? And what each constant of the search is for.

    python bench/relevance.py --data FOLDER [--encoder NAME] [--fit] [--short]

FOLDER holds helpful/dev/recall.jsonl (memories of real projects with the prompts of developers, those that no memory
helps with included) and, for the questions of other people's conversations, locomo-dev.json.gz and
longmemeval-dev.json.gz. Prints

1. what changes when a constant of the search does: recall@5 over the project memories, all and by kind, "newer" is how
   often the newer of two memories that contradict each other stands first, in how many of the projects recall@5 is
   worse and in how many better than as it is, and nDCG@10 over LoCoMo and LongMemEval;
2. how often a memory of each probability was the one that was meant;
3. for several cut-offs, what prompts are given unasked (`Bank.for_prompt`); and what those of each project are given
   at the cut-off that is best for the other projects.

With --fit, also fits the numbers of `memlane.recall.relevance` anew. The clock stands at the day of each prompt.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memlane import Bank
from memlane.core.dates import utc_now
from memlane.core.errors import MemlaneError
from memlane.recall import companions, finding, prompts, query, renewal, search
from memlane.recall.blocks import RELEVANT
from retrieval import FILES, Collection, locomo, longmemeval, measures

HELPFUL = "helpful/dev/recall.jsonl"
CUTS = (0.05, 0.07, 0.09, 0.11, 0.15, 0.2)
SILENT = 0.94  # what a cut-off that is chosen on some of the projects must reach there
BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
NO_CLOSER_LOOK = ((search, "SENTENCE", 0.0), (search, "NEAR_WORDS", 0.0), (search, "MODEL_NEAR_WORDS", 0.0))
ABLATIONS: tuple[tuple[str, tuple[tuple[Any, str, Any], ...]], ...] = (
    ("as it is", ()),
    ("no vectors", ((search, "VECTORS", 0.0), (search, "MODEL_VECTORS", 0.0))),
    ("vectors 0.1", ((search, "VECTORS", 0.1), (search, "MODEL_VECTORS", 0.1))),
    ("vectors 0.35", ((search, "VECTORS", 0.35), (search, "MODEL_VECTORS", 0.35))),
    ("least cosine 0.2", ((search, "LEAST_COSINE", 0.2),)),
    ("no closer look", NO_CLOSER_LOOK),
    ("closer look: no sentences", NO_CLOSER_LOOK[:1]),
    ("closer look: no words", NO_CLOSER_LOOK[1:]),
    ("closer look at 15", ((search, "CLOSER", 15),)),
    ("closer look at 60", ((search, "CLOSER", 60),)),
    ("no companions", ((companions, "SHARE", 0.0),)),
    ("companions 0.15", ((companions, "SHARE", 0.15),)),
    ("companions 0.5", ((companions, "SHARE", 0.5),)),
    ("companions of the best alone", ((companions, "GIVING", 1),)),
    ("companions of the best five", ((companions, "GIVING", 5),)),
    ("times do not count", ((search, "DATED", 1.0),)),
    ("misspelt words as they are", ((search, "nearest", lambda *_: ""),)),
    ("no other languages", ((query, "english", lambda _: []),)),
    ("no renewals", ((renewal, "LOOKED_AT", 0),)),
    ("the same subject from 0.1 less", ((renewal, "SAME_SUBJECT", 0.2), (renewal, "MODEL_SAME_SUBJECT", 0.4))),
    ("the same subject from 0.1 more", ((renewal, "SAME_SUBJECT", 0.4), (renewal, "MODEL_SAME_SUBJECT", 0.6))),
)


class Project:
    """A project's memories in a bank, and the prompts that were written about them."""

    def __init__(self, line: str, folder: Path, encoder: str) -> None:
        data = json.loads(line)
        self.name, self.prompts = data["bank"], data["queries"]
        self.bank = made(folder, encoder)
        self.ids: dict[str, str] = {}
        for memory in data["memories"]:
            try:
                self.ids[self.bank.add(memory["text"], created_at=memory["created_at"]).id] = memory["id"]
            except MemlaneError as error:  # refused by the gate
                print(f"{memory['id']}: {error}")


def made(folder: Path, encoder: str) -> Bank:
    folder.mkdir()
    Bank.init(folder).close()
    return Bank.open(folder, search__encoder=encoder)


def plain(prompt: str) -> str:
    return re.sub(r'"|(?<!\S)-+', " ", prompt)


@contextmanager
def clock(now: str) -> Iterator[None]:
    moment = datetime.fromisoformat(now).replace(hour=12, tzinfo=UTC)
    finding.utc_now = prompts.utc_now = lambda: moment  # type: ignore[attr-defined]
    try:
        yield
    finally:
        finding.utc_now = prompts.utc_now = utc_now  # type: ignore[attr-defined]


@contextmanager
def changed(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


# -- the search


def recall(projects: Sequence[Project]) -> dict[str, float]:
    """Per cent: recall@5 over all prompts with an answer, by kind and by project; how often the newer stands first."""
    rows: defaultdict[str, list[float]] = defaultdict(list)
    for project in projects:
        for prompt in project.prompts:
            if not prompt["gold"]:
                continue
            with clock(prompt["now"]):
                hits = project.bank.search(plain(prompt["query"]), limit=10)
            found = [project.ids[hit.memory.id] for hit in hits]
            gold = set(prompt["gold"])
            part = len(gold & set(found[:5])) / len(gold)
            for name in ("all", prompt["kind"], project.name):
                rows[name].append(part)
            if old := prompt.get("old"):
                newer, older = (min((found.index(id) for id in ids if id in found), default=99) for ids in (gold, old))
                rows["newer"].append(float(newer < older))
    return {kind: 100 * statistics.fmean(values) for kind, values in rows.items()}


def ablations(projects: Sequence[Project], chats: Callable[[], list[str]], some: Sequence[Any]) -> None:
    kinds = ("all", "paraphrase", "task", "symptom", "temporal", "other-language", "newer")
    heads = (*kinds, "projects worse / better", "LoCoMo turns", "LoCoMo sessions", "LongMemEval")
    print(f"\n| | {' | '.join(heads)} |\n|---|" + "--:|" * len(heads))
    before: dict[str, float] = {}
    for name, changes in some:
        with changed(changes):
            found = recall(projects)
            before = before or found
            gains = [found[project.name] - before[project.name] for project in projects]
            by_project = f"{sum(gain < 0 for gain in gains)} / {sum(gain > 0 for gain in gains)}"
            cells = (*(f"{found[kind]:.0f}" for kind in kinds), by_project, *chats())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def chat_banks(data: Path, folder: Path, encoder: str) -> Callable[[], list[str]]:
    """A function that gives the nDCG@10 of each set of conversations, "-" where the data is missing."""
    sets: list[list[tuple[Bank, dict[str, int], Collection]]] = []
    readers: tuple[Callable[[], Iterator[Collection]], ...] = (
        lambda: locomo(data / FILES[0], sessions=False),
        lambda: locomo(data / FILES[0], sessions=True),
        lambda: longmemeval(data / FILES[1]),
    )
    for number, read in enumerate(readers):
        sets.append([])
        for at, collection in enumerate(read() if all((data / name).is_file() for name in FILES) else ()):
            bank = made(folder / f"chat{number}-{at}", encoder)
            places = {
                bank.add(text.text, thread=text.thread, created_at=text.created_at).id: place
                for place, text in enumerate(collection.texts)
            }
            sets[-1].append((bank, places, collection))

    def scores() -> list[str]:
        cells = []
        for members in sets:
            values = [
                measures([places[hit.memory.id] for hit in bank.search(question.text, limit=10)], question.gold)[
                    "nDCG@10"
                ]
                for bank, places, collection in members
                for question in collection.questions
                if question.counts
            ]
            cells.append(f"{statistics.fmean(values):.3f}" if values else "-")
        return cells

    return scores


# -- the probability


def evidence(projects: Sequence[Project]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(cosine and evidence, probability, whether it was meant) of the ten best memories for each prompt."""
    rows, said, meant = [], [], []
    for project in projects:
        for prompt in project.prompts:
            with clock(prompt["now"]):
                hits = project.bank.search(plain(prompt["query"]), limit=10)
            for hit in hits:
                rows.append((hit.why["cosine"], hit.why["evidence"]))
                said.append(hit.relevance)
                meant.append(project.ids[hit.memory.id] in prompt["gold"])
    return np.array(rows), np.array(said), np.array(meant, float)


def reliability(said: np.ndarray, meant: np.ndarray) -> None:
    print("\n| probability | memories | said | meant |\n|---|--:|--:|--:|")
    for low, high in pairwise(BINS):
        inside = (said >= low) & (said < high)
        if inside.any():
            print(
                f"| {low:.2f} to {high:.2f} | {inside.sum()} | {said[inside].mean():.2f} | {meant[inside].mean():.2f} |"
            )


def fitted(rows: np.ndarray, meant: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's method: the start, and the weights of cosine and evidence."""
    inputs = np.c_[np.ones(len(rows)), rows]
    weights = np.zeros(inputs.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs * (p * (1 - p))[:, None]).T @ inputs + 1e-3 * np.eye(len(weights))
        weights -= np.linalg.solve(curve, inputs.T @ (p - meant))
    return weights


# -- what prompts are given


class Given(NamedTuple):
    """What a prompt was given at one cut-off."""

    kind: str
    right: bool
    tokens: int


def given(projects: Sequence[Project], cut: float) -> dict[str, list[Given]]:
    """What each prompt is given, by project."""
    found: dict[str, list[Given]] = {}
    with changed(((prompts, "RELEVANT", cut),)):
        for project in projects:
            found[project.name] = []
            for prompt in project.prompts:
                with clock(prompt["now"]):
                    block = project.bank.for_prompt(prompt["query"])
                right = any(project.ids[memory.id] in prompt["gold"] for memory in block.memories)
                found[project.name].append(Given(prompt["kind"], right, block.tokens))
    return found


def shares(some: Sequence[Given]) -> dict[str, float]:
    asked = [one for one in some if one.kind != "none"]
    return {
        "useful": statistics.fmean(one.right for one in asked),
        "task": statistics.fmean(one.right for one in asked if one.kind == "task"),
        "wrong": statistics.fmean(bool(one.tokens) and not one.right for one in asked),
        "silent": statistics.fmean(not one.tokens for one in some if one.kind == "none"),
        "tokens": statistics.fmean(one.tokens for one in some),
    }


def injections(projects: Sequence[Project]) -> None:
    print("\n| cut-off | useful | on tasks | only wrong ones | silent when nothing helps | tokens per prompt |")
    print("|---|" + "--:|" * 5)

    def row(name: str, some: Sequence[Given]) -> None:
        found = shares(some)
        cells = (f"{100 * found[cell]:.0f} %" for cell in ("useful", "task", "wrong", "silent"))
        print(f"| {name} | {' | '.join(cells)} | {found['tokens']:.0f} |", flush=True)

    table = {cut: given(projects, cut) for cut in CUTS}
    for cut, found in table.items():
        used = " (used)" if math.isclose(cut, RELEVANT) else ""
        row(f"{cut}{used}", [one for some in found.values() for one in some])
    unseen: list[Given] = []
    for left_out in table[CUTS[0]]:

        def elsewhere(cut: float, left_out: str = left_out) -> tuple[bool, float]:
            others = shares([one for name, some in table[cut].items() if name != left_out for one in some])
            return others["silent"] >= SILENT, others["useful"]

        unseen += table[max(CUTS, key=elsewhere)][left_out]
    row(f"chosen on the other projects, {100 * SILENT:.0f} % silent there", unseen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--short", action="store_true", help="without what changes when a constant does")
    given = parser.parse_args()
    if not (given.data / HELPFUL).is_file():
        print(f"skipped: {given.data} has no {HELPFUL}")
        return
    os.fsync = lambda _: None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for variable in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = str(folder / variable)
        lines = (given.data / HELPFUL).read_text("utf-8").splitlines()
        projects = [Project(line, folder / f"project{at}", given.encoder) for at, line in enumerate(lines)]
        asked = sum(len(project.prompts) for project in projects)
        print(f"encoder {given.encoder}, {len(projects)} projects, {asked} prompts")
        ablations(projects, chat_banks(given.data, folder, given.encoder), ABLATIONS[: 1 if given.short else None])
        rows, said, meant = evidence(projects)
        reliability(said, meant)
        if given.fit:
            print("fitted:", fitted(rows, meant).round(2).tolist())
        injections(projects)


if __name__ == "__main__":
    main()
