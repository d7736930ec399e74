"""`memlane log` and `memlane merge-driver`: the bank in git."""

from __future__ import annotations

from pathlib import Path

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.surfaces.cli.output import as_json, print_json, print_rows, say, with_bank


@click.command()
@click.argument("id", required=False)
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many commits."
)
@as_json
@with_bank
def log(bank: Bank, id: str | None, limit: int, as_json: bool) -> None:
    """List the git commits that changed memories (or the one of ID), the newest first: + added, ~ changed, - removed.

    \b
    $ memlane log -n 5
    $ memlane log notes:deploy-day
    """
    changes = bank.log(id, limit)
    if as_json:
        print_json([change.to_dict() for change in changes])
        return
    for change in changes:
        print_rows([(change.commit[:12], (iso(change.date) or "")[:10], change.author, change.subject)])
        for sign, memories in (("+", change.added), ("~", change.changed), ("-", change.removed)):
            print_rows((sign, id, title) for id, title in memories)
    if not changes:
        say("no commit has memories yet")


@click.command("merge-driver")
@click.argument("format", type=click.Choice(("vault", "note", "record", "layer", "topic", "archive", "index")))
@click.argument("base", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("ours", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("theirs", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("path", required=False)
@as_json
def merge_driver(format: str, base: Path, ours: Path, theirs: Path, path: str | None, as_json: bool) -> None:
    """Merge THEIRS into the file OURS, given what both began as: what git calls for files of a bank.

    `memlane init --git` sets it up. PATH is only named in messages. Exit code 5, and OURS untouched, when the file
    cannot be merged by what it means.

    \b
    $ memlane merge-driver vault base.jsonl ours.jsonl theirs.jsonl
    """
    from memlane.disk import files
    from memlane.history.merge import merge
    from memlane.lanes.merging import versions

    before = [file.read_bytes() for file in (base, ours, theirs)]
    data = merge(format, *before)
    if data != before[1]:
        files.replace(str(ours), data)
    marks = versions(data) > max(map(versions, before))
    if as_json:
        print_json({"path": path, "format": format, "two_versions": marks})
    elif marks:
        say(f"memlane: {path or ours}: both branches changed the same part; both versions are in the file")
