"""A memory service of Google's Agent Development Kit over a bank.

    Runner(agent=…, app_name="shop", session_service=…, memory_service=MemlaneMemoryService(bank))

What was said in a session becomes a note for each event that has text, in the folder `adk`. Users and apps do not see
each other's: that is a filter of the search, and no matter of rank. A session must not fail because of a secret in it,
so secrets are blanked.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.core.dates import iso, moment
from memlane.core.errors import AlreadyExists, NotFound
from memlane.core.model import Draft, Hit
from memlane.disk import journal
from memlane.gate.outgoing import cleaned

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types
except ImportError as error:
    raise missing("adk", "adk", "google-adk") from error


class _Said(NamedTuple):
    """A text, where it is from, and a name for it that stays the same when it is added again."""

    text: str
    name: str
    author: str | None
    at: datetime | None
    session: str | None = None
    metadata: Mapping[str, Any] | None = None


class MemlaneMemoryService(BaseMemoryService):
    """ADK's memory in a bank, which stays the caller's to close. A search answers with at most `top_k` memories."""

    def __init__(self, bank: Bank, *, top_k: int = 10, folder: str = "adk") -> None:
        self.bank = bank
        self.top_k = top_k
        self.folder = folder

    async def add_session_to_memory(self, session: Any) -> None:
        """Remember what was said in a session; what is there of it already stays as it is, and deleted if it was."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember what these events say."""
        said = [
            _Said(
                _text(event.content),
                f"{session_id}\0{event.id}",
                event.author,
                datetime.fromtimestamp(event.timestamp, UTC),
                session_id,
                custom_metadata,
            )
            for event in events
        ]
        await asyncio.to_thread(self._add, app_name, user_id, said)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[Any],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember these texts; one with the id of another is the same."""
        said = [
            _Said(
                _text(entry.content),
                entry.id or uuid.uuid4().hex,
                entry.author,
                moment(entry.timestamp),
                metadata={**(custom_metadata or {}), **entry.custom_metadata},
            )
            for entry in memories
        ]
        await asyncio.to_thread(self._add, app_name, user_id, said)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> Any:
        """The best memories of this user in this app for a query, best first."""
        whose = {"app_name": app_name, "user_id": user_id}
        hits = await asyncio.to_thread(self.bank.search, query, self.top_k, lane="notes", where=whose)
        return SearchMemoryResponse(memories=list(map(_entry, hits)))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of this user in this app. Raises NotFound."""
        await asyncio.to_thread(self._delete, app_name, user_id, memory_id or "")

    def _add(self, app_name: str, user_id: str, said: Iterable[_Said]) -> None:
        lane, guard = self.bank.notes, self.bank.guard
        deleted = {removed.id for removed in lane.removed()}
        with journal.acting("python", "google-adk"), journal.change("add to memory"):
            for part in said:
                key = "\0".join((app_name, user_id, part.name))
                native = f"{self.folder}/{hashlib.sha256(key.encode()).hexdigest()[:16]}"
                if not part.text.strip() or f"notes:{native}" in deleted:
                    continue
                own = {"app_name": app_name, "user_id": user_id, "author": part.author, "metadata": part.metadata}
                fields = {name: value for name, value in own.items() if value} | {"filename": native}
                draft = Draft(cleaned(part.text, guard), thread=part.session, created_at=part.at, fields=fields)
                with suppress(AlreadyExists):  # "a session may be added multiple times during its lifetime"
                    self.bank.wrote("notes", lane.put(draft).file)

    def _delete(self, app_name: str, user_id: str, memory_id: str) -> None:
        note = self.bank.get(memory_id)
        if (note.fields.get("app_name"), note.fields.get("user_id")) != (app_name, user_id):
            raise NotFound("This user has no such memory in this app.", hint="Use an id that a search has named.")
        with journal.acting("python", "google-adk"):
            self.bank.delete(note.id)


def _text(content: Any) -> str:
    return "\n".join(part.text for part in (content.parts or []) if part.text) if content else ""


def _entry(hit: Hit) -> Any:
    note = hit.memory
    author = note.fields.get("author")
    return MemoryEntry(
        id=note.id,
        author=author,
        timestamp=iso(note.created_at),
        content=types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=note.text)]),
        custom_metadata={**note.fields.get("metadata", {}), "score": hit.score},
    )
