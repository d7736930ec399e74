"""The links of a memory, to other memories or to anything else, and which memory a link means.

In its text: `[[memory:name]]`, `[[src/auth.py]]`, `[[target|alias]]`, `[[target|type:refactors]]`; and what it is about
as a whole, where its scope is a file.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from memlane.core.markdown import lines_with_code
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.disk.names import PRIVATE, folded

_LINK = lazily(r"\[\[([^\[\]\n]+)\]\]")
PLACE = lazily(r"(?<=.)(?:#(?P<heading>.*)|:\d+(?:[:-]\d+)?)$", re.DOTALL)  # in a file
_BACKTICKS = lazily(r"`+")
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
_PATTERNS = {  # with the words themselves: a text full of links has none of them around most, which they tell faster
    kind: [
        (edge, tuple(word.removesuffix(r"\b") for word in words), lazily(rf"\b(?:{'|'.join(words)})"))
        for edge, words in groups.items()
    ]
    for kind, groups in EDGES.items()
}


def links_of(memory: Memory) -> Iterator[tuple[str, str, str]]:
    """As `links_in`, of a memory's text and of its scope."""
    yield from links_by_scope(memory)
    yield from links_in(memory.text)


def links_by_scope(memory: Memory) -> Iterator[tuple[str, str, str]]:
    """The link that a scope is: `file:src/auth.ts` to that file."""
    if memory.scope and memory.scope.startswith("file:"):
        target = memory.scope.removeprefix("file:").strip()
        yield f"ghost:{target}", "applies_to", f"applies_to: {memory.scope}"


def links_in(text: str) -> Iterator[tuple[str, str, str]]:
    """(node, edge type, context) of every link outside code. A node is `memory:<name>` or `ghost:<target>`."""
    for start, end, target, note in _written(text):
        context = text[max(0, start - CONTEXT) : end + CONTEXT].strip()
        is_memory = target.startswith("memory:")
        stated = note.removeprefix("type:") if note.startswith("type:") else ""
        yield target if is_memory else f"ghost:{target}", stated or edge_type(context, is_memory), context


def ghosts_in(text: str) -> Iterator[str]:
    """The targets of the links outside code that name no memory by its id."""
    return (target for _, _, target, _ in _written(text) if not target.startswith("memory:"))


def _written(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, target and the rest of every link outside code."""
    if "[[" not in text:
        return
    for match in _LINK.finditer(_without_code(text)):
        target, _, note = match[1].partition("|")
        if target := target.strip():
            yield *match.span(), target, note.strip()


def retargeted(text: str, name_for: Callable[[str], str | None]) -> str:
    """The text with other targets in its links: `name_for` gives the one for a node, None leaves it as it is.

    What a link says besides stays: the place in the file, the words that are shown.
    """
    parts, done = [], 0
    for match in _LINK.finditer(_without_code(text)):
        target = match[1].partition("|")[0].strip()
        bare = placeless(target)
        new = name_for(target if target.startswith("memory:") else f"ghost:{target}") if target else None
        if new is not None:
            start = match.start(1) + match[1].index(bare)
            kept = "memory:" if target.startswith("memory:") else ""
            parts += [text[done:start], kept, new]
            done = start + len(bare)
    return "".join([*parts, text[done:]])


def _without_code(text: str) -> str:
    """The text with code blanked out; everything else stays where it is."""
    plain = "".join(line if not code else re.sub(r"[^\n]", " ", line) for line, code in lines_with_code(text))
    return _without_inline_code(plain)


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
    for edge, words, pattern in _PATTERNS["memory" if is_memory else "ghost"]:
        if any(word in lowered for word in words) and pattern.search(lowered):
            return edge
    return "RELATED_TO" if is_memory else "related_to"


# -- which memory a link means


class Targets:
    """The memories that links can mean. A link names one by its id or, as in a vault of Obsidian, a note by its path.

    The path may be shortened to its end, down to the name alone; case and `.md` do not count, and neither does what
    follows a `#`, a place in the note. Of several notes that one could mean, it means the nearest: below the folder of
    the note that links, else the one with the shortest path.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids: dict[str, str] = {}
        self._by_end: dict[str, list[str]] = {}  # notes by the last part of their paths, and by the last two
        self._by_path: dict[str, tuple[list[str], list[tuple[str, int]]]] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        for id in sorted(ids, key=lambda known: (known.count("/"), len(known), known)):
            path = folded(id)
            self._ids.setdefault(path, id)
            if id.startswith("notes:"):
                parts = path[6:].rsplit("/", 2)
                for end in {parts[-1], "/".join(parts[-2:])}:
                    self._by_end.setdefault(end, []).append(id)

    def find(self, node: str, source: str = "") -> str | None:
        """The id that a node of `links_of` means in the memory `source`; None when it is no memory's."""
        kind, _, target = node.partition(":")
        name = placeless(target).strip()
        if name.startswith("#"):
            return source or None  # a heading of the note itself
        folder = source.removeprefix("notes:").rpartition("/")[0] if source.startswith("notes:") else ""
        if name.startswith(("./", "../")):
            name = os.path.normpath(os.path.join(folder, name))
        name = folded(name.lstrip("/"))
        note = f"notes:{name.removesuffix('.md')}"
        given = (note, name) if kind == "memory" else (name, note)
        found = next((self._ids[id] for id in given if id in self._ids), None)
        if found and ("/" in name or not found.startswith("notes:") or not folder):
            return found
        path = note.removeprefix("notes:").removeprefix("notes:")  # a note that was shared or made private has moved
        if (path, folder) not in self._found:
            shared = path.removeprefix(f"{PRIVATE}/")
            self._found[path, folder] = self._nearest(path, folder) or self._nearest(shared, folder)
        return self._found[path, folder]

    def may_mean(self, node: str, id: str | None) -> bool:
        """Whether a node could mean a memory, in one memory or another: a quick look at its last part."""
        name = folded(placeless(node.partition(":")[2])).removesuffix(".md")
        last = name.rpartition("/")[2].removeprefix("notes:")
        return id is not None and (name == folded(id) or last == folded(id).partition(":")[2].rpartition("/")[2])

    def _nearest(self, path: str, folder: str) -> str | None:
        if path not in self._by_path:
            alike = self._by_end.get("/".join(path.rsplit("/", 2)[-2:]), [])
            notes = [id for id in alike if f"/{folded(id[6:])}".endswith(f"/{path}")]
            # By name, those below a folder stand together: thousands of folders may have an `index` each.
            self._by_path[path] = notes, sorted((id, place) for place, id in enumerate(notes))
        notes, named = self._by_path[path]
        if folder and len(notes) > 1:
            low, high = (bisect_left(named, (f"notes:{folder}{end}",)) for end in "/0")  # 0 follows / in ASCII
            if low < high:
                return notes[min(place for _, place in named[low:high])]
        return notes[0] if notes else None


def last_name(id: str) -> str:
    """The last part of a memory's id, as `last_names` gives it."""
    return folded(id.partition(":")[2].rpartition("/")[2])


def last_names(node: str) -> set[str]:
    """The last parts of the ids that a link can mean, by its last part: the few memories that `Targets` must know."""
    last = folded(placeless(node.partition(":")[2]).strip()).rpartition("/")[2]
    names = {last, last.partition(":")[2] or last}
    return names | {name.removesuffix(".md") for name in names}


def namesakes(ids: Iterable[str], nodes: Iterable[str]) -> list[str]:
    """Those of these ids that a link can mean which means the same as one of the nodes."""
    names = {name for node in nodes for name in last_names(node)}
    ends = tuple(names)
    return [id for id in ids if (id.lower().endswith(ends) if id.isascii() else last_name(id) in names)]


def ghost(node: str) -> str:
    """The node of a link that means no memory: of a file, without a place in it."""
    kind, _, target = node.partition(":")
    name = placeless(target).strip()
    return f"ghost:{os.path.normpath(name)}" if kind == "ghost" and name and "://" not in name else node
