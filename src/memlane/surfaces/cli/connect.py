"""`memlane connect`: put memlane into a client's configuration, and take it out again."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from memlane import config
from memlane.core.errors import NotFound, StorageError
from memlane.surfaces import clients
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_json, print_line, print_rows, say, say_notes


@click.command()
@click.argument("client", type=click.Choice(list(clients.CLIENTS)), required=False)
@click.option("--user", "scope", flag_value="user", help="For all of your projects (the default).")
@click.option("--project", "scope", flag_value="project", help="For this project alone.")
@click.option("--no-hooks", is_flag=True, help="The tools only: nothing is captured or injected by itself.")
@click.option("--replace", is_flag=True, help="Put memlane in the place of another entry of its name.")
@click.option("--remove", is_flag=True, help="Take memlane out again; without --user or --project, out of both.")
@click.option("--print", "show", is_flag=True, help="Print what would change, and change nothing.")
@click.pass_context
@as_json
def connect(
    ctx: click.Context,
    client: str | None,
    scope: str | None,
    no_hooks: bool,
    replace: bool,
    remove: bool,
    show: bool,
    as_json: bool,
) -> None:
    """Connect CLIENT to memlane; without CLIENT, list the clients that are here. --remove undoes it.

    \b
    $ memlane connect
    $ memlane connect claude-code
    $ memlane connect codex --project --print
    $ memlane connect claude-code --remove
    """
    machine = _machine(ctx)
    if client is None:
        if remove:
            raise click.UsageError("--remove needs a CLIENT.")
        _survey(machine, as_json)
        return
    if remove:
        if no_hooks or replace:
            raise click.UsageError("--remove excludes --no-hooks and --replace.")
        _disconnect(machine, client, scope, show, as_json)
        return
    plan = clients.plan(
        clients.CLIENTS[client], scope or "user", machine, _command(), hooks=not no_hooks, replace=replace
    )
    if show:
        _print_plans([plan], as_json)
        return
    if scope == "project":
        config.require_trust(config.load(machine.project))
    done = clients.connect(plan)
    if as_json:
        print_json(done)
        return
    if not done.changed:
        say(f"{done.client.title} is already connected.")
        if no_hooks:
            say_notes(done.notes)
        return
    say(f"connected {done.client.title}; `memlane connect {client} --remove` undoes it")
    for change in done.changes:
        print_line(f"{change.path}\t{change.what}")
    say_notes(done.notes)
    if "/.cache/" in _command():
        say("note: This memlane lies in a cache; install it for good (`pipx install .`) and connect again.")
    if done.client.hooks and not no_hooks:
        say("next: work with it for a while; `memlane log --sessions` shows what it was told, and what was kept")


def _disconnect(machine: clients.Machine, client: str, scope: str | None, show: bool, as_json: bool) -> None:
    """Take memlane out of a client's configuration, for the user and for this project unless one is named."""
    known = clients.CLIENTS[client]
    scopes = [scope] if scope else [each for each in clients.SCOPES if each in known.servers]
    plans = [clients.disconnection(known, each, machine) for each in scopes]
    if not any(plan.changed or plan.notes for plan in plans):
        raise NotFound(f"{known.title} is not connected.", hint=f"`memlane connect {client}` connects it.")
    if show:
        _print_plans(plans, as_json)
        return
    done = [clients.disconnect(known, plan.scope, machine) for plan in plans]
    if as_json:
        print_json([plan for plan in done if plan.changed])
        return
    say(f"disconnected {known.title}")
    for plan in done:
        for change in plan.changes:
            if change.how != "unchanged":
                print_line(f"{change.path}\t{'removed' if change.after is None else 'restored'}")
        say_notes(plan.notes)


def _machine(ctx: click.Context) -> clients.Machine:
    folder, _ = ctx.find_root().obj
    return clients.here(Path(folder) if folder else None)


def _survey(machine: clients.Machine, as_json: bool) -> None:
    surveyed = clients.statuses(machine)
    if as_json:
        print_json(surveyed)
        return
    here = [seen for seen in surveyed if seen.installed or seen.connected]
    for seen in here:
        state = f"connected ({', '.join(seen.connected)})" if seen.connected else "not connected"
        would_write = [] if seen.connected else ["would write " + ", ".join(map(str, seen.files))]
        print_rows([(seen.client.name, state, *would_write)])
    others = [seen.client.name for seen in surveyed if seen not in here]
    if others:
        say(f"not found here: {', '.join(others)}")
    say("next: memlane connect CLIENT" if here else "next: install a client, or name one: memlane connect CLIENT")


def _print_plans(plans: list[clients.Plan], as_json: bool) -> None:
    """Print what would change: as diffs, or as a list of plans with a diff for each file."""
    if as_json:
        print_json(
            [
                {**plan.to_dict(), "files": [{**change.to_dict(), "diff": change.diff()} for change in plan.changes]}
                for plan in plans
            ]
        )
        return
    for plan in plans:
        if plan.vendor:
            say(f"would run: {plan.to_dict()['vendor']}")
        for change in plan.changes:
            click.echo(change.diff(), nl=False)
    if not any(plan.changed for plan in plans):
        say("nothing would change")


def _command() -> str:
    """The absolute path of the running memlane, because a graphical client often has no useful PATH."""
    beside = Path(sys.executable).with_name("memlane")
    running = shutil.which(sys.argv[0]) if os.path.basename(sys.argv[0]) == "memlane" else None
    if running is None and not beside.exists():
        raise StorageError("The memlane command was not found.", hint="Install memlane, then run it by its name.")
    return os.path.abspath(running or beside)
