"""What a client is sent for a call: a text and data, without secrets and without characters that nobody sees.

A failure is a sentence and a next step that a model can act on: never a traceback, and nothing that the client sent.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memlane.bank import Bank
from memlane.core.errors import MemlaneError, StorageError
from memlane.core.invisible import neutral, visible
from memlane.disk import journal
from memlane.gate.outgoing import cleaned
from memlane.surfaces.mcp import hints
from memlane.surfaces.mcp.tools import Tool


class Answer(NamedTuple):
    """The text and the data of an answer; `failed` says that the text is a complaint."""

    text: str
    data: dict[str, Any] | None = None
    failed: bool = False


def answer(bank: Bank, tool: Tool, arguments: Mapping[str, Any], who: str, tools: Collection[str]) -> Answer:
    """Call the tool for a client of this name. Raises what the tool raises."""
    with journal.acting("mcp", who, users=bank.config["mcp.rules"]), journal.change(tool.name):
        result = cleaned(tool.run(bank, **arguments), bank.guard)
    text, data = tool.answer(hints.in_remarks(result, tools))
    # a memory may keep characters that a model reads and nobody sees
    return Answer(visible(neutral(text)), neutral(data))


def failure(error: Exception, action: str, tools: Collection[str]) -> Answer:
    """The answer for an error. One that memlane did not foresee is also named on standard error."""
    return Answer(visible(sentence(error, action, tools)), failed=True)


def sentence(error: Exception, action: str, tools: Collection[str]) -> str:
    """What a client is told of a failure, and what to do next: never a traceback, and nothing that it sent.

    An error that memlane did not foresee is also named on standard error, with the file and line that raised it.
    """
    if isinstance(error, OSError) and not isinstance(error, MemlaneError):
        error = StorageError(f"The disk said no: {error.strerror or 'it cannot be read or written'}.")
    if isinstance(error, MemlaneError):
        message = hints.in_tools(str(error), tools)
        ended = message if message.endswith((".", "!", "?")) else f"{message}."
        return f"{ended} {hints.next_step(error, tools)}".strip()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
    print(f"memlane: {action} failed: {where}", file=sys.stderr)
    return f"That failed inside memlane ({where}). Nothing more is known; please report it."
