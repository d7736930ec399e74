"""Layers (seed 004): memory files per project, skill, command and agent, each with a `Last Updated` line.

    layers/projects/my-api/project_profile.md       id "shared-project/my-api/project_profile"
    layers/skills/review/my-api/known_issues.md     id "skill-specific/review/my-api/known_issues"
    layers/commands/my-api/command_history.md       id "command/my-api/command_history"
    layers/agents/hephaestus/forge_insights.md      id "agent/hephaestus/forge_insights"
    layers/projects/my-api/.stats.jsonl             created dates and invocation counts, see `usage`

The seed's verbs (create, read, update …) return its dictionaries and MemoryEntry, and raise on failure. `aging` decides
what is stale, too long or to be pruned; `folder` reads and writes the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from memlane import gate
from memlane.core.dates import moment, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import slug
from memlane.core.values import replace
from memlane.disk import files, trash, walking
from memlane.disk.names import inside
from memlane.disk.tombstones import Tombstones
from memlane.lanes import known, may_show, read_file, readable, unless_forgotten
from memlane.lanes.layers import aging, entries, search
from memlane.lanes.layers.entries import MemoryEntry, id_for, id_of, names_of, path_of, type_of
from memlane.lanes.layers.folder import STRUCTURAL, Folder, names_in
from memlane.lanes.layers.usage import SideFiles

if TYPE_CHECKING:
    from memlane.lanes.layers.answers import LayerAnswers

TIMINGS = ("after_append", "before_append")
_NO_LAYER = f"lies in no layer and is not read; memories are in {', '.join(entries.LAYER_OF)}"


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
        files.take_root(self.root, chosen=False)
        self.prune_timing = prune_timing
        self.clock = clock
        self.guard = guard
        self.checks = gate.common(guard)
        self.tombstones = tombstones or Tombstones()
        self.folder = Folder(self.root, lambda: self.clock())  # whoever sets another clock sets it for all three
        self.side_files = SideFiles(self.root, lambda: self.clock())

    # -- the seed's verbs

    def create(self, entry: Mapping[str, Any] | MemoryEntry) -> dict[str, Any]:
        """Write a new memory below today's Last Updated line. Raises AlreadyExists, InvalidInput, Refused."""
        values = entries.entry_values(entry)
        id = normalize("NFC", id_for(values))
        if values.get("id") not in (None, "", id):
            raise InvalidInput(
                "The id does not fit the layer and the names.", code="invalid_id", hint="Leave the id out."
            )
        self._create(id, self._admit(id, values.get("content")))
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
        id = id_for({
            "layer": layer, "project_name": project_name, "file_type": file_type, "skill_name": skill_name,
            "command_name": command_name, "agent_name": agent_name,
        })  # fmt: skip
        return self.get(id, counted=False)

    def get(self, id: str, *, counted: bool = True) -> MemoryEntry | None:
        """One memory by its id, or None. Counts the use, unless that is not wanted."""
        path = self.folder.path(id)
        text = read_file(path)
        if isinstance(text, Problem):
            raise StorageError(f"{os.path.basename(path)} {text.why}.", hint="Mend the file, then try again.")
        if text is None or self._is_held(id, text):
            return None
        entry = self._entry(path, id, text)
        return self._count([entry])[0] if counted else entry

    def update(self, id: str, content: str) -> dict[str, Any]:
        """Replace the content and refresh the Last Updated line. Raises NotFound; a size warning never blocks."""
        return self._update(id, content)[0]

    def append(self, id: str, content: str) -> dict[str, Any]:
        """Add the content on new lines at the end, and prune by the file type's rule. Raises NotFound."""
        with unless_forgotten(self.tombstones, lambda: self.fetch(id)):
            return self._append(id, content)[0]

    def upsert(self, id: str, content: str) -> dict[str, Any]:
        """Update, or create where there is nothing yet; the answer is that of `update` or `create`."""
        with suppress(NotFound):
            return self.update(id, content)
        try:
            self._create(id, self._admit(id, content))
        except AlreadyExists:
            if not os.path.isfile(self.folder.path(id)):  # the name is taken by something else
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
        names = {"layer": "shared-project", "project_name": project_name, "file_type": "project_profile"}
        return self.get(id_for(names))

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
        folder = os.path.join(self.root, entries.LAYERS["skill-specific"].folder)
        for skill in filter(entries.is_name, names_in(folder)):
            with suppress(InvalidInput):  # a link out of the store
                if loaded := self._entries("skill-specific", skill, project_name, archives=include_archives):
                    skills[skill] = loaded
        self._count(sum(skills.values(), [*shared, *commands]))
        return {"shared": shared, "skills": skills, "commands": commands}

    def prune(
        self, policy: Mapping[str, Any] | None = None, *, paths: Iterable[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Apply the pruning rules to all files, to these, or to a project's or a skill's. A dry run only says what
        it would do.

        Old reviews and sessions go to the archive beside their file; before resolved issues are removed, the file is
        copied into `.trash/`, and the reason says where.
        """
        chosen = entries.policy_values({**(policy or {}), **options})
        pruned: list[dict[str, str]] = []
        warnings: list[str] = []
        for path in self.files() if paths is None else paths:
            if isinstance(path, Problem):
                warnings.append(f"{os.path.basename(path.path)} {path.why}")
                continue
            id = self.folder.native(path)
            names = names_of(id)
            if any(names.get(name) != chosen[name] for name in ("project_name", "skill_name") if chosen[name]):
                continue
            try:
                actions, text = self.folder.prune(path, dry_run=chosen["dry_run"])
            except NotFound:
                continue
            except StorageError as error:
                warnings.append(f"{id}: {error}")
                continue
            count = self.side_files.usage(id, path).invocations
            if type_of(id) == "common_patterns" and aging.due(count):
                actions.append(aging.Action("flagged", f"loaded {count} times: verify that its patterns still hold"))
            pruned += [{"id": id, "action": action, "reason": reason} for action, reason in actions]
            if warning := aging.size_warning(type_of(id), aging.line_count(text)):
                warnings.append(f"{id}: {warning}")
        return {"pruned": pruned, "warnings": warnings}

    def validate(self, id: str) -> dict[str, Any]:
        """Quality checks and suggestions. Raises NotFound; writes nothing."""
        path = self.folder.existing(id)
        text = readable(path)
        usage = self.side_files.usage(id, path)
        return {"id": id, **aging.quality(type_of(id), text, self.folder.today(), usage.invocations, usage.lines)}

    def get_staleness_report(self) -> dict[str, list[dict[str, Any]]]:
        """Every memory file by fresh, aging and stale. Reads first lines only."""
        today = self.folder.today()
        report: dict[str, list[dict[str, Any]]] = {"fresh": [], "aging": [], "stale": []}
        for id, path in self.folder.walk(STRUCTURAL):
            updated = aging.updated_on(_beginning(path))
            report[aging.staleness(updated, today)].append(
                {
                    "id": id,
                    "path": self.folder.below(path),
                    "updatedAt": str(updated) if updated else None,
                    "daysSinceUpdate": aging.days_since(updated, today),
                }
            )
        return report

    def search(
        self, pattern: str, layer: str | None = None, project_name: str | None = None, **filters: Any
    ) -> dict[str, Any]:
        """Lines that match a regular expression, each with two lines around it, in the order of the files.

        `filters` are those of every search: `type`, `since`, `until`, and `archived=False` to leave archives out. Files
        outside the layers have none of these and are searched where nothing narrows the search.

        Raises InvalidInput, also when the pattern takes too long: `(a+)+$` can take for ever.
        """
        if layer is not None:
            entries.layer_named(layer)
        fits = may_show(self.tombstones, {"archived": True, **filters})
        texts: dict[tuple[str, str], list[str]] = {}
        for id, path in self.folder.walk(frozenset({"index"})):
            names = names_of(id)
            if (layer and names.get("layer") != layer) or (project_name and names.get("project_name") != project_name):
                continue
            with suppress(OSError, StorageError):
                text = files.read_bytes(path).decode(errors="replace")
                if fits(self._memory(path, id, text)) if names else not filters:
                    texts[id, self.folder.below(path)] = text.splitlines()
        return {"matches": search.matches(pattern, texts, self.guard)}

    @property
    def answers(self) -> LayerAnswers:
        from memlane.lanes.layers.answers import LayerAnswers

        return LayerAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        return {"prune_timing": settings["layers.prune_timing"]}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        if problem := self.side_files.problem():
            yield problem
        entered = ""
        for path in walking.walk(self.root):
            relative = self.folder.below(os.fspath(path.path) if isinstance(path, Problem) else path)
            folder, _, _ = relative.partition("/")
            if isinstance(path, Problem):
                yield path
                continue
            parent, _, name = path.rpartition("/")
            if name[:-3] in STRUCTURAL:
                continue
            if not id_of(relative):
                if name.lower() != "readme.md":  # it speaks of the folder
                    is_layer = folder in entries.LAYER_OF
                    why = f"is not named as memories in {folder} are; move or rename it" if is_layer else _NO_LAYER
                    yield Problem(Path(path), why)
                continue
            if parent != entered and (problem := self.side_files.problem(parent)):
                yield problem
            entered = parent
            yield path

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        text = read_file(path)
        if isinstance(text, Problem):
            yield text
        elif text is not None and (id := id_of(self.folder.below(path))):
            yield self._memory(path, id, text)

    def fetch(self, native: str) -> Memory:
        path = self.folder.existing(native)
        return self._memory(path, native, readable(path))

    def put(self, draft: Draft) -> Memory:
        known(draft.fields, frozenset(entries.ALIASES), self.name)
        values = {entries.ALIASES[name]: value for name, value in draft.fields.items()}
        values["layer"] = values.get("layer") or draft.scope or "shared-project"
        values["file_type"] = values.get("file_type") or draft.type or slug(draft.title or "").replace("-", "_")
        draft = gate.admit(self.checks, draft, self)
        id = normalize("NFC", id_for(values))
        lifted = self._create(id, draft)
        lost = [name for name in ("tags", "thread") if getattr(draft, name)]
        remarks = (f"the layers lane keeps no {' and no '.join(lost)}",) if lost else ()
        return replace(self.fetch(id), remarks=(*draft.remarks, *remarks, *lifted))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, frozenset({"text"}), self.name)
        answer, remarks = self._update(native, changes.get("text"))
        return replace(self.fetch(native), remarks=(*remarks, *_said(answer)))

    def extend(self, native: str, text: str) -> Memory:
        # a paragraph, as the other lanes do; the seed's append adds lines
        answer, remarks = self._append(native, text, paragraph=True)
        return replace(self.fetch(native), remarks=(*remarks, *_said(answer)))

    def drop(self, native: str) -> Removed:
        path = self.folder.existing(native)
        now = self.clock()
        with files.locked(path):
            text = read_file(path)
            moved = trash.put(path, self.root, now)
        if isinstance(text, str):
            self.tombstones.bury((f"layers:{native}", aging.body(text)))
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        path = self.folder.path(native)
        if os.path.lexists(path):
            raise AlreadyExists(
                f"The memory exists: {gate.shown(native)}",
                hint="Delete it first, or copy what you need from the one in .trash.",
            )
        for name, lies, _ in trash.contents(self.root):
            if os.path.join(self.root, name) == path:
                if isinstance(text := read_file(lies), str):
                    self.tombstones.lift(aging.body(text), forgotten=False)
                files.move(lies, path)
                return self.fetch(native)
        raise NotFound(f"The trash has no memory {gate.shown(native)}.", hint="`memlane restore` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            if id := id_of(name):
                yield Removed(f"{self.name}:{id}", "trash", Path(lies), when)

    # -- reading

    def _entry(self, path: str, id: str, text: str) -> MemoryEntry:
        return entries.entry_of(id, text, self.side_files.usage(id, path), self.folder.today())

    def _memory(self, path: str, id: str, text: str) -> Memory:
        return entries.memory_of(path, id, text, self.side_files.usage(id, path), self.folder.today())

    def _entries(self, layer: str, *names: str, archives: bool) -> list[MemoryEntry]:
        """The memories of one folder. A file that cannot be read is left out; scan() reports it."""
        folder = inside(self.root, entries.LAYERS[layer].folder, *map(entries.checked, names))
        loaded = []
        for name in names_in(folder):
            stem, suffix = os.path.splitext(name)
            if suffix != ".md" or stem == "index" or not entries.is_name(stem):
                continue
            if stem.endswith(aging.ARCHIVE) and not archives:
                continue
            with suppress(InvalidInput):  # a link out of the store
                id = "/".join((layer, *names, stem))
                path = self.folder.path(id)
                text = read_file(path)
                if isinstance(text, str) and not self._is_held(id, text):
                    loaded.append(self._entry(path, id, text))
        return loaded

    def _count(self, loaded: list[MemoryEntry]) -> list[MemoryEntry]:
        """Count an invocation that loaded these."""
        folders: dict[str, dict[str, int]] = {}
        for entry in loaded:
            folder = os.path.dirname(os.path.join(self.root, path_of(entry.id)))
            folders.setdefault(folder, {})[entry.file_type] = entry.line_count
        for folder, line_counts in folders.items():
            self.side_files.note(folder, line_counts)
        return loaded

    # -- writing

    def _is_held(self, id: str, text: str) -> bool:
        return self.tombstones.held(self._memory(self.folder.path(id), id, text)) is not None

    def _admit(self, id: str, content: Any, over: str = "") -> Draft:
        if not isinstance(content, str):
            raise InvalidInput("There is no content, or it is not text.", hint="Give the content as text.")
        return gate.admit(self.checks, Draft(content, fields=names_of(id), over=over), self)

    def _create(self, id: str, draft: Draft) -> tuple[str, ...]:
        """Write a new file; return the remark that the same text was deleted before."""
        created = (moment(draft.created_at) or self.clock()).astimezone(UTC).date()
        folder, news = os.path.dirname(self.folder.path(id)), {type_of(id): {"createdAt": str(created)}}
        text = self.folder.create(id, draft.text, ahead=lambda: self.side_files.note(folder, news))
        return self.tombstones.lift(aging.body(text), f"layers:{id}")

    def _update(self, id: str, content: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Replace the content; the seed's answer, and the remarks in it."""
        path = self.folder.existing(id)
        draft = self._admit(id, content, over=readable(path))
        remarks = (*draft.remarks, *self.tombstones.lift(aging.body(draft.text), f"layers:{id}"))
        with files.locked(path):
            old = readable(path)
            text = aging.page(draft.text, self.folder.today(), old)
            self.folder.rewrite(path, old, text)
        return {"id": id, "updated": True, **self._measured(path, id, text, remarks)}, remarks

    def _append(self, id: str, content: Any, *, paragraph: bool = False) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Add the content and prune; the seed's answer, and the remarks in it."""
        path = self.folder.existing(id)
        draft = self._admit(id, content)
        today = self.folder.today()
        prunes_first = self.prune_timing == "before_append"
        with files.locked(path):
            old = readable(path)
            before = old if prunes_first else aging.joined(old, draft.text, paragraph=paragraph)
            pruned = aging.prune(type_of(id), before, today)
            text = aging.joined(pruned.text, draft.text, paragraph=paragraph) if prunes_first else pruned.text
            text = aging.stamped(text, today)
            actions = self.folder.rewrite(path, old, text, before, pruned)
        self.tombstones.lift(aging.body(text), f"layers:{id}")
        measured = self._measured(path, id, text, draft.remarks)
        answer = {"id": id, "appended": True, "pruned": bool(actions), **measured}
        if actions:
            answer["pruneDetails"] = "; ".join(f"{action}: {reason}" for action, reason in actions)
        return answer, draft.remarks

    def _measured(self, path: str, id: str, text: str, remarks: tuple[str, ...]) -> dict[str, Any]:
        """Note a written file's length; its lineCount and, when it is too long or the gate changed it, the warning."""
        lines = aging.line_count(text)
        self.side_files.note(os.path.dirname(path), {type_of(id): lines})
        size = aging.size_warning(type_of(id), lines)
        warning = "; ".join((*remarks, size) if size else remarks)
        return {"lineCount": lines, **({"warning": warning} if warning else {})}


def _said(answer: Mapping[str, Any]) -> Iterator[str]:
    """What the seed's answer to a write says about pruning and the file's length, for a Memory's remarks."""
    if details := answer.get("pruneDetails"):
        yield details
    if size := aging.size_warning(type_of(answer["id"]), answer["lineCount"]):
        yield size


def _beginning(path: str) -> str:
    """Enough of a file to see its first line; later bytes may be anything."""
    with suppress(OSError, StorageError):
        return files.beginning(path, 256).decode(errors="replace")
    return ""
