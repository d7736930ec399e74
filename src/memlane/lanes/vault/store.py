"""The vault (seed 002): an append-only JSONL log, one JSON object per line; the highest version of an id is the memory.

Whoever writes holds the file's lock from the moment he reads until his lines are appended: no two changes are based on
the same version, no topic gets two registers, and the vault does not get fuller than it may. The file is made, empty,
before its first line, so that the first writers have something to lock, too. The seed's verbs raise Refused (a
ValueError) and NotFound (a KeyError) and return Records. Reading and appending lines is up to `log`, their format to
`record`, the gate to `checks`. Does not use the index: one file holds all of a vault, and `kept` has what is known of
a long one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.choosing import fitting
from memlane.core.dates import iso, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.values import replace
from memlane.disk import files
from memlane.disk.names import STRAY, is_stray
from memlane.disk.tombstones import Tombstones, plain
from memlane.lanes import known
from memlane.lanes.vault import proposals
from memlane.lanes.vault.checks import CHECKS, LABEL_CHECKS, UPDATE_CHECKS, guarded
from memlane.lanes.vault.log import Fits, Known, VaultLog
from memlane.lanes.vault.record import (
    CATEGORIES,
    LABELS,
    TIERS,
    Record,
    from_draft,
    item_to_draft,
    lowered,
    snapshot,
    storable,
    time_of,
    to_draft,
    to_memory,
    to_tags,
    to_text,
    to_topic,
)
from memlane.lanes.vault.search import best

if TYPE_CHECKING:
    from memlane.lanes.vault.answers import VaultAnswers

SCOPES = ("shared", "orion", "elysia")
FLOOR = 0.50
_FIELDS = frozenset({"text", "title", "tags", "type", "scope", "thread", *LABELS})


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
        by_meaning: bool = False,
        kept_at: Callable[[], Path | None] = lambda: None,
    ) -> None:
        """`home` is the bank's folder: a link in the vault's place that leads out of it is not followed. With
        `by_meaning`, as in a bank, a near-duplicate that carries another value is stored: see `checks`.
        `kept_at` says where to keep what is known of a long vault.
        """
        self.root = self.path = Path(path).absolute()
        files.take_root(self.path.parent, chosen=False)
        self.log = VaultLog(self.path, home, kept_at)
        self.similarity_threshold = similarity_threshold
        self.max_active = max_active
        self.token_overlap_threshold = token_overlap_threshold
        self.by_meaning = by_meaning
        self.scopes = tuple(scope.lower() for scope in scopes)  # () takes any name
        self.default_scope = self.scopes[0] if self.scopes else SCOPES[0]
        self.clock = clock
        self.guard = guard
        self.checks = guarded(CHECKS, guard)
        self.tombstones = tombstones or Tombstones()

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
        labels = {"category": category, "source": source, "tier": tier, "topic_id": topic_id}
        return self._add(to_draft(text, scope, tags, **labels)).id

    def bulk_add(self, items: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Add many in one append. What the gate refuses is reported with its place in `items`; the rest is stored."""
        items = list(items)  # before anything is locked: an iterable may raise, or take its time
        with self.log.adding(lambda: bool(self._admit_all(items)[0])):
            try:
                stored, errors = self._admit_all(items)
                self.log.append(*stored.values())
            except BaseException:
                self.log.forget()
                raise
        for record in stored.values():
            self._lifted(record)
        return {"stored": [{"index": index, "id": record.id} for index, record in stored.items()], "errors": errors}

    def _admit_all(self, items: Sequence[Any]) -> tuple[dict[int, Record], list[dict[str, Any]]]:
        """What the gate makes of many items: records and refusals, by place. The caller holds the log."""
        stored: dict[int, Record] = {}
        errors: list[dict[str, Any]] = []
        for index, item in enumerate(items):
            try:
                stored[index] = record = self._admitted(item_to_draft(item))
                self.log.known.take(record)  # so that the next item of the batch is compared with this one
            except MemlaneError as error:
                errors.append({"index": index, "message": str(error)})
        return stored, errors

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
        labels = {"category": category, "source": source, "tier": "register", "topic_id": topic_id}
        return self._add(to_draft(text, scope, tags, **labels))

    def delete_memory(self, id: str) -> bool:
        """Append a tombstone. False when the id is unknown or already deleted."""
        return bool(self.bulk_delete([id])["deleted"])

    def bulk_delete(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Append tombstones for all ids that are active, in one append."""
        deleted: dict[str, Record] = {}
        missing: list[str] = []
        ids = list(ids)
        with self.log.changing() as state:
            for id in ids:
                old = state.active.get(id) if isinstance(id, str) and id not in deleted else None
                if old is not None:
                    deleted[id] = old.next(deleted_at=self._now())
                else:
                    missing.append(id)
            self.log.append(*deleted.values())
        self.tombstones.bury(*((f"vault:{id}", record.text) for id, record in deleted.items()))
        return {"deleted": list(deleted), "not_found": missing}

    def recall_memories(
        self,
        scope: str | Sequence[str] | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[Record]:
        """Active memories, the newest first; `tags` means any of them."""
        scopes, of_category, any_of = _scopes(scope), lowered(category), {*to_tags(tags)}
        may_show, most = self._may_show(), _most(limit)
        with self.log.consulting() as state:
            return list(islice(filter(may_show, state.newest(scopes, of_category, any_of)), most))

    def search_memories(
        self, query: str, scope: str | Sequence[str] | None = None, limit: int | None = None, **filters: Any
    ) -> list[Record]:
        """Active memories that share a word with the query, by `search_score`, best first.

        `filters` are those of every search: `tags`, `type` (the category), `since`, `until`.
        """
        if not isinstance(query, str):
            raise InvalidInput("The query is not text.", hint="Give some words.")
        from memlane.gate.likeness import tokens

        fits, scopes, may_show, most = fitting(**filters), _scopes(scope), self._may_show(), _most(limit)

        def chosen(records: Iterable[Record]) -> Iterator[Record]:
            return (record for record in records if scopes is None or record.scope in scopes)

        with self.log.consulting() as state:
            groups = ((count, chosen(records)) for count, records in state.by_words(tokens(query)))
            return best(groups, query, lambda one: may_show(one) and fits(self._memory(one)), most)

    def find_consolidation_candidates(
        self, scope: str | Sequence[str] | None = None, floor: float = FLOOR, *, similarity_floor: float | None = None
    ) -> list[tuple[Record, Record, float]]:
        """(newer, older, score) of similar active memories in the same scope, best first. Writes nothing.

        The score is the larger of word overlap and sequence ratio. `similarity_floor` is another name for `floor`.
        """
        return proposals.similar_pairs(self._active(scope), floor if similarity_floor is None else similarity_floor)

    def propose_deletions(self, scope: str | Sequence[str] | None = None, floor: float = FLOOR) -> list[dict[str, Any]]:
        """What could go, one dictionary with `reason` and `detail` per memory. Deletes nothing, writes nothing."""
        return proposals.deletions(self.recall_memories(scope), floor, self.clock(), self.by_meaning)

    def promote_to_canon(self, memory_id: str, canonical_text: str, tags: Sequence[str] | None = None) -> Record:
        """Append a canon version of a register; its topic is cleared, so that no upsert overwrites it.

        Raises NotFound, InvalidInput when it is canon already, Refused.
        """
        changes: dict[str, Any] = {"text": canonical_text, "tier": "canon", "source": "promotion", "topic_id": None}
        with self.log.changing():
            old = self.get_memory(memory_id)
            if old.tier == "canon":
                raise InvalidInput("The memory is canon already.", hint="Update it, if it should say something else.")
            return self._next(old, changes | ({} if tags is None else {"tags": tags}))

    def build_snapshot(self, scope: str | Sequence[str] | None = None) -> str:
        """Canon and the registers with a topic as Markdown, "" when there are none."""
        return snapshot(self._active(scope))

    def vault_stats(self) -> dict[str, Any]:
        """Counts of what is active, deleted, raw and damaged."""
        with self.log.consulting() as state:
            return stats(state, self.max_active)

    def compact(self) -> dict[str, int]:
        """Rewrite the file with the latest active versions only, by category and age: there is no way back.

        What others write meanwhile is kept. Malformed lines go to `<file>.rejected`.
        """
        before, after = self.log.compact()
        return {"lines_before": before, "lines_after": after, "lines_removed": before - after}

    def get_memory(self, id: str) -> Record:
        """One active record. Raises NotFound."""
        with self.log.reading() as state:
            record: Record | None = state.active.get(id) if isinstance(id, str) else None
        if record is None:
            raise NotFound(f"The vault has no memory {gate.shown(str(id))}.", hint="`memlane list` shows the ids.")
        return record

    def history(self, id: str) -> list[Record]:
        """All versions of an id that the file still has, oldest first, tombstones included."""
        return self.log.history(id)

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
            "by_meaning": True,
        }

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        if self.log.home and is_stray(self.log.file, self.log.home):
            yield Problem(self.path, STRAY)
        elif os.path.isfile(self.path):
            yield self.log.file
        elif os.path.lexists(self.path):
            yield Problem(self.path, "is not a file")

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        if os.fspath(path) != self.log.file:
            return
        try:
            with self.log.consulting() as state:
                active = list(state.active.values())
                problems = _problems(state, self.scopes)
        except StorageError as error:
            yield Problem(self.path, str(error))
            return
        for line, why in problems:
            yield Problem(self.path, why, line)
        yield from map(self._memory, active)

    def fetch(self, native: str) -> Memory:
        with self.log.consulting():
            return self._memory(self.get_memory(native))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, frozenset(LABELS), self.name)
        fields = dict(draft.fields) if draft.type is None else {**draft.fields, "category": draft.type}
        normal = to_draft(draft.text, draft.scope or self.default_scope, tags=draft.tags, **fields)
        kept = {name: getattr(draft, name) for name in ("title", "thread", "created_at", "replaces")}
        return self._memory(self._add(replace(normal, **kept)))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, _FIELDS, self.name)
        changes = dict(changes)
        if "type" in changes:
            changes["category"] = changes.pop("type")
        return self._memory(self._change(native, changes))

    def extend(self, native: str, text: str) -> Memory:
        to_text(text)  # of the right type; its indentation stays
        with self.log.changing():
            old = self.get_memory(native)
            return self._memory(self._next(old, {"text": f"{old.text}\n\n{text}"}))

    def drop(self, native: str) -> Removed:
        with self.log.changing():
            record = self.get_memory(native)
            now = self.clock()
            self.log.append(record.next(deleted_at=iso(now)))
        self.tombstones.bury((f"vault:{native}", record.text))
        return Removed(f"vault:{native}", "tombstone", self.path, now)

    def recover(self, native: str) -> Memory:
        with self.log.changing() as state:
            record = state.latest.get(native)
            if record is None:
                raise NotFound(
                    f"The vault has no deleted memory {gate.shown(native)}.", hint="`memlane restore` lists them."
                )
            if record.deleted_at is None:
                raise AlreadyExists("The memory is not deleted.", hint="There is nothing to restore.")
            record = record.next(deleted_at=None, updated_at=self._now())
            self.tombstones.lift(record.text, forgotten=False)
            self.log.append(record)
        return self._memory(record)

    def removed(self) -> Iterator[Removed]:
        times: dict[str, datetime] = {}
        with suppress(OSError, StorageError), self.log.reading() as state:  # `parse` reports what cannot be read
            active = {*state.active}
            deleted = (state.latest[id] for id in state.latest if id not in active)
            times = {record.id: time_of(record.deleted_at) for record in deleted}
        for id in sorted(times, key=times.__getitem__, reverse=True):
            yield Removed(f"vault:{id}", "tombstone", self.path, times[id])

    # -- inside

    def _memory(self, record: Record) -> Memory:
        return to_memory(record, self.log.file)

    def _add(self, draft: Draft) -> Record:
        with self.log.adding(lambda: bool(self._admitted(draft))):
            record = self._admitted(draft)
            self.log.append(record)
            return self._lifted(record)

    def _admitted(self, draft: Draft) -> Record:
        """The record that a draft becomes. Raises Refused; writes nothing."""
        draft = gate.admit(self.checks, draft, self)
        fields, state = draft.fields, self.log.known
        extra = {name: value for name in ("title", "thread") if (value := getattr(draft, name)) is not None}
        if old := state.active.get(fields.get("upsert_of", "")):
            given = {"category": lowered(fields["category"]), "source": fields["source"], "tags": list(draft.tags)}
            given["topic_id"] = fields["topic_id"]  # one that it did not have
            values = {name: value for name, value in given.items() if value} | {"extra": {**old.extra, **extra}}
            values |= {"text": draft.text.strip(), "updated_at": self._now(), "remarks": draft.remarks}
            return storable(old.next(**values))
        while (id := os.urandom(6).hex()) in state.latest:
            pass
        return from_draft(
            draft,
            id=id,
            scope=draft.scope or self.default_scope,
            created_at=iso(draft.created_at) or self._now(),
            source=fields["source"] or "manual",
            extra=extra,
            remarks=draft.remarks,
        )

    def _change(self, id: str, changes: Mapping[str, Any]) -> Record:
        """Append the next version of a record. Raises NotFound, InvalidInput, Refused."""
        with self.log.changing():
            return self._next(self.get_memory(id), changes)

    def _next(self, old: Record, changes: Mapping[str, Any]) -> Record:
        """Append the version after this one. What is given passes the gate; what stays does not."""
        text = to_text(changes["text"]) if "text" in changes else ""
        given = (text, changes.get("title"), to_tags(changes.get("tags")))
        fields = {name: normal(changes[name]) for name, normal in LABELS.items() if name in changes}
        scope, thread = lowered(changes.get("scope")), changes.get("thread")
        draft = Draft(*given, scope=scope, thread=thread, fields=fields, over=old.text)
        checks = guarded(UPDATE_CHECKS if "text" in changes else LABEL_CHECKS, self.guard)
        draft = gate.admit(checks, draft, self)
        labels = {"scope": draft.scope, **draft.fields, "category": lowered(draft.fields.get("category"))}
        values = {name: value for name, value in labels.items() if value or name == "topic_id"}  # that may be cleared
        if "text" in changes:
            values["text"] = draft.text.strip()
        if "tags" in changes:
            values["tags"] = list(draft.tags)
        extra = {**old.extra, **{name: getattr(draft, name) for name in ("title", "thread") if name in changes}}
        values["extra"] = {name: value for name, value in extra.items() if value is not None}
        record = old.next(**values, updated_at=self._now())
        record = storable(replace(record, remarks=(*draft.remarks, *_twins(record, self.log.known))))
        self.log.append(record)
        return self._lifted(record)

    def _lifted(self, record: Record) -> Record:
        """The record that was just written: somebody wants it, even if the same text was deleted before."""
        memory = self._memory(record)
        lifted = self.tombstones.lift(memory.text, memory.id, memory.title)
        return replace(record, remarks=(*record.remarks, *lifted)) if lifted else record

    def _now(self) -> str:
        return iso(self.clock()) or ""

    def _active(self, scope: str | Sequence[str] | None) -> list[Record]:
        """The active records of some scopes."""
        scopes, may_show = _scopes(scope), self._may_show()
        with self.log.consulting() as state:
            known = list(state.active.values())
        return [record for record in known if (scopes is None or record.scope in scopes) and may_show(record)]

    def _may_show(self) -> Fits:
        """Whether a record is not one that was deleted or forgotten elsewhere in the bank."""
        if not self.tombstones.any():
            return lambda _: True
        return lambda record: not self.tombstones.held(self._memory(record))


def _scopes(scope: str | Sequence[str] | None) -> set[str] | None:
    """The names of scopes as records have them; None for all."""
    if scope is None:
        return None
    names = [scope] if isinstance(scope, str) else scope
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise InvalidInput("A scope is text, or a list of text.", hint="Give a name such as shared.")
    return {name.strip().lower() for name in names}


def stats(state: Known, max_active: int) -> dict[str, Any]:
    """Counts of what is active, deleted, raw and damaged."""
    active, counts = len(state.active), state.counts()

    def by(kind: str) -> dict[str, int]:
        return {value: count for (of, value), count in counts.items() if of == kind}

    categories = by("category")
    return {
        "active_count": active,
        "max_active": max_active,
        "utilization_pct": round(100 * active / max_active, 1) if max_active else 100.0,
        "deleted_count": len(state.latest) - active,
        "raw_lines": state.raw,
        "compactable_lines": state.raw - active,
        "bloat_ratio": round(state.raw / active, 2) if active else float(state.raw or 1),
        "by_scope": by("scope"),
        "by_tier": by("tier"),
        "by_category": categories,
        "register_topics": counts["topic", ""],
        "unknown_categories": sum(count for name, count in categories.items() if name not in CATEGORIES),
        "malformed_lines": state.malformed,
    }


def _twins(record: Record, state: Known) -> Iterator[str]:
    """A remark for each memory of the scope that a changed one repeats word for word."""
    from memlane.gate.likeness import tokens

    longest = sorted(tokens(record.text), key=len)[-1:]
    for other in state.active_with(longest) if longest else state.active.values():
        if other.id != record.id and (other.scope, plain(other.text)) == (record.scope, plain(record.text)):
            yield f"vault:{other.id} says the same, word for word: delete one of the two"


def _oddity(record: Record, scopes: Sequence[str]) -> str | None:
    """Why a record is read but may not be seen everywhere."""
    if record.tier not in TIERS:
        return f"has an unknown tier, so that no snapshot shows it: use one of {', '.join(TIERS)}"
    if scopes and record.scope not in scopes:
        return f"has a scope that is not configured: use one of {', '.join(scopes)}"
    return None


def _most(limit: int | None) -> int | None:
    """How many are wanted, at most; None for all."""
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput("The limit is not a whole number.", hint="Give a number, or None for all.")
    return None if limit is None else max(limit, 0)


def _problems(state: Known, scopes: Sequence[str]) -> list[tuple[int, str]]:
    """(line, what is wrong with it) of everything that was read."""
    odd = ((record.id, why) for record in state.active.values() if (why := _oddity(record, scopes)))
    problems = [*state.problems, *((line, why) for id, why in odd if (line := state.line_of(id)))]
    problems.sort(key=lambda problem: problem[0])
    if state.pending.strip():
        problems.append((state.lines + 1, "is torn: the last line is incomplete"))
    return problems
