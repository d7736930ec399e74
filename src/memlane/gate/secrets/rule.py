"""One rule of the table, the short ways to write a row, and what the modules that read patterns share.

Compiles nothing at import.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from memlane.core.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of secret.

    `regex` is tried only where one of the lower-case `keywords` occurs: in a long word with a digit, or anywhere in
    the text for a `wide` rule. A rule without keywords is tried around long numbers. `group` is the part that is the
    secret. A value that `check` turns down is no finding; one that passes `proof` (a checksum) skips all filters.
    """

    id: str
    description: str
    keywords: tuple[str, ...]
    regex: str
    group: int = 0
    entropy: float = 0.0
    check: Callable[[str], bool] | None = None
    proof: Callable[[str], bool] | None = None
    ignore_case: bool = False
    wide: bool = False
    # A token does not begin in the middle of a word ("risk-based" is no `sk-` key), nor after one of these.
    starts_word: bool = True
    not_after: str = "_"
    # The group only says where the value begins: it is read whole, up to the last `upto` in it.
    whole: bool = False
    upto: str = ""
    # Whether placeholders are turned down; not where the whole form is proof enough.
    decoys: bool = True
    # How far after its keyword the match of a wide rule may end.
    reach: int = 700
    kind: str = "secret"


A = "[A-Za-z0-9]"
W = "[A-Za-z0-9_-]"
L = "[a-z0-9]"
H = "[0-9a-f]"
X = "[0-9A-Fa-f]"
B = "[A-Za-z0-9+/]"
U = "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"


@cache
def exact(source: str) -> re.Pattern[str]:
    """A pattern, compiled on first use. Finding it here takes a fraction of what it takes `re.search` and the like."""
    return re.compile(source)


@cache
def pattern(source: str) -> re.Pattern[str]:
    """A pattern that ignores case, compiled on first use."""
    return re.compile(source, re.IGNORECASE)


def token(
    id: str, description: str, prefixes: str, body: str, least: int, most: int = 0, *, tail: str = "", **more: Any
) -> Rule:
    """A row for the commonest form, `prefix` + random characters; `prefixes` are separated by spaces."""
    heads = prefixes.split()
    start = re.escape(heads[0]) if len(heads) == 1 else "(?:" + "|".join(map(re.escape, heads)) + ")"
    upto = "" if most == 0 else str(most)
    end = "" if most == 0 else f"(?!{body})"
    keywords = tuple(sorted({head.lower() for head in heads}))
    return Rule(id, description, keywords, f"{start}{body}{{{least},{upto}}}+{tail}{end}", **{"entropy": 2.8, **more})


def form(id: str, description: str, keywords: str, regex: str, **more: Any) -> Rule:
    """A row that is more than a prefix; `keywords` are separated by spaces, `+_` is a space in one."""
    return Rule(id, description, tuple(k.replace("+_", " ") for k in keywords.split()), regex, **more)


def read_whole(*rows: Rule) -> tuple[Rule, ...]:
    """The same rows, whose group is the place where a value begins and whose check judges all of it."""
    return tuple(replace(row, whole=True, decoys=False, wide=True) for row in rows)


def wide(*rows: Rule) -> tuple[Rule, ...]:
    """The same rows with their keywords looked for in the whole text: these words stand apart from the value."""
    return tuple(replace(row, wide=True) for row in rows)
