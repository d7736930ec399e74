"""Which keywords a text holds: those that wake a rule, and the words of a credential's name."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

from memlane.gate.secrets import names
from memlane.gate.secrets.pii import NUMBERS
from memlane.gate.secrets.rules import RULES

# Characters that are rare in notes, the rarest first. A keyword that has one is looked for where it stands, all of them
# in one pass; the others one by one, which is as quick for those few.
_RARE = '@!\\=2("q_xjk:/vywb-gpu'
_COMPILED_IN = 60_000  # characters
# Of a text with more keywords than one in so many characters, the rest is searched for each keyword: that takes less.
_PLACES = 80
_looked_at = 0


@cache
def rules_of(wide: bool) -> dict[str, tuple[int, ...]]:
    """The numbers of the rules that each keyword wakes, wide rules or the others."""
    rows: dict[str, tuple[int, ...]] = {}
    passed = {rule.id for rule in NUMBERS}
    for number, rule in enumerate(RULES):
        for keyword in rule.keywords if rule.wide == wide and rule.id not in passed else ():
            rows[keyword] = (*rows.get(keyword, ()), number)
    return rows


@cache
def anywhere() -> tuple[str, ...]:
    """What is looked for in the whole text, and not in long words alone."""
    return tuple(dict.fromkeys((*rules_of(True), *names.WORDS)))


def _pays(size: int) -> bool:
    """Whether the pattern pays off for a text of this size after those before: compiling it takes as long as to look
    for each keyword in so many characters. A hook reads less, and ends."""
    global _looked_at
    _looked_at += size
    return _looked_at > _COMPILED_IN


@cache
def _sought() -> tuple[re.Pattern[str], dict[str, list[tuple[str, int]]], list[str]]:
    """Finds the rare character of a keyword; for each of them the keywords, and its place in them; and the others."""
    rare: dict[str, list[tuple[str, int]]] = {}
    others = []
    for keyword in anywhere():
        foreign = [sign for sign in keyword if not sign.isascii()]
        sign = next((sign for sign in (*foreign, *_RARE) if sign in keyword), "")
        if sign:
            rare.setdefault(sign, []).append((keyword, keyword.index(sign)))
        else:
            others.append(keyword)
    # The commonest is tried first. Only one character is passed over, so that keywords may overlap.
    common = sorted(rare, key=_RARE.find, reverse=True)
    search = "|".join(re.escape(sign) + "(?:" + "|".join(_around(*row) for row in rare[sign]) + ")" for sign in common)
    return re.compile(search), rare, others


def _around(keyword: str, at: int) -> str:
    before, after = re.escape(keyword[: at + 1]), re.escape(keyword[at + 1 :])
    return f"(?<={before})(?={after})" if at else f"(?={after})"


def held(lowered: str) -> set[str]:
    """The keywords of wide rules and the words of names that a text in lower case holds."""
    if not _pays(len(lowered)):
        return {keyword for keyword in anywhere() if keyword in lowered}
    search, rare, others = _sought()
    found = {keyword for keyword in others if keyword in lowered}
    places = search.finditer(lowered)
    for match in islice(places, 100 + len(lowered) // _PLACES):
        start = match.start()
        for word, at in rare[match[0]]:
            if word not in found and lowered.startswith(word, start - at):
                found.add(word)
    if next(places, None):
        found |= {keyword for keyword in anywhere() if keyword not in found and keyword in lowered}
    return found


@cache
def _heads() -> tuple[dict[str, list[str]], frozenset[str]]:
    """The keywords of rules that are not wide, by their first three characters; and those that are shorter."""
    heads: dict[str, list[str]] = {}
    for keyword in rules_of(False):
        heads.setdefault(keyword[:3], []).append(keyword)
    return heads, frozenset(head for head in heads if len(head) < 3)


def woken_by(lowered: str) -> set[int]:
    """The numbers of the rules, other than wide ones, that long words in lower case wake."""
    heads, short = _heads()
    runs = set(map("".join, zip(lowered, lowered[1:], lowered[2:], strict=False)))
    found = (word for head in (heads.keys() & runs) | short for word in heads[head] if word in lowered)
    return {number for keyword in found for number in rules_of(False)[keyword]}
