"""`memlane export`: write memories as lines of JSON, as Markdown, or into an agent's own file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.model import Memory
from memlane.recall.leaving import shown
from memlane.surfaces.cli.options import filters, limit_option, with_bank
from memlane.surfaces.cli.output import print_json, print_result, print_text, so_many, without_secrets

_PATH = click.Path(path_type=Path)


@click.command()
@click.option("--format", "form", type=click.Choice(("jsonl", "markdown")), help="[default: jsonl]")
@click.option("--output", "-o", metavar="FILE", type=_PATH, help="Write to a file instead of standard output.")
@click.option("--overwrite", is_flag=True, help="With --output: replace a file of that name.")
@click.option(
    "--to", metavar="FILE", type=_PATH, help="Write the snapshot into a marked block of CLAUDE.md, AGENTS.md …"
)
@click.option("--remove", is_flag=True, help="With --to: take the block out again.")
@filters
@limit_option(help="At most this many, the newest.")
@with_bank
def export(
    bank: Bank,
    form: str | None,
    output: Path | None,
    overwrite: bool,
    to: Path | None,
    remove: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Write memories as lines of JSON, or as one Markdown document. `memlane import` reads the lines again.

    With --to, writes what belongs in every prompt into a marked block of an agent's own file and leaves every other
    byte of it as it is.

    \b
    $ memlane export -o memories.jsonl
    $ memlane export --format markdown --tag release
    $ memlane export --to CLAUDE.md
    """
    from memlane.exchange import export as out

    if to is not None:
        scope = chosen.pop("scope")
        if form or output or overwrite or any(chosen.values()) or (remove and scope):
            raise click.UsageError("--to writes the snapshot: of the other options it takes --scope or --remove alone.")
        changed = out.remove_block(to) if remove else out.write_block(bank, to, scope)
        done = "removed the block from" if remove else "wrote the block into"
        talk = f"{done} {to}" if changed else f"nothing to do: {to} is as it should be"
        print_result({"path": str(to), "changed": changed}, as_json, talk=talk)
        return
    if remove:
        raise click.UsageError("--remove goes with --to.")
    if overwrite and output is None:
        raise click.UsageError("--overwrite goes with --output.")
    if output is not None:
        out.place_for(bank, output, overwrite=overwrite)  # rather now than after all of them were read
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
            print_text(text, as_it_is=True)
        return
    out.write_file(bank, output, text, overwrite=overwrite)
    count = len(memories)
    print_result({"path": str(output), "count": count}, as_json, talk=f"wrote {so_many(count)} to {output}")


def _chosen(bank: Bank, filters: dict[str, Any]) -> list[Memory]:
    """The memories that the filters let pass, in the order of the lanes and their files."""
    if not any(value is not None and value != () for value in filters.values()):
        unseen = bank.unseen()
        return _without_secrets(bank, (memory for memory in bank.memories() if not unseen(memory)))
    with bank.alone() as alone:
        ids = {memory.id for memory in alone.list(**filters, archived=True, brief=True)}
    return _without_secrets(bank, (memory for memory in bank.memories(filters["lane"]) if memory.id in ids))


def _without_secrets(bank: Bank, memories: Iterable[Memory]) -> list[Memory]:
    """The memories as they may leave this machine: no secret is in their ids either."""
    return [replace(memory, id=without_secrets(memory.id)) for memory in shown(bank, memories)]
