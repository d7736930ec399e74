"""The probability that a query is about a memory at all, from evidence that is not relative to the other memories.

    p  =  1 / (1 + exp(-(a + b cosine + c evidence)))

`cosine` and `evidence` are those of `search.py`: how near the vectors are, and how many rare words both have. The
numbers were fitted to real questions about real project memories, those without an answer included;
`bench/relevance.py` fits them anew and prints how often a memory of each probability was the one that was meant.
"""

from __future__ import annotations

import numpy as np

from memlane.core.values import NamedTuple
from memlane.index.columns import Array


class _Fit(NamedTuple):
    start: float
    cosine: float
    evidence: float


_FITS = {"static": _Fit(-4.6, 5.17, 1.81), "hash": _Fit(-4.6, 5.17, 1.81), "none": _Fit(-3.6, 0.0, 2.2)}
_MODEL = _Fit(-5.53, 7.96, 1.88)  # fitted with arctic-embed-s; cosines are without what all texts have in common


def probabilities(encoder: str, cosine: Array, evidence: Array) -> Array:
    """How likely the query is about each memory, 0 … 1."""
    fit = _FITS.get(encoder, _MODEL)
    result: Array = 1 / (1 + np.exp(-(fit.start + fit.cosine * cosine + fit.evidence * evidence)))
    return result
