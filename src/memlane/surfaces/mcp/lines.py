"""A tool's result as a few lines of text: what a model reads where a client does not show it the data.

An entry begins with its id and a date; its text is indented below, so that no text looks like another entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memlane.core.invisible import visible


def as_lines(value: Any) -> str:
    """`name: value` by line, without what is empty. The entries of a list are parted by a blank line."""
    if isinstance(value, Mapping):
        return "\n".join(_pair(name, item) for name, item in value.items() if item not in (None, "", [], {}))
    if isinstance(value, Sequence) and not isinstance(value, str):
        nested = any(isinstance(item, Mapping) for item in value)
        return "\n\n".join(map(as_lines, value)) if nested else ", ".join(map(as_lines, value))
    return ("no", "yes")[value] if isinstance(value, bool) else visible(str(value))


def _pair(name: str, value: Any) -> str:
    text = as_lines(value)
    if isinstance(value, Mapping) and all(isinstance(item, int | float) for item in value.values()):
        return f"{name}: {text.replace(': ', ' ').replace(chr(10), ', ')}"
    return f"{name}:\n{indented(text)}" if "\n" in text or isinstance(value, Mapping) else f"{name}: {text}"


def entry(words: Iterable[str | None], text: str = "") -> str:
    """One entry of a list: what is known of it in a line, and its text below."""
    head = " · ".join(" ".join(visible(word).split()) for word in words if word)
    return f"{head}\n{indented(visible(text).strip())}" if text.strip() else head


def indented(text: str) -> str:
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.splitlines())


def with_remark(text: str, answer: Mapping[str, Any]) -> str:
    """A text, and below it the remark of the answer that it belongs to."""
    remark = answer.get("remark", "")
    return f"{text.rstrip()}\n\n{remark}" if text and remark else text or remark
