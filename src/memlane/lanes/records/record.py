"""A record of the records lane (seed 001) as a value: its file, the rules it must keep, the id made from it.

Reads a file, writes none.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.digests import sha256
from memlane.core.errors import InvalidInput
from memlane.core.front_matter import FrontMatterError, find_front, load_front, plain, with_body
from memlane.core.model import OBJECTED, Draft, Memory, Problem
from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.core.values import asdict, dataclass, field
from memlane.disk.log import json_of
from memlane.lanes import edited, read_file

KEYS = ("id", "subject", "keywords", "applies_to", "occurred_at", "content_hash")
ARCHIVE = ".archive"  # the folder of archived records, in that of the others
TAKEN = "~archived"
SCOPE = lazily(r"global|file:.+|area:.+")
_SAYS = lazily(r"[^\W_]")
_THREAD = lazily(r"^# thread: (.+?)[ \t]*\r?\n", re.MULTILINE)
_OBJECTION = "# the user objected"
_OBJECTED = lazily(rf"^{_OBJECTION}[ \t]*\r?\n", re.MULTILINE)
_UUID4 = lazily(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Record:
    """A captured message with the seed's field names. `thread` is ours: the session it belongs to; so is
    `objected`: the user turned it down in the next prompt."""

    id: str
    subject: str
    keywords: tuple[str, ...]
    applies_to: str
    occurred_at: str
    content_hash: str
    content: str
    path: str
    thread: str | None = None
    objected: bool = False
    remarks: tuple[str, ...] = field(default=(), compare=False)  # what the gate changed, on a fresh write only

    def to_dict(self) -> dict[str, Any]:
        values = {**asdict(self), "keywords": list(self.keywords), "remarks": list(self.remarks)}
        return {name: value for name, value in values.items() if name not in ("remarks", OBJECTED) or value}

    @property
    def native_id(self) -> str:
        return native_of(self.path)

    @property
    def instant(self) -> datetime:
        """When it occurred; the earliest instant there is when that cannot be read."""
        return moment(self.occurred_at) or datetime.min.replace(tzinfo=UTC)


def content_hash(content: str) -> str:
    """The first 16 hex digits of the content's SHA-256."""
    return sha256(content.encode()).hexdigest()[:16]


def subject_of(text: str) -> str:
    """The first line that says something, cut with `...` at 200 characters; a fence or a rule says nothing."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = next((line for line in lines if _SAYS.search(line) and not line.startswith(("```", "~~~"))), "")
    return line if len(line) <= 200 else line[:197] + "..."


def parse_file(path: str) -> Record | Problem | None:
    """The record in a file, what is wrong with the file, or None when it vanished meanwhile."""
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
        objected=_OBJECTED.search(text[front.start : front.end]) is not None,
    )


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
        *([] if record.thread is None else [f"# thread: {plain(record.thread)}"]),
        *([_OBJECTION] if record.objected else []),
    ]
    return "\n".join(("---", *lines, "---", "", record.content))


def rewritten(text: str, old: Record, new: Record) -> str:
    """The file with the keys that changed; other keys, comments, quoting and line ends stay as they were."""
    before, after = old.to_dict(), new.to_dict()
    text = edited(text, {key: after[key] for key in KEYS if after[key] != before[key]})
    if new.thread != old.thread:
        text = _with_thread(text, new.thread)
    if new.objected and not old.objected and (front := find_front(text)):
        text = f"{text[: front.end]}{_OBJECTION}{newline_of(text)}{text[front.end :]}"
    return text if new.content == old.content else with_body(text, new.content)


def _thread(values: Mapping[str, Any], source: str) -> str | None:
    """The session's name: the key that somebody wrote, else the comment below the six keys."""
    if values.get("thread") is not None:
        return str(values["thread"])
    match = _THREAD.search(source)
    if match is None:
        return None
    unquoted = json_of(match[1]) if match[1].startswith('"') else None
    return match[1] if unquoted is None else str(unquoted)


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


def to_memory(record: Record) -> Memory:
    """The record as the bank shows it."""
    return Memory(
        id=f"records:{record.native_id}",
        status="archived" if is_archived(record.path) else None,
        lane="records",
        text=record.content,
        title=record.subject,
        file=record.path,
        tags=record.keywords,
        scope=record.applies_to,
        thread=record.thread,
        created_at=moment(record.occurred_at),
        fields={
            "occurred_at": record.occurred_at,
            "content_hash": record.content_hash,
            **({OBJECTED: True} if record.objected else {}),
        },
    )


def checked(draft: Draft, id: str, occurred_at: Any, path: str) -> Record:
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


def broken_rules(record: Record) -> Iterator[str]:
    """What the seed's rules object to in a record that was read from a file."""
    yield from _objections(record)
    if record.id != record.native_id.removesuffix(TAKEN):
        yield "id is not the file's name"
    if record.content_hash != content_hash(record.content):
        yield "content_hash is not that of the content"


def _is_datetime(value: str) -> bool:
    return len(value) > 10 and value[10] in "T " and moment(value) is not None


def is_record_id(id: str) -> bool:
    """Whether this is a version-4 UUID, as the seed wants it."""
    return isinstance(id, str) and _UUID4.fullmatch(id.lower()) is not None


def message_key(occurred_at: Any, hash: str) -> tuple[datetime, str]:
    """What a message is recognised by: its instant and the hash of its content. Raises InvalidInput."""
    when = moment(occurred_at) if isinstance(occurred_at, str) and _is_datetime(occurred_at) else None
    if when is None:
        raise InvalidInput(
            "Not stored: occurred_at must be an ISO 8601 date and time.",
            hint="Write it like 2025-01-15T10:30:00Z.",
        )
    return when, hash


def made_id(key: tuple[datetime, str]) -> str:
    """The id made from a message's key, shaped like a version-4 UUID. Its last four digits are a checksum."""
    digest = sha256(f"{key[0].isoformat()} {key[1]}".encode()).hexdigest()
    variant = "89ab"[int(digest[15], 16) & 3]
    head = f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-{variant}{digest[16:19]}-{digest[19:27]}"
    return f"{head}{zlib.crc32(head.encode()) & 0xFFFF:04x}"


def is_made(name: bytes) -> bool:
    """Whether a file's name is an id that `made_id` made. Asked of every file in the folder, so it works on bytes."""
    return len(name) == 39 and b"%04x.md" % (zlib.crc32(name[:32]) & 0xFFFF) == name[32:]


def native_of(path: str) -> str:
    """The id of the record in a file: its name. An archived one whose name has been taken since has a suffix."""
    folder, name = os.path.split(path)
    taken = is_archived(path) and os.path.lexists(os.path.join(os.path.dirname(folder), name))
    return name[:-3] + TAKEN * taken


def is_archived(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == ARCHIVE
