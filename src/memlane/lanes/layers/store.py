"""Layers (seed 004): memory files per project, skill, command and agent, each with a `Last Updated` line.

    layers/projects/my-api/project_profile.md       id "shared-project/my-api/project_profile"
    layers/skills/review/my-api/known_issues.md     id "skill-specific/review/my-api/known_issues"
    layers/commands/my-api/command_history.md       id "command/my-api/command_history"
    layers/agents/hephaestus/forge_insights.md      id "agent/hephaestus/forge_insights"
    layers/projects/my-api/.stats.jsonl             created dates and invocation counts; losing it loses no memory

A folder's `.stats.jsonl` is only appended to, so that a write costs the same in a large store, and folded now and
then. `.stats.json` at the root, which earlier versions wrote, is still read.

The seed's verbs (create, read, update …) answer with its dictionaries and MemoryEntry, and raise what went wrong.
What is stale, too long or to be pruned is decided in `memlane.lanes.layers.aging`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from memlane import gate
from memlane.core.dates import moment, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.markdown import first_heading
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import slug
from memlane.disk import files, trash
from memlane.disk.names import inside, safe_parts
from memlane.disk.tombstones import Tombstones
from memlane.lanes import known, read_file, readable
from memlane.lanes.layers import aging
from memlane.lanes.layers.entries import (
    ALIASES,
    LAYER_OF,
    LAYERS,
    NAME,
    UNUSED,
    MemoryEntry,
    Usage,
    checked,
    entry_values,
    fold,
    id_for,
    id_of,
    layer_named,
    midnight,
    names_of,
    path_of,
    policy_values,
    type_of,
)

if TYPE_CHECKING:
    from memlane.lanes.layers.answers import LayerAnswers

TIMINGS = ("after_append", "before_append")
STRUCTURAL = frozenset({"index", "lifecycle", "quality_guidance"})
STATS = ".stats.jsonl"
OLD_STATS = ".stats.json"
FOLD_BYTES = 65536  # a side file is looked at for folding each time it has grown by so much
BEFORE_PRUNE = "~before-prune"  # no name of a memory has a "~": its copies are not taken for deleted memories
MAX_PATTERN = 1000
MAX_SECONDS = 5.0  # of a search
CONTEXT = 2


class _Side(NamedTuple):
    """A side file as it was last read."""

    seen: tuple[int, int, int] | None = None  # inode, size, mtime
    data: bytes = b""
    noted: Mapping[str, Usage] = MappingProxyType({})
    damaged: tuple[int, ...] = ()  # line numbers
    problem: Problem | None = None


class MemoryStore:
    """A folder of layered memory. `prune_timing` says whether append prunes after or before it adds."""

    name = "layers"

    def __init__(
        self,
        root: str | Path = "forge-plugin/memory",
        *,
        prune_timing: str = TIMINGS[0],
        clock: Callable[[], datetime] = utc_now,
        guard: gate.Guard = gate.DEFAULT,
        tombstones: Tombstones | None = None,
    ) -> None:
        if prune_timing not in TIMINGS:
            raise InvalidInput("There is no such prune_timing.", hint=f"Use one of: {', '.join(TIMINGS)}.")
        self.root = Path(root).absolute()
        self.prune_timing = prune_timing
        self.clock = clock
        self.guard = guard
        self.checks = gate.common(guard)
        self.tombstones = tombstones or Tombstones()
        self._home = os.fspath(self.root)
        self._sides: dict[str, _Side] = {}

    # -- the seed's verbs

    def create(self, entry: Mapping[str, Any] | MemoryEntry) -> dict[str, Any]:
        """Write a new memory below today's Last Updated line. Raises AlreadyExists, InvalidInput, Refused."""
        values = entry_values(entry)
        id = id_for(values)
        if values.get("id") not in (None, "", id):
            raise InvalidInput(
                "The id does not fit the layer and the names.", code="invalid_id", hint="Leave the id out."
            )
        self._create(id, self._admit(id, values.get("content")).text)
        return {"id": id, "path": path_of(id), "created": True}

    def read(
        self,
        layer: str,
        project_name: str | None,
        file_type: str,
        skill_name: str | None = None,
        command_name: str | None = None,
        agent_name: str | None = None,
    ) -> MemoryEntry | None:
        """One memory with its staleness as of today, or None. Writes nothing."""
        id = id_for(
            {
                "layer": layer,
                "project_name": project_name,
                "file_type": file_type,
                "skill_name": skill_name,
                "command_name": command_name,
                "agent_name": agent_name,
            }
        )
        text = read_file(self._path(id))
        if isinstance(text, Problem):
            raise StorageError(f"{os.path.basename(text.path)} {text.why}.", hint="Mend the file, then try again.")
        return None if text is None else self._entry(id, text)

    def update(self, id: str, content: str) -> dict[str, Any]:
        """Replace the content and refresh the Last Updated line. Raises NotFound; a size warning never blocks."""
        path = self._existing(id)
        return self._update(path, id, self._wanted(self._admit(id, content)))

    def append(self, id: str, content: str) -> dict[str, Any]:
        """Add the content on new lines at the end, and prune by the file type's rule. Raises NotFound."""
        path = self._existing(id)
        return self._append(path, id, self._admit(id, content))

    def upsert(self, id: str, content: str) -> dict[str, Any]:
        """Update, or create where there is nothing yet: the answer is the one of what was done."""
        with suppress(NotFound):
            return self.update(id, content)
        try:
            self._create(id, self._admit(id, content).text)
        except AlreadyExists:
            if not os.path.isfile(self._path(id)):  # the name is taken by something else
                raise
            return self.update(id, content)  # somebody else created it just now
        return {"id": id, "path": path_of(id), "created": True}

    def delete(self, id: str) -> dict[str, Any]:
        """Move the file into `.trash/`; its folders stay."""
        try:
            self.drop(id)
        except NotFound:
            return {"id": id, "deleted": False}
        return {"id": id, "deleted": True}

    def get_project_profile(self, project_name: str) -> MemoryEntry | None:
        found = self.read("shared-project", project_name, "project_profile")
        self._count([found] if found else [])
        return found

    def get_shared_project_memory(self, project_name: str, *, include_archives: bool = False) -> list[MemoryEntry]:
        """All memories of a project that every skill shares; [] for a new project."""
        return self._count(self._entries("shared-project", project_name, archives=include_archives))

    def get_skill_memory(
        self, skill_name: str, project_name: str, *, include_archives: bool = False
    ) -> list[MemoryEntry]:
        """All memories of a skill about a project; [] says that it sees the project for the first time."""
        return self._count(self._entries("skill-specific", skill_name, project_name, archives=include_archives))

    def get_command_memory(self, project_name: str, *, include_archives: bool = False) -> list[MemoryEntry]:
        return self._count(self._entries("command", project_name, archives=include_archives))

    def get_agent_memory(self, agent_name: str, *, include_archives: bool = False) -> list[MemoryEntry]:
        return self._count(self._entries("agent", agent_name, archives=include_archives))

    def get_by_project(self, project_name: str, *, include_archives: bool = False) -> dict[str, Any]:
        """{shared, skills: {skill: […]}, commands} of one project."""
        shared = self._entries("shared-project", project_name, archives=include_archives)
        commands = self._entries("command", project_name, archives=include_archives)
        skills: dict[str, list[MemoryEntry]] = {}
        for skill in filter(NAME.fullmatch, sorted(self._listing(f"{self._home}/{LAYERS['skill-specific'].folder}"))):
            with suppress(InvalidInput):  # a link out of the store
                if entries := self._entries("skill-specific", skill, project_name, archives=include_archives):
                    skills[skill] = entries
        self._count([*shared, *commands, *(entry for entries in skills.values() for entry in entries)])
        return {"shared": shared, "skills": skills, "commands": commands}

    def prune(
        self, policy: Mapping[str, Any] | None = None, *, paths: Sequence[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Apply the pruning rules to all files, to these, or to a project's or a skill's. A dry run only says what
        it would do.

        Old reviews and sessions go to the archive beside their file; before resolved issues are removed, the file is
        copied into `.trash/`, and the reason says where.
        """
        wanted = policy_values({**(policy or {}), **options})
        pruned: list[dict[str, str]] = []
        warnings: list[str] = []
        for path in self.files() if paths is None else paths:
            if isinstance(path, Problem):
                warnings.append(f"{os.path.basename(path.path)} {path.why}")
                continue
            id = self._native(path)
            names = names_of(id)
            if any(names.get(name) != wanted[name] for name in ("project_name", "skill_name") if wanted[name]):
                continue
            try:
                actions, lines = self._prune_file(id, path, dry_run=wanted["dry_run"])
            except NotFound:
                continue
            except StorageError as error:
                warnings.append(f"{id}: {error}")
                continue
            pruned += [{"id": id, "action": action, "reason": reason} for action, reason in actions]
            if warning := aging.size_warning(type_of(id), lines):
                warnings.append(f"{id}: {warning}")
        return {"pruned": pruned, "warnings": warnings}

    def validate(self, id: str) -> dict[str, Any]:
        """Quality checks and suggestions. Raises NotFound; writes nothing."""
        text = readable(self._existing(id))
        usage = self._usage(id)
        return {"id": id, **aging.quality(type_of(id), text, self._today(), usage.invocations, usage.lines)}

    def get_staleness_report(self) -> dict[str, list[dict[str, Any]]]:
        """Every memory file by fresh, aging and stale. Reads first lines only."""
        today = self._today()
        report: dict[str, list[dict[str, Any]]] = {"fresh": [], "aging": [], "stale": []}
        for path in self._walk(STRUCTURAL):
            updated = aging.updated_on(_beginning(path))
            report[aging.staleness(updated, today)].append(
                {
                    "id": self._native(path),
                    "path": self._below(path),
                    "updatedAt": str(updated) if updated else None,
                    "daysSinceUpdate": aging.days_since(updated, today),
                }
            )
        return report

    def search(self, pattern: str, layer: str | None = None, project_name: str | None = None) -> dict[str, Any]:
        """Lines that match a regular expression, each with two lines around it.

        Raises InvalidInput, also when the pattern needs more than MAX_SECONDS: `(a+)+$` can take for ever.
        """
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            raise InvalidInput(f"The pattern must be text of at most {MAX_PATTERN} characters.")
        if layer is not None:
            layer_named(layer)
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            raise InvalidInput(
                "The pattern is not a regular expression.", hint="Put a backslash before ( [ { * + ? . and the like."
            ) from None
        found: list[tuple[str, str, list[str]]] = []
        for path in self._walk(frozenset({"index"})):
            id = self._native(path)
            names = names_of(id)
            if (layer and names.get("layer") != layer) or (project_name and names.get("project_name") != project_name):
                continue
            with suppress(OSError, StorageError):
                found.append((id, path, files.read_bytes(path).decode(errors="replace").splitlines()))
        places = _matching(pattern, [lines for _, _, lines in found])
        return {
            "matches": [
                {
                    "id": id,
                    "path": self._below(path),
                    "lineNumber": place + 1,
                    "lineContent": lines[place],
                    "context": "\n".join(lines[max(place - CONTEXT, 0) : place + CONTEXT + 1]),
                }
                for (id, path, lines), matched in zip(found, places, strict=True)
                for place in matched
            ]
        }

    @property
    def answers(self) -> LayerAnswers:
        from memlane.lanes.layers.answers import LayerAnswers

        return LayerAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        return {"prune_timing": settings["layers.prune_timing"]}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        if problem := self._old_side().problem:
            yield problem
        entered = ""
        for path in files.walk(self.root):
            relative = self._below(os.fspath(path.path) if isinstance(path, Problem) else path)
            folder, _, _ = relative.partition("/")
            if folder not in LAYER_OF:
                continue
            if isinstance(path, Problem):
                yield path
                continue
            parent, _, name = path.rpartition("/")
            if name[:-3] not in STRUCTURAL:
                if id_of(relative):
                    if parent != entered:
                        entered = parent
                        if problem := self._side(parent).problem:
                            yield problem
                    yield path
                else:
                    yield Problem(Path(path), f"is not named as memories in {folder} are; move or rename it")

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        text = read_file(path)
        if isinstance(text, Problem):
            yield text
        elif text is not None and (id := id_of(self._below(path))):
            yield self._memory(path, id, text)

    def fetch(self, native: str) -> Memory:
        path = self._existing(native)
        return self._memory(path, native, readable(path))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, frozenset(ALIASES), self.name)
        values = {ALIASES[name]: value for name, value in draft.fields.items()}
        values["layer"] = values.get("layer") or draft.scope or "shared-project"
        values["file_type"] = values.get("file_type") or draft.type or slug(draft.title or "").replace("-", "_")
        draft = gate.admit(self.checks, draft, self)
        id = id_for(values)
        lifted = self._create(id, draft.text, draft.created_at)
        lost = [name for name in ("tags", "thread") if getattr(draft, name)]
        remarks = (f"the layers lane keeps no {' and no '.join(lost)}",) if lost else ()
        return replace(self.fetch(id), remarks=(*draft.remarks, *remarks, *lifted))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, frozenset({"text"}), self.name)
        path = self._existing(native)
        draft = self._wanted(self._admit(native, changes.get("text")))
        self._update(path, native, draft)
        return replace(self.fetch(native), remarks=draft.remarks)

    def extend(self, native: str, text: str) -> Memory:
        path = self._existing(native)
        draft = self._admit(native, text)
        self._append(path, native, draft, paragraph=True)  # as the other lanes do; the seed's append adds lines
        return replace(self.fetch(native), remarks=draft.remarks)

    def drop(self, native: str) -> Removed:
        path = self._existing(native)
        now = self.clock()
        with files.locked(path):
            text = read_file(path)
            moved = trash.put(path, self.root, now)
        if isinstance(text, str):
            self.tombstones.bury((f"layers:{native}", aging.body(text)))
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        path = self._path(native)
        if os.path.lexists(path):
            raise AlreadyExists(
                f"The memory exists: {gate.shown(native)}",
                hint="Delete it first, or copy what you need from the one in .trash.",
            )
        for name, lies, _ in trash.contents(self.root):
            if os.path.join(self.root, name) == path:
                if isinstance(text := read_file(lies), str):
                    self.tombstones.lift(aging.body(text))
                files.move(lies, path)
                return self.fetch(native)
        raise NotFound(f"The trash has no memory {gate.shown(native)}.", hint="`memlane trash` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            if id := id_of(name):
                yield Removed(f"{self.name}:{id}", "trash", Path(lies), when)

    # -- the format

    def _entry(self, id: str, text: str) -> MemoryEntry:
        updated = aging.updated_on(text)
        staleness = aging.staleness(updated, self._today())
        return MemoryEntry(
            id=id,
            **names_of(id),
            content=aging.body(text),
            created_at=self._usage(id).created,
            updated_at=str(updated) if updated else None,
            staleness=staleness,
            line_count=aging.line_count(text),
            advisory="[POTENTIALLY STALE]" if staleness == "stale" else None,
        )

    def _memory(self, path: str, id: str, text: str) -> Memory:
        layer, *names, file_type = id.split("/")
        named = dict(zip(LAYERS[layer].fields, names, strict=True))
        updated = aging.updated_on(text)
        body = aging.body(text)
        created = self._usage(id, path).created
        return Memory(
            id=f"layers:{id}",
            lane="layers",
            text=body,
            title=first_heading(body) or file_type,
            file=path,
            type=file_type,
            status="archived" if file_type.endswith(aging.ARCHIVE) else "active",
            scope=layer,
            project=named.pop("project", None),
            created_at=midnight(created) if created else None,
            updated_at=datetime.combine(updated, time(), UTC) if updated else None,
            fields={
                "layer": layer,
                **named,
                "staleness": aging.staleness(updated, self._today()),
                "line_count": aging.line_count(text),
            },
        )

    def _today(self) -> date:
        return self.clock().astimezone(UTC).date()

    # -- files

    def _path(self, id: str) -> str:
        return inside(self.root, *path_of(id).split("/"))

    def _existing(self, id: str) -> str:
        path = self._path(id)
        _not_structural(id)
        if not os.path.isfile(path):
            raise NotFound(f"There is no memory {gate.shown(id)}.", hint="Create it, or look for its id in a list.")
        return path

    def _below(self, path: str) -> str:
        return path[len(self._home) + 1 :]

    def _native(self, path: str) -> str:
        """The id of a file; one outside the four layers goes by its place."""
        return id_of(self._below(path)) or self._below(path)[:-3]

    def _walk(self, without: frozenset[str]) -> Iterator[str]:
        for path in files.walk(self.root):
            if not isinstance(path, Problem) and os.path.basename(path)[:-3] not in without:
                yield path

    def _listing(self, folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StorageError(f"{os.path.basename(folder)}: {error.strerror}.", hint="Check the folder.") from error

    def _entries(self, layer: str, *names: str, archives: bool) -> list[MemoryEntry]:
        """The memories of one folder. A file that cannot be read is left out; scan() reports it."""
        folder = inside(self.root, LAYERS[layer].folder, *map(checked, names))
        entries = []
        for name in sorted(self._listing(folder)):
            stem, suffix = os.path.splitext(name)
            if suffix != ".md" or stem == "index" or not NAME.fullmatch(stem):
                continue
            if stem.endswith(aging.ARCHIVE) and not archives:
                continue
            with suppress(InvalidInput):  # a link out of the store
                id = "/".join((layer, *names, stem))
                text = read_file(self._path(id))
                if isinstance(text, str):
                    entries.append(self._entry(id, text))
        return entries

    def _admit(self, id: str, content: Any) -> Draft:
        if not isinstance(content, str):
            raise InvalidInput("There is no content, or it is not text.", hint="Give the content as text.")
        return gate.admit(self.checks, Draft(content, fields=names_of(id)), self)

    def _wanted(self, draft: Draft) -> Draft:
        """A draft that is about to be written. It is wanted, even if the same text was deleted before."""
        lifted = self.tombstones.lift(aging.body(draft.text))
        return replace(draft, remarks=(*draft.remarks, *lifted)) if lifted else draft

    def _create(self, id: str, content: str, created_at: datetime | None = None) -> tuple[str, ...]:
        """Write a new file; what there is to say of it."""
        path = self._path(id)
        today = self._today()
        data = files.encoded(aging.page(content, today))
        safe_parts(path_of(id))
        _not_structural(id)
        if taken := self._namesake(path):
            raise AlreadyExists(
                f"{gate.shown(taken)} differs only in case, which some file systems cannot tell apart.",
                hint="Use that name.",
            )
        try:
            files.create(path, data)
        except AlreadyExists:
            raise AlreadyExists(
                f"The memory already exists: {gate.shown(id)}", hint="Use update() or append()."
            ) from None
        created = (moment(created_at) or self.clock()).astimezone(UTC).date()
        self._note(os.path.dirname(path), {type_of(id): {"createdAt": str(created)}})
        return self.tombstones.lift(aging.body(data.decode()))

    def _update(self, path: str, id: str, draft: Draft) -> dict[str, Any]:
        with files.locked(path):
            old = readable(path)
            text = aging.page(draft.text, self._today(), "\ufeff" * old.startswith("\ufeff"))
            self._write(path, old, text)
        return {"id": id, "updated": True, **self._measured(path, id, text, draft.remarks)}

    def _append(self, path: str, id: str, draft: Draft, *, paragraph: bool = False) -> dict[str, Any]:
        today = self._today()
        before = self.prune_timing == "before_append"
        with files.locked(path):
            old = readable(path)
            whole = old if before else aging.joined(old, draft.text, paragraph=paragraph)
            pruned = aging.prune(type_of(id), whole, today)
            text = aging.joined(pruned.text, draft.text, paragraph=paragraph) if before else pruned.text
            text = aging.stamped(text, today)
            copy = self._write(path, old, text, whole, pruned)
        self.tombstones.lift(aging.body(text))
        measured = self._measured(path, id, text, draft.remarks)
        answer = {"id": id, "appended": True, "pruned": bool(pruned.actions), **measured}
        if pruned.actions:
            actions = self._with_copy(pruned.actions, copy)
            answer["pruneDetails"] = "; ".join(f"{action}: {reason}" for action, reason in actions)
        return answer

    def _namesake(self, path: str) -> str | None:
        """The name that differs only in case from the first new one on this path. Ids are ASCII."""
        while not os.path.isdir(os.path.dirname(path)):
            path = os.path.dirname(path)
        if not path.startswith(self._home + os.sep):
            return None
        folder, name = os.path.split(path)
        want = name.lower()
        return next((other for other in self._listing(folder) if other.lower() == want and other != name), None)

    def _write(
        self, path: str, old: str, text: str, before: str = "", pruned: aging.Pruned | None = None
    ) -> str | None:
        """Replace a file's text; what pruning takes out of `before` is made durable elsewhere first.

        A kill in between leaves it in both places, never in none. Returns where a copy of `before` lies, if needed.
        """
        copy = None
        data = files.encoded(text)
        if pruned and pruned.archived:
            self._archive(path[: -len(".md")] + aging.ARCHIVE + ".md", pruned.archived)
        if pruned and pruned.removed:
            named = f"{path[: -len('.md')]}{BEFORE_PRUNE}.md"
            copy = trash.put(named, self.root, self.clock(), copy=files.encoded(before))
        if text != old:  # an entry that is old already when it is appended goes straight to the archive
            files.replace(path, data)
        return copy

    def _with_copy(self, actions: Sequence[aging.Action], copy: str | None) -> list[aging.Action]:
        """The actions, saying where the file lies as it was before something was removed from it."""
        return [
            action._replace(reason=f"{action.reason} (the file as it was: {self._below(copy)})")
            if copy and action.action == "removed"
            else action
            for action in actions
        ]

    def _archive(self, path: str, sections: Sequence[str]) -> None:
        today = self._today()
        inside(self.root, *self._below(path).split(os.sep))
        if not os.path.lexists(path):
            with suppress(AlreadyExists):  # somebody else created it just now
                text = aging.page(aging.with_archived("", sections), today)
                files.create(path, files.encoded(text))
                return
        with files.locked(path):
            old = readable(path)
            self._write(path, old, aging.stamped(aging.with_archived(old, sections), today))

    def _prune_file(self, id: str, path: str, *, dry_run: bool) -> tuple[list[aging.Action], int]:
        today = self._today()
        copy = None
        old = readable(path)
        pruned = aging.prune(type_of(id), old, today)
        if pruned.actions and not dry_run:
            with files.locked(path):
                old = readable(path)  # somebody may have changed it meanwhile
                pruned = aging.prune(type_of(id), old, today)
                if pruned.actions:
                    copy = self._write(path, old, aging.stamped(pruned.text, today), old, pruned)
        text = aging.stamped(pruned.text, today) if pruned.actions else old
        actions = self._with_copy(pruned.actions, copy)
        count = self._usage(id).invocations
        if type_of(id) == "common_patterns" and aging.due(count):
            actions.append(aging.Action("flagged", f"loaded {count} times: verify that its patterns still hold"))
        return actions, aging.line_count(text)

    # -- the side files

    def _measured(self, path: str, id: str, text: str, remarks: Sequence[str]) -> dict[str, Any]:
        """A written file's lineCount and, when it is too long or the gate changed something, the warning."""
        lines = aging.line_count(text)
        self._note(os.path.dirname(path), {type_of(id): lines})
        size = aging.size_warning(type_of(id), lines)
        warning = "; ".join((*remarks, size) if size else remarks)
        return {"lineCount": lines, **({"warning": warning} if warning else {})}

    def _count(self, loaded: list[MemoryEntry]) -> list[MemoryEntry]:
        """Count an invocation that loaded these."""
        folders: dict[str, dict[str, int]] = {}
        for entry in loaded:
            folder = os.path.dirname(f"{self._home}/{path_of(entry.id)}")
            folders.setdefault(folder, {})[entry.file_type] = entry.line_count
        for folder, news in folders.items():
            self._note(folder, news)
        return loaded

    def _note(self, folder: str, news: Mapping[str, Any]) -> None:
        """Write down what `fold` reads, as far as that is possible: no memory depends on it."""
        line = json.dumps(news).encode() + b"\n"
        with suppress(MemlaneError, OSError):
            path = inside(folder, STATS)
            files.append_lines(path, line)
            size = os.path.getsize(path)
            if size // FOLD_BYTES > (size - len(line)) // FOLD_BYTES:
                self._fold(folder, path)

    def _fold(self, folder: str, path: str) -> None:
        """Shorten a side file to one line a memory, where that halves it.

        Somebody who appends at this moment may be counted twice, never lost. What is damaged goes to the trash.
        """
        with files.locked(path):
            side = self._side(folder)
            lines = [json.dumps({name: usage.to_json()}).encode() + b"\n" for name, usage in side.noted.items()]
            if side.data and sum(map(len, lines)) <= len(side.data) // 2:  # no data: it could not be read
                if side.damaged:
                    trash.put(path, self.root, self.clock(), copy=side.data)
                files.replace(path, b"".join(lines))

    def _usage(self, id: str, path: str | None = None) -> Usage:
        folder, _, _ = (path or f"{self._home}/{path_of(id)}").rpartition("/")
        usage = self._side(folder).noted.get(type_of(id), UNUSED)
        return usage if usage.created else self._old_side().noted.get(id, UNUSED).then(usage)

    def _side(self, folder: str) -> _Side:
        """A folder's side file, read again only when it has changed; what was appended is all that is parsed then."""
        path = f"{folder}/{STATS}"
        side, seen = self._sides.get(path), _seen(path)
        if side is not None and side.seen == seen:
            return side
        data, problem = _load(path)
        if side is None or not data.startswith(side.data) or not side.data.endswith(b"\n"):
            side = _Side()
        lines = data[len(side.data) :].decode(errors="replace").split("\n")
        noted = dict(side.noted)
        first = side.data.count(b"\n") + 1
        damaged = (*side.damaged, *(first + place for place in fold(lines, noted)))
        if damaged and damaged[-1] == first + len(lines) - 1:
            damaged = damaged[:-1]  # the last line has no end: it is just being written, or torn
        if damaged:
            why = f"has lines that cannot be read ({len(damaged)}), perhaps of a merge; delete them"
            problem = Problem(Path(path), why, damaged[0])
        self._sides[path] = side = _Side(seen, data, noted, damaged, problem)
        return side

    def _old_side(self) -> _Side:
        """The one side file that earlier versions wrote for the whole store. It is not written any more."""
        path = f"{self._home}/{OLD_STATS}"
        side, seen = self._sides.get(path), _seen(path)
        if side is not None and side.seen == seen:
            return side
        data, problem = _load(path)
        noted = {}
        if data:
            try:
                noted = {id: Usage.of(value) for id, value in json.loads(data).items() if isinstance(value, dict)}
            except (ValueError, RecursionError, AttributeError):
                problem = Problem(Path(path), "is not JSON, so created dates are unknown; mend or delete it")
        self._sides[path] = side = _Side(seen, noted=noted, problem=problem)
        return side


def _not_structural(id: str) -> None:
    """Raise InvalidInput for a file that files.walk and the seed pass over."""
    if "indices" in id.split("/") or type_of(id) in STRUCTURAL:
        raise InvalidInput("That name is not for memories.", hint="Choose another file type or name.")


def _seen(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def _load(path: str) -> tuple[bytes, Problem | None]:
    try:
        return files.read_bytes(path), None
    except FileNotFoundError:
        return b"", None
    except (OSError, StorageError) as error:
        return b"", files.unreadable(path, error)


def _beginning(path: str) -> str:
    """Enough of a file to see its first line; later bytes may be anything."""
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(fd, 256).decode(errors="replace")
        finally:
            os.close(fd)
    return ""


# -- search

_REPEATS = re.compile(r"[*+?{(]")
_WORKER = (
    "import json, re, sys; pattern, texts = json.load(sys.stdin); found = re.compile(pattern).search; "
    "json.dump([[place for place, line in enumerate(lines) if found(line)] for lines in texts], sys.stdout)"
)


def _matching(pattern: str, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """The places of the lines that match, for each text.

    A pattern with repeats or groups runs in a process of its own, for nothing else can stop it once it has begun:
    no look at the pattern tells all that are slow, and signals reach into `re` in the main thread only.
    """
    if not _REPEATS.search(pattern):
        found = re.compile(pattern).search
        return [[place for place, line in enumerate(lines) if found(line)] for lines in texts]
    try:
        done = subprocess.run(  # noqa: S603 - the pattern and the texts are data on its stdin
            [sys.executable, "-I", "-S", "-c", _WORKER],
            input=json.dumps([pattern, texts]).encode(),
            capture_output=True,
            timeout=MAX_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(
            f"The pattern needs more than {MAX_SECONDS:g} seconds.",
            hint="Avoid repeats inside repeats, such as (a+)+, or name a layer or project.",
        ) from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise StorageError("The search could not be run.", hint="Try a simpler pattern.") from error
    matched: list[list[int]] = json.loads(done.stdout)
    return matched
