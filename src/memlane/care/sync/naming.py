"""What is said beside the lanes names memories, in plain words: `anchors.jsonl`, `replaced.jsonl`.

Those files go to one scope. What they say of memories in another one stays here: whoever may not read a memory must not
learn its name, either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.care.sync.local import lines_of
from memlane.care.sync.travel import Place
from memlane.core.errors import MemlaneError
from memlane.disk import anchors, replaced
from memlane.lanes import LANES, NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

FILES = (anchors.NAME, replaced.FILE)
_NAMES = ("id", "old", "new")


def without(bank: Bank, place: Place, data: bytes, is_elsewhere: Callable[[str, str], bool]) -> bytes | None:
    """A content of such a file without the lines that name what is in another scope, as `is_elsewhere` says of a name
    at remotes and a path here; None where nothing is left.
    """
    if place.path not in FILES:
        return data
    lines = lines_of(data)
    kept = [line for line in lines if not any(is_elsewhere(*file) for file in _named(bank, line))]
    return data if len(kept) == len(lines) else b"".join(line + b"\n" for line in kept) or None


def _named(bank: Bank, line: bytes) -> Iterator[tuple[str, str]]:
    """The name at remotes and the path here of each memory with a file of its own that a line names."""
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        said = json.loads(line)
        for id in [said[key] for key in _NAMES if key in said]:
            name, _, native = id.partition(":")
            if name in NAMES and not bank.lane(name).answers.shares_files and bank.lane(name).answers.is_folder:
                with suppress(MemlaneError):
                    file = bank.lane(name).answers.path_of(native)
                    below = file[len(str(bank.lane(name).root)) + 1 :]
                    yield f"{LANES[name].place}/{below}".strip("/"), file
