"""Which of two memories on the same thing says how it is now: the newer one, if it tells of a change.

"Cover letters: 350 words" and, later, "Cover letters need 600 words, the former 350 were too few": somebody who asks
gets the later one first, though the earlier has more of his words. Nobody has to link the two, and nothing is hidden: a
wrong guess costs the older memory one place. `memlane.disk.replaced` is for what somebody has said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from memlane.core.model import Memory
from memlane.gate.changes import tells_of_change
from memlane.index.columns import Array
from memlane.index.words import terms

LOOKED_AT = 10  # of the best hits
SAME_SUBJECT = 0.30  # the least cosine of two memories on the same subject, by the built-in table
MODEL_SAME_SUBJECT = 0.50  # the same by a model, to which all texts of a project are more alike
LEAST_EVIDENCE = 1.3  # rare words in common
LONGEST = 1_000  # characters: a page is about more than one thing
LEAST_SCORE = 0.3  # of the older one's: else the newer one is about something else


def same_subject(encoder: str) -> float:
    """The least cosine, by this encoder, of two memories on the same subject."""
    return SAME_SUBJECT if encoder in ("static", "hash") else MODEL_SAME_SUBJECT


def renewals(
    found: Sequence[tuple[int, Memory]],
    created: Array,
    vectors: Callable[[], Array],
    evidence: Callable[[set[str]], float],
    least: float,
) -> Iterator[tuple[int, int]]:
    """(row of a memory, row of a newer one that renews it), the oldest first.

    Pages and the messages of a conversation never do, nor are they renewed.

    `vectors` gives those of the rows of `found`, of which two on one subject have a cosine of `least`; `evidence` says
    how rare some terms are, all in all.
    """
    short = [at for at, (_, memory) in enumerate(found) if memory.thread is None and len(memory.text) <= LONGEST]
    order = sorted(short, key=lambda at: float(created[found[at][0]]))
    changes = [at for at in order if tells_of_change(found[at][1].text)]
    if not changes:
        return
    rows = vectors()
    near = rows @ rows.T
    known: dict[int, set[str]] = {}

    def terms_of(at: int) -> set[str]:
        if at not in known:
            known[at] = set(terms(found[at][1].text))
        return known[at]

    for old in order:
        for new in changes:
            later = created[found[old][0]] < created[found[new][0]]
            near_enough = later and near[old, new] >= least
            if near_enough and evidence(terms_of(old) & terms_of(new)) >= LEAST_EVIDENCE:
                yield found[old][0], found[new][0]


def as_floats(rows: Array, chunks: Array) -> Array:
    """Vectors of length 1 of some chunks from the index's rows, which may be bytes."""
    taken: Array = rows.take(chunks, axis=0)
    if taken.dtype == np.float32:  # they have that length
        return taken
    vectors = taken.astype(np.float32)
    vectors /= np.maximum(np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True)), 1e-9)
    return vectors
