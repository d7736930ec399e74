"""Regular expressions that are compiled when they are first used.

A command uses a few of the hundreds that its modules have; compiling one takes up to three milliseconds.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # the hook that runs before every tool call does without `typing`
if TYPE_CHECKING:
    from typing import Any, AnyStr


class _Lazy:
    """Stands for a pattern. What is asked of it is looked up in the pattern once, and is its own from then on."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)  # `re` keeps what it has compiled
        setattr(self, name, found)
        return found


def lazily(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off until something is asked of the pattern."""
    return _Lazy(text, flags)  # type: ignore[return-value]
