"""What `memlane` alone prints: a bank at a glance. It does not load what `init` or a search needs."""

from __future__ import annotations

import os
from typing import Any

import click

from memlane import config
from memlane.bank import Bank
from memlane.config import worktrees
from memlane.core.errors import MemlaneError, NotEnabled
from memlane.core.model import UNCONFIRMED, USERS
from memlane.disk import log
from memlane.gate import DEFAULT
from memlane.history import sessions
from memlane.index.peek import count_tagged
from memlane.recall import judged
from memlane.recall.superseded import there
from memlane.surfaces.cli.output import guarded_by, one_line, print_line

TOLD = 5  # titles of what the last session was told


def welcome(folder: str | None, flags: dict[str, Any]) -> None:
    """Print where you are, what the last session was told, what waits for you, and the commands that you want next."""
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
        guarded_by(DEFAULT, bank)  # in whose state it is noted that these lines have no secrets
        print_line(f"Bank {bank.root}: {_counted(bank)}.", again=True)
        if said := worktrees.described(bank.config):
            print_line(f"{said[0].upper()}{said[1:]}.", again=True)
        print_line(_read_as_well(bank), again=True)
        steps = [
            *_at_a_glance(bank),
            ('memlane add "…" --tag x', "remember something"),
            ('memlane search "…"', "find it again"),
            ("memlane list -n 10", "see the latest"),
            ("memlane ui", "see it all in a browser"),
        ]
        click.echo()
    wide = max(25, *(len(command) for command, _ in steps))
    for command, what in steps:
        print_line(f"  {command:<{wide}}  {what}", again=True)


def _at_a_glance(bank: Bank) -> list[tuple[str, str]]:
    """Print the last session, what waits for a decision and what is known to be wrong; return the next steps for it."""
    from memlane.surfaces.cli.log import SHORT, facts

    steps: list[tuple[str, str]] = []
    failed = 0
    try:
        last = next(iter(sessions.sessions(bank, 1)), None)
        wrong = sum(_is_wrong(bank, one) for one in judged.standing(judged.answers(bank)).values())
    except MemlaneError:  # there is no home folder
        last, wrong = None, 0
    if last:
        started, client, _, told = facts(last)
        print_line(f"Last session: {client}, {started}: {told}.", again=True)
        names = list(dict.fromkeys(item.title or item.id for event in last.events for item in event.given))
        more = f" and {len(names) - TOLD:,} more" if len(names) > TOLD else ""
        if names:
            print_line(f"It was told: {one_line('; '.join(names[:TOLD]))}{more}.", again=True)
        failed = sum(bool(event.failed) for event in last.events)
        steps.append((f"memlane log --sessions {last.id[:SHORT]}", "see what it was told, and why"))
    waiting = count_tagged(bank.index_file, UNCONFIRMED)
    if waiting:
        steps.append(("memlane review --only unconfirmed", "decide on what was learned from sessions"))
    if wrong:
        steps.append(("memlane review --only wrong", "mend what you judged wrong"))
    parts = [f"{waiting:,} learned from sessions"] if waiting else []
    parts += [f"{wrong:,} judged wrong"] if wrong else []
    print_line(f"Waiting for you: {', '.join(parts)}.", again=True) if parts else None
    sound = "not indexed yet, which the next search does" if waiting is None else "indexed"
    hooks = f"; failed hooks in the last session: {failed}" if failed else ""
    print_line(f"Health: {sound}{hooks}; `memlane doctor` looks closer.", again=True)
    return steps


def _is_wrong(bank: Bank, one: judged.Judged) -> bool:
    """Whether `review` lists a memory because of this answer."""
    memory = there(bank, one.id) if one.verdict == judged.WRONG and not one.id.startswith(USERS) else None
    return memory is not None and judged.holds_back(one, memory)


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
