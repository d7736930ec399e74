"""Make the distiller's weights (src/memlane/capture/distil/weights.json) from transcripts with known facts.

    python scripts/distiller.py FOLDER ... [--out FILE]

Each FOLDER holds NAME.jsonl and NAME.keep.json (what is worth keeping of it: `fact`, `must`, `lines`). Needs NumPy.

Method: logistic regression over the signs of every passage. A passage is an example of what to keep when it says a
fact: it stands on a line of the evidence and has three quarters of the fact's key terms, or has all of them. There are
few transcripts, so each weight is held to what PRIOR says of its sign, which is a judgement, not a measurement; signs
that do not occur keep it. Prints what is found when each transcript is left out in turn. Weights over the built-in word
vectors were tried in the same way and made no difference that eight transcripts can show, so there are none; nor did an
intercept per transcript.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlane.capture.distil.candidates import chosen
from memlane.capture.distil.reading import Seen, read, seen
from memlane.capture.distil.scorer import WEIGHTS, Weights, score
from memlane.capture.distil.session import Said, Session

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from distil import says

HOLD = 300.0  # how strongly a weight is held to its prior
POSITIVE = 3.0  # how much an example of what to keep counts
THRESHOLD = 0.66
PRIOR = {
    # who speaks, and where
    "from:user": 0.5, "from:answer": 1.5, "from:aside": -0.5, "interrupted:user": 0.5, "whole:user": 0.3,
    "failed:assistant": 0.4, "last:assistant": 0.2, "asked:assistant": 0.2, "long message": -0.2,
    "under a report": -0.5, "under a finding": 0.4, "list": -0.2,
    "section:errors": 1.2, "section:problems": 1.0, "section:decisions": 1.0, "section:users": 0.3,
    "section:concepts": 0.1, "section:pending": -1.3, "section:request": -1.2,
    # what the user says
    "correction": 0.4, "lasting": 0.8, "order:user": 0.3, "choice:user": 0.3, "cause:user": 0.3, "contrast:user": 0.2,
    "limit:user": 0.2, "we:user": 0.2, "moment:user": -0.5, "go-ahead": -1.0, "task": -1.0, "question": -0.6,
    # what others say
    "cause:other": 0.5, "limit:other": 0.5, "contrast:other": 0.4, "must:other": 0.3, "trouble:other": 0.2,
    "choice:other": 0.2, "being:other": 0.2, "doubt:other": -1.0,
    "i:other": -0.3, "you:other": -0.2, "thinks aloud": -0.6, "review note": -0.7, "reports a change": -0.5,
    "line numbers": -0.4, "incapable:other": 0.5, "moment:other": -0.8, "admits:other": 0.4, "says what to do": -0.8,
    "entry of a list of changes": -1.0, "reports without a reason": -2.0, "idle:other": -0.3, "idle:user": -0.1,
    "document": -0.4, "offer:other": -0.6, "intent:other": -1.0, "asks within": -0.8,
    # how
    "leans": -0.7, "brief": -0.8, "lead only": -1.0, "names": 0.3,
    "code": 0.2, "length": 0.4,
}  # fmt: skip


class Example(NamedTuple):
    """A transcript: its passages in order, which of them say which facts, and how many facts there are."""

    session: Session
    passages: list[tuple[int, Seen]]
    facts: list[frozenset[str]]
    known: int


def example(path: Path) -> Example:
    truth = json.loads(path.read_text("utf-8"))
    session = Session()
    spoken = enumerate(read(str(path.with_name(truth["transcript"])), session))
    passages = [(order, one) for order, said in spoken if isinstance(said, Said) for one in seen(said)]
    facts = [
        frozenset(fact["id"] for fact in truth["keep"] if says(one.passage.text, one.said.lines, fact))
        for _, one in passages
    ]
    return Example(session, passages, facts, len(truth["keep"]))


def trained(examples: list[Example]) -> Weights:
    names = sorted({name for each in examples for _, one in each.passages for name in one.signs} | PRIOR.keys())
    rows = np.vstack([_matrix(each, names) for each in examples])
    kept = np.array([float(bool(facts)) for each in examples for facts in each.facts])
    counts = np.concatenate([np.full(len(each.facts), len(each.facts) ** -0.5) for each in examples])
    counts = counts * np.where(kept > 0, POSITIVE, 1)
    counts /= counts.mean()
    middle, spread = rows.mean(0), rows.std(0) + 0.1
    scaled = np.hstack([(rows - middle) / spread, np.ones((len(rows), 1))])
    held = np.append(np.full(len(names), HOLD), 1e-6)
    prior = np.append(np.array([PRIOR.get(name, 0.0) for name in names]) * spread, 0)
    found = prior.copy()
    for _ in range(10):  # Newton's method
        sure = 1 / (1 + np.exp(-scaled @ found))
        slope = scaled.T @ (counts * (sure - kept)) + held * (found - prior)
        bend = (scaled * (counts * sure * (1 - sure))[:, None]).T @ scaled + np.diag(held)
        found -= np.linalg.solve(bend, slope)
    signs = found[:-1] / spread
    bias = float(found[-1] - middle @ signs)
    return Weights({name: round(float(w), 3) for name, w in zip(names, signs, strict=True)}, round(bias, 3), THRESHOLD)


def _matrix(each: Example, names: list[str]) -> NDArray[np.float64]:
    place = {name: at for at, name in enumerate(names)}
    rows = np.zeros((len(each.passages), len(names)))
    for row, (_, one) in zip(rows, each.passages, strict=True):
        for name, value in one.signs.items():
            if name in place:
                row[place[name]] = value
    return rows


def tested(each: Example, model: Weights) -> tuple[int, int, int]:
    """How many facts are found in a transcript, by how many candidates, and how many of these say one."""
    scored = [(order, one, score(one.signs, model)) for order, one in each.passages]
    index = {id(one): at for at, (_, one) in enumerate(each.passages)}
    facts = [each.facts[index[id(one)]] for _, one, _ in chosen(scored, each.session, model.threshold)]
    return len(frozenset().union(*facts)), len(facts), sum(map(bool, facts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    paths = sorted(path for folder in arguments.folder for path in folder.glob("*.keep.json"))
    examples = [example(path) for path in paths]
    print("each transcript left out in turn: facts found, candidates, of these saying a fact")
    total = np.zeros(4, int)
    for at, (path, each) in enumerate(zip(paths, examples, strict=True)):
        found, items, good = tested(each, trained(examples[:at] + examples[at + 1 :]))
        total += (found, each.known, items, good)
        print(f"  {path.name.removesuffix('.keep.json'):28} {found} of {each.known}, {items}, {good}")
    found, known, items, good = total
    print(f"  all: {found} of {known} facts ({found / known:.0%}), {good} of {items} say a fact ({good / items:.0%})")
    model = trained(examples)
    arguments.out.write_text(json.dumps(model._asdict(), indent=1, sort_keys=True) + "\n", "utf-8")
    print(f"{len(model.signs)} weights written to {arguments.out}")


if __name__ == "__main__":
    main()
