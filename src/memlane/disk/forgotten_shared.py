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

from memlane.core.errors import InvalidInput
from memlane.disk import files
from memlane.disk.forgotten import ForgottenTexts, sections, take_over

MOST_BYTES = 32 * 1024 * 1024
MOST_KEYS = 64  # each is one more way in which every text is looked at; whoever joins without one shares the first

Lines = dict[str, list[bytes]]  # by key


def unite(texts: ForgottenTexts, theirs: bytes) -> tuple[bytes, bytes]:
    """Take in what others forgot. Returns what they should have, and what is another one when more is known.

    Both are empty when nothing was ever forgotten. Raises StorageError, and InvalidInput where there are too many keys.
    """
    if texts.path is None:
        return theirs, b""
    there = sections(theirs)
    _refuse_many(there)
    for key, lines in list(there.items())[:1]:
        take_over(texts, b"\n".join((json.dumps({"key": key}).encode(), *lines, b"")))
    if not there and not os.path.lexists(texts.path) and not os.path.lexists(texts.others_path):
        return theirs, b""
    with texts.writing():
        data = files.read_bytes(texts.path, files.MAX_LOG_BYTES)
        own = json.loads(data.partition(b"\n")[0])["key"]
        here = sections(data)
        others = _others(texts)
        here |= {key: lines for key, lines in others.items() if key != own}
        _refuse_many({**here, **there})
        if new := _without(there, here).get(own):
            files.append_lines(texts.path, b"".join(line + b"\n" for line in new))
        if new_to_others := {key: lines for key, lines in _without(there, here).items() if key != own}:
            files.append_lines(texts.others_path, _written(new_to_others))
            files.change_mode(texts.others_path, 0, 0o077)
    missing = _without(here, there)
    known = sorted({(key, line) for each in (here, there) for key, lines in each.items() for line in lines})
    gap = b"\n" if missing and theirs and not theirs.endswith(b"\n") else b""
    return theirs + gap + _written(missing), repr(known).encode() if known else b""


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


def _others(texts: ForgottenTexts) -> Lines:
    if not os.path.lexists(texts.others_path):
        return {}
    return sections(files.read_bytes(texts.others_path, files.MAX_LOG_BYTES))


def _written(lines: Lines) -> bytes:
    return b"".join(line + b"\n" for key, each in lines.items() for line in (json.dumps({"key": key}).encode(), *each))
