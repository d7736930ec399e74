"""The vault's file and what has been read of it: the latest version of each record, and the damage between them.

    .memories/vault.jsonl            {"id":"3f9a1c0b7d2e","version":1, … ,"text":"Mission: keep the runtime stable"}
    .memories/vault.jsonl.rejected   malformed lines that `compact` moved out of the way

Every write appends whole lines; only `rewrite` replaces the file. Knows nothing of the gate.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from memlane.core.errors import Refused, StorageError
from memlane.core.values import dataclass, field
from memlane.disk import files, log, state
from memlane.disk.log import Position, read_new, read_old, split_lines
from memlane.disk.names import refuse_link
from memlane.lanes.vault.record import Record, latest, newest_first, read_line, render_lines, supersedes, time_of

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

    from memlane.gate.lookalikes import Lookalikes, Shelves
    from memlane.lanes.vault.kept import Kept

LONG = 1 << 18  # bytes of a file from which on it is kept what is known of it
MANY = 1000  # lines that are read each time, at most

Rules = tuple[float, float]  # from which ratio, and from which overlap on, two texts are near-duplicates


class Damaged(Exception):
    """A piece of what was kept about a file is not what was written."""


class Records(dict[str, Record]):
    """Records by id. For one that is kept its place stands until it is asked for: most never are."""

    def __init__(self, kept: Kept | None = None, places: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(places)
        self._kept = kept

    def __getitem__(self, id: str) -> Record:
        return self._record(id, super().__getitem__(id))

    def get(self, id: str, default: Any = None) -> Any:
        item = super().get(id)
        return default if item is None else self._record(id, item)

    def values(self) -> dict_values[str, Record]:
        self._parse()
        return super().values()

    def items(self) -> dict_items[str, Record]:
        self._parse()
        return super().items()

    def _record(self, id: str, item: Any) -> Record:
        if self._kept and isinstance(item, int):
            item = self[id] = self._kept.record(item)
        return cast("Record", item)

    def _parse(self) -> None:
        if self._kept:
            for id in self:
                self[id]
            self._kept = None


@dataclass(slots=True)
class Known:
    """What has been read of the file. `lines` counts all, `raw` those that are not blank."""

    position: Position = field(default_factory=Position)
    lines: int = 0
    raw: int = 0
    malformed: int = 0
    pending: bytes = b""  # a last line that does not end yet
    problems: list[tuple[int, str]] = field(default_factory=list)  # (line, what is wrong with it)
    latest: Records = field(default_factory=Records)
    active: Records = field(default_factory=Records)
    numbers: dict[str, int] = field(default_factory=dict)  # of the lines that the latest versions stand on: `line_of`
    topics: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)  # the ids of their registers
    kept: Kept | None = None  # what was known of the beginning of the file
    touched: dict[str, bool] = field(default_factory=dict)  # ids since then: whether they have become active anew
    lookalikes: dict[str, Lookalikes] = field(default_factory=dict)  # by scope, of those that were asked for

    def register(self, scope: str, topic: str) -> Record | None:
        """The active register of a topic; the newest, should a race have made two."""
        registers = (self.active[id] for id in self.topics.get((scope, topic), ()))
        return min(registers, key=newest_first, default=None)

    def line_of(self, id: str) -> int | None:
        """The number of the line that the latest version of a record stands on."""
        if (line := self.numbers.get(id)) is None and self.kept and id in self.kept.places:
            return self.kept.numbers[self.kept.places[id]]
        return line

    def active_with(self, words: Collection[str]) -> list[Record]:
        """The active records; what has none of these words, in small letters, may be left out."""
        places = self.kept.having(words) if self.kept else None
        if self.kept is None or places is None:
            return list(self.active.values())
        kept = self.kept.places
        return [self.active[id] for id in self.active if id in self.touched or kept[id] in places]

    def lookalikes_in(self, scope: str, rules: Rules) -> Lookalikes:
        """The active texts of a scope; from here on they are kept up to date. Raises Damaged."""
        from memlane.gate.lookalikes import Lookalikes

        if scope not in self.lookalikes:
            base = self.kept.base(scope, rules) if self.kept and rules[1] > 0 else None
            texts = Lookalikes(*rules, base=base)
            if base is None:
                texts.fill((record.id, record.text) for record in self.active.values() if record.scope == scope)
            for id, anew in self.touched.items() if base else ():
                record = self.active.get(id)
                if anew or record is None or record.scope != scope:
                    texts.remove(id)
                if record is not None and record.scope == scope:
                    texts.add(id, record.text)
            self.lookalikes[scope] = texts
        return self.lookalikes[scope]

    def without_columns(self) -> None:
        """Compare with all texts from now on: those columns that were kept are damaged, or of little use."""
        if self.kept:
            self.kept.head["rules"] = None
        self.lookalikes.clear()

    def resume(self, kept: Kept) -> None:
        """Begin with what was known of the beginning of the file."""
        head = kept.head
        self.kept, self.lines, self.raw, self.malformed = kept, head["lines"], head["raw"], head["malformed"]
        self.problems = [(line, why) for line, why in head["problems"]]
        self.topics = {(scope, topic): dict.fromkeys(ids) for scope, topic, ids in head["topics"]}
        self.latest, self.active = Records(kept, kept.places), Records(kept, kept.places)
        for id in islice(reversed(kept.places), len(kept.places) - head["active"]):
            del self.active[id]

    def read(self, data: bytes) -> None:
        """Take in the bytes that follow what was read before."""
        *lines, last = split_lines(self.pending + data)
        whole = isinstance(read_line(last), Record)  # editors leave out the last line end
        self.pending = b"" if whole else last
        for line in (*lines, last) if whole else lines:
            self.lines += 1
            if not line.strip():
                continue
            self.raw += 1
            record = read_line(line)
            if isinstance(record, str):
                self.malformed += 1
                self.problems.append((self.lines, record))
                continue
            twin = self.latest.get(record.id)
            if twin is not None and twin.version == record.version and twin != record:
                why = "has the same id and version as another line; the later one counts"
                self.problems.append((self.lines, why))
            self.take(record)
            if self.latest[record.id] is record:
                self.numbers[record.id] = self.lines
        if whole:
            self.lines -= 1  # its line end is still to come

    def take(self, record: Record) -> None:
        """Let a record count if it is newer than what is known of its id."""
        old = self.latest.get(record.id)
        if old is not None and not supersedes(record, old):
            return
        self.latest[record.id] = record
        if old is None and not (record.deleted_at or record.topic_id or self.lookalikes or self.kept):
            self.active[record.id] = record  # nearly every line of a file
            return
        was, now = (None if entry is None or entry.deleted_at else entry for entry in (old, record))
        anew = was is None or now is None or was.scope != now.scope
        if anew:  # it comes after the others
            self.active.pop(record.id, None)
            self.touched.pop(record.id, None)
        if was and was.topic_id:
            self.topics.get((was.scope, was.topic_id), {}).pop(was.id, None)
        if now and now.topic_id and now.tier == "register":
            self.topics.setdefault((now.scope, now.topic_id), {})[now.id] = None
        if now:
            self.active[now.id] = now
        if self.kept:
            self.touched[record.id] = anew or self.touched.get(record.id, False)
        if was and now and (was.scope, was.text) == (now.scope, now.text):
            return
        if was and anew and was.scope in self.lookalikes:
            self.lookalikes[was.scope].remove(was.id)
        if now and now.scope in self.lookalikes:
            self.lookalikes[now.scope].add(now.id, now.text)


class VaultLog:
    """A vault's file. Threads may share one: what is `known` is used while `reading` or `changing`."""

    def __init__(self, path: Path, home: Path | None, kept_at: Callable[[], Path | None] = lambda: None) -> None:
        """`home` is the bank's folder: a link in the file's place that leads out of it is not followed.

        `kept_at` says where to keep what is known of a long file.
        """
        self.path = path
        self.file = os.fspath(path)
        self.home = home if home and home in path.parents else None
        self.known = Known()
        self._kept_at = kept_at
        self._lock = RLock()

    @contextmanager
    def reading(self) -> Iterator[Known]:
        """What the file says now, while no other thread of this process uses it. Raises StorageError."""
        with self._lock:
            self._update()
            yield self.known

    @contextmanager
    def changing(self) -> Iterator[Known]:
        """What the file says now, while nobody else, other processes included, writes.

        All of the file is compared with what was read: a version that is based on a line which somebody has edited
        in place would take the edit back.
        """
        with self.locked(), self._lock:  # in this order: whoever waits for another process lets other threads read
            self._update(verify=True)
            yield self.known

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The file's lock between processes. Where there is no file, there is nothing to change: see `make`."""
        with files.locked(self.file) if os.path.isfile(self.file) else nullcontext():
            yield

    @contextmanager
    def adding(self, wanted: Callable[[], bool]) -> Iterator[None]:
        """Hold the lock while something is added. A file that is not there is made first, unless the gate would refuse
        it all: `wanted` asks it, and what it refuses leaves nothing behind.
        """
        if not os.path.lexists(self.file):
            with self.reading():
                try:
                    if wanted():
                        self.make()
                except Refused:
                    if not os.path.lexists(self.file):  # else others came first: it is judged again below
                        raise
                finally:
                    self.forget()
        try:
            with self.changing():
                yield
        except Refused:
            self._keep()  # it was read as for one that is added
            raise
        self._keep()

    def make(self) -> None:
        """Make the file, empty, where there is none: its first writers need something to lock."""
        self._refuse_link()
        if not os.path.lexists(self.file):
            files.append_lines(self.file, b"")

    def forget(self) -> None:
        """Read the file from its beginning the next time."""
        self.known = Known()

    def append(self, *records: Record) -> None:
        if records:
            self._refuse_link()
            files.append_lines(self.file, render_lines(records))

    def history(self, id: str) -> list[Record]:
        """All versions of an id that the file still has, oldest first, tombstones included."""
        self._refuse_link()
        quoted = json.dumps(id, ensure_ascii=False).encode()
        records = (read_line(line) for line in log.read_lines(self.file) if quoted in line)
        versions = dict.fromkeys(record for record in records if isinstance(record, Record) and record.id == id)
        return sorted(versions, key=lambda record: record.version)

    def latest(self, ids: set[str]) -> dict[str, Record]:
        """The last versions of these records in the file, deleted ones included."""
        records = map(read_line, log.read_lines(self.file))
        return latest(record for record in records if isinstance(record, Record) and record.id in ids)

    def compact(self) -> tuple[int, int]:
        """Keep the latest active versions only, by category and age. Returns the number of lines before and after.

        Malformed lines go to `<file>.rejected`.
        """
        counts = (0, 0)

        def change(lines: list[bytes]) -> tuple[bytes, bytes]:
            nonlocal counts
            parsed = [(line, read_line(line)) for line in lines]
            records = latest(record for _, record in parsed if isinstance(record, Record)).values()
            active = [record for record in records if record.deleted_at is None]
            active.sort(key=lambda record: (record.category, time_of(record.created_at)))
            counts = len(lines), len(active)
            return render_lines(active), b"".join(line + b"\n" for line, record in parsed if isinstance(record, str))

        self._refuse_link()
        if os.path.exists(self.file):
            self._rewrite(change)
        return counts

    def remove_lines(self, is_dropped: Callable[[bytes], bool]) -> None:
        """Rewrite the file without these lines."""
        self._rewrite(lambda lines: (b"".join(line + b"\n" for line in lines if not is_dropped(line)), b""))

    def _rewrite(self, change: Callable[[list[bytes]], tuple[bytes, bytes]]) -> None:
        """Replace the lines by change(lines) -> (what stays, what is rejected), while others go on appending."""
        log.rewrite(
            self.file,
            lambda data: change([line for line in split_lines(data) if line.strip()]),
            is_whole=lambda line: isinstance(read_line(line), Record),
        )

    def _refuse_link(self) -> None:
        if self.home:
            refuse_link(self.file, self.home)

    def _update(self, verify: bool = False) -> None:
        """Parse what was appended since the last call, or all of the file when it was edited."""
        self._refuse_link()
        try:
            data, anew = read_new(self.file, self.known.position, verify)
            while anew:
                self.known = Known(self.known.position)
                old = read_old(self.file)
                if not old and (kept := self._kept(data)):
                    self.known.resume(kept)
                    data = data[kept.head["size"] :]
                for line in split_lines(old):
                    if isinstance(record := read_line(line), Record):
                        self.known.take(record)
                self.known.read(data)
                # A compaction may have carried lines over between the two reads: look once more.
                data, anew = read_new(self.file, self.known.position)
        except OSError as error:
            self.forget()
            why = files.unreadable(self.file, error).why
            raise StorageError(
                f"{self.path.name} cannot be read: {why}.", hint="Check the file's owner and mode."
            ) from error
        if data:
            self.known.read(data)

    def _kept(self, data: bytes) -> Kept | None:
        """What is kept about the beginning of this content."""
        if len(data) < LONG or (place := self._kept_at()) is None:
            return None
        from memlane.lanes.vault import kept  # only a long file needs it, and it is slow to import

        return kept.load(str(place), data)

    def content(self) -> bytes | None:
        """The bytes of the file that `known` was read from, while `reading`; where they were edited, it is read again.

        None when they do not end with a line, or are not all that was read. Raises OSError, StorageError.
        """
        for _ in range(2):
            at = self.known.position
            data = log.read_all(self.file)[: at.offset]
            if zlib.crc32(data) == at.checksum and len(data) == at.offset:
                is_all = not self.known.pending and not log.read_old(self.file)
                return data if is_all and data.endswith(b"\n") else None
            self._update(verify=True)
        return None

    def _keep(self) -> None:
        """Keep what is known of a long file, when many lines were read that it was not known of."""
        with self._lock:
            known, offset = self.known, self.known.position.offset
            new = known.lines - (known.kept.head["lines"] if known.kept else 0)
            if new < MANY or not known.lookalikes or offset < LONG or not (place := self._kept_at()):
                return
            ids = [*known.active, *(id for id in known.latest if id not in known.active)]
            numbers = [line for id in ids if (line := known.line_of(id))]
            if len(numbers) != len(ids):  # some are from elsewhere: what an interrupted compaction left
                return
            from memlane.lanes.vault import kept

            with suppress(OSError, StorageError):  # it only saves time
                data = self.content()
                if data is not None and self.known is known and state.can_write(str(place)):
                    first = next(iter(known.lookalikes.values()))
                    rules = first.ratio_from, first.overlap_from
                    self.forget()  # what is known is used up by this
                    kept.write(str(place), data, _head(known, ids), numbers, _columns(known, rules), rules)


def _head(known: Known, ids: list[str]) -> dict[str, Any]:
    """What `resume` needs."""
    return {
        "ids": ids,
        "active": len(known.active),
        "lines": known.lines,
        "raw": known.raw,
        "malformed": known.malformed,
        "problems": known.problems,
        "topics": [(scope, topic, list(own)) for (scope, topic), own in known.topics.items() if own],
    }


def _columns(known: Known, rules: Rules) -> dict[str, Shelves]:
    """The columns of the texts of each scope."""
    kept = known.kept if known.kept and known.kept.head["rules"] else None
    records = (known.active.get(id) for id in known.touched) if kept else known.active.values()
    scopes = dict.fromkeys([*(kept.head["scopes"] if kept else ()), *(record.scope for record in records if record)])
    try:
        found = {scope: known.lookalikes_in(scope, rules).shelves() for scope in scopes}
        if kept is None or not any(shelves.mostly_gone() for shelves in found.values()):
            return found
    except Damaged:
        pass
    known.without_columns()
    return _columns(known, rules)
