"""How commands take text and print results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from memlane.bank import Bank
from memlane.errors import InvalidInput
from memlane.hygiene import visible
from memlane.lanes import NAMES
from memlane.model import Memory, Problem, iso

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
always_json = click.option("--json", is_flag=True, expose_value=False, help="Print JSON, as this command always does.")


def filters(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which `list` and `search` choose among memories."""
    for option in (
        click.option("--until", metavar="DATE"),
        click.option("--since", metavar="DATE"),
        click.option("--project"),
        click.option("--scope"),
        click.option("--status"),
        click.option("--type"),
        click.option("--tag", "-t", "tags", multiple=True, help="A tag; any of several."),
        click.option("--lane", type=click.Choice(NAMES)),
    ):
        command = option(command)
    return command


def open_bank(ctx: click.Context) -> Bank:
    """The bank that the global options name."""
    from memlane import config

    folder, flags = ctx.find_root().obj
    return Bank(config.load(folder, flags))


def with_bank(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the open bank as its first argument."""
    from functools import wraps

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with open_bank(click.get_current_context()) as bank:
            command(bank, *args, **kwargs)

    return run


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """Talk goes to stderr, so that stdout stays data."""
    click.echo(text, err=True)


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Aligned columns on a terminal, tab-separated ones in a pipe; a cell is one line of visible characters."""
    table = [[" ".join(visible(str(cell)).split()) for cell in row] for row in rows]
    if not table:
        return
    if not sys.stdout.isatty():
        for row in table:
            click.echo("\t".join(row))
        return
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([click.style(cells[0], fg="cyan"), *cells[1:], row[-1]]) if cells else row[-1])


def print_memories(memories: Iterable[Memory], as_json: bool) -> None:
    if as_json:
        print_json([memory.to_dict() for memory in memories])
    else:
        print_rows(
            (memory.id, (iso(memory.created_at or memory.updated_at) or "")[:10], memory.title) for memory in memories
        )


def print_problems(problems: Sequence[Problem], as_json: bool) -> None:
    """Damage, a line each; ends the command with exit code 6 when there is any."""
    if as_json:
        print_json([problem.to_dict() for problem in problems])
    else:
        for problem in problems:
            click.echo(str(problem))
    if problems:
        click.get_current_context().exit(6)


def print_written(memory: Memory, as_json: bool, verb: str) -> None:
    """What was written: its id on stdout, the rest as talk."""
    for remark in memory.remarks:
        say(f"note: {remark}")
    if as_json:
        print_json(memory.to_dict())
    else:
        say(f"{verb} {memory.path}")
        click.echo(memory.id)


def print_text(text: str) -> None:
    """A memory's own text: as it is in a pipe, without what could steer a terminal on one."""
    shown = visible(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=not shown.endswith("\n"))


def line_ended(text: str, lane: str) -> str:
    """A note's text as `echo` would write it: a text file ends with a line end. Other lanes keep what they get."""
    return text if lane != "notes" or text.endswith("\n") else text + "\n"


def take_text(text: str | None) -> str:
    """The text argument; `-`, or none with something piped in, reads standard input as UTF-8."""
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise InvalidInput("There is no text.", hint="Give it as an argument, or pipe it in with -.")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InvalidInput("Standard input is not UTF-8 text.", hint="Convert it to UTF-8 first.") from None
