"""A memory as a row of the index, and back. Light: no NumPy."""

from __future__ import annotations

import json
from collections.abc import Collection

from memlane.core.dates import moment
from memlane.core.digests import blake2b
from memlane.core.model import Memory

# a memory counts only together with the file that it was read from
SHAPES = (
    "SELECT s.n, s.data, m.digest FROM shapes s JOIN memories m ON m.n = s.n "
    "JOIN files f ON f.path = m.file AND f.lane = m.lane"
)
FILTERS = ("lane", "type", "status", "scope", "project")  # of a memory: columns of their own


def shape(memory: Memory) -> tuple[str, bytes]:
    """A memory as JSON, and the digest that tells whether it has changed."""
    data = json.dumps(memory.stored(), ensure_ascii=False)
    return data, digest(data)


def digest(data: str) -> bytes:
    return blake2b(data.encode(errors="replace"), digest_size=16).digest()


def loaded(data: str, known: bytes | None = None) -> Memory:
    """The memory that `shape` made this JSON of. Raises ValueError for anything else.

    `known` is the digest that was stored with it.
    """
    try:
        if known is not None and digest(data) != known:
            raise ValueError("a row is not what was written")
        values = json.loads(data)
        values.pop("suspicious", None)  # in rows of earlier versions
        values["file"] = values.pop("path")
        values["tags"] = tuple(values["tags"])
        for key in ("created_at", "updated_at"):
            values[key] = moment(values[key])
        return Memory(**values)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("a row is not what was written") from error


def in_thread(name: str) -> str:
    """What the column `thread` has for a memory of this conversation."""
    return f"thread {name}"


def marks(values: Collection[object]) -> str:
    """The question marks of an SQL list: `?, ?, ?` for three values."""
    return ", ".join("?" * len(values))
