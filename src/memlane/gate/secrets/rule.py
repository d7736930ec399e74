"""One rule of the table, and the two short ways to write a row. Compiles nothing at import."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of secret.

    `keywords` are lower-case; one of them must be there for `regex` to be tried: in a long word with a digit, or
    anywhere in the text for a `wide` rule. A rule without keywords waits for a long number. `group` is the part
    that is the secret. `check` has the last word on a value; `proof` overrides every filter when a checksum holds.
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
    # Placeholder words are looked for in the value unless the whole form is proof enough.
    decoys: bool = True
    # How far behind its keyword the match of a wide rule may end.
    reach: int = 700
    kind: str = "secret"


A = "[A-Za-z0-9]"
W = "[A-Za-z0-9_-]"
L = "[a-z0-9]"
H = "[0-9a-f]"
X = "[0-9A-Fa-f]"
B = "[A-Za-z0-9+/]"
U = "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"


def token(
    id: str,
    description: str,
    prefixes: str,
    body: str,
    least: int,
    most: int = 0,
    *,
    tail: str = "",
    entropy: float = 2.8,
    check: Callable[[str], bool] | None = None,
    proof: Callable[[str], bool] | None = None,
    wide: bool = False,
    not_after: str = "_",
) -> Rule:
    """A row for the commonest form, `prefix` + random characters; `prefixes` are separated by spaces."""
    heads = prefixes.split()
    head = re.escape(heads[0]) if len(heads) == 1 else "(?:" + "|".join(map(re.escape, heads)) + ")"
    upto = "" if most == 0 else str(most)
    end = "" if most == 0 else f"(?!{body})"
    return Rule(
        id,
        description,
        tuple(sorted({h.lower() for h in heads})),
        f"{head}{body}{{{least},{upto}}}+{tail}{end}",
        entropy=entropy,
        check=check,
        proof=proof,
        wide=wide,
        not_after=not_after,
    )


def form(id: str, description: str, keywords: str, regex: str, **more: Any) -> Rule:
    """A row that is more than a prefix; `keywords` are separated by spaces, `+_` is a space in one."""
    return Rule(id, description, tuple(k.replace("+_", " ") for k in keywords.split()), regex, **more)


def wide(*rows: Rule) -> tuple[Rule, ...]:
    """The same rows with their keywords looked for in the whole text: these words stand apart from the value."""
    return tuple(replace(row, wide=True) for row in rows)
