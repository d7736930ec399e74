"""A memory block of LlamaIndex over a bank.

    Memory.from_defaults(session_id="…", memory_blocks=[MemlaneMemoryBlock(bank=bank)])

What the bank knows about the last message of the user is in the prompt, fenced and within a budget. What falls out of
the short-term memory is captured by the bank's own rules.
"""

from __future__ import annotations

import asyncio
from typing import Any

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.capture.messages import capture_messages
from memlane.core.dates import iso, utc_now
from memlane.disk import journal

try:
    from llama_index.core.memory import BaseMemoryBlock
    from pydantic import Field
except ImportError as error:
    raise missing("llama_index", "llama-index", "llama-index-core") from error


class MemlaneMemoryBlock(BaseMemoryBlock[str]):
    """A bank as a block, which stays the caller's to close. `budget` is in tokens; `scopes` leave out others.

    Its priority is 1: where a prompt is too long, the block is left out, and not the chat.
    """

    name: str = "memory"
    description: str | None = "What is remembered from earlier sessions about what was just said."
    priority: int = 1
    bank: Bank = Field(exclude=True)
    budget: int = 1000
    scopes: list[str] | None = None

    async def _aget(self, messages: list[Any] | None = None, **block_kwargs: Any) -> str:
        asked = [message.content for message in messages or [] if message.role == "user" and message.content]
        if not asked:
            return ""
        return str(await asyncio.to_thread(self.bank.context, asked[-1], self.budget, scopes=self.scopes))

    async def _aput(self, messages: list[Any]) -> None:
        await asyncio.to_thread(self._capture, messages)

    def _capture(self, messages: list[Any]) -> None:
        said: dict[str, list[dict[str, Any]]] = {}
        for message in messages:
            session = str(message.additional_kwargs.get("session_id") or "")
            line = {"role": str(message.role.value), "content": message.content or "", "timestamp": iso(utc_now())}
            said.setdefault(session, []).append(line)
        with journal.acting("python", "llama-index"), journal.change("capture"):
            for session, lines in said.items():
                for memory in capture_messages(self.bank, lines, thread=session).memories:
                    self.bank.wrote(memory.lane, memory.file)
