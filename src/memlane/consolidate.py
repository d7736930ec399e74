"""Which memories say the same: groups that could be merged. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from memlane.index.store import Index
from memlane.model import Memory

PREVIEW = 100
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Cluster:
    """Memories that are alike. `score` is their mean similarity, on a scale that is the same for every encoder."""

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


def suggest_merges(index: Index, *, threshold: float, limit: int, type: str | None) -> list[Cluster]:
    """Groups of memories of one type (None: any) whose similarity is over the threshold, the most alike first.

    A memory's vector is the mean of its chunks'. Two memories are neighbours when they are more alike than the
    threshold; a cluster is what hangs together.
    """
    memories = {n: memory for n, memory in index.every_memory() if type is None or memory.type == type}
    numbers, vectors = _vectors(index, memories)
    edges: dict[int, dict[int, float]] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        cosines = vectors[start : start + _AT_ONCE] @ vectors.T
        least = _least_cosine(index, threshold)
        for row, column in zip(*np.nonzero(cosines > least), strict=True):
            a, b = start + int(row), int(column)
            if a < b:
                similarity = index.encoder.similarity(float(cosines[row, column]))
                if similarity > threshold:
                    edges.setdefault(a, {})[b] = edges.setdefault(b, {})[a] = similarity
    clusters = []
    for members in _components(edges):
        weights = [weight for a in members for b, weight in edges[a].items() if a < b]
        found = sorted((memories[numbers[at]] for at in members), key=lambda memory: memory.id)
        clusters.append((round(sum(weights) / len(weights), 2), found))
    clusters.sort(key=lambda cluster: (-cluster[0], cluster[1][0].id))
    reason = f"High vector similarity (> {threshold:g})"
    return [Cluster(at, score, reason, tuple(found)) for at, (score, found) in enumerate(clusters[: max(limit, 0)])]


def _vectors(index: Index, memories: Iterable[int]) -> tuple[list[int], Any]:
    """Numbers of the memories that have a vector, and the vectors, of length 1."""
    columns = index.columns()
    sums: dict[int, Any] = {}
    wanted = set(memories)
    stored = index.vectors()
    for chunk in np.flatnonzero(columns.alive):
        memory = int(columns.memory[chunk])
        if memory in wanted:
            sums[memory] = sums.get(memory, 0) + stored[chunk].astype(np.float32)
    numbers = [memory for memory, vector in sums.items() if np.any(vector)]
    rows = np.array([sums[memory] for memory in numbers], np.float32).reshape(len(numbers), -1)
    return numbers, rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _least_cosine(index: Index, threshold: float) -> float:
    """A cosine below which no similarity is over the threshold: saves asking for each of many pairs."""
    grid = np.linspace(-1, 1, 201)
    enough = [cosine for cosine in grid if index.encoder.similarity(float(cosine)) > threshold]
    return float(enough[0]) - 0.01 if enough else 2.0


def _components(edges: dict[int, dict[int, float]]) -> list[list[int]]:
    groups, seen = [], set()
    for start in sorted(edges):
        if start in seen:
            continue
        group, pending = [], [start]
        seen.add(start)
        while pending:
            at = pending.pop()
            group.append(at)
            for other in edges[at]:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        groups.append(sorted(group))
    return groups


def _preview(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= PREVIEW else flat[:PREVIEW] + "..."
