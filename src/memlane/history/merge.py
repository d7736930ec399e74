"""Merge what two branches made of one file of a bank, as the file's lane says: (base, ours, theirs) -> merged.

    vault     lines are united; who changed the same record later wins, and the other version stays in the log
    topic     entries are united; one that both changed in different ways has both versions
    archive   entries are united
    index     lines are united, counts added up
    note      front matter key by key, the body line by line; what both changed stays in both versions
    record    as a note, with the hash of the new content
    layer     as a note, with the later Last Updated line

A change beats a deletion, what one side took out stays out, there are no conflict markers, and swapping the sides gives
the same bytes. Where that cannot be promised, `Unmergeable` leaves the file to git. Reads and writes no file.
"""

from __future__ import annotations

from pathlib import Path

from memlane.core.three_way import merged_value
from memlane.lanes import NAMES, open_lane
from memlane.lanes.answers import Answers


def drivers() -> dict[str, Answers]:
    """The merge drivers that the lanes bring, by name."""
    answers = (open_lane(name, Path()).answers for name in NAMES)
    return {driver: lane for lane in answers for driver, _ in lane.merges}


def merge(driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The file that says what both sides say. Raises Unmergeable. `base` is empty where both sides made the file."""
    whole, agreed = merged_value(base, ours, theirs)
    if agreed:
        return bytes(whole)  # only one side changed it: byte for byte, whatever is in it
    return drivers()[driver].merge_files(driver, base, ours, theirs)
