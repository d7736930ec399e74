"""Memories out of a bank: as lines of JSON, as one Markdown document, or as a block in an agent's own file.

    for line in lines(bank.memories()):
        print(line)

The lines hold everything but what belongs to this machine; `memlane.exchange.imports` reads them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane.core.dates import iso
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError
from memlane.core.markdown import heading, lines_with_code
from memlane.core.model import Memory
from memlane.disk import files
from memlane.exchange import marked_block
from memlane.lanes import NAMES
from memlane.recall.blocks import FENCE, escaped
from memlane.recall.prompts import snapshot
from memlane.recall.starting import is_rule

if TYPE_CHECKING:
    from memlane.bank import Bank

MAX_LINES, MAX_BYTES = 200, 25_000  # of a block in an agent's file: Claude Code reads no more of one
_OTHER_NAME = "Choose another name, or say --overwrite."
_FRAME = 8  # lines that the markers and the line about refreshing may take
_ID = re.compile(r"\[([a-z]+:[^\]\n]+)\]")
_AT = re.compile(r"(^|[^\w\\])@(?=\S)")


# -- lines and documents


def line_of(memory: Memory) -> dict[str, Any]:
    """A memory as `export` writes it: everything but what belongs to this machine or is worked out from the rest."""
    return {name: value for name, value in memory.to_dict().items() if name not in ("path", "suspicious", "version")}


def lines(memories: Iterable[Memory]) -> Iterator[str]:
    """One line of JSON for each memory; topics oldest first, so that they can be stored again in this order."""
    for lane, group in groupby(memories, key=lambda memory: memory.lane):
        ordered = list(group)
        for memory in reversed(ordered) if lane == "topics" else ordered:
            yield json.dumps(line_of(memory), ensure_ascii=False, separators=(",", ":"))


def document(memories: Iterable[Memory]) -> str:
    """All memories as one Markdown document, by lane and id. The same memories give the same text."""
    ordered = sorted(memories, key=lambda memory: (list(NAMES).index(memory.lane), memory.id))
    parts = ["# Memories"]
    for lane, group in groupby(ordered, key=lambda memory: memory.lane):
        parts.append(f"## {lane.capitalize()}")
        parts += map(_section, group)
    return "\n\n".join(parts) + "\n"


def _section(memory: Memory) -> str:
    day = iso(memory.created_at or memory.updated_at)
    facts = [f"`{memory.id}`", (day or "")[:10], memory.type, memory.scope, ", ".join(memory.tags)]
    title = " ".join(memory.title.split())
    head = f"### {title}\n\n{' · '.join(' '.join(fact.split()) for fact in facts if fact)}"
    body = _lowered(memory.text, title).strip("\r\n")
    return f"{head}\n\n{body}" if body.strip() else head


def _lowered(text: str, title: str) -> str:
    """A text for below a third-level heading: its own headings are lower, one that repeats the title is left out, and
    code that it leaves open is closed."""
    from memlane.lanes.topics.entries import open_fence

    rows: list[str] = []
    for row, code in lines_with_code(text):
        level, words = (not code and heading(row)) or (0, "")
        if level and words.strip() == title and not "".join(rows).strip():
            continue
        rows.append("#" * min(3 + level, 6) + row.lstrip(" ").lstrip("#") if level else row)
    body = "".join(rows)
    fence = open_fence(body)
    return f"{body.rstrip()}\n{fence}" if fence else body


# -- a block in an agent's own file


def write_block(bank: Bank, path: str | Path, scopes: str | tuple[str, ...] | None = None) -> bool:
    """Write the bank's snapshot into a marked block of a Markdown file: the user's rules, and below them the data.

    False when it is there already.

    Every other byte of the file stays. The block holds as much as an agent reads: MAX_LINES lines, MAX_BYTES bytes.
    Raises InvalidInput, StorageError (damaged markers); then nothing is written.
    """
    path = outside(bank, path)
    with bank.alone() as alone:  # the file is the project's, and mostly committed: private notes have no place in it
        block = snapshot(alone, scopes, MAX_LINES - _FRAME, None, lambda text: _size(_inert(text)), None, private=False)
    content = _inert(block).strip("\n") or "Nothing is remembered yet."
    note = f"Written by `memlane export --to {path.name}`; run it again to refresh. Edit the memories, not this block."
    return marked_block.write(path, f"{note}\n\n{content}")


def held(bank: Bank, text: str) -> list[str]:
    """The ids of the memories that our block in a client's own file holds as they are now; `text` is the block.

    The user's rules must be among the rules there. A memory that has changed since the export is not among them.
    """
    parts = {True: "", False: ""}  # of rules, or not
    for block in FENCE.finditer(text):
        parts[block[1] == "rules"] += f" {' '.join(block[0].split())} "
    found = []
    for id in dict.fromkeys(_ID.findall(text)):
        with suppress(MemlaneError):  # it is gone, or never was one
            found.append(bank.get(id))
    rules = bank.users_word([memory for memory in found if is_rule(memory)])
    return [
        memory.id
        for memory in found
        if " ".join(_inert(escaped(memory.text)).split()) in parts[memory.id in rules] and memory.text.strip()
    ]


def remove_block(path: str | Path) -> bool:
    """Take the block out again, and remove a file that was made for it. False when there is no block."""
    return marked_block.remove(Path(path).expanduser())


def write_file(bank: Bank, path: str | Path, text: str, *, overwrite: bool = False) -> None:
    """Write an export. Raises what `place_for` raises."""
    target = place_for(bank, path, overwrite=overwrite)
    if overwrite:
        files.replace(target, text.encode())
        return
    try:
        files.create(target, text.encode())
    except AlreadyExists as error:
        raise AlreadyExists(str(error), hint=_OTHER_NAME) from None


def place_for(bank: Bank, path: str | Path, *, overwrite: bool) -> str:
    """Where a file of the user's is to be written: told before anybody works for it. Raises InvalidInput for a place
    inside the bank, where it would be taken for memory, and for a folder that is not there; AlreadyExists.
    """
    target = os.path.abspath(outside(bank, path))
    if not os.path.isdir(os.path.dirname(target)):
        raise InvalidInput("There is no such folder.", hint="Make it first, or name another.")
    if not overwrite and os.path.lexists(target):
        raise AlreadyExists(f"The file already exists: {os.path.basename(target)}", hint=_OTHER_NAME)
    return target


def outside(bank: Bank, path: str | Path) -> Path:
    """The path, if it is outside of the bank. Raises InvalidInput."""
    path, home = Path(path).expanduser(), os.path.realpath(bank.root)
    if os.path.commonpath((home, os.path.realpath(path))) == home:
        raise InvalidInput("That place is inside the bank.", hint="Write it elsewhere: there it would be a memory.")
    return path


def _size(text: str) -> int:
    """The size of a text in lines of an agent's file: its own lines, or its share of the bytes if that is more."""
    return max(text.count("\n"), -(-len(text.encode()) * MAX_LINES // MAX_BYTES))


def _inert(text: str) -> str:
    """The text without what agents act on in their files: comments, which hide text, and `@path`, which brings in a
    file."""
    text = text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")
    return "".join(row if code else _AT.sub(r"\1\\@", row) for row, code in lines_with_code(text))
