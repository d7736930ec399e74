"""Links between memories and to things that are none: `[[src/auth.py]]`, `[[target|alias]]`, `[[memory:name]]`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlane.core.markdown import lines_with_code

_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_BACKTICKS = re.compile(r"`+")
CONTEXT = 100  # characters on each side
EDGES = {  # the first group of words that the context has decides; to a memory, and to anything else
    "memory": {
        "SUPERSEDES": ("supersede", "replace", "obsolete", "deprecate"),
        "EXTENDS": ("extend", "builds on", "elaborate", "expands on"),
        "CONTRADICTS": ("contradict", "conflicts with", "disagrees with"),
        "DEPENDS_ON": ("depends on", "require", "needs"),
    },
    "ghost": {
        "refactors": ("refactor", "rewrite", "restructure", "reorganize", "cleanup"),
        "plans": ("plan", "todo", "will", "should", "need to", "going to"),
        "debugs": ("bug", "fix", "issue", "error", "problem", "broken"),
        "mentions": ("note", "remember", "mention", "see also", "refer"),
    },
}
_WHOLE = frozenset({"will"})  # "willing" plans nothing
_PATTERNS = {
    kind: [
        (edge, re.compile("|".join(rf"\b{word}{chr(92) + 'b' if word in _WHOLE else ''}" for word in words)))
        for edge, words in groups.items()
    ]
    for kind, groups in EDGES.items()
}


def links_in(text: str) -> Iterator[tuple[str, str, str]]:
    """(node, edge type, context) of every link outside code. A node is `memory:<name>` or `ghost:<target>`."""
    if "[[" not in text:
        return
    plain = "".join(line if not code else re.sub(r"[^\n]", " ", line) for line, code in lines_with_code(text))
    plain = _without_inline_code(plain)
    for match in _LINK.finditer(plain):
        target, _, note = (part.strip() for part in match[1].partition("|"))
        if not target:
            continue
        context = text[max(0, match.start() - CONTEXT) : match.end() + CONTEXT].strip()
        is_memory = target.startswith("memory:")
        stated = note.removeprefix("type:") if note.startswith("type:") else ""
        yield target if is_memory else f"ghost:{target}", stated or edge_type(context, is_memory), context


def _without_inline_code(text: str) -> str:
    """The text with spaces for inline code: from a run of backticks to the next run that is as long."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    ends: list[int | None] = []  # where the code that each run opens ends; the last run first
    later: dict[int, int] = {}
    for start, end in reversed(runs):
        ends.append(later.get(end - start))
        later[end - start] = end
    parts, done = [], 0
    for (start, _), code_end in zip(runs, reversed(ends), strict=True):
        if start >= done and code_end is not None:
            parts += [text[done:start], " " * (code_end - start)]
            done = code_end
    return "".join(parts) + text[done:]


def edge_type(context: str, is_memory: bool) -> str:
    """What the words around a link say about it."""
    lowered = context.lower()
    for edge, pattern in _PATTERNS["memory" if is_memory else "ghost"]:
        if pattern.search(lowered):
            return edge
    return "RELATED_TO" if is_memory else "related_to"
