"""What the rest of memlane may ask of a lane besides its verbs: its answers about its own format.

forget asks for every trace that a memory leaves on the disk, doctor for health checks, validate for broken rules, prune
and review for what has aged, undo and history for earlier versions, git for how files merge. `Answers` answers for a
lane of Markdown files with one memory each; a lane of another kind overrides what differs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from memlane.core.dates import iso
from memlane.core.errors import Busy, NotFound, StorageError
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.markdown import first_heading
from memlane.core.model import Draft, Memory, Plan, Problem, Removed, Step
from memlane.core.text import first_line
from memlane.core.values import NamedTuple, dataclass
from memlane.disk import files, names, trash, written
from memlane.disk.walking import Known
from memlane.lanes import read_file

if TYPE_CHECKING:
    from memlane.lanes import Lane


class Kept(Protocol):
    """Where something can be kept under a name until the next time."""

    def kept(self, name: str) -> bytes | None: ...
    def keep(self, name: str, value: bytes) -> None: ...


TELLING = 12  # a line of fewer characters does not tell whose it is

Command = Callable[..., str]  # memlane's command line for some words: command("vault", "compact")
Sign = tuple[str, str, str]  # where, what is wrong, and what mends it


@dataclass(frozen=True, slots=True)
class Part:
    """A memory in a file of many, as it stands there (`raw`); `body` is the same whatever stands below it."""

    id: str
    text: str
    raw: str
    body: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A piece of a memory on the disk. `what` is file, entry, lines, trash, archive or counts.

    `texts` are what the memory says or said there; `marks` are other lines that give it away, such as its title.
    Calling `remove` twice does no harm.
    """

    what: str
    path: str
    texts: tuple[str, ...]
    remove: Callable[[], object]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that can be wrong with a lane's files. `find` reads only; `mend` can do no harm."""

    name: str
    severity: str  # error, warning or info
    what: str
    find: Callable[[Any, Command], Iterator[Sign]]
    mend: Callable[[Any], None] | None = None


class Group(NamedTuple):
    """Steps of pruning that are carried out together. `others` are ids that the reason speaks of; `option` is the
    command that a person may choose instead: rm, edit or none.
    """

    steps: Sequence[Step]
    action: str
    reason: str
    title: str = ""
    others: tuple[str, ...] = ()
    option: str = ""


@dataclass(frozen=True, slots=True)
class Age:
    """How old a memory is. `updated_at` and `days` are None where nothing says when it was last updated."""

    id: str
    band: str  # stale, aging or fresh
    updated_at: str | None
    days: int | None

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "staleness": self.band, "updated_at": self.updated_at, "days": self.days}


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory: a vault's number, a change of the journal (c17) or a git commit.

    `author` is who made it: a name in git, else the surface and client. `text` is None where reading it costs extra.
    """

    version: str
    at: datetime | None
    author: str | None
    what: str
    path: str
    text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.version, "at": iso(self.at), "author": self.author, "what": self.what, "path": self.path,
            "text": self.text,
        }  # fmt: skip


class Read(NamedTuple):
    """What a file says. With `gone`, only what has changed since it had a mark: memories, and the ids of those that
    are not there any more. `mark` tells what the file is now, for the next time; "" where nothing does.
    """

    memories: Iterable[Memory]
    gone: frozenset[str] | None = None
    mark: str = ""


class Answers:
    """Answers for a lane that keeps each memory in a Markdown file of its own, under its native id.

    `merges` pairs the name of a merge driver with the files it is for, a pattern of .gitattributes; `ignores` are
    patterns of .gitignore. In both, `{name}` stands for the name of the lane's root. `private` are further
    ones, for what is somebody's own.
    """

    shares_files: ClassVar[bool] = False  # several memories lie in one file
    is_folder: ClassVar[bool] = True  # the lane's root is a folder, with a trash of its own
    ids_are_random: ClassVar[bool] = False  # no two memories ever have the same id
    prunes: ClassVar[bool] = False
    rules_bind: ClassVar[bool] = True  # an edit that breaks a rule of the format is refused
    rules_are_lasting: ClassVar[bool] = True  # the same file breaks the same rules tomorrow, whatever else happens
    fields: ClassVar[frozenset[str] | None] = None  # that `add` takes; None where the lane itself refuses all others
    merges: ClassVar[tuple[tuple[str, str], ...]] = ()
    ignores: ClassVar[tuple[str, ...]] = (f"{trash.TRASH}/",)
    private: ClassVar[tuple[str, ...]] = ()
    health: ClassVar[tuple[HealthCheck, ...]] = ()

    def __init__(self, lane: Lane) -> None:
        self.lane: Any = lane

    # -- where it is

    def path_of(self, native: str) -> str:
        """The file that a memory of this id is in, or would be in. Raises InvalidInput for an impossible name."""
        return self._inside(f"{native.removesuffix('.md')}.md")

    def native_of(self, path: str) -> str | None:
        """The id of a memory whose own file this is, or would be; None where a file is not one memory's."""
        root = os.fspath(self.lane.root)
        relative = path[len(root) + 1 :] if path.startswith(f"{root}/") else "."
        if f"/{relative}".find("/.") >= 0 or "//" in relative:
            relative = os.path.relpath(path, root)  # which takes longer
        *above, name = relative.split("/")
        hidden = name.startswith(".") or any(part.startswith(".") or part.endswith(".md") for part in above)
        passed_over = "indices" in (*above, name) or hidden  # a folder with a note's name is not looked into
        return relative.removesuffix(".md") if name.endswith(".md") and not passed_over else None

    def owns(self, path: str) -> bool:
        """Whether a file at this path is, or would be, one of the lane's own, by its name alone."""
        return self.native_of(path) is not None

    def files_beside(self) -> list[Path]:
        """Files of the lane that lie outside its root."""
        return []

    def files_in(self, folder: str, names: Collection[str] | None = None) -> tuple[list[str], list[str]] | None:
        """The files of the lane that lie in a folder of its own, and the folders there that may have more.

        With `names`, these files may be all that is looked at, and folders left out. None where it has none of its own,
        or cannot tell by looking into one folder alone.
        """
        return None

    def files_without(self, known: Known) -> Iterator[str | Problem]:
        """The files of the lane that are not `known`."""
        for path in self.lane.files():
            folder, _, name = path.rpartition("/") if isinstance(path, str) else ("", "", "")
            if name not in known.names(folder):
                yield path

    def read(self, path: str, mark: str = "") -> Read:
        """What a file says, or where it can be told, what has changed in it since it had this mark."""
        return Read(item for item in self.lane.parse(path) if isinstance(item, Memory))

    def _inside(self, relative: str) -> str:
        return names.inside(self.lane.root, *relative.split("/"))

    def written_keys(self, memory: Memory) -> tuple[str, ...]:
        """What `memlane.disk.written` knows a memory by; the first stands for exactly what it says now."""
        try:
            return (written.key_of_file(memory.file),)
        except (OSError, StorageError):  # it vanished, and nobody noted what is not there
            return (written.key_of(b""),)

    def keys_of(self, memories: Sequence[Memory]) -> list[str]:
        """The first of the `written_keys` of each."""
        return [self.written_keys(memory)[0] for memory in memories]

    # -- removing for good

    def traces(self, native: str) -> Iterator[Trace]:
        """Everything that a memory leaves on the disk, copies first and the memory itself last."""
        yield from self.trashed(f"{native}.md")
        yield from self.file_traces("file", self.path_of(native))

    def trashed(self, *names: str) -> Iterator[Trace]:
        """The files in the lane's trash that had one of these names; all of them when none is given."""
        if self.is_folder:
            for name, lies, _ in trash.contents(self.lane.root):
                if not names or name in names:
                    yield from self.file_traces("trash", lies)

    def file_traces(self, what: str, path: str) -> Iterator[Trace]:
        """The trace that a memory's own file is."""
        if os.path.lexists(path):
            yield Trace(what, path, tuple(self.texts_in(path)), partial(_remove, path), tuple(titles_in(path)))

    def texts_in(self, path: str) -> list[str]:
        """What the memory in a file of its own says, in its place or in the trash."""
        text = read_file(path)
        if not isinstance(text, str):
            return []
        front = find_front(text)
        return [text[front.body :] if front else text.removeprefix("\ufeff")]

    def titles_of(self, removed: Removed) -> list[str]:
        """What a deleted memory may have been called."""
        path = os.fspath(removed.path)
        return [*titles_in(path), *(first_heading(text) or first_line(text, 80) for text in self.texts_in(path))]

    def aliases(self, native: str) -> set[str]:
        """Names by which the lane's side files know a memory, besides its id."""
        return set()

    def git_needles(self, native: str) -> set[bytes] | None:
        """What tells that a version of a shared file holds this memory; None where its text has to tell."""
        return None

    def purge_recipe(self, native: str, path: str) -> str:
        """The command that takes a memory out of git's history, without repeating what it says."""
        return f"git filter-repo --invert-paths --path {path}"

    def out_of_reach(self) -> Iterator[Sign]:
        """Side files that may hold text of any memory and that `forget` leaves alone."""
        return iter(())

    # -- is it sound

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        """What about a memory is not as the format says, though it can be read."""
        return iter(())

    def format_problems(self, paths: Sequence[str] | None = None) -> Iterator[Problem]:
        """Everything that breaks the lane's rules, or that a merge left undecided, in all files or in these."""
        from memlane.lanes import merging

        for path in self.lane.files() if paths is None else paths:
            for item in (path,) if isinstance(path, Problem) else self.lane.parse(path):
                if isinstance(item, Problem):
                    yield item
                    continue
                yield from (Problem(item.path, why) for why in self.broken_rules(item))
                if why := merging.undecided(item):
                    yield Problem(item.path, why)
        yield from self.crowding(paths)

    def crowding(self, paths: Sequence[str] | None = None) -> Iterator[Problem]:
        """What breaks a rule only together with the rest of the lane, in all files or in these."""
        return iter(())

    def fix_for(self, problem: Problem, command: Command) -> str | None:
        """What mends this damage, where the lane knows better than "edit the file"."""
        return None

    # -- what has aged

    def ages(self) -> Iterator[Age]:
        """The memories that a rule of staleness applies to."""
        return iter(())

    def prunable(self, known: Kept | None = None) -> Plan:
        """What the lane's own rules would archive or delete. Writes nothing but, into `known`, what took long."""
        return Plan()

    def prune(self, steps: Mapping[str, Step], begin: Callable[[str, str], None]) -> Plan:
        """Carry out those of these steps, by id, that the rules still propose, and return what was done.

        `begin(id, action)` is called before each change.
        """
        return Plan()

    def grouped(self, steps: Sequence[Step]) -> Iterator[Group]:
        """Prunable steps as a review shows them: those that go together as one."""
        return (Group([step], step.action, step.reason, step.title) for step in steps)

    # -- earlier versions

    def versions(self, native: str, earlier: Iterable[bytes] = ()) -> list[Version] | None:
        """Every version that the lane itself keeps, or kept in lines that it had `earlier`, the newest first; None
        where each version is one of a file.
        """
        return None

    def put_version(self, native: str, version: str, earlier: Iterable[bytes]) -> None:
        """Make one of these `versions` the newest."""
        raise NotImplementedError

    def writing(self) -> AbstractContextManager[None]:
        """Held while files of the lane are changed from outside."""
        return nullcontext()

    def derived(self) -> str | None:
        """The path of the file that `rebuild` makes anew from the others."""
        return None

    def rebuild(self) -> None:
        """Make the derived file anew."""

    def told(self, data: bytes) -> bytes:
        """What of a content of the derived file others are told: what a person wrote into it."""
        raise NotImplementedError

    def completed(self, told: bytes, before: bytes) -> bytes:
        """What is `told`, and what was told before of files that are not here: others may have them."""
        raise NotImplementedError

    def retold(self, told: bytes, page: bytes) -> bytes:
        """The derived file with what is told, made anew; `page` is what it holds."""
        raise NotImplementedError

    def deleted(self) -> Iterator[Memory]:
        """What the lane's own files still say of memories that were deleted, in each of their versions."""
        return iter(())

    def let_go(self, path: str, after: bytes) -> None:
        """Called, with other writers held off, before a file gets a content from outside (b"" for none): nothing that
        is derived from what goes may look like a person's words then.
        """

    def before_append(self, data: bytes, whole: bytes) -> tuple[bytes, dict[str, str]] | None:
        """For a lane that is an append-only log: the lines that it had (`whole`) of the records that these lines
        changed, and by id a hash of each record as the lines left it. None for any other lane.
        """
        return None

    def undo_append(
        self, before: bytes, after: Mapping[str, str], settle: Callable[[str, str, bool], None]
    ) -> tuple[list[str], list[Sign]]:
        """Append the records as they were, as their next versions: what others appended since stays.

        `settle(id, text, deleted)` is told how each record ends. Returns the ids that went back and the conflicts.
        """
        raise NotImplementedError

    # -- in and out

    def put_back(self, memory: Memory) -> Memory:
        """Store a memory that came out of an export or another store, under its own id where the lane allows it.

        Raises Refused, InvalidInput, AlreadyExists.
        """
        stored: Memory = self.lane.put(self.draft_of(memory))
        return stored

    def unfolded(self, draft: Draft) -> Draft:
        """A draft as somebody gave it, with the labels that its text brings along as its own."""
        return draft

    def draft_of(self, memory: Memory) -> Draft:
        """What the lane has to be told to store a memory as it was."""
        fields = {**memory.fields, "id": memory.native_id}
        return Draft(
            memory.text, memory.title, memory.tags, memory.type, memory.scope, memory.thread, memory.created_at, fields
        )

    def given_tags(self, memory: Memory) -> tuple[str, ...]:
        """The tags that somebody gave a memory: none that were made from its text."""
        return memory.tags

    def changes_to(self, memory: Memory) -> dict[str, Any]:
        """What `revise` has to be given so that a memory says what this one says."""
        return {"text": memory.text, "title": memory.title, "tags": memory.tags, "thread": memory.thread}

    def edited(self, text: str) -> str:
        """A whole file as it comes from an editor, with what the lane keeps up to date in it."""
        return text

    def parts(self, path: str, data: bytes) -> list[Part]:
        """The memories in a content of a file, where they are many and merge as wholes."""
        return []

    def archived(self, path: str, raw: str) -> bool:
        """Whether a memory that such a file had was put away from there."""
        return False

    def with_parts(self, path: str, data: bytes, raws: Sequence[str]) -> bytes:
        """A content of such a file with these memories instead of those that it has."""
        raise NotImplementedError

    def merge_files(self, driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        """The file that says what both sides say. Raises Unmergeable."""
        from memlane.lanes import merging

        return merging.document(*merging.decoded(base, ours, theirs)).encode()


def titles_in(path: str) -> Iterator[str]:
    """The titles in a file's front matter."""
    text = read_file(path)
    front = find_front(text) if isinstance(text, str) else None
    if isinstance(text, str) and front:
        with suppress(FrontMatterError):
            values = load_front(text[front.start : front.end])
            yield from (str(values[key]) for key in ("title", "subject") if values.get(key))


def _remove(path: str) -> None:
    """Remove a memory's own file. Whoever is adding to it has done so before, or finds it gone."""
    try:
        with files.locked(path):
            files.remove(path)
    except Busy:
        raise
    except (NotFound, StorageError):  # a link to nowhere, or what cannot be read: nobody can add to that
        files.remove(path)


def needles(text: str, *, every: bool = False, least: int = TELLING) -> set[bytes]:
    """What tells that bytes hold a text: its longest line, or every one, as it is and as JSON writes it."""
    lines = sorted((line.strip() for line in text.splitlines()), key=len, reverse=True)
    found = set()
    for line in lines if every else lines[:1]:
        if len(line) >= least:
            found |= {line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1]}
    return {needle.encode(errors="replace") for needle in found}


def remove_command(path: str) -> str:
    from shlex import quote

    return f"rm {quote(path)}"
