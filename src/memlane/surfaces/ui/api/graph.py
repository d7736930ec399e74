"""The graph of links and tags, with the places of its nodes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memlane.bank import Bank
from memlane.surfaces.ui.asking import Asked, Clean, Question
from memlane.surfaces.ui.layout import Floats, placed

MOST = 30_000  # nodes: the most linked ones, where there are more
_TAG, _GHOST = "tag", "file"  # what a node is that is no memory


def graph(bank: Bank, asked: Asked) -> Clean:
    """Nodes as columns, edges as pairs of their numbers. A node's kind is the lane of a memory, `tag` or `file`."""
    found = bank.graph()
    nodes, total = found["nodes"], len(found["nodes"])
    number = {node["id"]: at for at, node in enumerate(nodes)}
    edges = np.array([(number[edge["source"]], number[edge["target"]]) for edge in found["edges"]], np.int64)
    edges = np.unique(edges.reshape(-1, 2), axis=0)
    if total > MOST:
        kept = np.sort(np.argsort(-np.bincount(edges.ravel(), minlength=total), kind="stable")[:MOST])
        nodes = [nodes[at] for at in kept]
        anew = np.full(total, -1)
        anew[kept] = np.arange(MOST)
        edges = anew[edges]
        edges = edges[(edges >= 0).all(1)]
    places = _placed(len(nodes), edges.tobytes())
    drawn = {
        "total": total,
        "ids": [node["id"] for node in nodes],
        "titles": [node["title"] or node["id"] for node in nodes],
        "kinds": [_kind(node) for node in nodes],
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "edges": edges.ravel().tolist(),
    }
    return Clean(drawn)


@lru_cache(2)  # the same graph is drawn again and again: in another tab, with other filters, when one comes back
def _placed(count: int, edges: bytes) -> Floats:
    return placed(count, np.frombuffer(edges, np.int64).reshape(-1, 2)).round(2)


def _kind(node: dict[str, Any]) -> str:
    if node["is_ghost"]:
        return _GHOST
    kind: str = node["id"].partition(":")[0]
    return kind


READS: dict[str, Question] = {"graph": graph}
