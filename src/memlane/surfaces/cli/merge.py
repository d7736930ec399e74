"""`memlane merge` and `merge-driver`: one memory out of several."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from memlane.bank import Bank
from memlane.core.errors import MemlaneError
from memlane.history.merge import drivers
from memlane.recall.address import native
from memlane.surfaces.cli.options import as_json, ids_argument, open_bank, with_bank
from memlane.surfaces.cli.output import print_json, print_written, say, take_text

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@ids_argument("sources")
@click.option("--into", required=True, metavar="NAME", help="The file name of the new note.")
@click.option("--text", "text", help="Its whole content; else what is piped in.")
@with_bank
def merge(bank: Bank, sources: tuple[str, ...], into: str, text: str | None, as_json: bool) -> None:
    """Replace several notes by one; the old ones go to the trash, and `memlane undo` takes it back.

    \b
    $ memlane merge auth-1 auth-2 --into auth --text "What both say: …"
    """
    names = [native(bank, "notes", source) for source in sources]
    content = take_text(text)
    merged = bank.notes.merge(names, into, content)
    bank.anchor(merged.id)
    print_written(merged, as_json, "merged into")


@click.command("merge-driver")
@click.argument("format", type=click.Choice(list(drivers())))
@click.argument("base", type=_FILE)
@click.argument("ours", type=_FILE)
@click.argument("theirs", type=_FILE)
@click.argument("path", required=False)
@click.pass_context
@as_json
def merge_driver(
    ctx: click.Context, format: str, base: Path, ours: Path, theirs: Path, path: str | None, as_json: bool
) -> None:
    """Merge THEIRS into the file OURS, given what both began as: what git calls for files of a bank.

    `memlane init --git` sets it up. PATH is what git calls the file: it is named in messages, and where both sides
    changed the same, git is asked what they had in common last. Exit code 5, and OURS untouched, when the file
    cannot be merged by what it means. A secret that the other branch brings is merged, for git has it already, and
    named.

    \b
    $ memlane merge-driver vault base.jsonl ours.jsonl theirs.jsonl
    """
    from memlane.care import audit
    from memlane.disk import files
    from memlane.gate import DEFAULT
    from memlane.history import squashed

    before = [files.read_bytes(os.path.abspath(file), files.MAX_LOG_BYTES) for file in (base, ours, theirs)]
    merged = squashed.merged(format, before[0], before[1], before[2], path)
    if merged != before[1]:
        files.replace(str(ours), merged)
    two_versions = squashed.clashed(merged, *before)
    guard = DEFAULT
    with suppress(MemlaneError):  # a merge must not fail for want of a bank, nor of a sound configuration
        guard = open_bank(ctx).guard
    shown = path or str(ours)
    leaks = audit.scan_data(merged, shown, guard) if guard.secrets != "off" else []
    if as_json:
        print_json({"path": path, "format": format, "two_versions": two_versions, "secrets": leaks})
        return
    if two_versions:
        say(f"memlane: {shown}: both branches changed the same part; both versions are in the file")
    for leak in leaks:
        say(f"memlane: {leak} is in the merged file: take it out and revoke it (`memlane doctor --only secrets`)")
