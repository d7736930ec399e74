"""Who did what with a bank over the network: when, with which tool, which memories, and how it ended; never their text.

A file of lines in the user's state folder for each bank, which the user alone can read. When it is large, it becomes an
older one, of which a few are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from memlane.core.dates import iso, utc_now
from memlane.disk import state

FOLDER = "audit"
LARGE = 4 * 1024 * 1024  # bytes of one file
KEPT = 4  # files
IDS = 20  # of a line


def note(
    folder: str | os.PathLike[str],
    bank: str | os.PathLike[str],
    *,
    who: str,
    what: str,
    outcome: str,
    ids: Sequence[str] = (),
) -> None:
    """Add a line. What goes wrong here fails no call: a full disk must not keep anybody from reading."""
    line = {"at": iso(utc_now()), "who": who[:200], "what": what[:100], "outcome": outcome, "ids": list(ids)[:IDS]}
    name = _name(bank)
    with suppress(OSError):
        if state.append(folder, name, json.dumps(line).encode()) > LARGE:
            path = os.path.join(folder, name)
            for number in range(KEPT - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(_older(path, number - 1), _older(path, number))


def lines(folder: str | os.PathLike[str], bank: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Every line, the oldest first."""
    path = os.path.join(folder, _name(bank))
    for number in range(KEPT - 1, -1, -1):
        with suppress(OSError):
            data = state.Opened(_older(path, number)).read(0, 2 * LARGE)
            for line in data.splitlines():
                with suppress(ValueError):  # one that was torn
                    found = json.loads(line)
                    if isinstance(found, dict):
                        yield found


def _older(path: str, number: int) -> str:
    return f"{path}.{number}" if number else path


def _name(bank: str | os.PathLike[str]) -> str:
    return os.path.join(FOLDER, f"{sha256(os.fsencode(os.path.realpath(bank))).hexdigest()[:32]}.jsonl")
