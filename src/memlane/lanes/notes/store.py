"""Notes (seed 003): one Markdown file with YAML front matter each, soft deletion into `.trash/`.

    .memories/auth-plan.md            id "auth-plan"
    .memories/2025/january/day.md     id "2025/january/day"
    .memories/.trash/old_20250110_143022.md

The seed's verbs (create_memory …) answer with its dictionaries, and with {"error": …} instead of raising.
Does not search: search is the bank's.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from memlane import gate
from memlane.core.dates import iso, moment, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotEnabled, NotFound
from memlane.core.front_matter import FrontMatterError, find_front, load_front, render_front, with_body
from memlane.core.markdown import first_heading
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import first_line, joined, nearest, newline_of, slug
from memlane.core.values import replace
from memlane.disk import derived, files, journal, trash, walking, written
from memlane.disk.names import PRIVATE, folded, inside, is_reserved, is_utf8, namesake, safe_parts
from memlane.disk.tombstones import Tombstones
from memlane.disk.walking import Known
from memlane.lanes import NAMES, edited, known, read_file, readable, scan, unless_forgotten
from memlane.lanes.notes import front
from memlane.lanes.notes.front import KEYS

if TYPE_CHECKING:
    from memlane.lanes.notes.answers import NoteAnswers

TYPES = ("journal", "plan", "fact", "observation", "reflection")
STATUSES = ("active", "archived")
_WORDS = ("scope", "project", "thread")
_FIELDS = frozenset({"text", *front.MEANT, *front.KEYS})

P = ParamSpec("P")


def _answers(
    verb: Callable[Concatenate[NoteLane, P], dict[str, Any]],
) -> Callable[Concatenate[NoteLane, P], dict[str, Any]]:
    """The seed's verbs never raise what a caller can mend: they answer {"error": text, "hint": next step}."""

    @wraps(verb)
    def answer(lane: NoteLane, /, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        try:
            if not lane.enabled:
                raise NotEnabled("Memory system is not enabled")
            return verb(lane, *args, **kwargs)
        except MemlaneError as error:
            return {"error": str(error), **({"hint": error.hint} if error.hint else {})}

    return answer


class NoteLane:
    """A folder of notes. `skip` names sub-folders that belong to other lanes of the same bank."""

    name = "notes"

    def __init__(
        self,
        root: str | Path = ".memories",
        *,
        enabled: bool = True,
        skip: Sequence[str | Path] = (),
        clock: Callable[[], datetime] = utc_now,
        guard: gate.Guard = gate.DEFAULT,
        tombstones: Tombstones | None = None,
    ) -> None:
        self.root = Path(root).absolute()
        files.take_root(self.root, chosen=False)
        self.enabled = enabled
        self.clock = clock
        self.checks = gate.common(guard)
        self.tombstones = tombstones or Tombstones()
        self._skip = tuple(os.fspath(Path(folder).absolute()) for folder in skip)
        self._namesakes: dict[str, tuple[int, set[str]]] = {}

    # -- the seed's verbs

    @_answers
    def create_memory(
        self, filename: str, content: str, tags: Sequence[str] = (), memory_type: str = "journal"
    ) -> dict[str, Any]:
        """Write a new note with front matter. An unknown type becomes "journal"."""
        kind = memory_type if memory_type in TYPES else TYPES[0]
        given = Draft(content, tags=to_tags(tags), type=kind, fields={"filename": filename})
        if kind == TYPES[0] and front.brought(content)[0].get("type") in TYPES:  # it counts more than a default
            given = replace(given, type=None)
        draft = self._admit(front.unfolded(given, to_tags))
        path = self.new_path(draft.fields["filename"])
        self._create(path, self._front(draft), draft.text)
        return self._written("created", path, draft.remarks)

    @_answers
    def read_memory(self, filename: str) -> dict[str, Any]:
        """The whole file, front matter included."""
        path = self._given(filename)
        if self.tombstones.forgotten(_body(self, path), f"notes:{self._native(path)}"):
            raise NotFound(
                "The note says what was forgotten, and is held back.", hint="`memlane doctor --only damage` names it."
            )
        return {"filename": self._filename(path), "content": readable(path), "path": path}

    @_answers
    def update_memory(self, filename: str, content: str) -> dict[str, Any]:
        """Replace the whole file; front matter that is not in `content` is gone."""
        path = self._given(filename)
        draft = self._admit(Draft(content, over=readable(path)))
        with files.locked(path):
            dropped = front.dropped(readable(path), draft.text)
            files.replace(path, files.encoded(draft.text))
        return self._written("updated", path, (*draft.remarks, dropped) if dropped else draft.remarks)

    @_answers
    def append_memory(self, filename: str, content: str) -> dict[str, Any]:
        """Add two newlines and the content to the end."""
        path = self._given(filename)
        with unless_forgotten(self.tombstones, lambda: self.fetch(self._native(path))):
            return self._written("appended", path, self._append(path, content))

    @_answers
    def delete_memory(self, filename: str) -> dict[str, Any]:
        """Move the file into `.trash/` under a stamped name."""
        path = self._given(filename)
        moved = self._trash(path).path
        return {"status": "deleted", "filename": self._filename(path), "moved_to": os.fspath(moved)}

    @_answers
    def merge_memories(self, source_files: Sequence[str], target_file: str, summary_content: str) -> dict[str, Any]:
        """As `merge`."""
        merged = self.merge(source_files, target_file, summary_content)
        return {
            "status": "merged",
            "target_file": self._filename(merged.file),
            "sources_merged": str(len(set(map(self._name, source_files)))),
            "target_path": merged.file,
            **_remark(merged.remarks),
        }

    def merge(self, sources: Sequence[str], target: str, content: str) -> Memory:
        """Write exactly `content` to a new file, then move the sources to the trash.

        Everything is checked before anything is written. Raises InvalidInput, NotFound, AlreadyExists, Refused.
        """
        if not sources:
            raise InvalidInput("No source files provided", hint="Name the notes that are to be merged.")
        old = [self._given(name, "Source file") for name in dict.fromkeys(map(self._name, sources))]
        draft = self._admit(Draft(content, fields={"filename": target}, over="\n".join(map(readable, old))))
        new = self.new_path(draft.fields["filename"])
        if os.path.lexists(new):
            raise AlreadyExists(f"Target file already exists: {self._filename(new)}", hint="Choose another name.")
        self._create(new, "", draft.text)
        kept = front.values_of(draft.text)[0]
        tags = dict.fromkeys(tag for path in old for tag in to_tags(front.values_of(readable(path))[0].get("tags")))
        lost = [tag for tag in tags if tag not in to_tags(kept.get("tags"))]
        for path in old:
            self._trash(path)
        why = f"the sources' tags are not in the new note: {', '.join(lost)}; begin the content with front matter to"
        return self._just_written(new, (*draft.remarks, *([f"{why} keep them"] if lost else [])))

    @_answers
    def stats(self) -> dict[str, Any]:
        """How many notes there are, how large, and how often each tag and type occurs."""
        return _stats(self)

    get_memory_stats = stats

    @property
    def answers(self) -> NoteAnswers:
        from memlane.lanes.notes.answers import NoteAnswers

        return NoteAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        root = settings.lane_root("notes")
        others = (settings.lane_root(name) for name in NAMES if name != "notes")
        return {"skip": [place for place in others if root in place.parents]}

    # -- the bank's verbs

    def files(self, known: Known | None = None) -> Iterator[str | Problem]:
        return walking.walk(self.root, skip=self._skip, known=known)

    def files_in(self, folder: str, names: Collection[str] | None = None) -> tuple[list[str], list[str]] | None:
        if not f"{folder}/".startswith(f"{self.root}/") or self._is_skipped(f"{folder}/"):
            return None
        found, folders = walking.walk_one(folder, self.root, skip=self._skip, names=names)
        return [path for path in found if isinstance(path, str)], folders

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        text = read_file(path)
        if isinstance(text, Problem):
            yield text
        elif text is not None:
            yield from self._parse(path, text)

    def fetch(self, native: str) -> Memory:
        path = self._located(native)
        return next(item for item in self._parse(path, readable(path)) if isinstance(item, Memory))

    def put(self, draft: Draft) -> Memory:
        refuse_unknown(draft.type, draft.fields.get("status"), also=("rule", "preference"))  # the bank's `add` does
        folder, draft = _placed(self.root, self._admit(draft))
        head = self._front(draft)
        if "filename" in draft.fields:
            path = self.new_path(folder + self._name(draft.fields["filename"]).removeprefix(folder))
            self._create(path, head, draft.text)
        else:
            path = self._create_named(folder, slug(draft.title or first_line(draft.text)), head, draft.text)
        return self._just_written(path, draft.remarks)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        as_it_is = "extra" in changes  # a program keeps fields apart from the text
        changes, own = _own_keys(changes)
        known(changes, _FIELDS, self.name, "Put a field of your own under extra.")
        changes = changes if as_it_is else _merged(changes)
        refuse_unknown(changes.get("type"), changes.get("status"), changes.get("scope"))
        path = self._located(native)
        draft = self._admit(Draft(changes.get("text", ""), fields={**changes, **own, "text": ""}, over=readable(path)))
        keys = {key: _front_value(value) for key, value in draft.fields.items() if key != "text"}
        with files.locked(path):
            text = readable(path)
            if "text" in changes:
                text = with_body(text, draft.text)
            files.replace(path, files.encoded(edited(text, keys)))
        return self._just_written(path, draft.remarks)

    def extend(self, native: str, text: str) -> Memory:
        path = self._located(native)
        return self._just_written(path, self._append(path, text))

    def drop(self, native: str) -> Removed:
        return self._trash(self._located(native))

    def set_aside(self, native: str) -> None:
        """Move a note that another one replaces into the trash: its text does not count as deleted."""
        path = self._located(native)
        with files.locked(path):
            trash.put(path, self.root, self.clock())

    def recover(self, native: str) -> Memory:
        """Make an archived note active again or, where none of this name is there, take it out of the trash."""
        with suppress(NotFound):
            if self.fetch(native).status == "archived":
                return self.revise(native, {"status": "active"})
        for name, trashed, _ in trash.contents(self.root):
            if name == f"{native}.md":
                path = inside(self.root, *name.split("/"))
                self._refuse_namesake(path)
                self.tombstones.lift(_body(self, trashed), forgotten=False)
                files.move(trashed, path)
                written.note_back(path, files.read_bytes(path))
                return self.fetch(native)
        raise NotFound(f"The trash has no note {gate.shown(native)}.", hint="`memlane restore` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, trashed, when in trash.contents(self.root):
            yield Removed(f"{self.name}:{name.removesuffix('.md')}", "trash", Path(trashed), when)

    # -- the format

    def _parse(self, path: str, text: str) -> Iterator[Memory | Problem]:
        head = find_front(text)
        values: dict[str, Any] = {}
        body = text.removeprefix("\ufeff")
        if head:
            try:
                values = load_front(text[head.start : head.end])
                body = text[head.body :]
            except FrontMatterError as error:
                yield Problem(Path(path), f"front matter {error}; it is read as text", error.line)
        yield self._memory(path, values, body)

    def _memory(self, path: str, front: Mapping[str, Any], body: str) -> Memory:
        native = self._native(path)
        kind, status = front.get("type"), front.get("status")
        words: dict[str, Any] = {name: str(front[name]) for name in _WORDS if front.get(name) is not None}
        title = front.get("title") or first_heading(body) or (first_line(body[:400], 80) if front else "")
        return Memory(
            id=f"notes:{native}",
            lane="notes",
            text=body,
            title=str(title or native),
            file=path,
            tags=to_tags(front.get("tags")),
            type=kind if kind in TYPES else TYPES[0],
            status=status if status in STATUSES else STATUSES[0],
            **words,
            created_at=moment(front.get("created_at", front.get("created", front.get("date")))),
            fields={key: value for key, value in front.items() if key not in KEYS},
        )

    def _front(self, draft: Draft) -> str:
        values: dict[str, Any] = {"title": draft.title} if draft.title else {}
        values |= {
            "type": draft.type or TYPES[0],
            "status": draft.fields.get("status", STATUSES[0]),
            "tags": list(draft.tags),
            "created_at": iso(draft.created_at or self.clock()),
        }
        values |= {key: value for key in ("scope", "thread") if (value := getattr(draft, key)) is not None}
        values |= {key: _front_value(value) for key, value in draft.fields.items() if key not in ("filename", "status")}
        return render_front(values | _author())

    # -- files

    def _admit(self, draft: Draft) -> Draft:
        return gate.admit(self.checks, draft, self)

    def new_path(self, filename: str) -> str:
        """The path of a note to be made. Raises InvalidInput for a name that some file system or walking would miss."""
        parts = safe_parts(self._name(filename))
        path = inside(self.root, *parts)
        if any(part == "indices" or part.endswith(".md") for part in parts[:-1]) or self._is_skipped(path):
            raise InvalidInput("That folder is not for notes.", hint="Choose another folder.")
        return path

    def _name(self, filename: Any) -> str:
        """A file name as the seed's verbs take it: with or without `.md`, an id, or the path of a file in the lane."""
        if not isinstance(filename, str) or not filename.strip():
            raise InvalidInput("There is no filename.", hint="Give a name such as auth-plan.md.")
        name = filename.removeprefix("memory:").removeprefix("notes:").removeprefix(os.path.join(self.root, ""))
        return name if name.endswith(".md") else f"{name}.md"

    def _existing(self, filename: str) -> str:
        """The path of a note that is there, under whatever name people or other programs gave it. Raises NotFound."""
        for name in dict.fromkeys((filename, *(unicodedata.normalize(form, filename) for form in ("NFC", "NFD")))):
            path = inside(self.root, *name.split("/"))
            hidden = any(part.startswith(".") or part == "indices" for part in name.split("/"))
            if not hidden and is_utf8(name) and os.path.isfile(path) and not self._is_skipped(path):
                return path
        raise NotFound(f"Memory file not found: {gate.shown(filename)}", hint="`memlane list` shows the ids.")

    def _given(self, filename: Any, what: str = "Memory file") -> str:
        """The path of the note that one of the seed's verbs was given. Raises NotFound with the nearest names."""
        name = self._name(filename)
        try:
            return self._existing(name)
        except NotFound as error:
            known = [self._filename(path) for path in self.files() if isinstance(path, str)]
            near = nearest(name, ((other, (other[:-3], os.path.basename(other)[:-3])) for other in known))
            raise NotFound(f"{what} not found: {gate.shown(name)}", hint=error.hint, near=near) from None

    def _located(self, native: str) -> str:
        """The path of a memory of this id; an id with `.md` at its end is understood, too."""
        try:
            return self._existing(f"{native}.md")
        except NotFound:
            if not native.endswith(".md"):
                raise
            return self._existing(native)

    def _is_skipped(self, path: str) -> bool:
        return any(path.startswith(folder + os.sep) for folder in self._skip)

    def _trash(self, path: str) -> Removed:
        now = self.clock()
        with files.locked(path):  # so that nobody appends to what is on its way out
            body = _body(self, path)
            moved = trash.put(path, self.root, now)
        id = f"notes:{self._native(path)}"
        self.tombstones.bury((id, body))
        return Removed(id, "trash", Path(moved), now)

    def _just_written(self, path: str, remarks: tuple[str, ...]) -> Memory:
        """The note that was just written. It is wanted, even if the same text was deleted before."""
        memory = self.fetch(self._native(path))
        return replace(memory, remarks=(*remarks, *self.tombstones.lift(memory.text, memory.id, memory.title)))

    def _written(self, status: str, path: str, remarks: tuple[str, ...]) -> dict[str, Any]:
        """The seed's answer after a note was written."""
        if self.tombstones.any():
            remarks = self._just_written(path, remarks).remarks
        return {"status": status, "filename": self._filename(path), "path": path, **_remark(remarks)}

    def _filename(self, path: str) -> str:
        return path[len(os.fspath(self.root)) + 1 :]

    def _native(self, path: str) -> str:
        return self._filename(path).removesuffix(".md")

    def _create(self, path: str, front: str, content: str) -> None:
        data = files.encoded(front + content)
        filename = self._filename(path)
        hint = f"`memlane update {filename}` changes it; or choose another name."
        taken = AlreadyExists(f"Memory file already exists: {filename}", hint=hint)
        if os.path.lexists(path):
            raise taken
        self._refuse_namesake(path)
        try:
            files.create(path, data)
        except AlreadyExists:
            raise taken from None
        self._note_name(path)

    def _create_named(self, folder: str, stem: str, front: str, content: str) -> str:
        """Create under the first free name: stem, stem-2, … and, where many want the same one, a random tail."""
        stem = f"note-{stem}" if is_reserved(stem) else stem or "note"
        for attempt in range(100):
            tail = "" if attempt == 0 else f"-{attempt + 1}" if attempt < 9 else f"-{os.urandom(4).hex()}"
            try:
                path = self.new_path(f"{folder}{stem}{tail}.md")
                self._create(path, front, content)
            except AlreadyExists:
                continue
            return path
        raise AlreadyExists(f"No free name for {stem!r}.", hint="Give a title of its own.")

    def _append(self, path: str, content: str) -> tuple[str, ...]:
        draft = self._admit(Draft(content))
        with files.locked(path):
            text = readable(path)
            front = find_front(text)
            body = front.body if front else 0  # trailing space of the front matter is not ours to strip
            files.replace(path, files.encoded(text[:body] + joined(text[body:] or newline_of(text), draft.text)))
        return draft.remarks

    # Case and Unicode namesakes are a courtesy to other file systems, so a listing remembered per folder will do:
    # reading a folder of 10,000 names at every write would cost more than the write.

    def _refuse_namesake(self, path: str) -> None:
        """Raise AlreadyExists when the file or a folder on its way differs from a name only in case or Unicode form."""
        while len(path) > len(os.fspath(self.root)):
            folder, name = os.path.split(path)
            likely = folded(name) in self._names_in(folder) and not os.path.lexists(path)
            if likely and (taken := namesake(path)):  # what is known of a folder may be a moment old
                raise AlreadyExists(
                    f"Memory file already exists: {taken} differs from {name} only in case or Unicode form, which some "
                    "file systems cannot tell apart.",
                    hint="Choose another name.",
                )
            path = folder

    def _names_in(self, folder: str) -> set[str]:
        try:
            changed = os.stat(folder).st_mtime_ns
            remembered = self._namesakes.get(folder)
            if remembered is None or remembered[0] != changed:
                remembered = (changed, set(map(folded, files.names_in(folder))))
                self._namesakes[folder] = remembered
        except OSError:
            return set()  # no such folder yet; whatever else is wrong with it, writing will say
        return remembered[1]

    def _note_name(self, path: str) -> None:
        folder, name = os.path.split(path)
        if remembered := self._namesakes.get(folder):
            remembered[1].add(folded(name))
            self._namesakes[folder] = (os.stat(folder).st_mtime_ns, remembered[1])


def _body(lane: NoteLane, path: str) -> str:
    """The text of a note's file; "" when it cannot be read."""
    return "".join(lane.answers.texts_in(path))


def _own_keys(changes: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Changes, and apart from them the keys that are the caller's own, under `extra`; None removes one."""
    own = changes.get("extra") or {}
    if not isinstance(own, Mapping) or not all(isinstance(key, str) and key.strip() for key in own):
        raise InvalidInput("extra is not a mapping from names to values.", hint='Give extra={"name": value}.')
    if taken := sorted((_FIELDS | {"filename"}) & own.keys()):
        raise InvalidInput(f"{', '.join(taken)} cannot be under extra.", hint="It is an argument of its own.")
    return {key: value for key, value in changes.items() if key != "extra"}, own


def _merged(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Changes with what the front matter of a new text says, where nothing else says it."""
    values, body = front.brought(changes.get("text"))
    if "tags" in values:
        values["tags"] = to_tags(values["tags"])
    return {**values, **changes, "text": body} if values else changes


def _placed(root: Path, draft: Draft) -> tuple[str, Draft]:
    """The folder below root that a new note is to be in, and the draft without what says so."""
    if draft.fields.get("private") is not True:
        return "", draft
    derived.prepare(root / PRIVATE)
    return f"{PRIVATE}/", replace(draft, fields={key: value for key, value in draft.fields.items() if key != "private"})


def refuse_unknown(kind: Any, status: Any, scope: Any = None, also: Sequence[str] = ()) -> None:
    """Raise InvalidInput for a type or status that notes do not have, and for a scope that is a place. `also` are
    types that a caller may give instead.
    """
    if scope == PRIVATE:
        hint = "`memlane share --private ID` moves it."
        raise InvalidInput("A note is private by where it lies, and not by its scope.", hint=hint)
    for value, allowed, what, more in ((kind, TYPES, "note type", also), (status, STATUSES, "status", ())):
        if value not in (None, *allowed):
            raise InvalidInput(f"There is no such {what}.", hint=f"Use one of: {', '.join((*allowed, *more))}.")


def human_size(size: int) -> str:
    """`512B`, `45.2KB`, `1.3MB`."""
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}MB"


def to_tags(value: Any) -> tuple[str, ...]:
    """Tags as people write them: a list, or one string with commas."""
    if not value:
        return ()
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(tag for item in items if item is not None and (tag := str(item).strip())))


def _author() -> dict[str, str]:
    """Who writes, where that is known to be somebody else than the user: whatever the draft says of its author."""
    author = journal.by.get().author
    return {"author": author} if author else {}


def _front_value(value: Any) -> Any:
    """A value that front matter can hold. Raises InvalidInput for anything else."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    if value is None or isinstance(value, str | int | float | bool | list | dict):
        return value
    raise InvalidInput(f"A {type(value).__name__} cannot be stored in front matter.", hint="Use text or numbers.")


def _remark(remarks: tuple[str, ...]) -> dict[str, str]:
    return {"remark": "; ".join(remarks)} if remarks else {}


def _stats(lane: NoteLane) -> dict[str, Any]:
    size = 0
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for memory in scan(lane):
        if isinstance(memory, Memory):
            size += files.size_of(memory.file)
            tags.update(memory.tags)
            types[memory.type or TYPES[0]] += 1
    return {
        "count": types.total(),
        "total_size": human_size(size),
        "tags": dict(tags.most_common()),
        "types": dict(types.most_common()),
        "memory_path": os.fspath(lane.root),
    }
