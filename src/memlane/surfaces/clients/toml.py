"""Change one table of a TOML text and nothing else, as `jsonc` does for JSON. Codex keeps its servers in TOML.

Every change is checked by parsing the result. A text that writes its tables in another way (inline, dotted) is refused
rather than guessed at. Does not read or write files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.core.toml import MAX_TOML, load_toml
from memlane.surfaces.clients.jsonc import Damaged, value_at

# What a bracket does not count in, and brackets and ends of lines. In a valid text every string is closed.
_TOKEN = lazily(
    r"""#[^\n]*|"{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[][{}\n]""", re.DOTALL
)
_PLAIN = lazily(r"\[{1,2}([\w-]+(?:\.[\w-]+)*)\]{1,2}\s*", re.ASCII)


def value(text: str) -> dict[str, Any]:
    """The value of a text. Raises Damaged."""
    try:
        return load_toml(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise Damaged(None, f"it is not valid TOML: {error}") from None


def put(text: str, path: Sequence[str], new: dict[str, Any]) -> str:
    """Write the table at a path to the end of the text, in place of one that is there. Raises Damaged."""
    before = value(text)
    expected = _with(before, path, new)
    text = text if value_at(before, path) is None else _without_table(text, path)
    newline = newline_of(text)
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_rendered(item)}" for key, item in new.items())]
    table = newline.join(lines) + newline
    if path[0] not in before and len(text + gap + table) <= MAX_TOML:  # below a whole text, it changes nothing of that
        return text + gap + _checked(table, _with({}, path, new), path)
    return _checked(text + gap + table, expected, path)


def drop(text: str, path: Sequence[str]) -> str:
    """Take out the table at a path, if there is one, those below it and the blank line before it. Raises Damaged."""
    before = value(text)
    if value_at(before, path) is None:
        return text
    return _checked(_without_table(text, path), _with(before, path, None), path)


def _without_table(text: str, path: Sequence[str]) -> str:
    newline = newline_of(text)
    sections = [(start, end) for start, end, name in _sections(text) if name[: len(path)] == tuple(path)]
    for start, end in reversed(sections):
        head, rest = text[:start], text[end:]
        if head.endswith(newline * 2) and (not rest or rest.startswith(newline)):
            head = head.removesuffix(newline)
        text = head + rest
    return text


def _sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(start, end, name) of each table of a valid text; it ends with its last key, before the comments of the next."""
    starts: list[tuple[int, tuple[str, ...]]] = []
    line, depth = 0, 0  # where the line begins, and how many brackets are open
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == "\n":
            line = token.end()
        elif sign in ("[", "{"):
            if not depth and not text[line : token.start()].strip(" \t\ufeff"):
                end = text.find("\n", token.end()) + 1 or len(text)
                starts.append((line, _name(text[token.start() : end])))
            depth += 1
        elif sign in ("]", "}"):
            depth -= 1
    for number, (start, name) in enumerate(starts, 1):
        stop = starts[number][0] if number < len(starts) else len(text)
        lines = re.findall(r"[^\n]*\n|[^\n]+", text[start:stop])
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        yield start, start + sum(map(len, lines)), name


def _name(line: str) -> tuple[str, ...]:
    """The name of the table that a line begins."""
    if plain := _PLAIN.fullmatch(line):
        return tuple(plain[1].split("."))
    table: Any = load_toml(line)
    name = []
    while table:
        key, table = next(iter(table.items()))
        table = table[0] if isinstance(table, list) else table
        name.append(key)
    return tuple(name)


def _with(table: dict[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    """The table with the value at a path set, or taken out when `new` is None."""
    rest = {key: item for key, item in table.items() if key != path[0]}
    if len(path) == 1:
        return rest if new is None else {**rest, path[0]: new}
    inner = table.get(path[0], {})
    if not isinstance(inner, dict):
        raise Damaged(None, f"{path[0]} is not a table")
    return {**rest, path[0]: _with(inner, path[1:], new)}


def _checked(text: str, expected: dict[str, Any], path: Sequence[str]) -> str:
    """The text, if it parses to what is expected; the outermost table may have gone with its last member."""
    try:
        parsed = value(text)
    except Damaged:
        parsed = {}
    if {path[0]: {}, **parsed} != {path[0]: {}, **expected}:
        raise Damaged(None, "its tables are written in a way that cannot be changed automatically")
    return text


def _rendered(item: Any) -> str:
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_rendered(inner)}" for key, inner in item.items()) + " }"
    if isinstance(item, list):
        return "[" + ", ".join(map(_rendered, item)) + "]"
    if isinstance(item, str | bool | int | float):
        return json.dumps(item, ensure_ascii=False)
    raise Damaged(None, "it has a value that cannot be written back")
