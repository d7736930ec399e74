"""The entries that a query finds, as they stand in their files: from the index of a bank, or from the files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from memlane.core.values import replace
from memlane.lanes import from_files, may_show
from memlane.lanes.topics import archive, ids, usage
from memlane.lanes.topics.drafts import memory_of
from memlane.lanes.topics.entries import Entry
from memlane.lanes.topics.pages import Folder
from memlane.lanes.topics.search import Hit, hits_for, needed, parse

if TYPE_CHECKING:
    from memlane.lanes.topics.store import TopicLane


def best(
    lane: TopicLane, query: str, order: Callable[[Hit], tuple[Any, ...]], limit: int, filters: Mapping[str, Any]
) -> list[Entry]:
    """The first entries in this order, each with its score; equals in the order of their file."""
    parsed = parse(query)
    fits = may_show(lane.tombstones, filters)
    stats = usage.read(lane.folder.at(usage.STATS))
    today = lane.clock().astimezone(UTC).date()
    for memories in (lane.memories, from_files(lane)):
        hits = sorted(hits_for(parsed, memories(fits, needed(parsed)), today, stats), key=order)
        last = order(hits[min(limit, len(hits)) - 1]) if hits and limit > 0 else ()
        first = [hit for hit in hits if order(hit) <= last]
        read = {path: _entries(lane.folder, path) for path in dict.fromkeys(hit.memory.file for hit in first)}
        in_files = {entry.id: (place, entry) for entries in read.values() for place, entry in enumerate(entries)}
        placed = [(hit, in_files.get(hit.memory.id)) for hit in first]
        if all(place for _, place in placed):  # else the files have changed meanwhile
            break
    there = [(hit, *place) for hit, place in placed if place]
    there.sort(key=lambda row: (order(row[0]), row[1]))
    return [replace(entry, score=hit.score) for hit, _, entry in there[: max(limit, 0)]]


def _entries(folder: Folder, path: str) -> Sequence[Entry]:
    """The entries of a topic file or of an archive, each with its id."""
    if archive.is_archive(folder, path):
        return ids.archived(folder, path)
    entries = ids.identified(folder, path)
    return entries if isinstance(entries, tuple) else ()


def overview(lane: TopicLane) -> Iterator[dict[str, Any]]:
    """Every sub-topic with the number of its entries and the date of the newest."""
    for path in lane.folder.topic_files():
        if isinstance(path, str):
            shown = (entry for entry in _entries(lane.folder, path) if not lane.tombstones.held(memory_of(entry)))
            dates = [entry.date for entry in shown]
            name = "/".join(lane.folder.named(path))
            yield {"topic": name, "entries": len(dates), "newest": max(dates, default=None)}
