"""`memlane trust`: agree to a project's configuration, or take that back."""

from __future__ import annotations

import sys
from difflib import unified_diff
from pathlib import Path

import click

from memlane import config
from memlane.bank import Bank
from memlane.config import trust as trusting
from memlane.core.errors import InvalidInput, MemlaneError, NotEnabled
from memlane.core.model import Memory
from memlane.core.text import first_line
from memlane.disk.written import agents_shell
from memlane.exchange import adopt, sharing
from memlane.history import origin
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_json, print_rows, say, so_many

UNPROVEN = "a rule, and not known to be yours"


@click.command()
@click.option("--yes", is_flag=True, help="Trust it without asking.")
@click.option("--show", is_flag=True, help="Only show what would be trusted.")
@click.option("--revoke", is_flag=True, help="Trust this project no longer.")
@click.option("--memories", is_flag=True, help="Accept what others wrote, and the rules that agents wrote.")
@click.option("--everyone/--not-everyone", default=None, help="Accept whatever anybody commits here, now and later.")
@click.pass_context
@as_json
def trust(
    ctx: click.Context, yes: bool, show: bool, revoke: bool, memories: bool, everyone: bool | None, as_json: bool
) -> None:
    """Let memlane act in this project: show its configuration, ask, and remember your answer.

    A project that somebody else may have written is only read until you trust it: its settings do not count, nothing
    is written, hooks and the MCP server do nothing. A configuration that changes has to be trusted again.

    Memories that came with a project, or that a pull brings, are marked in every prompt with where they came from until
    you accept them with --memories; rules that an agent wrote, or that you did not write by memlane, become your own.

    \b
    $ memlane trust
    $ memlane trust --memories
    $ memlane trust --revoke
    """
    folder, flags = ctx.find_root().obj
    if memories:
        _accept(Bank(config.load(folder, flags)), yes=yes, show=show, as_json=as_json)
        return
    file = config.project_file(folder, flags)
    if file is None:
        raise NotEnabled("There is no memlane.toml here to trust.", hint="`memlane init` makes one.")
    state = config.user_state()
    found = 0
    if revoke:
        trusting.revoke(state, file)
    else:
        if not show:
            config.require_sense(file)
        data = trusting.read(file)
        if not as_json:
            _show(file, data)
        asked = not as_json and sys.stdin.isatty()
        first = trusting.trusted_text(state, file) is None
        agreed = yes or (everyone is not None and not trusting.distrust(state, file, data))  # it is trusted already
        if not show and (agreed or (asked and click.confirm("Trust this project?", err=True))):
            _refuse_agents("trust a project")
            trusting.record(state, file, data, everyone)  # what was shown, and not what it may be by now
            found = adopt.note_memories(config.load(folder, flags)) if first else 0
    why = trusting.distrust(state, file, trusting.read(file))
    if as_json:
        print_json({"file": str(file), "trusted": not why, "why": why})
    else:
        say(f"{file} {why or 'is trusted'}")
        if everyone is not None and not why and trusting.trusts_everyone(state, file) == everyone:
            say("whatever is committed here counts as reviewed" if everyone else "what others commit is marked again")
        if found and not everyone:
            say(f"{so_many(found)} came with it; prompts say so until you have read them: `memlane trust --memories`")
        if not why and not (show or revoke) and _cannot_merge(config.load(folder, flags)):
            say("git does not know yet how to merge memory in this clone: `memlane init` teaches it")
        if why and not (show or revoke):
            say("nothing was changed; `memlane trust --yes` trusts it without asking")
    ctx.exit(1 if why and not (show or revoke) else 0)


def _cannot_merge(settings: config.Config) -> bool:
    """Whether others have taught git to merge this memory, and this clone does not know how."""
    try:
        return bool(sharing.missing_drivers(settings))
    except MemlaneError:  # without git, nothing is merged
        return False


def _accept(bank: Bank, *, yes: bool, show: bool, as_json: bool) -> None:
    """Show the memories that others wrote, and accept them if the user says so."""
    config.require_trust(bank.config)
    found = [*origin.foreign(bank), *((memory, UNPROVEN) for memory in origin.unproven(bank))]
    if as_json:
        rows = [
            {"id": memory.id, "origin": where, "text": memory.text, "suspicious": list(memory.suspicious)}
            for memory, where in found
        ]
    else:
        print_rows((memory.id, where + _warning(memory), first_line(memory.text)) for memory, where in found)
    asked = found and not as_json and sys.stdin.isatty() and not (show or yes)
    accepted = bool(found) and not show and (yes or (asked and click.confirm("Accept them?", err=True)))
    if accepted:
        _refuse_agents("accept memories")
        origin.review(bank.lane, (memory for memory, _ in found))
    if as_json:
        print_json({"accepted": accepted, "memories": rows})
    elif not found:
        say("there is no memory of somebody else that you have not reviewed")
    elif not show:
        say(f"{len(found)} accepted" if accepted else "nothing was changed; `memlane trust --memories --yes` accepts")


def _refuse_agents(what: str) -> None:
    """Raise InvalidInput where an agent runs this: it may have been talked into it by the very project."""
    if shell := agents_shell():
        raise InvalidInput(
            f"{shell} says that an agent runs this, and only you can {what}.", hint="Run it in a terminal of your own."
        )


def _warning(memory: Memory) -> str:
    return f", ⚠ suspicious: it {', '.join(memory.suspicious)}" if memory.suspicious else ""


def _show(file: Path, data: bytes) -> None:
    """Print the configuration, or what changed in it since it was trusted."""
    text = data.decode(errors="replace")
    before = trusting.trusted_text(config.user_state(), file)
    if before is None or before == text:
        lines = text.splitlines()
    else:
        lines = list(unified_diff(before.splitlines(), text.splitlines(), "trusted", "now", lineterm=""))
    say(f"{file}:")
    for line in lines:
        say(f"  {line}")
