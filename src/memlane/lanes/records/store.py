"""Records (seed 001): one captured message per file, `<uuid>.md`, with six front-matter keys and the whole content.

A message is recognised again by the instant it occurred and the hash of its content. Its id is made from these two
(in the form of a version-4 UUID), so that two processes that capture the same message meet at the same file name,
and the file system decides who was first. Records under other ids, written by hand or by another tool, are looked
up by reading them. A record that was edited still stands for the message it was made from: capturing that message
again brings back neither the old text nor a second record.

The front matter has the seed's six keys and no other. The session that a message belongs to stands below them as a
comment, `# thread: …`, so that it travels with the file; a key `thread`, where somebody wrote one, is read as well.

Does not choose what to capture: that is `memlane.capture.messages`.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.dates import iso, moment, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.front_matter import FrontMatterError, find_front, load_front, plain, with_body
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import joined, keywords, newline_of
from memlane.disk import files, trash
from memlane.disk.names import inside, safe_parts
from memlane.disk.tombstones import Tombstones
from memlane.disk.trash import TRASH
from memlane.lanes import edited, known, read_file, readable

if TYPE_CHECKING:
    from memlane.capture.messages import Captured
    from memlane.lanes.records.answers import RecordAnswers

KEYS = ("id", "subject", "keywords", "applies_to", "occurred_at", "content_hash")
SCOPE = re.compile(r"global|file:.+|area:.+")
KEYWORDS = 10  # that a message without any gets
FUZZY = 0.6
ARCHIVE = ".archive"
_SAYS = re.compile(r"[^\W_]")
_THREAD = re.compile(r"^# thread: (.+?)[ \t]*\r?\n", re.MULTILINE)
_FIELDS = frozenset({"text", "title", "tags", "scope", "thread", "created_at"})
_DRAFT_FIELDS = frozenset({"id", "subject", "keywords", "applies_to", "occurred_at", "content_hash"})
_ANY_ID = "00000000-0000-4000-8000-000000000000"
_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Record:
    """A captured message with the seed's field names. `thread` is ours: the session it belongs to."""

    id: str
    subject: str
    keywords: tuple[str, ...]
    applies_to: str
    occurred_at: str
    content_hash: str
    content: str
    path: str
    thread: str | None = None

    def to_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        return {**shape, "keywords": list(self.keywords)}


def content_hash(content: str) -> str:
    """The first 16 hex digits of the content's SHA-256."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def subject_of(text: str) -> str:
    """The first line that says something, cut with `...` at 200 characters; a fence or a rule says nothing."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = next((line for line in lines if _SAYS.search(line) and not line.startswith(("```", "~~~"))), "")
    return line if len(line) <= 200 else line[:197] + "..."


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
    ) -> None:
        self.root = Path(root).absolute()
        self.clock = clock
        self.checks = gate.common(guard)
        self.tombstones = tombstones or Tombstones()
        self._foreign: dict[str, tuple[tuple[int, int], tuple[datetime, str] | None]] = {}
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
        when = iso(occurred_at) if isinstance(occurred_at, datetime) else occurred_at
        record, _ = self._create(
            Draft(
                content,
                title=subject,
                tags=tuple(keywords) if not isinstance(keywords, str) else (keywords,),
                scope=applies_to,
                thread=thread,
                fields={"id": id, "occurred_at": when if when is not None else iso(self.clock())},
            )
        )
        return record

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
            return self._record(self._existing(id))
        except NotFound:
            return None

    def list(
        self,
        *,
        scope: str | None = None,
        keyword: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> builtins.list[Record]:
        """Records, the newest first by the instant they occurred, whatever the time zone it is written in."""
        wanted = keyword.lower() if keyword else None
        found = [
            record
            for record in self._records()
            if (scope is None or record.applies_to == scope)
            and (wanted is None or wanted in map(str.lower, record.keywords))
        ]
        found.sort(key=lambda record: (_instant(record), record.id), reverse=True)
        return found[offset:] if limit is None else found[offset : offset + limit]

    def find(self, query: str, *, limit: int = 10, scope: str | None = None) -> builtins.list[Record]:
        """Records whose keywords match the words of the query, fuzzily; best first, then the newest."""
        words = query.lower().split()
        likeness: dict[tuple[str, str], float] = {}
        scored = []
        for record in self._records():
            if scope is not None and record.applies_to != scope:
                continue
            total = 0.0
            for word in words:
                best = 0.0
                for keyword in record.keywords:
                    pair = (word, keyword.lower())
                    if pair not in likeness:
                        likeness[pair] = _likeness(*pair)
                    best = max(best, likeness[pair])
                total += best
            if total:
                scored.append((total / len(words), _instant(record), record.id, record))
        return [record for *_, record in sorted(scored, key=lambda row: row[:3], reverse=True)[:limit]]

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
        for path in self.files():
            if isinstance(path, Problem):
                problems.append(path)
                continue
            record = self._parse(path)
            if isinstance(record, Problem):
                problems.append(record)
            elif record is not None:
                problems.extend(Problem(Path(path), why) for why in _objections(record))
                if record.id != _native(path):
                    problems.append(Problem(Path(path), "id is not the file's name"))
                if record.content_hash != content_hash(record.content):
                    problems.append(Problem(Path(path), "content_hash is not that of the content"))
        return problems

    def prune(
        self, *, keep_days: int = 0, keep_count: int = 0, dry_run: bool = False
    ) -> builtins.list[tuple[Record, str]]:
        """Archive the records older than so many days and those beyond the newest so many; 0 means no limit.

        Returns them with the reason, the oldest first. With `dry_run`, changes nothing.
        """
        oldest = self.clock() - timedelta(days=keep_days) if keep_days else None
        found = []
        for place, record in enumerate(self.list()):
            if oldest is not None and _instant(record) < oldest:
                found.append((record, f"older than {keep_days} days"))
            elif keep_count and place >= keep_count:
                found.append((record, f"beyond the newest {keep_count}"))
        found.reverse()
        for record, _ in () if dry_run else found:
            self.archive(_native(record.path))
        return found

    @property
    def answers(self) -> RecordAnswers:
        from memlane.lanes.records.answers import RecordAnswers

        return RecordAnswers(self)

    @staticmethod
    def options(_: Any) -> dict[str, Any]:
        return {}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        for path in files.walk(self.root):
            if isinstance(path, str) and os.path.dirname(path) != os.fspath(self.root):
                yield Problem(
                    Path(path), "lies in a sub-folder and is not read; records lie side by side in one folder"
                )
            else:
                yield path

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        record = self._parse(path)
        if isinstance(record, Problem):
            yield record
        elif record is not None:
            yield _memory(record)

    def fetch(self, native: str) -> Memory:
        return _memory(self._record(self._existing(native)))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, _DRAFT_FIELDS, self.name)
        fields = dict(draft.fields)
        record, remarks = self._create(
            replace(
                draft,
                title=draft.title or fields.get("subject"),
                tags=draft.tags or tuple(fields.get("keywords", ())),
                scope=draft.scope or fields.get("applies_to") or "global",
                fields={
                    "id": fields.get("id"),
                    "occurred_at": fields.get("occurred_at") or iso(draft.created_at or self.clock()),
                },
            ),
            derive=True,
        )
        return replace(_memory(record), remarks=remarks)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, _FIELDS, self.name)
        return self._change(native, lambda _: changes)

    def extend(self, native: str, text: str) -> Memory:
        return self._change(native, lambda old: {"text": joined(old.content, text)})

    def drop(self, native: str) -> Removed:
        record = self._parse(self._existing(native))
        removed = self.set_aside(native)
        if isinstance(record, Record):
            self.tombstones.bury((removed.id, record.content))
        return removed

    def set_aside(self, native: str) -> Removed:
        """Move a record that another one replaces into the trash: its text does not count as deleted."""
        path = self._existing(native)
        now = self.clock()
        with files.locked(path):  # so that nobody changes what is on its way out
            moved = trash.put(path, self.root, now)
        return Removed(f"records:{_native(path)}", "trash", Path(moved), now)

    def archive(self, native: str) -> Removed:
        """Move a record into the folder `.archive`, where nothing reads it. `recover` brings it back."""
        path = self._existing(native)
        target = inside(self.root, ARCHIVE, os.path.basename(path))
        with files.locked(path):
            files.move(path, target)
        return Removed(f"records:{_native(path)}", "archive", Path(target), self.clock())

    def recover(self, native: str) -> Memory:
        path = self._path(native)
        gone = [(name, lies) for name, lies, _ in trash.contents(self.root)]
        for name, lies in (*gone, *self._archived()):
            if name == os.path.basename(path):
                if isinstance(record := self._parse(lies), Record):
                    self.tombstones.lift(record.content)
                files.move(lies, path)
                return self.fetch(native)
        raise NotFound(f"The trash has no record {gate.shown(native)}.", hint="`memlane trash` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            yield Removed(f"records:{name.removesuffix('.md')}", "trash", Path(lies), when)
        for name, lies in self._archived():
            when = datetime.fromtimestamp(os.stat(lies).st_ctime, UTC)
            yield Removed(f"records:{name.removesuffix('.md')}", "archive", Path(lies), when)

    # -- the format

    def _parse(self, path: str) -> Record | Problem | None:
        text = read_file(path)
        if text is None or isinstance(text, Problem):
            return text
        front = find_front(text)
        if front is None:
            return Problem(Path(path), "has no front matter; a record begins with ---")
        try:
            values = load_front(text[front.start : front.end])
        except FrontMatterError as error:
            return Problem(Path(path), f"front matter {error}", error.line)
        for key in KEYS[:5]:
            if values.get(key) in (None, "", []):
                return Problem(Path(path), f"front matter has no {key}")
        words = values["keywords"]
        return Record(
            id=str(values["id"]),
            subject=str(values["subject"]),
            keywords=tuple(map(str, words)) if isinstance(words, list) else (str(words),),
            applies_to=str(values["applies_to"]),
            occurred_at=str(values["occurred_at"]),
            content_hash=str(values.get("content_hash") or ""),
            content=text[front.body :],
            path=path,
            thread=_thread(values, text[front.start : front.end]),
        )

    # -- files

    def _create(self, draft: Draft, *, derive: bool = False) -> tuple[Record, tuple[str, ...]]:
        record, remarks = self._drafted(draft, derive=derive)
        holder = self._holder(record) or self._write(record)
        return self._record(holder) if holder else record, (*remarks, *self.tombstones.lift(record.content))

    def _drafted(self, draft: Draft, *, derive: bool) -> tuple[Record, tuple[str, ...]]:
        """The record that a draft makes once it has passed the gate and the rules, and what the gate changed.

        With `derive`, a missing subject and missing keywords are taken from the text as the gate leaves it.
        """
        id, when = draft.fields.get("id"), draft.fields["occurred_at"]
        if id is not None and not is_record_id(id):
            raise InvalidInput("The id is not a version-4 UUID.", hint="Leave it out: one is made.")
        draft = gate.admit(self.checks, draft, self)
        if derive:
            words = draft.tags or tuple(keywords(draft.text, KEYWORDS))
            draft = replace(draft, title=draft.title or subject_of(draft.text), tags=words)
        id = id or _made_id(_key(when, content_hash(draft.text)))
        return _checked(draft, id, when, self._path(id)), draft.remarks

    def _write(self, record: Record) -> str | None:
        """Write a new record; the path of the present one, when another process was first with the same message."""
        made = _made_id(_key(record.occurred_at, record.content_hash)) == record.id
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
            )
            draft = gate.admit(self.checks, draft, self)
            when = changes.get("created_at", old.occurred_at)
            new = _checked(draft, _ANY_ID, iso(when) if isinstance(when, datetime) else when, path)
            new = replace(new, id=old.id)  # one that is no version-4 UUID may stay what it is
            if new != old:
                files.replace(path, files.encoded(_rewritten(readable(path), old, new)))
        return replace(_memory(new), remarks=(*draft.remarks, *self.tombstones.lift(new.content)))

    def _holder(self, record: Record) -> str | None:
        """Where the record lies that already holds this message: under the id made from it, or under a foreign id."""
        key = _key(record.occurred_at, record.content_hash)
        path = os.path.join(self.root, f"{_made_id(key)}.md")
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
                found = self._parse(other)
                entry = self._foreign[name] = (stamp, _key_of(found) if isinstance(found, Record) else None)
            if entry[1] == key:
                return other
        return None

    def _foreign_names(self) -> frozenset[str]:
        """The records whose ids were not made here. The listing is remembered while the folder does not change."""
        try:
            changed = os.stat(self.root).st_mtime_ns
            if changed != self._listed[0]:
                found = [name for name in os.listdir(os.fsencode(self.root)) if not _is_made(name)]
                names = (os.fsdecode(name) for name in found if name.endswith(b".md") and name[:1] != b".")
                self._listed = (changed, frozenset(names))
        except OSError:
            return frozenset()
        return self._listed[1]

    def _gone_names(self) -> frozenset[str]:
        """The names of the records in the trash and in the archive, remembered while these folders do not change."""
        changed = tuple(_changed_at(os.path.join(self.root, name)) for name in (TRASH, ARCHIVE))
        if changed != self._gone[0]:
            deleted = (name for name, _, _ in trash.contents(self.root))
            self._gone = (changed, frozenset([*deleted, *(name for name, _ in self._archived())]))
        return self._gone[1]

    def _archived(self) -> Iterator[tuple[str, str]]:
        """(name it had, where it lies) of everything in the archive."""
        folder = os.path.join(self.root, ARCHIVE)
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return
        yield from ((name, os.path.join(folder, name)) for name in names if name.endswith(".md"))

    def _records(self) -> Iterator[Record]:
        for path in self.files():
            if isinstance(path, str) and isinstance(record := self._parse(path), Record):
                yield record

    def _record(self, path: str) -> Record:
        record = self._parse(path)
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
        path = self._path(id)
        if not os.path.isfile(path):
            raise NotFound(f"There is no record {gate.shown(id)}.", hint="`memlane list --lane records` shows the ids.")
        return path


def render(record: Record) -> str:
    """The file of a new record: the six keys in the seed's order, a blank line, the content as it is."""
    lines = [
        f"id: {plain(record.id)}",
        f"subject: {plain(record.subject)}",
        "keywords:",
        *(f"  - {plain(keyword)}" for keyword in record.keywords),
        f"applies_to: {plain(record.applies_to)}",
        f"occurred_at: {plain(record.occurred_at)}",
        f"content_hash: {plain(record.content_hash)}",
    ]
    if record.thread is not None:
        lines.append(f"# thread: {plain(record.thread)}")
    return "\n".join(("---", *lines, "---", "", record.content))


def _rewritten(text: str, old: Record, new: Record) -> str:
    """The file with the keys that changed; other keys, comments, quoting and line ends stay as they were."""
    before, after = old.to_dict(), new.to_dict()
    text = edited(text, {key: after[key] for key in KEYS if after[key] != before[key]})
    if new.thread != old.thread:
        text = _with_thread(text, new.thread)
    return text if new.content == old.content else with_body(text, new.content)


def _thread(values: Mapping[str, Any], source: str) -> str | None:
    """The session's name: the key that somebody wrote, else the comment below the six keys."""
    if values.get("thread") is not None:
        return str(values["thread"])
    match = _THREAD.search(source)
    if match is None:
        return None
    try:
        return str(json.loads(match[1])) if match[1].startswith('"') else match[1]
    except ValueError:
        return match[1]


def _with_thread(text: str, thread: str | None) -> str:
    """The file with another session's name: in the key where there is one, else in the comment."""
    front = find_front(text)
    if front is None:
        return text
    source = text[front.start : front.end]
    if "thread" in load_front(source):
        return edited(text, {"thread": thread})
    comment = "" if thread is None else f"# thread: {plain(thread)}{newline_of(text)}"
    return text[: front.start] + _THREAD.sub("", source) + comment + text[front.end :]


def _memory(record: Record) -> Memory:
    return Memory(
        id=f"records:{_native(record.path)}",
        lane="records",
        text=record.content,
        title=record.subject,
        file=record.path,
        tags=record.keywords,
        scope=record.applies_to,
        thread=record.thread,
        created_at=moment(record.occurred_at),
        fields={"occurred_at": record.occurred_at, "content_hash": record.content_hash},
    )


def _checked(draft: Draft, id: str, occurred_at: Any, path: str) -> Record:
    """A record of a draft that has passed the gate. Raises InvalidInput naming the first rule it breaks."""
    record = Record(
        id=id,
        subject=" ".join((draft.title or "").split()),
        keywords=draft.tags,
        applies_to=draft.scope or "",
        occurred_at=str(occurred_at),
        content_hash=content_hash(draft.text),
        content=draft.text,
        path=path,
        thread=draft.thread,
    )
    for why in _objections(record):
        raise InvalidInput(f"Not stored: {why}.", hint="docs/formats.md lists the rules of a record.")
    return record


def _objections(record: Record) -> Iterator[str]:
    """The seed's validation rules, as sentences about what breaks them."""
    if not is_record_id(record.id):
        yield "id must be a version-4 UUID"
    if not 1 <= len(record.subject) <= 200 or not record.subject.strip():
        yield "subject must have 1 to 200 characters"
    if not 1 <= len(record.keywords) <= 20:
        yield "there must be 1 to 20 keywords"
    if any(not isinstance(word, str) or not 1 <= len(word) <= 50 or not word.strip() for word in record.keywords):
        yield "each keyword must have 1 to 50 characters"
    if not SCOPE.fullmatch(record.applies_to):
        yield "applies_to must be global, file:<path> or area:<name>"
    if not _is_datetime(record.occurred_at):
        yield "occurred_at must be an ISO 8601 date and time"
    if len(record.content.strip()) < 10:
        yield "content must have at least 10 characters"


def _is_datetime(value: str) -> bool:
    return len(value) > 10 and value[10] in "T " and moment(value) is not None


def is_record_id(id: str) -> bool:
    """Whether this is a version-4 UUID, as the seed wants it."""
    return isinstance(id, str) and _UUID4.fullmatch(id.lower()) is not None


def _key(occurred_at: str, hash: str) -> tuple[datetime, str]:
    when = moment(occurred_at) if isinstance(occurred_at, str) and _is_datetime(occurred_at) else None
    if when is None:
        raise InvalidInput(
            "Not stored: occurred_at must be an ISO 8601 date and time.",
            hint="Write it like 2025-01-15T10:30:00Z.",
        )
    return when, hash


def _key_of(record: Record) -> tuple[datetime, str] | None:
    when = moment(record.occurred_at)
    return (when, record.content_hash) if when else None


def _made_id(key: tuple[datetime, str]) -> str:
    """A version-4-shaped UUID from (instant, hash). Its last four digits check the rest: see `_is_made`."""
    digest = hashlib.sha256(f"{key[0].isoformat()} {key[1]}".encode()).hexdigest()
    head = (
        f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-{'89ab'[int(digest[15], 16) & 3]}{digest[16:19]}-{digest[19:27]}"
    )
    return f"{head}{zlib.crc32(head.encode()) & 0xFFFF:04x}"


def _is_made(name: bytes) -> bool:
    """Whether a file's name is an id that was made here: asked of every file in the folder, so it works on bytes."""
    return len(name) == 39 and b"%04x.md" % (zlib.crc32(name[:32]) & 0xFFFF) == name[32:]


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _native(path: str) -> str:
    return os.path.basename(path)[:-3]


def _instant(record: Record) -> datetime:
    return moment(record.occurred_at) or datetime.min.replace(tzinfo=utc_now().tzinfo)


def _likeness(word: str, keyword: str) -> float:
    """1.0 for the keyword or one of its words, down to FUZZY for a misspelt one, 0 below that."""
    parts = re.findall(r"\w+", keyword)
    return 1.0 if word == keyword or word in parts else max(map(partial(_ratio, word), {keyword, *parts}), default=0.0)


def _ratio(word: str, keyword: str) -> float:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, word, keyword, autojunk=False)
    if matcher.real_quick_ratio() < FUZZY or matcher.quick_ratio() < FUZZY:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= FUZZY else 0.0
