"""YAML front matter: finding it in a text, reading it safely, and editing it key by key. Pure functions.

PyYAML is imported on first use: that costs more time than all of memlane. What is written as memlane writes it, and as
most people do, is read without it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from memlane.core import collecting
from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.core.values import NamedTuple

MAX_FRONT = 64 * 1024  # bytes of YAML; more is data, not front matter
MAX_FRONT_DEPTH = 50
MAX_FRONT_VALUES = 10_000  # after aliases are followed: a "billion laughs" stops here
TWICE = "has a key twice"


class FrontMatterError(ValueError):
    """The YAML between the fences is not a plain mapping. `line` counts from the top of the file."""

    def __init__(self, why: str, line: int = 1) -> None:
        super().__init__(why)
        self.line = line


class Front(NamedTuple):
    """Where the parts of a text with front matter are: text[start:end] is YAML, text[body:] the body."""

    start: int
    end: int
    body: int


_OPEN = lazily(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = lazily(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_BLANK = lazily(r"[ \t]*\r?\n")


def find_front(text: str) -> Front | None:
    """Where the front matter is; None when there is no fence on line 1, or none that closes."""
    if not text.startswith(("---", "\ufeff---")):
        return None
    opened = _OPEN.match(text)
    if not opened:
        return None
    closed = _CLOSE.search(text, opened.end())
    if not closed:
        return None
    blank = _BLANK.match(text, closed.end())
    return Front(opened.end(), closed.start(), blank.end() if blank else closed.end())


def load_front(source: str) -> dict[str, Any]:
    """Parse front matter into str, int, float, bool, None, list and dict. Raises FrontMatterError.

    YAML 1.2's core types only: dates stay the strings they are, `no` and `on` are words.
    """
    return _loaded(source)[0]


def _loaded(source: str) -> tuple[dict[str, Any], Any]:
    """Values and the YAML node that they were made of; no node where `_simple` could read them, or there are none."""
    if len(source) > MAX_FRONT:
        raise FrontMatterError(f"is larger than {MAX_FRONT // 1024} KiB")
    if (simple := _simple(source)) is not None:
        return simple, None
    import yaml

    try:
        if sum(map(source.count, ("[", "{", "- ", "? "))) > MAX_FRONT_DEPTH:
            _refuse_depth(source)
        loader = _loader()(source)
        try:
            with collecting.paused():
                root = loader.get_single_node()
                values = loader.construct_document(root) if root else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = TWICE if error.problem == TWICE else f"is not valid YAML ({error.problem})"
        raise FrontMatterError(why, mark.line + 2 if mark else 1) from None
    except FrontMatterError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        # PyYAML raises any of these for an explicit tag on a value that does not fit it
        raise FrontMatterError(f"is not valid YAML ({type(error).__name__})") from None
    if values is None:
        return {}, None
    if not isinstance(values, dict):
        raise FrontMatterError("is not a mapping of keys to values")
    _refuse_size(values)
    return values, root


_QUOTED = r'"[^"\\]*"'
_SIMPLE = lazily(  # the lines that mean to YAML what they mean to the eye
    rf"([A-Za-z_][A-Za-z0-9_-]{{0,60}}): ({_QUOTED}|\[(?:{_QUOTED}(?:, {_QUOTED}){{0,200}})?\]"
    r"|[A-Za-z][A-Za-z_-]*|[0-9]{4}-[0-9]{2}-[0-9]{2}|0|[1-9][0-9]{0,15})"
)
_IN_QUOTES = lazily(_QUOTED)
_NO_WORDS = ("true", "false", "null")


def _simple(source: str) -> dict[str, Any] | None:
    """Front matter of which each line is a key and a word, a number, a text or a list of texts in quotes; a key, with
    one text a line below it; or a comment.

    None when it has anything else: then YAML has to say what it means.
    """
    values: dict[str, Any] = {}
    texts: list[str] | None = None  # of the key above, whose list this is
    for line in source.removesuffix("\n").split("\n"):
        if not line.isprintable():
            return None
        if line.startswith("# "):
            continue
        if texts is not None and line.startswith("  - "):
            if (text := _text(line[4:])) is None:
                return None
            texts.append(text)
            continue
        found = _SIMPLE.fullmatch(line)
        key, _, value = line.partition(":") if not found else (found[1], "", found[2])
        if texts == [] or key in values or key.lower() in _NO_WORDS or not _PLAIN_KEY.fullmatch(key):
            return None
        texts = None
        if not value:
            values[key] = texts = []
        elif not found:
            if value[0] != " " or (text := _text(value[1:])) is None:
                return None
            values[key] = text
        elif value[0] == '"':
            values[key] = value[1:-1]
        elif value[0] == "[":
            values[key] = value[2:-2].split('", "') if value != "[]" else []
        elif value in ("true", "false"):
            values[key] = value == "true"
        elif value.lower() in _NO_WORDS:
            return None
        else:
            values[key] = int(value) if value.isdigit() else value
    return None if texts == [] else values


def _text(value: str) -> str | None:
    """What a value says that is a text to every YAML parser, as `plain` writes it; None for any other."""
    if value[:1] == '"':
        return value[1:-1] if _IN_QUOTES.fullmatch(value) else None
    return value if _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value) else None


def render_front(values: Mapping[str, Any]) -> str:
    """Front matter for a new file, with its fences and the blank line after them. Strings are double-quoted."""
    lines = [f"{_key(key)}: {_flow(value)}\n" for key, value in values.items()]
    return "".join(("---\n", *lines, "---\n\n"))


def edit_front(text: str, changes: Mapping[str, Any]) -> str:
    """Set top-level front-matter keys (None removes one) and leave every other byte as it is.

    Comments, order, quoting and unknown keys of the rest survive. A text without front matter gets one.
    Raises FrontMatterError when the YAML is broken, or written in a way that cannot be edited by key.
    """
    if not changes:
        return text
    front = find_front(text)
    newline = newline_of(text)
    if front is None:
        bom = "\ufeff" * text.startswith("\ufeff")
        return bom + render_front(_present(changes)).replace("\n", newline) + text[len(bom) :]
    source = text[front.start : front.end]
    values, root = _loaded(source)
    expected = _present({**values, **changes})
    lines = source.splitlines(keepends=True)
    if root:
        starts = [(name.value, name.start_mark.line) for name, _ in root.value]
    else:
        rows = ((line.partition(":")[0], number) for number, line in enumerate(lines))
        starts = [(key, number) for key, number in rows if key in values]
    spans = _key_spans(lines, starts)
    try:
        source = _edited(lines, spans, changes, newline)
        unharmed = _present(load_front(source)) == expected
    except FrontMatterError:
        unharmed = False
    if not unharmed:  # a flow-style mapping or an exotic key: an error is better than damage to the rest
        raise FrontMatterError("is written in a way that cannot be edited key by key; edit it by hand")
    return text[: front.start] + source + text[front.end :]


def _edited(lines: list[str], spans: Mapping[str, tuple[int, int]], changes: Mapping[str, Any], newline: str) -> str:
    """The lines with those of some keys replaced."""
    replaced: dict[tuple[int, int], str] = {}
    added: list[str] = []
    for key, value in changes.items():
        line = "" if value is None else f"{_key(key)}: {_flow(value)}{newline}"
        span = spans.get(key)
        if span and span not in replaced:
            replaced[span] = line
        elif line:  # a new key, or one that shared its line with another that is replaced
            added.append(line)
    for (start, end), line in sorted(replaced.items(), reverse=True):
        lines[start:end] = [line]
    source = "".join(lines)
    return source + newline * bool(added and source and not source.endswith("\n")) + "".join(added)


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def with_body(text: str, body: str) -> str:
    """The text with another body. Its front matter stays; a body that itself looks like front matter stays a body."""
    front = find_front(text)
    newline = newline_of(text)
    head = text[: front.body] if front else "\ufeff" * text.startswith("\ufeff")
    if front and not head.endswith("\n"):
        head += newline * 2
    for separator in ("", newline, f"---{newline}---{newline * 2}"):
        changed = head + separator + body
        changed_front = find_front(changed)
        start = changed_front.body if changed_front else len(head)
        if changed[start:] == body and bool(changed_front) == bool(front or separator):
            return changed
    raise AssertionError("an empty front matter always keeps a body apart")


def plain(value: str) -> str:
    """A YAML scalar without quotes where that is safe in every YAML parser, else double-quoted."""
    return value if _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value) else quoted(value)


def quoted(value: str) -> str:
    """A double-quoted YAML scalar on one line."""
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_PLAIN = lazily(r"[A-Za-z0-9](?:[A-Za-z0-9 _./@+()-]|:(?=[A-Za-z0-9/]))*(?<! )")
_PLAIN_KEY = lazily(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_PLAIN = lazily(r"(?i)true|false|yes|no|on|off|y|n|null|[-+.0-9][-+.0-9_:ex]*|0x[0-9a-f]+|[0-9-]{8,10}")
_BREAKS = lazily("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TAG = "tag:yaml.org,2002:"
_TYPES = {  # what a scalar without quotes is, and the characters it may begin with ("" for an empty one)
    "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "null": (r"~|null|Null|NULL|", [*"~nN", ""]),
    "int": (r"[-+]?[0-9]{1,4000}", [*"-+0123456789"]),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
}


@cache
def _loader() -> Any:
    """The YAML loader class: core types of YAML 1.2, no merge keys, no key twice, no tags of Python."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text, scalar = f"{_TAG}str", yaml.ScalarNode
    kinds = {scalar: text, yaml.SequenceNode: f"{_TAG}seq", yaml.MappingNode: f"{_TAG}map"}
    numbers: dict[str, Callable[[str], Any]] = {f"{_TAG}int": int, f"{_TAG}float": _number}
    matches: dict[str, list[tuple[str, Callable[[str], object]]]] = {}
    for name, (pattern, beginnings) in _TYPES.items():
        for character in beginnings:
            matches.setdefault(character, []).append((_TAG + name, re.compile(rf"(?:{pattern})\Z").match))

    class Loader(base):  # type: ignore[misc]
        yaml_constructors: dict[str | None, Any] = {}  # noqa: RUF012

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            def value_of(node: Any) -> Any:
                if type(node) is scalar:  # as most are
                    if node.tag == text:
                        return node.value
                    if node.tag in numbers:
                        return numbers[node.tag](node.value)
                return self.construct_object(node, deep=deep)

            if all(key.tag == text and type(key) is scalar for key, _ in node.value):
                mapping = {key.value: value_of(value) for key, value in node.value}
            else:
                mapping = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                raise yaml.constructor.ConstructorError(None, None, TWICE, node.start_mark)
            return mapping

        def flatten_mapping(self, node: Any) -> None:
            """Do nothing: `<<` is a word like any other."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            """As PyYAML does, without the ways that we give it nothing for."""
            if kind is scalar and implicit[0] and value[:1] in matches:
                for tag, match in matches[value[:1]]:
                    if match(value):
                        return tag
            return kinds[kind]

        def descend_resolver(self, current_node: Any, current_index: Any) -> None:
            """Do nothing: there are no types by path."""

        def ascend_resolver(self) -> None:
            """Do nothing."""

    safe = yaml.constructor.SafeConstructor
    for name in ("null", "bool", "str", "seq", "map"):
        Loader.yaml_constructors[_TAG + name] = getattr(safe, f"construct_yaml_{name}")
    for tag, number in numbers.items():
        Loader.yaml_constructors[tag] = lambda _, node, number=number: number(node.value)
    Loader.yaml_constructors[None] = safe.construct_undefined
    return Loader


def _number(value: str) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else value


def _refuse_depth(source: str) -> None:
    """Raise FrontMatterError for nesting that would overflow the stack of PyYAML's C code."""
    import yaml

    depth = 0
    for event in yaml.parse(source, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FRONT_DEPTH:
            raise FrontMatterError("is nested too deeply")


def _refuse_size(values: dict[str, Any]) -> None:
    """Raise FrontMatterError for data that is deep, endless (an alias to itself) or huge once aliases are followed."""
    pending: list[tuple[Any, int]] = [(values, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        count += 1
        if count > MAX_FRONT_VALUES or depth > MAX_FRONT_DEPTH:
            raise FrontMatterError("is too deep or too large when its aliases are followed")
        if isinstance(value, dict | list):
            items = value.values() if isinstance(value, dict) else value
            pending.extend((item, depth + 1) for item in items)


def _flow(value: Any) -> str:
    """A value as one line of YAML."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(str(key))}: {_flow(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) and not _NOT_PLAIN.fullmatch(name) else quoted(name)


def _key_spans(lines: list[str], starts: list[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """First line of each top-level key and the one after its last, without comments and blank lines above the next."""
    spans: dict[str, tuple[int, int]] = {}
    above = end = len(lines)
    for key, line in reversed(starts):
        if line != above:  # else another key is on the same line
            end, above = above, line
            while end > line + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
                end -= 1
        spans[key] = (line, end)
    return spans
