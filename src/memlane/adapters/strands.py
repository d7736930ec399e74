"""A memory store of Strands Agents over a bank.

    Agent(model=…, memory_manager=MemoryManager(stores=[MemlaneMemoryStore(bank)], add_tool_config=True))

The agent finds what the bank has, whoever wrote it, and adds notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.capture.messages import capture_messages
from memlane.core.dates import iso, utc_now
from memlane.disk import journal

try:
    from strands.memory.types import MemoryEntry, MemoryStore
except ImportError as error:
    raise missing("strands", "strands", "strands-agents") from error


class MemlaneMemoryStore(MemoryStore):
    """A bank as a store, which stays the caller's to close. With `scope`, of what is for that scope, and not of others.

    With `extraction`, what the assistant said is captured by the bank's own rules every few turns; no model is asked.
    """

    def __init__(
        self,
        bank: Bank,
        *,
        name: str = "memlane",
        description: str | None = "What this project remembers: decisions, conventions, preferences, known bugs.",
        max_search_results: int = 5,
        writable: bool = True,
        extraction: Any = False,
        scope: str | None = None,
    ) -> None:
        self.bank = bank
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self.scope = scope

    async def search(self, query: str, options: Mapping[str, Any] | None = None) -> list[Any]:
        """The best memories for a query, best first; with their ids, dates and scores as metadata."""
        limit = (options or {}).get("max_search_results") or self.max_search_results
        hits = await asyncio.to_thread(self.bank.search, query, limit, scope=self.scope)
        return [
            MemoryEntry(
                content=hit.memory.text,
                metadata={"id": hit.memory.id, "created_at": iso(hit.memory.created_at), "score": hit.score},
            )
            for hit in hits
        ]

    async def add(self, content: str, metadata: Mapping[str, Any] | None = None) -> str:
        """Remember a text, once; returns its id. Raises Refused, which the tool `add_memory` tells the model."""
        return await asyncio.to_thread(self._add, content, {"metadata": dict(metadata)} if metadata else {})

    async def add_messages(self, messages: list[Any], context: Any = None) -> None:
        """Capture what the assistant said."""
        await asyncio.to_thread(self._capture, messages)

    def _add(self, content: str, extra: Mapping[str, Any]) -> str:
        with journal.acting("python", "strands"):
            return self.bank.add(content, scope=self.scope, extra=extra).id

    def _capture(self, messages: list[Any]) -> None:
        said = [
            {"role": message["role"], "content": _text(message), "timestamp": iso(utc_now())} for message in messages
        ]
        with journal.acting("python", "strands"), journal.change("capture"):
            for memory in capture_messages(self.bank, said).memories:
                self.bank.wrote(memory.lane, memory.file)


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))
