"""A part of a long text: a section by its heading, or characters from an offset on, with how to get the rest."""

from __future__ import annotations

import json

from memlane.core.errors import InvalidInput
from memlane.core.markdown import heading, lines_with_code

LIMIT = 10_000  # characters in one answer unless more are asked for: about 2,500 tokens
MOST_NAMED = 30  # headings


def part(id: str, text: str, section: str | None, offset: int, limit: int) -> tuple[str, str]:
    """The part of a text that was asked for, and a sentence that says what it is; "" when it is the whole.

    It ends with a line where it can. Raises InvalidInput for a section that is not there.
    """
    start, end = _section(text, section) if section else (0, len(text))
    start += offset
    if start > end or (start == end and offset):
        raise InvalidInput(f"The offset is past the end: there are {end - start + offset:,} characters.", hint="Use 0.")
    stop = min(end, start + limit)
    if stop < end:
        stop = text.rfind("\n", start, stop) + 1 or stop
    if (start, stop) == (0, len(text)):
        return text, ""
    remark = f"Characters {start:,} to {stop:,} of {len(text):,}."
    if stop < end:
        named = "" if section is None else f"section={_quoted(section)}, "
        remark += f" Go on with `read_memory(filename={_quoted(id)}, {named}offset={stop - start + offset})`"
        names = [name for _, _, name in _headings(text)]
        remark += f", or name a section: {_listed(names)}." if names and section is None else "."
    return text[start:stop], remark


def _section(text: str, name: str) -> tuple[int, int]:
    """Where a section begins and ends, its sub-sections included. `name` is its heading, or "Plan > Goals"."""
    found = _headings(text)
    wanted = " ".join(name.rpartition(" > ")[2].strip("# ").split()).lower()
    at = [number for number, (_, _, title) in enumerate(found) if title.lower() == wanted]
    if not at:
        names = [title for _, _, title in found]
        hint = f"Use one of: {_listed(names)}." if names else "Leave section out: the text has no headings."
        raise InvalidInput("There is no such section.", hint=hint)
    start, level, _ = found[at[0]]
    return start, next((other for other, depth, _ in found[at[0] + 1 :] if depth <= level), len(text))


def _headings(text: str) -> list[tuple[int, int, str]]:
    """(place, level, title) of each heading."""
    found, at = [], 0
    for line, in_code in lines_with_code(text):
        if not in_code and (one := heading(line)):
            found.append((at, one[0], " ".join(one[1].split())))
        at += len(line)
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
