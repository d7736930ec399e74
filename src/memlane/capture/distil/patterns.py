"""Lists of words as patterns: alternatives parted by a comma and a blank, each a regular expression in lower case."""

from __future__ import annotations

import re


def any_of(alternatives: str) -> re.Pattern[str]:
    """A pattern that finds any of the alternatives as whole words."""
    return re.compile(rf"\b(?:{_joined(alternatives)})\b", re.ASCII)


def begins_with(alternatives: str, after: str = r"\W*") -> re.Pattern[str]:
    """A pattern for a text that begins with one of the alternatives."""
    return re.compile(rf"{after}(?:{_joined(alternatives)})\b")


def _joined(alternatives: str) -> str:
    alternatives = re.sub(r"\|\s*\n\s*", "|", alternatives)  # a line may end within a group
    return "|".join(" ".join(each.split()) for each in re.split(r",\s+", alternatives.strip().rstrip(",")))
