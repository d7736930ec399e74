"""What was forgotten, as the members of a team tell each other: the lines of `memlane.disk.forgotten` under their keys.

    {"key":"9f…"}          what follows is under this key
    {"name":"c4…", …}      as in the file itself

Each member's lines come after those that were there before, so that all read them in one order. Whoever has never
forgotten anything takes the first key for its own: then a team has one key, and not one for each member. Whoever can
read this can test guesses at what was forgotten, as every member of the team can.
"""

from __future__ import annotations

import json
import os

from memlane.disk import files
from memlane.disk.forgotten import ForgottenTexts, sections, take_over

MOST_BYTES = 32 * 1024 * 1024


def unite(texts: ForgottenTexts, theirs: bytes) -> bytes:
    """Take in what others forgot, and return what all of them should know; b"" when nothing was ever forgotten.

    Raises StorageError.
    """
    if texts.path is None:
        return theirs
    there = {key: list(dict.fromkeys(lines)) for key, lines in sections(theirs).items()}
    for key, lines in list(there.items())[:1]:
        take_over(texts, b"\n".join((json.dumps({"key": key}).encode(), *lines, b"")))
    if not there and not os.path.lexists(texts.path) and not os.path.lexists(texts.others_path):
        return b""
    with texts.writing():
        head, _, _ = files.read_bytes(texts.path, files.MAX_LOG_BYTES).partition(b"\n")
        own = json.loads(head)["key"]
        here = sections(files.read_bytes(texts.path, files.MAX_LOG_BYTES))
        if os.path.lexists(texts.others_path):
            here |= {key: lines for key, lines in _others(texts).items() if key != own}
        united = {key: list(dict.fromkeys((*there.get(key, ()), *here.get(key, ())))) for key in (*there, *here)}
        if united.get(own, []) != here.get(own, []):
            files.replace(texts.path, b"\n".join((head, *united[own], b"")))
        others = {key: lines for key, lines in united.items() if key != own}
        if others and others != {key: lines for key, lines in here.items() if key != own}:
            files.replace(texts.others_path, _written(others))
            files.change_mode(texts.others_path, 0, 0o077)
    return _written({key: lines for key, lines in united.items() if lines})


def _others(texts: ForgottenTexts) -> dict[str, list[bytes]]:
    return sections(files.read_bytes(texts.others_path, files.MAX_LOG_BYTES))


def _written(united: dict[str, list[bytes]]) -> bytes:
    return b"".join(
        line + b"\n" for key, lines in united.items() for line in (json.dumps({"key": key}).encode(), *lines)
    )
