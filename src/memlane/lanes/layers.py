"""Layers (seed 004): memory files per project, skill, command and agent, each with a `Last Updated` line.

    layers/projects/my-api/project_profile.md       id "shared-project/my-api/project_profile"
    layers/skills/review/my-api/known_issues.md     id "skill-specific/review/my-api/known_issues"
    layers/commands/my-api/command_history.md       id "command/my-api/command_history"
    layers/agents/hephaestus/forge_insights.md      id "agent/hephaestus/forge_insights"
    layers/.stats.json                              created dates and invocation counts; losing it loses no memory

The seed's verbs (create, read, update …) answer with its dictionaries and MemoryEntry, and raise what went wrong.
What is stale, too long or to be pruned is decided in `memlane.lifecycle`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from memlane import files, gate, lifecycle
from memlane.errors import AlreadyExists, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.lanes import known, read_file, readable
from memlane.lanes.layer_entries import (
    ALIASES,
    LAYER_OF,
    LAYERS,
    NAME,
    MemoryEntry,
    checked,
    entry_values,
    id_for,
    id_of,
    layer_named,
    names_of,
    path_of,
    policy_values,
    type_of,
)
from memlane.model import Draft, Memory, Problem, Removed, utc_now
from memlane.text import first_heading, moment, slug

TIMINGS = ("after_append", "before_append")
STRUCTURAL = frozenset({"index", "lifecycle", "quality_guidance"})
STATS = ".stats.json"
MAX_PATTERN = 1000
CONTEXT = 2


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
        checks: Sequence[gate.Check] | None = None,
    ) -> None:
        if prune_timing not in TIMINGS:
            raise InvalidInput("There is no such prune_timing.", hint=f"Use one of: {', '.join(TIMINGS)}.")
        self.root = Path(root).absolute()
        self.prune_timing = prune_timing
        self.clock = clock
        self.checks = gate.common(guard) if checks is None else tuple(checks)
        self._home = os.fspath(self.root)
        self._stats_seen: tuple[tuple[int, int, int] | None, dict[str, Any]] = (None, {})

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
        content = self._admit(id, content).text
        with files.locked(path):
            old = readable(path)
            text = lifecycle.page(content, self._today(), "\ufeff" * old.startswith("\ufeff"))
            self._write(path, old, text)
        return {"id": id, "updated": True, **self._measured(id, text)}

    def append(self, id: str, content: str) -> dict[str, Any]:
        """Add the content on new lines at the end, and prune by the file type's rule. Raises NotFound."""
        return self._append(id, content)

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
        for skill in filter(NAME.fullmatch, self._listing(os.path.join(self.root, LAYERS["skill-specific"].folder))):
            with suppress(InvalidInput):  # a link out of the store
                if entries := self._entries("skill-specific", skill, project_name, archives=include_archives):
                    skills[skill] = entries
        self._count([*shared, *commands, *(entry for entries in skills.values() for entry in entries)])
        return {"shared": shared, "skills": skills, "commands": commands}

    def prune(self, policy: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Apply the pruning rules to all files, or to a project's or a skill's. A dry run only says what it would do.

        Old reviews and sessions go to the archive beside their file; before resolved issues are removed, the file is
        copied into `.trash/`.
        """
        wanted = policy_values({**(policy or {}), **options})
        pruned: list[dict[str, str]] = []
        warnings: list[str] = []
        for path in self.files():
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
            if warning := lifecycle.size_warning(type_of(id), lines):
                warnings.append(f"{id}: {warning}")
        return {"pruned": pruned, "warnings": warnings}

    def validate(self, id: str) -> dict[str, Any]:
        """Quality checks and suggestions. Raises NotFound; writes nothing."""
        text = readable(self._existing(id))
        stats = _record(self._stats().get(id))
        return {
            "id": id,
            **lifecycle.quality(type_of(id), text, self._today(), stats["invocations"], stats["lines"]),
        }

    def get_staleness_report(self) -> dict[str, list[dict[str, Any]]]:
        """Every memory file by fresh, aging and stale. Reads first lines only."""
        today = self._today()
        report: dict[str, list[dict[str, Any]]] = {"fresh": [], "aging": [], "stale": []}
        for path in self._walk(STRUCTURAL):
            updated = lifecycle.updated_on(_first_line(path))
            report[lifecycle.staleness(updated, today)].append(
                {
                    "id": self._native(path),
                    "path": self._below(path),
                    "updatedAt": str(updated) if updated else None,
                    "daysSinceUpdate": lifecycle.days_since(updated, today),
                }
            )
        return report

    def search(self, pattern: str, layer: str | None = None, project_name: str | None = None) -> dict[str, Any]:
        """Lines that match a regular expression, each with two lines around it. Raises InvalidInput."""
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            raise InvalidInput(f"The pattern must be text of at most {MAX_PATTERN} characters.")
        if layer is not None:
            layer_named(layer)
        try:
            expression = re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            raise InvalidInput(
                "The pattern is not a regular expression.", hint="Put a backslash before ( [ { * + ? . and the like."
            ) from None
        matches = []
        for path in self._walk(frozenset({"index"})):
            id = self._native(path)
            names = names_of(id)
            if (layer and names.get("layer") != layer) or (project_name and names.get("project_name") != project_name):
                continue
            with suppress(OSError, StorageError):
                lines = files.read_bytes(path).decode(errors="replace").splitlines()
                for number, line in enumerate(lines, 1):
                    if expression.search(line):
                        around = lines[max(number - 1 - CONTEXT, 0) : number + CONTEXT]
                        matches.append(
                            {
                                "id": id,
                                "path": self._below(path),
                                "lineNumber": number,
                                "lineContent": line,
                                "context": "\n".join(around),
                            }
                        )
        return {"matches": matches}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        for path in files.walk(self.root):
            relative = self._below(os.fspath(path.path) if isinstance(path, Problem) else path)
            folder, _, _ = relative.partition(os.sep)
            if folder not in LAYER_OF:
                continue
            if isinstance(path, Problem):
                yield path
            elif os.path.basename(path)[:-3] not in STRUCTURAL:
                if id_of(relative):
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
        self._create(id, draft.text, draft.created_at)
        lost = [name for name in ("tags", "thread") if getattr(draft, name)]
        remarks = (f"the layers lane keeps no {' and no '.join(lost)}",) if lost else ()
        return replace(self.fetch(id), remarks=(*draft.remarks, *remarks))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, frozenset({"text"}), self.name)
        self.update(native, changes["text"])
        return self.fetch(native)

    def extend(self, native: str, text: str) -> Memory:
        self._append(native, text, paragraph=True)  # as the other lanes do; the seed's append adds lines
        return self.fetch(native)

    def drop(self, native: str) -> Removed:
        path = self._existing(native)
        now = self.clock()
        with files.locked(path):
            moved = files.trash(path, self.root, now)
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        path = self._path(native)
        if os.path.lexists(path):
            raise AlreadyExists(
                f"The memory exists: {gate.shown(native)}",
                hint="Delete it first, or copy what you need from the one in .trash.",
            )
        for name, lies, _ in files.trashed(self.root):
            if os.path.join(self.root, name) == path:
                files.move(lies, path)
                return self.fetch(native)
        raise NotFound(f"The trash has no memory {gate.shown(native)}.", hint="`memlane trash` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in files.trashed(self.root):
            if id := id_of(name):
                yield Removed(f"{self.name}:{id}", "trash", Path(lies), when)

    # -- the format

    def _entry(self, id: str, text: str) -> MemoryEntry:
        updated = lifecycle.updated_on(text)
        staleness = lifecycle.staleness(updated, self._today())
        return MemoryEntry(
            id=id,
            **names_of(id),
            content=lifecycle.body(text),
            created_at=_record(self._stats().get(id))["createdAt"],
            updated_at=str(updated) if updated else None,
            staleness=staleness,
            line_count=lifecycle.line_count(text),
            advisory="[POTENTIALLY STALE]" if staleness == "stale" else None,
        )

    def _memory(self, path: str, id: str, text: str) -> Memory:
        parts = id.split("/")
        names = dict(zip(LAYERS[parts[0]].names, parts[1:-1], strict=True))
        updated = lifecycle.updated_on(text)
        body = lifecycle.body(text)
        stats = self._stats().get(id)
        return Memory(
            id=f"layers:{id}",
            lane="layers",
            text=body,
            title=first_heading(body) or parts[-1],
            file=path,
            type=parts[-1],
            status="archived" if parts[-1].endswith(lifecycle.ARCHIVE) else "active",
            scope=parts[0],
            project=names.pop("project_name", None),
            created_at=moment(_record(stats)["createdAt"]) if stats else None,
            updated_at=datetime.combine(updated, time(), UTC) if updated else None,
            fields={
                "layer": parts[0],
                **{name[:-5]: value for name, value in names.items()},
                "staleness": lifecycle.staleness(updated, self._today()),
                "line_count": lifecycle.line_count(text),
            },
        )

    def _today(self) -> date:
        return self.clock().astimezone(UTC).date()

    # -- files

    def _path(self, id: str) -> str:
        return files.inside(self.root, *path_of(id).split("/"))

    def _existing(self, id: str) -> str:
        path = self._path(id)
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
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StorageError(f"{os.path.basename(folder)}: {error.strerror}.", hint="Check the folder.") from error

    def _entries(self, layer: str, *names: str, archives: bool) -> list[MemoryEntry]:
        """The memories of one folder. A file that cannot be read is left out; scan() reports it."""
        folder = files.inside(self.root, LAYERS[layer].folder, *map(checked, names))
        entries = []
        for name in self._listing(folder):
            stem, suffix = os.path.splitext(name)
            if suffix != ".md" or stem == "index" or not NAME.fullmatch(stem):
                continue
            if stem.endswith(lifecycle.ARCHIVE) and not archives:
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

    def _create(self, id: str, content: str, created_at: datetime | None = None) -> None:
        path = self._path(id)
        today = self._today()
        data = files.encoded(lifecycle.page(content, today))
        files.safe_parts(path_of(id))
        if "indices" in id.split("/") or type_of(id) in STRUCTURAL:  # files.walk and the seed pass these over
            raise InvalidInput("That name is not for memories.", hint="Choose another file type or name.")
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
        created = created_at.astimezone(UTC).date() if created_at else today
        self._note({id: {"createdAt": str(created)}})

    def _append(self, id: str, content: str, *, paragraph: bool = False) -> dict[str, Any]:
        path = self._existing(id)
        content = self._admit(id, content).text
        today = self._today()
        before = self.prune_timing == "before_append"
        with files.locked(path):
            old = readable(path)
            whole = old if before else lifecycle.joined(old, content, paragraph=paragraph)
            pruned = lifecycle.prune(type_of(id), whole, today)
            text = lifecycle.joined(pruned.text, content, paragraph=paragraph) if before else pruned.text
            text = lifecycle.stamped(text, today)
            self._write(path, old, text, whole, pruned)
        answer = {"id": id, "appended": True, "pruned": bool(pruned.actions), **self._measured(id, text)}
        if pruned.actions:
            answer["pruneDetails"] = "; ".join(f"{action}: {reason}" for action, reason in pruned.actions)
        return answer

    def _namesake(self, path: str) -> str | None:
        """The name that stands in the way of the first new one on this path."""
        while not os.path.isdir(os.path.dirname(path)):
            path = os.path.dirname(path)
        return files.namesake(path) if path.startswith(self._home + os.sep) else None

    def _write(self, path: str, old: str, text: str, before: str = "", pruned: lifecycle.Pruned | None = None) -> None:
        """Replace a file's text; what pruning takes out of `before` is made durable elsewhere first.

        A kill in between leaves it in both places, never in none.
        """
        data = files.encoded(text)
        if pruned and pruned.archived:
            self._archive(path[: -len(".md")] + lifecycle.ARCHIVE + ".md", pruned.archived)
        if pruned and pruned.removed:
            files.trash(path, self.root, self.clock(), copy=files.encoded(before))
        if text != old:  # an entry that is old already when it is appended goes straight to the archive
            files.replace(path, data)

    def _archive(self, path: str, sections: Sequence[str]) -> None:
        today = self._today()
        files.inside(self.root, *self._below(path).split(os.sep))
        if not os.path.lexists(path):
            with suppress(AlreadyExists):  # somebody else created it just now
                text = lifecycle.page(lifecycle.with_archived("", sections), today)
                files.create(path, files.encoded(text))
                return
        with files.locked(path):
            old = readable(path)
            self._write(path, old, lifecycle.stamped(lifecycle.with_archived(old, sections), today))

    def _prune_file(self, id: str, path: str, *, dry_run: bool) -> tuple[list[lifecycle.Action], int]:
        today = self._today()
        old = readable(path)
        pruned = lifecycle.prune(type_of(id), old, today)
        if pruned.actions and not dry_run:
            with files.locked(path):
                old = readable(path)  # somebody may have changed it meanwhile
                pruned = lifecycle.prune(type_of(id), old, today)
                if pruned.actions:
                    self._write(path, old, lifecycle.stamped(pruned.text, today), old, pruned)
        text = lifecycle.stamped(pruned.text, today) if pruned.actions else old
        actions = list(pruned.actions)
        count = _record(self._stats().get(id))["invocations"]
        if type_of(id) == "common_patterns" and lifecycle.due(count):
            actions.append(lifecycle.Action("flagged", f"loaded {count} times: verify that its patterns still hold"))
        return actions, lifecycle.line_count(text)

    # -- the side file

    def _measured(self, id: str, text: str) -> dict[str, Any]:
        """A written file's lineCount and, when it is too long, the warning."""
        lines = lifecycle.line_count(text)
        self._note({id: {"lines": [lines]}})
        warning = lifecycle.size_warning(type_of(id), lines)
        return {"lineCount": lines, **({"warning": warning} if warning else {})}

    def _count(self, loaded: list[MemoryEntry]) -> list[MemoryEntry]:
        """Count an invocation that loaded these."""
        if loaded:
            self._note({entry.id: {"lines": [entry.line_count]} for entry in loaded})
        return loaded

    def _note(self, news: Mapping[str, Mapping[str, Any]]) -> None:
        """Write down created dates and line counts as far as that is possible: no memory depends on it.

        A record with a createdAt starts anew; one without adds an invocation.
        """
        with suppress(MemlaneError, OSError):
            path = files.inside(self.root, STATS)
            if not os.path.lexists(path):
                with suppress(AlreadyExists):
                    files.create(path, b"{}\n")
            with files.locked(path):
                stats = _load_stats(path)
                for id, new in news.items():
                    old = _record(stats.get(id))
                    if "createdAt" not in new:
                        lines = [*old["lines"], *new["lines"]][-lifecycle.EVERY :]
                        new = {**old, "invocations": old["invocations"] + 1, "lines": lines}
                    stats[id] = new
                files.replace(path, json.dumps(stats).encode() + b"\n")

    def _stats(self) -> dict[str, Any]:
        """The side file, read again only when it has changed."""
        path = f"{self._home}{os.sep}{STATS}"
        try:
            info = os.stat(path)
        except OSError:
            return {}
        seen = (info.st_ino, info.st_size, info.st_mtime_ns)
        if self._stats_seen[0] != seen:
            self._stats_seen = (seen, _load_stats(path))
        return self._stats_seen[1]


def _load_stats(path: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_bytes(path))
    except (OSError, StorageError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _record(value: Any) -> dict[str, Any]:
    """What the side file says of one memory, or the blank record where it says nothing or nonsense."""
    record = value if isinstance(value, dict) else {}
    created, count, lines = record.get("createdAt"), record.get("invocations"), record.get("lines")
    return {
        "createdAt": created if isinstance(created, str) and moment(created) else None,
        "invocations": count if isinstance(count, int) else 0,
        "lines": [line for line in lines if isinstance(line, int)] if isinstance(lines, list) else [],
    }


def _first_line(path: str) -> str:
    """Enough of a file to see its first line; later bytes may be anything."""
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(fd, 256).split(b"\n")[0].decode(errors="replace")
        finally:
            os.close(fd)
    return ""
