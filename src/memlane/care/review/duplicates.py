"""Memories that say the same, or nearly, in whatever lanes."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from memlane.care.review import alike
from memlane.care.review.alike import Array
from memlane.care.review.reading import DELETE, FEW, LOOK, Item, Reading, changed_at, own_text, words_of
from memlane.core.model import Memory
from memlane.gate.likeness import tokens

_FEW_FILES = 200  # that are read one by one; more are taken from the index
_KEPT_FIRST = ("vault", "notes", "topics", "layers", "records")  # of memories that say the same
_NAME = 4  # words of a title at most that is a name rather than a statement
_AGAIN = re.compile(
    r"(?:-\d{1,3}|-[0-9a-f]{8}| ?\(\d{1,3}\)|[ -]copy(?: \d)?)?"
)  # what a second note of one name is called


class _Entry(NamedTuple):
    """What is known of a memory without reading it."""

    path: str
    id: str
    lane: str
    title: str
    created: float | None
    updated: float | None
    shape: bytes

    @property
    def changed(self) -> float | None:
        return self.created if self.updated is None else self.updated


def duplicates(reading: Reading) -> Iterator[Item]:
    columns = "lane, title, created, updated, shape"
    rows = map(_Entry._make, reading.known.entries(columns, "status IS NOT 'archived'"))
    by_key = {int.from_bytes(row.shape[:8], "little"): row for row in rows if reading.counts(row.path, row.id)}
    known, before = alike.unpacked(reading.known.kept("alike"))
    stays = np.isin(known.keys, np.fromiter(by_key, "<u8", len(by_key)))
    before = alike.Matches(_moved(before.of, stays), before.share[stays])
    known = known.chosen(stays)
    new = _texts(reading, {key: by_key[key] for key in by_key.keys() - set(known.keys.tolist())})
    known = known.joined(new)
    before = alike.Matches(
        np.concatenate([before.of, np.full(len(new.keys), alike.APART)]),
        np.concatenate([before.share, np.zeros(len(new.keys))]),
    )
    entries = [by_key[key] for key in known.keys.tolist()]
    items: list[Item] = []
    compared = known.sizes >= FEW
    for group in _same(reading, entries, known, compared):
        kept = min(group.values(), key=lambda memory: _worth(reading, memory))
        for place, memory in group.items():
            if memory is kept:
                continue
            compared[place] = False
            if not (memory.lane == kept.lane == "records"):  # what was said twice was said twice
                action = DELETE if _adds_nothing(reading, memory, kept) else LOOK
                reason = f"says the same as {kept.id}"
                items.append(reading.item(memory, reason, ("rm", memory.id), action=action, others=(kept.id,)))
    settled = reading.bank.replaced.links()  # what something took the place of was decided on
    compared &= np.array([entry.lane != "records" and entry.id not in settled for entry in entries], bool)
    rank = np.empty(len(entries), np.int64)
    rank[sorted(range(len(entries)), key=lambda place: entries[place].id)] = np.arange(len(entries))
    found = alike.matched(known, before, compared, rank, _siblings(entries, known))
    reading.known.keep("alike", alike.packed(known, found))
    for place in (place for place in np.lexsort((rank, known.sizes)).tolist() if found.of[place] >= 0):
        items.append(_near(reading, entries[place], entries[found.of[place]], float(found.share[place])))
    yield from sorted(items, key=lambda item: (not item.safe, item.id))


def _moved(of: Array, stays: Array) -> Array:
    """The places of matches among those that stay; what was matched with one that does not is to be compared again."""
    places = np.where(stays, np.cumsum(stays) - 1, alike.APART)
    return np.where(of >= 0, places[np.maximum(of, 0)], of)[stays]


def _texts(reading: Reading, entries: Mapping[int, _Entry]) -> alike.Texts:
    """The texts of memories that were not compared before, or are not as they were."""
    keys = {(entry.path, entry.id): key for key, entry in entries.items()}
    found: dict[int, tuple[int, int]] = {}
    words = array("Q")

    def take(memory: Memory) -> bool:
        key = keys.get((memory.file, memory.id))
        if key is not None and key not in found:
            own = words_of(memory)
            found[key] = _same_text(memory) if len(own) >= FEW else 0, len(own)
            words.extend(map(alike.number, own))
        return False  # one after the other: nobody has all of them at once

    if len(keys) > _FEW_FILES:
        from memlane.index.peek import Peek

        with Peek(reading.bank.index_file, reading.bank.present()) as peek:
            peek.first(take)
    for (path, id), key in keys.items():
        if key not in found and (memory := reading.known.memory(path, id)):
            take(memory)
    return alike.texts([*found], [same for same, _ in found.values()], [size for _, size in found.values()], words)


def _same_text(memory: Memory) -> int:
    """A number for the text of a memory, blanks aside."""
    return alike.number(" ".join(own_text(memory).split()))


def _same(
    reading: Reading, entries: Sequence[_Entry], known: alike.Texts, compared: Array
) -> Iterator[dict[int, Memory]]:
    """Memories that have the same text, by their places, group by group."""
    _, dense, counts = np.unique(known.same, return_inverse=True, return_counts=True)
    groups: defaultdict[str, dict[int, Memory]] = defaultdict(dict)
    for place in np.flatnonzero((counts[dense] > 1) & compared).tolist():
        if memory := reading.known.memory(entries[place].path, entries[place].id):
            groups[" ".join(own_text(memory).split())][place] = memory
    return (group for group in groups.values() if len(group) > 1)


def _near(reading: Reading, entry: _Entry, other: _Entry, share: float) -> Item:
    changed = entry.changed, other.changed
    dated = None not in changed and changed[0] != changed[1]
    older, newer = (other, entry) if dated and (entry.changed or 0) > (other.changed or 0) else (entry, other)
    reason = f"says nearly the same as {newer.id}{', which is newer' * dated}: {share:.0%} of the words"
    options = tuple(reading.command("rm", id) for id in (older.id, newer.id))
    return Item(older.id, LOOK, reason, older.title, others=(newer.id,), options=options)


def _worth(reading: Reading, memory: Memory) -> tuple[bool, bool, int, str, str]:
    """Sort key: of memories of one text, the one to keep comes first."""
    canon = memory.fields.get("tier") == "canon"
    rank = _KEPT_FIRST.index(memory.lane) if memory.lane in _KEPT_FIRST else len(_KEPT_FIRST)
    return memory.id not in reading.linked, not canon, rank, str(changed_at(memory) or "9"), memory.id


def _adds_nothing(reading: Reading, memory: Memory, kept: Memory) -> bool:
    """Whether a note can go because another one says all that it says, and nothing points to it."""
    labels = ("type", "status", "scope", "project", "thread")
    return (
        memory.lane == kept.lane == "notes"
        and _is_named_after(memory.native_id, kept.native_id)
        and memory.id not in reading.linked
        and set(memory.tags) <= set(kept.tags)
        and all(getattr(memory, name) in (None, getattr(kept, name)) for name in labels)
        and all(kept.fields.get(name) == value for name, value in memory.fields.items())
        and memory.title in (kept.title, memory.native_id)
    )


def _is_named_after(name: str, other: str) -> bool:
    """Whether two notes would have one name, had the other not been there: a name of its own may say something."""
    short, long = sorted((name, other), key=len)
    return long.startswith(short) and _AGAIN.fullmatch(long[len(short) :]) is not None


def _siblings(entries: Sequence[_Entry], known: alike.Texts) -> Callable[[int, int], bool]:
    """Whether two texts of one form are about two things: each has a word of its own name that the other lacks."""
    ends = known.sizes.cumsum()

    def words(place: int) -> set[int]:
        return {*known.words[ends[place] - known.sizes[place] : ends[place]].tolist()}

    def are_siblings(one: int, two: int) -> bool:
        of = {one: words(one), two: words(two)}
        for own, foreign in ((one, two), (two, one)):
            title = entries[own].title
            name = {*map(alike.number, tokens(title))}
            if len(title.split()) > _NAME or 2 * len(name) > len(of[own]) or not (name & of[own]) - of[foreign]:
                return False
        return True

    return are_siblings
