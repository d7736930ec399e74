"""`memlane trust`: agree to a project's configuration, or take that back."""

from __future__ import annotations

import sys
from difflib import unified_diff
from pathlib import Path

import click

from memlane import config
from memlane.config import trust as trusting
from memlane.core.errors import NotEnabled
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_json, say


@click.command()
@click.option("--yes", is_flag=True, help="Trust it without asking.")
@click.option("--show", is_flag=True, help="Only show what would be trusted.")
@click.option("--revoke", is_flag=True, help="Trust this project no longer.")
@click.pass_context
@as_json
def trust(ctx: click.Context, yes: bool, show: bool, revoke: bool, as_json: bool) -> None:
    """Let memlane act in this project: show its configuration, ask, and remember your answer.

    A project that somebody else may have written is only read until you trust it: its settings do not count, nothing
    is written, hooks and the MCP server do nothing. A configuration that changes has to be trusted again.

    \b
    $ memlane trust
    $ memlane trust --revoke
    """
    folder, _ = ctx.find_root().obj
    file = config.find_project(folder)
    if file is None:
        raise NotEnabled("There is no memlane.toml here to trust.", hint="`memlane init` makes one.")
    state = config.user_state()
    if revoke:
        trusting.revoke(state, file)
    else:
        if not as_json:
            _show(file)
        asked = not as_json and sys.stdin.isatty()
        if not show and (yes or (asked and click.confirm("Trust this project?", err=True))):
            trusting.record(state, file)
    why = trusting.distrust(state, file)
    if as_json:
        print_json({"file": str(file), "trusted": not why, "why": why})
    else:
        say(f"{file} {why or 'is trusted'}")
        if why and not (show or revoke):
            say("nothing was changed; `memlane trust --yes` trusts it without asking")
    ctx.exit(1 if why and not (show or revoke) else 0)


def _show(file: Path) -> None:
    """Print the configuration, or what changed in it since it was trusted."""
    text = trusting.read(file).decode(errors="replace")
    before = trusting.trusted_text(config.user_state(), file)
    if before is None or before == text:
        lines = text.splitlines()
    else:
        lines = list(unified_diff(before.splitlines(), text.splitlines(), "trusted", "now", lineterm=""))
    say(f"{file}:")
    for line in lines:
        say(f"  {line}")
