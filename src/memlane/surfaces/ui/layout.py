"""Where the nodes of a graph are drawn: linked ones near each other, others apart. Pure arrays → arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Pairs = npt.NDArray[np.int64]

_ROUNDS = 80
_SAMPLES = 12  # other nodes that a node is pushed away from in a round: all of them would be a square
_GOLDEN = np.pi * (3 - np.sqrt(5))


def placed(count: int, edges: Pairs) -> Floats:
    """The places of nodes, for edges as pairs of their numbers: those without an edge are in a ring around the others.

    The same graph is always placed the same.
    """
    places = np.zeros((count, 2), np.float32)
    linked = np.zeros(count, bool)
    linked[edges.ravel()] = True
    inside = np.flatnonzero(linked)
    if len(inside):
        number = np.zeros(count, np.int64)
        number[inside] = np.arange(len(inside))
        places[inside] = _settled(len(inside), number[edges])
    radius = float(np.abs(places).max(initial=0.0)) * 1.1
    apart = np.flatnonzero(~linked)
    spread = np.sqrt(radius**2 + np.arange(1, len(apart) + 1, dtype=np.float32) * 4)
    angle = np.arange(len(apart), dtype=np.float32) * np.float32(_GOLDEN)
    places[apart] = np.stack((spread * np.cos(angle), spread * np.sin(angle)), axis=1)
    return places


def _settled(count: int, edges: Pairs) -> Floats:
    """Nodes that push each other away and are pulled together by their edges, until the steps have become small."""
    random = np.random.default_rng(7)
    size = np.sqrt(count, dtype=np.float32)
    places = random.uniform(-size, size, (count, 2)).astype(np.float32)
    degree = np.bincount(edges.ravel(), minlength=count).astype(np.float32)[:, None]
    source, target = edges[:, 0], edges[:, 1]
    strength = 1 / np.sqrt(degree[source] * degree[target])  # else a tag that everything has would pull all together
    for round_ in range(_ROUNDS):
        moves = places * np.float32(-0.02)
        for _ in range(_SAMPLES):
            away = places - np.roll(places[random.permutation(count)], 1, axis=0)
            moves += away * (np.float32(count / _SAMPLES) / (_squared(away) + 1))
        pull = places[target] - places[source]
        pull *= strength * np.sqrt(_squared(pull))
        for end, sign in ((source, 1), (target, -1)):
            for axis in (0, 1):
                moves[:, axis] += sign * np.bincount(end, pull[:, axis], count).astype(np.float32)
        length = np.sqrt(_squared(moves)) + np.float32(1e-6)
        step = size * np.float32(0.12) * np.float32((1 - round_ / _ROUNDS) ** 1.5) + np.float32(0.01)
        places += moves / length * np.minimum(length, step)
    places -= places.mean(0)
    far = np.sqrt(_squared(places)) + np.float32(1e-6)
    most = np.quantile(far, 0.9)  # what hangs together with little else drifts away: it is brought nearer
    return places * np.where(far > most, (1 + np.log(np.maximum(far / most, 1)) / 3) * most / far, 1)


def _squared(vectors: Floats) -> Floats:
    """The squares of their lengths, as a column."""
    found: Floats = np.einsum("ij,ij->i", vectors, vectors)[:, None]
    return found
