"""Change one member of a JSON text and nothing else: comments, order, indentation and line ends stay as they are.

Accepts what the clients accept: JSON with comments and trailing commas. A text without a value counts as an empty
object. Does not read or write files. `toml` does the same for TOML, and shares Damaged and `value_at`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memlane.core.text import newline_of

Key = str | int

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_SAME_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")


class Damaged(ValueError):
    """The text cannot be parsed or safely changed; `line` says where, if that is known."""

    def __init__(self, line: int | None, why: str) -> None:
        super().__init__(f"line {line}: {why}" if line else why)
        self.line = line


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place in the text; `items` are the members or elements of a container."""

    start: int
    end: int
    value: Any
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One member of an object or element of a list."""

    key: Key
    start: int  # where the key, or the element, begins
    node: Node
    comma: int | None  # the place after the comma that follows, if one does


# -- reading


def parse(text: str) -> Node | None:
    """The value with its positions; None for a text without a value. Raises Damaged."""
    at = _skip(text, text.startswith("\ufeff"))
    if at == len(text):
        return None
    try:
        node = _value(text, at)
    except RecursionError:
        raise Damaged(None, "it is nested too deeply") from None
    if (rest := _skip(text, node.end)) != len(text):
        raise _damaged(text, rest, "something follows the end of the value")
    return node


def value(text: str) -> Any:
    """The value of a text; {} for a text without one. Raises Damaged."""
    node = parse(text)
    return {} if node is None else node.value


def find(node: Node | None, path: Sequence[Key]) -> Node | None:
    """The node at a path of keys and indices. Of a repeated key the last one counts, as it does for clients."""
    for key in path:
        if node is None:
            return None
        node = next((item.node for item in reversed(node.items) if item.key == key), None)
    return node


def value_at(tree: Any, path: Sequence[Key]) -> Any:
    """The part of a parsed value at a path of keys and indices; None where there is nothing."""
    for key in path:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


def _skip(text: str, at: int) -> int:
    """The place after any blanks and comments."""
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _damaged(text: str, at: int, why: str) -> Damaged:
    return Damaged(text.count("\n", 0, at) + 1, why)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_SCALAR = json.JSONDecoder(parse_constant=_no_constant)


def _value(text: str, at: int) -> Node:
    if text[at : at + 1] in ("{", "["):
        return _container(text, at)
    try:
        scalar, end = _SCALAR.raw_decode(text, at)
    except ValueError:
        raise _damaged(text, at, "a value is expected here") from None
    return Node(at, end, scalar)


def _container(text: str, start: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    items: list[Item] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != close:
        if items and items[-1].comma is None:
            raise _damaged(text, at, f"a comma or {close} is expected here")
        key: Key = len(items)
        item_start = at
        if is_object:
            name = _value(text, at) if text[at : at + 1] == '"' else None
            if name is None:
                raise _damaged(text, at, f'a "key" or {close} is expected here')
            key = name.value
            at = _skip(text, name.end)
            if text[at : at + 1] != ":":
                raise _damaged(text, at, "a colon is expected here")
            at = _skip(text, at + 1)
        node = _value(text, at)
        at = _skip(text, node.end)
        comma = at + 1 if text[at : at + 1] == "," else None
        items.append(Item(key, item_start, node, comma))
        at = _skip(text, at + 1) if comma else at
    value = {item.key: item.node.value for item in items} if is_object else [item.node.value for item in items]
    return Node(start, at + 1, value, tuple(items))


# -- changing


def put(text: str, path: Sequence[str], new: Any) -> str:
    """Set the member at a path, and make the objects on the way that are missing. Raises Damaged."""
    root = parse(text)
    if root is None:
        newline = newline_of(text)
        return text + _dumped(_nested(path, new), "", "  ", newline) + newline
    if (node := find(root, path)) is not None:
        indent = _indent(text, node.start)
        return text[: node.start] + _dumped(new, indent, _unit(text, root), newline_of(text)) + text[node.end :]
    depth = max(depth for depth in range(len(path)) if find(root, path[:depth]) is not None)
    parent = find(root, path[:depth])
    if parent is None or not isinstance(parent.value, dict):
        raise Damaged(None, f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
    return _add(text, root, parent, _nested(path[depth + 1 :], new), path[depth])


def append(text: str, path: Sequence[str], new: Any) -> str:
    """Add an element to the list at a path, and make the list when it is missing. Raises Damaged."""
    root = parse(text)
    node = find(root, path)
    if root is None or node is None:
        return put(text, path, [new])
    if not isinstance(node.value, list):
        raise Damaged(None, f"{'.'.join(path)} is not a list")
    return _add(text, root, node, new, None)


def drop(text: str, path: Sequence[Key]) -> str:
    """Take out the member or element at a path, if there is one, with its comma and the blanks before it.

    Comments stay. This is the inverse of `put` and `append`: a text they added to comes back as it was. Raises Damaged.
    """
    parent = find(parse(text), path[:-1])
    index = max((i for i, item in enumerate(parent.items) if item.key == path[-1]), default=-1) if parent else -1
    if parent is None or index < 0:
        return text
    tight = _cut(text, parent, index, len(text[: parent.items[index].start].rstrip(" \t\r\n")))
    try:
        parse(tight)
    except Damaged:  # the blanks included the end of a line comment
        return _cut(text, parent, index, parent.items[index].start)
    return tight


def _cut(text: str, parent: Node, index: int, lead: int) -> str:
    """The text without an item of a container and without the blanks between `lead` and the item."""
    item = parent.items[index]
    end = item.comma or item.node.end
    if len(parent.items) == 1:
        rest = text[parent.start + 1 : lead] + text[end : parent.end - 1]
        return text[: parent.start + 1] + (rest if rest.strip() else "") + text[parent.end - 1 :]
    if item.comma is None:  # the last one: the item before it loses its comma
        comma = parent.items[index - 1].comma or lead
        return text[: comma - 1] + text[comma:lead] + text[end:]
    if lead == parent.start + 1 and lead == item.start:  # {"first": …, "second": …} on one line
        end = len(text) - len(text[end:].lstrip(" \t"))
    return text[:lead] + text[end:]


def _add(text: str, root: Node, parent: Node, new: Any, key: str | None) -> str:
    """Add a last item to a container, laid out like the item before it."""
    newline, unit = newline_of(text), _unit(text, root)
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if not parent.items:
        inner = text[parent.start + 1 : parent.end - 1].rstrip()
        if "\n" not in text.strip() and parent is not root and not inner:
            return text[: parent.start + 1] + _flat(text, name, new) + text[parent.end - 1 :]
        close = _indent(text, parent.start)
        body = name + _dumped(new, close + unit, unit, newline)
        return f"{text[: parent.start + 1]}{inner}{newline}{close}{unit}{body}{newline}{close}{text[parent.end - 1 :]}"
    last = parent.items[-1]
    before = parent.items[-2].node.end if len(parent.items) > 1 else parent.start
    if "\n" not in text[before : last.start]:
        body, end = _flat(text, name, new), last.comma or last.node.end
        gap = " " if _is_spaced(text) else ""
        return text[:end] + (f"{gap}{body}," if last.comma else f",{gap}{body}") + text[end:]
    indent = _indent(text, last.start)
    body = newline + indent + name + _dumped(new, indent, unit, newline)
    after = last.comma or last.node.end
    comment = _SAME_LINE.match(text, after)
    at = comment.end() if comment else after
    if last.comma:
        return text[:at] + body + "," + text[at:]
    return text[:after] + "," + text[after:at] + body + text[at:]


def _nested(path: Sequence[str], new: Any) -> Any:
    for key in reversed(path):
        new = {key: new}
    return new


def _dumped(new: Any, indent: str, unit: str, newline: str) -> str:
    return json.dumps(new, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _flat(text: str, name: str, new: Any) -> str:
    """An item on one line, with blanks after commas and colons only where the text has them."""
    if _is_spaced(text):
        return name + json.dumps(new, ensure_ascii=False)
    return name.replace(": ", ":") + json.dumps(new, ensure_ascii=False, separators=(",", ":"))


def _is_spaced(text: str) -> bool:
    return ", " in text or ": " in text


def _indent(text: str, at: int) -> str:
    """The indentation of the line that `at` is on."""
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: Node) -> str:
    """One step of indentation, taken from the outermost members."""
    for item in root.items:
        if "\n" in text[root.start : item.start]:
            return _indent(text, item.start) or "  "
    return "  "
