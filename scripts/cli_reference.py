"""Write docs/cli.md from the commands themselves.

    python scripts/cli_reference.py            writes docs/cli.md
    python scripts/cli_reference.py --check    says whether it is up to date (exit code 1 when not)

A test runs the check, so that the page cannot lag behind.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from memlane.surfaces.cli import GROUPS, MORE, app

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """\
# Command line

This page is made from the commands by `python scripts/cli_reference.py`; `memlane help COMMAND` prints the same.

- **stdout is data, stderr is talk.** `memlane list | cut -f1` gets ids and nothing else. Tables are aligned and
  coloured on a terminal only, and tab-separated in a pipe; `NO_COLOR` and `FORCE_COLOR` are honoured.
- **`--json`** prints the same shapes as the Python values' `to_dict()`. An error is then
  `{"error": {"code": …, "message": …, "hint": …}}` on stderr; a refusal also has the `check` that refused.
- **Exit codes**: 0 ok, 1 error, 2 usage, 3 not found, 4 refused by the gate, 5 conflict, 6 problems found, 130 Ctrl-C.
- **Ids** are `<lane>:<native id>`. Wherever an id is asked for, anything that memlane prints of a memory will do: the
  part after the colon, a path, a file's name, a title. What fits several is an error that names them (`ambiguous`), and
  a name that is nearly right is answered with the three nearest, in JSON under `near`.
- **Ctrl-C** leaves everything consistent: what was acknowledged is stored, what was not is not.
- **TAB** completes commands, options, ids and tags: see [completion](#memlane-completion).
- A text argument may be `-`: then it is read from standard input.
"""


def page() -> str:
    """The whole page."""
    context = app.make_context("memlane", ["list"], resilient_parsing=True)
    commands = {name: command for name in app.list_commands(context) if (command := app.get_command(context, name))}
    parts = [HEAD, "## Commands"]
    for group, names in {**GROUPS, "For scripts and programs": MORE}.items():
        rows = [f"| [`{name}`](#memlane-{name}) | {_summary(commands[name])} |" for name in names]
        parts += [f"### {group}", "\n".join(["| command | what it does |", "|---|---|", *rows])]
    parts += ["## Global options", _options(app), "They stand before the command: `memlane --bank ~/project list`."]
    for name, command in commands.items():
        parts += _command(f"memlane {name}", command, 2)
        if isinstance(command, click.Group):
            for sub, child in command.commands.items():
                parts += _command(f"memlane {name} {sub}", child, 3)
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _command(path: str, command: click.Command, level: int) -> Iterator[str]:
    text, examples = _help(command)
    yield f"{'#' * level} {path}"
    yield text
    if not isinstance(command, click.Group):
        arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
        yield "```\n" + " ".join([path, *arguments, "[OPTIONS]"]) + "\n```"
        yield _options(command)
    if examples:
        yield "```sh\n" + "\n".join(examples) + "\n```"


def _help(command: click.Command) -> tuple[str, list[str]]:
    """A command's help as prose, and the examples in it."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    prose, examples = [], []
    for paragraph in paragraphs:
        lines = paragraph.replace("\b", "").strip().splitlines()
        if lines and all(line.startswith("$ ") for line in lines):
            examples += [line.removeprefix("$ ") for line in lines]
        elif "\b" in paragraph:
            prose.append("```\n" + "\n".join(lines) + "\n```")
        else:
            prose.append("\n".join(lines))
    return "\n\n".join(prose), examples


def _summary(command: click.Command) -> str:
    return " ".join(_help(command)[0].split("\n\n")[0].split()).replace("|", "\\|")


def _argument(param: click.Argument) -> str:
    name = param.metavar or (param.name or "").upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _options(command: click.Command) -> str:
    rows = []
    for param in command.params:
        if not isinstance(param, click.Option) or param.hidden:
            continue
        value = "" if param.is_flag else f" {_value(param)}"
        names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
        says = [param.help or ""]
        if isinstance(param.default, str | int | float) and param.show_default and not param.is_flag:
            says.append(f"Default: {param.default}.")
        rows.append(f"| {names}{value} | {' '.join(filter(None, says))} |".replace("{|", "{\\|"))
    return "\n".join(["| option | |", "|---|---|", *rows]) if rows else ""


def _value(param: click.Option) -> str:
    if isinstance(param.type, click.Choice):
        return " or ".join(map(str, param.type.choices))
    return param.metavar or param.type.name.upper().split(" ")[0]


def main() -> None:
    if "--check" in sys.argv[1:]:
        sys.exit(
            0 if PAGE.read_text() == page() else "docs/cli.md is not up to date: run python scripts/cli_reference.py"
        )
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
