"""`memlane records`: the verbs of the records lane, captured messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.model import Plan, Step
from memlane.lanes.records.record import Record
from memlane.recall.scopes import spelt
from memlane.surfaces.cli.options import (
    DAYS,
    Count,
    any_tag_option,
    apply_option,
    content_argument,
    dates,
    json_from_bank,
    limit_option,
    with_bank,
    words_argument,
)
from memlane.surfaces.cli.output import print_plan, print_problems, print_result, print_stored, take_text


@click.group()
def records() -> None:
    """Records: captured messages, whole, one file each.

    \b
    $ memlane records find authentication
    """


applies_option = click.option("--scope", help="global, file:PATH or area:NAME.")


def _print_records(listed: list[Record], as_json: bool) -> None:
    rows = ((f"records:{Path(record.path).stem}", record.occurred_at, record.subject) for record in listed)
    print_result(listed, as_json, rows)


@records.command()
@content_argument
@click.option("--subject", required=True)
@click.option("--keyword", "-k", "keywords", multiple=True, required=True, help="May be repeated.")
@click.option("--applies-to", default="global", show_default=True, help="global, file:PATH or area:NAME.")
@click.option("--occurred-at", metavar="WHEN", help="When it was said: 2025-01-15T10:30:00Z.")
@with_bank
def create(bank: Bank, content: str | None, as_json: bool, **fields: Any) -> None:
    """Store a message; the same message at the same time is stored once.

    \b
    $ memlane records create - --subject "Error handling" -k errors < message.md
    """
    record = bank.records.create(take_text(content), **fields)
    id = f"records:{record.id}"
    bank.anchor(id)
    print_stored(record, as_json, id)


@records.command("list")
@applies_option
@click.option("--keyword")
@dates
@limit_option()
@click.option("--offset", type=Count(), default=0, help="Leave out so many of the newest.")
@with_bank
def list_(bank: Bank, scope: str | None, as_json: bool, **chosen: Any) -> None:
    """List records, the newest first.

    \b
    $ memlane records list --scope area:database
    """
    _print_records(bank.records.list(scope=spelt(bank, scope, "records"), **chosen), as_json)


@records.command()
@words_argument("query")
@applies_option
@any_tag_option
@dates
@limit_option(10)
@with_bank
def find(bank: Bank, query: str, scope: str | None, as_json: bool, **chosen: Any) -> None:
    """Find records by their keywords, misspelt ones too.

    \b
    $ memlane records find "auth middleware"
    """
    _print_records(bank.records.find(query, scope=spelt(bank, scope, "records"), **chosen), as_json)


@records.command()
@json_from_bank
def index(bank: Bank) -> dict[str, Any]:
    """Print the keyword index as JSON.

    \b
    $ memlane records index
    """
    return bank.records.index()


@records.command()
@with_bank
def validate(bank: Bank, as_json: bool) -> None:
    """Check every record against the format's rules. Exit code 6 when one breaks them.

    \b
    $ memlane records validate
    """
    print_problems(bank.records.validate(), as_json)


@records.command()
@click.option("--days", type=Count(most=DAYS), help="Keep so many days; else capture.keep_days.")
@click.option("--count", type=Count(), help="Keep so many; else capture.keep_count.")
@apply_option
@with_bank
def retain(bank: Bank, days: int | None, count: int | None, applied: bool, as_json: bool) -> None:
    """Show which records are too old or too many to keep; with --apply, move them to the archive.

    Both limits are off (0) unless configured. `memlane restore` brings a record back from the archive, `memlane undo`
    all of them.

    \b
    $ memlane records retain --days 365
    $ memlane records retain --days 365 --apply
    """
    days = bank.config["capture.keep_days"] if days is None else days
    count = bank.config["capture.keep_count"] if count is None else count
    pruned = bank.records.prune(keep_days=days, keep_count=count, dry_run=not applied)
    plan = Plan(tuple(Step(f"records:{record.id}", "archive", why, record.subject) for record, why in pruned))
    if not days and not count:
        talk = "records are kept for ever: capture.keep_days and capture.keep_count are 0"
    elif not plan.steps:
        talk = "nothing to archive"
    else:
        talk = "done" if applied else "nothing was changed; --apply does this"
    print_plan(plan, as_json, applied, talk)
