"""What a caller asks for as a dated entry (seed 000), and an entry as a Memory. Pure functions, no I/O.

A draft's fields become labels in the seed's order, free text the problem.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from memlane import gate
from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.model import Draft, Memory
from memlane.core.values import replace
from memlane.disk import files
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import AD_HOC, GENERAL, LABELS, Entry

_VALUES = tuple(label.lower() for label in LABELS)
OWN = frozenset({"topic", "subtopic", "date", "labels", *_VALUES})
FIELDS = frozenset({"text", "title", "tags", "type", "thread", "created_at", "date", *_VALUES})
_NAMED = frozenset({*OWN, *FIELDS, "scope"})  # what may be meant by a field's name
_ABOUT = ("Tags", "Type", "Thread")  # labels about an entry, not of its text


# -- names


def split(topic: str) -> tuple[str, str]:
    """ "auth/oauth2" in its two parts, "auth" with the general sub-topic. Raises InvalidInput."""
    if not isinstance(topic, str):
        raise InvalidInput("The topic is not text.", hint="Write it like auth/oauth2.")
    parts = topic.strip().removesuffix(".md").split("/")
    if len(parts) > 2 or not all(parts):
        raise InvalidInput("A topic has one or two parts.", hint="Write it like auth/oauth2.")
    return parts[0], parts[1] if len(parts) == 2 else GENERAL


def topic_in(id: str) -> str:
    """The topic in the id of an entry, `topics:auth/oauth2/2025-01-10-title`; a topic as it is."""
    match isinstance(id, str) and id.removeprefix("topics:").split("/"):
        case [topic, subtopic] | [topic, subtopic, _]:
            return f"{topic}/{subtopic}"
    return id


def names(draft: Draft) -> tuple[str, str]:
    """Topic and sub-topic that a draft names. Raises InvalidInput."""
    topic = draft.fields.get("topic")
    topic = draft.scope or GENERAL if topic is None else topic
    subtopic = draft.fields.get("subtopic")
    return split(f"{topic}/{subtopic}" if subtopic and isinstance(topic, str) else topic)


# -- from a draft to an entry


def given(topic: str, content: str | None, title: str | None, values: Mapping[str, Any]) -> Draft:
    """The draft of a call of `store`; a value of None was not given. Raises InvalidInput."""
    fields = {"topic": topic, **{name: value for name, value in values.items() if value is not None}}
    return Draft(_value("content", content or ""), title=_title(title), fields=fields)


def entry_of(draft: Draft, clock: Callable[[], datetime]) -> Entry:
    """The entry that a draft asks for. Raises InvalidInput."""
    labels = _labels(draft)
    content = labels.pop("", "")
    says = next((labels[name] for name in ("Problem", "Solution", "Code") if labels.get(name)), "") or content
    title = _title(draft.title) or text_of.title_of(says)
    if not title:
        raise InvalidInput("There is nothing to store.", hint="Give some content, or at least a title.")
    when = draft.fields.get("date") or draft.created_at or clock()
    entry = Entry(_date(when), title, tuple(labels.items()), content)
    files.encoded(text_of.render(entry))
    return entry


def revised(entry: Entry, text: str | None, fields: Mapping[str, Any]) -> Entry:
    """The entry with a new text (None: the one it has) and these fields. Raises InvalidInput."""
    labels = entry.labels
    if text is not None:
        new = _labels(Draft(text))
        content = new.pop("", "")
        if new["Context"] == AD_HOC and entry.context:
            new["Context"] = entry.context
        kept = [(name, value) for name, value in labels if name in _ABOUT and name not in new]
        entry, labels = replace(entry, content=content), (*new.items(), *kept)
    for name in (*_VALUES, "type", "thread"):
        if name in fields:
            labels = text_of.with_label(labels, name.capitalize(), _value(name, fields[name] or ""))
    if "tags" in fields:
        own = (tag for tag in fields["tags"] or () if tag not in (entry.topic, entry.subtopic))
        labels = text_of.with_label(labels, "Tags", ", ".join(own))
    if "title" in fields:
        entry = replace(entry, title=_title(fields["title"]) or entry.title)
    if when := fields.get("date") or fields.get("created_at"):
        entry = replace(entry, date=_date(when))
    return replace(entry, labels=labels)


def extended(entry: Entry, more: str) -> Entry:
    """The entry with more text behind its last label; behind code, as a note."""
    last = max((n for n, (name, _) in enumerate(entry.labels) if name not in _ABOUT), default=None)
    if last is None:
        return replace(entry, content=f"{entry.content}\n\n{more}".strip())
    name, value = entry.labels[last]
    longer = [(name, value), ("Note", more)] if name == "Code" else [(name, f"{value}\n\n{more}".strip())]
    return replace(entry, labels=(*entry.labels[:last], *longer, *entry.labels[last + 1 :]))


def _labels(draft: Draft) -> dict[str, str]:
    """Label and value of what a draft says, in the seed's order; free text that is left under ""."""
    content, written = text_of.fields(draft.text)
    labels = dict.fromkeys(LABELS, "")
    for name in _VALUES:
        if (value := draft.fields.get(name)) is not None:
            labels[name.capitalize()] = _value(name, value)
    for name, value in written:
        labels[name] = "\n\n".join(dict.fromkeys(filter(None, (labels.get(name), value))))
    if not labels["Problem"]:
        labels["Problem"], content = content, ""
    labels["Context"] = labels["Context"] or AD_HOC
    extra: dict[str, Any] = {name: value for name, value in draft.fields.items() if name not in OWN}
    _well_spelt(extra)
    more = draft.fields.get("labels") or {}  # as `Memory.fields` has them
    if not isinstance(more, Mapping):
        raise InvalidInput("The labels are not names and values.", hint='Give them like {"Results": "…"}.')
    extra |= more
    extra |= {name: value for name in ("type", "thread") if (value := getattr(draft, name)) is not None}
    if draft.tags:
        extra["tags"] = [tag for tag in draft.tags if tag not in names(draft)]
    for name, value in extra.items():
        label = text_of.label_name(name)
        if label is None:
            raise InvalidInput("A label has a name that cannot be written.", hint="Use a word such as results.")
        if value not in (None, ""):
            labels[label] = _value(label.lower(), ", ".join(value) if label == "Tags" and _is_words(value) else value)
    labels = {name: value for name, value in labels.items() if value}
    return {**labels, "": content} if content else labels


def _title(title: str | None) -> str:
    if title is not None and not isinstance(title, str):
        raise InvalidInput("The title is not text.", hint="Give a short line of text.")
    return " ".join((title or "").split())


def _value(name: str, value: Any) -> str:
    """A label's value as it is stored; code to the byte. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"A {type(value).__name__} cannot be stored in an entry.", hint="Give text.")
    if name == "code":
        return value if value.strip() else ""
    return text_of.plain(value)


def _date(value: Any) -> str:
    found = moment(value)
    if found is None:
        raise InvalidInput("The date is not a date.", hint="Write it like 2025-01-15.")
    return found.date().isoformat()


def _well_spelt(names: Iterable[str]) -> None:
    """Raise InvalidInput for a name that is almost a field's: as a label, it would be a surprise."""
    for name in names:
        if name in _NAMED or text_of.is_known_label(name) or text_of.label_name(name) in _ABOUT:
            continue
        for near in difflib.get_close_matches(name.lower(), _NAMED, cutoff=0.8):
            if near[0] == name[:1].lower():
                raise InvalidInput(
                    f"The topics lane has no field {gate.shown(name)!r}.",
                    hint=f"Did you mean {near}? A label of that name is given in `labels`, a mapping.",
                )


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


# -- from an entry to a Memory


def memory_of(entry: Entry, status: str | None = None) -> Memory:
    """An entry, with its id, as the bank knows it."""
    said = tuple((name, value) for name, value in entry.labels if name not in _ABOUT)
    extra = {name: value for name, value in said if name not in LABELS}
    named: dict[str, str] = {}  # as `entry.get` finds them
    for name, value in entry.labels:
        named.setdefault(name.casefold(), value)
    fields: dict[str, Any] = {"topic": entry.topic, "subtopic": entry.subtopic, "date": entry.date}
    fields |= {name: named[name] for name in _VALUES if name in named}
    return Memory(
        id=entry.id,
        lane="topics",
        text=entry.text if len(said) == len(entry.labels) else replace(entry, labels=said).text,
        title=entry.title or entry.date,
        file=entry.path,
        tags=entry.tags,
        type=named.get("type"),
        status=status,
        scope=f"{entry.topic}/{entry.subtopic}",
        thread=named.get("thread"),
        created_at=moment(entry.date),
        fields={**fields, "labels": extra} if extra else fields,
    )
