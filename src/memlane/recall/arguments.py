"""What callers give the bank's searches, checked. Raises InvalidInput; no I/O."""

from __future__ import annotations

from typing import Any

from memlane.core.errors import InvalidInput
from memlane.disk import files


def check_query(query: Any, limit: Any, **words: Any) -> None:
    """Raise InvalidInput for arguments of the wrong type."""
    if not isinstance(query, str):
        raise InvalidInput("The query is not text.", hint="Give a string.")
    if not isinstance(limit, int):
        raise InvalidInput("The limit is not a whole number.", hint="5 is the default.")
    for name, value in words.items():
        if not isinstance(value, str | None):
            raise InvalidInput(f"The {name} is not text.", hint="Give a string.")
    files.encoded(" ".join([query, *filter(None, words.values())]).replace("\0", " "))
