"""The text of one symbol in a source file: Python by `ast`; JavaScript, TypeScript, Go, Rust and Java by a scanner.

    find(".py", source, "Auth.login")   the lines of the method, decorators included, or None

The scanner knows strings, comments and brackets, and cuts a file into statements; it is not a parser. What it does not
understand it does not find, so it never returns text that is not the symbol's. Definitions of the same name (overloads,
getter and setter) count together. Pure text; raises nothing but Unparsable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memlane.core import collecting
from memlane.core.patterns import lazily
from memlane.core.values import dataclass

MAX_CHARS = 500_000  # larger files are probably generated; no symbols are looked for in them
Named = tuple[str, int, int]  # full name, start, end
_LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), "script"),
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
}


class Unparsable(Exception):
    """The source is not valid at the moment: somebody may be editing it."""


def find(suffix: str, source: str, name: str) -> str | None:
    """The text of a symbol, see `normal`; None where there is none. Raises Unparsable.

    `name` is dotted (`Class.method`); without a symbol of that full name, it stands for all whose names end with it.
    """
    language = _LANGUAGES.get(suffix.lower())
    if language is None or len(source) > MAX_CHARS:
        return None
    source = normal(source)
    word = name.rpartition(".")[2]
    spans = _python(source, word) if language == "python" else _scan(source, language, word)
    exact = {(start, end) for full, start, end in spans if full == name}
    chosen = sorted(exact or {(start, end) for full, start, end in spans if full.endswith(f".{name}")})
    return "\n".join(source[start:end] for start, end in chosen) if chosen else None


def normal(source: str) -> str:
    """The source without a byte order mark, carriage returns and blanks at line ends."""
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if " \n" not in source and "\t\n" not in source:  # as in most files
        return source.rstrip(" \t")
    return "\n".join(line.rstrip(" \t") for line in source.split("\n"))


# -- Python


def _python(source: str, word: str) -> list[Named]:
    """The symbols that have this word as the last part of their names."""
    try:
        with collecting.paused():
            return _in_tree(source, word)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unparsable from None


def _in_tree(source: str, word: str) -> list[Named]:
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as about invalid escapes in the source
        tree = ast.parse(source)
    nodes: list[tuple[str, ast.stmt | ast.expr, ast.stmt]] = []  # full name, and where it begins and ends
    pending: list[tuple[str, bool, ast.AST]] = [("", False, tree)]
    while pending:
        prefix, local, parent = pending.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                for target in () if local else node.targets if isinstance(node, ast.Assign) else (node.target,):
                    if not isinstance(target, ast.Name):
                        named = [part for part in ast.walk(target) if isinstance(part, ast.Name) and part.id == word]
                        nodes += [(prefix + word, node, node)] * len(named)
                    elif target.id == word:
                        nodes.append((prefix + word, node, node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if node.name == word:
                    nodes.append((prefix + word, (*node.decorator_list, node)[0], node))
                pending.append((f"{prefix}{node.name}.", local or not isinstance(node, ast.ClassDef), node))
            elif not isinstance(node, ast.expr) and (hasattr(node, "body") or hasattr(node, "cases")):
                pending.append((prefix, local, node))
    if not nodes:
        return []
    lines = [0, *(match.end() for match in re.finditer("\n", source))]
    ends = [*(start - 1 for start in lines[1:]), len(source)]
    return [(name, lines[first.lineno - 1], ends[(last.end_lineno or last.lineno) - 1]) for name, first, last in nodes]


# -- the other languages: blank out strings and comments, match the brackets, cut into statements, name them


@dataclass(frozen=True, slots=True)
class _Source:
    """A file ready to be cut up; positions in `masked` are positions in the file."""

    masked: str  # with blanks for strings and comments
    closing: dict[int, int]  # where each opening bracket is closed
    language: str


@dataclass(frozen=True, slots=True)
class _Region:
    """A piece of a file that holds statements: the file, or the body of something."""

    start: int
    end: int
    prefix: str = ""
    kind: str = "block"  # or "class", "object" (separated by commas), "group" (Go's parentheses)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement. `blocks` are its braces, each from { to after }; `head` is the text before the first."""

    start: int
    end: int
    head: str
    blocks: tuple[tuple[int, int], ...]


def _scan(text: str, language: str, word: str) -> list[Named]:
    """The symbols with this word in their text: those of the name that is looked for are among them."""
    masked = _masked(text, language)
    source = _Source(masked, _brackets(masked), language)
    found: list[Named] = []
    pending = [_Region(0, len(masked))] if word in masked else []
    while pending:
        region = pending.pop()
        for start, end, blocks in _statements(source, region):
            if masked.find(word, start, end) < 0:
                continue
            statement = _statement(source, start, end, blocks)
            names, body = _NAMERS[language](statement, region, masked)
            found += [(region.prefix + name, statement.start, statement.end) for name in names]
            if body is not None:
                pending.append(body)
    return found


# -- strings and comments

_INTERESTING = {
    "script": lazily(r"[\"'`/{}]"),
    "go": lazily(r"[\"'`/]"),
    "java": lazily(r"[\"'/]"),
    "rust": lazily(r"['/]|(?:\b(?:[bc]|[bc]?r#*))?\""),
}
_QUOTED = {sign: lazily(rf"{sign}(?:[^{sign}\\\n]|\\[\s\S])*+{sign}") for sign in "\"'"}
_BLOCK_COMMENT = lazily(r"/\*[\s\S]*?\*/")
_NESTED_COMMENT = lazily(r"/\*|\*/")
_GO_RAW = lazily(r"`[^`]*`")
_JAVA_TEXT_BLOCK = lazily(r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+"""')
_RUST_STRING = lazily(r'[bc]?(?:r(#*)"[\s\S]*?"\1|"(?:[^"\\]|\\[\s\S])*+")')
_RUST_CHAR = lazily(r"'(?:[^'\\\n]|\\[^\n]{1,10}?)'")
_REGEX = lazily(r"/(?![*/])(?:[^\\/\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/[a-z]*")
_BEFORE_REGEX = lazily(
    r"(?:^|[(,=:\[!&|?{;+*%~^-]|=>|\b(?:return|typeof|case|in|of|delete|void|do|else|new|throw|yield|await))$"
)
_NOT_NEWLINE = lazily(r"[^\n]")
_TEMPLATE_PART = lazily(r"\\[\s\S]|`|\$\{")


def _masked(text: str, language: str) -> str:
    """The text with blanks for what is in strings, comments and regular expressions, of the same length.

    A template string of JavaScript is blanked as a whole, with the code in its ${…}. Raises Unparsable.
    """
    parts: list[str] = []
    done = at = mark = outermost = 0
    tail = ""  # the last code before this place
    templates: list[int] = []  # for each template around this place, how many braces are open in its ${
    hopeless: dict[str, int] = {}
    interesting = _INTERESTING[language]
    while match := interesting.search(text, at):
        start, sign = match.start(), match[0]
        if sign == "/":
            tail, mark = text[mark:start].rstrip()[-12:] or tail, start
        at = start + 1
        if sign in "{}" or (sign == "`" and language == "script"):
            if sign == "`":
                outermost = outermost if templates else start
                templates.append(0)
            elif not templates:
                continue
            elif sign == "{" or templates[-1]:
                templates[-1] += 1 if sign == "{" else -1
                continue
            at, closed = _template_part(text, at)
            mark, tail = at, '"'
            if closed:
                templates.pop()
            if templates:
                continue
            start, sign = outermost, "`"
        else:
            end = _literal_end(text, match, language, tail, hopeless)
            if not end:
                at = match.end()
                continue
            at = mark = end
            sign = "" if sign == "/" and text[start + 1] in "/*" else '"'
            tail = sign or tail
            if templates:
                continue
        blank = f"{sign}{' ' * (at - start - 2)}{sign}" if sign else _NOT_NEWLINE.sub(" ", text[start:at])
        parts += (text[done:start], blank)
        done = at
    if templates:
        raise Unparsable
    return "".join(parts) + text[done:]


def _template_part(text: str, at: int) -> tuple[int, bool]:
    """From inside a template string to after its end, or after its next ${; whether it is the end."""
    while match := _TEMPLATE_PART.search(text, at):
        at = match.end()
        if match[0] in ("`", "${"):
            return at, match[0] == "`"
    raise Unparsable


def _literal_end(text: str, match: re.Match[str], language: str, tail: str, hopeless: dict[str, int]) -> int:
    """The end of the string, comment or regular expression that begins here; 0 when none does. Raises Unparsable.

    `hopeless` notes up to where a quote of a kind has no partner, so that nothing is searched twice.
    """
    at, sign = match.start(), match[0]
    if sign == "/" and text.startswith("//", at):
        return _line_end(text, at)
    if sign == "/" and text.startswith("/*", at):
        return _nested_comment_end(text, at) if language == "rust" else _closed(_BLOCK_COMMENT, text, at)
    if language == "rust":
        char = _RUST_CHAR.match(text, at) if sign == "'" else None
        return char.end() if char else 0 if sign in "'/" else _closed(_RUST_STRING, text, at)
    if sign == "`":
        return _closed(_GO_RAW, text, at)
    if language == "java" and text.startswith('"""', at):
        return _closed(_JAVA_TEXT_BLOCK, text, at)
    if at < hopeless.get(sign, 0) or (sign == "/" and not (language == "script" and _BEFORE_REGEX.search(tail))):
        return 0
    literal = _QUOTED.get(sign, _REGEX).match(text, at)
    if literal is None:  # a division, or an apostrophe as between tags
        hopeless[sign] = _line_end(text, at)
    return literal.end() if literal else 0


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _closed(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise Unparsable
    return match.end()


def _nested_comment_end(text: str, at: int) -> int:
    depth = 0
    for match in _NESTED_COMMENT.finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    raise Unparsable


def _brackets(masked: str) -> dict[int, int]:
    """Where each opening bracket is closed. Raises Unparsable when they do not match."""
    pairs = {")": "(", "]": "[", "}": "{"}
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(r"[()\[\]{}]", masked):
        at, sign = match.start(), match[0]
        if sign not in pairs:
            opened.append(at)
        elif not opened or masked[opened[-1]] != pairs[sign]:
            raise Unparsable
        else:
            closing[opened.pop()] = at
    if opened:
        raise Unparsable
    return closing


# -- statements

_EVENT = lazily(r"[(\[{;,]|(?<![=!<>])=(?![=>])")
_EVENT_OR_LINE = lazily(r"[(\[{;,\n]|(?<![=!<>])=(?![=>])")
_VISIBLE = lazily(r"\S")
_GOES_ON = (*"=+-*/%&|^<?:,.(!~", "=>")  # at the end of a line
_GO_GOES_ON = tuple("=+-*/%&|^<>,.(!")
_CONTINUES = lazily(  # at the start of the next
    r"[.?:+/%&|=<>,)\]^-]|(?:extends|implements|instanceof|as|satisfies)\b"
)
_DECLARES = lazily(
    r"(?:(?:export|default|declare|abstract|async|const(?=\s+enum))\s+)*"
    r"(?:function|class|interface|enum|namespace|module|global)\b"
)
_EXPRESSION = lazily(
    r"(?:export\s+(?:declare\s+)?)?(?:const|let|var|type)\b|(?:return|throw|await|yield|new)\b|export\s+default\b"
)
_RUST_VALUE = lazily(r"(?:const(?!\s+(?:unsafe|async|extern|fn)\b)|static|type|let|use)\b")
_LEAD = {"script": "@", "java": "@", "rust": "#"}
_DECORATOR = lazily(r"@[\w.$]+[ \t]*|(?:#!?\s*)*#!?")


def _statements(source: _Source, region: _Region) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Start, end and blocks of each statement; the last may be empty."""
    masked = source.masked
    by_line = source.language in ("go", "script") and region.kind != "object"
    event = _EVENT_OR_LINE if by_line else _EVENT

    def visible(at: int) -> int:
        match = _VISIBLE.search(masked, at, region.end)
        return match.start() if match else region.end

    start = at = visible(region.start)
    assigned = False
    blocks: list[tuple[int, int]] = []
    while at < region.end and (match := event.search(masked, at, region.end)):
        here, sign = match.start(), match[0]
        at = source.closing[here] + 1 if sign in "([{" else here + 1
        over, end = False, at
        if sign == "{":
            blocks.append((here, at))
            after = masked[at : at + 40].lstrip(" \t")[:1]
            head = _head(source, start, blocks[0][0])
            over = after not in tuple("{>|&[") and _ends_with_braces(head, assigned, region, source.language)
        elif sign == "=":
            assigned = True
        elif sign == "\n":
            end = here
            over, at = _ends_with_line(source, region, start, here, bool(blocks))
        elif sign == ",":
            over, end = region.kind == "object", here
        else:
            over = sign == ";"
        if over:
            yield start, end, blocks
            start = at = visible(at)
            assigned, blocks = False, []
    yield start, region.end, blocks


def _statement(source: _Source, start: int, end: int, blocks: Sequence[tuple[int, int]]) -> _Statement:
    """The statement between two places, without the blanks around it."""
    text = source.masked[start:end].rstrip()
    last, start = start + len(text), start + len(text) - len(text.lstrip())
    return _Statement(start, last, _head(source, start, blocks[0][0] if blocks else end), tuple(blocks))


def _head(source: _Source, start: int, end: int) -> str:
    """The beginning of a statement without decorators, annotations or attributes, up to a length."""
    masked, closing, lead = source.masked, source.closing, _LEAD.get(source.language)

    def visible(at: int) -> int:
        match = _VISIBLE.search(masked, at, end)
        return match.start() if match else end

    at = visible(start)
    while lead and masked.startswith(lead, at) and not masked.startswith("@interface", at):
        decorator = _DECORATOR.match(masked, at, end)
        if decorator is None:
            break
        at = decorator.end()
        at = visible(closing[at] + 1 if at in closing and masked[at] in "([" else at)
    return masked[at : min(end, at + 2000)]


def _ends_with_braces(head: str, assigned: bool, region: _Region, language: str) -> bool:
    """Whether a statement is over after its braces."""
    if language == "rust":
        return _RUST_VALUE.match(_RUST_LEAD.sub("", head, count=1)) is None
    if language == "go" or region.kind == "object":
        return False
    if language == "java" or region.kind == "class":
        return not assigned
    return bool(_DECLARES.match(head)) or not (assigned or _EXPRESSION.match(head))


def _ends_with_line(source: _Source, region: _Region, start: int, at: int, braced: bool) -> tuple[bool, int]:
    """Whether a statement is over at a line end, and where to read on."""
    masked = source.masked
    before = masked[max(start, at - 80) : at].rstrip()
    if source.language == "go":
        return not before.endswith(_GO_GOES_ON), at + 1
    following = _VISIBLE.search(masked, at, region.end)
    if following is None:
        return True, at + 1
    next_at = following.start()
    goes_on = (
        before.endswith(_GOES_ON)
        or _CONTINUES.match(masked, next_at)
        or (region.kind == "block" and masked[next_at] == "*")
        or (masked[start] == "@" and not _head(source, start, at))
        or (masked[next_at] == "{" and not braced and not _EXPRESSION.match(_head(source, start, at)))
    )
    return (False, next_at) if goes_on else (True, at + 1)


# -- names

_NAME = r"[\w$]+"
_SCRIPT_DECLARED = lazily(
    rf"(?:(?:export|default|declare|abstract|async)\s+)*"
    rf"(?:(?P<function>function)\s*\*?|(?P<class>class|interface)|(?:const\s+)?enum|(?P<space>namespace|module)|type)"
    rf"\s+(?P<name>{_NAME}(?:\.{_NAME})*)"
)
_SCRIPT_VALUE = lazily(rf"(?:export\s+)?(?:declare\s+)?(?:const|let|var)\s+({_NAME})")
_SCRIPT_ASSIGNED = lazily(rf"({_NAME}(?:\.{_NAME})+)\s*=(?![=>])")
_SCRIPT_MEMBER = lazily(
    r"(?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|declare|accessor)\s+)*"
    rf"\*?\s*+(#?{_NAME}+)\s*+[?!]?+\s*+(?=[(<=:;,]|$)"
)


def _script_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    head = statement.head
    if region.kind in ("class", "object"):
        member = _SCRIPT_MEMBER.match(head.rstrip())
        if member is None:
            return [], None
        name = member[1]
        method = "(" in head or "=>" in head
        kind = "block" if method else "object" if region.kind == "object" else ""
    elif declared := _SCRIPT_DECLARED.match(head):
        name = declared["name"]
        kind = "class" if declared["class"] else "block" if declared["function"] or declared["space"] else ""
    elif value := _SCRIPT_VALUE.match(head) or _SCRIPT_ASSIGNED.match(head):
        name = re.sub(r"^(?:module\.)?exports\.|^this\.", "", value[1]).replace(".prototype.", ".")
        kind = _value_kind(statement, masked)
    else:
        return [], None
    return [name], _body(statement, region, name, kind)


def _value_kind(statement: _Statement, masked: str) -> str:
    """The kind of region in the braces at the end of an assigned value; "" when it does not end with braces."""
    if not statement.blocks:
        return ""
    start, end = statement.blocks[-1]
    if masked[end : statement.end].strip(" ;"):
        return ""
    before = masked[max(statement.start, start - 300) : start].rstrip()
    if before.endswith("=>") or re.search(rf"\bfunction\b\s*+\*?+\s*+(?:{_NAME}+)?+\s*+\([^=]*$", before):
        return "block"
    if re.search(r"=\s*class\b[^=]*$", before):
        return "class"
    return "object" if before.endswith("=") else ""


def _body(statement: _Statement, region: _Region, name: str, kind: str) -> _Region | None:
    """The region in a statement's last braces, if it has any."""
    if not kind or not statement.blocks:
        return None
    start, end = statement.blocks[-1]
    return _Region(start + 1, end - 1, f"{region.prefix}{name}.", kind)


_GO_METHOD = lazily(r"func\s*\(\s*+(?:\w++\s++)?\*?\s*+(\w++)[^)]*+\)\s*(\w+)")
_GO_NAMES = r"(\w+(?:\s*,\s*\w+)*)"
_GO_MEMBER = lazily(_GO_NAMES)
_GO_NAMED = lazily(rf"(?:func|type|var|const)\s+{_GO_NAMES}")
_GO_GROUP = lazily(r"(?:type|var|const)\s*\(")


def _go_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    if region.kind != "group":
        if method := _GO_METHOD.match(statement.head):
            return [f"{method[1]}.{method[2]}"], None
        if group := _GO_GROUP.match(statement.head):
            return [], _Region(statement.start + group.end(), statement.end - 1, "", "group")
    named = (_GO_MEMBER if region.kind == "group" else _GO_NAMED).match(statement.head)
    return (re.split(r"\s*,\s*", named[1]) if named else []), None


_RUST_LEAD = lazily(r"^(?:pub(?:\s*\([^)]*\))?\s+)?(?:default\s+)?")
_RUST_NAMED = lazily(
    r"(?:(?:const|async|unsafe|safe|extern(?:\s*\"[^\"]*\")?|auto)\s+)*"
    r"(?:fn|struct|enum|union|(?P<trait>trait)|type|static(?:\s+mut)?|(?P<mod>mod)|macro_rules!)\s+(?:r#)?(?P<name>\w+)"
    r"|const\s+(?P<const>\w+)\s*:"
)
_RUST_IMPL = lazily(r"(?:unsafe\s+)?impl\b")


def _rust_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    head = _RUST_LEAD.sub("", statement.head, count=1)
    if impl := _RUST_IMPL.match(head):
        type_name = _without_angles(head[impl.end() :]).split(" where ")[0].rpartition(" for ")[2]
        owner = re.search(r"(?<!\w)(\w++)\W*+$", type_name)
        return [], _body(statement, region, owner[1], "block") if owner else None
    named = _RUST_NAMED.match(head)
    if named is None:
        return [], None
    name = named["name"] or named["const"]
    return [name], _body(statement, region, name, "block") if named["trait"] or named["mod"] else None


def _without_angles(text: str) -> str:
    """A piece of Rust without <…>."""
    text = " ".join(text.replace("->", "").split())
    depth, kept = 0, []
    for sign in text:
        depth += (sign == "<") - (sign == ">")
        if not depth and sign != ">":
            kept.append(sign)
    return "".join(kept)


_JAVA_TYPE = lazily(r"(?:[\w-]+\s+)*(?:class|interface|enum|record|@interface)\s+(\w+)")
_JAVA_CALLED = lazily(r"(?<![\w$])([\w$]++)\s*+\(")
_JAVA_FIELD = lazily(r"(?<![\w$])([\w$]++)\s*+(?:\[\s*+\]\s*+)*+$")


def _java_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    head = statement.head.rstrip("; \n\t")
    if re.match(r"(?:package|import|static\s*$)\b", head):
        return [], None
    if kind := _JAVA_TYPE.match(head):
        return [kind[1]], _body(statement, region, kind[1], "block")
    head = head.partition("=")[0].rstrip()
    named = _JAVA_CALLED.search(head) or _JAVA_FIELD.search(head.partition(",")[0].rstrip())
    return ([named[1]] if named else []), None


_NAMERS = {"script": _script_names, "go": _go_names, "rust": _rust_names, "java": _java_names}
