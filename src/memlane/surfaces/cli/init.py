"""`memlane init` and `memlane check-config`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from memlane import config
from memlane.config import allowing, worktrees
from memlane.exchange import adopt, sharing
from memlane.lanes import NAMES
from memlane.surfaces.cli.backfill import backfill_here, backfilled
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_json, print_line, print_rows, say, say_notes


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--user", is_flag=True, help="Make your own bank instead, which is read in all projects.")
@click.option("--git", is_flag=True, help="Also teach the git repository here to merge memory.")
@click.option("--backfill", "backfills", is_flag=True, help="Also learn from past sessions, without asking.")
@click.pass_context
@as_json
def init(ctx: click.Context, folder: Path | None, user: bool, git: bool, backfills: bool, as_json: bool) -> None:
    """Make FOLDER (default: this one) a bank. Adopts stores that are already there; safe to repeat.

    In a git repository, what is captured from conversations is kept out of git. --git also teaches it to merge memory;
    where others have done so, a clone learns it from `memlane init` alone.

    Looks for past sessions of this project (Claude Code, Codex, Gemini CLI, opencode). With a yes on a terminal, or
    with --backfill, stores what is worth remembering of them as private notes that nobody has confirmed yet.

    \b
    $ memlane init
    $ memlane init --git
    $ memlane init --backfill
    """
    if user and backfills:
        raise click.UsageError("Sessions belong to projects: --user excludes --backfill.")
    folder = (folder or Path(ctx.find_root().obj[0] or ".")).expanduser().absolute()
    above = None if user else config.find_project(folder.parent)
    file = adopt.init(folder, user=user)
    settings = config.load(None, {"memory.storage_strategy": "user"}) if user else config.load(folder)
    adopted = {name: settings[f"lanes.{name}"] for name in NAMES if settings[f"lanes.{name}"]}
    joined = None if user and not git else sharing.joined(settings, git=git)
    if as_json:
        done = {"config": str(file), "root": str(settings.root), "adopted": adopted}
        done |= {"git": joined} if joined else {}
        print_json(done if user else done | backfilled(settings, backfills))
        return
    for lane, place in adopted.items():
        say(f"adopted {place} as the {lane} lane")
    if user and settings.root == config.earlier_user_bank():
        say(f"your earlier bank is used where it is: {settings.root}")
    if above:
        say(f"note: the bank of {above.parent} is not seen from here any more")
    say(f"memory is enabled by {file}")
    if said := worktrees.described(settings):
        say(said)
    if joined:
        _say_joined(joined)
    if not user and (folder / ".obsidian").is_dir():
        say("this is an Obsidian vault, whose notes are not read here; `memlane import .` in its folder takes them in")
    print_line(str(settings.root))
    if not user:
        backfill_here(settings, backfills)
    if sys.stderr.isatty() or backfills:
        say("next: `memlane connect` puts memlane into your client's configuration")


def _say_joined(joined: dict[str, Any]) -> None:
    if joined["repository"] is None:
        say("note: this is no git repository, so nothing was done for git; `git init`, then `memlane init --git` again")
        return
    if joined["drivers"]:
        say(f"git merges memory in {joined['repository']}; commit {' and '.join(joined['rules'])}")
    if joined["ignored"]:
        say("note: git ignores the bank's folder; take it out of .gitignore to have its history")
    elif joined["private"]:
        say("what is captured from conversations stays out of git; `memlane share ID` shares a record")
    for root in joined["tracked"]:
        say(f"note: git has {root}: what is captured is shared; `memlane share --private records` ends that")


@click.command("check-config")
@click.pass_context
@as_json
def check_config(ctx: click.Context, as_json: bool) -> None:
    """Print the settings in force and where each came from.

    \b
    $ memlane check-config
    """
    settings = config.load(*ctx.find_root().obj)
    say_notes(f"[[allow]] {name} {allowing.OF_EARLIER}. {allowing.INSTEAD}" for name in allowing.earlier(settings))
    if as_json:
        print_json(settings)
        return
    if settings.unread:
        raise settings.unread
    state = "enabled" if settings["memory.enabled"] else "not enabled: run `memlane init`"
    say(f"memory is {state}; the bank's folder is {settings.root}")
    found = config.in_force(settings)
    print_rows((key, json.dumps(value, ensure_ascii=False), source) for key, (value, source) in found.items())
