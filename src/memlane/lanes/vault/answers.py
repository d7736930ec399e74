"""What the vault answers about its own format: an append-only log of records, each with versions of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from memlane.core.dates import iso, moment, utc_now
from memlane.core.digests import blake2b
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.core.model import Memory, Plan, Problem, Removed, Step
from memlane.core.patterns import lazily
from memlane.core.text import first_line
from memlane.core.values import replace
from memlane.disk import files, log, written
from memlane.gate import admit, shown
from memlane.lanes import scan
from memlane.lanes.answers import (
    Age,
    Answers,
    Command,
    Group,
    HealthCheck,
    Kept,
    Read,
    Sign,
    Trace,
    Version,
    needles,
    remove_command,
)
from memlane.lanes.vault.checks import MAX_TEXT
from memlane.lanes.vault.log import LONG, MANY
from memlane.lanes.vault.proposals import deletions, stale_registers
from memlane.lanes.vault.record import (
    SOURCES,
    Record,
    from_draft,
    latest,
    read_line,
    render_line,
    render_lines,
    to_draft,
    to_memory,
)
from memlane.lanes.vault.store import FLOOR, MemoryVault

FULL = 90  # percent of the records that the vault takes
BLOAT, LINES = 3, 100  # lines for each active record, and how many there must be to be worth a word
_FEW = 100  # records that are looked up one by one
_ID = lazily(r"[0-9a-f]{12}")
_ID_IN_TEXT = lazily(r"\b[0-9a-f]{12}\b")
_FOREIGN_ID = lazily(r"[0-9A-Za-z_-]{1,64}")
_LINE_DAMAGE = ("is not", "is torn", "has no", "has a wrong", "has wrong")


def _unkeyed(vault: MemoryVault, command: Command) -> Iterator[Sign]:
    newest: dict[tuple[str | None, str], Memory] = {}
    memories = (item for item in scan(vault) if isinstance(item, Memory))
    registers = [memory for memory in memories if memory.fields["tier"] == "register"]
    registers.sort(key=lambda memory: memory.updated_at or memory.created_at or utc_now(), reverse=True)
    for memory in registers:
        topic = memory.fields["topic_id"]
        if not topic:
            fix = command("update", memory.id, "--field", "topic_id=KEY")
            yield memory.id, "is a register without a topic: no update finds it, no prompt shows it", fix
        elif (other := newest.setdefault((memory.scope, topic), memory)) is not memory:
            fix = command("rm", memory.id)
            yield memory.id, f"is an older register of the same topic as {other.id}", fix


def _full(vault: MemoryVault, command: Command) -> Iterator[Sign]:
    stats = vault.vault_stats()
    if stats["utilization_pct"] >= FULL:
        why = f"holds {stats['active_count']} of {stats['max_active']} records"
        fix = f"`{command('vault', 'proposals')}` says what could go; vault.max_active raises the limit."
        yield os.fspath(vault.path), why, fix


def _bloated(vault: MemoryVault, command: Command) -> Iterator[Sign]:
    stats = vault.vault_stats()
    if stats["bloat_ratio"] >= BLOAT and stats["raw_lines"] >= LINES:
        why = f"has {stats['raw_lines']:,} lines for {stats['active_count']:,} records"
        yield os.fspath(vault.path), why, command("vault", "compact")


def _left_by_compaction(vault: MemoryVault, command: Command) -> Iterator[Sign]:
    old, rejected = (os.fspath(vault.path) + suffix for suffix in (log.OLD, log.REJECTED))
    if os.path.lexists(old):
        yield old, "was left by an interrupted compaction; it is read", command("vault", "compact")
    if os.path.lexists(rejected):
        why = "holds lines that a compaction could not read"
        yield rejected, why, f"Save what is of use in it, then: {remove_command(rejected)}"


def _since(data: bytes, mark: str) -> tuple[str, dict[str, None] | None]:
    """The mark of a vault's content, and the ids in the lines that follow what had another mark; None when it does not
    begin with that, or when they are many.
    """
    from hashlib import sha256  # a vault may be long

    size, _, digest = mark.partition(" ")
    start = int(size or 0)
    hashed = sha256(memoryview(data)[:start])
    begins = bool(mark) and hashed.hexdigest() == digest
    hashed.update(memoryview(data)[start:])
    now = f"{len(data)} {hashed.hexdigest()}"
    if not begins or data.count(b"\n", start) > MANY:
        return now, None
    records = map(read_line, log.split_lines(data[start:]))
    return now, dict.fromkeys(record.id for record in records if isinstance(record, Record))


class VaultAnswers(Answers):
    shares_files = True
    is_folder = False
    ids_are_random = True
    prunes = True
    merges = (("vault", "{name} -text"),)
    ignores = ("{name}.old",)
    health = (
        HealthCheck("registers", "warning", "a register of the vault has no topic, or one that another has", _unkeyed),
        HealthCheck("vault-full", "warning", "the vault is nearly full", _full),
        HealthCheck("vault-bloat", "info", "the vault is mostly old versions", _bloated),
        HealthCheck("vault-rest", "info", "a compaction left something to look at", _left_by_compaction),
    )
    lane: MemoryVault

    def path_of(self, native: str) -> str:
        return os.fspath(self.lane.path)

    def written_keys(self, memory: Memory) -> tuple[str, ...]:
        try:
            return written.record_keys(render_lines([self.lane.get_memory(memory.native_id)]))[0]
        except NotFound:  # it was deleted meanwhile, and nobody noted what is not there
            return (written.key_of(b""),)

    def keys_of(self, memories: Sequence[Memory]) -> list[str]:
        if len(memories) < _FEW:
            return super().keys_of(memories)
        with self.lane.log.reading() as state:
            lines = {record.id: render_line(record).encode() for record in state.active.values()}
        return [written.key_of(lines.get(memory.native_id, b"")) for memory in memories]

    def native_of(self, path: str) -> str | None:
        return None

    def owns(self, path: str) -> bool:
        return path == self.lane.log.file

    def read(self, path: str, mark: str = "") -> Read:
        """The records of the lines that were appended since a long vault had this mark, or all of them."""
        vault = self.lane.log
        if os.fspath(path) != vault.file:
            return Read(())
        shown = partial(to_memory, file=vault.file)
        try:
            with vault.reading():
                data = vault.content() if vault.known.position.offset >= LONG else None
                known = vault.known
                now, ids = _since(data, mark) if data is not None else ("", None)
                if ids is None:
                    return Read(map(shown, list(known.active.values())), None, now)
                found = [known.active[id] for id in ids if id in known.active]
                gone = frozenset(f"vault:{id}" for id in ids if id not in known.active)
                return Read(map(shown, found), gone, now)
        except (OSError, StorageError):  # `parse` says why
            return Read(())

    def files_beside(self) -> list[Path]:
        return [self.lane.path.with_name(self.lane.path.name + suffix) for suffix in (log.OLD, log.REJECTED)]

    # -- removing for good

    def traces(self, native: str) -> Iterator[Trace]:
        """All lines of a record: of the log, of what a kill left of a rewrite, and of what was rejected."""
        path = files.real(os.fspath(self.lane.path))
        texts = tuple(record.text for record in self.lane.history(native))
        is_of_record = partial(_is_line_of, native, texts)
        rejected = path + log.REJECTED
        if os.path.isfile(rejected) and any(map(is_of_record, log.split_lines(log.read_all(rejected)))):
            yield Trace("lines", rejected, (), partial(self._remove_rejected, rejected, is_of_record))
        if os.path.isfile(path) and any(map(is_of_record, log.read_lines(path))):
            yield Trace("lines", path, texts, partial(self.lane.log.remove_lines, is_of_record))

    def _remove_rejected(self, path: str, is_dropped: Callable[[bytes], bool]) -> None:
        with self.lane.log.locked():  # compaction writes this file under the lock of the vault
            log.remove_lines(path, is_dropped)

    def deleted(self) -> Iterator[Memory]:
        with self.lane.log.reading() as state:
            gone = {*state.latest} - {*state.active}
        for record in _records(log.read_all(os.fspath(self.lane.path))) if gone else ():
            if record.id in gone:
                yield to_memory(record, os.fspath(self.lane.path))

    def titles_of(self, removed: Removed) -> list[str]:
        records = self.lane.history(removed.id.partition(":")[2])
        titles = [to_memory(record, os.fspath(self.lane.path)).title for record in records]
        return [*titles, *(record.topic_id for record in records if record.topic_id)]

    def git_needles(self, native: str) -> set[bytes]:
        return {f'"{native}"'.encode()}

    def purge_recipe(self, native: str, path: str) -> str:
        from shlex import quote

        needle = json.dumps(f'"{native}"')
        code = f"blob.data = b''.join(line for line in blob.data.splitlines(True) if b{needle} not in line)"
        return f"git filter-repo --blob-callback {quote(code)}"

    def out_of_reach(self) -> Iterator[Sign]:
        rejected = files.real(os.fspath(self.lane.path)) + log.REJECTED
        if os.path.isfile(rejected):
            why = "has damaged lines of the vault; those without an id may be of any record"
            yield rejected, why, remove_command(rejected)

    # -- is it sound

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        """A record that is read as it is, though no call here would have written it."""
        try:
            record = self.lane.get_memory(memory.native_id)
        except NotFound:  # it was deleted meanwhile
            return
        name = shown(record.id)
        if not _ID.fullmatch(record.id):
            yield f"{name}: the id is not 12 hex digits"
        if record.source not in (None, *SOURCES):
            yield f"{name}: the source is unknown: use one of {', '.join(SOURCES)}"
        if len(record.text) > MAX_TEXT:
            yield f"{name}: the text has {len(record.text):,} characters; {MAX_TEXT:,} are allowed"
        for key in ("created_at", "updated_at"):
            if getattr(record, key) and moment(getattr(record, key)) is None:
                yield f"{name}: {key} is not a date and time"
        if not record.created_at:
            yield f"{name}: there is no created_at"

    def fix_for(self, problem: Problem, command: Command) -> str | None:
        if problem.path == self.lane.path and problem.why.startswith(_LINE_DAMAGE):
            name = self.lane.path.name
            return f"{command('vault', 'compact')}  # keeps the line in {name}.rejected; old versions go, too"
        return None

    # -- what has aged

    def ages(self) -> Iterator[Age]:
        """A register without a topic that was not updated for 90 days is stale (seed 002)."""
        now = self.lane.clock()
        with suppress(StorageError):  # `parse` reports a file that cannot be read
            for record, updated in stale_registers(self.lane.recall_memories(), now):
                yield Age(f"vault:{record.id}", "stale", str(updated.date()), (now - updated).days)

    def prunable(self, known: Kept | None = None) -> Plan:
        """What `propose_deletions` names: duplicates, noise, registers that nobody updates (seed 002)."""
        try:
            records = self.lane.recall_memories()
        except StorageError:  # `parse` reports a file that cannot be read
            records = []
        rows = deletions(records, FLOOR, self.lane.clock(), self.lane.by_meaning, known)
        return Plan(
            tuple(
                Step(f"vault:{row['id']}", "delete", f"{row['reason']}: {row['detail']}", first_line(row["text"]))
                for row in rows
            )
        )

    def prune(self, steps: Mapping[str, Step], begin: Callable[[str, str], None]) -> Plan:
        still = {step.id for step in self.prunable().steps}
        begin("vault", "delete")
        deleted = self.lane.bulk_delete([id.removeprefix("vault:") for id in steps if id in still])["deleted"]
        return Plan(tuple(steps[f"vault:{id}"] for id in deleted))

    def grouped(self, steps: Sequence[Step]) -> Iterator[Group]:
        for step in steps:
            others = tuple(f"vault:{id}" for id in _ID_IN_TEXT.findall(step.reason) if f"vault:{id}" != step.id)
            certain = step.reason.startswith("duplicate_topic")
            reason = step.reason.replace("_", " ", 1)
            action, option = ("delete", "") if certain else ("look at", "rm")
            yield Group([step], action, reason, step.title, others, option)

    # -- earlier versions

    def versions(self, native: str, earlier: Iterable[bytes] = ()) -> list[Version] | None:
        known = self._known(native, earlier)
        records = [known[number] for number in sorted(known)]
        return [
            Version(
                str(record.version),
                moment(record.deleted_at or record.updated_at or record.created_at),
                record.source,
                _change(before, record),
                os.fspath(self.lane.path),
                record.text,
            )
            for before, record in zip([None, *records], records, strict=False)
        ][::-1]

    def _known(self, native: str, earlier: Iterable[bytes]) -> dict[int, Record]:
        known = {record.version: record for data in earlier for record in _records(data) if record.id == native}
        return known | {record.version: record for record in self.lane.history(native)}

    def put_version(self, native: str, version: str, earlier: Iterable[bytes]) -> None:
        with self.lane.log.adding(lambda: True):
            known = self._known(native, earlier)
            self.lane.log.append(replace(known[int(version)], version=max(known) + 1, deleted_at=None))

    def before_append(self, data: bytes, whole: bytes) -> tuple[bytes, dict[str, str]]:
        records = _records(data)
        ids = {record.id for record in records}
        before = latest(record for record in _records(whole) if record.id in ids)
        return render_lines(before.values()), {f"vault:{record.id}": _hash(record) for record in records}

    def undo_append(
        self, before: bytes, after: Mapping[str, str], settle: Callable[[str, str, bool], None]
    ) -> tuple[list[str], list[Sign]]:
        old_records = {record.id: record for record in _records(before)}
        lines: list[Record] = []
        back: list[Record] = []  # already: an undo was killed before it was done
        conflicts: list[Sign] = []
        with self.lane.log.locked():
            current = self.lane.log.latest({id.removeprefix("vault:") for id in after})
            for name, hash in after.items():
                id = name.removeprefix("vault:")
                old, now = old_records.get(id), current.get(id)
                if now is old is None or (now and old and replace(now, version=0) == replace(old, version=0)):
                    back += [old] if old else []
                elif now is not None and _hash(now) != hash:
                    conflicts.append((f"vault:{id}", "has changed since", ""))
                elif old is not None:  # a compaction may have left nothing of it
                    lines.append(replace(old, version=max(old.version, now.version if now else 0) + 1))
                elif now is not None:
                    lines.append(now.next(deleted_at=iso(utc_now())))
            self.lane.log.append(*lines)
        for record in (*back, *lines):
            settle(f"vault:{record.id}", record.text, record.deleted_at is not None)
        return [f"vault:{record.id}" for record in lines], conflicts

    def merge_files(self, driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        from memlane.lanes.vault.merging import vault

        return vault(base, ours, theirs)

    def put_back(self, memory: Memory) -> Memory:
        """Append the record with its own id, version and dates, once the vault's checks have passed it."""
        with self.lane.log.adding(lambda: bool(self._record_of(memory))):
            record = self._record_of(memory)
            self.lane.log.append(record)
        return self.lane.fetch(record.id)

    def _record_of(self, memory: Memory) -> Record:
        vault, fields = self.lane, dict(memory.fields)
        labels = {name: fields.pop(name, None) for name in ("tier", "topic_id", "source")}
        version = fields.pop("version", 1)
        extra = {name: value for name, value in fields.items() if name not in Record.__slots__}
        draft = to_draft(memory.text, memory.scope, memory.tags, category=memory.type, **labels)
        admitted = admit(vault.checks, draft, vault)
        if "upsert_of" in admitted.fields:
            raise AlreadyExists(f"Its topic has a register here: vault:{admitted.fields['upsert_of']}.")
        if not _FOREIGN_ID.fullmatch(memory.native_id):
            raise InvalidInput("Its id cannot be the id of a vault record.", hint="Use letters, digits, - and _.")
        titled = {} if memory.title == first_line(memory.text, 80) else {"title": memory.title}
        return from_draft(
            admitted,
            id=memory.native_id,
            scope=admitted.scope or vault.default_scope,
            created_at=iso(memory.created_at) or "",
            updated_at=iso(memory.updated_at),
            source=admitted.fields["source"],
            version=version if isinstance(version, int) and 0 < version < 10**9 else 1,
            extra={**extra, **titled, **({"thread": memory.thread} if memory.thread else {})},
        )

    def changes_to(self, memory: Memory) -> dict[str, Any]:
        changes = {**super().changes_to(memory), "scope": memory.scope}
        changes |= {"type": memory.type} if memory.type else {}
        return changes | {name: memory.fields[name] for name in ("tier", "topic_id", "source") if name in memory.fields}


def _change(before: Record | None, record: Record) -> str:
    """What a version changed, in a few words."""
    if record.deleted_at:
        return "deleted"
    if before is None:
        return "added"
    if before.deleted_at:
        return "restored"
    if (before.tier, record.tier) == ("register", "canon"):
        return "promoted to canon"
    names = ("text", "scope", "category", "tier", "topic_id", "tags", "source", "extra")
    changed = [name for name in names if getattr(before, name) != getattr(record, name)]
    return f"changed {', '.join(changed)}" if changed else "written again"


def _hash(record: Record) -> str:
    """A hash of what a record says, whatever its version: undone and done again, it says the same."""
    return blake2b(render_lines([replace(record, version=1)]), digest_size=16).hexdigest()


def _records(data: bytes) -> list[Record]:
    """The records of those lines that are whole."""
    return [record for line in log.split_lines(data) if isinstance(record := read_line(line), Record)]


def _is_line_of(id: str, texts: Collection[str], line: bytes) -> bool:
    """Whether a line of the vault is of this record. A damaged one is, where it has its id or its words."""
    record = read_line(line)
    if isinstance(record, Record):
        return record.id == id
    words = {needle for text in texts for needle in needles(text, every=True)}
    return f'"{id}"'.encode() in line or any(needle in line for needle in words)
