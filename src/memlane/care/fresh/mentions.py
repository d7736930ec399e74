"""Which code a memory speaks of, as it is written. Pure text: `code.py` says whether there is such a file.

    [[src/auth.py]]  [[src/auth.py#login]]      links, outside code
    src/auth.py:login  src/auth.py::Auth.login  anywhere in the text but in fenced code; `auth.py` in backticks, too
    src/auth.py:12                              the file: line numbers move
    file:src/auth.py                            the scope of a record

Paths start at the project's folder. Where a symbol of a file is named, the file as a whole does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlane.core.markdown import lines_with_code
from memlane.core.model import Memory
from memlane.index.links import links_in

MOST = 50  # that one memory can have
_TOKEN = re.compile(r"[A-Za-z0-9_@+$./:#-]+")  # whole words: a search for the dot inside would be quadratic
_CODE = re.compile(r"`([^`\n]{1,300})`")
_BARE = frozenset({"Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Justfile", "Rakefile", "Gemfile"})
_SPLIT = re.compile(r"::|[:#]")
_SUFFIX = re.compile(r"[^/]\.[A-Za-z]\w{0,9}")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|[.#])[\w$]+)*")


class Mention(NamedTuple):
    """A file as a memory names it, from the project's folder on, and a symbol in it; "" is all of it."""

    target: str
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.target}:{self.symbol}" if self.symbol else self.target


def mentions(memory: Memory) -> tuple[Mention, ...]:
    """Everything in a memory that may be a file of the project, in its order."""
    found = dict.fromkeys(_found(memory))
    precise = {mention.target for mention in found if mention.symbol}
    return tuple(mention for mention in found if mention.symbol or mention.target not in precise)[:MOST]


def _found(memory: Memory) -> Iterator[Mention]:
    if memory.scope and memory.scope.startswith("file:"):
        yield from _parsed(memory.scope.removeprefix("file:").strip(), sure=True)
    text = memory.text
    if "." not in text and "/" not in text and "`" not in text and "[[" not in text:
        return
    for node, _, _ in links_in(text):
        if node.startswith("ghost:"):
            yield from _parsed(node.removeprefix("ghost:"), sure=True)
    plain = text
    if "```" in text or "~~~" in text:
        plain = "".join(line for line, code in lines_with_code(text) if not code)
    for match in _CODE.finditer(plain):
        span = match[1].strip()
        if span in _BARE or (("." in span or "/" in span) and " " not in span):
            yield from _parsed(span, sure=True)
    for match in _TOKEN.finditer(plain):
        if "." in match[0] or "/" in match[0]:
            yield from _parsed(match[0].rstrip(".:#/-"), sure=False)


def _parsed(written: str, *, sure: bool) -> Iterator[Mention]:
    """The mention in a word or link; of prose, not `and/or`, `e.g` or `README.md`: a path has a folder and a suffix."""
    if "://" in written or written.startswith(("/", "~")) or len(written) > 500 or "\\" in written:
        return
    path, *rest = _SPLIT.split(written, maxsplit=1)
    path = path.removeprefix("./")
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or parts[0] == ".git":
        return
    symbol = ""
    if rest:
        match = _SYMBOL.fullmatch(rest[0].removesuffix("()"))
        symbol = re.sub("::|#", ".", match[0]) if match and not re.fullmatch(r"L\d+", match[0]) else ""
    if sure or (_SUFFIX.search(parts[-1][-12:]) and (len(parts) > 1 or rest)):
        yield Mention(path, symbol)
