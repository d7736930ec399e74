"""Remembering a text: look first what is there, then store it, and say how the two stand to each other.

the same text is there       nothing is written, and the memory that says it is returned (`duplicate`)
something much like it is    stored, with `similar`, and how to let it take the place of the other
`replaces` names a memory    stored, and the other one is superseded: `memlane.disk.replaced`
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.choosing import Expiry, date_given, expiry_given, scope_given, tags_of
from memlane.core.dates import iso, utc_now
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.model import Draft, Memory, Similar
from memlane.core.patterns import lazily
from memlane.core.text import first_line
from memlane.core.values import replace
from memlane.disk.names import PRIVATE, is_private
from memlane.disk.written import by_user
from memlane.lanes import Lane, known
from memlane.recall.address import get
from memlane.recall.similar import Like, look
from memlane.recall.starting import RULES, is_rule
from memlane.recall.superseded import current

if TYPE_CHECKING:
    from memlane.bank import Bank

MOST = 3  # memories that are named as similar
# What says where in its lane a memory is: one that takes the place of another stays there.
_PLACE = ("private", "topic", "subtopic", "layer", "skill", "agent", "project", "tier", "topic_id")
_NOT_A_PLACE = frozenset(
    {"expires", "source", "status", "labels", "context", "problem", "solution", "code", "category"}
)
_LABELS = frozenset({"title", "tags", "type", "scope", "thread", "created_at", "replaces", "expires"})
_RELATIVE = lazily(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:next|last|this|coming)\s+(?:week|month|year|quarter|sprint|(?:mon|tues"
    r"|wednes|thurs|fri|satur|sun)day)|in\s+(?:a|an|one|two|three|four|five|six|\d+)\s+(?:days?|weeks?|months?))\b",
    re.IGNORECASE,
)


def drafted(
    text: Any,
    *,
    title: str | None = None,
    tags: Sequence[str] = (),
    type: str | None = None,
    scope: str | None = None,
    thread: str | None = None,
    created_at: datetime | str | None = None,
    replaces: str | None = None,
    expires: Expiry = None,
    fields: Mapping[str, Any],
) -> Draft:
    """The draft that the arguments of `Bank.add` make. Raises InvalidInput."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("There is no text to remember.", hint="Give some text.")
    when = date_given(created_at, "created_at")
    own = {**fields, **({"expires": expiry_given(expires)} if expires is not None else {})}
    labels = (title or None, tags_of(tags), type, scope_given(scope), thread, when, own)
    return Draft(text, *labels, replaces=replaces or "")


def refuse(
    bank: Bank, text: Any = None, *, lane: str | None = None, extra: Mapping[str, Any] | None = None, **given: Any
) -> None:
    """Raise what `Bank.add` raises for these arguments before it writes anything: all but what the disk says."""
    labels = {name: given.pop(name) for name in _LABELS & given.keys()}
    _, home, draft = _prepared(bank, drafted(text, **labels, fields=given), lane, extra or {})
    if home.name == "notes":
        from memlane.lanes.notes.store import refuse_unknown

        refuse_unknown(draft.type, draft.fields.get("status"))
    gate.admit(home.checks, draft, home)


def _prepared(
    bank: Bank, draft: Draft, lane: str | None, extra: Mapping[str, Any]
) -> tuple[Memory | None, Lane, Draft]:
    """What a draft replaces, its lane, and the draft as that lane takes it."""
    old = get(bank, draft.replaces) if draft.replaces else None
    home = bank.lane(lane or (old.lane if old else "notes"))
    draft = _placed(home, draft)
    if draft.type in RULES and home.name == "notes":  # what a note is about is a tag
        draft = replace(draft, type=None, tags=tuple(dict.fromkeys((draft.type, *draft.tags))))
    draft = replace(draft, replaces=old.id if old else "", fields=_fields(home, draft.fields, extra))
    draft = home.answers.unfolded(draft)
    return old, home, _in_place_of(home, old, draft) if old and old.lane == home.name else draft


def add(bank: Bank, draft: Draft, lane: str | None, extra: Mapping[str, Any]) -> Memory:
    """As `Bank.add`."""
    old, home, draft = _prepared(bank, draft, lane, extra)
    likes = [] if home.name == "records" else look(bank, draft.text)  # what was said twice was said twice
    if old is None and (same := _same(bank, likes, home, draft, chosen=lane is not None)):
        return _there_already(same, draft)
    memory = home.put(draft)
    replaced = took_place(bank, memory, old)
    likes = [like for like in likes if like.memory.id not in (memory.id, old.id if old else None)]
    remarks = (*memory.remarks, *replaced, *_remarks(memory, draft, likes))
    if is_rule(memory) and not by_user():
        next_step = "`memlane review --only unconfirmed`"
        remarks = (*remarks, f"a rule that an agent stores is data for prompts until the user confirms it: {next_step}")
    if is_private(memory.id) and bank.config.why and bank.config.worktree is None:
        remarks = (*remarks, "it lies in this linked worktree alone, and goes when the worktree is removed")
    return replace(memory, remarks=remarks, similar=_similar(likes), replaces=(old.id,) if replaced and old else ())


def _placed(home: Lane, draft: Draft) -> Draft:
    """The draft with `private` as the place that it is. Raises InvalidInput where the lane has no such place."""
    if (draft.scope or "").strip().lower() == PRIVATE:
        draft = replace(draft, scope=None, fields={**draft.fields, "private": True})
    if draft.fields.get("private") is True and home.name == "records":  # all of them are
        return replace(draft, fields={key: value for key, value in draft.fields.items() if key != "private"})
    if draft.fields.get("private") is True and home.name != "notes":
        raise InvalidInput(
            f"The {home.name} lane is shared as a whole: its files hold many memories.",
            hint="Keep it as a private note: leave out the lane and what only that lane has.",
        )
    return draft


def _fields(home: Lane, fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a draft. Raises InvalidInput for a name that the lane does not know, unless it is in `extra`."""
    names = home.answers.fields
    if names is None and extra:
        raise InvalidInput(f"The {home.name} lane has no room for other fields.", hint="Put it into the text or a tag.")
    if names is not None:
        known(fields, names, home.name, "Put a field of your own under extra.")
    if both := fields.keys() & extra.keys():
        raise InvalidInput(f"{gate.shown(min(both))} is given twice.", hint="Give it once.")
    return {**fields, **extra}


def _in_place_of(home: Lane, old: Memory, draft: Draft) -> Draft:
    """The draft with the labels of what it takes the place of, where it brings none of its own."""
    before = home.answers.draft_of(old)
    place = {name: before.fields[name] for name in _PLACE if before.fields.get(name) is not None}
    if draft.scope is not None:
        place.pop("topic", None)
    return replace(
        draft,
        tags=draft.tags or home.answers.given_tags(old),
        type=draft.type or before.type,
        scope=draft.scope or before.scope,
        thread=draft.thread or before.thread,
        fields={**place, **draft.fields},
    )


# -- the same text


def _same(bank: Bank, likes: Sequence[Like], home: Lane, draft: Draft, *, chosen: bool) -> Memory | None:
    """The memory that says the very same in the place that is asked for; None when there is none.

    What was captured, and what something else has taken the place of, does not count: saying it now is news.
    """
    for like in likes:
        memory = like.memory
        if not like.same or memory.lane == "records" or (chosen and memory.lane != home.name):
            continue
        places = {"scope": draft.scope, "thread": draft.thread, **_places(draft.fields)}
        asked = {name: value for name, value in places.items() if value is not None}
        differs = any(str(value).lower() != str(_of(memory, name)).lower() for name, value in asked.items())
        titled = draft.title and draft.title.strip().lower() != memory.title.strip().lower()
        if not differs and not titled and current(bank, memory.id) is None:
            return memory
    return None


def _places(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _NOT_A_PLACE}


def _of(memory: Memory, name: str) -> Any:
    if name == "private":
        return is_private(memory.id)
    if name == "topic":
        return memory.scope if "/" in str(memory.scope) else memory.fields.get("topic")
    return getattr(memory, name, None) or memory.fields.get(name)


def _there_already(memory: Memory, draft: Draft) -> Memory:
    remarks = [f"it is there already, as {memory.id}; nothing was written"]
    tags = [tag for tag in draft.tags if tag not in memory.tags]
    labels = [f"the tags {', '.join(tags)}"] if tags else []
    labels += [f"the type {draft.type}"] if draft.type not in (None, memory.type) else []
    labels += ["the time when it expires"] if draft.fields.get("expires") != memory.fields.get("expires") else []
    if labels:
        remarks.append(f"{' and '.join(labels)} were not taken over: update {memory.id} to change that")
    return replace(memory, duplicate=True, remarks=tuple(remarks))


# -- what is said of a memory that was stored


def took_place(bank: Bank, memory: Memory, old: Memory | None) -> tuple[str, ...]:
    """Note what a new memory takes the place of. It is stored: what goes wrong here is but a remark."""
    try:
        bank.replaced.end(memory.id, utc_now())  # another memory of that name, which is gone
        if old is None or old.id == memory.id:
            return ()
        bank.replaced.link(memory.id, old.id, utc_now())
    except (MemlaneError, OSError) as error:
        return (f"what it replaces was not noted: {error}",)
    return (f"it takes the place of {old.id}, which stays readable below it",)


def _similar(likes: Collection[Like]) -> tuple[Similar, ...]:
    memories = [like.memory for like in likes][:MOST]
    return tuple(
        Similar(memory.id, (iso(memory.updated_at or memory.created_at) or "")[:10] or None, _shown(memory))
        for memory in memories
    )


def _shown(memory: Memory) -> str:
    if memory.lane == "topics" and memory.title:  # its text begins with a label that all entries have
        return first_line(gate.redacted(memory.title), 120)
    begins = first_line(gate.redacted(memory.text[: gate.ENOUGH]), 120)
    return begins or first_line(gate.redacted(memory.text), 120)


def _remarks(memory: Memory, draft: Draft, likes: Sequence[Like]) -> list[str]:
    remarks = []
    if likes:
        like = likes[0].memory
        says = "says the same" if likes[0].same else "is much like it"
        remarks.append(f"{like.id} {says} ({_shown(like)}): if this replaces it, add it with replaces={like.id}")
    if draft.scope and (memory.scope or "").lower() != draft.scope.strip().lower():
        remarks.append(f"the {memory.lane} lane keeps no scope of its own: it is under {memory.scope or memory.id}")
    if found := _RELATIVE.search(draft.text):
        remarks.append(
            f'"{" ".join(found[0].split())}" will mean another day when it is read: today is '
            f"{utc_now():%A, %Y-%m-%d}, so better write the date"
        )
    return remarks
