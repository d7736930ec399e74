"""Which memory links to what, of the whole bank: from what is known of its files. Reads only."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memlane.care.known import FORM, SAID, Known, look
from memlane.core.dates import utc_now
from memlane.gate.outgoing import cleaned
from memlane.index.links import ghost

if TYPE_CHECKING:
    from memlane.bank import Bank

Row = dict[str, Any]


def graph(bank: Bank) -> dict[str, list[Row]]:
    """Nodes and edges of the whole bank; tags are nodes, too. What is held back or has expired is left out, and
    so are secrets."""
    with look(bank, FORM | SAID) as known:
        known.require_all()
        nodes: dict[str, Row] = {}
        hidden = {*known.held, *map(tuple, known.entries("", "expires <= ?", utc_now().timestamp()))}
        secret = {(fact.path, fact.id) for fact in known.of("secret")}
        shown: dict[str, str] = {}  # the names of nodes that have a secret in them, without it
        tags: list[Row] = []
        for path, id, title, names in known.entries("title, tags"):
            if hidden and (path, id) in hidden:
                continue
            labels = json.loads(names) if names != "[]" else ()
            if (path, id) in secret and (memory := known.memory(path, id)):
                clean = cleaned(memory, bank.guard)
                title, labels = clean.title, clean.tags
                shown[id] = cleaned(id, bank.guard)
            nodes[id] = {"id": shown.get(id, id), "title": title, "is_ghost": False}
            for tag in labels:
                node = f"tag:{tag.lower()}"
                nodes.setdefault(node, {"id": node, "title": tag, "is_ghost": False})
                tags.append(_edge(id, node, "HAS_TAG"))
        edges = [*tags, *_links(known, nodes, hidden, secret, shown)]
        for old, successors in bank.replaced.links().items():
            edges += (_edge(new, old, "SUPERSEDES") for new in successors if old in nodes and new in nodes)
    for edge in edges if shown else ():
        edge["source"], edge["target"] = (shown.get(edge[end], edge[end]) for end in ("source", "target"))
    return {"nodes": list(nodes.values()), "edges": edges}


def _links(
    known: Known,
    nodes: dict[str, Row],
    hidden: set[tuple[str, ...]],
    secret: set[tuple[str, str]],
    shown: dict[str, str],
) -> Iterator[Row]:
    """The edges of the links, and the nodes of what they lead to that is no memory."""
    targets = known.targets_without({id for _, id in hidden})
    links: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for path, id, value in known.of("about", "links"):
        links[path, id] += json.loads(value)
    for (path, id), found in links.items():
        if (path, id) in hidden:
            continue
        ends = [(targets.find(target, id) or ghost(target), context) for target, _, context in found]
        memory = known.memory(path, id) if (path, id) in secret else None
        # all at once: a long text with a secret may have very many links
        names = cleaned(ends, known.bank.guard, [memory.text]) if memory else ends
        for (node, _), (name, said), (_, edge, _) in zip(ends, names, found, strict=True):
            if node == id:
                continue  # a heading of its own
            if node not in nodes:
                if name != node:
                    shown[node] = name
                nodes[node] = {"id": name, "title": name.partition(":")[2], "is_ghost": True}
            yield _edge(id, node, edge, said)


def _edge(source: str, target: str, kind: str, context: str = "") -> Row:
    return {"source": source, "target": target, "edge_type": kind, "edge_context": context}
