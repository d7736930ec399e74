"""`memlane layers`: the verbs of the layers lane. Most answer in JSON, in the shapes of that format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.errors import NotFound
from memlane.lanes.layers.entries import LAYERS, SCOPES, MemoryEntry, id_for, layer_of, names_of, path_of
from memlane.lanes.layers.search import CONTEXT
from memlane.recall.address import native
from memlane.surfaces.cli.options import (
    Command,
    apply_option,
    complete_id,
    content_argument,
    dates,
    json_from_bank,
    with_bank,
)
from memlane.surfaces.cli.output import print_plan, print_result, take_text


@click.group()
def layers() -> None:
    """Layers: project, skill, command and agent files with staleness and pruning.

    A file is named by its ID, or by options: --project, --skill or --agent, and --type.

    \b
    $ memlane layers create --project my-api --type project_profile "# Profile"
    $ memlane layers append shared-project/my-api/project_profile "Python 3.12."
    """


def named(command: Command) -> Command:
    """An id, or the options that name a file: its layer and what the layer's path is made of."""
    kinds = "For example project_profile, known_issues, review_history."
    layer = "shared-project; skill-specific with --skill, command with --command, agent with --agent."
    for option in (
        click.option("--type", "file_type", help=kinds),
        click.option("--agent", "agent_name"),
        click.option("--command", "command_name"),
        click.option("--skill", "skill_name"),
        click.option("--project", "project_name"),
        click.option("--layer", type=click.Choice(list(LAYERS)), help=layer),
        click.argument("id", required=False, shell_complete=complete_id),
    ):
        command = option(command)
    return command


def _named(names: dict[str, Any], *words: str | None) -> tuple[str, str | None]:
    """The id of the file that is meant, and the text behind it.

    Where options name the file there is no ID, and the first word is the text already.
    """
    given = [word for word in words if word is not None]
    if not any(names.values()):
        if not given:
            raise click.UsageError("Which file? Give its ID, or --type and --project, --skill or --agent.")
        return given[0].removeprefix("layers:"), given[1] if len(given) > 1 else None
    if len(given) == len(words):
        raise click.UsageError("Give either an ID or the options that name the file.")
    return id_for({**names, "layer": layer_of(names)}), given[0] if given else None


def _native(bank: Bank, names: dict[str, Any], id: str | None) -> str:
    """The id of a file that is there."""
    return native(bank, "layers", _named(names, id)[0])


@layers.command()
@named
@content_argument
@json_from_bank
def create(bank: Bank, id: str | None, content: str | None, **names: Any) -> dict[str, Any]:
    """Write a new file with today's timestamp.

    \b
    $ memlane layers create --project my-api --type project_profile "# Profile"
    $ memlane layers create agent/hephaestus/insights - < insights.md
    """
    id, content = _named(names, id, content)
    path_of(id)
    return _anchored(bank, bank.layers.create({**names_of(id), "content": take_text(content)}))


@layers.command()
@named
@content_argument
@json_from_bank
def upsert(bank: Bank, id: str | None, content: str | None, **names: Any) -> dict[str, Any]:
    """Replace a file's content, or create the file.

    \b
    $ memlane layers upsert --project my-api --type project_profile - < profile.md
    """
    id, content = _named(names, id, content)
    return _anchored(bank, bank.layers.upsert(id, take_text(content)))


@layers.command()
@named
@json_from_bank
def read(bank: Bank, id: str | None, **names: Any) -> MemoryEntry:
    """Print a file's entry with its staleness.

    \b
    $ memlane layers read --project my-api --type project_profile
    """
    return _there(bank.layers.get(_native(bank, names, id), counted=False))


@layers.command()
@named
@click.option("--archives", is_flag=True, help="Archived reviews and sessions, too.")
@json_from_bank
def get(bank: Bank, id: str | None, archives: bool, **names: Any) -> Any:
    """Print what is known, and count the use: one file, a layer's files, or all about a project.

    \b
    $ memlane layers get shared-project/my-api/project_profile
    $ memlane layers get --project my-api
    $ memlane layers get --project my-api --layer shared-project
    $ memlane layers get --project my-api --skill review
    $ memlane layers get --agent hephaestus
    """
    if id or names["file_type"]:
        return _there(bank.layers.get(_native(bank, names, id)))
    project, skill, agent = (names[f"{name}_name"] for name in ("project", "skill", "agent"))
    layer = layer_of(names)
    if missing := [name for name in LAYERS[layer].names if not names[name]]:
        raise click.UsageError(f"Give --{missing[0].removesuffix('_name')}, or the ID of a file.")
    if names["layer"] is None and layer == "shared-project":
        return bank.layers.get_by_project(project, include_archives=archives)
    match layer:
        case "shared-project":
            return bank.layers.get_shared_project_memory(project, include_archives=archives)
        case "skill-specific":
            return bank.layers.get_skill_memory(skill, project, include_archives=archives)
        case "command":
            return bank.layers.get_command_memory(project, include_archives=archives)
    return bank.layers.get_agent_memory(agent, include_archives=archives)


@layers.command()
@named
@json_from_bank
def delete(bank: Bank, id: str | None, **names: Any) -> dict[str, Any]:
    """Move a file to the trash; `memlane restore ID` brings it back.

    \b
    $ memlane layers delete shared-project/my-api/known_issues
    """
    return bank.layers.delete(_native(bank, names, id))


@layers.command()
@named
@content_argument
@json_from_bank
def update(bank: Bank, id: str | None, content: str | None, **names: Any) -> dict[str, Any]:
    """Replace a file's content and refresh its timestamp.

    \b
    $ memlane layers update shared-project/my-api/project_profile - < profile.md
    """
    id, content = _named(names, id, content)
    return _anchored(bank, bank.layers.update(native(bank, "layers", id), take_text(content)))


@layers.command()
@named
@content_argument
@json_from_bank
def append(bank: Bank, id: str | None, content: str | None, **names: Any) -> dict[str, Any]:
    """Add to a file; old reviews, sessions and resolved issues are pruned by its type's rule.

    \b
    $ memlane layers append skill-specific/review/my-api/review_history "## Review #4 - 2025-01-10"
    """
    id, content = _named(names, id, content)
    return _anchored(bank, bank.layers.append(native(bank, "layers", id), take_text(content)))


@layers.command()
@click.argument("project")
@with_bank
def project(bank: Bank, project: str, as_json: bool) -> None:
    """List everything known about PROJECT: shared, by skill, by command.

    \b
    $ memlane layers project my-api
    """
    groups = bank.layers.get_by_project(project)
    by_skill = [entry for entries in groups["skills"].values() for entry in entries]
    entries = [*groups["shared"], *by_skill, *groups["commands"]]
    rows = ((f"layers:{entry.id}", entry.staleness or "", str(entry.updated_at or "")) for entry in entries)
    print_result(entries, as_json, rows)


@layers.command()
@with_bank
def stale(bank: Bank, as_json: bool) -> None:
    """Group all files by fresh, aging and stale.

    \b
    $ memlane layers stale
    """
    report = bank.layers.get_staleness_report()
    rows = ((band, str(item["updatedAt"] or "no timestamp"), item["id"]) for band in report for item in report[band])
    print_result(report, as_json, rows)


@layers.command()
@click.option("--scope", type=click.Choice(SCOPES), default="all", show_default=True)
@click.option("--project", "projectName")
@click.option("--skill", "skillName")
@apply_option
@click.option("--dry-run", is_flag=True, help="Only show it, as without --apply.")
@with_bank
def prune(bank: Bank, applied: bool, dry_run: bool, as_json: bool, **policy: Any) -> None:
    """Show which old reviews and sessions would be archived, and which resolved issues removed; with --apply, do it.

    \b
    $ memlane layers prune
    $ memlane layers prune --project my-api --apply
    """
    from memlane.care import prune as pruning

    if applied and dry_run:
        raise click.UsageError("--apply and --dry-run exclude each other.")
    plan = bank.layers.answers.prunable(**policy)
    if applied:
        plan = pruning.apply(bank, plan)
    if not plan.steps:
        talk = "nothing to prune"
    else:
        talk = "done; `memlane undo` takes it back" if applied else "nothing was changed; --apply does this"
    print_plan(plan, as_json, applied, talk)


@layers.command()
@named
@json_from_bank
def validate(bank: Bank, id: str | None, **names: Any) -> dict[str, Any]:
    """Judge a file's completeness, specificity and growth. Writes nothing.

    \b
    $ memlane layers validate shared-project/my-api/project_overview
    """
    return bank.layers.validate(_native(bank, names, id))


@layers.command()
@click.argument("pattern")
@click.option("--layer", type=click.Choice(list(LAYERS)))
@click.option("--project", "project_name")
@click.option("--type")
@dates
@with_bank
def search(
    bank: Bank,
    pattern: str,
    layer: str | None,
    project_name: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Search by a regular expression; each match comes with two lines around it.

    \b
    $ memlane layers search 'FastAPI|Flask' --project my-api
    """
    given = {name: value for name, value in filters.items() if value is not None}
    result = bank.layers.search(pattern, layer, project_name, **given)
    print_result(result, as_json, (row for match in result["matches"] for row in _excerpt(match)))


def _excerpt(match: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A match with its place, between the lines around it."""
    for number, line in enumerate(match["context"].split("\n"), max(match["lineNumber"] - CONTEXT, 1)):
        yield f"{match['path']}:{number}" if number == match["lineNumber"] else "", line.rstrip()


def _there(entry: MemoryEntry | None) -> MemoryEntry:
    if entry is None:
        raise NotFound("There is no such file.", hint="`memlane list --lane layers` shows what there is.")
    return entry


def _anchored(bank: Bank, done: dict[str, Any]) -> dict[str, Any]:
    """Anchor the file that was written to the code it names; returns what the lane answered."""
    bank.anchor(f"layers:{done['id']}")
    return done
