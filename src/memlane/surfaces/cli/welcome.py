"""What `memlane` alone prints. It does not load what `init` needs."""

from __future__ import annotations

import os
from typing import Any

import click

from memlane import config
from memlane.bank import Bank
from memlane.config import worktrees
from memlane.core.errors import NotEnabled
from memlane.disk import log
from memlane.surfaces.cli.output import print_line


def welcome(folder: str | None, flags: dict[str, Any]) -> None:
    """Print where you are and the three commands that you want next."""
    try:
        bank = Bank(config.load(folder, flags))
    except NotEnabled:
        click.echo("There is no memory bank here yet.\n")
        steps = [
            ("memlane init", "make this folder a bank"),
            ("memlane init --user", "make one of your own, for all projects"),
            ("memlane --help", "see all commands"),
        ]
    else:
        print_line(f"Bank {bank.root}: {_counted(bank)}.")
        if said := worktrees.described(bank.config):
            print_line(f"{said[0].upper()}{said[1:]}.")
        print_line(_read_as_well(bank))
        click.echo()
        steps = [
            ('memlane add "…" --tag x', "remember something"),
            ('memlane search "…"', "find it again"),
            ("memlane list -n 10", "see the latest"),
        ]
    for command, what in steps:
        click.echo(f"  {command:<26} {what}")


def _read_as_well(bank: Bank) -> str:
    """Whether the user's own bank is read together with this one, and why not."""
    found = config.under(bank.config)
    if isinstance(found, str):
        own = config.is_user_bank(bank.config)
        return "It is your own, for all projects." if own else f"Your own bank is not read here: {found}."
    with Bank(found) as below:
        return f"Your own bank is read as well: {below.root}: {_counted(below)}."


def _counted(bank: Bank) -> str:
    counts = [f"{count:,} {noun}{'s'[: count != 1]}" for noun, count in _counts(bank).items() if count]
    return ", ".join(counts) or "nothing remembered yet"


def _counts(bank: Bank) -> dict[str, int]:
    """Count files and vault lines without parsing them, so that a large bank answers at once, too."""
    nouns = {"notes": "note", "topics": "topic file", "records": "record", "layers": "layer file"}
    there = {lane.name for lane in bank.present()}
    counts = {
        noun: sum(isinstance(path, str) for path in bank.lane(name).files()) if name in there else 0
        for name, noun in nouns.items()
    }
    lines = 0
    vault = bank.config.lane_root("vault")
    if os.path.isfile(vault):
        data = log.read_all(os.fspath(vault))
        lines = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    return {"note": counts.pop("note"), "vault line": lines, **counts}
