"""Memories in and out of the bank: import, export."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.exchange.importers import KINDS
from memlane.surfaces.cli.output import as_json, filters, print_json, print_rows, print_text, say, with_bank

_PATH = click.Path(path_type=Path)


@click.command("import", epilog="Kinds: " + "; ".join(f"{kind} ({what})" for kind, what in KINDS.items()) + ".")
@click.argument("path", type=_PATH)
@click.option("--from", "kind", type=click.Choice(list(KINDS)), help="What it is; else its content tells.")
@click.option("--lane", type=click.Choice(("notes", "vault", "records")), help="Where texts go.  [default: notes]")
@click.option("--into", metavar="FOLDER", default="", help="A folder of the bank for the notes.")
@click.option("--as", "label", metavar="NAME", help="What the source is called in the notes' mark.")
@click.option("--update", is_flag=True, help="Take what has changed at the source; the older one goes to the trash.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@as_json
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
    found = imports.import_from(bank, path, kind=kind, dry_run=dry_run, **options)
    outcomes: list[imports.Outcome] = []
    try:
        outcomes.extend(_with_progress(found))
    finally:
        counts = Counter(outcome.status for outcome in outcomes)
        tally = {status: counts[status] for status in imports.STATUSES if counts[status]}
        if as_json:
            items = [outcome.to_dict() for outcome in outcomes]
            print_json({"kind": kind, "dry_run": dry_run, "counts": tally, "items": items})
        else:
            print_rows((one.status, one.item, one.id, one.why) for one in outcomes if one.status != "skipped")
            say(", ".join(f"{count} {status}" for status, count in tally.items()) or "nothing found")
    if counts.keys() & {"refused", "problem"} and not counts.keys() & {"new", "updated", "same", "changed"}:
        click.get_current_context().exit(4 if counts["refused"] else 6)


def _with_progress(found: Iterator[Any]) -> Iterator[Any]:
    """What is found; a count on a terminal meanwhile."""
    shown = sys.stderr.isatty()
    number = 0
    try:
        for number, one in enumerate(found, 1):
            if shown and number % 20 == 0:
                click.echo(f"\r{number} items", err=True, nl=False)
            yield one
    finally:
        if shown and number >= 20:
            click.echo("\r\x1b[K", err=True, nl=False)


@click.command()
@click.option("--format", "form", type=click.Choice(("jsonl", "markdown")), help="[default: jsonl]")
@click.option("--output", "-o", metavar="FILE", type=_PATH, help="Write to a file instead of standard output.")
@click.option(
    "--to", metavar="FILE", type=_PATH, help="Write the snapshot into a marked block of CLAUDE.md, AGENTS.md …"
)
@click.option("--remove", is_flag=True, help="With --to: take the block out again.")
@filters
@click.option("--thread")
@click.option("--limit", "-n", type=click.IntRange(min=0), help="At most this many, the newest.")
@as_json
@with_bank
def export(
    bank: Bank,
    form: str | None,
    output: Path | None,
    to: Path | None,
    remove: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Write memories as lines of JSON, or as one Markdown document. `memlane import` reads the lines again.

    With --to, writes what belongs into every prompt into a marked block of an agent's own file and leaves every other
    byte of it as it is.

    \b
    $ memlane export -o memories.jsonl
    $ memlane export --format markdown --tag release
    $ memlane export --to CLAUDE.md
    """
    from memlane.exchange import export as out

    if to is not None:
        scope = chosen.pop("scope")
        if form or output or any(chosen.values()) or (remove and scope):
            raise click.UsageError("--to writes the snapshot: of the other options it takes --scope or --remove alone.")
        changed = out.remove_block(to) if remove else out.write_block(bank, to, scope)
        if as_json:
            print_json({"path": str(to), "changed": changed})
        else:
            done = "removed the block from" if remove else "wrote the block into"
            say(f"{done} {to}" if changed else f"nothing to do: {to} is as it should be")
        return
    if remove:
        raise click.UsageError("--remove goes with --to.")
    memories = _chosen(bank, chosen)
    if form == "markdown":
        text = out.document(memories)
    elif as_json and output is None:
        print_json([json.loads(line) for line in out.lines(memories)])
        return
    else:
        text = "".join(f"{line}\n" for line in out.lines(memories))
    if output is None:
        if text:
            print_text(text)
        return
    out.write_file(bank, output, text)
    if as_json:
        print_json({"path": str(output), "count": len(memories)})
    else:
        say(f"wrote {len(memories)} memories to {output}")


def _chosen(bank: Bank, chosen: dict[str, Any]) -> list[Any]:
    """The memories that the filters let pass, in the order of the lanes and their files."""
    if not any(value is not None and value != () for value in chosen.values()):
        return list(bank.memories())
    wanted = {memory.id for memory in bank.list(**chosen)}
    return [memory for memory in bank.memories(chosen["lane"]) if memory.id in wanted]
