"""Memories that say the same, or nearly, in whatever lanes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from memlane.care.review.reading import DELETE, LOOK, Item, Reading, by_age, changed_at, own_text, words_of
from memlane.core.model import Memory
from memlane.gate.likeness import tokens

ALIKE = 0.8  # of the words that either of two texts has, so many are in both
ALIKE_SHORT, SHORT = 0.7, 30  # in texts of so many words at most, one word more or less weighs more
FEW = 3  # words that say too little to compare
_KEPT_FIRST = ("vault", "notes", "topics", "layers", "records")  # of memories that say the same
_NAME = 4  # words of a title at most that is a name rather than a statement
_AGAIN = re.compile(
    r"(?:-\d{1,3}|-[0-9a-f]{8}| ?\(\d{1,3}\)|[ -]copy(?: \d)?)?"
)  # what a second note of one name is called


def duplicates(reading: Reading) -> Iterator[Item]:
    yield from reading.remembered("duplicate", _duplicates)


def _duplicates(reading: Reading) -> Iterator[Item]:
    words = {memory.id: words_of(memory) for memory in reading.memories}
    same: defaultdict[bytes, list[Memory]] = defaultdict(list)
    for memory in reading.memories:
        if len(words[memory.id]) >= FEW and (text := " ".join(own_text(memory).split())):
            same[hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()].append(memory)
    items: list[Item] = []
    distinct: list[Memory] = []  # one for each text
    for group in same.values():
        kept = min(group, key=lambda memory: _worth(reading, memory))
        distinct.append(kept)
        for memory in group:
            if memory is not kept and not (memory.lane == kept.lane == "records"):  # what was said twice was said twice
                action = DELETE if _adds_nothing(reading, memory, kept) else LOOK
                reason = f"says the same as {kept.id}"
                items.append(reading.item(memory, reason, ("rm", memory.id), action=action, others=(kept.id,)))
    settled = reading.bank.replaced.links()  # what something took the place of was decided on
    rest = [memory for memory in distinct if memory.lane != "records" and memory.id not in settled]
    for memory, other, share in _alike(rest, words):
        older, newer, when = by_age(memory, other)
        reason = f"says nearly the same as {newer.id}{when}: {share:.0%} of the words"
        items.append(reading.item(older, reason, ("rm", older.id), ("rm", newer.id), others=(newer.id,)))
    yield from sorted(items, key=lambda item: (not item.safe, item.id))


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


def _are_siblings(memory: Memory, other: Memory, words: Mapping[str, frozenset[str]]) -> bool:
    """Whether two texts of one form are about two things: each has a word of its own name that the other lacks."""
    for own, foreign in ((memory, other), (other, memory)):
        name, text = tokens(own.title), words[own.id]
        if len(own.title.split()) > _NAME or 2 * len(name) > len(text) or not (name & text) - words[foreign.id]:
            return False
    return True


def _alike(memories: Iterable[Memory], words: Mapping[str, frozenset[str]]) -> Iterator[tuple[Memory, Memory, float]]:
    """Pairs of memories of which each has nearly all the words of the other, except those that name it.

    Two such texts must share some of their rarest words, so only those are looked up; and a text that is like an
    earlier one is not compared again. So the cost grows with the number of texts, not with its square.
    """
    chosen = [memory for memory in memories if len(words[memory.id]) >= FEW]
    chosen.sort(key=lambda memory: (len(words[memory.id]), memory.id))
    counts = Counter(word for memory in chosen for word in words[memory.id])
    rank = {word: place for place, word in enumerate(sorted(counts, key=lambda word: (counts[word], word)))}
    holders: defaultdict[str, list[int]] = defaultdict(list)  # places in `chosen` of those with this rare word
    needed: list[int] = []  # how many rare words of it another text must share
    for place, memory in enumerate(chosen):
        own = words[memory.id]
        enough = ALIKE_SHORT if len(own) <= SHORT else ALIKE
        least = ceil(enough * len(own) - 1e-9)  # words that both must have
        needed.append(min(FEW, least))
        rarest = sorted(own, key=rank.__getitem__)[: len(own) - least + needed[place]]
        shared_rare = Counter(other for word in rarest for other in holders[word])
        best = (0.0, 0)
        for other in [other for other, times in shared_rare.items() if times >= needed[other]]:
            theirs = words[chosen[other].id]
            shared = len(own & theirs)
            share = (shared / (len(own) + len(theirs) - shared), -other)
            if share > best and share[0] >= enough and not _are_siblings(memory, chosen[other], words):
                best = share
        if best[0]:
            yield memory, chosen[-best[1]], best[0]
            continue
        for word in rarest:
            holders[word].append(place)
