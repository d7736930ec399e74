"""How commands take text and print results."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.invisible import visible
from memlane.core.model import Memory, Problem
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

T = TypeVar("T")
Decorated = Callable[[Callable[..., None]], Callable[..., None]]
MANY = 200  # things that are worth a progress bar


def complete_id(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from memlane.surfaces.cli.completion import ids

    return ids(ctx, incomplete)


def complete_tag(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from memlane.surfaces.cli.completion import tags

    return tags(ctx, incomplete)


id_argument = click.argument("id", shell_complete=complete_id)


def ids_argument(name: str = "ids", *, required: bool = True) -> Decorated:
    metavar = "ID..." if required else "[ID]..."
    return click.argument(name, nargs=-1, required=required, metavar=metavar, shell_complete=complete_id)


tag_option = click.option(
    "--tag", "-t", "tags", multiple=True, shell_complete=complete_tag, help="A tag; may be repeated."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
always_json = click.option("--json", is_flag=True, expose_value=False, help="Print JSON, as this command always does.")


as_of = click.option("--as-of", metavar="WHEN", help="As it was at a date, or at a commit, by git.")


def filters(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which `list` and `search` choose among memories."""
    for option in (
        click.option("--until", metavar="DATE"),
        click.option("--since", metavar="DATE"),
        click.option("--project"),
        click.option("--scope"),
        click.option("--status"),
        click.option("--type"),
        click.option("--tag", "-t", "tags", multiple=True, shell_complete=complete_tag, help="A tag; any of several."),
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
        when = kwargs.pop("as_of", None)
        with open_bank(click.get_current_context()) as today, today.as_of(when) if when is not None else today as bank:
            command(bank, *args, **kwargs)

    return run


def colour() -> bool | None:
    """Whether to colour: as NO_COLOR or FORCE_COLOR say; None leaves it to whether there is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """Talk goes to stderr, so that stdout stays data."""
    click.echo(text, err=True, color=colour())


def complain(error: MemlaneError) -> None:
    """An error and its next step, as talk."""
    say(f"{click.style('error:', fg='red', bold=True)} {error}")
    if error.hint:
        say(f"{click.style('next:', fg='cyan', bold=True)} {error.hint}")


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with a progress bar where there are many and somebody looks."""
    if not sys.stderr.isatty() or len(items) < MANY:
        yield from items
    else:
        with click.progressbar(items, label=label, file=sys.stderr) as bar:
            yield from bar


def width(text: str) -> int:
    """How many columns a terminal needs for a text: two for wide characters, none for marks on others."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(sign) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def one_line(text: str) -> str:
    """What somebody else wrote, such as a title or a file's name, without anything that could steer a terminal."""
    return " ".join(visible(text).split())


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Aligned columns on a terminal, tab-separated ones in a pipe; a cell is one line of visible characters."""
    table = [[one_line(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in table:
            click.echo("\t".join(row))
        return
    widths = [max(map(width, column)) for column in zip_longest(*table, fillvalue="")]
    for row in table:
        cells = [cell + " " * (widths[place] - width(cell)) for place, cell in enumerate(row)]
        if len(cells) > 1:
            cells[0] = click.style(cells[0], fg="cyan")
        click.echo("  ".join(cells).rstrip(), color=colour())


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
            click.echo(one_line(str(problem)))
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
