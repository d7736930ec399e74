"""The values that lanes, bank and surfaces pass to each other. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from memlane.core.dates import iso, moment
from memlane.core.values import NamedTuple, asdict, dataclass, field

USERS = "user/"  # what the id of a memory begins with that is the user's own, read below a project's
UNCONFIRMED = "unconfirmed"  # the tag of what was distilled from a session, and nobody has looked at
PROPOSED = "proposed"  # the field of a distilled note that is a proposal of the assistant's
OBJECTED = "objected"  # the field of a record that the user objected to in the next prompt


class Similar(NamedTuple):
    """A memory that is much like one that was just written."""

    id: str
    date: str | None
    first_line: str


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered thing, whatever lane it lives in.

    `id` is `<lane>:<native id>`, and `user/<lane>:<native id>` where the user's own is read below a project's bank.
    `text` is the body alone. `fields` holds what only this lane knows (a vault record's tier, a record's content_hash,
    a note's own front-matter keys).
    """

    id: str
    lane: str
    text: str
    title: str
    file: str  # where it is stored, as a string: a Path costs more to make than the rest of a note to parse
    tags: tuple[str, ...] = ()
    type: str | None = None
    status: str | None = None
    scope: str | None = None
    project: str | None = None
    thread: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)  # what the gate changed, on a fresh write only
    similar: tuple[Similar, ...] = field(default=(), compare=False)  # what is much like it, on a fresh write only
    duplicate: bool = field(default=False, compare=False)  # it was there already, and nothing was written
    superseded_by: str | None = field(default=None, compare=False)  # the id of what took its place
    replaces: tuple[str, ...] = field(default=(), compare=False)  # the ids of those whose place it took

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def native_id(self) -> str:
        return self.id.partition(":")[2]

    @property
    def version(self) -> str:
        """A name for what it says now: another text, title, tag or field has another one. For `expected=` of a verb."""
        return _version(self.stored())

    @property
    def expires(self) -> datetime | None:
        """When it stops counting, by its field `expires`: from then on it is in no answer."""
        return moment(self.fields["expires"]) if "expires" in self.fields else None

    def expired(self, now: datetime) -> bool:
        return (end := self.expires) is not None and end <= now

    @property
    def owner(self) -> str:
        """`user` for a memory of the user's own bank that is read below a project's; else "": it is the bank's."""
        return "user" if self.id.startswith(USERS) else ""

    @property
    def unconfirmed(self) -> bool:
        """Whether it was distilled from a session, and nobody has confirmed it."""
        return UNCONFIRMED in self.tags

    @property
    def distilled(self) -> bool:
        """Whether it was distilled from a session, confirmed or not."""
        return self.lane == "notes" and "confidence" in self.fields

    @property
    def suspicious(self) -> tuple[str, ...]:
        """Why the text reads like instructions to a model; () when it does not. See `memlane.core.instructions`."""
        from memlane.core.instructions import suspicious

        return suspicious(self.words)

    @property
    def words(self) -> str:
        """All that it says in words of its own: title, tags and text."""
        return "\n".join((self.title, *self.tags, self.text))

    def to_dict(self) -> dict[str, Any]:
        """The one shape for JSON on every surface: nothing in it but what JSON has, whatever a file's fields hold.

        What is only said of some memories is left out where it is not.
        """
        said = {
            "owner": self.owner,
            "superseded_by": self.superseded_by,
            "replaces": list(self.replaces),
            "duplicate": self.duplicate,
            "similar": [like._asdict() for like in self.similar],
        }
        stored = self.stored()
        judged = {"suspicious": list(self.suspicious), "version": _version(stored)}
        return {**stored, **judged, **{name: value for name, value in said.items() if value}}

    def stored(self) -> dict[str, Any]:
        """What of `to_dict` comes from its file alone."""
        return {
            "id": self.id,
            "lane": self.lane,
            "title": self.title,
            "text": self.text,
            "tags": list(self.tags),
            "type": self.type,
            "status": self.status,
            "scope": self.scope,
            "project": self.project,
            "thread": self.thread,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "path": self.file,
            "fields": plain(self.fields),
        }


_VERSIONED = ("text", "title", "tags", "type", "status", "scope", "project", "thread", "created_at", "fields")


def _version(stored: Mapping[str, Any]) -> str:
    from memlane.core.digests import sha256

    whole = _sorted()([stored[name] for name in _VERSIONED])
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _sorted() -> Callable[[Any], str]:
    """Writes JSON, a mapping's keys in their order; made once, because `json.dumps` makes one for every call."""
    from json import JSONEncoder

    return JSONEncoder(sort_keys=True).encode


def plain(value: Any) -> Any:
    """A value of a file's as JSON can hold it: a date becomes text, and so does what JSON has no word for."""
    if value is None or type(value) in (str, bool, int):  # nearly all are
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return iso(value) if isinstance(value, datetime) else value.isoformat() if isinstance(value, date) else str(value)


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody wants remembered, before any lane has accepted it."""

    text: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    scope: str | None = None
    thread: str | None = None
    created_at: datetime | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    remarks: tuple[str, ...] = ()
    replaces: str = ""  # the id of the memory that it takes the place of
    over: str = ""  # the text on the disk that it is written over, where it changes a memory
    by_person: bool = False  # a person wrote it in an editor, and not a program: marks in it count


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that a search found, with its best passage. `why` holds the parts that add up to its score."""

    memory: Memory
    score: float
    content: str
    header_path: str
    why: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def relevance(self) -> float:
        """The probability that the query is about this memory at all: see `memlane.recall.relevance`."""
        return self.why.get("relevance", 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.memory.id,
            "score": self.score,
            "relevance": self.relevance,
            "content": self.content,
            "header_path": self.header_path,
            "memory": self.memory.to_dict(),
            "why": dict(self.why),
        }


@dataclass(frozen=True, slots=True)
class Link:
    """A memory that links to something, with the most telling words around the link."""

    memory: Memory
    score: float
    content: str
    anchor_context: str
    edge_type: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.memory.id,
            "score": self.score,
            "content": self.content,
            "anchor_context": self.anchor_context,
            "edge_type": self.edge_type,
            "file_path": self.memory.file,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """Damage found while reading. It is reported, and everything else keeps working."""

    path: Path
    why: str
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"path": str(self.path), "line": self.line, "why": self.why}

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.why}"


@dataclass(frozen=True, slots=True)
class Removed:
    """A memory that was deleted, and where to get it back from.

    With `how` "trash" or "archive", `path` is where the file is now; with "tombstone", it is the log that holds it.
    """

    id: str
    how: str
    path: Path
    removed_at: datetime

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "how": self.how, "path": str(self.path), "removed_at": iso(self.removed_at)}


@dataclass(frozen=True, slots=True)
class Step:
    """One change that a Plan proposes. `title` is for the person who reads the plan."""

    id: str
    action: str
    reason: str
    title: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """Proposed changes that can be printed, then applied. `remarks` are anything else a person should look at."""

    steps: tuple[Step, ...] = ()
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"steps": [step.to_dict() for step in self.steps], "remarks": list(self.remarks)}
