"""The verbs of mem0's `Memory` over a bank, for programs that were written for it. mem0 itself is not needed.

    memory = Memory(bank)
    memory.add("Likes green tea", user_id="alice")
    memory.search("what does she drink?", filters={"user_id": "alice"})

A memory is a note in the folder `mem0`; the ids of its user, agent and run are in its front matter. There is no model
here that rewrites what was said: what is added is stored as it is, as mem0 does with `infer=False`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from typing import Any

from memlane.bank import Bank
from memlane.core.dates import iso, utc_now
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.model import Hit
from memlane.core.model import Memory as Note
from memlane.disk import journal
from memlane.history import versions
from memlane.lanes.notes.front import values_of

Item = dict[str, Any]
_SESSION = ("user_id", "agent_id", "run_id")
_PROMOTED = (*_SESSION, "actor_id", "role", "expiration_date")
_METADATA, _UPDATED = "metadata", "updated_at"
_UNSET: Any = object()
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, given: bool(value == given),
    "ne": lambda value, given: bool(value != given),
    "in": lambda value, given: value in given,
    "nin": lambda value, given: value not in given,
    "gt": lambda value, given: value is not None and bool(value > given),
    "gte": lambda value, given: value is not None and bool(value >= given),
    "lt": lambda value, given: value is not None and bool(value < given),
    "lte": lambda value, given: value is not None and bool(value <= given),
    "contains": lambda value, given: isinstance(value, str | list) and given in value,
    "icontains": lambda value, given: isinstance(value, str) and str(given).lower() in value.lower(),
}


class Memory:
    """mem0's `Memory`. The bank stays the caller's to close; `folder` is where its notes are.

    Raises what a bank raises: Refused and InvalidInput, which are ValueErrors, for what cannot be stored.
    """

    def __init__(self, bank: Bank, *, folder: str = "mem0") -> None:
        self.bank = bank
        self.folder = folder

    def add(
        self,
        messages: str | Item | Sequence[Item],
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = None,
        infer: bool = True,
    ) -> dict[str, list[Item]]:
        """Remember a text, or what each message says but those of the system. `infer` makes no difference."""
        session = _session(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not session:
            raise InvalidInput("There is no user_id, agent_id or run_id.", hint="Give one of them.")
        own = {**session, _METADATA: _freeform(metadata or {}), "expiration_date": _day(expiration_date)}
        results = []
        with _change("add"):
            for message in list(_messages(messages)):
                who = {"role": message["role"], "actor_id": message.get("name")}
                id, text = str(uuid.uuid4()), _text(message["content"])
                extra = {key: value for key, value in {**own, **who}.items() if value not in (None, {})}
                self.bank.put(f"{self.folder}/{id}", text, extra={**extra, _UPDATED: iso(utc_now())})
                results.append({"id": id, "memory": text, "event": "ADD", **who})
        return {"results": results}

    def get(self, memory_id: str) -> Item | None:
        """The memory of this id; None when there is none."""
        with suppress(NotFound, InvalidInput):
            note = self.bank.get(self._id(memory_id))
            return {**_item(note), "score": None}
        return None

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **wrong: Any
    ) -> dict[str, list[Item]]:
        """The memories of a user, an agent or a run, the newest first."""
        wanted, session = _filters(filters, wrong)
        notes = self.bank.list(lane="notes", where=session)
        found = [_item(note) for note in notes if self._fits(note, wanted, show_expired)]
        return {"results": found[: _count(top_k)]}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        show_expired: bool = False,
        **wrong: Any,
    ) -> dict[str, list[Item]]:
        """The best memories of a user, an agent or a run for a query, best first, by the bank's own ranking.

        `explain` adds the parts of the score. `rerank` makes no difference: a closer look at the best is always taken.
        """
        wanted, session = _filters(filters, wrong)
        if not isinstance(query, str) or not query.strip():
            raise InvalidInput("There is no query.", hint="Give some words.")
        least = 0.1 if threshold is None else threshold
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise InvalidInput("The threshold is not between 0 and 1.", hint="0.1 is the default.")
        count = _count(top_k)
        fitting = (hit for hit in self._hits(query, session, count) if self._fits(hit.memory, wanted, show_expired))
        results = []
        for hit, _ in zip(fitting, range(count), strict=False):
            score = min(max(hit.score, 0.0), 1.0)
            if score >= least:
                why = {"score_details": dict(hit.why)} if explain else {}
                results.append({**_item(hit.memory), "score": score, **why})
        return {"results": results}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text, add to the metadata, set the date; None removes it. Whose it is cannot be changed."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidInput("There is nothing to change.", hint="Give text, metadata or expiration_date.")
        note = self._note(memory_id)
        extra: dict[str, Any] = {_UPDATED: iso(utc_now())}
        if metadata is not None:
            extra[_METADATA] = {**note.fields.get(_METADATA, {}), **_freeform(metadata)}
        if expiration_date is not _UNSET:
            extra["expiration_date"] = _day(expiration_date)
        with _change("update"):
            self.bank.update(note.id, text, extra=extra)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory; `bank.restore` and `memlane undo` bring it back."""
        with _change("delete"):
            self.bank.delete(self._note(memory_id).id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: Any = None, agent_id: Any = None, run_id: Any = None) -> dict[str, str]:
        """Delete all memories of a user, an agent or a run."""
        session = _session(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not session:
            raise InvalidInput("There is no user_id, agent_id or run_id.", hint="`reset` deletes everything.")
        with _change("delete all"):
            for note in self.bank.list(lane="notes", where=session):
                if self._fits(note, session, True):
                    self.bank.delete(note.id)
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Delete everything that was added here; the bank's other memories stay."""
        with _change("reset"):
            for note in self.bank.list(lane="notes"):
                if self._is_ours(note):
                    self.bank.delete(note.id)

    def history(self, memory_id: str) -> list[Item]:
        """What became of a memory, the oldest first; [] when nothing is known of it. Needs the bank's journal."""
        events: list[Item] = []
        before: str | None = None
        front: Mapping[str, Any] = {}
        try:
            known = versions.history(self.bank, self._id(memory_id))
        except (NotFound, InvalidInput):
            return []
        for version in reversed(known):
            after = None
            with suppress(NotFound):
                whole = versions.show(self.bank, self._id(memory_id), version.version).text
                front, after = values_of(whole) if whole else (front, None)
            events.append(
                {
                    "id": version.version,
                    "memory_id": memory_id,
                    "old_memory": before,
                    "new_memory": after,
                    "event": "ADD" if before is None else "DELETE" if after is None else "UPDATE",
                    "created_at": front.get("created_at"),
                    "updated_at": iso(version.at),
                    "is_deleted": after is None,
                    "actor_id": front.get("actor_id"),
                    "role": front.get("role"),
                }
            )
            before = after
        return events

    # -- notes

    def _id(self, memory_id: str) -> str:
        return f"notes:{self.folder}/{memory_id}"

    def _note(self, memory_id: str) -> Note:
        try:
            return self.bank.get(self._id(memory_id))
        except NotFound:
            raise InvalidInput("There is no memory of that id.", hint="`get_all` shows the ids.") from None

    def _is_ours(self, note: Note) -> bool:
        return note.id.startswith(self._id(""))

    def _fits(self, note: Note, wanted: Mapping[str, Any], show_expired: bool) -> bool:
        if not self._is_ours(note):
            return False
        until = note.fields.get("expiration_date")
        return (show_expired or not until or str(until) >= utc_now().date().isoformat()) and _matches(
            _payload(note), wanted
        )

    def _hits(self, query: str, session: Mapping[str, str], count: int) -> Iterator[Hit]:
        """Hits, best first, as many as are asked for: further filters apply before the cut."""
        limit, seen = max(4 * count, 60), 0
        while True:
            hits = self.bank.search(query, limit, lane="notes", where=session)
            yield from hits[seen:]
            if len(hits) < limit:
                return
            limit, seen = 4 * limit, len(hits)


@contextmanager
def _change(verb: str) -> Iterator[None]:
    """One change for `undo`. What comes in through mem0's verbs is what somebody said, and not the user's own word."""
    with journal.acting("python", "mem0"), journal.change(verb):
        yield


# -- what mem0 takes and gives


def _session(**ids: Any) -> dict[str, str]:
    """The ids that are given, as text without space around it. Raises InvalidInput for what is none."""
    given = {name: str(value).strip() for name, value in ids.items() if value is not None}
    for name, value in given.items():
        if not value or len(value.split()) > 1:
            raise InvalidInput(f"{name} is empty, or has spaces in it.", hint="Give a name in one word.")
    return given


def _filters(filters: Mapping[str, Any] | None, wrong: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The filters, and of them the ids that are given as they are."""
    if wrong:
        raise InvalidInput(
            f"{', '.join(wrong)} cannot be given here.", hint='An id belongs in filters: {"user_id": …}.'
        )
    wanted = dict(filters or {})
    plain = {name: wanted[name] for name in _SESSION if name in wanted and not isinstance(wanted[name], Mapping)}
    any_value = [name for name, value in plain.items() if value == "*"]
    wanted |= (session := _session(**{name: value for name, value in plain.items() if value != "*"}))
    if not any(name in wanted for name in _SESSION):
        raise InvalidInput("filters has no user_id, agent_id or run_id.", hint='Give {"user_id": …}.')
    return {**wanted, **dict.fromkeys(any_value, "*")}, session


def _freeform(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without the keys that say whose a memory is: those are arguments of their own."""
    return {key: value for key, value in metadata.items() if key not in (*_SESSION, "actor_id")}


def _matches(payload: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_met(payload, key, condition) for key, condition in wanted.items())


def _met(payload: Mapping[str, Any], key: str, condition: Any) -> bool:
    if key in ("AND", "OR", "NOT"):
        if not isinstance(condition, list):
            raise InvalidInput(f"{key} is not a list of conditions.", hint='Give {"OR": [{…}, {…}]}.')
        met = [_matches(payload, each) for each in condition]
        return all(met) if key == "AND" else any(met) if key == "OR" else not any(met)
    value = payload.get(key)
    if not isinstance(condition, Mapping):
        return key in payload if condition == "*" else bool(value == condition)
    if unknown := condition.keys() - _COMPARED.keys():
        raise InvalidInput(f"There is no operator {min(unknown)}.", hint=f"Use one of: {', '.join(_COMPARED)}.")
    try:
        return all(_COMPARED[operator](value, given) for operator, given in condition.items())
    except TypeError:  # 3 < "b"
        return False


def _messages(given: Any) -> Iterator[Item]:
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    elif isinstance(given, Mapping):
        given = [given]
    elif not isinstance(given, list | tuple):
        raise InvalidInput("messages is no text and no list of messages.", hint='Give {"role": …, "content": …}.')
    for message in given:
        if not isinstance(message, Mapping) or message.get("role") is None or message.get("content") is None:
            raise InvalidInput("A message has no role or no content.", hint='Give {"role": …, "content": …}.')
        if message["role"] != "system":
            yield dict(message)


def _text(content: Any) -> str:
    """What a message says; of several parts, the texts."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("text"))
    return str(content)


def _payload(note: Note) -> dict[str, Any]:
    return {**note.fields.get(_METADATA, {}), **{key: note.fields[key] for key in _PROMOTED if key in note.fields}}


def _item(note: Note) -> Item:
    metadata = note.fields.get(_METADATA) or None
    return {
        "id": note.native_id.rpartition("/")[2],
        "memory": note.text,
        "hash": hashlib.md5(note.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata,
        "created_at": iso(note.created_at),
        "updated_at": note.fields.get(_UPDATED),
        **{key: note.fields[key] for key in _PROMOTED if key in note.fields},
    }


def _count(top_k: Any) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise InvalidInput("top_k is not a number from 0 on.", hint="20 is the default.")
    return top_k


def _day(given: Any) -> str | None:
    if given is None:
        return None
    if isinstance(given, date):
        return (given.date() if isinstance(given, datetime) else given).isoformat()
    try:
        return date.fromisoformat(given).isoformat()
    except (TypeError, ValueError):
        raise InvalidInput("expiration_date is not a date.", hint="Write it as 2026-12-31.") from None
