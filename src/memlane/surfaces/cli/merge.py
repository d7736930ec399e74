"""`memlane merge` and `merge-driver`: one memory out of several."""

from __future__ import annotations

import os
from pathlib import Path

import click

from memlane.bank import Bank
from memlane.history.merge import drivers
from memlane.history.merge import merge as merge_files
from memlane.recall.address import native
from memlane.surfaces.cli.options import as_json, ids_argument, with_bank
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
    from memlane.history.undo import recording

    names = [native(bank, "notes", source) for source in sources]
    content = take_text(text)
    with recording(bank, "merge"):
        merged = bank.notes.merge(names, into, content)
    bank.anchor(merged.id)
    print_written(merged, as_json, "merged into")


@click.command("merge-driver")
@click.argument("format", type=click.Choice(list(drivers())))
@click.argument("base", type=_FILE)
@click.argument("ours", type=_FILE)
@click.argument("theirs", type=_FILE)
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
    from memlane.lanes.merging import versions

    before = [files.read_bytes(os.path.abspath(file), files.MAX_LOG_BYTES) for file in (base, ours, theirs)]
    merged = merge_files(format, *before)
    if merged != before[1]:
        files.replace(str(ours), merged)
    two_versions = versions(merged) > max(map(versions, before))
    if as_json:
        print_json({"path": path, "format": format, "two_versions": two_versions})
    elif two_versions:
        say(f"memlane: {path or ours}: both branches changed the same part; both versions are in the file")
