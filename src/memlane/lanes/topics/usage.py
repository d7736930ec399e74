"""The access statistics of a topic lane (seed 000), .stats.json: how often each sub-topic was loaded, and when last.

A file that cannot be read counts as empty: losing it costs a little in the order of a search, and no entry.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from memlane.core.dates import iso
from memlane.core.errors import AlreadyExists, NotTrusted, StorageError
from memlane.disk import files
from memlane.disk.log import json_of
from memlane.lanes import read_file

STATS = ".stats.json"


def read(path: str) -> dict[str, dict[str, Any]]:
    """What the file says, {} when it says nothing usable."""
    text = read_file(path)
    found = json_of(text) if isinstance(text, str) else None
    return found if isinstance(found, dict) else {}


def uses(stats: Mapping[str, Any], name: str) -> int:
    """How often "topic/subtopic" was loaded."""
    found = stats.get(name)
    count = found.get("count") if isinstance(found, dict) else 0
    return count if isinstance(count, int) and 0 < count < 10**9 else 0


def count(path: str, name: str, clock: Callable[[], datetime]) -> None:
    """Count one more access to "topic/subtopic". Where that cannot be written, nothing happens."""
    with suppress(StorageError, NotTrusted):  # what may not be written can still be read
        if not os.path.lexists(path):
            with suppress(AlreadyExists):
                files.create(path, b"{}\n")
        with files.locked(path):
            stats = read(path)
            stats[name] = {"count": uses(stats, name) + 1, "last_access": iso(clock())}
            files.replace(path, json.dumps(stats, indent=2, sort_keys=True).encode() + b"\n")
