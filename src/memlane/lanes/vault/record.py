"""Records of the vault (seed 002) as values: their line in the file, their versions and order, their normal forms.

    {"id":"3f9a1c0b7d2e","version":1, … ,"text":"Mission: keep the runtime stable"}

What a caller gives becomes a draft in the seed's normal forms; a record becomes a line, a Memory or Markdown.
Does not read or write files (see `log`) and does not judge a text (see `checks`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.invisible import visible
from memlane.core.model import Draft, Memory
from memlane.core.patterns import lazily
from memlane.core.text import first_line
from memlane.core.values import dataclass, field, replace
from memlane.disk import files
from memlane.lanes import known

TIERS = ("canon", "register")
SOURCES = ("chat", "manual", "tool", "operator", "promotion")
CATEGORIES = (
    "bio", "identity", "mission", "constraint", "governance", "preference", "project", "goal", "health",
    "self_state", "capability", "plan", "meta", "other",
)  # fmt: skip
MAX_LABEL = 200  # characters of a category, topic or tag
MAX_TAGS = 100
_KEYS = (
    "id", "version", "created_at", "updated_at", "tier", "topic_id", "source", "scope", "category", "tags",
    "deleted_at", "text",
)  # fmt: skip
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_WITHOUT_TOPIC = tuple(key for key in _KEYS if key != "topic_id")
_of_usual = {len(keys): itemgetter(*keys) for keys in (_KEYS, _WITHOUT_TOPIC)}
_decode = json.JSONDecoder().raw_decode
_CHAR = r'[^"\\\x00-\x1f]'
_WORDS = rf'"({_CHAR}+)"'
_SMALL = r'"([ !#-@\[\]^-~]+)"'  # letters of ASCII, in lower case, and other characters
_FRESH = lazily(
    rf'\{{"id":{_WORDS},"version":1,"created_at":{_WORDS},"updated_at":null,"tier":{_SMALL},'
    rf'"source":(?:null|{_WORDS}),"scope":{_SMALL},"category":{_WORDS},'
    rf'"tags":\[((?:"{_CHAR}*"(?:,"{_CHAR}*")*)?)\],"deleted_at":null,"text":{_WORDS}\}}'
)


# -- a record and its line


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the vault. Times are ISO strings as they stand in the file; `extra` holds keys we do not know."""

    id: str
    text: str
    scope: str = "shared"
    category: str = "other"
    tier: str = "canon"
    topic_id: str | None = None
    tags: list[str] = field(default_factory=list, hash=False)
    created_at: str = ""
    updated_at: str | None = None
    source: str | None = None
    deleted_at: str | None = None
    version: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)  # what the gate changed, on a fresh write only

    def to_dict(self) -> dict[str, Any]:
        """The keys of a line in their order on disk; `topic_id` is left out when there is none."""
        values = {key: getattr(self, key) for key in _KEYS if key != "topic_id" or self.topic_id is not None}
        return {**values, **self.extra}

    def next(self, **changes: Any) -> Record:
        """The version after this one."""
        return replace(self, version=self.version + 1, **changes)


def render_line(record: Record) -> str:
    """The record as one compact JSON line, without the line end."""
    return json.dumps(record.to_dict(), ensure_ascii=False, separators=(",", ":"))


def render_lines(records: Iterable[Record]) -> bytes:
    """The records as lines of the file, each with its line end."""
    return "".join(render_line(record) + "\n" for record in records).encode()


def parse_line(line: str) -> Record:
    """The record that a line holds. Raises ValueError that says what is wrong with it, never quoting it."""
    if (record := _usual(line)) is not None:
        return record
    if not line.lstrip(" \t\r\n").startswith("{"):  # quick, for files that have many such lines
        raise ValueError("is not a JSON object")
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if "\\u" in line:
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("is not valid Unicode") from None
    for key in ("id", "text"):
        if not isinstance(values.get(key), str) or not values[key]:
            raise ValueError(f"has no {key}" if values.get(key) is None else f"has a wrong {key}: text is expected")
    version = values.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("has a wrong version: a whole number from 1 is expected")
    tags = values.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("has wrong tags: a list of text is expected")
    for key in ("scope", "category", "tier", "topic_id", "created_at", "updated_at", "source", "deleted_at"):
        if not isinstance(values.get(key), str | None):
            raise ValueError(f"has a wrong {key}: text is expected")
    fields = {key: value for key, value in values.items() if key in _KEYS and (value or key == "source")}
    for key in fields.keys() & {"scope", "tier"}:
        fields[key] = fields[key].lower()
    return Record(**fields, extra={key: value for key, value in values.items() if key not in _KEYS})


def _usual(line: str) -> Record | None:
    """The record of a line as a vault writes it: nearly all are, and a third of the time is enough for them.

    None when anything about it is unusual, for `parse_line` to judge.
    """
    if line[:1] != "{" or "\\u" in line:
        return None
    try:
        values, end = _decode(line)
        got = _of_usual[len(values)](values)
    except (ValueError, LookupError, RecursionError):
        return None
    if end != len(line):
        return None
    topic = None
    if len(got) == len(_KEYS):
        topic, got = got[5], (*got[:5], *got[6:])
    id, version, created, updated, tier, source, scope, category, tags, deleted, text = got
    for word in (id, text, created, tier, scope, category):
        if type(word) is not str or not word:
            return None
    for word in (topic, updated, deleted, source):
        if word is not None and (type(word) is not str or not word):
            return None
    if type(version) is not int or version < 1 or type(tags) is not list:
        return None
    for tag in tags:
        if type(tag) is not str:
            return None
    return Record(
        id, text, scope.lower(), category, tier.lower(), topic, tags, created, updated, source, deleted, version, {}
    )


class Fresh(tuple[str, ...]):
    """What stands in the line of a new record, as a vault writes it, where nothing in it has to be escaped. Most lines
    of a long file are such, and nearly none is ever asked for: the record is made when it is.
    """

    __slots__ = ()
    id, created_at, tier, source, scope, category, _, text = (property(itemgetter(at)) for at in range(8))
    topic_id = None

    @property
    def tags(self) -> list[str]:
        return self[6][1:-1].split('","') if self[6] else []

    def record(self) -> Record:
        id, created, tier, source, scope, category, _, text = self
        return Record(id, text, scope, category, tier, None, self.tags, created, None, source, None, 1, {})


def fresh(line: bytes) -> Fresh | None:
    """What stands in the line of a new record; None where it has to be parsed."""
    try:
        match = _FRESH.fullmatch(line.decode())
    except UnicodeDecodeError:
        return None
    return Fresh(match.groups()) if match else None


def read_line(line: bytes) -> Record | str:
    """The record of a line, or what is wrong with it."""
    try:
        return parse_line(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8 text"
    except ValueError as error:
        return str(error)


def storable(record: Record) -> Record:
    """The record, if a line can hold it. Raises InvalidInput for NUL, lone surrogates and over-long labels."""
    labels = [record.category, record.topic_id or "", *record.tags]
    if len(record.tags) > MAX_TAGS or any(len(label) > MAX_LABEL for label in labels):
        raise InvalidInput(
            f"A category, topic or tag has at most {MAX_LABEL} characters, and a memory {MAX_TAGS} tags.",
            hint="Put what is longer into the text.",
        )
    for text in (record.text, *labels, *(str(value) for value in record.extra.values())):
        files.encoded(text)
    return record


# -- which counts, which comes first


def supersedes(new: Record, old: Record | None) -> bool:
    """Whether a line read later counts: higher version; then later in time; then later in the file."""
    if old is None or new.version != old.version:
        return old is None or new.version > old.version
    return _changed(new) >= _changed(old)


def latest(records: Iterable[Record]) -> dict[str, Record]:
    """The version of each id that counts."""
    found: dict[str, Record] = {}
    for record in records:
        if supersedes(record, found.get(record.id)):
            found[record.id] = record
    return found


def newest_first(record: Record | Fresh) -> tuple[float, str]:
    """Sort key: newest first. The id breaks ties, so that compaction changes no order."""
    return -(time_of(record.created_at) - _EARLIEST).total_seconds(), record.id


def _changed(record: Record) -> datetime:
    return max(time_of(record.updated_at), time_of(record.deleted_at))


def time_of(value: str | None) -> datetime:
    """A time as it stands in the file; the earliest there is when it is missing or cannot be read."""
    return moment(value) or _EARLIEST


# -- what a record is shown as


def to_memory(record: Record, file: str) -> Memory:
    """The record as the bank shows it. A title is made from the text when there is none."""
    title, thread = record.extra.get("title"), record.extra.get("thread")
    own = {"tier": record.tier, "topic_id": record.topic_id, "source": record.source}
    more = {key: value for key, value in record.extra.items() if key not in ("title", "thread")}
    return Memory(
        id=f"vault:{record.id}",
        lane="vault",
        text=record.text,
        title=title if isinstance(title, str) and title else first_line(record.text, 80) or record.id,
        file=file,
        tags=tuple(record.tags),
        type=record.category,
        status="active",
        scope=record.scope,
        thread=thread if isinstance(thread, str) else None,
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
        fields={**more, **own, "version": record.version, "category": record.category},
        remarks=record.remarks,
    )


def snapshot(records: Iterable[Record]) -> str:
    """Canon and the registers with a topic as Markdown, "" when there are none."""
    records = sorted(records, key=lambda record: (record.category, time_of(record.created_at), record.id))
    canon = [f"- {list_item(record.text)}" for record in records if record.tier == "canon"]
    registers = [
        f"- **{one_line(record.topic_id)}**: {list_item(record.text)}"
        for record in records
        if record.tier == "register" and record.topic_id
    ]
    parts = [
        "\n".join((f"### {title}", "", *lines))
        for title, lines in (("Canon", canon), ("Active Registers", registers))
        if lines
    ]
    return "\n\n".join(("## Memory Snapshot", *parts)) + "\n" if parts else ""


def list_item(text: str) -> str:
    """A text as one Markdown list item: invisible characters removed, further lines indented."""
    return "\n  ".join(visible(text).strip().splitlines())


def one_line(label: str | None) -> str:
    """A label on one line: nothing that a model could take for another line of a block."""
    return " ".join(visible(label or "").split())


# -- what is given, in the seed's normal forms


def to_draft(text: Any = None, scope: Any = None, tags: Any = None, **labels: Any) -> Draft:
    """A draft in the seed's normal forms: stripped text, lower-case scope and tier. Raises InvalidInput.

    A category is lower-case in the record; the gate sees it as it was given, because lower case hides a key.
    `labels` are category, tier (canon when there is none), topic_id and source.
    """
    fields = {name: normal(labels.get(name)) for name, normal in LABELS.items()}
    if fields["tier"] is None:
        fields["tier"] = "canon"
    return Draft(to_text(text), tags=to_tags(tags), scope=lowered(scope) or "", fields=fields)


def item_to_draft(item: Mapping[str, Any]) -> Draft:
    """The draft of one item of `bulk_add`. Raises InvalidInput."""
    if not isinstance(item, Mapping):
        raise InvalidInput("The item is not a mapping.", hint="Give text, scope and category.")
    known(item, frozenset({"text", "scope", "tags", *LABELS}), "vault")
    return to_draft(**item)


def from_draft(draft: Draft, **more: Any) -> Record:
    """The first record of a draft that has passed the gate, with these other fields. Raises InvalidInput."""
    return storable(
        Record(
            text=draft.text.strip(),
            category=(draft.fields["category"] or "other").lower(),
            tier=draft.fields["tier"],
            topic_id=draft.fields["topic_id"],
            tags=list(draft.tags),
            **more,
        )
    )


def to_text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput("The text is not text.", hint="Give a string.")
    return value.strip()


def to_topic(value: Any) -> str | None:
    text = _text(value, "The topic_id is not text.", "Give a stable key such as current_projects.")
    return (text or "").strip() or None


def to_source(value: Any) -> str | None:
    return _text(value, "The source is not text.", f"Use one of: {', '.join(SOURCES)}.")


def stripped(value: Any) -> str | None:
    text = _text(value, "Scope, category and tier are text.", "Give strings.")
    return None if text is None else text.strip()


def lowered(value: Any) -> str | None:
    text = stripped(value)
    return None if text is None else text.lower()


def _text(value: Any, otherwise: str, hint: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(otherwise, hint=hint)
    return value


def to_tags(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value or ()
    if not isinstance(items, list | tuple | set | frozenset) or not all(isinstance(item, str) for item in items):
        raise InvalidInput("Tags are a list of text.", hint='Give tags such as ["infra", "deploy"].')
    return tuple(dict.fromkeys(tag for item in items if (tag := item.strip())))


LABELS: dict[str, Callable[[Any], str | None]] = {
    "category": stripped, "tier": lowered, "topic_id": to_topic, "source": to_source,
}  # fmt: skip
