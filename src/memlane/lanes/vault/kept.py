"""What is known of the beginning of a vault's file, kept in the user's state folder: a long vault opens at once.

    8 bytes   "mlvault1"
    12        how long the head is, and its CRC-32
    head      JSON: which bytes of the vault this is about, by their SHA-256; the ids; the damage; where what follows is
    arrays    where the line of each record starts, and its number
    columns   of `memlane.gate.lookalikes`, by scope

It has no text of a memory, but what is in it comes from texts: `memlane.index.facts.remove` deletes it. Files are the
truth. It is used where a vault begins with the very same bytes, each piece has its checksum, and without it, or with a
damaged one, the answers are the same and take longer.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

from memlane.core.values import dataclass
from memlane.disk import state
from memlane.disk.log import split_lines
from memlane.gate.lookalikes import Base, Columns, Shelves, Slots
from memlane.lanes.vault.log import Damaged, Rules
from memlane.lanes.vault.record import Record, read_line

_START = struct.Struct(">8sQI")
_MAGIC = b"mlvault1"
# Which characters are letters, and which letters are one but for their case, is a matter of Python's version.
_WRITER = f"{sys.version_info.major}.{sys.version_info.minor} {sys.byteorder}"

_ODD = ("\u0130".encode(), "\u212a".encode())
_GONE = 0xFFFFFFFF  # instead of the place of a text that was removed


@dataclass(slots=True)
class Kept:
    """The beginning of a vault's file, `size` bytes of `data`. Lines are parsed when they are asked for."""

    head: dict[str, Any]
    data: bytes
    places: dict[str, int]  # of all ids, the active ones first, in their order
    starts: Sequence[int]
    numbers: Sequence[int]
    file: state.Opened
    body: int

    def record(self, place: int) -> Record:
        start = self.starts[place]
        record = read_line(split_lines(self.data[start : self.data.find(b"\n", start)])[0])
        if not isinstance(record, Record):
            raise Damaged
        return record

    def having(self, words: Collection[str]) -> set[int] | None:
        """The places of all records that may have one of these words, in small letters; None when all may.

        Lines are looked through as they are: what JSON writes in another way may be any word, and so may the two
        letters outside ASCII that have one of ASCII as their small letter.
        """
        if not all(word.isascii() for word in words):
            return None
        data = self.data[: self.head["size"]].lower()
        places = {start: place for place, start in enumerate(self.starts)}
        found = set()
        for needle in (*(word.encode() for word in words), b"\\u", *_ODD):
            at = data.find(needle)
            while at >= 0:
                start = data.rfind(b"\n", 0, at) + 1
                if (place := places.get(start)) is not None:
                    found.add(place)
                at = data.find(needle, data.find(b"\n", at))
        return found

    def base(self, scope: str, rules: Rules) -> Base | None:
        """The columns of a scope's texts; None when they are of no use. Finding may raise Damaged."""
        if self.head["rules"] != list(rules):
            return None
        ids = list(self.places)
        shelves = Shelves(*rules)
        for columns, kept in zip(shelves.columns, self.head["scopes"].get(scope, ()), strict=False):
            at = {number: place for number, *place in kept["columns"]}

            def load(number: int, at: Mapping[int, Sequence[int]] = at) -> int:
                return int.from_bytes(self.piece(at[number]), "little")

            places = _array("I", self.piece(kept["slots"]))
            alive = int.from_bytes(self.piece(kept["alive"]), "little")
            columns.take(_Slots(ids, self.places, places), load, at.keys(), alive)
        return Base(shelves, self.places, lambda key: self.record(self.places[key]).text)

    def piece(self, place: Sequence[int]) -> bytes:
        at, size, checksum = place
        data = self.file.read(self.body + at, size)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise Damaged
        return data


class _Slots(Slots):
    """Slots that were kept: the place of the id of each."""

    def __init__(self, ids: Sequence[str], places: Mapping[str, int], of_slots: Sequence[int]) -> None:
        self._ids, self._places, self._of_slots = ids, places, of_slots
        self._slot_of: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._of_slots)

    def key(self, slot: int) -> str:
        place = self._of_slots[slot]
        return "" if place == _GONE else self._ids[place]

    def slot(self, key: str) -> int | None:
        if (wanted := self._places.get(key)) is None:
            return None
        if self._slot_of is None:
            self._slot_of = {place: slot for slot, place in enumerate(self._of_slots) if place != _GONE}
        return self._slot_of.get(wanted)


def load(path: str, data: bytes) -> Kept | None:
    """What is kept about the beginning of this content; None when there is nothing that can be used."""
    try:
        file = state.Opened(path)
        magic, size, checksum = _START.unpack(file.read(0, _START.size))
        raw = file.read(_START.size, size) if magic == _MAGIC and size < 1 << 32 else b""
        if zlib.crc32(raw) != checksum:
            return None
        head = json.loads(raw)
        about = memoryview(data)[: head["size"]]
        if head["writer"] != _WRITER or len(about) != head["size"] or sha256(about).hexdigest() != head["digest"]:
            return None
        ids = head.pop("ids")
        places = dict(zip(ids, range(len(ids)), strict=True))
        kept = Kept(head, data, places, (), (), file, _START.size + size)
        kept.starts, kept.numbers = _array("Q", kept.piece(head["starts"])), _array("I", kept.piece(head["numbers"]))
    except (OSError, ValueError, LookupError, TypeError, struct.error, Damaged):
        return None
    return kept


def write(
    path: str, data: bytes, head: dict[str, Any], numbers: Sequence[int], scopes: Mapping[str, Shelves], rules: Rules
) -> None:
    """Keep what is known of this content, all of it whole lines. Raises OSError, StorageError.

    `head` has `ids`, and what its reader wants back; `numbers` are the lines of the records with these ids.
    """
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
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

    places = {id: place for place, id in enumerate(head["ids"])}
    head = {
        **head,
        "writer": _WRITER,
        "size": len(data),
        "digest": sha256(data).hexdigest(),
        "starts": put(array("Q", [starts[number - 1] for number in numbers]).tobytes()),
        "numbers": put(array("I", numbers).tobytes()),
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


def _bytes(column: int) -> bytes:
    return column.to_bytes(column.bit_length() // 8 + 1, "little")


def _array(kind: str, data: bytes) -> array[int]:
    found = array(kind)
    found.frombytes(data)
    return found
