"""Memories on their way out of the bank: with what took their place, and without secrets.

What the bank hands out, a person or a model is going to read. Verbs that write, and the rooms that look after the
files, take memories as they are: `bank.memories()`, `address.get`, a lane's own verbs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from memlane.core.model import Hit, Memory
from memlane.core.values import replace
from memlane.gate import Guard
from memlane.gate.outgoing import cleaned, holds_any, strings
from memlane.recall.harmless import passing
from memlane.recall.superseded import marked

if TYPE_CHECKING:
    from memlane.bank import Bank

Seen = TypeVar("Seen")
KEPT, LENGTH = 4_000, 16_000_000  # hits that are remembered to have no secret, and the characters of them all


class _Passed(set[Hashable]):
    """What hits say that have no secret. At its limit, it is forgotten and begun anew."""

    length = 0

    def note(self, said: Hashable, length: int) -> None:
        if len(self) >= KEPT or self.length + length > LENGTH:
            self.clear()
            self.length = 0
        if length <= LENGTH:
            self.add(said)
            self.length += length


_passed = _Passed()


def shown(bank: Bank, memories: Iterable[Memory]) -> list[Memory]:
    """The memories as they may be shown."""
    return without_secrets(bank, marked(bank, memories))


def briefly(memories: Iterable[Memory]) -> list[Memory]:
    """The memories with the first line alone for a text: it takes time to look for secrets in all of it."""
    return [replace(memory, text=first_line(memory.text)) for memory in memories]


def first_line(text: str) -> str:
    """The line that a title may have come from, uncut."""
    return next((line for line in text.splitlines() if line.strip("#>*-+ \t")), "")


def without_secrets(bank: Bank, items: Sequence[Seen]) -> list[Seen]:
    """Memories, hits, links or clusters, each without the secrets of its memories, and without pieces of them."""
    guard = bank.guard
    check = check_of(guard)
    keys = [_said(check, item) for item in items]
    new = [(item, key) for item, key in zip(items, keys, strict=True) if key not in _passed]
    if not new:  # who searches again sees much of the same
        return list(items)
    texts = ["\n".join(strings(item)) for item, _ in new]
    held = set()
    for (item, key), text, passes in zip(new, texts, _passing(bank, guard, texts), strict=True):
        if not passes:
            held.add(id(item))
        elif key:
            _passed.note(key, len(text))
    return [cleaned(item, guard) if id(item) in held else item for item in items]


def each_without_secrets(bank: Bank, guard: Guard, values: Sequence[Seen]) -> list[Seen]:
    """Values of any kind, each without its secrets. It is noted what has none: who lists a bank lists it again."""
    passed = _passing(bank, guard, ["\n".join(strings(value)) for value in values])
    return [value if passes else cleaned(value, guard) for value, passes in zip(values, passed, strict=True)]


def clean_lines(
    bank: Bank, guard: Guard, lines: Sequence[str], beside: Sequence[str] = (), *, apart: str = ""
) -> list[str]:
    """Lines to be printed, each without secrets, and without pieces of those in the text that stands beside it.

    What passes may be noted `apart`: see `passing`.
    """
    texts = [f"{line}\n{more}" if more else line for line, more in zip(lines, beside, strict=True)] if beside else lines
    passed = _passing(bank, guard, texts, apart=apart)
    if all(passed):
        return list(lines)
    more = beside or [""] * len(lines)
    return [
        line if passes else cleaned(line, guard, [text] if text else ())
        for line, text, passes in zip(lines, more, passed, strict=True)
    ]


def check_of(guard: Guard) -> str:
    """The check for secrets, and all that it depends on besides a text."""
    return f"secrets {(guard.secrets, guard.email, guard.phone, guard.allow)}"


def _passing(bank: Bank, guard: Guard, texts: Sequence[str], *, apart: str = "") -> list[bool]:
    """Whether each text has no secret in it."""

    def has_none(text: str) -> bool:
        return guard.secrets == "off" or not holds_any(text, guard)

    return passing(bank, check_of(guard), texts, has_none, apart=apart)


def _said(check: str, item: object) -> Hashable:
    """All that a hit says, as what it is remembered by; None for anything else. The numbers of `why` say nothing."""
    if not isinstance(item, Hit):
        return None
    memory = item.memory
    beside = (memory.remarks, memory.similar, memory.superseded_by, memory.replaces)  # not compared with the rest
    return check, memory, beside, item.content, item.header_path
