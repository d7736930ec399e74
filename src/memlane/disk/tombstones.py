"""Deleted stays deleted: what a bank remembers of a deletion, `tombstones.jsonl` in the bank's folder.

    {"key":"9f…"}                                                   a random key; a merge may bring several
    {"hash":"5c…","id":"1a…","deleted":"2025-01-10T14:30:22Z","n":1}
    {"hash":"5c…","kept":"2025-01-11T09:00:00Z","n":1}              somebody wanted it back

`hash` is the keyed hash of the memory's text, `id` that of its id; neither text nor id is in the file. A deletion of
round `n` counts until that round is kept, so that the lines mean the same in any order: git unites the lines of two
branches. Lines are only appended, by files.append_lines; the file appears with the first deletion.

Automatic ways in (capture, import) ask `deleted`: by the text alone. A file that comes back by other ways (git, cp, an
editor) is asked for by `held`: by the text and the id. Does not delete anything itself.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from memlane.core.dates import iso, utc_now
from memlane.core.errors import StorageError
from memlane.core.model import Memory, Problem
from memlane.disk import files, log
from memlane.disk.names import refuse_link

FILE = "tombstones.jsonl"
_KEY = re.compile(rb'\{"key":"((?:[0-9a-f]{2}){16,64})"\}')
_STONE = re.compile(
    rb'\{"hash":"([0-9a-f]{32})",(?:"id":"([0-9a-f]{16})","deleted"|"kept"):"([^"\\]{10,40})","n":(\d{1,9})\}'
)
_HASH, _ID = slice(9, 41), slice(49, 65)  # where they stand in a line


def plain(text: str) -> str:
    """What of a text counts: in NFC, every run of white space one space. Case counts."""
    words = " ".join(text.split())
    return words if words.isascii() else unicodedata.normalize("NFC", words)


class Tombstones:
    """The deletions of one bank. Without a path there are none, and none are written: a lane by itself has no bank."""

    def __init__(self, path: str | Path | None = None, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.path = None if path is None else os.path.abspath(path)
        self.clock = clock
        self._at = log.Position()
        self._clear()

    def _clear(self) -> None:
        self._pending = b""  # a last line that does not end yet
        self._keys: list[bytes] = []
        self._lines: list[bytes] = []  # only those that are asked for are parsed: there may be 100,000
        self._hashes: set[bytes] = set()
        self._ids: set[bytes] = set()

    def any(self) -> bool:
        """Whether anything was ever deleted here, as far as it can be told."""
        with suppress(StorageError):
            self._read()
        return bool(self._keys)

    # -- asking

    def deleted(self, text: str) -> str | None:
        """The day on which this text was deleted; None when it was not, or when somebody wanted it back since."""
        return _day([stone for hash in self._of_text(text) for stone in self._standing(hash)])

    def held(self, memory: Memory) -> str | None:
        """The day on which this very memory, its id and its text, was deleted; None nearly always.

        None, too, where the file cannot be read: `problems` says so, and no other memory is hidden for it.
        """
        try:
            asked = self._of_id(memory.id)
        except StorageError:
            return None
        ids = self._ids.intersection(asked)
        if not ids:
            return None
        stones = [stone for hash in self._of_text(memory.text) for stone in self._standing(hash) if stone.id in ids]
        return _day(stones)

    def knows(self, id: str) -> bool:
        """Whether a memory of this id was deleted and not kept since."""
        asked = self._of_id(id)
        ids = self._ids.intersection(asked)
        hashes = {line[_HASH] for line in self._lines if line[_ID] in ids} if ids else set()
        return any(stone.id in ids for hash in hashes for stone in self._standing(hash))

    def was(self, id: str, text: str) -> bool:
        """Whether a memory of this id said this when it was deleted, and nobody has wanted it back since."""
        ids = set(self._of_id(id))
        return any(stone.id in ids for hash in self._of_text(text) for stone in self._standing(hash))

    def problems(self) -> Iterator[Problem]:
        """Why the file cannot be read, or the first line that cannot be, perhaps of a merge; the others count."""
        try:
            self._read()
        except StorageError as error:
            yield Problem(Path(self.path or ""), str(error).removeprefix(f"{FILE} ").rstrip("."))
            return
        for line in self._lines:
            if line.strip() and _STONE.fullmatch(line) is None and _KEY.fullmatch(line) is None:
                number = self._lines.index(line) + 1
                why = "has a line that is no tombstone, perhaps of a merge; delete the line"
                yield Problem(Path(self.path or ""), why, number)
                return

    # -- writing

    def bury(self, *memories: tuple[str, str]) -> None:
        """Remember that these were deleted, (id, text) each. Makes the file, with a random key, or appends to it.

        A text that says nothing, or that was deleted as this memory already, adds no line. Raises StorageError.
        """
        if self.path is None or not any(plain(text) for _, text in memories):
            return
        try:
            self._bury(self.path, memories)
        except StorageError as error:
            raise StorageError(
                f"It is deleted, but capture or import may bring it back: {error}", hint=error.hint, code=error.code
            ) from error

    def _bury(self, path: str, memories: Sequence[tuple[str, str]]) -> None:
        self._read()
        if not self._keys:
            key = os.urandom(32)
            files.append_lines(path, b'{"key":"%s"}\n' % key.hex().encode())
            self._read()
        data = b""
        for id, text in dict.fromkeys((id, plain(text)) for id, text in memories):
            mark = self._of_id(id)[0]
            standing = [stone for hash in self._of_text(text) for stone in self._standing(hash)]
            if text and mark not in (stone.id for stone in standing):
                hash = self._of_text(text)[0]
                data += b'{"hash":"%s","id":"%s","deleted":"%s","n":%d}\n' % (
                    hash, mark, self._now(), self._kept(hash) + 1,
                )  # fmt: skip
        if data:
            files.append_lines(path, data)

    def lift(self, text: str) -> tuple[str, ...]:
        """Let a text count as wanted again; what a person should hear of it: () when it was not deleted.

        A file that cannot be read hides nothing, so that it is only told of. Raises StorageError when the deletion
        stands and cannot be lifted: what is stored now would be held back.
        """
        try:
            found = [stone for hash in self._of_text(text) for stone in self._standing(hash)]
        except StorageError as error:
            return (f"whether it was deleted before is not known: {error}",)
        if not found or self.path is None:
            return ()
        rounds: dict[bytes, int] = {}
        for stone in found:
            rounds[stone.hash] = max(stone.number, rounds.get(stone.hash, 0))
        lines = (b'{"hash":"%s","kept":"%s","n":%d}\n' % (hash, self._now(), number) for hash, number in rounds.items())
        try:
            files.append_lines(self.path, b"".join(lines))
        except StorageError as error:
            raise StorageError(
                f"This text was deleted before and still counts as deleted, so that it is held back: {error}",
                hint=f"{error.hint or ''} Then `memlane restore ID` keeps it.".strip(),
                code=error.code,
            ) from error
        return (f"deleted before, on {_day(found)}; kept because you added it on purpose",)

    def _now(self) -> bytes:
        return (iso(self.clock().replace(microsecond=0)) or "").encode()

    # -- the file

    def _standing(self, hash: bytes) -> list[_Stone]:
        """The deletions of a text that count."""
        if hash not in self._hashes:
            return []
        stones = self._parsed(hash)
        kept = max((stone.number for stone in stones if not stone.id), default=0)
        return [stone for stone in stones if stone.number > kept]

    def _kept(self, hash: bytes) -> int:
        return max((stone.number for stone in self._parsed(hash) if not stone.id), default=0)

    def _parsed(self, hash: bytes) -> list[_Stone]:
        matches = (_STONE.fullmatch(line) for line in self._lines if line[_HASH] == hash)
        return [_Stone(found[1], found[2] or b"", found[3], int(found[4])) for found in matches if found]

    def _of_text(self, text: str) -> list[bytes]:
        """A text's hash under each key, the first of which is written; [] for a text that says nothing."""
        self._read()
        said = plain(text) if self._keys else ""
        return [_hashed(key, said, 16) for key in self._keys] if said else []

    def _of_id(self, id: str) -> list[bytes]:
        self._read()
        return [_hashed(key, f"id {id}", 8) for key in self._keys]

    def _read(self) -> None:
        """Take in what was appended since the last call."""
        if self.path is None:
            return
        refuse_link(self.path, os.path.dirname(self.path))
        try:
            data, anew = log.read_new(self.path, self._at)
        except OSError as error:
            why = files.unreadable(self.path, error).why
            hint = "Mend the file: it says what was deleted here."
            raise StorageError(f"{FILE} cannot be read: {why}.", hint=hint) from error
        if anew:
            self._clear()
        if data:
            data = self._pending + data
            *lines, self._pending = (data.replace(b"\r\n", b"\n") if b"\r" in data else data).split(b"\n")
            self._lines += lines
            self._hashes.update([line[_HASH] for line in lines])
            self._ids.update([line[_ID] for line in lines])
            found = (bytes.fromhex(key.decode()) for key in _KEY.findall(data))
            self._keys = list(dict.fromkeys((*self._keys, *found)))


class _Stone(NamedTuple):
    """A line. `id` is empty where the text was kept."""

    hash: bytes
    id: bytes
    when: bytes
    number: int


def _day(stones: Sequence[_Stone]) -> str | None:
    return max(stone.when for stone in stones)[:10].decode() if stones else None


def _hashed(key: bytes, said: str, size: int) -> bytes:
    from hashlib import blake2b

    return blake2b(said.encode(errors="replace"), key=key, digest_size=size).hexdigest().encode()
