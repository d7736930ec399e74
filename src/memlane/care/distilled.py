"""What was distilled from sessions, as private notes with the tag `unconfirmed`, until somebody confirms them.

    .memories/private/distilled/importer-fails-because.md

They are the user's own words and work, so they lie where git is told to leave notes out. Of a candidate

- that says nothing new, here or to the user's own bank, nothing is stored; an unconfirmed note that says it notes the
  session (`seen`, `seen_in`);
- that was rejected, or deleted, in these words or nearly, nothing is stored;
- that renews or contradicts an older unconfirmed note, or corrects what such a note says, the note takes its place;
- that would do so to a memory that was written on purpose, the note names it (`instead_of`), and a person decides;
- that tells that open work is done, the note takes the place of that work, which is archived, in the same way.

What the assistant says to be done, without teaching anything, closes unconfirmed open work, too: it is archived.

What is older than what it would replace is not stored. Everything here is one change, which `undo` takes back. What a
person decides is in `memlane.care.deciding`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from memlane.capture.distil.moments import moment_in
from memlane.capture.solved import is_about, says_open, says_solved
from memlane.core.dates import moment, utc_now
from memlane.core.digests import blake2b
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, Refused, StorageError
from memlane.core.model import OBJECTED, PROPOSED, UNCONFIRMED, Draft, Memory
from memlane.core.text import first_line, slug
from memlane.core.values import dataclass, replace
from memlane.disk import files, journal
from memlane.disk.forgotten import as_known
from memlane.disk.names import PRIVATE
from memlane.gate.changes import renews, repeats, tells_of_change, what_is_new
from memlane.gate.likeness import tokens
from memlane.recall import similar
from memlane.recall.adding import took_place
from memlane.recall.starting import OPEN
from memlane.recall.superseded import current, there
from memlane.recall.unconfirmed import last_said

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.capture.distil.candidates import Candidate

FOLDER = "distilled"
REJECTED = "rejected"  # the tag of an archived note that nobody wants to see again
INSTEAD_OF = "instead_of"  # the field with the id of what a note would take the place of
_TYPES = {"fact": "fact", "command": "fact", OPEN: "plan"}  # a note's own; the kind of a candidate is a tag
_COVERED, _FEW = 0.7, 2  # of the words of what a candidate says has changed, and so many at least
_NAMES = 9  # notes of one name that are numbered
_SESSIONS = 20  # that a note names


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of candidates: the notes that were written, and how many were known, deleted before, or refused.

    `closed` are the ids of open work that is done, `proposed` those of notes that would take the place of a memory that
    was written on purpose.
    """

    memories: tuple[Memory, ...] = ()
    known: int = 0
    deleted: int = 0
    refused: int = 0
    closed: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()

    def __add__(self, other: Stored) -> Stored:
        counts = (self.known + other.known, self.deleted + other.deleted, self.refused + other.refused)
        ids = (self.closed + other.closed, self.proposed + other.proposed)
        return Stored(self.memories + other.memories, *counts, *ids)

    def to_dict(self) -> dict[str, Any]:
        return {
            "stored": [memory.to_dict() for memory in self.memories],
            "known": self.known,
            "deleted": self.deleted,
            "refused": self.refused,
            "closed": list(self.closed),
            "proposed": list(self.proposed),
        }


def store(bank: Bank, candidates: Iterable[Candidate], solved: Sequence[tuple[str, str]] = ()) -> Stored:
    """Store candidates as unconfirmed notes, those of older sessions first. `solved` are sentences of the assistant's
    that tell that something is done, and when they were said. Raises StorageError."""
    waiting = list(candidates)
    done = Stored()
    if not waiting and not solved:
        return done
    users = bank.under
    alone = journal.unattended()  # an assistant may have said it, and nobody has looked at it
    with journal.change("distil"), alone, similar.steady(bank), similar.steady(users) if users else nullcontext():
        binned, places = _binned(bank), _Places(bank)
        for candidate in waiting:
            candidate = replace(candidate, files=tuple(map(places.full, candidate.files)))
            journal.step()
            if users and _says(users, candidate.text):
                done += Stored(known=1)
            else:
                with as_known(bank.tombstones.private):
                    done += _settled(bank, candidate, binned)
        done += Stored(closed=_closed_by(bank, solved))
        if done.memories and (watch := bank.watch):
            with suppress(MemlaneError, OSError):  # they are stored; `fresh` tries again
                watch.anchor_said(done.memories)
    return done


def store_new(bank: Bank, transcript: str | list[Any], seconds: float, session: str = "") -> Stored:
    """Store the candidates of what a transcript has got since the last time, as far as it is read in so many seconds.

    Messages that a client hands over instead, with the session's id, are read anew each time: what is stored already
    is recognised. Writes notes, and how far it came under `indices/distil/`. Raises NotFound, StorageError,
    InvalidInput for a file that is no transcript.
    """
    from memlane.capture import transcript_file
    from memlane.capture.distil.candidates import distil
    from memlane.capture.distil.session import Session
    from memlane.capture.progress import Progress, place_of

    if isinstance(transcript, list):
        reading = Session(id=session)
        return store(bank, distil(transcript, session=reading, deadline=monotonic() + seconds), reading.done)
    path = os.path.realpath(transcript)
    place = place_of(bank.root / "indices" / "distil", path)
    with transcript_file.opened(path) as file:
        before = Progress.load(place, file) or Progress()
        reading = Session(id=before.thread, cwd=before.cwd, branch=before.branch, offset=before.offset)
        done = store(bank, distil(path, session=reading, deadline=monotonic() + seconds), reading.done)
        Progress(reading.offset, reading.id, reading.cwd, reading.branch).save(place, file)
    return done


def store_one_before(bank: Bank, transcript: str, seconds: float) -> Stored:
    """For a client that does not say when a session ends: once another one has begun, store what the one before has.

    Notes which transcript was the last in the bank, under `indices/distil/`. Raises as `store_new`.
    """
    note = os.path.join(bank.root, "indices", "distil", "last")
    try:
        before = files.read_text(note)
    except (OSError, StorageError):
        before = ""
    path = os.path.realpath(transcript)
    done = store_new(bank, before, seconds) if before not in ("", path) and os.path.exists(before) else Stored()
    if before != path:
        files.replace(note, path.encode())
    return done


def _settled(bank: Bank, candidate: Candidate, binned: Sequence[str]) -> Stored:
    """Store one candidate, or not."""
    if bank.tombstones.deleted(candidate.text) or any(repeats(candidate.text, text) for text in binned):
        return Stored(deleted=1)
    found = _compared(bank, candidate)
    if found.rejected:
        return Stored(deleted=1)
    if found.outdated:
        return Stored(known=1)
    done = [work for work in _solved(bank, candidate) if work.id != getattr(found.known, "id", None)]
    if found.known:
        _seen_again(bank, found.known, candidate)
        for old in _corrected(bank, candidate):
            if old.unconfirmed and old.id != found.known.id:
                took_place(bank, found.known, old)
        closed = _closed(bank, found.known, [work for work in done if work.unconfirmed])
        return Stored(known=1, closed=closed)
    chosen = (*found.chosen, *(work for work in done if not work.unconfirmed))
    instead_of = chosen[0].id if chosen else ""
    try:
        memory = _added(bank, candidate, instead_of)
    except (Refused, InvalidInput):
        return Stored(refused=1)
    for old in (*found.replaced, *_objected(bank, candidate)):
        took_place(bank, memory, old)
    closed = _closed(bank, memory, [work for work in done if work.unconfirmed])
    return Stored((memory,), closed=closed, proposed=(memory.id,) if instead_of else ())


# -- what is there


class _Compared(NamedTuple):
    known: Memory | None = None  # says it already
    rejected: bool = False
    outdated: bool = False  # something newer says otherwise
    replaced: tuple[Memory, ...] = ()  # unconfirmed ones that it renews
    chosen: tuple[Memory, ...] = ()  # those written on purpose that it would


def _says(users: Bank, text: str) -> bool:
    """Whether the user's own bank, which is read in every project, has nothing to learn from a text."""
    likes = (like for like in similar.look(users, text) if like.memory.lane != "records")
    return any(like.same or not what_is_new(text, like.memory.text) for like in likes)


def _compared(bank: Bank, candidate: Candidate) -> _Compared:
    """How a candidate stands to what the bank says."""
    text, said = candidate.text, moment(candidate.date)
    replaced: list[Memory] = []
    chosen: list[Memory] = []
    for like in similar.look(bank, text, archived=True):
        memory = like.memory
        if memory.lane == "records":
            continue
        if memory.status == "archived" and REJECTED in memory.tags:
            if like.same or repeats(text, memory.text):
                return _Compared(rejected=True)
            continue
        repeated = like.same or not what_is_new(text, memory.text)
        after = current(bank, memory.id)
        if after or memory.status == "archived":  # saying it later is news
            if repeated and not _is_later(said, (after and there(bank, after)) or memory):
                return _Compared(outdated=True)
            continue
        if repeated:
            return _Compared(known=memory)
        if _renews(text, memory.text):
            if said and not _is_later(said, memory):
                return _Compared(outdated=True)
            (replaced if memory.unconfirmed else chosen).append(memory)
    for memory in _corrected(bank, candidate):
        if memory not in (*replaced, *chosen):
            (replaced if memory.unconfirmed else chosen).append(memory)
    return _Compared(replaced=tuple(replaced), chosen=tuple(chosen))


def _corrected(bank: Bank, candidate: Candidate) -> list[Memory]:
    """What the bank has of the assistant's words that the user objected to: an earlier session may have said them."""
    said = moment(candidate.date)
    likes = [(text, like.memory) for text in candidate.against or () for like in similar.look(bank, text)]
    found = {memory.id: memory for text, memory in likes if memory.lane != "records" and repeats(memory.text, text)}
    return [one for one in found.values() if current(bank, one.id) is None and _is_later(said, one)]


def _objected(bank: Bank, candidate: Candidate) -> list[Memory]:
    """The captured message that a correction answers, if it is marked as objected to."""
    said = moment(candidate.date)
    if candidate.against is None or not candidate.session or said is None:
        return []
    records = bank.list(lane="records", thread=candidate.session, until=said, limit=1)
    return [record for record in records if record.fields.get(OBJECTED)]


def _renews(new: str, old: str) -> bool:
    """Whether a text can stand in the place of another, or tells that what the other says has changed."""
    changed = tells_of_change(new) and not tells_of_change(old)
    words = tokens(old)
    return (changed and len(words & tokens(new)) >= max(_COVERED * len(words), _FEW)) or renews(new, old)


def _is_later(said: datetime | None, memory: Memory) -> bool:
    """Whether something was said after a memory was last said or written."""
    then = last_said(memory) if memory.unconfirmed else memory.updated_at or memory.created_at
    return said is not None and (then is None or said >= then)


def _binned(bank: Bank) -> list[str]:
    """The texts of distilled notes that were deleted and are in the trash."""
    gone = [removed for removed in bank.notes.removed() if removed.id.startswith(f"notes:{PRIVATE}/{FOLDER}/")]
    return [text for removed in gone for text in bank.notes.answers.texts_in(os.fspath(removed.path)) if text.strip()]


def _seen_again(bank: Bank, memory: Memory, candidate: Candidate) -> None:
    """Note in an unconfirmed memory that another session said the same. Others do not fade, so nobody would ask."""
    sessions = [memory.fields.get("session"), *_listed(memory.fields.get("seen_in"))]
    if not memory.unconfirmed or not candidate.session or candidate.session in sessions:
        return
    said, last = moment(candidate.date), last_said(memory)
    day = max(filter(None, (said, last)), default=None)
    extra: dict[str, Any] = {
        "seen": day.date().isoformat() if day else None,
        "seen_in": [*sessions[1:], candidate.session][-_SESSIONS:],
    }
    if day == said and _branch(candidate):
        extra["branch"] = _branch(candidate)  # open work is that of the branch it was last said on
    similar.note(bank, bank.update(memory.id, extra=extra))


def _branch(candidate: Candidate) -> str:
    return candidate.branch if candidate.branch != "HEAD" else ""  # none was checked out


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# -- open work


def _solved(bank: Bank, candidate: Candidate) -> list[Memory]:
    """The open work that a candidate tells is done."""
    if candidate.type == OPEN or not says_solved(candidate.text):
        return []
    said = moment(candidate.date)
    found = []
    for memory in similar.tagged(bank, OPEN, UNCONFIRMED):
        if (OPEN in memory.tags or says_open(memory.text)) and is_about(candidate.text, memory.text):
            now = there(bank, memory.id)
            if now and now.status != "archived" and current(bank, now.id) is None and _is_later(said, now):
                found.append(now)
    return found


def _closed_by(bank: Bank, solved: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Archive the unconfirmed open work that one of these sentences, said later, tells is done."""
    closed = []
    for memory in similar.tagged(bank, OPEN, UNCONFIRMED) if solved else ():
        said = [moment(date) for text, date in solved if OPEN in memory.tags and is_about(text, memory.text)]
        now = there(bank, memory.id) if said and memory.unconfirmed else None
        if (
            now
            and now.status != "archived"
            and current(bank, now.id) is None
            and any(_is_later(at, now) for at in said)
        ):
            bank.update(now.id, status="archived")
            closed.append(now.id)
    return tuple(closed)


def _closed(bank: Bank, memory: Memory, work: Sequence[Memory]) -> tuple[str, ...]:
    """Archive open work, with what solved it in its place."""
    for old in work:
        close(bank, memory, old)
    return tuple(old.id for old in work)


def close(bank: Bank, memory: Memory, old: Memory) -> None:
    """Let a memory take the place of open work, which is archived. Raises StorageError."""
    took_place(bank, memory, old)
    if old.lane == "notes":
        bank.update(old.id, status="archived")


# -- writing


class _Places:
    """Which file of the project is meant by a name without its folder; git is asked when that is first needed."""

    def __init__(self, bank: Bank) -> None:
        self._project = bank.config.code if bank.watch else None

    def full(self, name: str) -> str:
        """The path of the one file of this name; the name itself where it is a path, or there is none, or several."""
        if self._project is None or os.path.isabs(name) or os.path.lexists(self._project / name):
            return name
        ending = "/" + name.removeprefix("./")
        found = [path for path in self._tracked if path.endswith(ending)]
        return found[0] if len(found) == 1 else name

    @cached_property
    def _tracked(self) -> list[str]:
        from memlane.history import git

        with suppress(MemlaneError):
            listed = os.fsdecode(git.run(self._project or ".", "ls-files", "-z", most=git.MAX_LISTING)).split("\0")
            return [path for path in listed if path]
        return []


def _added(bank: Bank, candidate: Candidate, instead_of: str) -> Memory:
    """The note of a candidate. Raises Refused, InvalidInput, StorageError."""
    evidence = {
        "session": candidate.session,
        "branch": _branch(candidate),
        "lines": list(candidate.lines),
        "uuids": list(candidate.uuids),
        "files": list(candidate.files),
        "distilled": utc_now().date().isoformat(),
        INSTEAD_OF: instead_of,
        PROPOSED: candidate.proposed,
    }
    evidence["when"] = moment_in(candidate.text)
    fields = {"confidence": candidate.confidence, **{key: value for key, value in evidence.items() if value}}
    draft = Draft(
        f"{candidate.text}\n",
        tags=(candidate.type, UNCONFIRMED),
        type=_TYPES.get(candidate.type, "observation"),
        created_at=moment(candidate.date),
        fields={"private": True, **fields},
    )
    begun = f"{PRIVATE}/{FOLDER}/{slug(first_line(candidate.text, 60)) or 'candidate'}"
    tail = blake2b(candidate.text.encode(errors="replace"), digest_size=4).hexdigest()
    for name in (begun, *(f"{begun}-{number}" for number in range(2, _NAMES + 1)), f"{begun}-{tail}"):
        with suppress(AlreadyExists):
            memory = bank.notes.put(replace(draft, fields={**draft.fields, "filename": name}))
            took_place(bank, memory, None)
            similar.note(bank, memory)
            bank.wrote("notes", memory.file)
            journal.about(memory.id)
            return memory
    raise InvalidInput("There are too many notes of this name.", hint="Rename or delete some.")
