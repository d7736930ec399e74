"""What one line of a transcript says, the same value for every client. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """The parts of a line that capture looks at; a part that the line does not have is empty."""

    text: str = ""  # what the assistant said to the user: no tool calls, no thinking
    key: str = ""  # the message the line belongs to; "" when the line stands alone
    at: Any = None  # when it was said, as the transcript writes it
    skip: str = ""  # why the text is not the assistant's own word to the user
    asked: bool = False  # the user speaks: a new turn begins
    files: tuple[str, ...] = ()  # what tools were told to change
    cwd: str = ""
    thread: str = ""
    aside: bool = False  # the whole transcript is that of a subagent


def texts(content: Any, *types: str) -> str:
    """The text of a message: a string, or its blocks of these types (and blocks that have no type) joined by \\n."""
    if isinstance(content, str):
        return content
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict) and block.get("type") in (None, *types) and not block.get("thought"):
            found.append(word(block.get("text")))
    return "\n".join(filter(None, found))


def word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def words(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if value and isinstance(value, str))
