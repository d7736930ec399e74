"""How commands print results and take text.

stdout carries data, stderr carries talk. What somebody else wrote never reaches a terminal unfiltered.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import click

from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.invisible import visible
from memlane.core.model import Memory, Plan, Problem

T = TypeVar("T")
MANY = 200  # items that are worth a progress bar


def colour() -> bool | None:
    """Whether to use colour, by NO_COLOR, FORCE_COLOR and TERM; None means: only on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def print_json(value: Any) -> None:
    """Print plain values, and others by their `to_dict()`, as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=lambda other: other.to_dict()))


def print_result(
    value: Any, as_json: bool, rows: Iterable[Sequence[str]] = (), talk: str = "", notes: Iterable[str] = ()
) -> None:
    """Print the value as JSON, or else notes on stderr, rows on stdout and a last line of talk on stderr."""
    if as_json:
        print_json(value)
        return
    say_notes(notes)
    print_rows(rows)
    if talk:
        say(talk)


def say(text: str) -> None:
    """Print a line to stderr, so that stdout stays data."""
    click.echo(text, err=True, color=colour())


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"note: {note}")


def complain(error: MemlaneError) -> None:
    """Print an error and its next step to stderr."""
    say(f"{click.style('error:', fg='red', bold=True)} {error}")
    if error.hint:
        say(f"{click.style('next:', fg='cyan', bold=True)} {error.hint}")


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """Yield the items, with a progress bar where there are many and stderr is a terminal."""
    if not sys.stderr.isatty() or len(items) < MANY:
        yield from items
    else:
        with click.progressbar(items, label=label, file=sys.stderr) as bar:
            yield from bar


def width(text: str) -> int:
    """How many columns a text takes on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def one_line(text: str) -> str:
    """A title, file name or the like on one line, without characters that could steer a terminal."""
    return " ".join(visible(text).split())


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Print columns, aligned on a terminal and tab-separated in a pipe; a cell is one line of visible characters."""
    table = [[one_line(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in table:
            click.echo("\t".join(row))
        return
    widths = [max(map(width, column)) for column in zip_longest(*table, fillvalue="")]
    for row in table:
        cells = [cell + " " * (widths[column] - width(cell)) for column, cell in enumerate(row)]
        if len(cells) > 1:
            cells[0] = click.style(cells[0], fg="cyan")
        click.echo("  ".join(cells).rstrip(), color=colour())


def print_problems(problems: Sequence[Problem], as_json: bool) -> None:
    """Print damage, a line for each problem, and end the command with exit code 6 if there is any."""
    print_result(problems, as_json, ((str(problem),) for problem in problems))
    if problems:
        click.get_current_context().exit(6)


def print_plan(plan: Plan, as_json: bool, applied: bool, talk: str) -> None:
    """Print a plan as JSON, or else its notes, its steps and a line of talk."""
    rows = ((step.id, step.action, step.reason, step.title) for step in plan.steps)
    print_result({"applied": applied, **plan.to_dict()}, as_json, rows, talk, plan.remarks)


def print_stored(value: Any, as_json: bool, id: str, *talk: str) -> None:
    """Print what was written as JSON, or else the talk on stderr and then its id on stdout."""
    if as_json:
        print_json(value)
        return
    for line in talk:
        say(line)
    click.echo(id)


def print_written(memory: Memory, as_json: bool, verb: str) -> None:
    """Print a memory that was written, after the notes that the gate made on it."""
    say_notes(memory.remarks)
    print_stored(memory, as_json, memory.id, f"{verb} {memory.path}")


def print_text(text: str) -> None:
    """Print a memory's own text: unchanged in a pipe; on a terminal without characters that could steer it."""
    shown = visible(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=not shown.endswith("\n"))


# -- text that is given


def line_ended(text: str, lane: str) -> str:
    """A note's text with a line end, because it becomes a text file. Other lanes keep the text as it is."""
    return text if lane != "notes" or text.endswith("\n") else text + "\n"


def take_text(text: str | None) -> str:
    """The text argument; `-`, or no argument when something is piped in, means standard input.

    Raises InvalidInput when there is no text, or it is not UTF-8.
    """
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise InvalidInput("There is no text.", hint="Give it as an argument, or pipe it in with -.")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InvalidInput("Standard input is not UTF-8 text.", hint="Convert it to UTF-8 first.") from None
