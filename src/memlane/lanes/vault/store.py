"""The vault (seed 002): an append-only JSONL log, one JSON object per line, the highest version of an id is the memory.

    .memories/vault.jsonl            {"id":"3f9a1c0b7d2e","version":1, … ,"text":"Mission: keep the runtime stable"}
    .memories/vault.jsonl.rejected   malformed lines that `compact` moved out of the way

Every write appends whole lines; only `compact` rewrites the file. New memories need no lock. Whoever appends the next
version of a memory holds the file's lock from reading the last one, so that no two changes are based on the same
version. The seed's verbs raise Refused (a ValueError) and NotFound (a KeyError) and answer with Records. Gates are
best effort between processes: a near-duplicate that slips through a race is found by `find_consolidation_candidates`.
Does not know how a line is written (vault_records) or what is refused (vault_checks), and does not search with the
index: search_memories is the seed's own scoring.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.dates import iso, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.disk import files
from memlane.disk.log import Position, read_new, read_old, rewrite, split_lines
from memlane.disk.names import STRAY, is_stray, refuse_link
from memlane.disk.tombstones import Tombstones
from memlane.lanes import known
from memlane.lanes.vault.checks import CHECKS, LABEL_CHECKS, UPDATE_CHECKS, guarded, noise_signal
from memlane.lanes.vault.record import (
    CATEGORIES,
    NORMAL,
    TIERS,
    item_to_draft,
    lowered,
    newest_first,
    read_line,
    render_lines,
    snapshot,
    storable,
    supersedes,
    time_of,
    to_draft,
    to_memory,
    to_tags,
    to_text,
    to_topic,
)
from memlane.lanes.vault.record import Record as Record

if TYPE_CHECKING:
    from memlane.gate.likeness import Lookalikes
    from memlane.lanes.vault.answers import VaultAnswers

SCOPES = ("shared", "orion", "elysia")
SHORT_TEXT = 20
STALE_AFTER = timedelta(days=90)
FLOOR = 0.50
_NATIVE = frozenset({"category", "tier", "topic_id", "source"})
_FIELDS = frozenset({"text", "title", "tags", "type", "scope", "thread", *_NATIVE})


class MemoryVault:
    """A vault file. Nothing is created before the first write. Threads may share one."""

    name = "vault"

    def __init__(
        self,
        path: str | Path = "data/memory/vault.jsonl",
        similarity_threshold: float = 0.70,
        max_active: int = 100,
        token_overlap_threshold: float = 0.60,
        *,
        scopes: Sequence[str] = SCOPES,
        clock: Callable[[], datetime] = utc_now,
        guard: gate.Guard = gate.DEFAULT,
        tombstones: Tombstones | None = None,
        home: Path | None = None,
    ) -> None:
        """`home` is the bank's folder: a link in the vault's place that leads out of it is not followed."""
        self.root = self.path = Path(path).absolute()
        self._home = home if home and home in self.path.parents else None
        self.similarity_threshold = similarity_threshold
        self.max_active = max_active
        self.token_overlap_threshold = token_overlap_threshold
        self.scopes = tuple(scope.lower() for scope in scopes)
        self.clock = clock
        self.guard = guard
        self.checks = guarded(CHECKS, guard)
        self.tombstones = tombstones or Tombstones()
        self._file = os.fspath(self.path)
        self._lock = RLock()
        self._known = _State()
        self._alike: dict[str, Lookalikes] = {}

    # -- the seed's verbs

    def add_memory(
        self,
        text: str,
        scope: str,
        category: str,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        tier: str = "canon",
        topic_id: str | None = None,
    ) -> str:
        """Append a memory and return its id; a register whose topic exists becomes its next version.

        That keeps its category, tags and source where none are given; the source of a new memory is then "manual".
        Raises Refused by the gate and InvalidInput for a value of the wrong type; then nothing is written.
        """
        return self._add(to_draft(text, scope, category, tags, source, tier, topic_id)).id

    def bulk_add(self, items: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Add many in one append. What the gate refuses is reported with its place in `items`; the rest is stored."""
        stored: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        lines: list[Record] = []
        items = list(items)  # before anything is locked: an iterable may raise, or take its time
        with self._held(any(isinstance(item, Mapping) and item.get("topic_id") for item in items)) as state:
            try:
                for index, item in enumerate(items):
                    try:
                        record = self._admitted(item_to_draft(item))
                    except MemlaneError as error:
                        errors.append({"index": index, "message": str(error)})
                    else:
                        lines.append(record)
                        stored.append({"index": index, "id": record.id})
                        self._take(state, record)  # so that the next item of the batch is compared with this one
                self._append(*lines)
            except BaseException:
                self._forget()
                raise
        for record in lines:
            self.tombstones.lift(record.text)
        return {"stored": stored, "errors": errors}

    def update_memory(
        self,
        id: str,
        text: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        tier: str | None = None,
        topic_id: str | None = None,
    ) -> Record:
        """Append the next version; what is not given stays. Raises NotFound (unknown or deleted), Refused."""
        changes = {
            "text": text, "category": category, "tags": tags, "source": source, "tier": tier, "topic_id": topic_id,
        }  # fmt: skip
        return self._change(id, {name: value for name, value in changes.items() if value is not None})

    def update_by_topic(
        self,
        topic_id: str,
        scope: str,
        text: str,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
    ) -> Record:
        """Append the next version of this topic's register, or its first. Raises Refused."""
        if not to_topic(topic_id):
            raise InvalidInput("The topic is empty.", hint="Give a stable key such as current_projects.")
        return self._add(to_draft(text, scope, category, tags, source, "register", topic_id))

    def delete_memory(self, id: str) -> bool:
        """Append a tombstone. False when the id is unknown or already deleted."""
        return bool(self.bulk_delete([id])["deleted"])

    def bulk_delete(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Append tombstones for all ids that are active, in one append."""
        found: dict[str, Record] = {}
        missing: list[str] = []
        ids = list(ids)
        with self._held() as state:
            for id in ids:
                old = state.active.get(id) if isinstance(id, str) and id not in found else None
                if old is not None:
                    found[id] = replace(old, version=old.version + 1, deleted_at=self._now())
                else:
                    missing.append(id)
            self._append(*found.values())
        self.tombstones.bury(*((f"vault:{id}", record.text) for id, record in found.items()))
        return {"deleted": list(found), "not_found": missing}

    def recall_memories(
        self,
        scope: str | Sequence[str] | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[Record]:
        """Active memories, the newest first; `tags` means any of them."""
        wanted, of_category = set(to_tags(tags)), lowered(category)
        found = [
            record
            for record in self._active(scope)
            if (of_category is None or record.category.lower() == of_category)
            and (not wanted or not wanted.isdisjoint(record.tags))
        ]
        found.sort(key=newest_first)
        return _first(found, limit)

    def search_memories(
        self, query: str, scope: str | Sequence[str] | None = None, limit: int | None = None
    ) -> list[Record]:
        """Active memories that share a word with the query, by the seed's score (`search_score`), best first."""
        if not isinstance(query, str):
            raise InvalidInput("The query is not text.", hint="Give some words.")
        scored = [(score, record) for record in self._active(scope) if (score := search_score(query, record.text))]
        scored.sort(key=lambda pair: (-pair[0], newest_first(pair[1])))
        return _first([record for _, record in scored], limit)

    def find_consolidation_candidates(
        self,
        scope: str | Sequence[str] | None = None,
        floor: float = FLOOR,
        *,
        similarity_floor: float | None = None,
    ) -> list[tuple[Record, Record, float]]:
        """(newer, older, score) of similar active memories in the same scope, best first. Writes nothing.

        The score is the larger of word overlap and sequence ratio. `similarity_floor` is another name for `floor`.
        """
        from memlane.gate.likeness import alike  # comparing is not for those who only read

        least = floor if similarity_floor is None else similarity_floor
        if isinstance(least, bool) or not isinstance(least, int | float):
            raise InvalidInput("The floor is not a number.", hint="Give a number from 0 to 1.")
        scopes: dict[str, list[Record]] = {}
        for record in sorted(self._active(scope), key=newest_first):
            scopes.setdefault(record.scope, []).append(record)
        pairs = [
            (records[new], records[old], score)
            for records in scopes.values()
            for new, old, score in alike([record.text for record in records], least)
        ]
        pairs.sort(key=lambda pair: (-pair[2], newest_first(pair[0]), newest_first(pair[1])))
        return pairs

    def propose_deletions(self, scope: str | Sequence[str] | None = None, floor: float = FLOOR) -> list[dict[str, Any]]:
        """What could go, one dictionary with `reason` and `detail` per memory. Deletes nothing, writes nothing."""
        found: dict[str, tuple[Record, str, str]] = {}
        topics: dict[tuple[str, str | None], Record] = {}
        for record in self.recall_memories(scope):
            if record.tier != "register":
                continue
            if record.topic_id and (newer := topics.setdefault((record.scope, record.topic_id), record)) != record:
                found[record.id] = (record, "duplicate_topic", f"{newer.id} is a newer register of the same topic")
            elif signal := noise_signal(record.text):
                found[record.id] = (record, "noise", f"contains the journal-only signal {signal!r}")
            elif len(record.text) < SHORT_TEXT:
                found[record.id] = (record, "short_text", f"{len(record.text)} characters say little")
        for newer, older, score in self.find_consolidation_candidates(scope, floor):
            if newer.id not in found:
                found.setdefault(older.id, (older, "near_duplicate", f"similar to {newer.id} ({score:.2f})"))
        for record in self.recall_memories(scope):
            if record.tier == "register" and not record.topic_id:
                age = self.clock() - time_of(record.updated_at or record.created_at)
                if age > STALE_AFTER:
                    detail = f"has no topic and was not updated for {age.days} days"
                    found.setdefault(record.id, (record, "stale_register", detail))
        return [
            {"id": record.id, "scope": record.scope, "tier": record.tier, "text": record.text} | {
                "reason": reason, "detail": detail,
            }
            for record, reason, detail in found.values()
        ]  # fmt: skip

    def promote_to_canon(self, id: str, canonical_text: str, tags: Sequence[str] | None = None) -> Record:
        """Append a canon version of a register; its topic is cleared, so that no upsert overwrites it.

        Raises NotFound, InvalidInput when it is canon already, Refused.
        """
        changes: dict[str, Any] = {"text": canonical_text, "tier": "canon", "source": "promotion", "topic_id": None}
        with self._held():
            old = self._existing(id)
            if old.tier == "canon":
                raise InvalidInput("The memory is canon already.", hint="Use update_memory to change it.")
            return self._next(old, changes | ({} if tags is None else {"tags": tags}))

    def build_snapshot(self, scope: str | Sequence[str] | None = None) -> str:
        """Canon and the registers with a topic as Markdown, "" when there are none."""
        return snapshot(self._active(scope))

    def vault_stats(self) -> dict[str, Any]:
        """Counts of what is active, deleted, raw and damaged."""
        with self._lock:
            state = self._state()
            active = list(state.active.values())
            deleted, raw, malformed = len(state.latest) - len(active), state.raw, state.malformed
        categories = Counter(record.category for record in active)
        return {
            "active_count": len(active),
            "max_active": self.max_active,
            "utilization_pct": round(100 * len(active) / self.max_active, 1) if self.max_active else 100.0,
            "deleted_count": deleted,
            "raw_lines": raw,
            "compactable_lines": raw - len(active),
            "bloat_ratio": round(raw / len(active), 2) if active else float(raw or 1),
            "by_scope": dict(Counter(record.scope for record in active)),
            "by_tier": dict(Counter(record.tier for record in active)),
            "by_category": dict(categories),
            "register_topics": sum(1 for record in active if record.tier == "register" and record.topic_id),
            "unknown_categories": sum(count for name, count in categories.items() if name not in CATEGORIES),
            "malformed_lines": malformed,
        }

    def compact(self) -> dict[str, int]:
        """Rewrite the file with the latest active versions only, by category and age. Not reversible.

        Others may write meanwhile; nothing of theirs is lost. Malformed lines go to `<file>.rejected`.
        """
        counts = {"lines_before": 0, "lines_after": 0}

        def change(data: bytes) -> tuple[bytes, bytes]:
            latest: dict[str, Record] = {}
            rejected = []
            lines = [line for line in split_lines(data) if line.strip()]
            for line in lines:
                record = read_line(line)
                if isinstance(record, str):
                    rejected.append(line)
                elif supersedes(record, latest.get(record.id)):
                    latest[record.id] = record
            kept = [record for record in latest.values() if record.deleted_at is None]
            kept.sort(key=lambda record: (record.category, time_of(record.created_at)))
            counts.update(lines_before=len(lines), lines_after=len(kept))
            return render_lines(kept), b"".join(line + b"\n" for line in rejected)

        self._refuse_link()
        if os.path.exists(self._file):
            rewrite(self._file, change, lambda line: isinstance(read_line(line), Record))
        return {**counts, "lines_removed": counts["lines_before"] - counts["lines_after"]}

    def get_memory(self, id: str) -> Record:
        """One active record. Raises NotFound."""
        return self._existing(id)

    def history(self, id: str) -> list[Record]:
        """All versions of an id that the file still has, oldest first, tombstones included."""
        self._refuse_link()
        data, _ = read_new(self._file, Position())
        quoted = json.dumps(id, ensure_ascii=False).encode()
        lines = (*split_lines(read_old(self._file)), *split_lines(data))
        found = [read_line(line) for line in lines if quoted in line]
        versions = {record: None for record in found if isinstance(record, Record) and record.id == id}
        return sorted(versions, key=lambda record: record.version)

    @property
    def answers(self) -> VaultAnswers:
        from memlane.lanes.vault.answers import VaultAnswers

        return VaultAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        return {
            "max_active": settings["vault.max_active"],
            "token_overlap_threshold": settings["vault.token_overlap_threshold"],
            "similarity_threshold": settings.profile.similarity_threshold,
            "scopes": tuple(settings["vault.scopes"]),
            "home": settings.root,
        }

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        if self._home and is_stray(self._file, self._home):
            yield Problem(self.path, STRAY)
        elif os.path.isfile(self._file):
            yield self._file
        elif os.path.lexists(self._file):
            yield Problem(self.path, "is not a file")

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        if os.fspath(path) != self._file:
            return
        try:
            with self._lock:
                state = self._state()
                problems = sorted((*state.problems, *state.odd.values()), key=lambda problem: problem.line or 0)
                if state.pending.strip():
                    problems.append(Problem(self.path, "is torn: the last line is incomplete", state.lines + 1))
                active = list(state.active.values())
        except StorageError as error:
            yield Problem(self.path, str(error))
            return
        yield from problems
        yield from map(self._memory, active)

    def fetch(self, native: str) -> Memory:
        return self._memory(self._existing(native))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, _NATIVE, self.name)
        fields = dict(draft.fields)
        if draft.type is not None:
            fields["category"] = draft.type
        draft = replace(
            to_draft(
                draft.text, draft.scope or self.scopes[0], fields.get("category"), draft.tags,
                fields.get("source"), fields.get("tier"), fields.get("topic_id"),
            ),
            title=draft.title, thread=draft.thread, created_at=draft.created_at,
        )  # fmt: skip
        return self._memory(self._add(draft))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, _FIELDS, self.name)
        changes = dict(changes)
        if "type" in changes:
            changes["category"] = changes.pop("type")
        return self._memory(self._change(native, changes))

    def extend(self, native: str, text: str) -> Memory:
        to_text(text)  # of the right type; its indentation stays
        with self._held():
            old = self._existing(native)
            return self._memory(self._next(old, {"text": f"{old.text}\n\n{text}"}))

    def drop(self, native: str) -> Removed:
        with self._held():
            record = self._existing(native)
            now = self.clock()
            self._append(replace(record, version=record.version + 1, deleted_at=iso(now)))
        self.tombstones.bury((f"vault:{native}", record.text))
        return Removed(f"vault:{native}", "tombstone", self.path, now)

    def recover(self, native: str) -> Memory:
        with self._held() as state:
            record = state.latest.get(native)
            if record is None:
                raise NotFound(
                    f"The vault has no deleted memory {gate.shown(native)}.", hint="`memlane trash` lists them."
                )
            if record.deleted_at is None:
                raise AlreadyExists("The memory is not deleted.", hint="There is nothing to restore.")
            record = replace(record, version=record.version + 1, deleted_at=None, updated_at=self._now())
            self.tombstones.lift(record.text)
            self._append(record)
        return self._memory(record)

    def removed(self) -> Iterator[Removed]:
        with self._lock:
            deleted = [record for record in self._state().latest.values() if record.deleted_at is not None]
        for record in sorted(deleted, key=lambda record: time_of(record.deleted_at), reverse=True):
            yield Removed(f"vault:{record.id}", "tombstone", self.path, time_of(record.deleted_at))

    def _memory(self, record: Record) -> Memory:
        return to_memory(record, self._file)

    # -- writing

    @contextmanager
    def _held(self, changes: bool = True) -> Iterator[_State]:
        """What the vault says, while no other thread of ours writes and, for changes, no other process changes it.

        For changes all of the file is looked at again: a version that is based on a line which somebody has edited
        in place would take the edit back.
        """
        with (
            self._lock,
            files.locked(self._file) if changes and os.path.isfile(self._file) else nullcontext(),
        ):
            yield self._state(verify=changes)

    def _add(self, draft: Draft) -> Record:
        with self._held(draft.fields["topic_id"] is not None):
            record = self._admitted(draft)
            self._append(record)
            return self._wanted(record)

    def _admitted(self, draft: Draft) -> Record:
        """The record that a draft becomes. Raises Refused; writes nothing."""
        draft = gate.admit(self.checks, draft, self)
        fields = draft.fields
        old = self._known.active.get(fields["upsert_of"]) if "upsert_of" in fields else None
        extra = {name: value for name in ("title", "thread") if (value := getattr(draft, name)) is not None}
        if old is not None:
            return storable(
                replace(
                    old,
                    text=draft.text.strip(),
                    category=fields["category"] or old.category,
                    tags=list(draft.tags) or old.tags,
                    source=fields["source"] or old.source,
                    updated_at=self._now(),
                    version=old.version + 1,
                    extra={**old.extra, **extra},
                    remarks=draft.remarks,
                )
            )
        return storable(
            Record(
                id=self._new_id(),
                text=draft.text.strip(),
                scope=draft.scope or self.scopes[0],
                category=fields["category"] or "other",
                tier=fields["tier"],
                topic_id=fields["topic_id"],
                tags=list(draft.tags),
                created_at=iso(draft.created_at) or self._now(),
                source=fields["source"] or "manual",
                extra=extra,
                remarks=draft.remarks,
            )
        )

    def _change(self, id: str, changes: Mapping[str, Any]) -> Record:
        """Append the next version of a record. Raises NotFound, InvalidInput, Refused."""
        with self._held():
            return self._next(self._existing(id), changes)

    def _next(self, old: Record, changes: Mapping[str, Any]) -> Record:
        """Append the version after this one. What is given passes the gate; what stays does not."""
        fields = {name: normal(changes[name]) for name, normal in NORMAL.items() if name in changes}
        draft = Draft(
            to_text(changes["text"]) if "text" in changes else "",
            changes.get("title"),
            to_tags(changes.get("tags")),
            scope=lowered(changes.get("scope")),
            thread=changes.get("thread"),
            fields=fields,
        )
        checks = guarded(UPDATE_CHECKS if "text" in changes else LABEL_CHECKS, self.guard)
        draft = gate.admit(checks, draft, self)
        extra = {**old.extra, **{name: getattr(draft, name) for name in ("title", "thread") if name in changes}}
        record = replace(
            old,
            text=draft.text.strip() if "text" in changes else old.text,
            scope=draft.scope or old.scope,
            category=draft.fields.get("category") or old.category,
            tier=draft.fields.get("tier") or old.tier,
            topic_id=draft.fields["topic_id"] if "topic_id" in changes else old.topic_id,
            tags=list(draft.tags) if "tags" in changes else old.tags,
            source=draft.fields.get("source") or old.source,
            updated_at=self._now(),
            version=old.version + 1,
            extra={name: value for name, value in extra.items() if value is not None},
            remarks=draft.remarks,
        )
        self._append(storable(record))
        return self._wanted(record)

    def _wanted(self, record: Record) -> Record:
        """The record that was just written. It is wanted, even if the same text was deleted before."""
        lifted = self.tombstones.lift(record.text)
        return replace(record, remarks=(*record.remarks, *lifted)) if lifted else record

    def _append(self, *records: Record) -> None:
        if records:
            self._refuse_link()
            files.append_lines(self._file, render_lines(records))

    def _refuse_link(self) -> None:
        if self._home:
            refuse_link(self._file, self._home)

    def _now(self) -> str:
        return iso(self.clock()) or ""

    def _new_id(self) -> str:
        while (id := os.urandom(6).hex()) in self._known.latest:
            pass
        return id

    # -- reading

    def _state(self, verify: bool = False) -> _State:
        """What the file says now. Parses only what was appended since the last call, unless it was edited."""
        with self._lock:
            state = self._known
            self._refuse_link()
            try:
                data, anew = read_new(self._file, state.position, verify)
                while anew:
                    state = self._forget(state.position)
                    for line in split_lines(read_old(self._file)):
                        if isinstance(record := read_line(line), Record):
                            self._take(state, record)
                    self._read(state, data)
                    # A compaction may have carried lines over between the two reads: look once more.
                    data, anew = read_new(self._file, state.position)
            except OSError as error:
                self._forget()
                why = files.unreadable(self._file, error).why
                raise StorageError(
                    f"{self.path.name} cannot be read: {why}.", hint="Check the file's owner and mode."
                ) from error
            if data:
                self._read(state, data)
            return state

    def _read(self, state: _State, data: bytes) -> None:
        *lines, last = split_lines(state.pending + data)
        whole = isinstance(read_line(last), Record)  # editors leave out the last line end
        state.pending = b"" if whole else last
        for line in (*lines, last) if whole else lines:
            state.lines += 1
            if not line.strip():
                continue
            state.raw += 1
            record = read_line(line)
            if isinstance(record, str):
                state.malformed += 1
                state.problems.append(Problem(self.path, record, state.lines))
                continue
            twin = state.latest.get(record.id)
            if twin is not None and twin.version == record.version and twin != record:
                why = "has the same id and version as another line; the later one counts"
                state.problems.append(Problem(self.path, why, state.lines))
            self._take(state, record)
            if state.latest[record.id] is record:
                state.odd.pop(record.id, None)
                if odd := self._oddity(record):
                    state.odd[record.id] = Problem(self.path, odd, state.lines)
        if whole:
            state.lines -= 1  # its line end is still to come

    def _take(self, state: _State, record: Record) -> None:
        """Let a record count if it is newer than what is known of its id."""
        old = state.latest.get(record.id)
        if not supersedes(record, old):
            return
        state.latest[record.id] = record
        was, now = (None if entry is None or entry.deleted_at else entry for entry in (old, record))
        if was and was.topic_id:
            state.topics.get((was.scope, was.topic_id), {}).pop(was.id, None)
        if now and now.topic_id and now.tier == "register":
            state.topics.setdefault((now.scope, now.topic_id), {})[now.id] = now
        if now:
            state.active[now.id] = now
        else:
            state.active.pop(record.id, None)
        if was and now and (was.scope, was.text) == (now.scope, now.text):
            return
        if was and was.scope in self._alike:
            self._alike[was.scope].remove(was.id)
        if now and now.scope in self._alike:
            self._alike[now.scope].add(now.id, now.text)

    def _oddity(self, record: Record) -> str | None:
        """Why an active record is read but may not be seen everywhere."""
        if record.deleted_at:
            return None
        if record.tier not in TIERS:
            return f"has an unknown tier, so that no snapshot shows it: use one of {', '.join(TIERS)}"
        if record.scope not in self.scopes:
            return f"has a scope that is not configured: use one of {', '.join(self.scopes)}"
        return None

    def _forget(self, position: Position | None = None) -> _State:
        self._known = _State() if position is None else _State(position)
        self._alike = {}
        return self._known

    def _lookalike(self, scope: str | None, text: str) -> tuple[str, float] | None:
        """(id, score) of the scope's first active memory that the text is a near-duplicate of."""
        from memlane.gate.likeness import Lookalikes

        scope = scope or self.scopes[0]
        with self._lock:
            state = self._state()
            if scope not in self._alike:  # from here on `_take` keeps it up to date
                found = Lookalikes(self.similarity_threshold, self.token_overlap_threshold)
                found.fill((record.id, record.text) for record in state.active.values() if record.scope == scope)
                self._alike[scope] = found
            return self._alike[scope].find(text)

    def _register(self, scope: str | None, topic: str) -> Record | None:
        """The active register of a topic; the newest, should a race have made two."""
        with self._lock:
            found = self._state().topics.get((scope or self.scopes[0], topic), {})
            return min(found.values(), key=newest_first, default=None)

    def _existing(self, id: str) -> Record:
        record = self._state().active.get(id) if isinstance(id, str) else None
        if record is None:
            raise NotFound(f"The vault has no memory {gate.shown(str(id))}.", hint="`memlane list` shows the ids.")
        return record

    def _active(self, scope: str | Sequence[str] | None) -> list[Record]:
        with self._lock:
            records = list(self._state().active.values())
        if scope is None:
            return records
        names = [scope] if isinstance(scope, str) else scope
        if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
            raise InvalidInput("A scope is text, or a list of text.", hint=f"There are: {', '.join(self.scopes)}.")
        wanted = {name.strip().lower() for name in names}
        return [record for record in records if record.scope in wanted]


@dataclass(slots=True)
class _State:
    """What has been read of the file. `lines` counts all, `raw` those that are not blank."""

    position: Position = field(default_factory=Position)
    lines: int = 0
    raw: int = 0
    malformed: int = 0
    pending: bytes = b""  # a last line that does not end yet
    problems: list[Problem] = field(default_factory=list)
    odd: dict[str, Problem] = field(default_factory=dict)  # of records that are read all the same, by id
    latest: dict[str, Record] = field(default_factory=dict)
    active: dict[str, Record] = field(default_factory=dict)
    topics: dict[tuple[str, str], dict[str, Record]] = field(default_factory=dict)


def search_score(query: str, text: str) -> float:
    """Share of the query's words, + 0.3 when the query is a substring, + 0.4 × ratio; 0 when no word is shared."""
    from difflib import SequenceMatcher

    from memlane.gate.likeness import tokens

    wanted = tokens(query)
    shared = wanted & tokens(text)
    if not shared:
        return 0.0
    low_query, low_text = query.lower(), text.lower()
    bonus = 0.3 if low_query.strip() in low_text else 0.0
    return len(shared) / len(wanted) + bonus + 0.4 * SequenceMatcher(None, low_query, low_text).ratio()


def _first(records: list[Record], limit: int | None) -> list[Record]:
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput("The limit is not a whole number.", hint="Give a number, or None for all.")
    return records if limit is None else records[: max(limit, 0)]
