"""Front matter that comes with a note's content: it belongs to the note, and is not a second one below the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memlane.core.dates import moment
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.model import Draft
from memlane.core.values import replace

KEYS = frozenset({"type", "status", "tags", "created_at", "title", "scope", "project", "thread"})  # a note's own
MEANT = frozenset({"when", "expires"})  # shown as fields, and yet they mean something


def brought(content: Any) -> tuple[dict[str, Any], str]:
    """`values_of`, where they are a note's: a text between two lines of dashes need not be front matter."""
    values, body = values_of(content) if isinstance(content, str) else ({}, content)
    return (values, body) if values.keys() & KEYS else ({}, content)


def values_of(content: str) -> tuple[dict[str, Any], str]:
    """(the front matter of a file, its body); ({}, the content) where there is none that can be read."""
    front = find_front(content)
    if front is None:
        return {}, content
    try:
        return load_front(content[front.start : front.end]), content[front.body :]
    except FrontMatterError:
        return {}, content


def unfolded(draft: Draft, tags_in: Callable[[Any], tuple[str, ...]]) -> Draft:
    """The draft with the front matter of its text as its own. What was given besides the text counts first."""
    values, body = brought(draft.text)
    if not values:
        return draft
    own = {name: str(value) for name in ("title", "type", "scope", "thread") if (value := values.pop(name, None))}
    given: dict[str, Any] = {name: getattr(draft, name) or value for name, value in own.items()}
    tags = tuple(dict.fromkeys((*draft.tags, *tags_in(values.pop("tags", None)))))
    created = draft.created_at or moment(values.pop("created_at", None))
    return replace(draft, text=body, tags=tags, created_at=created, fields={**values, **draft.fields}, **given)


def dropped(before: str, after: str) -> str:
    """What the front matter of a file said that its new content does not repeat, and how to keep it; "" for nothing."""
    old, new = values_of(before)[0], values_of(after)[0]
    gone = {name: value for name, value in old.items() if name not in new}
    if not gone:
        return ""
    said = ", ".join(f"{name}: {_written(value)}" for name, value in gone.items())
    return f"the whole file was replaced, and with it its front matter ({said}); begin the content with it to keep it"


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return "…" if isinstance(value, Mapping) else str(value)
