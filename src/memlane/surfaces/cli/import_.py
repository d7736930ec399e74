"""`memlane import`: take in what other programs remember."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.exchange.importers import KINDS
from memlane.surfaces.cli.options import with_bank
from memlane.surfaces.cli.output import print_result, say


@click.command("import", epilog="Kinds: " + "; ".join(f"{kind} ({what})" for kind, what in KINDS.items()) + ".")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--from", "kind", type=click.Choice(list(KINDS)), help="What it is; else its content tells.")
@click.option("--lane", type=click.Choice(("notes", "vault", "records")), help="Where texts go.  [default: notes]")
@click.option("--into", metavar="FOLDER", default="", help="A folder of the bank for the notes.")
@click.option("--as", "label", metavar="NAME", help="What the source is called in the notes' mark.")
@click.option("--update", is_flag=True, help="Take what has changed at the source; the older one goes to the trash.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@with_bank
def import_(bank: Bank, path: Path, kind: str | None, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Take in what other programs remember. A second import adds nothing twice.

    Prints what became of each: new, updated, same, changed, refused, problem or skipped. Exit code 4 when the gate
    refused everything, 6 when nothing could be read.

    \b
    $ memlane import ~/vault --dry-run
    $ memlane import ~/.claude/projects/-home-me-api/memory
    $ memlane import memory.jsonl
    """
    from memlane.exchange import importers, imports

    kind = kind or importers.detect(path.expanduser())
    say(f"reading {path.name or path} as {kind}: {KINDS[kind]}{' (dry run)' if dry_run else ''}")
    outcomes: list[imports.Outcome] = []
    try:
        outcomes.extend(imports.import_from(bank, path, kind=kind, dry_run=dry_run, **options))
    finally:  # what was taken in before an error is printed, too
        counts = Counter(outcome.status for outcome in outcomes)
        tally = {status: counts[status] for status in imports.STATUSES if counts[status]}
        value = {"kind": kind, "dry_run": dry_run, "counts": tally, "items": outcomes}
        rows = ((each.status, each.item, each.id, each.why) for each in outcomes if each.status != "skipped")
        talk = ", ".join(f"{count} {status}" for status, count in tally.items()) or "nothing found"
        print_result(value, as_json, rows, talk)
    if counts.keys() & {"refused", "problem"} and not counts.keys() & {"new", "updated", "same", "changed"}:
        click.get_current_context().exit(4 if counts["refused"] else 6)
