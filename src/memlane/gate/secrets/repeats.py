"""What was found at a place of a text, for the places after it that have the same text around them.

A log or a table says the same over and over, and so does a text that is made to be slow. What is found at a place
depends on no more than a stretch around it, and two stretches are compared in a fraction of the time that it takes to
judge one.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
# Of how many places it is known what was found there; a text that repeats itself has fewer different ones.
_MOST = 1000


class Repeats(Generic[T]):
    """What was found at places of one text, and nothing else: `back` characters before a place and `ahead` ones from
    it on say what it is.
    """

    def __init__(self, text: str, back: int, ahead: int) -> None:
        self._text, self._back, self._ahead = text, back, ahead
        self._seen: dict[str, tuple[int, T]] = {}

    def at(self, place: int) -> T | None:
        """What was found at a place like this one, if there was any."""
        text, back, ahead = self._text, self._back, self._ahead
        if place < back or not (seen := self._seen.get(text[place - 8 : place + 24])):
            return None
        before, found = seen
        same = before >= back and text[before - back : before + ahead] == text[place - back : place + ahead]
        return found if same else None

    def note(self, place: int, found: T) -> T:
        """Keep what was found at a place, and return it."""
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[self._text[max(0, place - 8) : place + 24]] = place, found
        return found
