"""A named symbol's own text in a source file: Python by `ast`, JavaScript, TypeScript, Go, Rust and Java by a scanner.

    find(".py", source, "Auth.login")   the lines of the method, decorators included, or None

The scanner knows strings, comments and brackets, and cuts a file into statements; it is no parser. What it does not
understand it does not find, and nobody is told a text that is not the symbol's. Definitions of the same name
(overloads, getter and setter) count together. Pure text; never raises for what stands in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 500_000  # larger files are generated, and looked at as a whole
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
    """The text of the symbol, its line ends and trailing blanks made alike; None where there is none.

    `name` is dotted (`Class.method`). One that is not a full name stands for all that end with it. Raises Unparsable.
    """
    language = _LANGUAGES.get(suffix.lower())
    if language is None or len(source) > MAX_CHARS:
        return None
    source = normal(source)
    spans = _python(source) if language == "python" else _scan(source, language)
    exact, ending = [], []
    for full, start, end in spans:
        if full == name:
            exact.append((start, end))
        elif full.endswith(f".{name}"):
            ending.append((start, end))
    chosen = sorted(set(exact or ending))
    return "\n".join(source[start:end] for start, end in chosen) if chosen else None


def normal(source: str) -> str:
    """The source without byte order mark, carriage returns and blanks at line ends."""
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(line.rstrip(" \t") for line in source.split("\n"))


# -- Python


def _python(source: str) -> list[Named]:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source's own escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unparsable from None
    lines = [0, *(match.end() for match in re.finditer("\n", source))]

    def span(first: ast.stmt | ast.expr, last: ast.stmt) -> tuple[int, int]:
        end = last.end_lineno or last.lineno
        return lines[first.lineno - 1], (lines[end] - 1 if end < len(lines) else len(source))

    found: list[Named] = []
    pending: list[tuple[str, bool, ast.AST]] = [("", False, tree)]
    while pending:
        prefix, local, parent = pending.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.append((prefix + node.name, *span((*node.decorator_list, node)[0], node)))
                pending.append((f"{prefix}{node.name}.", local or not isinstance(node, ast.ClassDef), node))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                found += [(prefix + name, *span(node, node)) for name in names if not local]
            elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                pending.append((prefix, local, node))
    return found


# -- the other languages: blank out strings and comments, match the brackets, cut into statements, name them


@dataclass(frozen=True, slots=True)
class _Region:
    """A piece of a file that holds statements: the file, or the body of something."""

    start: int
    end: int
    prefix: str = ""
    kind: str = "block"  # or "class", "object" (parted by commas), "group" (Go's parentheses)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement. `head` is what stands before its first braces; `blocks` are those, each from { to after }."""

    start: int
    end: int
    head: str
    blocks: tuple[tuple[int, int], ...]


def _scan(source: str, language: str) -> list[Named]:
    masked = _masked(source, language)
    closing = _brackets(masked)
    found: list[Named] = []
    pending = [_Region(0, len(masked))]
    while pending:
        region = pending.pop()
        for statement in _statements(masked, closing, region, language):
            names, inside = _NAMERS[language](statement, region, masked)
            full = [region.prefix + name for name in names]
            found += [(name, statement.start, statement.end) for name in full]
            if inside is not None:
                pending.append(inside)
    return found


_INTERESTING = {
    "script": re.compile(r"[\"'`/{}]"),
    "go": re.compile(r"[\"'`/]"),
    "java": re.compile(r"[\"'/]"),
    "rust": re.compile(r"[\"'/]|\b(?:b|c|br|cr|r)(?:#*)\""),
}
_QUOTED = {sign: re.compile(rf"{sign}(?:[^{sign}\\\n]|\\[\s\S])*+{sign}") for sign in "\"'"}
_RUST_STRING = re.compile(r'"(?:[^"\\]|\\[\s\S])*+"')
_RUST_CHAR = re.compile(r"'(?:[^'\\\n]|\\[^\n]{1,10}?)'")
_NESTED_COMMENT = re.compile(r"/\*|\*/")
_REGEX = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/[a-z]*")
_BEFORE_REGEX = re.compile(
    r"(?:^|[(,=:\[!&|?{;+*%~^-]|=>|\b(?:return|typeof|case|in|of|delete|void|do|else|new|throw|yield|await))$"
)
_NOT_NEWLINE = re.compile(r"[^\n]")
_TEMPLATE_PART = re.compile(r"\\[\s\S]|`|\$\{")


def _masked(source: str, language: str) -> str:
    """The source, character for character, with blanks for what stands in strings, comments and regular expressions."""
    parts: list[str] = []
    done = at = mark = 0
    tail = ""  # the last code before this place
    open_templates: list[int] = []  # of each template around this place, how many braces are open in its ${
    outermost = 0
    hopeless: dict[str, int] = {}  # up to where a quote of this kind has no other

    def blank(start: int, end: int, sign: str) -> None:
        nonlocal done
        if not open_templates:
            text = source[start:end]
            gone = _NOT_NEWLINE.sub(" ", text) if not sign else sign + " " * (end - start - 2) + sign
            parts.extend((source[done:start], gone))
            done = end

    def in_template(start: int) -> int:
        """From inside a template's text to its end, or into its next ${; back to code."""
        nonlocal outermost
        while match := _TEMPLATE_PART.search(source, start):
            start = match.end()
            if match[0] == "`":
                open_templates.pop()
                if not open_templates:
                    blank(outermost, start, "`")
                return start
            if match[0] == "${":
                return start
        raise Unparsable

    interesting = _INTERESTING[language]
    while match := interesting.search(source, at):
        at, sign = match.start(), match[0]
        code = source[mark:at].rstrip()
        tail = code[-12:] or tail
        mark = at
        end = 0
        quote = '"'
        if sign in "{}":
            if open_templates:
                open_templates[-1] += 1 if sign == "{" else -1
                if open_templates[-1] < 0:
                    open_templates[-1] = 0
                    at = mark = in_template(at + 1)
                    tail = quote
                    continue
        elif sign == "/":
            quote = ""
            if source.startswith("//", at):
                end = source.find("\n", at)
                end = len(source) if end < 0 else end
            elif source.startswith("/*", at):
                end = _comment_end(source, at, nested=language == "rust")
            elif language == "script" and at >= hopeless.get(sign, 0) and _BEFORE_REGEX.search(tail):
                regex = _REGEX.match(source, at)
                end, quote = (regex.end(), '"') if regex else (0, "")
                hopeless[sign] = 0 if regex else _line_end(source, at)
        elif sign == "`":
            if language == "script":
                outermost = outermost if open_templates else at
                open_templates.append(0)
                at = mark = in_template(at + 1)
                tail = quote
                continue
            end = source.find("`", at + 1) + 1
            if not end:
                raise Unparsable
        elif language == "java" and source.startswith('"""', at):
            text_block = re.compile(r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+"""').match(source, at)
            if text_block is None:
                raise Unparsable
            end = text_block.end()
        elif language == "rust" and sign != "'":
            end = _rust_string_end(source, match)
        elif language == "rust":
            char = _RUST_CHAR.match(source, at)
            end = char.end() if char else 0  # else it is a lifetime
        elif at >= hopeless.get(sign, 0):
            string = _QUOTED[sign].match(source, at)
            end = string.end() if string else 0  # else an apostrophe, as between tags
            hopeless[sign] = 0 if string else _line_end(source, at)
        if end:
            blank(at, end, quote)
            at = mark = end
            tail = quote or tail
        else:
            at += len(sign)
    if open_templates:
        raise Unparsable
    return "".join(parts) + source[done:]


def _line_end(source: str, at: int) -> int:
    end = source.find("\n", at)
    return len(source) if end < 0 else end


def _comment_end(source: str, at: int, *, nested: bool) -> int:
    if not nested:
        end = source.find("*/", at + 2)
        if end < 0:
            raise Unparsable
        return end + 2
    depth = 0
    for match in _NESTED_COMMENT.finditer(source, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    raise Unparsable


def _rust_string_end(source: str, match: re.Match[str]) -> int:
    prefix = match[0][:-1].lstrip("bc")
    if prefix.startswith("r"):
        close = '"' + prefix.count("#") * "#"
        end = source.find(close, match.end())
        if end < 0:
            raise Unparsable
        return end + len(close)
    string = _RUST_STRING.match(source, match.end() - 1)
    if string is None:
        raise Unparsable
    return string.end()


def _brackets(masked: str) -> dict[int, int]:
    """Where each bracket that opens is closed. Raises Unparsable when they do not match."""
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

_EVENT = re.compile(r"[(\[{;,\n=]")
_VISIBLE = re.compile(r"\S")
_GOES_ON = re.compile(r"(?:[=+\-*/%&|^<?:,.(!~]|=>)$")  # at the end of a line
_GO_GOES_ON = re.compile(r"(?:[=+\-*/%&|^<>,.(!])$")
_CONTINUES = re.compile(
    r"[.?:+/%&|=<>,)\]^-]|(?:extends|implements|instanceof|as|satisfies)\b"
)  # at the start of the next
_CONTINUES_BLOCK = re.compile(r"[*]")
_DECLARES = re.compile(
    r"(?:(?:export|default|declare|abstract|async|const(?=\s+enum))\s+)*"
    r"(?:function|class|interface|enum|namespace|module|global)\b"
)
_EXPRESSION = re.compile(
    r"(?:export\s+(?:declare\s+)?)?(?:const|let|var|type)\b|(?:return|throw|await|yield|new)\b|export\s+default\b"
)
_RUST_VALUE = re.compile(r"(?:const(?!\s+(?:unsafe|async|extern|fn)\b)|static|type|let|use)\b")


def _statements(masked: str, closing: dict[int, int], region: _Region, language: str) -> Iterator[_Statement]:
    start = at = region.start
    end = region.end
    assigned = False
    blocks: list[tuple[int, int]] = []

    def statement(to: int) -> _Statement | None:
        first = _VISIBLE.search(masked, start, to)
        if first is None:
            return None
        head = _bare(masked, closing, first.start(), blocks[0][0] if blocks else to, language)
        last = to - (len(masked[first.start() : to]) - len(masked[first.start() : to].rstrip()))
        return _Statement(first.start(), last, head, tuple(blocks))

    while at < end and (match := _EVENT.search(masked, at, end)):
        at, sign = match.start(), match[0]
        over = False
        if sign in "([":
            at = closing[at] + 1
            continue
        if sign == "{":
            blocks.append((at, closing[at] + 1))
            at = closing[at] + 1
            first = _VISIBLE.search(masked, start, end)
            head = _bare(masked, closing, first.start() if first else start, blocks[0][0], language)
            after = masked[at : at + 40].lstrip(" \t")[:1]
            over = after not in tuple("{>|&[") and _ends_with_braces(head, assigned, region, language)
        else:
            at += 1
            if sign == "=":
                lone = masked[match.start() - 1 : match.start()] not in tuple("=!<>") and masked[
                    at : at + 1
                ] not in tuple("=>")
                assigned = assigned or lone
            elif sign == "\n":
                if language in ("go", "script") and region.kind != "object":
                    over, at = _ends_with_line(masked, closing, (start, at - 1, end), bool(blocks), region, language)
            else:
                over = sign == ";" or region.kind == "object"
        if over:
            found = statement(at - (sign == "," or sign == "\n"))
            if found:
                yield found
            start, assigned, blocks = at, False, []
    found = statement(end)
    if found:
        yield found


def _bare(masked: str, closing: dict[int, int], start: int, end: int, language: str) -> str:
    """What a statement begins with once decorators, annotations or attributes are taken away; not all of it."""
    lead = {"script": "@", "java": "@", "rust": "#"}.get(language)
    at = start
    while lead and masked.startswith(lead, at) and not masked.startswith("@interface", at):
        named = re.compile(r"@[\w.$]+[ \t]*|#!?").match(masked, at)
        if named is None:
            break
        at = named.end()
        if at in closing and masked[at] in "([":
            at = closing[at] + 1
        visible = _VISIBLE.search(masked, at, end)
        at = visible.start() if visible else end
    return masked[at : min(end, at + 2000)]


def _ends_with_braces(head: str, assigned: bool, region: _Region, language: str) -> bool:
    if language == "rust":
        return _RUST_VALUE.match(_RUST_LEAD.sub("", head, count=1)) is None
    if language == "java":
        return not assigned
    if language == "go" or region.kind == "object":
        return False
    if region.kind == "class":
        return not assigned
    return bool(_DECLARES.match(head)) or not (assigned or _EXPRESSION.match(head))


def _ends_with_line(
    masked: str, closing: dict[int, int], place: tuple[int, int, int], braced: bool, region: _Region, language: str
) -> tuple[bool, int]:
    """Whether a statement is over at a line end, and where to read on."""
    start, at, end = place
    first = _VISIBLE.search(masked, start, at)
    if first is None:
        return True, at + 1  # an empty line: what comes begins after it
    before = masked[max(first.start(), at - 80) : at].rstrip()
    if language == "go":
        return _GO_GOES_ON.search(before) is None, at + 1
    following = _VISIBLE.search(masked, at, end)
    if following is None:
        return True, at + 1
    next_at = following.start()
    head = _bare(masked, closing, first.start(), at, language)
    goes_on = (
        not head
        or _GOES_ON.search(before)
        or _CONTINUES.match(masked, next_at)
        or (region.kind == "block" and masked[next_at] == "*")
        or (masked[next_at] == "{" and not braced and not _EXPRESSION.match(head))
    )
    return (False, next_at) if goes_on else (True, at + 1)


# -- names

_NAME = r"[\w$]+"
_SCRIPT_DECLARED = re.compile(
    rf"(?:(?:export|default|declare|abstract|async)\s+)*"
    rf"(?:(?P<function>function)\s*\*?|(?P<class>class|interface)|(?:const\s+)?enum|(?P<space>namespace|module)|type)"
    rf"\s+(?P<name>{_NAME}(?:\.{_NAME})*)"
)
_SCRIPT_VALUE = re.compile(rf"(?:export\s+)?(?:declare\s+)?(?:const|let|var)\s+({_NAME})")
_SCRIPT_ASSIGNED = re.compile(rf"({_NAME}(?:\.{_NAME})+)\s*=(?![=>])")
_SCRIPT_MEMBER = re.compile(
    r"(?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|declare|accessor)\s+)*"
    rf"\*?\s*(#?{_NAME})\s*[?!]?\s*(?=[(<=:;,]|$)"
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
        return [name], _inside(statement, region, name, kind)
    if declared := _SCRIPT_DECLARED.match(head):
        name = declared["name"]
        kind = "class" if declared["class"] else "block" if declared["function"] or declared["space"] else ""
        return [name], _inside(statement, region, name, kind)
    if value := _SCRIPT_VALUE.match(head):
        return [value[1]], _inside(statement, region, value[1], _value_kind(statement, masked))
    if assigned := _SCRIPT_ASSIGNED.match(head):
        name = re.sub(r"^(?:module\.)?exports\.|^this\.", "", assigned[1]).replace(".prototype.", ".")
        return [name], _inside(statement, region, name, _value_kind(statement, masked))
    return [], None


def _value_kind(statement: _Statement, masked: str) -> str:
    """What the braces at the end of an assigned value hold."""
    if not statement.blocks or statement.blocks[-1][1] < len(masked[: statement.end].rstrip(" ;")):
        return ""
    before = masked[max(statement.start, statement.blocks[-1][0] - 300) : statement.blocks[-1][0]].rstrip()
    if before.endswith("=>") or re.search(rf"\bfunction\b\s*\*?\s*(?:{_NAME})?\s*\([^=]*$", before):
        return "block"
    if re.search(r"=\s*class\b[^=]*$", before):
        return "class"
    return "object" if before.endswith("=") else ""


def _inside(statement: _Statement, region: _Region, name: str, kind: str) -> _Region | None:
    if not kind or not statement.blocks:
        return None
    start, end = statement.blocks[-1]
    return _Region(start + 1, end - 1, f"{region.prefix}{name}.", kind)


_GO_METHOD = re.compile(r"func\s*\(\s*(?:\w+\s+)?\*?\s*(\w+)[^)]*\)\s*(\w+)")
_GO_NAMED = re.compile(r"(?:func|type|var|const)\s+(\w+(?:\s*,\s*\w+)*)")
_GO_GROUP = re.compile(r"(?:type|var|const)\s*\(")
_GO_MEMBER = re.compile(r"(\w+(?:\s*,\s*\w+)*)")


def _go_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    if region.kind == "group":
        member = _GO_MEMBER.match(statement.head)
        return (re.split(r"\s*,\s*", member[1]) if member else []), None
    if method := _GO_METHOD.match(statement.head):
        return [f"{method[1]}.{method[2]}"], None
    if group := _GO_GROUP.match(statement.head):
        return [], _Region(statement.start + group.end(), statement.end - 1, "", "group")
    named = _GO_NAMED.match(statement.head)
    return (re.split(r"\s*,\s*", named[1]) if named else []), None


_RUST_LEAD = re.compile(r"^(?:pub(?:\s*\([^)]*\))?\s+)?(?:default\s+)?")
_RUST_NAMED = re.compile(
    r"(?:(?:const|async|unsafe|safe|extern(?:\s*\"[^\"]*\")?|auto)\s+)*"
    r"(?:fn|struct|enum|union|(?P<trait>trait)|type|static(?:\s+mut)?|(?P<mod>mod)|macro_rules!)\s+(?:r#)?(?P<name>\w+)"
    r"|const\s+(?P<const>\w+)\s*:"
)
_RUST_IMPL = re.compile(r"(?:unsafe\s+)?impl\b")


def _rust_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    head = _RUST_LEAD.sub("", statement.head, count=1)
    if impl := _RUST_IMPL.match(head):
        kind = _without_angles(head[impl.end() :]).split(" where ")[0].rpartition(" for ")[2]
        owner = re.search(r"(\w+)\W*$", kind)
        return [], _inside(statement, region, owner[1], "block") if owner else None
    named = _RUST_NAMED.match(head)
    if named is None:
        return [], None
    name = named["name"] or named["const"]
    return [name], _inside(statement, region, name, "block") if named["trait"] or named["mod"] else None


def _without_angles(text: str) -> str:
    text = " ".join(text.replace("->", "").split())
    depth, kept = 0, []
    for sign in text:
        depth += (sign == "<") - (sign == ">")
        if not depth and sign != ">":
            kept.append(sign)
    return "".join(kept)


_JAVA_TYPE = re.compile(r"(?:[\w-]+\s+)*(?:class|interface|enum|record|@interface)\s+(\w+)")
_JAVA_CALLED = re.compile(r"([\w$]+)\s*\(")
_JAVA_FIELD = re.compile(r"([\w$]+)\s*(?:\[\s*\]\s*)*$")


def _java_names(statement: _Statement, region: _Region, masked: str) -> tuple[list[str], _Region | None]:
    head = statement.head.rstrip("; \n\t")
    if re.match(r"(?:package|import|static\s*$)\b", head):
        return [], None
    if kind := _JAVA_TYPE.match(head):
        return [kind[1]], _inside(statement, region, kind[1], "block")
    head = head.partition("=")[0].rstrip()
    named = _JAVA_CALLED.search(head) or _JAVA_FIELD.search(head.partition(",")[0].rstrip())
    return ([named[1]] if named else []), None


_NAMERS = {"script": _script_names, "go": _go_names, "rust": _rust_names, "java": _java_names}
