"""A marked block in a file that belongs to somebody else: CLAUDE.md, AGENTS.md, GEMINI.md or any other Markdown file.

    <!-- memlane:start -->
    …
    <!-- memlane:end -->

Only the block is ever written; every other byte stays, line ends and byte order mark included. A file that is made or
appended to tells by its own end how: `remove` then gives back what was there before, byte for byte.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from memlane.core.errors import InvalidInput, NotFound, StorageError
from memlane.disk import files

START, END = "<!-- memlane:start -->", "<!-- memlane:end -->"
_START = re.compile(rb"^[ \t]*<!-- memlane:start -->[ \t]*(\r?\n|\Z)", re.MULTILINE)
_END = re.compile(rb"^[ \t]*<!-- memlane:end -->[ \t]*(\r?\n|\Z)", re.MULTILINE)


def write(path: Path, content: str) -> bool:
    """Put a block with this content into a file: in place of the one it has, else at its end; make a missing file.

    False when it stands there already. Raises InvalidInput for a file that is not Markdown, StorageError when its
    markers are damaged or it cannot be read; then nothing is written.
    """
    name = _checked(path)
    if not os.path.lexists(name):
        files.create(name, _block(content, b"\n") + b"\n")
        return True
    with files.locked(name):
        before = _read(name)
        after = with_block(before, content)
        if after != before:
            files.replace(name, after)
        return after != before


def remove(path: Path) -> bool:
    """Take the block out again; a file that we made goes. False when there is none. Raises as `write` does."""
    name = _checked(path)
    if not os.path.lexists(name):
        raise NotFound(f"There is no file {path.name}.", hint="Name the file that has the block.")
    with files.locked(name):
        before = _read(name)
        after = without_block(before)
        if after is None:
            files.remove(name)
        elif after != before:
            files.replace(name, after)
        return after != before


def with_block(data: bytes, content: str) -> bytes:
    """The bytes of a file with a block of this content. Raises StorageError when its markers are damaged."""
    found = _find(data)
    if found is None:
        newline = _newline(data)
        tail = newline if data.endswith(b"\n") else b""  # tells `without_block` what the file ended with
        between = newline if tail else newline * 2 if data else b""
        return data + between + _block(content, newline) + tail
    start, end, newline = found
    return data[:start] + _block(content, newline) + data[end:]


def without_block(data: bytes) -> bytes | None:
    """The bytes of a file without its block; None when it is a file that we made. Raises StorageError."""
    found = _find(data)
    if found is None:
        return data
    start, end, newline = found
    before, after = data[:start], data[end:]
    if not before and after == newline:
        return None
    if after in (b"", newline):  # we appended it
        return before.removesuffix(newline if after else newline * 2)
    return before + after.removeprefix(newline)


def _find(data: bytes) -> tuple[int, int, bytes] | None:
    """Where the block begins and ends, the last line end excluded, and its line end; None when there is none."""
    starts, ends = list(_START.finditer(data)), list(_END.finditer(data))
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or starts[0].start() > ends[0].start():
        raise StorageError(
            f"The markers are damaged: {len(starts)} lines {START} and {len(ends)} lines {END}.",
            hint="Leave one of each, in this order, or delete them all. Nothing was changed.",
            code="damaged_markers",
        )
    return starts[0].start(), ends[0].end() - len(ends[0][1]), starts[0][1] or b"\n"


def _block(content: str, newline: bytes) -> bytes:
    inside = content.strip("\n").replace("<!-- memlane:", "&lt;!-- memlane:")  # what is inside cannot end the block
    lines = [START, *inside.split("\n"), END]
    return newline.join(line.rstrip("\r").encode() for line in lines)


def _newline(data: bytes) -> bytes:
    first = data.find(b"\n")
    return b"\r\n" if first > 0 and data[first - 1 : first] == b"\r" else b"\n"


def _checked(path: Path) -> str:
    if path.suffix.lower() not in (".md", ".mdc", ".markdown"):
        raise InvalidInput("The block goes into a Markdown file.", hint="Name a file such as CLAUDE.md or AGENTS.md.")
    return os.path.abspath(path)


def _read(name: str) -> bytes:
    try:
        data = files.read_bytes(name)
        data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = files.unreadable(name, error).why
        raise StorageError(f"{os.path.basename(name)} {why}.", hint="Nothing was changed.") from None
    if b"\0" in data:
        raise StorageError(f"{os.path.basename(name)} is not text.", hint="Nothing was changed.")
    return data
