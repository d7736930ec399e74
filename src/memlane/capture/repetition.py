"""Whether a text only repeats memory that was put before the model, however it lays it out: in a list, a table, a
quotation or other lines. Memory is recognised by words in a row, which are kept as short marks. Pure text → data.

"Backups are kept for 2 days" is no repetition of "Backups are kept for 1 day": numbers, dates and negations are no part
of the words in a row, and one that stands where another one stood, or where none did, is a correction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Any
from zlib import crc32

from memlane.capture.transcripts.entry import strings
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple

_RUN = 5  # words in a row by which memory is recognised
_OWN = 3  # one word in this many must be the text's own
_LONGEST = 64_000  # characters of a block that are looked at: more is somebody's text about memlane
_TAG = r"(?:<|&lt;)(?:memlane-[a-z]+|!--\s*memlane:start)"
_BLOCK = lazily(_TAG + r".*?(?:(?:<|&lt;)(?:/memlane-|!--\s*memlane:end)|\Z)", re.DOTALL)
_QUOTED = lazily(rf"^[ \t>*-]*(?:<hook_context>|{_TAG})", re.MULTILINE)
_NUMBER = lazily(r"^\W*\d{1,3}[.)]\s")
_SCRIPTS = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"  # no blanks between words: a character is a word
_WORD = rf"[{_SCRIPTS}]|[^\W{_SCRIPTS}]+"
_NEGATIONS = frozenset("not no never cannot without t".split())  # what is left of "don't"
_VALUES = frozenset(
    """one two three four five six seven eight nine ten eleven twelve january february march april june july august
    september october november december monday tuesday wednesday thursday friday saturday sunday mondays tuesdays
    wednesdays thursdays fridays saturdays sundays""".split()
)
_VALUE = "#"  # what stands for a value among the words in a row


class _Text(NamedTuple):
    """The words of a text, line after line, with one sign for all values and without negations."""

    words: list[str]
    lines: list[range]
    values: dict[int, str]  # the values, by the place of their sign
    negated: set[int]  # the places of words that follow a negation


def quotes(text: str) -> bool:
    """Whether a line of a text begins a block of memory as it is put into a prompt."""
    return _QUOTED.search(text) is not None


def repeats(text: str, shown: Set[int]) -> bool:
    """Whether fewer than two lines of a text, or less than a third of its words, differ from what the marks stand
    for, and none of the rest is a correction."""
    if not shown:
        return False
    said = _read(text)
    own = [True] * len(said.words)
    for words, mark in _marked(said):
        if mark in shown:
            own[words.start : words.stop] = [False] * len(words)
    if all(own):
        return False
    own_lines = sum(any(own[line.start : line.stop]) for line in said.lines)
    few = own_lines < 2 or sum(own) * _OWN < len(own)
    return few and not any(not own[at] and _corrects(said, at, shown) for at in range(len(own)))


def _corrects(said: _Text, at: int, shown: Set[int]) -> bool:
    """Whether the word at this place, in a row that was shown, is another value, or negated otherwise."""
    beside = said.words[max(at - 1, 0) : at]
    if at in said.values:
        return shown.isdisjoint(_value_marks(said, at))
    negation = _mark(["not", *beside, said.words[at]])
    return bool(beside) and (at in said.negated) != (negation in shown)


def marks(text: str) -> list[int]:
    """The marks of a memory."""
    shown = _read(text[:_LONGEST])
    found = [mark for _, mark in _marked(shown)]
    found += [mark for at in shown.values for mark in _value_marks(shown, at)]
    return found + [_mark(["not", *shown.words[at - 1 : at + 1]]) for at in sorted(shown.negated) if at]


def marks_of_blocks(value: Any) -> list[int]:
    """The marks of all blocks of memory in the texts of a JSON value."""
    blocks = (block[0][:_LONGEST] for text in strings(value) for block in _BLOCK.finditer(text))
    # the answer of a tool is JSON in JSON, with its line ends escaped
    return [mark for block in blocks for mark in marks(block.replace("\\n", "\n"))]


def _marked(text: _Text) -> Iterator[tuple[range, int]]:
    """The marks of every line and of every run of words, across lines too, each with the words it stands for."""
    for line in text.lines:
        yield line, _mark(text.words[line.start : line.stop])
    for at in range(len(text.words) - _RUN + 1):
        yield range(at, at + _RUN), _mark(text.words[at : at + _RUN])


def _value_marks(text: _Text, at: int) -> set[int]:
    """The marks of a value with the word before it and with the word after it."""
    value = text.values[at]
    return {_mark([*text.words[max(at - 1, 0) : at], value]), _mark([value, *text.words[at + 1 : at + 2]])}


def _mark(words: list[str]) -> int:
    return crc32(" ".join(words).encode(errors="replace"))


def _read(text: str) -> _Text:
    """The words of each line that has any, without punctuation, escapes and the number of a list item."""
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    read = _Text([], [], {}, set())
    for line in text.casefold().splitlines():
        start = len(read.words)
        for word in re.findall(_WORD, _NUMBER.sub("", line)):
            if word in _NEGATIONS:
                read.negated.add(len(read.words))
                continue
            if word in _VALUES or any(map(str.isdecimal, word)):
                read.values[len(read.words)] = word
                word = _VALUE
            read.words.append(word)
        if len(read.words) > start:
            read.lines.append(range(start, len(read.words)))
    return read
