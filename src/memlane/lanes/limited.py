"""A lane as somebody sees it who may use some scopes only: what is in another one is not there.

Whatever reads a bank reads its lanes: lists, the index and everything that is made from it, names, links, counts. So a
memory that its lane does not have is in no answer, and nothing that is worked out from all memories knows of it. What a
lane does besides is refused unless it is named here, so that a new verb leaks nothing.

Only notes can be written. The files of other lanes hold memories of all scopes, and what their rules say (it is there
already, it is full) would tell of the others. A new note lies in a folder of its scope, for the same reason: whether a
name is free elsewhere is not for everybody to know.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from memlane.core.access import Access
from memlane.core.digests import sha256
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound
from memlane.core.front_matter import FrontMatterError, edit_front
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import first_line, slug
from memlane.core.values import replace
from memlane.disk import files
from memlane.gate import shown
from memlane.lanes import Lane
from memlane.lanes.answers import Answers, Read

FOLDER = "scopes"  # of the notes that somebody wrote who may use some scopes only
_ATTEMPTS = 50
_TOLD = frozenset({"name", "root", "checks", "enabled", "default_scope", "scopes"})  # nothing of it is a memory's
_ANSWERED = frozenset(
    {
        "shares_files", "is_folder", "ids_are_random", "rules_bind", "rules_are_lasting", "fields",
        "path_of", "native_of", "files_in", "files_without", "files_beside", "written_keys", "keys_of",
        "broken_rules", "fix_for", "titles_of", "texts_in", "unfolded", "draft_of", "given_tags", "edited", "aliases",
    }
)  # fmt: skip


class NotAllowed(MemlaneError):
    code = "not_allowed"


def refuse(what: str) -> NoReturn:
    raise NotAllowed(
        f"{what} is not for a token that is limited to scopes.", hint="Use one that may use the whole bank."
    )


class LimitedLane:
    """What there is of a lane in the scopes of an access, and what may be done with it."""

    def __init__(self, lane: Lane, access: Access) -> None:
        self._lane: Any = lane
        self._access = access

    def __getattr__(self, name: str) -> Any:
        if name not in _TOLD:
            refuse(f"{name} of the {self._lane.name} lane")
        return getattr(self._lane, name)

    # -- reading

    def files(self) -> Iterator[str]:
        return (path for path in self._lane.files() if isinstance(path, str))

    def parse(self, path: str) -> Iterator[Memory]:
        items = list(self._lane.parse(path))
        if not self._lane.answers.shares_files and any(isinstance(item, Problem) for item in items):
            return  # what cannot be read may be where it says which scope it is in
        yield from (item for item in items if isinstance(item, Memory) and self.covers(item))

    def covers(self, memory: Memory) -> bool:
        return self._access.covers(memory.scope)

    def fetch(self, native: str) -> Memory:
        try:
            memory: Memory = self._lane.fetch(native)
            if self._lane.answers.shares_files:
                seen = self.covers(memory)
            else:
                seen = any(item.id == memory.id for item in self.parse(memory.file))
            # that it is like something forgotten may tell what was in another scope: it is as if it were deleted
            seen = seen and not self._lane.tombstones.forgotten(memory.text, memory.id, memory.title)
        except (MemlaneError, OSError, ValueError):
            seen = False
        if not seen:  # in the same words, whether it is there or not
            name = shown(f"{self._lane.name}:{native}")
            raise NotFound(f"There is no memory {name}.", hint="`memlane list` shows the ids.")
        return memory

    def removed(self) -> Iterator[Removed]:
        """Deleted notes. Of other lanes, what was deleted does not say which scope it was in."""
        for removed in self._lane.removed() if self._lane.name == "notes" else ():
            if any(True for _ in self.parse(os.fspath(removed.path))):
                yield removed

    @property
    def answers(self) -> Any:
        return LimitedAnswers(self._lane.answers, self)

    # -- writing

    def put(self, draft: Draft) -> Memory:
        with self._writing("write"):
            if draft.fields.get("private"):
                refuse("A private note")
            scope = self._scope(draft.scope)
            folder = folder_of(scope)
            given = draft.fields.get("filename")
            stem = slug(draft.title or first_line(draft.text)) or "note"
            if given is not None:
                name = str(given).removeprefix("memory:").removeprefix("notes:").removesuffix(".md")
                stem = name.removeprefix(f"{folder}/").removeprefix(os.path.join(self._lane.root, ""))
            for attempt in range(_ATTEMPTS):
                tail = "" if attempt == 0 else f"-{attempt + 1}" if attempt < 9 else f"-{os.urandom(4).hex()}"
                fields = {**draft.fields, "filename": f"{folder}/{stem}{tail}.md"}
                try:
                    memory: Memory = self._lane.put(replace(draft, scope=scope, fields=fields))
                    return memory
                except AlreadyExists:
                    if given is not None:
                        raise
            raise AlreadyExists("There is no free name for it.", hint="Give a title of its own.")

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        with self._writing("remove"):
            memory = self.fetch(native)
            if "scope" in changes and changes["scope"] != memory.scope:
                raise _elsewhere()
            revised: Memory = self._lane.revise(native, changes)
            return revised

    def extend(self, native: str, text: str) -> Memory:
        with self._writing("write"):
            self.fetch(native)
            extended: Memory = self._lane.extend(native, text)
            return extended

    def drop(self, native: str) -> Removed:
        with self._writing("remove"):
            self.fetch(native)
            removed: Removed = self._lane.drop(native)
            return removed

    def recover(self, native: str) -> Memory:
        missing = NotFound(f"The trash has no note {shown(native)}.", hint="`memlane restore` lists what it has.")
        with self._writing("write"):
            if os.path.lexists(self._lane.answers.path_of(native)):
                self.fetch(native)
            else:
                latest = next((each for each in self._lane.removed() if each.id == f"notes:{native}"), None)
                if latest is None or not any(True for _ in self.parse(os.fspath(latest.path))):
                    raise missing
            try:
                memory: Memory = self._lane.recover(native)
            except AlreadyExists:  # by a memory that is not to be seen, or nobody would have asked
                raise missing from None
            return memory

    def check_write(self, path: str, data: bytes | None) -> None:
        """Before a file of the lane gets this content: it must be a memory that may be seen, in the scope it was in.

        Whatever the verb was: an edit may change front matter as any other passage. Raises InvalidInput.
        """
        if data is None or self._lane.answers.native_of(path) is None:
            return
        try:
            before = next(iter(self.parse(path)), None) if os.path.lexists(path) else None
            scope = self._read(path, data.decode())
        except (UnicodeDecodeError, OSError):
            raise _elsewhere() from None
        if not self._access.covers(scope) or (before is not None and before.scope != scope):
            raise _elsewhere()

    def _read(self, path: str, text: str) -> str | None:
        """The scope of a note that has this text. Raises InvalidInput where its front matter cannot be read."""
        items = list(self._lane._parse(path, text))
        for item in items:
            if isinstance(item, Problem):
                raise InvalidInput(f"The {item.why}.", hint="Mend the front matter, then try again.")
        scope: str | None = items[-1].scope
        return scope

    def _scope(self, given: str | None) -> str | None:
        """The scope of a new note: what is asked for, or the first that the access has."""
        if self._access.covers(given) and not (given or "").endswith("*"):
            return given
        named = [scope for scope in self._access.scopes or () if not scope.endswith("*")]
        if given is None and named:
            return named[0]
        begun = [f"{scope[:-1]}NAME" for scope in self._access.scopes or () if scope.endswith("*")]
        hint = f"Give one of its scopes: {', '.join(map(shown, (*named, *begun)))}."
        raise NotAllowed("The token may not write to that scope." if given else "It needs a scope.", hint=hint)

    @contextmanager
    def _writing(self, right: str) -> Iterator[None]:
        if self._lane.name != "notes":
            raise NotAllowed(
                "A token that is limited to scopes writes notes only.",
                hint="Leave out lane, tier and topic_id: then it is kept as a note.",
            )
        if not self._access.may(right):
            raise NotAllowed(f"The token may {self._access.right}, but not {right}.", hint="Ask for one that may.")
        with checking(self.check_write):
            yield


class LimitedNotes(LimitedLane):
    """The notes, with those verbs of their own that the tools use."""

    def read_memory(self, filename: str) -> dict[str, Any]:
        self.fetch(filename.removesuffix(".md"))
        answer: dict[str, Any] = self._lane.read_memory(filename)
        return answer

    def append_memory(self, filename: str, content: str) -> dict[str, Any]:
        with self._writing("write"):
            self.fetch(filename.removesuffix(".md"))
            answer: dict[str, Any] = self._lane.append_memory(filename, content)
            return answer

    def update_memory(self, filename: str, content: str) -> dict[str, Any]:
        """As the notes lane does; what says nothing of a scope stays in the one that it was in."""
        with self._writing("remove"):
            memory = self.fetch(filename.removesuffix(".md"))
            path = memory.file
            if memory.scope is not None and self._read(path, content) is None:
                try:
                    content = edit_front(content, {"scope": memory.scope})
                except FrontMatterError as error:
                    raise InvalidInput(f"The front matter {error}.", hint="Mend it, then try again.") from None
            answer: dict[str, Any] = self._lane.update_memory(filename, content)
            return answer


def limited(lane: Lane, access: Access) -> LimitedLane:
    return (LimitedNotes if lane.name == "notes" else LimitedLane)(lane, access)


@contextmanager
def checking(check: Any) -> Iterator[None]:
    """Ask before every change of a file inside."""
    token = files.on_write.set(check)
    try:
        yield
    finally:
        files.on_write.reset(token)


def folder_of(scope: str | None) -> str:
    """The folder of the notes that are written in a scope: two scopes never have the same."""
    name = scope or "global"
    short = slug(name, 40)
    own = short if short == name else f"{short or 'scope'}-{sha256(name.encode()).hexdigest()[:8]}"
    return f"{FOLDER}/{own}"


def _elsewhere() -> InvalidInput:
    return InvalidInput("A memory stays in its scope.", hint="Leave its scope as it is.")


class LimitedAnswers:
    """What a lane answers about its format, as far as that tells nothing of memories that are not to be seen."""

    def __init__(self, answers: Answers, lane: LimitedLane) -> None:
        self._answers, self._seen = answers, lane

    def __getattr__(self, name: str) -> Any:
        if name not in _ANSWERED:
            refuse(f"{name} of the {self._answers.lane.name} lane")
        return getattr(self._answers, name)

    def read(self, path: str, mark: str = "") -> Read:
        """What a file says, or what has changed in it: what went to another scope is gone."""
        if not self._answers.shares_files:
            return Read(self._seen.parse(path))
        read = self._answers.read(path, mark)
        found = list(read.memories)
        seen = [memory for memory in found if self._seen.covers(memory)]
        if read.gone is None:
            return read._replace(memories=seen)
        hidden = frozenset(memory.id for memory in found) - {memory.id for memory in seen}
        return read._replace(memories=seen, gone=frozenset(read.gone) | hidden)
