"""What was forgotten, as the members of a team tell each other: the lines of `memlane.disk.forgotten` under their keys.

    {"key":"9f…"}          what follows is under this key
    {"name":"c4…", …}      as in the file itself

Whoever takes in lines that are new to it puts them after its own, here as at the remote: so a line never comes before
one that it followed, which counts; the rest is in any order. Whoever has never forgotten anything takes the first key
for its own: then a team has one key, and not one for each member. Whoever can read this can test guesses at what was
forgotten, as every member of the team can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from memlane.core.errors import InvalidInput
from memlane.disk import files
from memlane.disk.forgotten import ForgottenTexts, sections, take_over

MOST_BYTES = 32 * 1024 * 1024
MOST_KEYS = 64  # each is one more way in which every text is looked at; whoever joins without one shares the first

Lines = dict[str, list[bytes]]  # by key


class Said(NamedTuple):
    """A line that is known here, under which key, and about a memory of which scope; "" where that is not said."""

    key: str
    line: bytes
    scope: str


def said(texts: ForgottenTexts) -> list[Said]:
    """All that was forgotten here, and by others. Raises StorageError."""
    if texts.path is None:
        return []
    paths = [path for path in (texts.path, texts.others_path) if os.path.lexists(path)]
    return [each for path in paths for each in _parsed(files.read_bytes(path, files.MAX_LOG_BYTES))]


def _parsed(data: bytes) -> Iterator[Said]:
    for key, lines in sections(data).items():
        scope = ""
        for line in lines:
            value = json.loads(line)
            if "in" in value:
                scope = str(value["in"])
            else:
                yield Said(key, line, scope)


def unite(
    texts: ForgottenTexts, theirs: bytes, scope: str, whose: Callable[[Said], Collection[str]]
) -> tuple[bytes, bytes]:
    """Take in what others forgot in a `scope`. Returns what they should have, with the lines for it, and what is
    another one when more is known.

    Both are empty when nothing was ever forgotten. Raises StorageError, and InvalidInput where there are too many keys.
    """
    if texts.path is None:
        return theirs, b""
    there = lines_in(theirs)
    _refuse_many(there)
    for key, lines in list(there.items())[:1]:
        take_over(texts, b"\n".join((json.dumps({"key": key}).encode(), *_labelled(lines, scope), b"")))
    if not there and not os.path.lexists(texts.path) and not os.path.lexists(texts.others_path):
        return theirs, b""
    with texts.writing():
        own = json.loads(files.read_bytes(texts.path, files.MAX_LOG_BYTES).partition(b"\n")[0])["key"]
        known = said(texts)
        here: Lines = {}
        for each in known:
            here.setdefault(each.key, []).append(each.line)
        _refuse_many({**here, **there})
        new = _without(there, here)
        if own in new:
            files.append_lines(texts.path, b"".join(line + b"\n" for line in _labelled(new[own], scope)))
        if others := {key: _labelled(lines, scope) for key, lines in new.items() if key != own}:
            files.append_lines(texts.others_path, _written(others))
            files.change_mode(texts.others_path, 0, 0o077)
    going: Lines = {}
    for each in known:
        if scope in whose(each):
            going.setdefault(each.key, []).append(each.line)
    missing = _without(going, there)
    all_lines = sorted({(key, line) for each in (here, there) for key, lines in each.items() for line in lines})
    gap = b"\n" if missing and theirs and not theirs.endswith(b"\n") else b""
    return theirs + gap + _written(missing), repr(all_lines).encode() if all_lines else b""


def lines_in(theirs: bytes) -> Lines:
    """What a remote says, by key. Which scope it is about, the remote has no say in."""
    found: Lines = {key: [] for key in sections(theirs)}
    for each in _parsed(theirs):
        found[each.key].append(each.line)
    return found


def _labelled(lines: Sequence[bytes], scope: str) -> list[bytes]:
    begin, end = (json.dumps({"in": each}, separators=(",", ":")).encode() for each in (scope, ""))
    return [begin, *lines, end] if lines else []


def _refuse_many(lines: Lines) -> None:
    if len(lines) > MOST_KEYS:
        raise InvalidInput(
            f"The remote says that more than {MOST_KEYS} members have forgotten something, each with a key of its own.",
            hint="Somebody may have filled its file `.memlane/forgotten`: see who may write there, and delete that "
            "file; the next sync of each member writes what that member knows.",
        )


def _without(lines: Lines, known: Lines) -> Lines:
    """The lines of one side that the other one does not have."""
    have = {key: set(known.get(key, ())) for key in lines}
    new = {key: [line for line in each if line not in have[key]] for key, each in lines.items()}
    return {key: list(dict.fromkeys(each)) for key, each in new.items() if each}


def _written(lines: Lines) -> bytes:
    return b"".join(line + b"\n" for key, each in lines.items() for line in (json.dumps({"key": key}).encode(), *each))
