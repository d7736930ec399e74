"""A memory as it stands in the index, and back. Light: no NumPy."""

from __future__ import annotations

import hashlib
import json

from memlane.core.dates import moment
from memlane.core.model import Memory


def shape(memory: Memory) -> tuple[str, bytes]:
    """A memory as JSON, and the digest by which a change is noticed."""
    data = json.dumps(memory.to_dict(), ensure_ascii=False)
    return data, digest(data)


def digest(data: str) -> bytes:
    return hashlib.blake2b(data.encode(errors="replace"), digest_size=16).digest()


def loaded(data: str) -> Memory:
    values = json.loads(data)
    del values["suspicious"]
    values["file"] = values.pop("path")
    values["tags"] = tuple(values["tags"])
    for key in ("created_at", "updated_at"):
        values[key] = moment(values[key])
    return Memory(**values)
