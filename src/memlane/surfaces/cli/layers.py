"""`memlane layers`: seed 004's verbs. Their answers are JSON, in the seed's own shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.errors import NotFound
from memlane.lanes.layers.entries import LAYERS, SCOPES, MemoryEntry
from memlane.surfaces.cli.output import (
    always_json,
    as_json,
    id_argument,
    print_json,
    print_rows,
    say,
    take_text,
    with_bank,
)


@click.group()
def layers() -> None:
    """Layers: project, skill, command and agent files with staleness and pruning.

    \b
    $ memlane layers create --project my-api --type project_profile "# Profile"
    """


def _entries(found: list[MemoryEntry], as_json: bool) -> None:
    if as_json:
        print_json([entry.to_dict() for entry in found])
    else:
        print_rows((f"layers:{entry.id}", entry.staleness or "", str(entry.updated_at or "")) for entry in found)


def named(command: Callable[..., None]) -> Callable[..., None]:
    """The options that name a file: its layer and what the layer's path is made of."""
    kinds = "For example project_profile, known_issues, review_history."
    for option in (
        click.option("--type", "file_type", required=True, help=kinds),
        click.option("--agent", "agent_name"),
        click.option("--command", "command_name"),
        click.option("--skill", "skill_name"),
        click.option("--project", "project_name"),
        click.option("--layer", type=click.Choice(list(LAYERS)), default="shared-project", show_default=True),
    ):
        command = option(command)
    return command


@layers.command()
@click.argument("content", required=False)
@named
@always_json
@with_bank
def create(bank: Bank, content: str | None, **names: Any) -> None:
    """Write a new file with today's timestamp.

    \b
    $ memlane layers create --project my-api --type project_profile "# Profile"
    """
    entry = {name: value for name, value in names.items() if value is not None}
    done = bank.layers.create({**entry, "content": take_text(content)})
    bank.anchor(f"layers:{done['id']}")
    print_json(done)


@layers.command()
@named
@always_json
@with_bank
def read(bank: Bank, **names: Any) -> None:
    """Print a file's entry with its staleness.

    \b
    $ memlane layers read --project my-api --type project_profile
    """
    entry = bank.layers.read(**names)
    if entry is None:
        raise NotFound("There is no such file.", hint="`memlane list --lane layers` shows what there is.")
    print_json(entry.to_dict())


@layers.command()
@id_argument
@click.argument("content", required=False)
@always_json
@with_bank
def update(bank: Bank, id: str, content: str | None) -> None:
    """Replace a file's content and refresh its timestamp.

    \b
    $ memlane layers update shared-project/my-api/project_profile - < profile.md
    """
    done = bank.layers.update(_native(id), take_text(content))
    bank.anchor(f"layers:{_native(id)}")
    print_json(done)


@layers.command()
@id_argument
@click.argument("content", required=False)
@always_json
@with_bank
def append(bank: Bank, id: str, content: str | None) -> None:
    """Add to a file; old reviews, sessions and resolved issues are pruned by its type's rule.

    \b
    $ memlane layers append skill-specific/review/my-api/review_history "## Review #4 - 2025-01-10"
    """
    done = bank.layers.append(_native(id), take_text(content))
    bank.anchor(f"layers:{_native(id)}")
    print_json(done)


@layers.command()
@click.argument("project")
@as_json
@with_bank
def project(bank: Bank, project: str, as_json: bool) -> None:
    """List everything known about PROJECT: shared, by skill, by command.

    \b
    $ memlane layers project my-api
    """
    found = bank.layers.get_by_project(project)
    entries = [*found["shared"], *(entry for skill in found["skills"].values() for entry in skill), *found["commands"]]
    _entries(entries, as_json)


@layers.command()
@as_json
@with_bank
def stale(bank: Bank, as_json: bool) -> None:
    """Group all files by fresh, aging and stale.

    \b
    $ memlane layers stale
    """
    report = bank.layers.get_staleness_report()
    if as_json:
        print_json(report)
    else:
        print_rows(
            (band, str(item["updatedAt"] or "no timestamp"), item["id"]) for band in report for item in report[band]
        )


@layers.command()
@click.option("--scope", type=click.Choice(SCOPES), default="all", show_default=True)
@click.option("--project", "projectName")
@click.option("--skill", "skillName")
@click.option("--dry-run", "dryRun", is_flag=True, help="Show what would be done.")
@as_json
@with_bank
def prune(bank: Bank, as_json: bool, **policy: Any) -> None:
    """Archive old reviews, fold old sessions, remove long-resolved issues.

    \b
    $ memlane layers prune --dry-run
    """
    found = bank.layers.prune({name: value for name, value in policy.items() if value is not None})
    if as_json:
        print_json(found)
    else:
        for warning in found["warnings"]:
            say(f"note: {warning}")
        print_rows((item["id"], item["action"], item["reason"]) for item in found["pruned"])


@layers.command()
@id_argument
@always_json
@with_bank
def validate(bank: Bank, id: str) -> None:
    """Judge a file's completeness, specificity and growth. Writes nothing.

    \b
    $ memlane layers validate shared-project/my-api/project_overview
    """
    print_json(bank.layers.validate(_native(id)))


@layers.command()
@click.argument("pattern")
@click.option("--layer", type=click.Choice(list(LAYERS)))
@click.option("--project", "project_name")
@as_json
@with_bank
def search(bank: Bank, pattern: str, layer: str | None, project_name: str | None, as_json: bool) -> None:
    """Search by a regular expression; each match comes with two lines around it.

    \b
    $ memlane layers search 'FastAPI|Flask' --project my-api
    """
    found = bank.layers.search(pattern, layer, project_name)
    if as_json:
        print_json(found)
    else:
        print_rows(
            (f"{match['path']}:{match['lineNumber']}", match["lineContent"].strip()) for match in found["matches"]
        )


def _native(id: str) -> str:
    return id.removeprefix("layers:")
