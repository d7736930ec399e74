"""Memory that a model says again. Whether a text only repeats what was put before the model, however it lays it out:
in a list, a table, a quotation or other lines. Words in a row tell it, kept as short marks. Pure text → data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import accumulate
from typing import Any
from zlib import crc32

_RUN = 5  # words in a row by which memory is known again
_OWN = 3  # one word of so many must be the text's own
_LONGEST = 64_000  # characters of a block of ours that are looked at: more is somebody's text about memlane
_TAG = r"(?:<|&lt;)(?:memlane-[a-z]+|!--\s*memlane:start)"
_BLOCK = re.compile(_TAG + r".*?(?:(?:<|&lt;)(?:/memlane-|!--\s*memlane:end)|\Z)", re.DOTALL)
_QUOTED = re.compile(rf"^[ \t>*-]*(?:<hook_context>|{_TAG})", re.MULTILINE)
_NUMBER = re.compile(r"^\W*\d{1,3}[.)]\s")
_SCRIPTS = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"  # whose words have no blanks between them: a sign is a word
_WORD = rf"[{_SCRIPTS}]|[^\W{_SCRIPTS}]+"


def quotes(text: str) -> bool:
    """Whether a line of a text begins a block of memory, as it was put into a prompt."""
    return _QUOTED.search(text) is not None


def repeats(text: str, shown: Set[int]) -> bool:
    """Whether a text has fewer than two lines, or less than a third of its words, besides what the marks stand for."""
    lines = _lines(text) if shown else []
    own = [True] * sum(map(len, lines))
    for words, mark in _marked(lines):
        if mark in shown:
            own[words.start : words.stop] = [False] * len(words)
    if all(own):
        return False
    ends = accumulate(map(len, lines))
    spoken = sum(any(own[end - len(line) : end]) for line, end in zip(lines, ends, strict=True))
    return spoken < 2 or sum(own) * _OWN < len(own)


def marks(text: str) -> list[int]:
    """The marks of a memory."""
    return [mark for _, mark in _marked(_lines(text[:_LONGEST]))]


def marks_of_blocks(value: Any) -> list[int]:
    """The marks of all blocks of memory in the texts of a JSON value."""
    blocks = (block[0][:_LONGEST] for text in _texts(value) for block in _BLOCK.finditer(text))
    return [
        mark for block in blocks for mark in marks(block.replace("\\n", "\n"))
    ]  # an answer of a tool is JSON in JSON


def _marked(lines: list[list[str]]) -> Iterator[tuple[range, int]]:
    """Marks of every line and of every run of words, also from one line to the next, with the words they stand for."""
    start = 0
    for line in lines:
        yield range(start, start + len(line)), _mark(line)
        start += len(line)
    words = [word for line in lines for word in line]
    for at in range(len(words) - _RUN + 1):
        yield range(at, at + _RUN), _mark(words[at : at + _RUN])


def _mark(words: list[str]) -> int:
    return crc32(" ".join(words).encode(errors="replace"))


def _lines(text: str) -> list[list[str]]:
    """The words of each line that has any, whatever surrounds them: signs, escapes and the number in a list go."""
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    lines = (re.findall(_WORD, _NUMBER.sub("", line)) for line in text.casefold().splitlines())
    return [line for line in lines if line]


def _texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
