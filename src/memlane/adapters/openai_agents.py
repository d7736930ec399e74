"""A session of the OpenAI Agents SDK whose history is in a bank, and whose conversation is captured like any other.

    Runner.run(agent, "…", session=MemlaneSession("support-17", bank))

The history is a file of lines of JSON under `private/sessions`, which git leaves out: one line for each batch of items,
so that a batch is there as a whole or not at all. It is not memory: it is in no search and no list, and `undo` knows
nothing of it. A run must not end because of a secret in it, so secrets are blanked and never refused. What the
assistant said is captured into the records, by the rules of `memlane.capture`; that is what other sessions find.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.capture.messages import capture_messages
from memlane.core.dates import iso, utc_now
from memlane.core.errors import MemlaneError, NotFound
from memlane.disk import derived, files, journal, log
from memlane.disk.names import CONVERSATIONS, PRIVATE, of_key
from memlane.gate import Guard
from memlane.gate.outgoing import cleaned

try:
    from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise missing("openai_agents", "openai-agents", "openai-agents") from error

T = TypeVar("T")
Item = dict[str, Any]
_LOGGER = logging.getLogger("memlane")
# What only the API reads: ids that must match, and what is encoded. To a scanner for secrets it looks like one.
_OPAQUE = frozenset({"id", "type", "role", "status", "encrypted_content", "file_data", "data", "signature"})


class MemlaneSession:
    """The history of one conversation, in the order in which it was said. The bank stays the caller's to close.

    Without `capture`, nothing that is said becomes a record. With `session_settings`, a limit on how many items a run
    is given.
    """

    def __init__(
        self,
        session_id: str,
        bank: Bank,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        capture: bool = True,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self.bank = bank
        self.capture = capture
        self._path = os.path.join(bank.root, PRIVATE, CONVERSATIONS, f"{of_key(session_id)}.jsonl")
        self._closed = False

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The latest so many items, the oldest of them first; without a limit, as many as the settings say, or all."""
        limit = resolve_session_limit(limit, self.session_settings)
        items = await self._do(self._items)
        return items if limit is None or limit < 0 else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items to the end, all of them or, where one is not JSON, none."""
        await self._do(lambda: self._add(items) if items else None)

    async def pop_item(self) -> Item | None:
        """Remove the last item and return it; None when there is none."""
        return await self._do(self._pop)

    async def clear_session(self) -> None:
        """Remove the whole history. What was captured of it stays."""
        await self._do(self._clear)

    def close(self) -> None:
        """Let nothing be read or added any more."""
        self._closed = True

    async def _do(self, work: Callable[[], T]) -> T:
        """Work in a thread; when the wait for it is cancelled, it is still finished before the caller goes on."""
        if self._closed:
            raise RuntimeError("MemlaneSession is closed")
        task = asyncio.ensure_future(asyncio.to_thread(work))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
        if cancelled is not None:
            task.exception()  # looked at, so that asyncio does not report it as forgotten
            raise cancelled
        return task.result()

    # -- the file

    def _items(self) -> list[Item]:
        batches: dict[str, list[Item]] = {}
        for line in log.read_lines(self._path):
            if batch := _batch(line):
                batches[batch["id"]] = batch["items"]  # what is there twice was written twice, the last time rightly
        return [item for items in batches.values() for item in items]

    def _add(self, items: list[Any]) -> None:
        said = json.loads(json.dumps(items))
        clean = _redacted(said, self.bank.guard)
        batch = {"id": uuid.uuid4().hex, "at": iso(utc_now()), "session": self.session_id, "items": clean}
        with journal.paused():
            derived.prepare(self.bank.root / PRIVATE)
            files.make_folder(os.path.dirname(self._path), private=True)
            files.append_lines(self._path, _line(batch))
        if self.capture:
            self._captured(clean)

    def _captured(self, items: list[Any]) -> None:
        """Hand over what was said. The run has its history, so what goes wrong here does not end it."""
        said = [  # as plain messages: with more, they look like lines of some client's transcript
            {"role": item["role"], "content": item.get("content"), "timestamp": iso(utc_now())}
            for item in items
            if isinstance(item, dict) and item.get("role")
        ]
        try:
            with journal.acting("python", "openai-agents", self.session_id), journal.change("capture"):
                for memory in capture_messages(self.bank, said, thread=self.session_id).memories:
                    self.bank.wrote(memory.lane, memory.file)
        except (MemlaneError, OSError) as error:
            _LOGGER.warning("What was said in a session of openai-agents was not captured: %s", error)

    def _pop(self) -> Item | None:
        popped: list[Item] = []

        def without_last(content: bytes) -> tuple[bytes, bytes]:
            lines = log.split_lines(content)
            last = next((at for at in reversed(range(len(lines))) if (_batch(lines[at]) or {}).get("items")), None)
            if last is not None:
                batch = _batch(lines[last]) or {}
                popped[:] = batch["items"][-1:]
                lines[last] = _line({**batch, "items": batch["items"][:-1]}).rstrip(b"\n")
            return b"\n".join(lines), b""

        try:
            with journal.paused():
                log.rewrite(self._path, without_last, lambda line: _batch(line) is not None)
        except NotFound:
            return None
        return popped[0] if popped else None

    def _clear(self) -> None:
        try:
            with journal.paused(), files.locked(self._path):
                files.remove(self._path)
        except NotFound:
            pass


def _batch(line: bytes) -> dict[str, Any] | None:
    """The batch of items in a line; None for a damaged one, which hides no other."""
    found = log.json_of(line)
    whole = isinstance(found, dict) and isinstance(found.get("id"), str) and isinstance(found.get("items"), list)
    return found if whole else None


def _line(batch: dict[str, Any]) -> bytes:
    return json.dumps(batch).encode() + b"\n"


def _redacted(items: list[Any], guard: Guard) -> list[Any]:
    """The items without the secrets in their texts; what only the API reads stays as it is."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    _each(items, note)
    clean = iter(cleaned(texts, guard))
    return list(_each(items, lambda _: next(clean)))


def _each(value: Any, change: Callable[[str], str], name: str = "") -> Any:
    """The value with every text in it changed, in their order."""
    if isinstance(value, dict):
        return {key: _each(item, change, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_each(item, change, name) for item in value]
    opaque = name in _OPAQUE or name.endswith("_id") or (isinstance(value, str) and value.startswith("data:"))
    return change(value) if isinstance(value, str) and not opaque else value
