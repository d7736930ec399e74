"""Whether a text only repeats memory that was put before the model, however it lays it out: in a list, a table, a
quotation or other lines. Memory is recognised by words in a row, which are kept as short marks. Pure text → data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import accumulate
from typing import Any
from zlib import crc32

from memlane.capture.transcripts.entry import strings

_RUN = 5  # words in a row by which memory is recognised
_OWN = 3  # one word in this many must be the text's own
_LONGEST = 64_000  # characters of a block that are looked at: more is somebody's text about memlane
_TAG = r"(?:<|&lt;)(?:memlane-[a-z]+|!--\s*memlane:start)"
_BLOCK = re.compile(_TAG + r".*?(?:(?:<|&lt;)(?:/memlane-|!--\s*memlane:end)|\Z)", re.DOTALL)
_QUOTED = re.compile(rf"^[ \t>*-]*(?:<hook_context>|{_TAG})", re.MULTILINE)
_NUMBER = re.compile(r"^\W*\d{1,3}[.)]\s")
_SCRIPTS = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"  # no blanks between words: a character is a word
_WORD = rf"[{_SCRIPTS}]|[^\W{_SCRIPTS}]+"


def quotes(text: str) -> bool:
    """Whether a line of a text begins a block of memory as it is put into a prompt."""
    return _QUOTED.search(text) is not None


def repeats(text: str, shown: Set[int]) -> bool:
    """Whether fewer than two lines of a text, or less than a third of its words, differ from what the marks stand
    for."""
    lines = _lines(text) if shown else []
    own = [True] * sum(map(len, lines))
    for words, mark in _marked(lines):
        if mark in shown:
            own[words.start : words.stop] = [False] * len(words)
    if all(own):
        return False
    ends = accumulate(map(len, lines))
    own_lines = sum(any(own[end - len(line) : end]) for line, end in zip(lines, ends, strict=True))
    return own_lines < 2 or sum(own) * _OWN < len(own)


def marks(text: str) -> list[int]:
    """The marks of a memory."""
    return [mark for _, mark in _marked(_lines(text[:_LONGEST]))]


def marks_of_blocks(value: Any) -> list[int]:
    """The marks of all blocks of memory in the texts of a JSON value."""
    blocks = (block[0][:_LONGEST] for text in strings(value) for block in _BLOCK.finditer(text))
    # the answer of a tool is JSON in JSON, with its line ends escaped
    return [mark for block in blocks for mark in marks(block.replace("\\n", "\n"))]


def _marked(lines: list[list[str]]) -> Iterator[tuple[range, int]]:
    """The marks of every line and of every run of words, across lines too, each with the words it stands for."""
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
    """The words of each line that has any, without punctuation, escapes and the number of a list item."""
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    lines = (re.findall(_WORD, _NUMBER.sub("", line)) for line in text.casefold().splitlines())
    return [line for line in lines if line]
