"""What is known of the beginning of a vault's file, kept in the user's state folder: a long vault opens at once.

    8 bytes   "mlvault3"
    12        how long the head is, and its CRC-32
    head      JSON: which bytes of the vault this is about, by their SHA-256; the damage; where what follows is
    known     the ids; where the line of each record starts, and its number; the order of the active ones by date; which
              of them have which scope, category, tier and tag
    said      a hash of the text of each active record
    columns   of `memlane.gate.lookalikes`, by scope; none before something was added

It has no text of a memory, but what is in it comes from texts: `memlane.index.facts.remove` deletes it. Files are the
truth. It is used where a vault begins with the very same bytes, each piece has its checksum, and without it, or with a
damaged one, the answers are the same and take longer. Where a vault has become another one in the middle, by hand or by
a merge, all lines are read again, and the columns of those texts that are as they were are used (`Content.renewed`).
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b, sha256
from itertools import accumulate
from operator import attrgetter
from typing import Any, TypeVar

from memlane.disk import state
from memlane.disk.log import split_lines
from memlane.gate.lookalikes import Base, Columns, Shelves, Slots
from memlane.lanes.vault.log import Damaged, Known, Rules
from memlane.lanes.vault.record import Fresh, Record, newest_first, read_line

_START = struct.Struct(">8sQI")
_MAGIC = b"mlvault3"
# Which characters are letters, and which letters are one but for their case, is a matter of Python's version.
_WRITER = f"{sys.version_info.major}.{sys.version_info.minor} {sys.byteorder}"

_ODD = ("\u0130".encode(), "\u212a".encode())
_HASH = 16  # bytes
_GONE = 0xFFFFFFFF  # instead of the place of a text that was removed

T = TypeVar("T")
_OF_ALL = ("scope", "category", "tier")  # what every record has
Labels = dict[str, dict[str, "array[int]"]]  # the places of the active records that have each value, by kind and value


class Content:
    """What was kept, of whatever a vault had in it then. A record is known by its place among all ids, the active ones
    first. Raises what a damaged file leads to.
    """

    def __init__(self, file: state.Opened) -> None:
        magic, size, checksum = _START.unpack(file.read(0, _START.size))
        raw = file.read(_START.size, size) if magic == _MAGIC and size < 1 << 32 else b""
        if zlib.crc32(raw) != checksum:
            raise Damaged
        self.head: dict[str, Any] = json.loads(raw)
        self.file, self.body = file, _START.size + size
        if self.head["writer"] != _WRITER:
            raise Damaged
        self._ids, self._said = self.piece(self.head["known"][0]), self.piece(self.head["said"])

    def ids(self) -> list[str]:
        """All ids, by place."""
        found: list[str] = json.loads(self._ids)
        return found

    def said(self) -> list[bytes]:
        """The hash of the text of each active record, by place."""
        return [self._said[at : at + _HASH] for at in range(0, len(self._said), _HASH)]

    def renewed(self, scope: str, rules: Rules, texts: Mapping[str, str]) -> tuple[Base, dict[str, str]] | None:
        """The columns of those texts of a scope that are as they were, and the other texts, by id and in order; None
        when most are others. Finding may raise Damaged.
        """
        ids, said = self.ids(), self.said()
        same = [
            (text := texts.get(id)) is not None and said_in(text) == was for id, was in zip(ids, said, strict=False)
        ]
        there: set[str] = set()

        def slots(places: Sequence[int], alive: int) -> tuple[Slots, int]:
            keys = [ids[place] if place < len(same) and same[place] else "" for place in places]
            there.update(keys)
            return Slots(keys), alive & int("".join("1" if key else "0" for key in reversed(keys)) or "0", 2)

        shelves = self._shelves(scope, rules, slots)
        others = {id: text for id, text in texts.items() if id not in there}
        if shelves is None or 2 * len(others) > len(texts):
            return None
        return Base(shelves, {id: turn for turn, id in enumerate(texts)}, texts.__getitem__), others

    def _shelves(
        self, scope: str, rules: Rules, slots: Callable[[Sequence[int], int], tuple[Slots, int]]
    ) -> Shelves | None:
        """The columns of a scope's texts; None when they are of no use. `slots` says which text has which bit, and
        which are there, of places and bits that were kept.
        """
        if self.head["rules"] != list(rules):
            return None
        shelves = Shelves(*rules)
        for columns, kept in zip(shelves.columns, self.head["scopes"].get(scope, ()), strict=False):
            at = {number: place for number, *place in kept["columns"]}

            def load(number: int, at: Mapping[int, Sequence[int]] = at) -> int:
                return int.from_bytes(self.piece(at[number]), "little")

            alive = int.from_bytes(self.piece(kept["alive"]), "little")
            own, alive = slots(_array("I", self.piece(kept["slots"])), alive)
            columns.take(own, load, at.keys(), alive)
        return shelves

    def piece(self, place: Sequence[int]) -> bytes:
        at, size, checksum = place
        data = self.file.read(self.body + at, size)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise Damaged
        return data


class Kept(Content):
    """The beginning of a vault's file, `size` bytes of `data`. Lines are parsed when they are asked for."""

    def __init__(self, file: state.Opened, data: bytes) -> None:
        super().__init__(file)
        self.data = data
        about = memoryview(data)[: self.head["size"]]
        if len(about) != self.head["size"] or sha256(about).hexdigest() != self.head["digest"]:
            raise Damaged
        self._topics, self._labels, labelled = (self.piece(at) for at in self.head["known"][1:])
        self.starts, self.numbers = _array("Q", self.piece(self.head["starts"])), self._places_at("numbers")
        self.order, self._labelled = self._places_at("order"), _array("I", labelled)
        self.places = Places(self, self._places_at("checksums"), self._places_at("by_checksum"))

    def _places_at(self, name: str) -> array[int]:
        return _array("I", self.piece(self.head[name]))

    def topics(self) -> dict[tuple[str, str], dict[str, None]]:
        """The ids of the registers of each scope and topic."""
        return {(scope, topic): dict.fromkeys(ids) for scope, topic, ids in json.loads(self._topics)}

    def labels(self) -> Labels:
        kinds: dict[str, dict[str, tuple[int, int]]] = json.loads(self._labels)
        return {
            kind: {value: self._labelled[start:end] for value, (start, end) in values.items()}
            for kind, values in kinds.items()
        }

    def record(self, place: int) -> Record:
        start = self.starts[place]
        record = read_line(split_lines(self.data[start : self.data.find(b"\n", start)])[0])
        if not isinstance(record, Record):
            raise Damaged
        return record

    def newest(self, labels: Mapping[str, Collection[str]]) -> Iterable[int]:
        """The places of the active records that have one of the labels of each kind, the newest first."""
        if not labels:
            return self.order
        kinds = self.labels()
        chosen = [
            {
                place
                for value, places in kinds.get(kind, {}).items()
                if (value.lower() if kind == "category" else value) in wanted
                for place in places
            }
            for kind, wanted in labels.items()
        ]
        among = set.intersection(*chosen)
        return (place for place in self.order if place in among)

    def having(self, words: Collection[str]) -> dict[int, int] | None:
        """The places of all records that may have one of these words, in small letters, and of how many at most; None
        when all may.

        Lines are looked through as they are: what JSON writes in another way may be any word, and so may the two
        letters outside ASCII that have one of ASCII as their small letter.
        """
        if not all(word.isascii() for word in words):
            return None
        data = self.data[: self.head["size"]].lower()
        counts = {word.encode(): 1 for word in words}
        counts |= dict.fromkeys((b"\\u",) if data.isascii() else (b"\\u", *_ODD), len(words))
        found: dict[int, int] = {}  # by where the line starts
        for needle, count in counts.items():
            at = data.find(needle)
            while at >= 0:
                start = data.rfind(b"\n", 0, at) + 1
                found[start] = min(found.get(start, 0) + count, len(words))
                at = data.find(needle, data.find(b"\n", at))
        return {place: found[start] for place, start in enumerate(self.starts) if start in found}

    def base(self, scope: str, rules: Rules) -> Base | None:
        """The columns of a scope's texts; None when they are of no use. Finding may raise Damaged."""
        shelves = self._shelves(scope, rules, lambda places, alive: (_Slots(self, places), alive))
        if shelves is None:
            return None
        return Base(shelves, self.places, lambda key: self.record(self.places[key]).text)


class Places(Mapping[str, int]):
    """The place of each id, found by its checksum: a table of all of them would take longer to read."""

    def __init__(self, kept: Kept, checksums: Sequence[int], places: Sequence[int]) -> None:
        self._kept, self._checksums, self._places = kept, checksums, places

    def __getitem__(self, id: str) -> int:
        checksum = _checksum(id)
        at = bisect_left(self._checksums, checksum)
        while at < len(self._checksums) and self._checksums[at] == checksum:
            if self._kept.record(self._places[at]).id == id:
                return self._places[at]
            at += 1
        raise KeyError(id)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept.ids())


class _Slots(Slots):
    """Slots that were kept: the place of the record of each."""

    def __init__(self, kept: Kept, of_slots: Sequence[int]) -> None:
        self._kept, self._of_slots = kept, of_slots
        self._slot_of: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._of_slots)

    def key(self, slot: int) -> str:
        place = self._of_slots[slot]
        return "" if place == _GONE else self._kept.record(place).id

    def keys(self) -> list[str]:
        ids = self._kept.ids()
        return ["" if place == _GONE else ids[place] for place in self._of_slots]

    def slot(self, key: str) -> int | None:
        if (wanted := self._kept.places.get(key)) is None:
            return None
        if self._slot_of is None:
            self._slot_of = {place: slot for slot, place in enumerate(self._of_slots) if place != _GONE}
        return self._slot_of.get(wanted)


def load(path: str, data: bytes) -> Kept | None:
    """What is kept about the beginning of this content; None when there is nothing that can be used."""
    return _opened(lambda: Kept(state.Opened(path), data))


def earlier(path: str) -> Content | None:
    """What is kept about another content; None when there is nothing that can be used."""
    return _opened(lambda: Content(state.Opened(path)))


def _opened(content: Callable[[], T]) -> T | None:
    try:
        return content()
    except (OSError, ValueError, LookupError, TypeError, struct.error, Damaged):
        return None


def said_in(text: str) -> bytes:
    """A hash of a text."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=_HASH).digest()


def _all_said(known: Known, active: Iterable[str]) -> Iterator[bytes]:
    """The hashes of the texts of all active records. Those that are kept are not parsed."""
    if known.kept is None:
        return (said_in(row.text) for row in known.active.rows())
    before = dict(zip(known.kept.ids(), known.kept.said(), strict=False))
    return (before[id] if id not in known.touched else said_in(known.active[id].text) for id in active)


def labels_of(record: Record) -> Iterator[tuple[str, str]]:
    """What a record is counted and chosen by: kinds and values."""
    yield from ((kind, getattr(record, kind)) for kind in _OF_ALL)
    yield from _of_some(record)


def _of_some(record: Record | Fresh) -> Iterator[tuple[str, str]]:
    yield from (("tag", tag) for tag in dict.fromkeys(record.tags))
    if record.tier == "register" and record.topic_id:
        yield "topic", ""


def write(path: str, data: bytes, known: Known, scopes: Mapping[str, Shelves], rules: Rules | None) -> None:
    """Keep what is known of this content, all of it whole lines. Raises OSError, StorageError."""
    active = dict.fromkeys(known.active)
    ids = [*active, *(id for id in known.latest if id not in active)]
    before = dict(zip(known.kept.ids(), known.kept.numbers, strict=True)) if known.kept else {}
    numbers = [known.numbers[id] if id in known.numbers else before[id] for id in ids]
    starts = [0, *accumulate(len(line) + 1 for line in data.split(b"\n"))]
    body: list[bytes] = []
    end = 0

    def put(piece: bytes) -> tuple[int, int, int]:
        nonlocal end
        body.append(piece)
        end += len(piece)
        return end - len(piece), len(piece), zlib.crc32(piece)

    def slots(columns: Columns) -> bytes:
        alive = bin(columns.alive)[:1:-1].ljust(len(keys := columns.keys_by_slot()), "0")
        return array(
            "I", [places[key] if bit == "1" else _GONE for key, bit in zip(keys, alive, strict=False)]
        ).tobytes()

    places = {id: place for place, id in enumerate(ids)}
    order, labels = _ordered(known, ids, places)
    checksums = [*map(_checksum, ids)]
    by_checksum = sorted(range(len(ids)), key=checksums.__getitem__)
    topics = [(scope, topic, list(own)) for (scope, topic), own in known.registers().items() if own]
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    together = array("I")
    for kind, values in labels.items():
        for value, found in values.items():
            spans.setdefault(kind, {})[value] = len(together), len(together) + len(found)
            together += found
    head = {
        "active": len(known.active),
        "lines": known.lines,
        "raw": known.raw,
        "malformed": known.malformed,
        "problems": known.problems,
        "writer": _WRITER,
        "size": len(data),
        "digest": sha256(data).hexdigest(),
        "known": [*(put(json.dumps(value).encode()) for value in (ids, topics, spans)), put(together.tobytes())],
        "order": put(order.tobytes()),
        "checksums": put(array("I", map(checksums.__getitem__, by_checksum)).tobytes()),
        "by_checksum": put(array("I", by_checksum).tobytes()),
        "starts": put(array("Q", [starts[number - 1] for number in numbers]).tobytes()),
        "numbers": put(array("I", numbers).tobytes()),
        "said": put(b"".join(_all_said(known, active))),
        "rules": rules,
        "scopes": {
            scope: [
                {
                    "slots": put(slots(columns)),
                    "alive": put(_bytes(columns.alive)),
                    "columns": [(number, *put(_bytes(column))) for number, column in columns.content()],
                }
                for columns in shelves.columns
            ]
            for scope, shelves in scopes.items()
        },
    }
    raw = json.dumps(head).encode()
    state.replace(path, b"".join((_START.pack(_MAGIC, len(raw), zlib.crc32(raw)), raw, *body)))


def _ordered(known: Known, ids: Sequence[str], places: Mapping[str, int]) -> tuple[array[int], Labels]:
    """The active records by date, the newest first, and by what they have. Those that are kept are not parsed."""
    order, labels = array("I"), Labels()
    if known.kept:
        now = [None if id in known.touched else places[id] for id in known.kept.ids()]
        order.extend(new for place in known.kept.order if (new := now[place]) is not None)
        for kind, values in known.kept.labels().items():
            for value, old in values.items():
                if found := array("I", (new for place in old if (new := now[place]) is not None)):
                    labels.setdefault(kind, {})[value] = found
    added: dict[int, Record | Fresh] = (
        {places[id]: known.active[id] for id in known.touched if id in known.active}
        if known.kept
        else dict(enumerate(known.active.rows()))
    )
    for kind in _OF_ALL:
        own, by_value = list(map(attrgetter(kind), added.values())), labels.setdefault(kind, {})
        for name in dict.fromkeys(own):
            by_value.setdefault(name, array("I"))
        if len({*own}) == 1:
            by_value[own[0]].extend(added)
        else:
            for place, name in zip(added, own, strict=True):
                by_value[name].append(place)
    for place, record in added.items():
        if record.tags or record.topic_id:
            for kind, value in _of_some(record):
                labels.setdefault(kind, {}).setdefault(value, array("I")).append(place)
    if not order:
        keys = {place: newest_first(record) for place, record in added.items()}
        return array("I", sorted(keys, key=keys.__getitem__)), labels
    for place, record in added.items():
        order.insert(
            bisect_left(order, newest_first(record), key=lambda at: newest_first(known.active[ids[at]])), place
        )
    return order, labels


def _checksum(id: str) -> int:
    return zlib.crc32(id.encode(errors="surrogatepass"))


def _bytes(column: int) -> bytes:
    return column.to_bytes(column.bit_length() // 8 + 1, "little")


def _array(kind: str, data: bytes) -> array[int]:
    found = array(kind)
    found.frombytes(data)
    return found
