"""`memlane backup`, `restore-backup` and `move`: a bank as a whole."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from memlane.bank import Bank
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.model import Memory
from memlane.exchange import backup as backups
from memlane.gate import shown
from memlane.surfaces.cli.options import as_json, with_bank
from memlane.surfaces.cli.output import print_json, print_line, say

_FILE = click.Path(path_type=Path)


def _counted(count: int) -> str:
    return f"{count:,} file{'s were' if count != 1 else ' was'}"


@click.command()
@click.argument("file", type=_FILE)
@click.option("--overwrite", is_flag=True, help="Replace a file of that name.")
@with_bank
def backup(bank: Bank, file: Path, overwrite: bool, as_json: bool) -> None:
    """Write the whole bank into FILE, a .tar.gz that only you can read; `memlane restore-backup` brings it back.

    It has every file of the bank, the private ones and the trash included, the configuration, and what is known on this
    machine of what was forgotten and changed; not the index, which can be made anew.

    \b
    $ memlane backup ~/memories.tar.gz
    """
    done = backups.write(bank, file, overwrite=overwrite)
    if as_json:
        print_json(done)
        return
    for path in done["left_out"]:
        say(f"note: {path} is no plain file of yours, and was left out")
    say(f"{_counted(done['files'])} written")
    print_line(done["path"])


@click.command("restore-backup")
@click.argument("file", type=_FILE)
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--overwrite", is_flag=True, help="Replace files that are there already and differ.")
@click.pass_context
@as_json
def restore_backup(ctx: click.Context, file: Path, folder: Path | None, overwrite: bool, as_json: bool) -> None:
    """Make FOLDER (default: this one) the bank that was written into FILE by `memlane backup`.

    The file is verified first: where anything is wrong with it, nothing is written. What is there already and the same
    stays, and so does what the backup does not have.

    \b
    $ memlane restore-backup ~/memories.tar.gz ~/projects/api
    """
    named = ctx.find_root().obj[0]
    done = backups.restore(file, folder or (Path(named) if named else None), overwrite=overwrite)
    if as_json:
        print_json(done)
        return
    for remark in done.remarks:
        say(f"note: {remark}")
    say(f"{_counted(done.files)} written")
    print_line(str(done.root))


@click.command()
@click.argument("folder", type=click.Path(file_okay=False))
@with_bank
def move(bank: Bank, folder: str, as_json: bool) -> None:
    """Move the whole bank to FOLDER/.memories, on the same disk, and let memlane.toml say so.

    What was forgotten and changed is known there, too, and so are its remotes. Lanes that lie elsewhere stay where they
    are. The project's own folder brings the bank back to its usual place. `memlane rename` gives a note another name.

    \b
    $ memlane move ../shared-memory
    """
    from memlane.care.sync import state

    if not os.path.isdir(folder) and (memory := _named(bank, folder)):
        hint = f"`memlane rename {shown(memory.id)} NAME` gives a note another name. To move the bank, make the folder."
        raise InvalidInput("That is a memory, and `memlane move` moves the whole bank.", hint=hint)
    before, remotes = bank.root, state.path_of(bank.root)
    root = backups.move(bank, folder)
    state.moved(remotes, root)
    if as_json:
        print_json({"root": str(root)})
        return
    say(f"moved the whole bank to {root}; `memlane move {shlex.quote(str(before.parent))}` moves it back")
    print_line(str(root))


def _named(bank: Bank, name: str) -> Memory | None:
    """The memory that a name means, which somebody wants to rename."""
    try:
        return bank.get(name, expired=True)
    except (NotFound, InvalidInput):
        return None
