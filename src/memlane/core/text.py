"""Text to data: front matter, fenced code, headings, dates, slugs, words. Pure functions, no I/O."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, NamedTuple

MAX_FRONT = 64 * 1024  # bytes of YAML; more is data, not front matter
MAX_FRONT_DEPTH = 50
TWICE = "has a key twice"
MAX_FRONT_VALUES = 10_000  # after aliases are followed: a "billion laughs" stops here
MAX_TOML = 256 * 1024  # characters of a configuration file
MAX_DOTS = 1000  # in one line of it: Python's parser takes minutes for a key of many parts


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


# -- front matter

_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_BLANK = re.compile(r"[ \t]*\r?\n")


def find_front(text: str) -> Front | None:
    """Locate the front matter. None when the text has none: no fence on line 1, or one that never closes."""
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
    import yaml

    if len(source) > MAX_FRONT:
        raise FrontMatterError(f"is larger than {MAX_FRONT // 1024} KiB")
    try:
        if sum(map(source.count, ("[", "{", "- ", "? "))) > MAX_FRONT_DEPTH:
            _refuse_depth(source)
        found = yaml.load(source, Loader=_loader())  # noqa: S506 - a safe loader, narrowed further
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = TWICE if error.problem == TWICE else f"is not valid YAML ({error.problem})"
        raise FrontMatterError(why, mark.line + 2 if mark else 1) from None
    except FrontMatterError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        # an explicit tag on a value that does not fit it makes PyYAML fall over in many ways
        raise FrontMatterError(f"is not valid YAML ({type(error).__name__})") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise FrontMatterError("is not a mapping of keys to values")
    _measure(found)
    return found


def render_front(values: Mapping[str, Any]) -> str:
    """Front matter of a new file, fences and the blank line after them included. Strings are double-quoted."""
    lines = [f"{_key(key)}: {_flow(value)}\n" for key, value in values.items()]
    return "".join(("---\n", *lines, "---\n\n"))


def edit_front(text: str, changes: Mapping[str, Any]) -> str:
    """Set top-level front-matter keys (None removes one) and leave every other byte as it is.

    Comments, order, quoting and unknown keys of the rest survive. A text without front matter gets one.
    Raises FrontMatterError when the present YAML is broken: it is never guessed at.
    """
    if not changes:
        return text
    front = find_front(text)
    if front is None:
        values = {key: value for key, value in changes.items() if value is not None}
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        newline = newline_of(text)
        return bom + render_front(values).replace("\n", newline) + text[len(bom) :]
    source = text[front.start : front.end]
    expected = {key: value for key, value in {**load_front(source), **changes}.items() if value is not None}
    newline = newline_of(text)
    try:
        for key, value in changes.items():
            span = _key_span(source, key)
            line = "" if value is None else f"{_key(key)}: {_flow(value)}{newline}"
            if span:
                source = source[: span[0]] + line + source[span[1] :]
            elif line:
                if source and not source.endswith("\n"):
                    source += newline
                source += line
        unharmed = {k: v for k, v in load_front(source).items() if v is not None} == expected
    except FrontMatterError:
        unharmed = False
    if not unharmed:  # flow-style mappings, exotic keys: better to say so than to damage the rest
        raise FrontMatterError("is written in a way that cannot be edited key by key; edit it by hand")
    return text[: front.start] + source + text[front.end :]


def with_body(text: str, body: str) -> str:
    """The text with another body; its front matter stays, and a body that looks like front matter stays a body."""
    front = find_front(text)
    newline = newline_of(text)
    head = text[: front.body] if front else "\ufeff" * text.startswith("\ufeff")
    if front and not head.endswith("\n"):
        head += newline * 2
    for between in ("", newline, f"---{newline}---{newline * 2}"):
        changed = head + between + body
        found = find_front(changed)
        if changed[found.body if found else len(head) :] == body and bool(found) == bool(front or between):
            return changed
    raise AssertionError("an empty front matter always keeps a body apart")


def plain(value: str) -> str:
    """A YAML scalar without quotes where that is safe in every YAML parser, else double-quoted."""
    return value if _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value) else quoted(value)


def quoted(value: str) -> str:
    """A double-quoted YAML scalar on one line."""
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _./@+()-]|:(?=[A-Za-z0-9/]))*(?<! )")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_PLAIN = re.compile(r"(?i)true|false|yes|no|on|off|y|n|null|[-+.0-9][-+.0-9_:ex]*|0x[0-9a-f]+|[0-9-]{8,10}")
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TYPES = {
    "tag:yaml.org,2002:bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    "tag:yaml.org,2002:null": (re.compile(r"~|null|Null|NULL|"), "~nN\0"),
    "tag:yaml.org,2002:int": (re.compile(r"[-+]?[0-9]{1,4000}"), "-+0123456789"),
    "tag:yaml.org,2002:float": (
        re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"),
        "-+.0123456789",
    ),
}
_loader_class: Any = None


def _loader() -> Any:
    """The YAML loader, made on first use: importing PyYAML costs more than all of memlane."""
    global _loader_class
    if _loader_class is not None:
        return _loader_class
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
        yaml_constructors: dict[str | None, Any] = {}  # noqa: RUF012

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            mapping = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                raise yaml.constructor.ConstructorError(None, None, TWICE, node.start_mark)
            return mapping  # type: ignore[no-any-return]

        def flatten_mapping(self, node: Any) -> None:
            """No merge keys: `<<` is a word like any other."""

    def number(loader: Any, node: Any) -> Any:
        value = float(node.value)
        return value if math.isfinite(value) else node.value

    for tag, (pattern, first) in _TYPES.items():
        anchored = re.compile(rf"(?:{pattern.pattern})\Z")
        for character in first:
            key = "" if character == "\0" else character
            Loader.yaml_implicit_resolvers.setdefault(key, []).append((tag, anchored))
    safe = yaml.constructor.SafeConstructor
    for tag in ("null", "bool", "str", "seq", "map"):
        Loader.yaml_constructors[f"tag:yaml.org,2002:{tag}"] = getattr(safe, f"construct_yaml_{tag}")
    Loader.yaml_constructors["tag:yaml.org,2002:int"] = lambda _, node: int(node.value)
    Loader.yaml_constructors["tag:yaml.org,2002:float"] = number
    Loader.yaml_constructors[None] = safe.construct_undefined
    _loader_class = Loader
    return Loader


def _refuse_depth(source: str) -> None:
    """Raise FrontMatterError for nesting that would overflow the stack of PyYAML's C code."""
    import yaml

    depth = 0
    for event in yaml.parse(source, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FRONT_DEPTH:
            raise FrontMatterError("is nested too deeply")


def _measure(found: dict[str, Any]) -> None:
    """Raise FrontMatterError for data that is deep, endless (an alias to itself) or huge once aliases are followed."""
    pending: list[tuple[Any, int]] = [(found, 0)]
    seen = 0
    while pending:
        value, depth = pending.pop()
        seen += 1
        if seen > MAX_FRONT_VALUES or depth > MAX_FRONT_DEPTH:
            raise FrontMatterError("is too deep or too large when its aliases are followed")
        if isinstance(value, dict):
            pending.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            pending.extend((item, depth + 1) for item in value)


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


def _key_span(source: str, key: str) -> tuple[int, int] | None:
    """The lines of one top-level key: from its own line to the line of the next key, comments before that excluded.

    Raises FrontMatterError for what an edit of another key has made no YAML any more.
    """
    import yaml

    try:
        root = yaml.compose(source, Loader=_loader())
    except yaml.YAMLError as error:
        raise FrontMatterError(f"is not valid YAML ({type(error).__name__})") from None
    if not isinstance(root, yaml.MappingNode):
        return None
    starts = [name.start_mark.line for name, _ in root.value]
    for (name, _), line in zip(root.value, starts, strict=True):
        if name.value == key:
            lines = source.splitlines(keepends=True)
            end = min((other for other in starts if other > line), default=len(lines))
            while end > line + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
                end -= 1
            return sum(map(len, lines[:line])), sum(map(len, lines[:end]))
    return None


# -- TOML


def load_toml(source: str) -> dict[str, Any]:
    """Parse a configuration. Raises ValueError, also for what is no configuration but made to keep a parser busy."""
    import tomllib

    if len(source) > MAX_TOML:
        raise ValueError(f"it is larger than {MAX_TOML // 1024} KiB")
    if any(line.count(".") > MAX_DOTS for line in source.split("\n")):
        raise ValueError(f"a line has more than {MAX_DOTS:,} dots")
    try:
        return tomllib.loads(source)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


# -- lines, code and headings

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # str.splitlines also splits at form feeds and U+2028
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")


def newline_of(text: str) -> str:
    """The line end a text uses, judged by its first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def joined(text: str, addition: str) -> str:
    """The text, two line ends, the addition; in the line ends of the text."""
    newline = newline_of(text)
    if newline != "\n":
        addition = addition.replace("\r\n", "\n").replace("\n", newline)
    return text.rstrip() + newline * 2 + addition


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line with its line end, and whether it is part of a fenced code block (fences included)."""
    fence = ""
    for line in _LINE.findall(text):
        match = _FENCE.match(line) if line.lstrip(" ")[:3] in ("```", "~~~") else None
        if fence:
            yield line, True
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            yield line, True
        else:
            yield line, False


def heading(line: str) -> tuple[int, str] | None:
    """(level, text) of an ATX heading line."""
    if "#" not in line[:4]:
        return None
    match = _HEADING.match(line.rstrip("\r\n"))
    return (len(match[1]), match[2] or "") if match else None


def first_heading(text: str) -> str | None:
    """The text of the first level-1 heading outside code."""
    match = _TITLE.search(text)
    if match is None or not _has_fence(text, match.start()):
        return match[1].strip(" \t#") or None if match else None
    for line, in_code in lines_with_code(text):
        if not in_code and (title := _TITLE.match(line)):
            return title[1].strip(" \t#") or None
    return None


def _has_fence(text: str, end: int) -> bool:
    return text.find("```", 0, end) >= 0 or text.find("~~~", 0, end) >= 0


# -- dates

_EPOCH_SECONDS = (0, 10**11)


def moment(value: Any) -> datetime | None:
    """An aware datetime from an ISO date or time, an epoch in seconds or milliseconds, or a datetime; else None.

    A time without an offset is UTC.
    """
    try:
        if isinstance(value, datetime):
            found = value
        elif isinstance(value, date):
            found = datetime(value.year, value.month, value.day)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if 10**7 <= value < 10**8:  # 20230131: a date without dashes, not 1970
                return moment(str(int(value)))
            seconds = value if value < _EPOCH_SECONDS[1] else value / 1000
            return datetime.fromtimestamp(seconds, UTC) if seconds > _EPOCH_SECONDS[0] else None
        elif isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
        else:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


# -- words


def slug(text: str, limit: int = 60) -> str:
    """A file-name form of a title: lower-case words of any script joined by dashes; "" when nothing is left."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold().replace("'", ""))
    result = ""
    for word in words:
        joined = f"{result}-{word}" if result else word
        if len(joined.encode()) > limit:
            break
        result = joined
    if not result and words:
        result = words[0].encode()[:limit].decode(errors="ignore")
    return unicodedata.normalize("NFC", result.replace("_", "-").strip("-"))


def first_line(text: str, limit: int = 200) -> str:
    """The first line that says something, without Markdown's heading and list marks, cut with `...`."""
    for line in text.splitlines():
        if bare := line.strip().lstrip("#>*-+ \t").strip():
            return bare if len(bare) <= limit else bare[: limit - 3] + "..."
    return ""


STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before being but by can could did do does doing done
    for from get got had has have having he her here him his how i if in into is it its just let like me more most
    my no nor not now of off on one only or other our out over own said same she should so some such than that the
    their them then there these they this those through to too under up us use used using very was way we were what
    when where which while who will with would you your""".split()
)


def keywords(text: str, limit: int = 5) -> list[str]:
    """The words a text repeats most, in any script; stop words, numbers and very short Latin words are left out.

    Never empty for a text that has any letter or digit.
    """
    words = re.findall(r"\w+(?:-\w+)*", unicodedata.normalize("NFC", text).lower())
    counts: dict[str, int] = {}
    for word in words:
        word = word.strip("_-")[:50]
        if word in STOP_WORDS or word.isdigit() or (len(word) < 3 and word.isascii()) or not word:
            continue
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts, key=lambda word: -counts[word])  # stable: first mention first among equals
    return ranked[:limit] or [word[:50] for word in words[:1]]


# -- how long a text is for a model


def estimate(text: str) -> int:
    """Tokens of a text, roughly: a quarter of its characters; Chinese, Japanese, Korean and emoji count in full."""
    wide = 0 if text.isascii() else len(_wide().findall(text))
    return -(-(len(text) + 3 * wide) // 4)


@cache
def _wide() -> re.Pattern[str]:
    return re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff]")
