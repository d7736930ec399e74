"""What leaves the bank, without the secrets that got in past the gate: by a pull, a merge or a hand edit.

    cleaned(value, guard)

takes whatever is about to be shown, a text, a memory or an answer of a tool, and returns it with `[REDACTED:rule]` in
place of each value, or as it is, which it nearly always is. A passage, a title or a preview may hold a piece of a value
that cannot be told from other words by itself: the piece is blanked when the whole value is in the same answer, or in
`beside`. So clean what is whole, and cut afterwards.

As in an audit, a line with `memlane:allow <reason>` may stay. The files themselves are left alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from memlane.core.invisible import visible
from memlane.core.text import remembered
from memlane.core.values import fields, is_dataclass, replace
from memlane.gate import Guard
from memlane.gate.plain import is_plain

T = TypeVar("T")
_LEAST = 4  # characters of a value that are a piece of it, and not a word that happens to look so
_MANY = 50  # values, of which most strings have none
_INSIDE = 12  # characters of a string that may be a piece out of the middle of a value
_ADDRESSES = frozenset({"id", "lane", "file"})  # of a Memory: without them nobody could say which one is meant
_NO_TEXT = (int, float, datetime)
_SEVERAL = (list, tuple, set, frozenset)

Blank = tuple[str, str]  # a value, and the mark that takes its place


def cleaned(value: T, guard: Guard, beside: Iterable[Any] = ()) -> T:
    """The value, or one like it in which nothing is left of the secrets that it holds, or that what is `beside` it
    holds: texts, or memories, that it may be a piece of.
    """
    if guard.secrets == "off":
        return value
    texts = [*strings(value), *strings(list(beside))]
    if not holds_any("\n".join(texts), guard):
        return value
    blanks = {blank: None for string in texts for blank in _found(string, guard)}
    if not blanks:
        return value
    near = _chooser(sorted(blanks, key=lambda blank: -len(blank[0])))
    clean: T = _mapped(value, lambda string: _blanked(string, near, guard))
    return clean


@remembered(4_000)  # who searches again sees much of the same
def holds_any(text: str, guard: Guard) -> bool:
    """Whether there is a secret in a text that may not leave."""
    return bool(_found(text, guard))


def _found(string: str, guard: Guard) -> list[Blank]:
    """The secrets in a string, and each line of one that has several: a search by lines shows them one by one."""
    text = visible(string)
    if is_plain(text) and not guard.phone:
        return []
    from memlane.gate.secrets import scan

    blanks = []
    for finding in scan(text, email=guard.email, phone=guard.phone, allow=guard.allow, marks=True):
        value, mark = text[finding.start : finding.end], f"[REDACTED:{finding.rule}]"
        blanks += [(value, mark), *((line, mark) for line in value.split("\n")[1:-1] if len(line) >= 16)]
    return blanks


def _chooser(blanks: list[Blank]) -> Callable[[str], list[Blank]]:
    """A function that says which of these a string may have, whole or a piece of it: where there are many strings and
    many values, not each is looked for in each.
    """
    if len(blanks) < _MANY:
        return lambda _: blanks
    at_end: defaultdict[str, list[int]] = defaultdict(list)
    for at, (value, _) in enumerate(blanks):
        at_end[value[:_LEAST]].append(at)
        at_end[value[-_LEAST:]].append(at)
    values = "\n".join(value for value, _ in blanks)

    def near(text: str) -> list[Blank]:
        found = {at for start in range(len(text)) for at in at_end.get(text[start : start + _LEAST], ())}
        if _is_inside(bare := _uncut(text).strip(), values):
            found.update(at for at, (value, _) in enumerate(blanks) if bare in value)
        return [blanks[at] for at in sorted(found)]

    return near


def _blanked(string: str, near: Callable[[str], list[Blank]], guard: Guard) -> str:
    """A string without these values, and without the pieces of them at its ends, where it may have been cut."""
    from memlane.gate.secrets import redact, scan

    text = visible(string)
    found = scan(text, email=guard.email, phone=guard.phone, allow=guard.allow, marks=True)
    clean = redact(text, found) if found else text
    for value, mark in near(text):
        if len(value) > _LEAST:
            clean = clean.replace(value, mark)
        clean = _without_pieces(clean, value, mark)
    return clean if clean != text else string


def _without_pieces(text: str, value: str, mark: str) -> str:
    bare = _uncut(text)
    if _is_inside(bare.strip(), value):
        return mark
    # the longest that begins a piece, and then the longest that ends one: each holds the first or the last few signs
    at = bare.find(value[:_LEAST], max(0, len(bare) - len(value) + 1))
    while 0 <= at <= len(bare) - _LEAST:
        if value.startswith(bare[at:]):
            text = bare[:at] + mark + text[len(bare) :]
            break
        at = bare.find(value[:_LEAST], at + 1)
    start = len(text) - len(text.lstrip())
    end = start + len(value) - 1
    while (at := text.rfind(value[-_LEAST:], start, end)) >= 0:
        end = at + _LEAST
        if value.endswith(text[start:end]):
            return text[:start] + mark + text[end:]
        end -= 1
    return text


def _is_inside(piece: str, value: str) -> bool:
    return len(piece) >= _INSIDE and piece in value


def _uncut(text: str) -> str:
    """A text without what tells at its end that it was cut."""
    bare = text.rstrip()
    return bare.removesuffix("…" if bare.endswith("…") else "...").rstrip()


def strings(value: Any) -> list[str]:
    """Every text in a value. In a mapping, each with its name: `password: …` is one where the value alone is none."""
    found: list[str] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif value is None or isinstance(value, _NO_TEXT):
        return
    elif isinstance(value, _SEVERAL):
        for item in (*value, *getattr(value, "__dict__", {}).values()):
            _gather(item, found)
    elif isinstance(value, dict | Mapping):  # the usual one first
        for name, item in value.items():
            if type(item) is float:  # most of what a hit says of itself
                found.append(str(name))
            elif isinstance(item, str) and "\n" not in item:
                found.append(f"{name}: {item}")
            else:
                found.append(str(name))
                _gather(item, found)
    elif is_dataclass(value) and not isinstance(value, type):
        for item in _shown_of(type(value))(value):
            if type(item) is str:
                found.append(item)
            elif item:
                _gather(item, found)


@cache
def _shown(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in _ADDRESSES)


@cache
def _shown_of(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What gives all that is shown of such a value."""
    names = _shown(kind)
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_mapped(name, change): _mapped(item, change) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, list):
        from copy import copy

        changed = copy(value)  # a list may say something about itself
        changed[:] = [_mapped(item, change) for item in value]
        if hasattr(value, "__dict__"):
            vars(changed).update(_mapped(vars(value), change))
        return changed
    if isinstance(value, tuple | set | frozenset):
        return type(value)(_mapped(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{name: _mapped(getattr(value, name), change) for name in _shown(type(value))})
    return value
