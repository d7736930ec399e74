"""Seed 004's verbs as the toolset `layers`: project, skill, command and agent files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from memlane.bank import Bank
from memlane.lanes.layers.entries import MemoryEntry
from memlane.surfaces.mcp.tools import ADDS, CHANGES, READS, Since, Until, tool, without_lane

Layer = Literal["shared-project", "skill-specific", "command", "agent"]
Id = Annotated[str, without_lane("layers"), Field(description="Such as shared-project/my-api/project_profile")]
FileType = Annotated[str, Field(description="Such as project_profile, known_issues, review_history")]
Entry = dict[str, Any]


class Created(TypedDict):
    id: str
    path: str
    created: bool


class Deleted(TypedDict):
    id: str
    deleted: bool


class ByProject(TypedDict):
    shared: list[Entry]
    skills: dict[str, list[Entry]]
    commands: list[Entry]


class Pruned(TypedDict):
    pruned: list[dict[str, str]]
    warnings: list[str]


class Report(TypedDict):
    fresh: list[dict[str, Any]]
    aging: list[dict[str, Any]]
    stale: list[dict[str, Any]]


class Matches(TypedDict):
    matches: list[dict[str, Any]]


@tool(ADDS, name="layers_create")
def create(
    bank: Bank,
    layer: Layer,
    file_type: FileType,
    content: str,
    project_name: str | None = None,
    skill_name: str | None = None,
    command_name: str | None = None,
    agent_name: str | None = None,
) -> Created:
    """Write a new file of a layer with today's timestamp."""
    names = {"project_name": project_name, "skill_name": skill_name}
    names |= {"command_name": command_name, "agent_name": agent_name}
    entry = {"layer": layer, **names, "file_type": file_type, "content": content}
    return cast("Created", _anchored(bank, bank.layers.create(entry)))


@tool(READS, name="layers_read")
def read(
    bank: Bank,
    layer: Layer,
    file_type: FileType,
    project_name: str | None = None,
    skill_name: str | None = None,
    command_name: str | None = None,
    agent_name: str | None = None,
) -> Entry | None:
    """Read a file with its staleness; null when there is none."""
    return _entry(bank.layers.read(layer, project_name, file_type, skill_name, command_name, agent_name))


@tool(CHANGES, name="layers_update")
def update(bank: Bank, id: Id, content: str) -> Entry:
    """Replace a file's content and refresh its timestamp."""
    return _anchored(bank, bank.layers.update(id, content))


@tool(ADDS, name="layers_append")
def append(bank: Bank, id: Id, content: str) -> Entry:
    """Add to the end of a file. Old reviews, sessions and resolved issues are pruned by its type's rule."""
    return _anchored(bank, bank.layers.append(id, content))


@tool(CHANGES, name="layers_upsert")
def upsert(bank: Bank, id: Id, content: str) -> Entry:
    """Replace a file's content, or create the file."""
    return _anchored(bank, bank.layers.upsert(id, content))


@tool(CHANGES, name="layers_delete")
def delete(bank: Bank, id: Id) -> Deleted:
    """Move a file to the trash."""
    return cast("Deleted", bank.layers.delete(id))


@tool(ADDS, name="layers_get_project_profile")
def get_project_profile(bank: Bank, project_name: str) -> Entry | None:
    """Read a project's profile, and count the use; null when there is none."""
    return _entry(bank.layers.get_project_profile(project_name))


@tool(ADDS, name="layers_get_shared_project_memory")
def get_shared_project_memory(bank: Bank, project_name: str, include_archives: bool = False) -> list[Entry]:
    """Read what all skills share about a project, and count the use."""
    return _entries(bank.layers.get_shared_project_memory(project_name, include_archives=include_archives))


@tool(ADDS, name="layers_get_skill_memory")
def get_skill_memory(bank: Bank, skill_name: str, project_name: str, include_archives: bool = False) -> list[Entry]:
    """Read what a skill knows about a project, and count the use. Nothing: it sees the project for the first time."""
    return _entries(bank.layers.get_skill_memory(skill_name, project_name, include_archives=include_archives))


@tool(ADDS, name="layers_get_command_memory")
def get_command_memory(bank: Bank, project_name: str, include_archives: bool = False) -> list[Entry]:
    """Read what commands noted about a project, and count the use."""
    return _entries(bank.layers.get_command_memory(project_name, include_archives=include_archives))


@tool(ADDS, name="layers_get_agent_memory")
def get_agent_memory(bank: Bank, agent_name: str, include_archives: bool = False) -> list[Entry]:
    """Read what an agent noted, and count the use."""
    return _entries(bank.layers.get_agent_memory(agent_name, include_archives=include_archives))


@tool(ADDS, name="layers_get_by_project")
def get_by_project(bank: Bank, project_name: str, include_archives: bool = False) -> ByProject:
    """Read everything about a project: shared, by skill, by command; and count the use."""
    layers = bank.layers.get_by_project(project_name, include_archives=include_archives)
    return {
        "shared": _entries(layers["shared"]),
        "skills": {skill: _entries(entries) for skill, entries in layers["skills"].items()},
        "commands": _entries(layers["commands"]),
    }


@tool(CHANGES, name="layers_prune")
def prune(
    bank: Bank,
    scope: Literal["project", "skill", "all"] = "all",
    project_name: str | None = None,
    skill_name: str | None = None,
    apply: Annotated[bool, Field(description="Do it; else it is only said what would be done")] = False,
    dry_run: Annotated[bool, Field(description="false is apply=true")] = True,
) -> Pruned:
    """Archive old reviews, fold old sessions, remove long-resolved issues. Shows it; with apply, does it."""
    from memlane.care import prune as pruning

    answers = bank.layers.answers
    plan = answers.prunable(scope=scope, projectName=project_name, skillName=skill_name)
    return cast("Pruned", answers.report(pruning.apply(bank, plan) if apply or not dry_run else plan))


@tool(READS, name="layers_validate")
def validate(bank: Bank, id: Id) -> Entry:
    """Judge a file's completeness, specificity and growth."""
    return bank.layers.validate(id)


@tool(READS, name="layers_get_staleness_report")
def get_staleness_report(bank: Bank) -> Report:
    """Group all files by fresh, aging and stale."""
    return cast("Report", bank.layers.get_staleness_report())


@tool(READS, name="layers_search")
def search(
    bank: Bank,
    pattern: Annotated[str, Field(description="A regular expression")],
    layer: Layer | None = None,
    project_name: str | None = None,
    file_type: str | None = None,
    since: Since = None,
    until: Until = None,
) -> Matches:
    """Find lines by a regular expression, each with two lines around it."""
    filters = {"type": file_type, "since": since, "until": until}
    given = {name: value for name, value in filters.items() if value is not None}
    return cast("Matches", bank.layers.search(pattern, layer, project_name, **given))


def _anchored(bank: Bank, answer: dict[str, Any]) -> dict[str, Any]:
    """The lane's answer to a write, once the code that the file names is anchored."""
    bank.anchor(f"layers:{answer['id']}")
    return answer


def _entry(entry: MemoryEntry | None) -> Entry | None:
    return entry.to_dict() if entry else None


def _entries(entries: list[MemoryEntry]) -> list[Entry]:
    return [entry.to_dict() for entry in entries]
