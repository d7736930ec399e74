"""Forgotten stays forgotten when a word differs: what `forget` remembers, in the user's own state folder.

    {"bank":"/home/ann/api/.memories","folder":"259:31","key":"9f…"}   first line; the key is in no bank or repository
    {"name":"c4…","day":"2025-01-10","id":"1a…","alone":false,"wholes":["5c…"],"lines":["7e…"],
     "passages":[[8,"0a13ff…"]],"shingles":[],"spared":[],
     "beside":["b1…"],"seals":{"7e…":"e0…"}}                     one forgotten memory, on one line
    {"kept":"1a…","of":["c4…"]}                                  the memory of this id is wanted all the same
    {"text":"5c…","n":"0d…"}                                     this very text is wanted, under any id
    {"stone":"88…"}                                              this line went from `tombstones.jsonl`, and stays away
    {"in":"billing"}                                             what follows is about memories of this scope

What others forgot, with whom the bank is shared, lies beside it under their keys: see `memlane.disk.forgotten_shared`.
One file for each bank, named after its real path; folder and file are readable by the user alone. A bank that was moved
is known by its folder's number on the disk, once there is nothing in its old place. The order of the lines counts:
nothing merges them. They hold keyed hashes of ids, of whole texts, and of telling lines. A long text also has
*shingles*, hashes of six words in a row: whoever has some of them is taken for it. In a short text a single changed
word breaks most of those, so it has *passages* instead: for each stretch of up to 24 words, which of 1,024 buckets its
words fall into, without their order; most of them close together are enough. So changed words, added lines and other
line breaks make no difference. Case, punctuation, white space and invisible characters never count.

A line of few words tells nothing alone, but is to go from a copy, too. Its hash is *beside* the others, under a random
salt that each telling line seals: only who has one of those, word for word, can ask for "PIN 4711", or guess at it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

from memlane.core.dates import utc_now
from memlane.core.errors import StorageError
from memlane.core.markdown import heading
from memlane.core.model import Memory, Problem
from memlane.core.values import dataclass
from memlane.disk import files
from memlane.disk.forgotten_lines import (
    beside,
    compared,
    hashed,
    line_hash,
    lines_in,
    rows,
    salts,
    seal,
    telling,
    words_of,
)
from memlane.disk.forgotten_records import BUCKETS, FEWEST, Index, Record, Windows, enough, half, read_bag, united

FOLDER = "forgotten"
LONGEST = 24  # words in a passage
SHORT = 48  # words; a longer text has shingles instead of passages
SHINGLE = 6  # words
LINE = 8  # different words that make a line of a long text a telling one
MOST = 256  # lines, and shingles, that are kept of one text: the smallest hashes
COMMON = 3  # other memories with the same passage make it a turn of phrase
_KEY_BYTES = 32

_known: ContextVar[tuple[ForgottenTexts | None, frozenset[str]]] = ContextVar("known", default=(None, frozenset()))


@dataclass(frozen=True, slots=True)
class Gone:
    """A memory that is being forgotten: every text it has or had, and its titles.

    With `alone`, its id is never given to anything else, so that the id alone tells that it is back. `scope` is the one
    that it names: whoever may not read that is not told of it.
    """

    id: str
    texts: tuple[str, ...]
    titles: tuple[str, ...] = ()
    alone: bool = False
    scope: str = ""


class ForgottenTexts:
    """What was forgotten of one bank. Without a path nothing is known and nothing is written."""

    def __init__(
        self, path: str | Path | None = None, *, bank: str = "", clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.bank = bank
        self.clock = clock
        self._seen: tuple[int, ...] = ()
        self._seen_others: tuple[int, ...] = ()
        self._others: list[ForgottenTexts] = []  # one for each key of other members of a team
        self._clear()

    def _clear(self) -> None:
        self._key = b""
        self._records: list[Record] = []
        self._wanted: set[str] = set()  # texts
        self._stones: set[str] = set()
        self._damage = 0  # the number of the first line that cannot be read
        self._answers: dict[bytes, list[Record]] = {}
        self._buckets: dict[str, int] = {}
        self._index = Index(())

    # -- asking

    def any(self) -> bool:
        """Whether anything was ever forgotten here, or by others with whom the bank is shared."""
        self._read()
        return bool(self._records or self._others)

    def day(self, text: str, id: str = "", title: str = "") -> str | None:
        """The day on which something was forgotten that this text would bring back; None nearly always."""
        found = [record.day for each in self._each() for record in each._like(text, id, title)]
        return max(found, default=None)

    def is_gone(self, text: str, id: str, title: str) -> bool:
        """Whether this very memory was forgotten: one of this id that was much like it, one that said just this, or
        several that said each of its lines.
        """
        found = [
            record.id == hashed or whole in record.wholes
            for each in self._each()
            for hashed, whole in [(each._hashed_id(id), each._whole(text))]
            for record in each._like(text, id, title)
        ]
        if any(found) or not found:
            return any(found)
        one, other = self.lines_of(text, id, title), self.other_lines_of(text, id, title)
        return not says_something(text, lambda line: one(line) or other(line))

    def lines_of(self, text: str, id: str, title: str) -> Callable[[str], bool]:
        """What tells whether a line of a text was forgotten, word for word, and is a telling one."""
        found = [
            (each, {line for record in each._like(text, id, title) for line in record.lines}) for each in self._each()
        ]
        return lambda line: any(hash in lines for each, lines in found for hash in each._lines(line))

    def other_lines_of(self, text: str, id: str, title: str) -> Callable[[str], bool]:
        """What tells whether any other line was forgotten together with a telling one that this text has, too."""
        found = [
            (each, record.beside, salt)
            for each in self._each()
            for record in each._like(text, id, title)
            for salt in salts(each._key, record, text)
        ]

        def is_gone(line: str) -> bool:
            words = compared(line)
            return words != "" and any(beside(each._key, salt, words) in lines for each, lines, salt in found)

        return is_gone

    def knows(self, id: str) -> bool:
        """Whether a memory of this id was forgotten and is not wanted since."""
        return any(
            record.id == hashed and hashed not in record.spared
            for each in self._each()
            for hashed in [each._hashed_id(id)]
            for record in each._records
        )

    def was(self, id: str, text: str) -> bool:
        """Whether a memory of this id had this text when it was forgotten."""
        return any(
            record.id == hashed and whole in record.wholes
            for each in self._each()
            for hashed, whole in [(each._hashed_id(id), each._whole(text))]
            for record in each._records
        )

    def was_dropped(self, stone: bytes) -> bool:
        """Whether a line of `tombstones.jsonl` was about something that was forgotten since."""
        self._read()
        return any(each._hashed_stone(stone) in each._stones for each in (self, *self._others) if each._stones)

    def _each(self) -> list[ForgottenTexts]:
        """What was forgotten here, and what by others, each under a key of its own."""
        self._read()
        return [self, *self._others] if self._records else self._others

    def problems(self) -> Iterator[Problem]:
        """Why the file cannot be read, or its first line that says nothing."""
        try:
            self._read()
        except StorageError as error:
            yield Problem(Path(self.path or ""), str(error))
            return
        if self._damage:
            yield Problem(Path(self.path or ""), "has a line that cannot be read; delete the line", self._damage)

    # -- writing

    def remember(self, gone: Sequence[Gone], others: Iterable[Memory]) -> None:
        """Remember memories that are being forgotten, so that they do not come back. Raises StorageError.

        `others` are the memories that stay. They go on being shown, even if they say the same, and a line or a turn
        of phrase that they have, too, is not held against new ones.
        """
        if self.path is None:
            return
        with self.writing():
            day = self.clock().date().isoformat()
            made = [(self._record(day, memory), lines_in(memory.texts), memory.scope) for memory in gone]
            made = [each for each in made if not self._is_known(each[0])]
            common = self._spare(
                [record for record, *_ in made], others, {line for _, each, _ in made for line in each}
            )
            spared: dict[str, list[str]] = {}
            for record, lines, scope in made:
                seal(self._key, record, lines, common)
                for id in sorted(record.spared):
                    spared.setdefault(id, []).append(record.name)
                record.spared.clear()  # said on lines of their own: those may be memories of other scopes
                self._append(record.to_line(), scope=scope)
            self._append(*({"kept": id, "of": names} for id, names in spared.items()))

    def keep(self, text: str, id: str = "", title: str = "") -> str | None:
        """Record that a text is wanted again, and the memory of this id; return the day when it was forgotten."""
        whose, names = _known.get()
        found: dict[ForgottenTexts, list[Record]] = {}
        for each in self._each():
            records = [one for one in each._like(text, id, title) if whose is not self or one.name in names]
            if records:
                found[each] = records
        for each, records in found.items():
            lines: list[dict[str, Any]] = [{"text": each._whole(text), "n": os.urandom(4).hex()}]  # no line twice
            if id:
                lines.insert(0, {"kept": each._hashed_id(id), "of": [record.name for record in records]})
            self._say(each, lines)
        return max((record.day for records in found.values() for record in records), default=None)

    def note_dropped(self, stones: Iterable[bytes], scope: str = "") -> None:
        """Remember lines that leave `tombstones.jsonl`, so that nobody brings them back. Raises StorageError."""
        new = [stone for stone in dict.fromkeys(stones) if not self.was_dropped(stone)]
        if new and self.path is not None:
            with self.writing():
                self._append(*({"stone": self._hashed_stone(stone)} for stone in new), scope=scope)

    def readdress(self, old: str, new: str) -> None:
        """A memory has another id now; it stays where it may stay although something like it was forgotten."""
        for each in self._each():
            names = [record.name for record in each._records if each._hashed_id(old) in record.spared]
            if names:
                self._say(each, [{"kept": each._hashed_id(new), "of": names}])

    def _say(self, of: ForgottenTexts, lines: Sequence[dict[str, Any]]) -> None:
        with self.writing():
            if of is self:
                self._append(*lines)
            else:
                self._append({"key": of._key.hex()}, *lines, to=self.others_path)

    def _is_known(self, new: Record) -> bool:
        """Whether a memory was forgotten before with all that it says now, and nobody wanted it since."""
        return any(
            old.id == new.id and new.wholes <= old.wholes and old.id not in old.spared and not new.wholes & self._wanted
            for old in self._records
        )

    def _record(self, day: str, memory: Gone) -> Record:
        texts = [text for text in memory.texts if text.strip()]
        passages: dict[tuple[int, int], None] = {}
        shingles: set[str] = set()
        lines: set[str] = set()
        for text in (*texts, *(title for title in memory.titles if len(set(words_of(title))) >= FEWEST)):
            words = words_of(text)
            is_short = len(words) <= SHORT
            lines |= set(sorted(self._lines(text, 4 if is_short else LINE))[:MOST])
            if is_short:
                lines_of_words = [part for part in map(words_of, text.splitlines()) if len(set(part)) >= FEWEST]
                for part in (words, *lines_of_words):  # a line also alone: labels may stand around it
                    passages |= dict.fromkeys(self._passages(part))
            else:
                shingles |= set(sorted(self._shingles(words))[:MOST])
        wholes = {self._whole(text) for text in texts}
        return Record(
            os.urandom(8).hex(),
            day,
            self._hashed_id(memory.id),
            memory.alone,
            wholes,
            lines,
            list(passages),
            shingles,
        )

    def _spare(self, records: Sequence[Record], others: Iterable[Memory], lines_of_all: set[str]) -> set[str]:
        """Leave to the memories that stay what is theirs, too; those of these lines that they have."""
        said: set[str] = set()
        common: Counter[tuple[int, int]] = Counter()
        own = {record.id for record in records}
        index = Index(records)
        for other in others:
            id = self._hashed_id(other.id)
            if id in own:
                continue
            words = words_of(f"{other.text}\n{other.title}")
            windows = Windows([self._bucket(word) for word in words])
            close = list(index.close_to(windows))
            for record, passage in close:
                common[passage] += 1
                record.spared.add(id)
            parted = rows(other.text)
            lines = {line_hash(self._key, line) for line in telling(parted)}
            said |= lines_of_all.intersection(" ".join(words) for _, words in parted)
            texts = (other.text, *other.text.splitlines()) if close else ()
            same = {passage for text in texts for passage in self._passages(words_of(text))}
            shingles = self._shingles(words) if index.by_shingle else set()
            whole = self._whole(other.text)
            for record in records:
                record.lines -= lines
                record.passages = [passage for passage in record.passages if passage not in same]
                if len(record.shingles & shingles) >= enough(record):
                    record.spared.add(id)
                else:
                    record.shingles -= shingles
                if whole in record.wholes:
                    record.spared.add(id)
        for record in records:
            record.passages = [passage for passage in record.passages if common[passage] < COMMON]
        return said

    # -- likeness

    def _like(self, text: str, id: str, title: str) -> list[Record]:
        """The forgotten memories that a memory would bring back."""
        self._read()
        if not self._records:
            return []
        digest = hashed(self._key, f"{id}\0{title}\0{text}", 16)
        found = self._answers.get(digest)
        if found is None:
            found = self._answers[digest] = self._compare(text, id, title)
        return found

    def _compare(self, text: str, id: str, title: str) -> list[Record]:
        whole, hashed_id = self._whole(text), self._hashed_id(id) if id else ""
        if whole in self._wanted:
            return []
        lines = {*self._lines(text), *self._lines(title)}
        index = self._index
        found = [*index.by_whole.get(whole, ()), *(record for line in lines for record in index.by_line.get(line, ()))]
        words = words_of(f"{text}\n{title}")
        windows = Windows([self._bucket(word) for word in words])
        found += [record for record, _ in index.close_to(windows)]
        shared: Counter[str] = Counter()
        for shingle in self._shingles(words) if index.by_shingle else ():
            shared.update([record.name for record in index.by_shingle.get(shingle, ())])
        for record in self._records if shared else ():
            if shared[record.name] >= enough(record):
                found.append(record)
        for record in index.by_id.get(hashed_id, ()):
            if (
                record.alone
                or shared[record.name]
                or any(windows.have(*passage, half(passage[1])) for passage in record.passages)
            ):
                found.append(record)
        unique = {record.name: record for record in found if hashed_id not in record.spared}
        return list(unique.values())

    def _whole(self, text: str) -> str:
        return hashed(self._key, "whole " + (" ".join(words_of(text)) or " ".join(text.split())), 16).hex()

    def _lines(self, text: str, least: int = 4) -> Iterator[str]:
        return (line_hash(self._key, line) for line in telling(rows(text), least))

    def _passages(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """(how many words, their buckets) of each passage of a short text."""
        last = max(len(words) - LONGEST, 0)
        for start in dict.fromkeys((*range(0, last, LONGEST // 2), last)):
            part = words[start : start + LONGEST]
            if part:
                yield len(part), united(self._bucket(word) for word in part)

    def _shingles(self, words: Sequence[str]) -> set[str]:
        ends = range(SHINGLE, len(words) + 1)
        return {hashed(self._key, " ".join(words[end - SHINGLE : end]), 6).hex() for end in ends}

    def _bucket(self, word: str) -> int:
        bit = self._buckets.get(word)
        if bit is None:
            number = int.from_bytes(hashed(self._key, f"word {word}", 4)) % BUCKETS
            bit = self._buckets[word] = 1 << number
        return bit

    def _hashed_id(self, id: str) -> str:
        return hashed_id(self._key, id)

    def _hashed_stone(self, line: bytes) -> str:
        return hashed_stone(self._key, line)

    # -- the file

    @property
    def others_path(self) -> str:
        """The file of what others forgot: as this one, with a line for the key wherever another one counts."""
        return f"{self.path}.others"

    def _read(self) -> None:
        """Read the files if they have changed. Raises StorageError."""
        if self.path is None:
            return
        seen = _state(self.path)
        if seen != self._seen:
            data = _data(self.path) if seen else b""
            self._clear()
            self.load(data.splitlines())
            self._seen = seen
        seen = _state(self.others_path)
        if seen != self._seen_others:
            self._others = [
                each for key, lines in sections(_data(self.others_path) if seen else b"").items()
                if (each := _of(key, lines))._records or each._stones
            ]  # fmt: skip
            self._seen_others = seen

    def load(self, lines: Iterable[bytes]) -> None:
        """Take in the lines of a file."""
        for number, line in enumerate(lines, 1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
                self._damage = self._damage or number
        if not self._key:
            self._records.clear()
        self._index = Index(self._records)

    def _take(self, line: dict[str, Any]) -> None:
        if "key" in line:
            self._key = self._key or bytes.fromhex(line["key"])
        elif "in" in line:
            return
        elif "kept" in line:
            for record in self._records:
                if record.name in line["of"]:
                    record.spared.add(line["kept"])
        elif "text" in line:
            self._wanted.add(line["text"])
        elif "stone" in line:
            self._stones.add(line["stone"])
        else:
            passages = [(int(size), read_bag(bag)) for size, bag in line["passages"]]
            wholes = set(line["wholes"])
            record = Record(
                line["name"], str(line["day"]), line["id"], bool(line["alone"]), wholes, set(line["lines"]), passages,
                set(line["shingles"]), set(line["spared"]), set(line.get("beside", ())),
                {str(hash): bytes.fromhex(seal) for hash, seal in line.get("seals", {}).items()},
            )  # fmt: skip
            self._records.append(record)
            self._wanted -= wholes  # forgotten once more

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the folder, with a file that has a key. Raises StorageError."""
        path = self.path or ""
        folder = os.path.dirname(path)
        files.make_folder(os.path.dirname(folder), private=True)
        files.make_folder(folder, private=True)
        with files.locked(folder):
            with files.storage(path):
                os.chmod(folder, 0o700)
                with suppress(FileExistsError):
                    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._read()
            if not self._key:
                self._append({"bank": self.bank, "folder": _number(self.bank), "key": os.urandom(_KEY_BYTES).hex()})
            yield

    def _append(self, *lines: dict[str, Any], to: str = "", scope: str = "") -> None:
        if scope and lines:
            lines = ({"in": scope}, *lines, {"in": ""})
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        if data:
            files.append_lines(to or self.path or "", data.encode())
        self._read()


@contextmanager
def as_known(texts: ForgottenTexts) -> Iterator[None]:
    """What others forget from here on, nobody inside says is wanted: they have asked before, and do not know."""
    names: frozenset[str] = frozenset()
    with suppress(StorageError):  # whoever says that something is wanted is told
        names = frozenset(record.name for each in texts._each() for record in each._records)
    token = _known.set((texts, names))
    try:
        yield
    finally:
        _known.reset(token)


def hashed_id(key: bytes, id: str) -> str:
    return hashed(key, f"id {id}", 12).hex()


def hashed_stone(key: bytes, line: bytes) -> str:
    return hashed(key, f"stone {line.decode(errors='replace')}", 16).hex()


def _state(path: str) -> tuple[int, ...]:
    try:
        info = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _unreadable(path, error) from error
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _data(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> StorageError:
    return StorageError(
        f"What was forgotten here is not known: {os.path.basename(path)} cannot be read ({error.strerror}).",
        hint="Make it readable: it keeps forgotten texts from coming back.",
    )


def says_something(text: str, is_gone: Callable[[str], bool] = lambda _: False) -> bool:
    """Whether there is more in a text than headings, and lines that are gone."""
    return any(words_of(line) and heading(line) is None and not is_gone(line) for line in text.splitlines())


def sections(data: bytes) -> dict[str, list[bytes]]:
    """The lines under each key, in their order; what is no line of such a file is left out."""
    found: dict[str, list[bytes]] = {}
    lines: list[bytes] | None = None
    for line in data.splitlines():
        with suppress(ValueError, TypeError, RecursionError):
            value = json.loads(line)
            if "key" not in value:
                if lines is not None:
                    lines.append(line)
            elif isinstance(value["key"], str) and len(bytes.fromhex(value["key"])) == _KEY_BYTES:
                lines = found.setdefault(value["key"], [])
    return found


def _of(key: str, lines: Iterable[bytes]) -> ForgottenTexts:
    """What was forgotten under another key."""
    made = ForgottenTexts()
    made.load([json.dumps({"key": key}).encode(), *lines])
    return made


def of_moved(folder: Path, bank: str) -> str | None:
    """The file about a bank that was moved here from where nothing is now; None when there is none."""
    number = _number(bank)
    for path in files.tree(folder) if number else ():
        with suppress(OSError, StorageError, ValueError, AttributeError, TypeError):
            head = json.loads(files.beginning(path, 16384).partition(b"\n")[0])
            if head.get("folder") == number and not os.path.lexists(head["bank"]):
                return path
    return None


def take_over(texts: ForgottenTexts, data: bytes) -> bool:
    """Let a bank know what was forgotten of the one that it was restored from; False where it knows something already:
    two keys cannot be one. Raises StorageError.
    """
    head, _, lines = data.partition(b"\n")
    if texts.path is None or os.path.lexists(texts.path):
        return False
    try:
        key = bytes.fromhex(json.loads(head)["key"])
    except (ValueError, KeyError, TypeError):
        return False
    first = {"bank": texts.bank, "folder": _number(texts.bank), "key": key.hex()}
    files.make_folder(os.path.dirname(texts.path), private=True)
    files.create(texts.path, json.dumps(first, separators=(",", ":")).encode() + b"\n" + lines)
    files.change_mode(texts.path, 0, 0o077)
    return True


def _number(path: str) -> str:
    """A folder's own number on the disk, which it keeps when it is moved; "" where there is no folder."""
    with suppress(OSError):
        info = os.stat(path)
        return f"{info.st_dev}:{info.st_ino}"
    return ""
