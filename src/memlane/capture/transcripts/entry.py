"""What one line of a transcript says: the same value for every client, and small readers of JSON values. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple

_PATCHED = lazily(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


class Entry(NamedTuple):
    """The parts of a line that capture looks at; a part that the line does not have is empty."""

    text: str = ""  # what the assistant said to the user: no tool calls, no thinking
    key: str = ""  # the message the line belongs to; "" when the line stands alone
    at: Any = None  # when it was said, as the transcript writes it
    skip: str = ""  # why the text is not the assistant's own word to the user
    asked: bool = False  # the user speaks: a new turn begins
    files: tuple[str, ...] = ()  # what tools were told to change
    cwd: str = ""
    branch: str = ""  # of git
    thread: str = ""
    aside: bool = False  # the whole transcript is that of a subagent


class Part(NamedTuple):
    """One thing that a line says, whoever says it: a transcript as a conversation.

    `role` is one of user, assistant, summary (of what went before, by the client), call (of a tool), result and queue
    (what the user typed meanwhile, put in or taken out: `name` says which). `id` ties a result to its call; `name` is
    the tool's, and `arguments` is what it was told.
    """

    role: str
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Any = None
    failed: bool = False
    aside: bool = False  # said by or to a subagent


def texts(content: Any, *types: str) -> str:
    """The text of a message: a string, or its blocks of these types (and blocks that have no type) joined by \\n."""
    if isinstance(content, str):
        return content
    blocks = [{"text": block} if isinstance(block, str) else block for block in listed(content)]
    spoken = (block for block in blocks if isinstance(block, dict) and not block.get("thought"))
    return "\n".join(words(block.get("text") for block in spoken if block.get("type") in (None, *types)))


def patched(arguments: Any) -> Iterator[str]:
    """The files that a patch names which a tool was told to apply."""
    for text in strings(arguments):
        if "*** Begin Patch" in text:
            yield from _PATCHED.findall(text)


def word(value: Any) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def parsed(value: Any) -> Any:
    """The value, or what it says if it is JSON as text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def words(values: Iterable[Any]) -> tuple[str, ...]:
    """Those of the values that are text and not empty."""
    return tuple(value for value in values if value and isinstance(value, str))


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, however deep it lies; keys do not count."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
