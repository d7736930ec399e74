"""How likely a passage is to be worth keeping: a linear model over its signs. The weights are in `weights.json`, made
by `scripts/distiller.py`; a sign that no training transcript has keeps the weight that was set by hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

WEIGHTS = Path(__file__).with_name("weights.json")


class Weights(NamedTuple):
    signs: Mapping[str, float]
    bias: float
    threshold: float  # of the probability, for a candidate


@cache
def weights() -> Weights:
    """The weights that memlane ships."""
    return Weights(**json.loads(WEIGHTS.read_text("utf-8")))


def score(signs: Mapping[str, float], model: Weights) -> float:
    """The probability, 0…1, that a passage with these signs is worth keeping."""
    total = model.bias + sum(model.signs.get(name, 0.0) * value for name, value in signs.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def reasons(signs: Mapping[str, float], model: Weights) -> dict[str, float]:
    """What each sign added to the score or took from it, the weightiest first."""
    parts = {name: round(model.signs.get(name, 0.0) * value, 2) for name, value in signs.items()}
    return {name: part for name, part in sorted(parts.items(), key=lambda item: -abs(item[1])) if part}
