"""What sessions were told and what was kept of them: the log that the hooks write, and reading it.

    sessions/<hash of the session's id>.jsonl    in the user's state folder, a line for each event

    {"at":"2025-01-10T14:30:22Z","event":"prompt","session":"…","client":"codex","bank":"/home/ann/app/.memories",
     "project":"/home/ann/app","branch":"main","prompt":"when do we deploy?","tokens":61,
     "given":[{"id":"notes:deploy-day","title":"Deploy day","why":"Related","relevance":0.62}],
     "block":"<memlane-context>…"}

Of a prompt, it has the beginning, without secrets, and the block that was given to it, or why there was none; with
`hook.log = false`, only ids and numbers. It also tells which memories a session was shown, so that none is shown twice.
Only the newest sessions are kept, and of a long one, the blocks of the newer half.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlane import config
from memlane.core.dates import iso, moment, utc_now
from memlane.core.digests import sha256
from memlane.core.errors import MemlaneError, NotFound
from memlane.core.model import USERS
from memlane.core.patterns import lazily
from memlane.core.values import dataclass, field, replace
from memlane.disk import files, journal, state
from memlane.recall import judged

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.core.model import Memory
    from memlane.recall.blocks import Block

FOLDER = "sessions"
KEPT = 200  # sessions
MAX_BYTES = 256 * 1024  # of one session; then the blocks of its older half go, or if that is too little, all of it
PROMPT = 120  # characters of a prompt
BLOCK = 8192  # characters of a block
TITLE = 100
START = "session-start"
_LISTS = ("given", "captured", "distilled")
_LOOKED_AT = 4000  # characters of a prompt that are searched for secrets before it is cut
_WORDS = ("prompt", "failed", "block", "why_nothing")
# What clients and their sessions are called: to look for secrets takes longer than all else about a line of the log.
_NAME = lazily(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z][a-z0-9-]{0,11}")
_TELLING = 20  # bytes of a forgotten line by which it is recognised in what was cut


@dataclass(frozen=True, slots=True)
class Item:
    """A memory that a session was given, or that was kept of it. `why` says what it was given for, `relevance` how
    probable it was that the prompt is about it, `verdict` what the user said of it: see `memlane.recall.judged`, where
    `said` is explained, too. Without a title where the log has ids alone."""

    id: str
    title: str = ""
    why: str = ""
    relevance: float | None = None
    verdict: str = ""
    said: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, Any]:
        names = ("id", "title", "why", "relevance", "verdict")
        return {name: value for name in names if (value := getattr(self, name)) not in ("", None)}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a hook did, or why it `failed` to. `event` is one of `memlane.surfaces.hook.EVENTS`; of a
    `prompt` it has the beginning. `block` is the memory that was handed over, as the client got it; where a prompt got
    none, `why_nothing` says why. Both are "" where the log has no words, or not any more."""

    at: datetime
    event: str
    prompt: str = ""
    failed: str = ""
    tokens: int = 0
    given: tuple[Item, ...] = ()
    captured: tuple[Item, ...] = ()
    distilled: tuple[Item, ...] = ()
    block: str = ""
    why_nothing: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": iso(self.at),
            "event": self.event,
            **{name: getattr(self, name) for name in (*_WORDS, "tokens")},
            **{name: [item.to_dict() for item in getattr(self, name)] for name in _LISTS},
        }


@dataclass(frozen=True, slots=True)
class Session:
    """One session with a client, as its hooks saw it: `events` in order, of which there is at least one."""

    id: str
    client: str
    project: str
    branch: str
    events: tuple[Event, ...]

    @property
    def started(self) -> datetime:
        return self.events[0].at

    @property
    def prompts(self) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.event == "prompt")

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "client": self.client,
            "started": iso(self.started),
            "project": self.project,
            "branch": self.branch,
            "events": [event.to_dict() for event in self.events],
        }


# -- writing


def note(
    settings: config.Config,
    event: str,
    session: str,
    *,
    prompt: str = "",
    block: Block | None = None,
    captured: Iterable[Item] = (),
    distilled: Iterable[Item] = (),
    failed: str = "",
) -> None:
    """Log what a hook did in a session, for the client that `journal.acting` names; `failed` is why it gave up.

    A log that cannot be written is no reason to fail; a client that names no session has none.
    """
    if not session:
        return
    home = config.user_state()
    words = bool(settings["hook.log"])
    project = os.fspath(settings.code or settings.root)
    found: dict[str, Any] = {
        "at": iso(utc_now().replace(microsecond=0)),
        "event": event,
        "session": _clean(session)[:200],
        "client": _clean(journal.by.get().client),
        "bank": os.path.realpath(settings.root),
        "project": project,
        "branch": journal.branch_of(project),
        "prompt": _beginning(prompt) if words and prompt else "",
        "failed": " ".join(_clean(failed).split())[:PROMPT] if words else failed and "failed",
        "tokens": 0 if block is None else block.tokens,
        "given": [] if block is None else [_written(item, words) for item in _given(block)],
        "captured": [_written(item, words) for item in captured],
        "distilled": [_written(item, words) for item in distilled],
        "block": "" if block is None or not words else block if len(block) <= BLOCK else f"{block[:BLOCK]}\n…",
        "why_nothing": block.nothing if block is not None and words else "",
    }
    with suppress(OSError, MemlaneError):
        before = state.append(home, _name(session), _line(found).removesuffix(b"\n"))
        if before > MAX_BYTES:
            _shorten(os.path.join(home, _name(session)))
        if not before:
            _remove_oldest(home)


def item_of(memory: Memory) -> Item:
    """A memory that was written, as an item."""
    return Item(memory.id, memory.title)


def _given(block: Block) -> Iterable[Item]:
    for memory in block.memories:
        why, relevance = block.why.get(memory.id, ("", None))
        near = None if relevance is None else round(relevance, 2)
        yield Item(memory.id, memory.title, why, near, said=judged.said_by(memory))


def _written(item: Item, words: bool) -> dict[str, Any]:
    if not words:
        return Item(item.id, relevance=item.relevance).to_dict()
    title = " ".join(item.title.split())[:TITLE]  # the gate has seen it
    return replace(item, title=title).to_dict() | ({"said": item.said} if item.said else {})


def _clean(text: str) -> str:
    from memlane.gate import redacted

    return redacted(text) if text and not _NAME.fullmatch(text) else text


def _beginning(prompt: str) -> str:
    """How a prompt begins, without the memory that some clients put into it, and without secrets."""
    from memlane.recall.blocks import without_blocks

    return " ".join(_clean(without_blocks(prompt)[:_LOOKED_AT]).split())[:PROMPT]


def _name(session: str) -> str:
    return os.path.join(FOLDER, f"{sha256(session.encode(errors='replace')).hexdigest()[:32]}.jsonl")


def _shorten(path: str) -> None:
    """Take the blocks out of the older half of a log; where that is not enough, that half goes."""
    lines = files.read_bytes(path).splitlines(keepends=True)
    middle = len(lines) // 2
    older = [value for value in map(_parsed, lines[:middle]) if isinstance(value, dict)]
    kept = b"".join(_line({**value, "block": ""}) for value in older)
    newer = b"".join(lines[middle:])
    state.replace(path, kept + newer if len(kept) + len(newer) < MAX_BYTES * 3 // 4 else newer)


def _line(value: Mapping[str, Any]) -> bytes:
    said = json.dumps({name: each for name, each in value.items() if each}, ensure_ascii=False)
    return said.encode(errors="replace") + b"\n"


def _remove_oldest(home: os.PathLike[str]) -> None:
    """Keep the newest sessions; what an older memlane wrote here in another form goes, too."""
    found = state.newest(os.path.join(home, FOLDER))
    logs = [path for path in found if path.endswith(".jsonl")]
    state.remove([*logs[KEPT:], *(path for path in found if path.endswith(".json"))])


# -- reading


def sessions(bank: Bank, limit: int | None = None) -> list[Session]:
    """The sessions of a bank, the last active one first. Raises ConfigError without a home folder."""
    return _read(bank, state.newest(config.user_state() / FOLDER), limit)


def _read(bank: Bank, paths: Iterable[str], limit: int | None = None) -> list[Session]:
    root = os.path.realpath(bank.root)
    verdicts = {one.about: one.verdict or "" for one in judged.answers(bank)}
    found: list[Session] = []
    for path in paths:
        if limit is not None and len(found) >= limit:
            break
        lines = [line for line in _lines(path, bank=root) if line.get("bank") == root]
        if session := _session(lines):
            found.append(_with_verdicts(session, verdicts) if verdicts else session)
    return found


def _with_verdicts(session: Session, verdicts: Mapping[tuple[Any, ...], str]) -> Session:
    """The session, with what the user said of each memory that it was given."""
    events = []
    for event in session.events:
        given = (replace(item, verdict=verdicts.get((item.id, session.id, event.at), "")) for item in event.given)
        events.append(replace(event, given=tuple(given)) if event.given else event)
    return replace(session, events=tuple(events))


def session(bank: Bank, id: str) -> Session:
    """The session of this id, or whose id begins so; the last active one of several. Raises NotFound."""
    matching = _called(bank, id)
    if not matching:
        found = sessions(bank)
        matching = [one for one in found if one.id == id] or [one for one in found if id and one.id.startswith(id)]
    if not matching:
        raise NotFound("There is no such session in the log.", hint="`memlane log --sessions` lists them.")
    return matching[0]


def is_logged(bank: Bank, id: str) -> bool:
    """Whether the log has the session of this very id."""
    return bool(_called(bank, id))


def _called(bank: Bank, id: str) -> list[Session]:
    return _read(bank, [os.path.join(config.user_state(), _name(id))])


def shown(session: str) -> list[str]:
    """The ids of the memories that a session was shown since it last started."""
    ids: list[str] = []
    with suppress(MemlaneError):
        for line in _lines(os.path.join(config.user_state(), _name(session))) if session else ():
            ids = [*([] if line.get("event") == START else ids), *(item.id for item in _items(line.get("given")))]
    return ids


def _session(lines: list[dict[str, Any]]) -> Session | None:
    events = tuple(event for event in map(_event, lines) if event)
    if not events:
        return None
    id, client, project, branch = (str(lines[-1].get(key) or "") for key in ("session", "client", "project", "branch"))
    return Session(id, client, project, branch, events)


def _event(line: Mapping[str, Any]) -> Event | None:
    at, event, tokens = moment(line.get("at")), line.get("event"), line.get("tokens")
    if at is None or not isinstance(event, str):
        return None
    words: dict[str, Any] = {name: str(line.get(name) or "") for name in _WORDS}
    items: dict[str, Any] = {name: _items(line.get(name)) for name in _LISTS}
    return Event(at, event, tokens=tokens if isinstance(tokens, int) else 0, **words, **items)


def _items(value: Any) -> tuple[Item, ...]:
    found = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            near = item.get("relevance")
            title, why, said = (str(item.get(key) or "") for key in ("title", "why", "said"))
            found.append(Item(item["id"], title, why, near if isinstance(near, float) else None, said=said))
    return tuple(found)


def _lines(path: str, bank: str = "") -> list[dict[str, Any]]:
    """The lines of a log; none when it cannot be read, or does not name the bank."""
    try:
        data = files.read_bytes(path) if path.endswith(".jsonl") else b""
    except (OSError, MemlaneError):
        return []
    if json.dumps(bank, ensure_ascii=False).encode(errors="replace") not in data and bank:
        return []
    return [value for value in map(_parsed, data.splitlines()) if isinstance(value, dict)]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


# -- forgetting


def forget(id: str, needles: Collection[bytes]) -> None:
    """Take a memory out of the log: its id wherever it is listed, the blocks that it was in, and all words of a line
    that has some of its own. Raises OSError, StorageError.
    """
    ids = {id, f"{USERS}{id}"}
    signs = {needle[at : at + _TELLING] for needle in needles for at in range(0, len(needle), _TELLING)}
    signs = {sign for sign in signs if len(sign) == _TELLING} | {each for each in needles if len(each) < _TELLING}
    found = state.newest(config.user_state() / FOLDER)
    state.remove([path for path in found if path.endswith(".json")])  # in the form of an older memlane
    for path in found:
        before = files.read_bytes(path) if path.endswith(".jsonl") else b""
        lines = before.splitlines()
        if not any(each.encode() in before for each in ids) and not _holds(before, signs):
            continue
        state.replace(path, b"".join(_without(line, ids, signs) for line in lines))


def _without(line: bytes, ids: Collection[str], signs: Collection[bytes]) -> bytes:
    """A line without these ids; without any words when it holds one of the signs. One that is no JSON goes."""
    value = _parsed(line)
    if not isinstance(value, dict):
        return b""
    if any(id in line.decode(errors="replace") for id in ids):
        value.pop("block", None)
        value.pop("why_nothing", None)
    for name in _LISTS:
        if name in value:
            value[name] = [item.to_dict() for item in _items(value[name]) if item.id not in ids]
    clean = _line(value)
    if not _holds(clean, signs):
        return clean
    for name in _WORDS:
        value.pop(name, None)
    for name in _LISTS:
        if name in value:
            value[name] = [Item(item.id, "", item.why, item.relevance).to_dict() for item in _items(value[name])]
    return _line(value)


def _holds(data: bytes, signs: Collection[bytes]) -> bool:
    """Whether bytes hold one of these, of which there may be very many of _TELLING bytes."""
    if any(sign in data for sign in signs if len(sign) < _TELLING):
        return True
    return any(data[at : at + _TELLING] in signs for at in range(len(data) - _TELLING + 1))
