"""Clusters: groups of memories that say much the same and could be merged. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from memlane.core.model import Memory
from memlane.core.values import dataclass
from memlane.index.encoders import Encoder
from memlane.index.store import Index

PREVIEW = 100  # characters
_PAIRS = 1 << 22  # pairs of vectors that are compared at once


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
    index: Index, *, threshold: float, limit: int, type: str | None, unseen: Callable[[Memory], bool]
) -> list[Cluster]:
    """Clusters of memories of one type (None: any), the most alike first, at most `limit`.

    Two memories are linked when their similarity is over the threshold, and a cluster is a connected component. The
    vector of a memory is the mean of its chunks'. Archived memories and those that are `unseen` are left out.
    """
    memories = {
        n: memory
        for n, memory in index.every_memory()
        if memory.status != "archived" and (type is None or memory.type == type) and not unseen(memory)
    }
    numbers, vectors = _vectors(index, memories)
    groups: dict[int, list[int]] = {}
    labels, sums, counts = _components(vectors, index.encoder, threshold)
    for at, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(at)
    clusters = []
    for members in groups.values():
        if len(members) > 1:
            alike = sorted((memories[numbers[at]] for at in members), key=lambda memory: memory.id)
            clusters.append((round(float(sums[members].sum() / counts[members].sum()), 2), alike))
    clusters.sort(key=lambda cluster: (-cluster[0], cluster[1][0].id))
    reason = f"High vector similarity (> {threshold:g})"
    return [Cluster(at, score, reason, tuple(alike)) for at, (score, alike) in enumerate(clusters[: max(limit, 0)])]


def _vectors(index: Index, memories: Mapping[int, Memory]) -> tuple[list[int], Any]:
    """The numbers of the memories that have a vector, and those vectors, scaled to length 1."""
    columns = index.columns()
    sums: dict[int, Any] = {}
    stored = index.vectors()
    for chunk in np.flatnonzero(columns.alive):
        memory = int(columns.memory[chunk])
        if memory in memories:
            sums[memory] = sums.get(memory, 0) + stored[chunk].astype(np.float32)
    numbers = [memory for memory, vector in sums.items() if np.any(vector)]
    rows = np.array([sums[memory] for memory in numbers], np.float32).reshape(len(numbers), stored.shape[1])
    return numbers, rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _components(vectors: Any, encoder: Encoder, threshold: float) -> tuple[Any, Any, Any]:
    """For each vector the label of its component, and the sum and number of its similarities to later neighbours."""
    size = len(vectors)
    labels, sums, counts = np.arange(size), np.zeros(size), np.zeros(size, np.int64)
    least = _least_cosine(encoder, threshold)
    grid = np.linspace(-1, 1, 2001)  # includes the knots of every encoder's scale, so interpolation is exact
    scale = np.array([encoder.similarity(float(cosine)) for cosine in grid])
    at_once = max(_PAIRS // max(size, 1), 1)
    for start in range(0, size, at_once):
        cosines = vectors[start : start + at_once] @ vectors[start:].T
        for row, near in enumerate(np.triu(cosines > least, 1)):
            others = np.flatnonzero(near)
            if not len(others):
                continue
            at = start + row
            sums[at], counts[at] = np.interp(cosines[row, others], grid, scale).sum(), len(others)
            joined = labels[start + others]
            if np.any(joined != labels[at]):
                same = np.zeros(size, bool)
                same[joined] = same[labels[at]] = True
                labels[same[labels]] = labels[at]
    return labels, sums, counts


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
