"""What the page asks for, as a request holds it, and what a question is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memlane.bank import Bank
from memlane.core.errors import InvalidInput

Asked = Mapping[str, Any]
Question = Callable[[Bank, Asked], Any]


class Clean(NamedTuple):
    """An answer that has no secrets left in it, and is too long to be looked through again."""

    answer: Any


def text(asked: Asked, name: str, default: str | None = None) -> str:
    """A text of a request. Raises InvalidInput when it is missing and has no default."""
    value = asked.get(name, default)
    if not _is_text(value):
        raise InvalidInput(f"{name} is missing, or is no text.", hint="Load the page anew.")
    return str(value)


def _is_text(value: Any) -> bool:
    """Half of a character, as JSON can hold one, is in no file and in no name of one."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def texts(asked: Asked, name: str) -> list[str]:
    """The texts of a name that may come several times. Raises InvalidInput."""
    value = asked.get(name, [])
    found = value if isinstance(value, list) else [value]
    if not all(map(_is_text, found)):
        raise InvalidInput(f"{name} is no list of texts.", hint="Load the page anew.")
    return found


def number(asked: Asked, name: str, default: int, most: int = 1_000_000) -> int:
    """A number of a request, from 0. Raises InvalidInput."""
    value = asked.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise InvalidInput(f"{name} is no number from 0 to {most}.", hint="Load the page anew.")
    return value
