"""What in a bank is not as its lane's format says: damage, and values that are read but do not mean what they seem.

Reads only. Memory that is merely old is not wrong: see `memlane.care.ages`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memlane import lanes
from memlane.core.model import Memory, Problem
from memlane.core.text import FrontMatterError, find_front, load_front, moment
from memlane.gate import shown
from memlane.lanes import NAMES, Lane
from memlane.lanes.layers import aging

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes.records import RecordLane

Progress = Callable[[Sequence[str | Problem]], Iterable[str | Problem]]
_VAULT_ID = re.compile(r"[0-9a-f]{12}")


def validate(
    bank: Bank, ids: Sequence[str] = (), *, lane: str | None = None, progress: Progress = iter
) -> list[Problem]:
    """Everything that breaks a lane's rules: in the whole bank, in one lane, or in the files of these memories.

    `progress` is handed the files of each lane and hands them on. Raises NotFound; writes nothing.
    """
    if not ids:
        names = (lane,) if lane else NAMES
        return [problem for name in names for problem in of_lane(bank.lane(name), progress=progress)]
    from memlane.recall.address import find

    found: list[Problem] = []
    for place in (find(bank, id) for id in ids):
        of_file = of_lane(place.lane, [place.path])
        if place.lane.name == "vault":  # one file holds them all
            of_file = (problem for problem in of_file if place.native in problem.why)
        found += [problem for problem in of_file if problem not in found]
    return found


def of_lane(lane: Lane, paths: Sequence[str] | None = None, progress: Progress = iter) -> Iterator[Problem]:
    """Everything that breaks the rules of one lane, or that a merge has left undecided, in all files or in these."""
    from memlane.history.merge import undecided

    own = {"notes": _note, "vault": _record, "topics": _entry, "layers": _layer}.get(lane.name)
    if own is None:
        for problem in cast("RecordLane", lane).validate():
            if paths is None or os.fspath(problem.path) in paths:
                yield problem
    for path in progress(list(lane.files() if paths is None else paths)):
        for item in (path,) if isinstance(path, Problem) else lane.parse(path):
            if isinstance(item, Memory):
                yield from (Problem(item.path, why) for why in (own(lane, item) if own else ()))
                if why := undecided(item):
                    yield Problem(item.path, why)
            elif own:
                yield item
    if lane.name == "topics":
        yield from (problem for problem in _long_topics(lane) if paths is None or os.fspath(problem.path) in paths)


def _note(lane: Any, memory: Memory) -> Iterator[str]:
    """A note's front matter, where it has a value that is read as if it were missing."""
    from memlane.lanes.notes import STATUSES, TYPES

    text = lanes.read_file(memory.file)
    front = find_front(text) if isinstance(text, str) else None
    if front is None or not isinstance(text, str):
        return
    try:
        values = load_front(text[front.start : front.end])
    except FrontMatterError:  # reported already
        return
    for key, allowed in (("type", TYPES), ("status", STATUSES)):
        if values.get(key) not in (None, *allowed):
            yield f"has an unknown {key}, read as {allowed[0]}: use one of {', '.join(allowed)}"
    for key in ("created_at", "created", "date"):
        if values.get(key) is not None:
            if moment(values[key]) is None:
                yield f"has a {key} that is not a date: write it like 2025-01-15T10:30:00Z"
            break
    tags = values.get("tags")
    if isinstance(tags, dict) or (isinstance(tags, list) and any(isinstance(tag, list | dict) for tag in tags)):
        yield "has tags that are not a list of words: write them like [auth, plan]"


def _record(lane: Any, memory: Memory) -> Iterator[str]:
    """A vault record that is read as it is, though no call here would have written it."""
    from memlane.lanes.vault.checks import MAX_TEXT
    from memlane.lanes.vault.record import SOURCES

    record = lane.get_memory(memory.native_id)
    name = shown(record.id)
    if not _VAULT_ID.fullmatch(record.id):
        yield f"{name}: the id is not 12 hex digits"
    if record.source not in (None, *SOURCES):
        yield f"{name}: the source is unknown: use one of {', '.join(SOURCES)}"
    if len(record.text) > MAX_TEXT:
        yield f"{name}: the text has {len(record.text):,} characters; {MAX_TEXT:,} are allowed"
    for key in ("created_at", "updated_at"):
        if getattr(record, key) and moment(getattr(record, key)) is None:
            yield f"{name}: {key} is not a date and time"
    if not record.created_at:
        yield f"{name}: there is no created_at"


def _entry(lane: Any, memory: Memory) -> Iterator[str]:
    """A dated entry whose day does not exist."""
    if memory.created_at is None:
        yield f"{shown(memory.native_id)}: the date is no day of any calendar"


def _long_topics(lane: Any) -> Iterator[Problem]:
    surplus = Counter(entry.path for entry in lane.prune(dry_run=True))
    for path, count in surplus.items():
        why = f"has {count} more entries than a topic file keeps: `memlane prune --lane topics --apply` archives them"
        yield Problem(Path(path), why)


def _layer(lane: Any, memory: Memory) -> Iterator[str]:
    """Seed 004's own checks: a timestamp, a bearable length, completeness and specificity."""
    text = lanes.read_file(memory.file)
    if isinstance(text, str) and aging.updated_on(text) is None:
        yield "has no `<!-- Last Updated: YYYY-MM-DD -->` on its first line"
    found = lane.validate(memory.native_id)
    yield from found["details"]["warnings"]
    if not found["checks"]["completeness"]:
        missing = found["details"]["completeness"]["missing"]
        yield "says nothing yet" if missing == ["content"] else f"says nothing about: {', '.join(missing)}"
    if not found["checks"]["specificity"]:
        counts = found["details"]["specificity"]
        yield f"names no files, lines or functions in {counts['unspecific']} of {counts['claims']} claims"
