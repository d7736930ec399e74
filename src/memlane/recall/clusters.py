"""Clusters: groups of memories that say much the same and could be merged. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from memlane.core.model import Memory
from memlane.core.values import dataclass
from memlane.index.columns import Array
from memlane.index.encoders import Encoder
from memlane.index.near import lasting, pairs
from memlane.index.store import Index

PREVIEW = 100  # characters
_AT_ONCE = 500  # memories that are looked at together
KEPT = 0.85  # pairs of this similarity and more are known beforehand


@dataclass(frozen=True, slots=True)
class Cluster:
    """Memories that are alike. `score` is their mean similarity, on a scale that means the same for every encoder."""

    cluster_id: int
    score: float
    reason: str
    memories: tuple[Memory, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "score": self.score,
            "reason": self.reason,
            "memory_count": len(self.memories),
            "memories": [
                {"id": memory.id, "file_path": memory.file, "preview": _preview(memory.text)}
                for memory in self.memories
            ],
        }


def suggest_merges(
    index: Index, *, threshold: float, limit: int, type: str | None, held: Callable[[Memory], object] | None
) -> list[Cluster]:
    """Clusters of memories of one type (None: any), the most alike first, at most `limit`.

    Two memories are linked when their similarity is over the threshold, and a cluster is a connected component. The
    vector of a memory is the mean of its chunks'. Archived and expired memories are left out, and those that are held.
    """
    least = _least_cosine(index.encoder, threshold)
    scale = _scale(index.encoder)
    may = lasting(index, type)
    labels = np.arange(len(may))
    sums, counts = np.zeros(len(may)), np.zeros(len(may), np.int64)
    for found in pairs(index, float(_least_cosine(index.encoder, min(threshold, KEPT)))):
        first, second = found["first"], found["second"]
        wanted = (found["cosine"] > least) & may[first] & may[second]
        if held is not None and np.any(wanted):
            _forbid(index, np.unique((first[wanted], second[wanted])), held, may)
            wanted &= may[first] & may[second]
        first, second, cosines = first[wanted], second[wanted], found["cosine"][wanted]
        if len(first):
            sums += np.bincount(first, np.interp(cosines, *scale), len(may))
            counts += np.bincount(first, minlength=len(may))
            labels = _joined(labels, first, second)
    groups: dict[int, list[int]] = {}
    joined = np.bincount(labels, minlength=len(may)) > 1
    members = np.flatnonzero(joined[labels])
    for number, label in zip(members.tolist(), labels[members].tolist(), strict=True):
        groups.setdefault(label, []).append(number)
    ids = dict(index.rows("SELECT n, id FROM memories")) if len(members) else {}
    clusters = [
        (round(float(sums[group].sum() / counts[group].sum()), 2), sorted(group, key=ids.__getitem__))
        for group in groups.values()
    ]
    clusters.sort(key=lambda cluster: (-cluster[0], ids[cluster[1][0]]))
    best = clusters[: max(limit, 0)]
    memories = _memories(index, [number for _, group in best for number in group])
    reason = f"High vector similarity (> {threshold:g})"
    return [
        Cluster(place, score, reason, tuple(memories[number] for number in group))
        for place, (score, group) in enumerate(best)
    ]


def _forbid(index: Index, numbers: Array, held: Callable[[Memory], object], may: Array) -> None:
    """Take those out of what is allowed that are held back."""
    for number, memory in _memories(index, numbers.tolist()).items():
        may[number] = not held(memory)


def _memories(index: Index, numbers: Sequence[int]) -> dict[int, Memory]:
    found: dict[int, Memory] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        found |= index.memories(numbers[start : start + _AT_ONCE])
    return found


def _joined(labels: Array, first: Array, second: Array) -> Array:
    """The labels after each of these pairs has become one component: the least label of it."""
    while True:
        least = np.minimum(labels[first], labels[second])
        joined = labels.copy()
        np.minimum.at(joined, labels[first], least)
        np.minimum.at(joined, labels[second], least)
        joined = joined[joined]
        if np.array_equal(joined, labels):
            return labels
        labels = joined


def _scale(encoder: Encoder) -> tuple[Array, Array]:
    """Cosines, and the similarity that each means; all knots of every encoder's scale, so interpolation is exact."""
    grid = np.linspace(-1, 1, 2001)
    return grid, np.array([encoder.similarity(float(cosine)) for cosine in grid])


def _least_cosine(encoder: Encoder, threshold: float) -> Any:
    """The greatest cosine whose similarity is not over the threshold. Similarity never falls as the cosine rises."""
    low, high = np.float32(-1), np.float32(1)
    if encoder.similarity(float(low)) > threshold:
        return np.float32(-np.inf)
    if encoder.similarity(float(high)) <= threshold:
        return np.float32(np.inf)
    while low < (middle := (low + high) / np.float32(2)) < high:
        if encoder.similarity(float(middle)) > threshold:
            high = middle
        else:
            low = middle
    return low


def _preview(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= PREVIEW else flat[:PREVIEW] + "..."
