"""The links in a memory's text, to other memories or to anything else: `[[memory:name]]`, `[[src/auth.py]]`,
`[[target|alias]]`, `[[target|type:refactors]]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlane.core.markdown import lines_with_code

_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
PLACE = re.compile(r"(?<=.)(?:#(?P<heading>.*)|:\d+(?:[:-]\d+)?)$", re.DOTALL)  # in a file
_BACKTICKS = re.compile(r"`+")
CONTEXT = 100  # characters on each side
EDGES = {  # edge types and the words that imply them, for links to a memory and to anything else; the first match wins
    "memory": {
        "SUPERSEDES": ("supersede", "replace", "obsolete", "deprecate"),
        "EXTENDS": ("extend", "builds on", "elaborate", "expands on"),
        "CONTRADICTS": ("contradict", "conflicts with", "disagrees with"),
        "DEPENDS_ON": ("depends on", "require", "needs"),
    },
    "ghost": {
        "refactors": ("refactor", "rewrite", "restructure", "reorganize", "cleanup"),
        "plans": ("plan", "todo", r"will\b", "should", "need to", "going to"),
        "debugs": ("bug", "fix", "issue", "error", "problem", "broken"),
        "mentions": ("note", "remember", "mention", "see also", "refer"),
    },
}
_PATTERNS = {
    kind: [(edge, re.compile(rf"\b(?:{'|'.join(words)})")) for edge, words in groups.items()]
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


def placeless(target: str) -> str:
    """A target without the place in its file: `#heading`, `:12`."""
    return PLACE.sub("", target)


def _without_inline_code(text: str) -> str:
    """The text with inline code blanked out: from a run of backticks to the next run of the same length."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    ends: list[int | None] = []  # the end of the code that each run would open; the last run first
    later: dict[int, int] = {}  # the end of the next run of each length
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
    """The type of a link, judged by the words around it."""
    lowered = context.lower()
    for edge, pattern in _PATTERNS["memory" if is_memory else "ghost"]:
        if pattern.search(lowered):
            return edge
    return "RELATED_TO" if is_memory else "related_to"
