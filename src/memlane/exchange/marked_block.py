"""A marked block in a file that belongs to somebody else: CLAUDE.md, AGENTS.md, GEMINI.md or any other Markdown file.

    <!-- memlane:start -->
    …
    <!-- memlane:end -->

Only the block is ever written; every other byte stays, line ends and byte order mark included. The end of a file shows
whether it was made for the block or had the block appended, so `remove` gives back exactly what was there before.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from memlane.core.errors import InvalidInput, NotFound, StorageError
from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.disk import files

START, END = "<!-- memlane:start -->", "<!-- memlane:end -->"
FILES = {  # what clients read at the start of a session, in the project's folder
    "claude-code": ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    "codex": ("AGENTS.md",),
    "cursor": ("AGENTS.md",),
    "gemini": ("GEMINI.md",),
    "opencode": ("AGENTS.md",),
    "vscode": ("AGENTS.md", ".github/copilot-instructions.md"),
}
_START = lazily(rb"^[ \t]*<!-- memlane:start -->[ \t]*(\r?\n|\Z)", re.MULTILINE)
_END = lazily(rb"^[ \t]*<!-- memlane:end -->[ \t]*(\r?\n|\Z)", re.MULTILINE)


def write(path: Path, content: str) -> bool:
    """Write a block with this content into a file: in place of the one it has, else at its end. Makes a missing file.

    False when it is there already. Raises InvalidInput for a file that is not Markdown, StorageError when its
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
    """Take the block out again, and remove a file that was made for it. False when there is no block.

    Raises NotFound, and as `write` does.
    """
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


def read_by(client: str, folder: Path) -> str:
    """What a client reads of blocks in its own files of a project; "" where there are none that can be read."""
    said = []
    for name in FILES.get(client, ()):
        try:
            data = files.read_bytes(os.fspath(folder / name))
            found = _find(data)
        except (OSError, StorageError):
            continue
        said += [data[slice(*found[:2])].decode(errors="replace")] if found else []
    return "\n".join(said)


def with_block(data: bytes, content: str) -> bytes:
    """The bytes of a file with a block of this content. Raises StorageError when its markers are damaged."""
    found = _find(data)
    if found is None:
        newline = newline_of(data.decode(errors="replace")).encode()
        tail = newline if data.endswith(b"\n") else b""  # tells `without_block` what the file ended with
        between = newline if tail else newline * 2 if data else b""
        return data + between + _block(content, newline) + tail
    start, end, newline = found
    return data[:start] + _block(content, newline) + data[end:]


def without_block(data: bytes) -> bytes | None:
    """The bytes of a file without its block; None when the file was made for it. Raises StorageError."""
    found = _find(data)
    if found is None:
        return data
    start, end, newline = found
    before, after = data[:start], data[end:]
    if not before and after == newline:
        return None
    if after in (b"", newline):  # it was appended
        return before.removesuffix(newline if after else newline * 2)
    return before + after.removeprefix(newline)


def _find(data: bytes) -> tuple[int, int, bytes] | None:
    """Where the block begins and where it ends, without the last line end, and its line ends; None without a block."""
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
