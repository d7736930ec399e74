"""Deleted stays deleted: `tombstones.jsonl` in the bank's folder remembers every deletion.

    {"key":"9f…"}                                                   a random key; a merge may bring several
    {"hash":"5c…","id":"1a…","deleted":"2025-01-10T14:30:22Z","n":1}
    {"hash":"5c…","kept":"2025-01-11T09:00:00Z","n":1}              somebody wanted it back

`hash` is the keyed hash of the memory's text, `id` that of its id; neither text nor id is in the file. A deletion of
round `n` stands until that round is kept. So the lines mean the same in any order, and git can unite the lines of two
branches. Lines are only appended, by files.append_lines; the first deletion makes the file.

Capture and import ask `deleted`, which looks at the text alone. A file that comes back another way (git, cp, an editor)
is checked with `held`, which looks at text and id. This module deletes nothing itself.

What `forget` removes leaves no hash here, for whoever has the file could test guesses: see `memlane.disk.forgotten`,
which this module asks as well.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from memlane.core.dates import iso, utc_now
from memlane.core.errors import InvalidInput, StorageError
from memlane.core.model import Memory, Problem
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.disk import files, log
from memlane.disk.forgotten import ForgottenTexts, Gone
from memlane.disk.names import refuse_link

FILE = "tombstones.jsonl"
_KEY = lazily(rb'\{"key":"((?:[0-9a-f]{2}){16,64})"\}')
_STONE = lazily(
    rb'\{"hash":"([0-9a-f]{32})",(?:"id":"([0-9a-f]{16})","deleted"|"kept"):"([^"\\]{10,40})","n":(\d{1,9})\}'
)
_HASH, _ID = slice(9, 41), slice(49, 65)  # their places in a line


def plain(text: str) -> str:
    """The text as it is compared: in NFC, every run of white space one space. Case matters."""
    words = " ".join(text.split())
    return words if words.isascii() else unicodedata.normalize("NFC", words)


class Tombstones:
    """The deletions of one bank. Without a path (a lane without a bank) there are none, and none are written."""

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        private: ForgottenTexts | None = None,
    ) -> None:
        self.path = None if path is None else os.path.abspath(path)
        self.private = private or ForgottenTexts()
        self.clock = clock
        self._at = log.Position()
        self._clear()

    def _clear(self) -> None:
        self._pending = b""  # a last line without a line end
        self._keys: list[bytes] = []
        self._lines: list[bytes] = []  # parsed only when needed: there may be 100,000
        self._hashes: set[bytes] = set()
        self._ids: set[bytes] = set()

    def any(self) -> bool:
        """Whether anything was ever deleted here; False when the file cannot be read."""
        with suppress(StorageError):
            self._read()
        if self._keys:
            return True
        with suppress(StorageError):
            return self.private.any()
        return False

    def state(self) -> tuple[tuple[int, ...], ...]:
        """What is another one when something was deleted or forgotten since, or somebody wanted it back."""
        private = self.private.path and (self.private.path, self.private.others_path)
        return tuple(map(_stamp, (self.path, *(private or ()))))

    # -- asking

    def deleted(self, text: str) -> str | None:
        """The day on which this text was deleted, or one like it forgotten; None when somebody wanted it back since."""
        return self.forgotten(text) or _day(self._standing(text))

    def forgotten(self, text: str, id: str = "", title: str = "") -> str | None:
        """The day on which something was forgotten that this text, or a memory of this id, would bring back."""
        with suppress(StorageError):  # `problems` says so, and nothing is hidden because of it
            return self.private.day(text, id, title)
        return None

    def held(self, memory: Memory) -> str | None:
        """The day on which this very memory, its id with its text, was deleted, or one like it forgotten.

        None nearly always, and when the file cannot be read: `problems` says so, and nothing is hidden because of it.
        """
        if day := self.forgotten(memory.text, memory.id, memory.title):
            return day
        try:
            ids = self._known_ids(memory.id)
        except StorageError:
            return None
        return _day([stone for stone in self._standing(memory.text) if stone.id in ids]) if ids else None

    def why(self, memory: Memory, id: str) -> str | None:
        """Why a memory is held back, and the two commands that decide; None nearly always. `id` is as it is shown."""
        if day := self.forgotten(memory.text, memory.id, memory.title):
            return (
                f"{id} says what was forgotten on {day}; it is held back: `memlane restore {id}` keeps it, "
                f"`memlane forget {id}` removes it again"
            )
        if day := self.held(memory):
            return (
                f"{id} was deleted on {day} and came back unchanged; it is held back: `memlane restore {id}` keeps it, "
                f"`memlane rm {id}` deletes it again"
            )
        return None

    def refuse_forgotten(self, memory: Memory, id: str) -> None:
        """Raise InvalidInput where a memory is held back because something like it was forgotten: who adds to it, or
        changes what is not its text, does not say that the text is wanted again. `id` is as it is shown.
        """
        if day := self.forgotten(memory.text, memory.id, memory.title):
            raise InvalidInput(
                f"{id} says what was forgotten on {day}, and is held back: nothing was written.",
                hint=f"`memlane restore {id}` keeps it, `memlane forget {id}` removes it again.",
                code="held_back",
            )

    def knows(self, id: str, text: str = "") -> bool:
        """Whether a memory of this id was deleted or forgotten and not kept since. It has, or had, this text."""
        with suppress(StorageError):
            if self.private.knows(id):
                return True
        ids = self._known_ids(id)
        hashes = {line[_HASH] for line in self._lines if line[_ID] in ids} if ids else set()
        if text and hashes and not self._standing(text):
            hashes -= {*self._hashes_of_text(text)}
        return any(stone.id in ids for hash in hashes for stone in self._standing_of(hash))

    def may_hold(self, id: str) -> bool:
        """A quick look at the id alone: whether anything of this id was ever deleted. Forgotten texts have no say."""
        with suppress(StorageError):
            return bool(self._known_ids(id))
        return False

    def was(self, id: str, text: str) -> bool:
        """Whether a memory of this id had this text when it was deleted, and nobody has wanted it back since."""
        with suppress(StorageError):
            if self.private.was(id, text):
                return True
        ids = set(self._hashes_of_id(id))
        return any(stone.id in ids for stone in self._standing(text))

    def wanted(self, text: str) -> bool:
        """Whether a text was deleted and somebody wanted it back, and has it still."""
        with suppress(StorageError):
            hashes = self._hashes_of_text(text)
            stones = [stone for hash in hashes if hash in self._hashes for stone in self._parsed(hash)]
            return _last_kept(stones) > 0 and not self._standing_of(*hashes)
        return False

    def problems(self) -> Iterator[Problem]:
        """Why the file cannot be read, or its first line that is not a tombstone; the other lines still count."""
        yield from self.private.problems()
        try:
            self._read()
        except StorageError as error:
            yield Problem(Path(self.path or ""), str(error).removeprefix(f"{FILE} ").rstrip("."))
            return
        for number, line in enumerate(self._lines, 1):
            if line.strip() and _STONE.fullmatch(line) is None and _KEY.fullmatch(line) is None:
                why = "has a line that is no tombstone, perhaps of a merge; delete the line"
                yield Problem(Path(self.path or ""), why, number)
                return

    # -- writing

    def bury(self, *memories: tuple[str, str]) -> None:
        """Remember that these were deleted, (id, text) each. Appends to the file; makes it, with a random key.

        An empty text, and a deletion that is already remembered, add no line. Raises StorageError.
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
            hashed_id = self._hashes_of_id(id)[0]
            if text and all(stone.id != hashed_id for stone in self._standing(text)):
                hash, *_ = hashes = self._hashes_of_text(text)
                facts = (
                    hash,
                    hashed_id,
                    self._now(),
                    _last_kept([stone for each in hashes for stone in self._parsed(each)]) + 1,
                )
                data += b'{"hash":"%s","id":"%s","deleted":"%s","n":%d}\n' % facts
        if data:
            files.append_lines(path, data)

    # -- whose a line is

    def is_deletion(self, line: bytes) -> bool:
        """Whether a line of the file says that something was deleted."""
        match = _STONE.fullmatch(line)
        return match is not None and match[2] is not None

    def text_in(self, line: bytes) -> bytes:
        """What stands in a line in the place of a text."""
        return line[_HASH]

    def subjects(self, lines: Iterable[bytes], ids: Iterable[str]) -> dict[bytes, tuple[bytes, str]]:
        """Those of these lines that are about one of these memories: the line of the key of its hash, and its id."""
        self._read()
        wanted: dict[bytes, list[bytes]] = {}
        for line in lines:
            wanted.setdefault(line[_ID], []).append(line)
        found = (
            (line, key, id) for id in ids for key in self._keys for line in wanted.get(_hashed(key, f"id {id}", 8), ())
        )
        return {line: (b'{"key":"%s"}' % key.hex().encode(), id) for line, key, id in found}

    def lines_about(self, id: str, texts: Iterable[str]) -> set[bytes]:
        """What stands in the lines about a memory in the place of its texts and its id."""
        return {*self._hashes_of_id(id), *(hash for text in texts for hash in self._hashes_of_text(text))}

    def forget(self, gone: Sequence[Gone], others: Iterable[Memory]) -> None:
        """Remember, in the user's state folder alone, what is removed for good: see ForgottenTexts.remember.

        Raises StorageError.
        """
        self.private.remember(gone, others)
        self.drop(gone)

    def drop(self, gone: Sequence[Gone]) -> None:
        """Take out the lines about what was forgotten: who has the file could test guesses with them."""
        for memory in gone:
            self._read()
            hashes = {hash for text in memory.texts for hash in self._hashes_of_text(text)}
            ids = {*self._hashes_of_id(memory.id)}
            hashes |= {line[_HASH] for line in self._lines if line[_ID] in ids}
            lines = {line for line in self._lines if line[_HASH] in hashes} if hashes & self._hashes else set()
            self._drop(lines, memory.scope)

    def drop_again(self) -> None:
        """Take out the lines that others did, with whom the bank is shared: they know what these are about."""
        self._read()
        self._drop({line for line in self._lines if self.private.was_dropped(line)})

    def _drop(self, lines: set[bytes], scope: str = "") -> None:
        if self.path is None or not lines:
            return
        self.private.note_dropped(sorted(lines), scope)

        def without(data: bytes) -> tuple[bytes, bytes]:
            return b"".join(line for line in data.splitlines(True) if line.rstrip(b"\r\n") not in lines), b""

        log.rewrite(self.path, without, lambda _: True)

    def keep(self, memory: Memory) -> tuple[str, ...]:
        """Record that a memory that is held back is wanted, now and when it is edited; return remarks for the user."""
        day = self.private.keep(memory.text, memory.id, memory.title)
        said = (f"like what was forgotten on {day}; kept because you wanted it",) if day else ()
        return (*said, *self.lift(memory.text, forgotten=False))

    def lift(self, text: str, id: str = "", title: str = "", *, forgotten: bool = True) -> tuple[str, ...]:
        """Record that a text is wanted again; return remarks for the user, () when it was not deleted.

        With `forgotten`, also when one like it was forgotten: it was written on purpose, not brought back. With the
        memory's id, it stays wanted when more is written into it, or merged; its title may say it as well.

        A file that cannot be read hides nothing, so that is only a remark. Raises StorageError when the text counts
        as deleted and that cannot be changed: it would be held back although it is stored.
        """
        try:
            day = self.private.keep(text, id, title) if forgotten else None
            said = (f"like what was forgotten on {day}; kept because you added it on purpose",) if day else ()
            stones = self._standing(text)
        except StorageError as error:
            return (f"whether it was deleted before is not known: {error}",)
        if not stones or self.path is None:
            return said
        rounds: dict[bytes, int] = {}
        for stone in stones:
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
        return (*said, f"deleted before, on {_day(stones)}; kept because you added it on purpose")

    def _now(self) -> bytes:
        return (iso(self.clock().replace(microsecond=0)) or "").encode()

    # -- the file

    def _standing(self, text: str) -> list[_Stone]:
        """The deletions of a text that still count."""
        return self._standing_of(*self._hashes_of_text(text))

    def _standing_of(self, *hashes: bytes) -> list[_Stone]:
        """Those of a text with these hashes. Members who did not know of each other deleted it under several keys:
        whoever wants it back under one of them means all.
        """
        stones = [stone for hash in hashes if hash in self._hashes for stone in self._parsed(hash)]
        kept = _last_kept(stones)
        return [stone for stone in stones if stone.number > kept]

    def _parsed(self, hash: bytes) -> list[_Stone]:
        matches = (_STONE.fullmatch(line) for line in self._lines if line[_HASH] == hash)
        return [_Stone(match[1], match[2] or b"", match[3], int(match[4])) for match in matches if match]

    def _hashes_of_text(self, text: str) -> list[bytes]:
        """A text's hash under each key; new lines use the first. [] for an empty text."""
        self._read()
        compared = plain(text) if self._keys else ""
        return [_hashed(key, compared, 16) for key in self._keys] if compared else []

    def _hashes_of_id(self, id: str) -> list[bytes]:
        self._read()
        return [_hashed(key, f"id {id}", 8) for key in self._keys]

    def _known_ids(self, id: str) -> set[bytes]:
        hashes = self._hashes_of_id(id)  # before _ids is looked at: this reads the file
        return self._ids.intersection(hashes)

    def _read(self) -> None:
        """Read what was appended since the last call. Raises StorageError."""
        if self.path is None:
            return
        refuse_link(self.path, os.path.dirname(self.path))
        try:
            data, replaced = log.read_new(self.path, self._at)
        except OSError as error:
            why = files.unreadable(self.path, error).why
            hint = "Mend the file: it says what was deleted here."
            raise StorageError(f"{FILE} cannot be read: {why}.", hint=hint) from error
        if replaced:
            self._clear()
        if data:
            data = self._pending + data
            *lines, self._pending = (data.replace(b"\r\n", b"\n") if b"\r" in data else data).split(b"\n")
            self._lines += lines
            self._hashes.update([line[_HASH] for line in lines])
            self._ids.update([line[_ID] for line in lines])
            keys = (bytes.fromhex(key.decode()) for key in _KEY.findall(data))
            self._keys = list(dict.fromkeys((*self._keys, *keys)))


class _Stone(NamedTuple):
    """A line of the file. `id` is empty where the text was kept."""

    hash: bytes
    id: bytes
    when: bytes
    number: int


def _stamp(path: str | None) -> tuple[int, ...]:
    try:
        info = os.stat(path or "")
    except OSError:
        return ()
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino


def _last_kept(stones: Sequence[_Stone]) -> int:
    return max((stone.number for stone in stones if not stone.id), default=0)


def _day(stones: Sequence[_Stone]) -> str | None:
    return max(stone.when for stone in stones)[:10].decode() if stones else None


def _hashed(key: bytes, text: str, size: int) -> bytes:
    from memlane.core.digests import blake2b

    return blake2b(text.encode(errors="replace"), key=key, digest_size=size).hexdigest().encode()
