"""Which memory links to what: to other memories, or to ghosts, which are link targets that are not memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from memlane.core.model import Link, Memory
from memlane.index.chunks import chunks
from memlane.index.store import Index
from memlane.index.words import query_terms, terms
from memlane.recall.address import link_targets

if TYPE_CHECKING:
    from memlane.bank import Bank


def linked(bank: Bank, target: str, query: str, limit: int) -> list[Link]:
    """The memories that link to what a text names. It is looked for among titles where nothing else links to it."""
    tried: list[str] = []
    for titles in (False, True):
        names = link_targets(bank, target, titles=titles)
        if names != tried and (found := bank.index.ask(partial(_links, bank, names, query, limit))):
            return found
        tried = names
    return []


def _links(bank: Bank, names: Iterable[str], query: str, limit: int) -> list[Link]:
    """The memories that link to something by one of its names, the best for the query first; then the newest.

    The score is how close the memory's best chunk is to the query, by vectors and by shared words. Archived memories
    and those that are held back are left out.
    """
    index = bank.index
    contexts: dict[int, list[tuple[str, str]]] = {}
    for name in names:
        for number, _, edge, context in index.links_to(name):
            contexts.setdefault(number, []).append((edge, context))
    links = []
    for number, memory in index.memories(contexts).items():
        if memory.status == "archived" or bank.tombstones.held(memory):
            continue
        score, content = _closest(index, memory, query)
        edge, context = max(contexts[number], key=lambda pair: _shared(query, pair[1]))
        links.append(Link(memory, round(score, 4), content, context, edge))
    links.sort(key=_link_order)
    return links[: max(limit, 0)]


def _link_order(link: Link) -> tuple[float, float, str]:
    created = link.memory.created_at
    return -link.score, -created.timestamp() if created else 0.0, link.memory.id


def _ids(node: str) -> tuple[str, str]:
    """The ids of the memories that a link may mean, the likeliest first."""
    kind, _, name = node.partition(":")
    return (f"notes:{name}", name) if kind == "memory" else (name, f"notes:{name}")


def _closest(index: Index, memory: Memory, query: str) -> tuple[float, str]:
    """(score, text) of the chunk of a memory that is closest to the query; without a query, the first."""
    pieces = [piece.text.strip() for piece in chunks(memory.text)]
    if not query.strip():
        return 1.0, pieces[0]
    encoder = index.encoder
    cosines = (encoder.encode_texts(pieces) @ encoder.encode_query(query)).tolist()  # zeros without vectors
    scored = [
        ((max(cosine, 0.0) + _shared(query, piece)) / 2, -at, piece)
        for at, (cosine, piece) in enumerate(zip(cosines, pieces, strict=True))
    ]
    score, _, piece = max(scored)
    return score, piece


def _shared(query: str, text: str) -> float:
    """The share of the query's words that a text has."""
    query_words = set(query_terms(query))
    return len(query_words & set(terms(text))) / len(query_words) if query_words else 0.0


def graph(index: Index, held: Callable[[Memory], object]) -> dict[str, Any]:
    """Nodes and edges of the whole bank; tags are nodes, too. Memories that `held` names are left out."""
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
