"""What a short memory that stands alone gets from better hits on its subject.

A query has words for the convention that it is about, and none for the other one that belongs to it: "start two
emulators" names the emulators, and not the ports that they are given. Messages of a conversation have neighbours.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from memlane.index.columns import Array
from memlane.recall.layout import Layout, best_of
from memlane.recall.renewal import as_floats

SHARE = 0.3  # of the x of the one that is like it, times their cosine
_OUT = np.float32(-1)
GIVING, GETTING = 3, 200  # how many of the best give, and how many may get


def from_companions(layout: Layout, scores: Array, allowed: Array, found: Array, least: float) -> tuple[Array, Array]:
    """(rows, what each is given) by the best of those that are found by themselves.

    `least` is the cosine of two on the same subject.
    """
    nothing = np.zeros(0, np.intp), np.zeros(0, np.float32)
    rows = best_of(np.where(allowed & layout.alone, scores, _OUT), GETTING, 0.0)
    if not len(rows) or not layout.columns.rows.shape[1]:
        return nothing
    own = scores.take(rows)
    first = np.argsort(-own, kind="stable")[:GIVING]
    first = first[found[rows[first]]]
    if not len(first):
        return nothing
    vectors = as_floats(layout.columns.rows, layout.start[rows])
    near = vectors @ vectors[first].T
    near[first, np.arange(len(first))] = 0
    near[near < least] = 0
    given = SHARE * reduce(np.maximum, (near * own[first]).T)
    helped = np.flatnonzero(given)
    return rows[helped], given[helped]
