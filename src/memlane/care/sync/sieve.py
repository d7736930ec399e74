"""What of a file may be written here, and what may be sent: without what the gate refuses, and without what was
forgotten.

Of a file with many memories only those are taken out that must not pass; any other file passes as a whole or not at
all. A reason names the kind of thing that was found and never the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.care import forget_journal
from memlane.care.sync.local import lines_of
from memlane.care.sync.travel import LINES, Place
from memlane.core.alternatives import without
from memlane.core.errors import MemlaneError
from memlane.core.front_matter import find_front
from memlane.core.invisible import visible
from memlane.core.markdown import heads
from memlane.core.model import Memory
from memlane.core.text import strings_in
from memlane.disk import tombstones
from memlane.disk.forgotten import says_something
from memlane.disk.forgotten_lines import compared
from memlane.history.journaled import Reader, own_name
from memlane.lanes import scan

if TYPE_CHECKING:
    from memlane.bank import Bank

LOOKS_LIKE = "looks like it contains a secret or personal data"
_ELSEWHERE = "holds memories that name another scope, which stay here: only notes go to a scope of their own"
_NAMED = 5  # reasons of one file
_FINGERPRINTS = 20  # of one sync: each takes a twentieth of a second, on purpose


class Sieve:
    """How a bank's gate judges contents. To be closed."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._guard = bank.guard
        self._reader = Reader(bank)
        self._fingerprints: dict[tuple[str, str], str] = {}

    def close(self) -> None:
        self._reader.close()

    @property
    def rules(self) -> str:
        """What is another one when the gate may judge otherwise."""
        from memlane import __version__

        return f"{__version__} {self._guard}"

    def admitted(self, place: Place, data: bytes) -> tuple[bytes | None, tuple[str, ...]]:
        """What of a content from elsewhere may be written here, None for nothing, and why the rest may not."""
        return self._passing(place, data, marks=False)

    def sendable(
        self, place: Place, data: bytes, foreign: Collection[str] = ()
    ) -> tuple[bytes | None, tuple[str, ...]]:
        """What of a content of ours may be sent. What a person has marked as allowed in the file may; what names one of
        these scopes, in a file with many memories, may not.
        """
        clean, reasons = self._passing(place, data, marks=True)
        if clean is None or not foreign or not place.lane or not self._bank.lane(place.lane).answers.shares_files:
            return clean, reasons
        left = self._without(place, clean, lambda memory: memory.scope in foreign)
        return left or None, reasons if left == clean else (*reasons, _ELSEWHERE)

    def _passing(self, place: Place, data: bytes, *, marks: bool) -> tuple[bytes | None, tuple[str, ...]]:
        if len(data) > place.most:
            return None, (f"has {len(data):,} bytes; {place.most:,} are read",)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None, ("is not UTF-8 text",)
        if "\0" in text:
            return None, ("has NUL characters",)
        why = self._why(text, place, marks=marks)
        if not why:
            return data, ()
        if place.is_log:
            return self._without_lines(place, data, marks=marks)
        left: bytes | None = None
        if place.shares_files:
            left = self._without(place, data, lambda memory: bool(self._why(_all_of(memory), place, marks=marks)))
        clean = left is not None and not self._why(left.decode(), place, marks=marks)
        return (left if clean else None), why

    def _without_lines(self, place: Place, data: bytes, *, marks: bool) -> tuple[bytes | None, tuple[str, ...]]:
        kept: list[bytes] = []
        reasons: dict[str, None] = {}
        for line in lines_of(data):
            why = self._why(line.decode(), place, marks=marks)
            reasons |= dict.fromkeys(why)
            if not why:
                kept.append(line + b"\n")
        return b"".join(kept) or None, tuple(reasons)[:_NAMED]

    def _why(self, text: str, place: Place, *, marks: bool) -> tuple[str, ...]:
        """What the gate has against a text; () nearly always."""
        guard = self._guard
        found: dict[str, None] = {}
        if guard.characters == "refuse" and visible(text) != text:
            found["has invisible or control characters"] = None
        if guard.secrets != "off":
            from memlane.gate import secrets

            for piece in (visible(text), *_unescaped(text, place)):
                options = {"email": guard.email, "phone": guard.phone, "allow": guard.allow, "marks": marks}
                for finding in secrets.scan(piece, **options):  # type: ignore[arg-type]
                    if len(found) < _NAMED:
                        name = self._fingerprint(finding.rule, piece[finding.start : finding.end])
                        found[f"{LOOKS_LIKE} ({', '.join(filter(None, (finding.description, name)))})"] = None
        return tuple(found)

    def _fingerprint(self, rule: str, value: str) -> str:
        """The name under which a person can allow what was found: what is not here, nothing else could name.

        "" after so many: those that are left get theirs when the gate has changed, and judges again.
        """
        from memlane.gate.fingerprints import fingerprint

        if (rule, value) not in self._fingerprints and len(self._fingerprints) < _FINGERPRINTS:
            self._fingerprints[rule, value] = fingerprint(rule, value, self._guard.salt)
        return self._fingerprints.get((rule, value), "")

    # -- what was forgotten

    def remembered(self, place: Place, data: bytes | None, *, cut: bool = True) -> bytes | None:
        """A content without the memories that somebody has forgotten, or lines about them; None when nothing is left.

        Of another memory that repeats one, in a file of its own, the lines go that were forgotten, and the rest stays.
        Without `cut` it goes as a whole: whoever wrote it here, knowing what was forgotten, decides.
        """
        private = self._bank.tombstones.private
        if data is not None and place.path == tombstones.FILE:
            lines = [line for line in lines_of(data) if not private.was_dropped(line)]
            return data if len(lines) == len(lines_of(data)) else b"".join(line + b"\n" for line in lines) or None
        if data is None or place.driver == LINES or not place.lane or not private.any():
            return data
        if cut and not place.is_log and not place.shares_files:
            left = self.without_lines(place, data)
            if left is not None:
                return left
        return self._without(place, data, self._is_forgotten)

    def is_cut(self, place: Place, data: bytes | None, left: bytes | None) -> bool:
        """Whether `remembered` took something out of a content that was itself forgotten, and is not merely like it."""
        if data is None or left == data:
            return False
        if left is not None and not place.shares_files:
            return True  # lines, word for word
        is_gone = self._bank.tombstones.private.is_gone
        with suppress(MemlaneError):
            found = self._reader.memories(own_name(self._bank, place.file), data).values()
            return any(is_gone(memory.text, memory.id, memory.title) for memory in found)
        return False

    def without_gone(self, place: Place, data: bytes | None) -> bytes | None:
        """What was merged, without the memories that were forgotten: in a file of many, one may have got that id."""
        private = self._bank.tombstones.private
        if data is None or not place.lane or not private.any():
            return data
        return self._without(place, data, lambda memory: private.is_gone(memory.text, memory.id, memory.title))

    def is_wanted(self, place: Place, data: bytes) -> bool:
        """Whether somebody has deleted what is in a content, and restored it."""
        memories: Iterable[Memory] = ()
        with suppress(MemlaneError):
            memories = self._reader.memories(own_name(self._bank, place.file), data).values()
        texts = [memory.text for memory in memories]
        return bool(texts) and all(map(self._bank.tombstones.wanted, texts))

    def without_lines(self, place: Place, data: bytes) -> bytes | None:
        """A content of a file with one memory, without lines that were forgotten elsewhere; None where that is not all
        that is to be said: the memory itself was forgotten, or what is left is still like it, or nothing.
        """
        name = own_name(self._bank, place.file)
        private = self._bank.tombstones.private
        with suppress(MemlaneError, UnicodeDecodeError):
            for memory in self._reader.memories(name, data).values():
                if not self._is_forgotten(memory):
                    return data
                if private.is_gone(memory.text, memory.id, memory.title):
                    return None
                text = data.decode()
                front = find_front(text)
                at = len(text) - len(text[front.body if front else 0 :].lstrip("\r\n"))
                left = without(text[at:], self._gone_lines(memory)).lstrip("\r\n")
                answers = self._bank.lane(place.lane).answers
                cut = answers.merge_files(place.driver, data, data, (text[:at] + left).encode())
                after = list(self._reader.memories(name, cut).values())
                if after and says_something(after[0].text) and not any(map(self._is_forgotten, after)):
                    return cut
        return None

    def _gone_lines(self, memory: Memory) -> Callable[[str], bool]:
        """What tells which lines go of a memory that repeats a forgotten one: the telling ones, and those of few words
        that were forgotten with them. But what other memories here say, too, is nobody's secret, and what stays keeps
        its headings.
        """
        private = self._bank.tombstones.private
        telling = private.lines_of(memory.text, memory.id, memory.title)
        other = private.other_lines_of(memory.text, memory.id, memory.title)
        few = {compared(line) for line in memory.text.splitlines() if other(line)}
        few -= self._said_elsewhere(few, memory.id)

        def is_gone(line: str) -> bool:
            return telling(line) or compared(line) in few

        few -= {compared(line) for line in heads(memory.text, lambda line: bool(compared(line)) and not is_gone(line))}
        return is_gone

    def _said_elsewhere(self, lines: set[str], id: str) -> set[str]:
        """Those of these lines that a memory here has that repeats nothing forgotten."""
        found: set[str] = set()
        for lane in self._bank.present() if lines else ():
            for item in scan(lane):
                if isinstance(item, Memory) and item.id != id:
                    said = lines.intersection(map(compared, item.text.splitlines()))
                    if not said <= found and not self._is_forgotten(item):
                        found |= said
        return found

    def _is_forgotten(self, memory: Memory) -> bool:
        return bool(self._bank.tombstones.forgotten(memory.text, memory.id, memory.title))

    def _without(self, place: Place, data: bytes, refused: Callable[[Memory], bool]) -> bytes | None:
        """A content without these memories, nor what it still says of them when they were deleted."""
        name = own_name(self._bank, place.file)
        left: bytes | None = data
        with suppress(MemlaneError):  # what cannot be read as a file of its lane is judged as a whole
            while left is not None:  # of two entries of one name, the second has the id of the first once that is out
                memories = [*self._reader.memories(name, left).values(), *self._deleted(place, name, left)]
                natives = dict.fromkeys(memory.native_id for memory in memories if refused(memory))
                before = left
                if natives:
                    left = forget_journal.taken_out(self._reader, list(natives), name, before)
                if left == before:
                    break
        return left

    def _deleted(self, place: Place, name: str, data: bytes) -> list[Memory]:
        if not place.is_log:
            return []
        with self._reader.holding(name, data) as held:
            return list(held[0].answers.deleted()) if held else []


def _all_of(memory: Memory) -> str:
    return "\n".join((memory.text, memory.title, *memory.tags, *strings_in(memory.fields)))


def _unescaped(text: str, place: Place) -> list[str]:
    """The strings of JSON lines without their escapes: an escaped line end hides what follows."""
    found = []
    for line in text.splitlines() if place.is_log and "\\" in text else ():
        if "\\" in line:
            with suppress(ValueError, RecursionError):
                found.append(visible("\n".join(strings_in(json.loads(line)))))
    return found
