"""Links between memories: which lead to a memory or to a ghost, a link target that is none, and which leave one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from memlane.core.model import Link, Memory
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.index.chunks import chunks
from memlane.index.links import Targets, ghost, links_of, namesakes, placeless
from memlane.index.peek import NAMES
from memlane.index.store import Index
from memlane.index.words import QUERY_CHARACTERS, query_terms, terms
from memlane.recall.address import Name, link_targets

if TYPE_CHECKING:
    from memlane.bank import Bank

_WORD = lazily(r"[^\s\"'`()\[\]<>,;]+")


def linked(bank: Bank, target: str, query: str, limit: int) -> list[Link]:
    """The memories that link to what a text names. It is looked for among titles where nothing else links to it."""
    index, tried = bank.index, list[str]()

    def titles() -> list[Name]:
        return [row[:3] for row in index.ask(partial(index.rows, NAMES), look=False)]  # it was asked a moment ago

    for known in (list[Name], titles):
        names = link_targets(bank, target, known)
        if names != tried and (found := index.ask(partial(_links, bank, names, query, limit))):
            return found
        tried = names
    return []


def _links(bank: Bank, names: Sequence[str], query: str, limit: int) -> list[Link]:
    """The memories that link to something by one of its names, the best for the query first; then the newest.

    Where that is a memory, a link counts that means it where it stands: the nearest of several notes of one name.
    The score is how close the memory's best chunk is to the query, by vectors and by shared words. Archived memories
    and those that are held back are left out.
    """
    index = bank.index
    targets = Targets(namesakes(index.ids(), names))
    wanted = next(filter(None, map(targets.find, names)), None)
    plain = set(map(ghost, names))
    rows = [row for name in names for row in _links_to(index, name)]
    rows += [row for name in _link_targets(index) if targets.may_mean(name, wanted) for row in _links_to(index, name)]
    contexts: dict[int, list[tuple[str, str, str]]] = {}
    for number, *link in dict.fromkeys(rows):
        contexts.setdefault(number, []).append((link[0], link[1], link[2]))
    links, unseen = [], bank.unseen()
    for number, memory in index.memories(contexts).items():
        if memory.status == "archived" or unseen(memory):
            continue
        own = [
            link
            for link in contexts[number]
            if (meant := targets.find(link[0], memory.id)) == wanted or (meant is None and ghost(link[0]) in plain)
        ]
        if own:
            score, content = _closest(index, memory, query)
            _, edge, context = max(own, key=lambda link: _shared(query, link[2]))
            links.append(Link(memory, round(score, 4), content, context, edge))
    links.sort(key=_link_order)
    return links[: max(limit, 0)]


class Outgoing(NamedTuple):
    """One link of a memory: the target as it is written, and the memory that it means; None where it means none."""

    target: str
    id: str | None
    edge: str
    context: str


def outgoing(bank: Bank, memory: Memory) -> list[Outgoing]:
    """What a memory links to, in the order of its text, each target once."""
    links: dict[str, tuple[str, str]] = {}
    for node, edge, context in links_of(memory):
        links.setdefault(node, (edge, context))
    targets = Targets(namesakes(bank.index.ask(bank.index.ids), links)) if links else None
    found = []
    for node, said in links.items():
        id = targets.find(node, memory.id) if targets else None
        if id != memory.id:  # a heading of its own
            found.append(Outgoing(node.removeprefix("ghost:"), id, *said))
    return found


def about_files(index: Index, query: str) -> set[str]:
    """The memories that link to a file that a query names, in the middle of a sentence or not."""
    words = dict.fromkeys(word.rstrip(".:?!") for word in _WORD.findall(query[:QUERY_CHARACTERS]))
    files = (ghost(f"ghost:{word}") for word in words if "." in word or "/" in word)
    numbers = {number for file in files for number, *_ in _links_to(index, file)}
    return {memory.id for memory in index.memories(numbers).values()}


def _link_targets(index: Index) -> list[str]:
    """Every target that a memory links to, once."""
    return [target for (target,) in index.rows("SELECT DISTINCT target FROM links ORDER BY target")]


def _links_to(index: Index, target: str) -> list[tuple[int, str, str, str]]:
    """The links to one target, or to a place in it: `ghost:src/a.py`, `ghost:src/a.py#heading`."""
    query = (
        "SELECT memory, target, edge_type, context FROM links WHERE target >= ? AND target < ? ORDER BY memory, rowid"
    )
    rows = index.rows(query, target, f"{target};")  # ";" follows all that a place begins with
    return [row for row in rows if row[1] == target or placeless(row[1]) == target]


def _link_order(link: Link) -> tuple[float, float, str]:
    created = link.memory.created_at
    return -link.score, -created.timestamp() if created else 0.0, link.memory.id


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
