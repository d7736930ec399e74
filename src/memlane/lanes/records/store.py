"""Records (seed 001): one captured message per file, `<uuid>.md`, with six front-matter keys and the whole content.

A message is recognised again by the instant it occurred and the hash of its content. Its id is made from these two
(in the form of a version-4 UUID), so that two processes that capture the same message meet at the same file name,
and the file system decides who was first. Records under other ids, written by hand or by another tool, are looked
up by reading them. A record that was edited still stands for the message it was made from: capturing that message
again brings back neither the old text nor a second record.

The front matter has the seed's six keys and no other. The session that a message belongs to stands below them as a
comment, `# thread: …`, so that it travels with the file; a key `thread`, where somebody wrote one, is read as well.

An archived record lies in the folder `.archive`, unchanged: a memory like any other, with the status archived, that
only those find who ask for it.

Does not choose what to capture: that is `memlane.capture.messages`.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.dates import iso, moment, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.invisible import visible
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import joined, keywords
from memlane.core.values import replace
from memlane.disk import files, journal, trash, walking
from memlane.disk.names import inside, safe_parts
from memlane.disk.tombstones import Tombstones
from memlane.disk.trash import TRASH
from memlane.lanes import Memories, Worth, from_files, known, may_show, readable
from memlane.lanes.records.record import (
    ARCHIVE,
    KEYS,
    TAKEN,
    Record,
    broken_rules,
    checked,
    content_hash,
    is_archived,
    is_made,
    is_record_id,
    made_id,
    message_key,
    native_of,
    parse_file,
    render,
    rewritten,
    subject_of,
    to_memory,
)

if TYPE_CHECKING:
    from memlane.capture.messages import Captured
    from memlane.lanes.records.answers import RecordAnswers

KEYWORDS = 10  # that a message without any gets
FUZZY = 0.6
_FIELDS = frozenset({"text", "title", "tags", "scope", "thread", "created_at"})
_ANY_ID = "00000000-0000-4000-8000-000000000000"


class RecordLane:
    """A folder of captured messages."""

    name = "records"

    def __init__(
        self,
        root: str | Path = "local-recall/memories",
        *,
        clock: Callable[[], datetime] = utc_now,
        guard: gate.Guard = gate.DEFAULT,
        tombstones: Tombstones | None = None,
        memories: Memories | None = None,
    ) -> None:
        self.root = Path(root).absolute()
        files.take_root(self.root, chosen=False)
        self.clock = clock
        self.checks = gate.common(guard, keeps_text=True)
        self.tombstones = tombstones or Tombstones()
        self.memories = memories or from_files(self)
        self._foreign: dict[str, tuple[tuple[int, int], tuple[datetime | None, str] | None]] = {}
        self._listed: tuple[int, frozenset[str]] = (0, frozenset())
        self._gone: tuple[tuple[int, ...], frozenset[str]] = ((), frozenset())

    # -- the seed's verbs

    def create(
        self,
        content: str,
        *,
        subject: str,
        keywords: Sequence[str],
        applies_to: str = "global",
        occurred_at: str | datetime | None = None,
        id: str | None = None,
        content_hash: str | None = None,
        thread: str | None = None,
    ) -> Record:
        """Store a message, or return the record that already holds it (same instant, same content).

        Writes one file. Raises InvalidInput for a field that breaks the seed's rules, Refused by the gate.
        """
        when = self.clock() if occurred_at is None else occurred_at
        draft = Draft(
            content,
            title=subject,
            tags=tuple(keywords) if not isinstance(keywords, str) else (keywords,),
            scope=applies_to,
            thread=thread,
            fields={"id": id, "occurred_at": iso(when) if isinstance(when, datetime) else when},
        )
        record, remarks = self._create(draft)
        return replace(record, remarks=remarks)

    def capture(self, transcript: str | Path) -> Captured:
        """Store what is worth keeping of a client's transcript, from its beginning: see `memlane.capture.messages`.

        Writes one file per message that is new here. Raises NotFound, InvalidInput, StorageError.
        """
        from memlane.capture.messages import capture_into

        return capture_into(self, transcript)

    def capture_message(self, draft: Draft, *, dry_run: bool = False) -> tuple[Record, bool]:
        """Store a message of a transcript, and say whether it is new. With `dry_run` nothing is written.

        Subject and keywords are derived where the draft has none. A message that was deleted or archived here is not
        new: it does not come back because a transcript still has it; nor does a text that was deleted elsewhere in
        the bank. Raises InvalidInput, Refused.
        """
        record, _ = self._drafted(draft, derive=True)
        if self._holder(record) or os.path.basename(record.path) in self._gone_names():
            return record, False
        if self.tombstones.deleted(record.content) or self.tombstones.knows(f"records:{record.id}"):
            return record, False  # the id stands for the message, should the record have been edited
        return record, dry_run or self._write(record) is None

    def get(self, id: str) -> Record | None:
        """The record of this id, or None."""
        try:
            record = self._record(self._existing(id))
        except NotFound:
            return None
        return None if self.tombstones.held(to_memory(record)) else record

    def list(
        self,
        *,
        scope: str | None = None,
        keyword: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        **filters: Any,
    ) -> builtins.list[Record]:
        """Records, the newest first by the instant they occurred, whatever the time zone it is written in.

        `filters` are those of every list: `tags`, `since`, `until`.
        """
        fits = may_show(self.tombstones, {"scope": scope, **filters})
        memories = self.memories if limit is not None else from_files(self)  # who wants all has every file read anyway
        last = None if limit is None else offset + max(limit, 0)
        return self._read(memories(fits, limit=last, worth=_having(keyword) if keyword else None)[offset:])

    def find(self, query: str, *, limit: int = 10, scope: str | None = None, **filters: Any) -> builtins.list[Record]:
        """Records whose keywords match the words of the query, fuzzily; best first, then the newest.

        `filters` are those of every search: `tags`, `since`, `until`.
        """
        words = query.lower().split()
        likeness = cache(_likeness)

        def worth(tags: Collection[str]) -> float:
            total = sum(max((likeness(word, keyword.lower()) for keyword in tags), default=0.0) for word in words)
            return total / len(words)

        fits = may_show(self.tombstones, {"scope": scope, **filters})
        return self._read(self.memories(fits, limit=max(limit, 0), worth=worth) if words else ())

    def _read(self, memories: Iterable[Memory]) -> builtins.list[Record]:
        """The records of these memories, as they are in their files."""
        return [record for memory in memories if isinstance(record := parse_file(memory.file), Record)]

    def index(self) -> dict[str, Any]:
        """The keyword index as it stands on disk now: every keyword, lower-cased, with its record ids."""
        by_keyword: dict[str, list[str]] = {}
        heads: dict[str, dict[str, Any]] = {}
        for record in self.list():
            heads[record.id] = {key: value for key, value in record.to_dict().items() if key in KEYS}
            for keyword in dict.fromkeys(map(str.lower, record.keywords)):
                by_keyword.setdefault(keyword, []).append(record.id)
        return {"version": 1, "built_at": iso(self.clock()), "keywords": by_keyword, "memories": heads}

    def validate(self) -> builtins.list[Problem]:
        """Everything the seed's rules object to, unreadable files and wrong hashes included. Writes nothing."""
        problems: list[Problem] = []
        for path in self._files():
            record = path if isinstance(path, Problem) else parse_file(path)
            if isinstance(record, Problem):
                problems.append(record)
            elif record is not None:
                problems.extend(Problem(Path(record.path), why) for why in broken_rules(record))
        return problems

    def prune(
        self, *, keep_days: int = 0, keep_count: int = 0, dry_run: bool = False
    ) -> builtins.list[tuple[Record, str]]:
        """Archive the records older than so many days and those beyond the newest so many; 0 means no limit.

        Returns them with the reason, the oldest first. With `dry_run`, changes nothing.
        """
        oldest = self.clock() - timedelta(days=keep_days) if keep_days else None
        pruned = []
        for place, record in enumerate(self.list()):
            if oldest is not None and record.instant < oldest:
                pruned.append((record, f"older than {keep_days} days"))
            elif keep_count and place >= keep_count:
                pruned.append((record, f"beyond the newest {keep_count}"))
        pruned.reverse()
        for record, _ in () if dry_run else pruned:
            journal.step(f"records:{record.native_id}", "archive")
            self.archive(record.native_id)
        return pruned

    @property
    def answers(self) -> RecordAnswers:
        from memlane.lanes.records.answers import RecordAnswers

        return RecordAnswers(self)

    @staticmethod
    def options(_: Any) -> dict[str, Any]:
        return {}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        yield from self._files()
        yield from walking.walk(self.root / ARCHIVE)

    def _files(self) -> Iterator[str | Problem]:
        """All but what is archived."""
        root = os.fspath(self.root)
        for path in walking.walk(root):
            if isinstance(path, str) and path.rpartition("/")[0] != root:
                why = "lies in a sub-folder and is not read; records lie side by side in one folder"
                yield Problem(Path(path), why)
            else:
                yield path

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        record = parse_file(path)
        if isinstance(record, Problem):
            yield record
        elif record is not None:
            yield to_memory(record)

    def fetch(self, native: str) -> Memory:
        return to_memory(self._record(self._existing(native)))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, frozenset(KEYS), self.name)
        given = draft.fields.get
        occurred_at = given("occurred_at") or iso(draft.created_at or self.clock())
        draft = replace(
            draft,
            title=draft.title or given("subject"),
            tags=draft.tags or tuple(given("keywords", ())),
            scope=draft.scope or given("applies_to") or "global",
            fields={"id": given("id"), "occurred_at": occurred_at},
        )
        record, remarks = self._create(draft, derive=True)
        return replace(to_memory(record), remarks=remarks)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, _FIELDS, self.name)
        return self._change(native, lambda _: changes)

    def extend(self, native: str, text: str) -> Memory:
        return self._change(native, lambda old: {"text": joined(old.content, text)})

    def drop(self, native: str) -> Removed:
        record = parse_file(self._existing(native))
        removed = self.set_aside(native)
        if isinstance(record, Record):
            self.tombstones.bury((removed.id, record.content))
        return removed

    def set_aside(self, native: str) -> Removed:
        """Move a record that another one replaces into the trash: its text does not count as deleted."""
        path = self._existing(native)
        now = self.clock()
        id = f"records:{native_of(path)}"
        with files.locked(path):  # so that nobody changes what is on its way out
            moved = trash.put(path, self.root, now)
        return Removed(id, "trash", Path(moved), now)

    def archive(self, native: str) -> Removed:
        """Move a record into the folder `.archive`: it is found by those who ask for it. `recover` brings it back."""
        path = self._existing(native)
        if is_archived(path):
            raise AlreadyExists("The record is archived already.", hint="There is nothing to do.")
        target = inside(self.root, ARCHIVE, os.path.basename(path))
        with files.locked(path):
            files.move(path, target)
        return Removed(f"records:{native_of(path)}", "archive", Path(target), self.clock())

    def recover(self, native: str) -> Memory:
        """Take a record out of the archive or, where none of this id is there, out of the trash."""
        path = self._path(native.removesuffix(TAKEN))
        if os.path.isfile(self._archived(path)):
            lies, back = self._archived(path), path
        else:
            name, lies = self._trashed(native)
            back = inside(self.root, *name.split("/"))
        if isinstance(record := parse_file(lies), Record):
            self.tombstones.lift(record.content, forgotten=False)
        files.move(lies, back)
        return to_memory(self._record(back))

    def _trashed(self, native: str) -> tuple[str, str]:
        """(name it had, where it lies) of what was deleted last under an id. Raises NotFound."""
        for name, lies, _ in trash.contents(self.root):
            if native_of(os.path.join(self.root, name)) == native:
                return name, lies
        raise NotFound(f"The trash has no record {gate.shown(native)}.", hint="`memlane restore` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            yield Removed(f"records:{native_of(os.path.join(self.root, name))}", "trash", Path(lies), when)

    # -- files

    def _create(self, draft: Draft, *, derive: bool = False) -> tuple[Record, tuple[str, ...]]:
        record, remarks = self._drafted(draft, derive=derive)
        if os.path.isfile(self._archived(record.path)) and not os.path.lexists(record.path):
            self.recover(record.native_id)  # somebody wants it again
        holder = self._holder(record) or self._write(record)
        return self._record(holder) if holder else record, (*remarks, *_lifted(self.tombstones, record))

    def _drafted(self, draft: Draft, *, derive: bool) -> tuple[Record, tuple[str, ...]]:
        """The record that a draft makes once it has passed the gate and the rules, and what the gate changed.

        With `derive`, a missing subject and missing keywords are taken from what can be seen of the text.
        """
        id, when = draft.fields.get("id"), draft.fields["occurred_at"]
        if id is not None and not is_record_id(id):
            raise InvalidInput("The id is not a version-4 UUID.", hint="Leave it out: one is made.")
        draft = gate.admit(self.checks, draft, self)
        if derive:
            said = visible(draft.text)
            words = draft.tags or tuple(keywords(said, KEYWORDS))
            draft = replace(draft, title=draft.title or subject_of(said), tags=words)
        id = id or made_id(message_key(when, content_hash(draft.text)))
        return checked(draft, id, when, self._path(id)), draft.remarks

    def _write(self, record: Record) -> str | None:
        """Write a new record; the path of the present one, when another process was first with the same message."""
        made = made_id(message_key(record.occurred_at, record.content_hash)) == record.id
        try:
            files.create(record.path, files.encoded(render(record)))
        except AlreadyExists:
            if not made:
                raise
            return record.path
        if made:  # the folder's new time is our own doing
            self._listed = (os.stat(self.root).st_mtime_ns, self._listed[1])
        return None

    def _change(self, native: str, changes_to: Callable[[Record], Mapping[str, Any]]) -> Memory:
        """Read, change and write one record under its lock. The whole new record passes the gate and the rules."""
        path = self._existing(native)
        with files.locked(path):
            old = self._record(path)
            changes = changes_to(old)
            draft = Draft(
                changes.get("text", old.content),
                title=changes.get("title", old.subject),
                tags=tuple(changes.get("tags", old.keywords)),
                scope=changes.get("scope", old.applies_to),
                thread=changes.get("thread", old.thread),
                over=old.content,
            )
            draft = gate.admit(self.checks, draft, self)
            when = changes.get("created_at", old.occurred_at)
            new = checked(draft, _ANY_ID, iso(when) if isinstance(when, datetime) else when, path)
            new = replace(new, id=old.id, objected=old.objected)  # an id that is no version-4 UUID may stay what it is
            if new != old:
                files.replace(path, files.encoded(rewritten(readable(path), old, new)))
        return replace(to_memory(new), remarks=(*draft.remarks, *_lifted(self.tombstones, new)))

    def _holder(self, record: Record) -> str | None:
        """Where the record lies that already holds this message: under the id made from it, or under a foreign id."""
        key = message_key(record.occurred_at, record.content_hash)
        path = os.path.join(self.root, f"{made_id(key)}.md")
        if os.path.exists(path):
            return path
        for name in self._foreign_names():
            other = os.path.join(self.root, name)
            try:
                info = os.stat(other)
            except OSError:
                continue
            stamp = (info.st_mtime_ns, info.st_size)
            if (entry := self._foreign.get(name)) is None or entry[0] != stamp:
                found = parse_file(other)
                found_key = (moment(found.occurred_at), found.content_hash) if isinstance(found, Record) else None
                entry = self._foreign[name] = (stamp, found_key)
            if entry[1] == key:
                return other
        return None

    def _foreign_names(self) -> frozenset[str]:
        """The records whose ids were not made here. The listing is remembered while the folder does not change."""
        try:
            changed = os.stat(self.root).st_mtime_ns
            if changed != self._listed[0]:
                every = files.names_in(self.root)
                found = [name for name in every if not (name.isascii() and is_made(name.encode()))]  # nearly none
                self._listed = (changed, frozenset(name for name in found if name.endswith(".md") and name[0] != "."))
        except OSError:
            return frozenset()
        return self._listed[1]

    def _gone_names(self) -> frozenset[str]:
        """The names of the records in the trash and in the archive, remembered while these folders do not change."""
        changed = tuple(_changed_at(os.path.join(self.root, name)) for name in (TRASH, ARCHIVE))
        if changed != self._gone[0]:
            gone = {os.path.basename(name) for name, _, _ in trash.contents(self.root)}
            archived = os.path.join(self.root, ARCHIVE)
            self._gone = (changed, frozenset(gone.union(files.names_in(archived) if os.path.isdir(archived) else ())))
        return self._gone[1]

    def _archived(self, path: str) -> str:
        """Where a record of this path lies once it is archived."""
        return os.path.join(self.root, ARCHIVE, os.path.basename(path))

    def _record(self, path: str) -> Record:
        record = parse_file(path)
        if isinstance(record, Record):
            return record
        if record is None:
            raise NotFound("The record is gone.", hint="`memlane list --lane records` shows the ids.")
        raise InvalidInput(f"The record cannot be read: it {record.why}.", hint="Mend the file in an editor.")

    def _path(self, id: str) -> str:
        if not isinstance(id, str):
            raise InvalidInput("The id is not a string.", hint="Give the record's UUID.")
        parts = safe_parts(f"{id.removesuffix('.md')}.md")
        return inside(self.root, *parts)

    def _existing(self, id: str) -> str:
        """The file of a record, archived or not. Raises NotFound."""
        path = self._path(id)
        if not os.path.isfile(path):
            path = self._archived(self._path(id.removesuffix(".md").removesuffix(TAKEN)))
        if not os.path.isfile(path):
            raise NotFound(f"There is no record {gate.shown(id)}.", hint="`memlane list --lane records` shows the ids.")
        return path


def mark_objected(record: Record) -> None:
    """Note in a record's file that the user objected to it in the next prompt. Raises NotFound, StorageError."""
    path = record.path
    with files.locked(path):
        old = parse_file(path)
        if isinstance(old, Record) and not old.objected:
            files.replace(path, files.encoded(rewritten(readable(path), old, replace(old, objected=True))))


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _having(keyword: str) -> Worth:
    """Something for those who have a keyword, whatever its case."""
    return lambda tags: float(keyword.lower() in map(str.lower, tags))


def _likeness(word: str, keyword: str) -> float:
    """1.0 for the keyword or one of its words, down to FUZZY for a misspelt one, 0 below that."""
    parts = {keyword, *re.findall(r"\w+", keyword)}
    return 1.0 if word in parts else max(_ratio(word, part) for part in parts)


def _ratio(word: str, keyword: str) -> float:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, word, keyword, autojunk=False)
    if matcher.real_quick_ratio() < FUZZY or matcher.quick_ratio() < FUZZY:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= FUZZY else 0.0


def _lifted(tombstones: Tombstones, record: Record) -> tuple[str, ...]:
    """What to say of a record that was just written: somebody wants it, even if the same text was deleted before."""
    return tombstones.lift(record.content, f"records:{record.native_id}", record.subject)
