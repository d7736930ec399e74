"""The vault's file and what has been read of it: the latest version of each record, and the damage between them.

    .memories/vault.jsonl            {"id":"3f9a1c0b7d2e","version":1, … ,"text":"Mission: keep the runtime stable"}
    .memories/vault.jsonl.rejected   malformed lines that `compact` moved out of the way

Every write appends whole lines; only `rewrite` replaces the file. Knows nothing of the gate.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext, suppress
from heapq import merge
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from memlane.core.errors import Refused, StorageError
from memlane.core.values import dataclass, field
from memlane.disk import files, journal, log, state
from memlane.disk.log import Position, read_new, read_old, split_lines
from memlane.disk.names import refuse_link
from memlane.lanes.vault.record import (
    Fresh,
    Record,
    fresh,
    latest,
    newest_first,
    read_line,
    render_lines,
    supersedes,
    time_of,
)

if TYPE_CHECKING:
    from memlane.gate.lookalikes import Lookalikes, Shelves
    from memlane.lanes.vault.kept import Content, Kept

LONG = 1 << 18  # bytes of a file from which on it is kept what is known of it
MANY = 1000  # lines that are read each time, at most

Fits = Callable[[Record], bool]
Rules = tuple[float, float]  # from which ratio, and from which overlap on, two texts are near-duplicates


class Damaged(Exception):
    """A piece of what was kept about a file is not what was written."""


class Records:
    """Records by id, in the order in which they became active or known. Of those that are kept, `count` at the
    beginning, and of those in the lines of a long file, most are never asked for: they stay what they are.
    """

    def __init__(self, kept: Kept | None = None, count: int = 0) -> None:
        self._kept, self._count, self._size = kept, count, count
        self._own: dict[str, Record | Fresh] = {}
        self._whole = kept is None  # whether all of them were asked for
        self._has_fresh = False
        self._moved: set[int] = set()  # places of kept ones that were taken out; they may have come back behind them

    def __len__(self) -> int:
        return self._size

    def __contains__(self, id: str) -> bool:
        return id in self._own or self._place(id) is not None

    def __getitem__(self, id: str) -> Record:
        if (record := self.get(id)) is None:
            raise KeyError(id)
        return record

    def get(self, id: str) -> Record | None:
        record = self._own.get(id)
        if isinstance(record, Fresh):
            record = self._own[id] = record.record()
        if record is None and self._kept and (place := self._place(id)) is not None:
            return self._kept.record(place)
        return record

    def __setitem__(self, id: str, record: Record) -> None:
        self._size += id not in self
        self._own[id] = record

    def pop(self, id: str) -> None:
        self._size -= id in self
        self._own.pop(id, None)
        if (place := self._place(id)) is not None:
            self._moved.add(place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own if self._whole else dict.fromkeys([*(id for id, _ in self._in_place()), *self._own]))

    def add_fresh(self, row: Fresh) -> None:
        """Take in a record that is new here."""
        self._own[row[0]] = row
        self._size += 1
        self._has_fresh = True

    def values(self) -> Collection[Record]:
        if self._has_fresh:
            self._own = {id: one.record() if isinstance(one, Fresh) else one for id, one in self._own.items()}
            self._has_fresh = False
        return self.rows()  # type: ignore[return-value]  # none of them is fresh any more

    def rows(self) -> Collection[Record | Fresh]:
        """All of them, in whatever form they are."""
        if not self._whole and self._kept:
            own, record = self._own, self._kept.record
            self._own = {id: own[id] if id in own else record(place) for id, place in self._in_place()} | own
            self._whole = True
        return self._own.values()

    def _in_place(self) -> Iterator[tuple[str, int]]:
        ids = self._kept.ids()[: self._count] if self._kept else ()
        return ((id, place) for place, id in enumerate(ids) if place not in self._moved)

    def is_kept(self, place: int) -> bool:
        """Whether the one at this place is still where it was."""
        return place < self._count and place not in self._moved

    def _place(self, id: str) -> int | None:
        place = self._kept.places.get(id) if self._kept else None
        return place if place is not None and self.is_kept(place) else None


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
    topics: dict[tuple[str, str], dict[str, None]] | None = None  # the ids of their registers: `registers`
    kept: Kept | None = None  # what was known of the beginning of the file
    earlier: Content | None = None  # what was known of another content of it
    noted: int = 0  # how many lines what is kept is about
    touched: dict[str, bool] = field(default_factory=dict)  # ids since then: whether they have become active anew
    lookalikes: dict[str, Lookalikes] = field(default_factory=dict)  # by scope, of those that were asked for

    def register(self, scope: str, topic: str) -> Record | None:
        """The active register of a topic; the newest, should a race have made two."""
        found = (self.active[id] for id in self.registers().get((scope, topic), ()))
        return min(found, key=newest_first, default=None)

    def registers(self) -> dict[tuple[str, str], dict[str, None]]:
        """The ids of the active registers of each scope and topic."""
        if self.topics is None:
            self.topics = self.kept.topics() if self.kept else {}
        return self.topics

    def line_of(self, id: str) -> int | None:
        """The number of the line that the latest version of a record stands on."""
        if (line := self.numbers.get(id)) is None and self.kept and id in self.kept.places:
            return self.kept.numbers[self.kept.places[id]]
        return line

    def active_with(self, words: Collection[str]) -> list[Record]:
        """The active records; what has none of these words, in small letters, may be left out."""
        places = self.kept.having(words) if self.kept else None
        return list(self.active.values()) if places is None else [*self._kept_at(sorted(places)), *self._newer()]

    def by_words(self, words: Collection[str]) -> Iterator[tuple[int, Iterable[Record]]]:
        """The same, with how many of the words they have at most, those that may have most of them first."""
        places = self.kept.having(words) if self.kept else None
        if places is None:
            yield len(words), self.active.values()
            return
        yield len(words), self._newer()
        for count in sorted({*places.values()}, reverse=True):
            yield count, self._kept_at(sorted(place for place, most in places.items() if most == count))

    def newest(self, scopes: Collection[str] | None, category: str | None, tags: AbstractSet[str]) -> Iterator[Record]:
        """The active records of some scopes and a category, in small letters, with any of the tags, newest first."""

        def fits(record: Record) -> bool:
            return (
                (scopes is None or record.scope in scopes)
                and (category is None or record.category.lower() == category)
                and (not tags or not tags.isdisjoint(record.tags))
            )

        if self.kept is None:
            return iter(sorted(filter(fits, self.active.values()), key=newest_first))
        labels = {"scope": scopes, "category": None if category is None else {category}, "tag": tags or None}
        kept = self._kept_at(self.kept.newest({kind: wanted for kind, wanted in labels.items() if wanted is not None}))
        return filter(fits, merge(kept, sorted(self._newer(), key=newest_first), key=newest_first))

    def _kept_at(self, places: Iterable[int]) -> Iterator[Record]:
        """The records at these places, as far as they are active and as they were."""
        for place in places:
            if self.kept and self.active.is_kept(place) and (record := self.kept.record(place)).id not in self.touched:
                yield record

    def _newer(self) -> Iterator[Record]:
        """The active records that have come or changed since."""
        return (self.active[id] for id in self.touched if id in self.active)

    def counts(self) -> Counter[tuple[str, str]]:
        """How many active records have each label: see `kept.labels_of`."""
        from memlane.lanes.vault.kept import labels_of

        if self.kept is None:
            return Counter(label for record in self.active.values() for label in labels_of(record))
        kinds = self.kept.labels().items()
        found = Counter({(kind, value): len(places) for kind, values in kinds for value, places in values.items()})
        places = (self.kept.places.get(id) for id in self.touched)
        active = (place for place in places if place is not None and place < self.kept.head["active"])
        found.subtract(label for place in active for label in labels_of(self.kept.record(place)))
        found.update(label for record in self._newer() for label in labels_of(record))
        return +found

    def lookalikes_in(self, scope: str, rules: Rules) -> Lookalikes:
        """The active texts of a scope; from here on they are kept up to date. Raises Damaged."""
        from memlane.gate.lookalikes import Lookalikes

        if scope not in self.lookalikes:
            base = self.kept.base(scope, rules) if self.kept and rules[1] > 0 else None
            texts = Lookalikes(*rules, base=base)
            if base is None:
                texts = self._lookalikes_anew(scope, rules)
            for id, anew in self.touched.items() if base else ():
                record = self.active.get(id)
                if anew or record is None or record.scope != scope:
                    texts.remove(id)
                if record is not None and record.scope == scope:
                    texts.add(id, record.text)
            self.lookalikes[scope] = texts
        return self.lookalikes[scope]

    def _lookalikes_anew(self, scope: str, rules: Rules) -> Lookalikes:
        """The active texts of a scope, with the columns of those that were kept of an earlier content."""
        from memlane.gate.lookalikes import Lookalikes

        texts = {row.id: row.text for row in self.active.rows() if row.scope == scope}
        base = None
        if self.earlier and rules[1] > 0 and (renewed := self.earlier.renewed(scope, rules, texts)):
            base, texts = renewed
        found = Lookalikes(*rules, base=base)
        found.fill(texts.items())
        return found

    def rules(self) -> Rules | None:
        """By which rules near-duplicates were looked for, now or earlier."""
        for texts in self.lookalikes.values():
            return texts.ratio_from, texts.overlap_from
        content = self.kept or self.earlier
        rules: Rules | None = content.head["rules"] if content else None
        return rules and (rules[0], rules[1])

    def without_columns(self) -> None:
        """Compare with all texts from now on: those columns that were kept are damaged, or of little use."""
        if self.kept:
            self.kept.head["rules"] = None
        self.earlier = None
        self.lookalikes.clear()

    def resume(self, kept: Kept) -> None:
        """Begin with what was known of the beginning of the file."""
        head = kept.head
        self.kept, self.lines, self.raw, self.malformed = kept, head["lines"], head["raw"], head["malformed"]
        self.problems = [(line, why) for line, why in head["problems"]]
        self.latest, self.active = Records(kept, len(kept.places)), Records(kept, head["active"])
        self.noted = self.lines

    def read(self, data: bytes) -> None:
        """Take in the bytes that follow what was read before."""
        *lines, last = split_lines(self.pending + data)
        whole = isinstance(read_line(last), Record)  # editors leave out the last line end
        self.pending = b"" if whole else last
        unknown = not (self.kept or self.lookalikes)
        for line in (*lines, last) if whole else lines:
            self.lines += 1
            if unknown and (row := fresh(line)) and row[0] not in self.latest:  # nearly every line of a file
                self.raw += 1
                self.latest.add_fresh(row)
                self.active.add_fresh(row)
                self.numbers[row[0]] = self.lines
                continue
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
            if self.latest.get(record.id) is record:
                self.numbers[record.id] = self.lines
        if whole:
            self.lines -= 1  # its line end is still to come

    def take(self, record: Record) -> None:
        """Let a record count if it is newer than what is known of its id."""
        old = self.latest.get(record.id)
        if old is not None and not supersedes(record, old):
            return
        self.latest[record.id] = record
        was, now = (None if entry is None or entry.deleted_at else entry for entry in (old, record))
        anew = was is None or now is None or was.scope != now.scope
        if anew:  # it comes after the others
            self.active.pop(record.id)
            self.touched.pop(record.id, None)
        if was and was.topic_id:
            self.registers().get((was.scope, was.topic_id), {}).pop(was.id, None)
        if now and now.topic_id and now.tier == "register":
            self.registers().setdefault((now.scope, now.topic_id), {})[now.id] = None
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
        self._is_current = False  # whether `known` was compared with all of the file, which nobody else may write

    @contextmanager
    def reading(self) -> Iterator[Known]:
        """What the file says now, while no other thread of this process uses it. Raises StorageError."""
        with self._lock:
            self._update()
            yield self.known

    @contextmanager
    def consulting(self) -> Iterator[Known]:
        """As `reading`. What is found out about a long file that little was known of is kept."""
        with self.reading() as known:
            yield known
        self._keep(max(MANY, self.known.lines // 8))  # who only reads does not write for every few lines

    @contextmanager
    def changing(self) -> Iterator[Known]:
        """What the file says now, while nobody else, other processes included, writes.

        All of the file is compared with what was read: a version that is based on a line which somebody has edited
        in place would take the edit back.
        """
        with self.locked(), self._lock:  # in this order: whoever waits for another process lets other threads read
            self._update(verify=True)
            self._is_current = True
            try:
                yield self.known
            finally:
                self._is_current = False

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
            self._keep(MANY)  # it was read as for one that is added
            raise
        self._keep(MANY)

    def make(self) -> None:
        """Make the file, empty, where there is none: its first writers need something to lock.

        That is no change of its own: it is part of the first lines, which may fail.
        """
        self._refuse_link()
        if not os.path.lexists(self.file):
            with journal.paused():
                files.append_lines(self.file, b"")

    def forget(self) -> None:
        """Read the file from its beginning the next time."""
        self.known, self._is_current = Known(), False

    def append(self, *records: Record) -> None:
        if records:
            self._refuse_link()
            self._is_current = False
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
        self._is_current = False
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
        if self._is_current and not verify:
            return
        self._refuse_link()
        try:
            data, anew = read_new(self.file, self.known.position, verify=verify)
            while anew:
                self.known = Known(self.known.position)
                old = read_old(self.file)
                if not old and (found := self._kept(data)):
                    self.known.resume(found)
                    data = data[found.head["size"] :]
                elif len(data) >= LONG and (place := self._kept_at()):
                    from memlane.lanes.vault import kept

                    self.known.earlier = kept.earlier(str(place))
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

    def _keep(self, least: int) -> None:
        """Keep what is known of a long file, when at least so many lines were read that it was not known of."""
        with self._lock, suppress(OSError, StorageError):  # it only saves time
            known = self.known
            has_columns = known.kept is not None and known.kept.head["rules"] is not None
            is_new = known.lines - known.noted >= least or (known.lookalikes and not has_columns)
            if not is_new or known.position.offset < LONG or not (place := self._kept_at()):
                return
            self._update()  # what was just added is known, and has to be in the file
            data = self.content()
            read = known.touched if known.kept else known.latest
            if data is None or self.known is not known or any(id not in known.numbers for id in read):
                return  # some are from elsewhere: what an interrupted compaction left
            if state.can_write(str(place)):
                from memlane.lanes.vault import kept

                rules = known.rules()
                columns = _columns(known, rules) if rules else {}
                kept.write(str(place), data, known, columns, rules)
                known.noted = known.lines
                if columns:
                    self.forget()  # what is known is used up by this


def _columns(known: Known, rules: Rules) -> dict[str, Shelves]:
    """The columns of the texts of each scope."""
    kept = known.kept if known.kept and known.kept.head["rules"] else None
    records = (known.active.get(id) for id in known.touched) if kept else known.active.rows()
    scopes = dict.fromkeys([*(kept.head["scopes"] if kept else ()), *(record.scope for record in records if record)])
    try:
        found = {scope: known.lookalikes_in(scope, rules).shelves() for scope in scopes}
        if kept is None and known.earlier is None:
            return found
        for columns in (columns for shelves in found.values() for columns in shelves.columns):
            deque(columns.content(), 0)  # what is damaged shows before anything is written
        if not any(shelves.mostly_gone() for shelves in found.values()):
            return found
    except Damaged:
        pass
    known.without_columns()
    return _columns(known, rules)
