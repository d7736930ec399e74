"""Searching as one types, what can be chosen from, and what the frame of the page shows."""

from __future__ import annotations

import os
from typing import Any

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.model import Hit, Memory
from memlane.recall.snippets import marked, snippet
from memlane.surfaces.ui import events
from memlane.surfaces.ui.asking import Asked, number, text, texts

_WAIT = 0.5  # seconds of indexing before a search answers from what is there
_PASSAGE = 400  # characters of a hit that are shown
_TAGS = 24  # to choose from


def find(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The hits of a query; without one, the newest memories."""
    query, limit = text(asked, "q", "").strip(), number(asked, "limit", 20, 200)
    chosen: dict[str, Any] = {
        "lane": text(asked, "lane", "") or None,
        "type": text(asked, "type", "") or None,
        "tags": texts(asked, "tag"),
        "since": text(asked, "since", "") or None,
        "until": text(asked, "until", "") or None,
        "archived": text(asked, "archived", "") == "yes",
    }
    if not query:
        return {"hits": [brief(memory) for memory in bank.list(limit=limit, **chosen)], "complete": True}
    hits = bank.search(query, limit, order=text(asked, "order", "best"), wait=_WAIT, **chosen)
    return {"hits": [_hit(hit, query) for hit in hits], "complete": bank.index.complete}


def brief(memory: Memory) -> dict[str, Any]:
    """A memory as a line of a list."""
    return {
        "id": memory.id,
        "lane": memory.lane,
        "title": memory.title,
        "passage": " ".join(memory.text[: 2 * _PASSAGE].split())[:_PASSAGE],
        "tags": list(memory.tags),
        "type": memory.type,
        "status": memory.status,
        "at": iso(memory.created_at or memory.updated_at),
        "superseded_by": memory.superseded_by,
        "unconfirmed": memory.unconfirmed,
        "suspicious": list(memory.suspicious),
    }


def _hit(hit: Hit, query: str) -> dict[str, Any]:
    """A hit as a line of a list, with its passage in pieces, each with whether it is a word of the query."""
    return brief(hit.memory) | {
        "passage": list(marked(snippet(hit, query, _PASSAGE), query)),
        "place": hit.header_path,
        "score": hit.score,
        "relevance": hit.relevance,
        "why": dict(hit.why),
    }


def choices(bank: Bank, asked: Asked) -> dict[str, Any]:
    """What the memories can be filtered by, with how many there are of each."""
    found = bank.stats()
    return {
        "lanes": {name: lane["count"] for name, lane in found["lanes"].items() if lane["count"]},
        "types": found["types"],
        "tags": dict(list(found["tags"].items())[:_TAGS]),
    }


def frame(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Which bank this is, whether the user's own is read as well, and from what on the page is told of changes."""
    return {
        "seen": events.now(bank),
        "root": os.fspath(bank.root),
        "project": os.fspath(bank.config.code or bank.root),
        "own": os.fspath(bank.under.root) if bank.under else None,
    }


READS = {"search": find, "choices": choices, "frame": frame}
