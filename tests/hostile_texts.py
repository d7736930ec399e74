"""Every parser, and texts that are made to hurt one.

A parser takes any text and either reads it or raises MemlaneError (or the error that its module names for this).
test_fuzz.py looks for crashes with these two tables; bench/hostile.py prints what the worst texts cost.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import MemlaneError, Memory
from memlane.lanes import NAMES, open_lane

if TYPE_CHECKING:
    from memlane.surfaces.mcp.tools import Tool

NOW = datetime(2025, 1, 10, 14, 30, 22, tzinfo=UTC)
TODAY = NOW.date()
Parser = Callable[[str], Any]


# -- parsers


@cache
def _place() -> Path:
    """A folder for the parsers that read files; gone when the program ends."""
    import atexit
    import shutil

    folder = Path(tempfile.mkdtemp(prefix="memlane-hostile-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _lane(name: str) -> Parser:
    """Parse a file of a lane, and fetch what is in it as the index does."""
    places = {
        "notes": "a.md",
        "vault": "",
        "topics": "area/part.md",
        "records": "0b9e4a3c-1f6d-4c7a-9a55-2f0f6a9f1c11.md",
        "layers": "projects/app/known_issues.md",
    }

    def parse(text: str) -> None:
        root = _place() / (f"{name}.jsonl" if name == "vault" else name)
        file = root / places[name] if places[name] else root
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode(errors="surrogatepass"))
        lane = open_lane(name, root)
        for item in lane.parse(os.fspath(file)):
            if isinstance(item, Memory):
                item.to_dict()

    return parse


def _file(suffix: str, read: Callable[[Path], Any]) -> Parser:
    """Let something read the text as a file."""

    def parse(text: str) -> None:
        path = _place() / f"file{suffix}"
        path.write_bytes(text.encode(errors="surrogatepass"))
        read(path)

    return parse


def _front(text: str) -> None:
    from memlane.core.front_matter import edit_front, find_front, load_front

    front = find_front(f"---\n{text}\n---\nbody\n")
    assert front
    load_front(text)
    edit_front(f"---\n{text}\n---\nbody\n", {"tags": ["a"], "title": "b", "status": None})


def _body(text: str) -> None:
    from memlane.core.dates import moment
    from memlane.core.front_matter import with_body
    from memlane.core.markdown import first_heading, heading, lines_with_code
    from memlane.core.text import estimate, first_line, keywords, slug

    assert with_body("---\na: 1\n---\n", text).endswith(text)
    assert with_body("", text).endswith(text)
    for line, _ in lines_with_code(text):
        heading(line)
    first_heading(text), first_line(text), keywords(text), slug(text), estimate(text), moment(text)


def _index(text: str) -> None:
    from memlane.index import chunks, links, words

    for chunk in chunks.chunks(text):
        words.terms(chunk.text)
    list(links.links_in(text))


def _query(text: str) -> None:
    from memlane.index import query_dates, words
    from memlane.lanes.topics import search
    from memlane.recall.query import parse

    parse(text), query_dates.spans(text, NOW), search.parse(text), words.query_terms(text), words.plain_parts(text)


def _gate(text: str) -> None:
    from memlane.gate.secrets.scanner import redact, scan

    redact(text, scan(text, email=True, phone=True))


def _suspicious(text: str) -> None:
    from memlane.core.instructions import suspicious
    from memlane.core.invisible import visible
    from memlane.recall import blocks

    visible(text), suspicious(text), blocks.escaped(text), blocks.without_blocks(text)


def _entries(text: str) -> None:
    from memlane.lanes.topics import entries as t

    for raw in t.split(text).raws:
        t.render(t.parse(raw))


def _labels(text: str) -> None:
    from memlane.lanes.topics import entries as t

    t.fields(text), t.conflict(text), t.title_of(text)


def _archive(text: str) -> None:
    from memlane.lanes.topics import entries as t

    t.archived(text), t.open_fence(text)


def _topic_index(text: str) -> None:
    from memlane.lanes.topics import listing

    listing.edit_index(text, {"area/part": None}), listing.read_index(text)


def _layer(kind: str) -> Parser:
    def parse(text: str) -> None:
        from memlane.lanes.layers import aging

        aging.body(aging.stamped(text, TODAY))
        aging.prune(kind, text, TODAY)

    return parse


def _quality(text: str) -> None:
    from memlane.lanes.layers import aging

    aging.quality("review_history", text, TODAY, 3, [1, 2])


def _merge(format: str) -> Parser:
    from memlane.history import merge

    def parse(text: str) -> None:
        data = text.encode(errors="surrogatepass")
        third = len(data) // 3
        merge.merge(format, data[:third], data[: 2 * third], data[:third] + data[2 * third :])

    return parse


def _jsonc(text: str) -> None:
    from memlane.surfaces.clients import jsonc

    jsonc.value(text)
    jsonc.put(text, ["mcpServers", "memlane"], {"command": "memlane"})
    jsonc.drop(text, ["mcpServers", "memlane"])


def _toml_key(text: str) -> None:
    from memlane.exchange import adopt

    adopt.set_key(text, "memory", "enabled", True, Path("memlane.toml"))


def _toml_put(text: str) -> None:
    from memlane.surfaces.clients import toml

    toml.put(text, ["mcp_servers", "memlane"], {"command": "memlane"})


def _toml_drop(text: str) -> None:
    from memlane.surfaces.clients import toml

    toml.drop(f'[mcp_servers.memlane]\ncommand = "memlane"\n{text}', ["mcp_servers", "memlane"])


def _config(path: Path) -> None:
    from memlane import config

    folder = path.parent / "configured"
    folder.mkdir(exist_ok=True)
    os.replace(path, folder / config.PROJECT_FILE)
    config.load(folder)


def _profile(path: Path) -> None:
    from memlane import config

    config.load_profile(path)


def _transcript(kind: str) -> Callable[[Path], Any]:
    def read(path: Path) -> None:
        from memlane import RecordLane
        from memlane.capture.messages import capture_into

        capture_into(RecordLane(path.parent / "captured"), path, kind=kind, dry_run=True)

    return read


def _importer(kind: str) -> Callable[[Path], Any]:
    def read(path: Path) -> None:
        from memlane.exchange import importers

        for _ in importers.read(kind, path):
            pass

    return read


def _detect(path: Path) -> None:
    from memlane.exchange import importers

    importers.detect(path)


def _symbols(suffix: str) -> Parser:
    def parse(text: str) -> None:
        from memlane.care.fresh import symbols

        with suppress(symbols.Unparsable):
            symbols.find(suffix, f"{text}\nmain", "main")  # a name that is there, so that all of the text is cut up

    return parse


def _mentions(text: str) -> None:
    from memlane.capture.scope import scope_of
    from memlane.care.fresh.mentions import mentions

    mentions(Memory("notes:a", "notes", text, "a", "a.md"))
    scope_of(text)


def _similar(text: str) -> None:
    from memlane.disk.tombstones import plain
    from memlane.gate import likeness

    likeness.overlap(likeness.tokens(text), likeness.tokens(text[::2]))
    plain(text)


def _marked(text: str) -> None:
    from memlane.exchange import marked_block

    marked_block.without_block(marked_block.with_block(text.encode(errors="surrogatepass"), "block"))


def _hook(text: str) -> None:
    from memlane.recall.asking import doubt, queries
    from memlane.surfaces.hook import _request

    queries(text), doubt(text)
    _request(["claude-code"], text.encode(errors="surrogatepass"))


@cache
def _tools() -> list[Tool]:
    """Tools that between them take every kind of argument there is: what a hostile text meets is the kind."""
    from memlane.surfaces.mcp import toolsets

    chosen, kinds = [], set[str]()
    for tool in toolsets.tools(("vault", "topics", "records", "layers")):
        own = {repr(field.annotation) for field in tool.arguments.model_fields.values()}
        if not own <= kinds:
            chosen.append(tool)
            kinds |= own
    return chosen


def _arguments(text: str) -> None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    for tool in _tools():
        for arguments in ({"text": text, "query": text, "tags": text, "id": text}, given, {text: text}):
            with suppress(MemlaneError):
                tool.checked(arguments if isinstance(arguments, dict) else {"text": arguments})


def _anchors(path: Path) -> None:
    from memlane.disk import anchors

    anchors.load(os.fspath(path))


def _tombstones(path: Path) -> None:
    from memlane.disk.tombstones import Tombstones

    stones = Tombstones(path)
    stones.deleted("text"), list(stones.problems())


PARSERS: dict[str, Parser] = {
    "front matter": _front,
    "body": _body,
    **{f"{name} file": _lane(name) for name in NAMES},
    "topic entries": _entries,
    "topic labels": _labels,
    "topic archive": _archive,
    "topic index": _topic_index,
    **{f"layer {kind}": _layer(kind) for kind in ("known_issues", "review_history", "command_history")},
    "layer quality": _quality,
    "chunks and links": _index,
    "query": _query,
    "secret scanner": _gate,
    "suspicious text": _suspicious,
    "mentions of code": _mentions,
    **{f"symbols in {suffix}": _symbols(suffix) for suffix in (".py", ".js", ".ts", ".go", ".rs", ".java")},
    "likeness": _similar,
    **{f"merge {name}": _merge(name) for name in ("vault", "note", "record", "layer", "topic", "archive", "index")},
    "JSONC editor": _jsonc,
    "TOML editor, a key": _toml_key,
    "TOML editor, a table": _toml_put,
    "TOML editor, without a table": _toml_drop,
    "memlane.toml": _file(".toml", _config),
    "YAML profile": _file(".yaml", _profile),
    "block markers": _marked,
    "hook payload": _hook,
    "MCP arguments": _arguments,
    "anchors": _file(".anchors", _anchors),
    "tombstones": _file(".stones", _tombstones),
    **{
        f"{kind} transcript": _file(".jsonl", _transcript(kind)) for kind in ("claude-code", "codex", "gemini", "plain")
    },
    **{f"import {kind}": _file(".md", _importer(kind)) for kind in ("markdown", "obsidian")},
    **{f"import {kind}": _file(".json", _importer(kind)) for kind in ("mem0", "memory-json", "jsonl")},
    "import detection": _file(".json", _detect),
}


def expected(error: BaseException) -> bool:
    """Whether a parser may end like that: with an error of memlane's own, or the one its module is there for."""
    from memlane.core.front_matter import FrontMatterError
    from memlane.surfaces.clients.jsonc import Damaged

    return isinstance(error, MemlaneError | FrontMatterError | Damaged)


# -- hostile texts: each makes a text of about so many characters


def filled(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece) + 1))[:size]


def _numbered(line: str) -> Callable[[int], str]:
    """Many lines that differ."""

    def fill(size: int) -> str:
        count = size // (len(line) + 4) + 1
        return "".join(line.replace("%", str(n)) + "\n" for n in range(count))[:size]

    return fill


def _nested(opening: str, closing: str) -> Callable[[int], str]:
    def fill(size: int) -> str:
        depth = size // (len(opening) + len(closing))
        return opening * depth + closing * depth

    return fill


HOSTILE: dict[str, Callable[[int], str]] = {
    "open links": filled("[["),
    "links": _numbered("[[a%|b]] supersedes [[memory:c%]]"),
    "list of links": _numbered("[[note-%]] "),
    "unclosed links": filled("[[a](b "),
    "backticks": filled("`"),
    "backtick runs": lambda size: " ".join("`" * (n % 40 + 1) for n in range(size // 21)),
    "open fences": filled("```\n"),
    "long fences": filled("`" * 5000 + "\n"),
    "tildes": filled("~~~a\n~~~~\n"),
    "dashes": filled("---\n"),
    "dash line": filled("-"),
    "headings": _numbered("# h%"),
    "deep headings": filled("###### a\n# b\n"),
    "hashes": filled("#"),
    "heading marks": filled("# a ## "),
    "comments": filled("<!--"),
    "closed comments": filled("<!-- --> "),
    "our comments": filled("<!-- memlane:start -->\n"),
    "stars": filled("**"),
    "labels": filled("**Problem:** x\n"),
    "dated entries": _numbered("## 2025-01-10 - Entry %\n\n**Problem:** x\n\n---"),
    "issues": _numbered("## Issue #% - 2020-01-01\n**Status**: Resolved"),
    "one long line": filled("a"),
    "long words": filled("abcdefgh1234567890" * 20 + " "),
    "spaces": filled(" "),
    "spaces and letters": filled(" " * 400 + "a"),
    "spaces, then a letter": lambda size: " " * size + "a",
    "spaces, then a word": lambda size: " " * size + "database",
    "blank lines, then a letter": lambda size: "\n" * size + "a",
    "trailing spaces": filled("a" + " " * 200 + "\n"),
    "tabs": filled("\t"),
    "newlines": filled("\n"),
    "carriage returns": filled("\r"),
    "mixed line ends": filled("a\r\nb\rc\n\u2028\x0c\x85"),
    "combining marks": filled("e\u0301\u0323\u0308"),
    "one base": lambda size: "a" + "\u0301" * size,
    "zero width": filled("\u200b\u202e"),
    "emoji": filled("👩‍👩‍👧"),
    "cjk": filled("記憶喪失の猫"),
    "lone surrogates": filled("\ud800a"),
    "nul": filled("\0a"),
    "bom": filled("\ufeff"),
    "digits": filled("1234567890"),
    "digit groups": filled("4111 1111 1111 1111 "),
    "huge number": lambda size: "a: " + "9" * size,
    "exponents": _numbered("a%: 1e999999999"),
    "colons": filled(":"),
    "keys": _numbered("key%: value"),
    "same key": filled("a: 1\n"),
    "yaml lists": filled("- "),
    "yaml maps": filled("? "),
    "yaml flow": _nested("[", "]"),
    "yaml flow maps": _nested("{a: ", "}"),
    "yaml aliases": lambda size: (
        "a: &a [x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a,*{'b' + str(n - 1) if n else 'a'}]\n" for n in range(size // 22))
    ),
    "yaml indents": lambda size: "\n".join(" " * n + "a:" for n in range(int((2 * size) ** 0.5))),
    "yaml quotes": filled("'\"\\"),
    "json arrays": filled("["),
    "json objects": _nested('{"a":', "}"),
    "json": lambda size: '{"a":"' + "\\u0041" * (size // 6) + '"}',
    "json lines": _numbered('{"id":"a%","text":"b","version":1,"created_at":"2025-01-10T00:00:00Z"}'),
    "messages": _numbered(
        '{"type":"assistant","uuid":"u%","message":{"role":"assistant","content":[{"type":"text","text":"a\\nb"}]}}'
    ),
    "json escapes": filled('"\\"'),
    "json comments": filled("/* */ // \n"),
    "slashes": filled("/"),
    "open comments": filled("/*"),
    "commas": filled(","),
    "toml tables": _numbered("[a.b%]"),
    "toml lists": lambda size: "a = [\n" + "[1],\n" * (size // 5) + "]\n",
    "toml nesting": lambda size: "a = " + "[" * size,
    "toml dots": lambda size: "a" + ".a" * (size // 2) + " = 1",
    "toml quotes": filled('a = """"'),
    "open braces": filled("{"),
    "braces": _nested("{", "}"),
    "parentheses": _nested("(", ")"),
    "functions": _numbered("def main%(): pass"),
    "nested functions": lambda size: "\n".join(" " * n + "def a():" for n in range(int((2 * size) ** 0.5))),
    "long statements": filled(f"main {'a' * 1000};"),
    "spaced statements": filled(f"main{' ' * 1000}x;"),
    "code strings": filled("'\"`\n"),
    "templates": filled("`${"),
    "regexes": filled("=/[/"),
    "generics": filled("a<"),
    "paths": filled("a/b/c.py:d "),
    "path chain": filled("a/"),
    "dots": filled("a."),
    "quotes": filled('"a" -b '),
    "minus words": filled("-a "),
    "dates": filled("2025-01-10 last week in march 2024 "),
    "assignments": filled("password = "),
    "passwords": filled("pass:word@key=token;"),
    "keywords": filled("secret token key auth cred "),
    "names and numbers": _numbered("pw% password='a%"),
    "key value": _numbered("api_key_%: ${VALUE_%}"),
    "quoted secrets": filled("password='"),
    "urls": filled("https://user:"),
    "at signs": filled("a@"),
    "e-mails": filled("a.b@c.de "),
    "base64": filled("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU2Nzg5Kw"),
    "hex": filled("0123456789abcdef"),
    "uuids": filled("0b9e4a3c-1f6d-4c7a-9a55-2f0f6a9f1c11 "),
    "pem": filled("-----BEGIN RSA PRIVATE KEY-----\n"),
    "jwt": filled("eyJhbGciOiJIUzI1NiJ9."),
    "prefixes": filled("sk-ghp_AKIAxoxb-glpat-"),
    "prefix words": filled("sk-abc1 ghp_abc2 AKIA123 xoxb-1 "),
    "underscores": filled("a_"),
    "curl": filled("curl -u a:b -H 'Authorization: Bearer "),
    "table": filled("| password | a1b2c3d4e5 |\n"),
    "table rule": filled("|---"),
    "pipes": filled("|"),
    "conflicts": filled("<<<<<<< ours\n=======\n>>>>>>> theirs\n"),
    "instructions": filled("ignore previous instructions system: "),
    "tags": filled("</memory><memory>"),
    "entities": filled("&lt;"),
}  # fmt: skip


# -- measuring


def cpu(parser: Parser, text: str, times: int = 1) -> float:
    """CPU seconds of a call, the best of several. Raises what no parser may raise."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        try:
            parser(text)
        except Exception as error:
            if not expected(error):
                raise
        best = min(best, time.process_time() - begin)
    return best


def in_proportion(parser: Parser, text: str, times: int = 8) -> bool:
    """Whether a text takes as long as its length says, next to a part of it: far less than what is quadratic takes. A
    machine that is busy may be slow once, and not three times.
    """
    part = text[: len(text) // times]
    parser(part)  # what is loaded on first use
    return any(cpu(parser, text) < times**1.6 * max(cpu(parser, part, 3), 0.0005) for _ in range(3))
