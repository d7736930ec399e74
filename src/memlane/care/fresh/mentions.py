"""Which files and symbols a memory names. Pure text: `code.py` says whether there is such a file.

    [[src/auth.py]]  [[src/auth.py#login]]      links, outside code
    src/auth.py:login  src/auth.py::Auth.login  anywhere but in fenced code; `auth.py` only in backticks
    src/auth.py:12                              means the whole file, because line numbers move
    file:src/auth.py                            the scope of a record
    files: ["src/auth.py"]                      in the front matter of a note that was distilled

Paths are relative to the project's folder. Where a memory names a symbol of a file, the file as a whole does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlane.core.markdown import lines_with_code
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.index.links import ghosts_in

MOST = 50  # mentions that count in one memory
_TOKEN = lazily(r"[A-Za-z0-9_@+$./:#-]+")  # whole words: requiring the dot in the pattern would be quadratic
_CODE = lazily(r"`([^`\n]{1,300})`")
_BARE = frozenset({"Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Justfile", "Rakefile", "Gemfile"})
_SPLIT = lazily(r"::|[:#]")
_SUFFIX = lazily(r"[^/]\.[A-Za-z]\w{0,9}")
_SYMBOL = lazily(r"[A-Za-z_$][\w$]*(?:(?:::|[.#])[\w$]+)*")


class Mention(NamedTuple):
    """A file as a memory names it, and a symbol in it; "" means the whole file."""

    target: str
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.target}:{self.symbol}" if self.symbol else self.target


def mentions(memory: Memory) -> tuple[Mention, ...]:
    """Everything in a memory that may be a file of the project, in the order of the text."""
    candidates = dict.fromkeys(_candidates(memory))
    precise = {mention.target for mention in candidates if mention.symbol}
    return tuple(mention for mention in candidates if mention.symbol or mention.target not in precise)[:MOST]


def _candidates(memory: Memory) -> Iterator[Mention]:
    if memory.scope and memory.scope.startswith("file:"):
        yield from _parsed(memory.scope.removeprefix("file:").strip(), sure=True)
    if memory.distilled and isinstance(files := memory.fields.get("files"), list):
        for name in files:
            yield from _parsed(str(name), sure=True)
    text = memory.text
    if not any(sign in text for sign in (".", "/", "`", "[[")):
        return
    for target in ghosts_in(text):
        yield from _parsed(target, sure=True)
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
    """The mention in a word or link, if it is one.

    Unless `sure`, the word comes from prose, and needs both a suffix and a folder or symbol: not `and/or` or `e.g`.
    """
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
