"""What links to what: memories, and ghosts, which are link targets that are no memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlane.core.model import Link, Memory
from memlane.index.chunks import chunks
from memlane.index.store import Index
from memlane.index.words import query_terms, terms


def linked(index: Index, target: str, query: str, limit: int, held: Callable[[Memory], object]) -> list[Link]:
    """The memories that link to a target, best first by the query; among equals the newest.

    Archived ones, and those that are `held` back, are left out. The score is how close the memory's best piece is to
    the query: by vectors, and by the words they share.
    """
    contexts: dict[int, list[tuple[str, str]]] = {}
    for node in _nodes(index, target):
        for number, _, edge, context in index.links(node):
            contexts.setdefault(number, []).append((edge, context))
    found = []
    for number, memory in index.memories(contexts).items():
        if memory.status == "archived" or held(memory):
            continue
        score, content = _closest(index, memory, query)
        edge, context = max(contexts[number], key=lambda pair: _shared(query, pair[1]))
        found.append(Link(memory, round(score, 4), content, context, edge))
    found.sort(key=lambda link: link.memory.id)
    found.sort(key=lambda link: link.memory.created_at.timestamp() if link.memory.created_at else 0.0, reverse=True)
    found.sort(key=lambda link: -link.score)
    return found[: max(limit, 0)]


def _nodes(index: Index, target: str) -> list[str]:
    """Every way in which a link can name a target: a note goes by its name, too, and by `memory:` and its name."""
    node = target if target.startswith(("memory:", "ghost:")) else f"ghost:{target}"
    for id in _ids(node):
        numbers = index.matching(id=id, archived=True)
        if numbers is not None and len(numbers):
            lane, _, native = id.partition(":")
            names = (native, id) if lane == "notes" else (id,)
            return [f"{kind}:{name}" for kind in ("memory", "ghost") for name in names]
    return [node]


def _ids(node: str) -> tuple[str, str]:
    """The ids that the memory a link names can have, the likelier first."""
    kind, _, name = node.partition(":")
    return (f"notes:{name}", name) if kind == "memory" else (name, f"notes:{name}")


def _closest(index: Index, memory: Memory, query: str) -> tuple[float, str]:
    """(score, text) of the piece of a memory that is closest to the query; without a query, the first."""
    pieces = [piece.text.strip() for piece in chunks(memory.text)]
    if not query.strip():
        return 1.0, pieces[0]
    encoder = index.encoder
    cosines = (
        (encoder.encode_texts(pieces) @ encoder.encode_query(query)).tolist() if encoder.dim else [0.0] * len(pieces)
    )
    scored = [
        ((max(cosine, 0.0) + _shared(query, piece)) / 2, -at, piece)
        for at, (cosine, piece) in enumerate(zip(cosines, pieces, strict=True))
    ]
    score, _, piece = max(scored)
    return score, piece


def _shared(query: str, text: str) -> float:
    """The share of the query's words that a text has."""
    wanted = set(query_terms(query))
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 0.0


def graph(index: Index, held: Callable[[Memory], object]) -> dict[str, Any]:
    """Nodes and edges of the whole bank, without what is `held` back; tags are nodes, too."""
    nodes: dict[str, dict[str, Any]] = {}
    ids: dict[int, str] = {}
    edges = []
    for number, memory in index.every_memory():
        if held(memory):
            continue
        ids[number] = memory.id
        nodes[memory.id] = {"id": memory.id, "title": memory.title, "is_ghost": False}
        for tag in memory.tags:
            node = f"tag:{tag.lower()}"
            nodes.setdefault(node, {"id": node, "title": tag, "is_ghost": False})
            edges.append({"source": memory.id, "target": node, "edge_type": "HAS_TAG", "edge_context": ""})
    memories = set(ids.values())
    for number, target, edge, context in index.links():
        if number not in ids:
            continue
        node = next((id for id in _ids(target) if id in memories), target)
        if node not in nodes:
            nodes[node] = {"id": node, "title": target.partition(":")[2], "is_ghost": True}
        edges.append({"source": ids[number], "target": node, "edge_type": edge, "edge_context": context})
    return {"nodes": list(nodes.values()), "edges": edges}
