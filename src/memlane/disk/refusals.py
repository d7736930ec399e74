"""How often the gate refused what, by day: the name of a rule and a number, and never a word of what was refused.

A file of the user's state folder for each bank, with lines such as `["2026-11-16", "secrets: github-token", 1]`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress

from memlane.core.dates import utc_now
from memlane.core.digests import sha256
from memlane.core.errors import MemlaneError
from memlane.disk import state

FOLDER = "refused"
_KEPT = 500  # lines, the newest, when they are added up
_LARGE = 64 * 1024  # bytes, from which on the lines of a day are added up

Refusals = dict[tuple[str, str], int]  # (day, rule) -> how often


def note(folder: str | os.PathLike[str], bank: str | os.PathLike[str], rule: str) -> None:
    """Count a refusal. What goes wrong here is no loss."""
    day = utc_now().date().isoformat()
    with suppress(OSError, MemlaneError):
        if state.append(folder, _name(bank), json.dumps([day, rule[:100], 1]).encode()) > _LARGE:
            newest = sorted(counts(folder, bank).items())[-_KEPT:]
            lines = (json.dumps([*key, count]) for key, count in newest)
            state.replace(os.path.join(folder, _name(bank)), "".join(f"{line}\n" for line in lines).encode())


def counts(folder: str | os.PathLike[str], bank: str | os.PathLike[str]) -> Refusals:
    """How often each rule refused something, by day."""
    found: Counter[tuple[str, str]] = Counter()
    with suppress(OSError):
        file = state.Opened(os.path.join(folder, _name(bank)))
        for line in file.read(0, 4 * _LARGE).splitlines():
            with suppress(ValueError, TypeError):  # one that was torn
                day, rule, count = json.loads(line)
                found[str(day), str(rule)] += int(count)
    return dict(found)


def _name(bank: str | os.PathLike[str]) -> str:
    return os.path.join(FOLDER, f"{sha256(os.fsencode(os.path.realpath(bank))).hexdigest()[:32]}.jsonl")
