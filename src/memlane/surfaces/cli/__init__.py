"""The command line: parse, one call on the bank, print. stdout is data, stderr is talk.

A module is named after its main command; COMMANDS says where each of the others is.
Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 refused by the gate, 5 conflict, 6 problems found, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from memlane import __version__
from memlane.core.errors import InvalidInput, MemlaneError, StorageError
from memlane.gate import redacted
from memlane.surfaces.cli.output import complain, safe_streams, to_json

COMMANDS = {  # the module of each command, which is imported only when the command is used
    "init": "init",
    "check-config": "init",
    "add": "add",
    "get": "get",
    "list": "get.list_",
    "search": "search",
    "links": "search",
    "graph": "search",
    "context": "context",
    "snapshot": "context",
    "update": "add",
    "append": "add",
    "edit": "edit",
    "history": "history",
    "log": "history",
    "merge-driver": "merge",
    "rm": "rm",
    "restore": "rm",
    "forget": "forget",
    "trash": "rm",
    "merge": "merge",
    "suggest-merges": "merge",
    "upkeep": "upkeep",
    "undo": "undo",
    "promote": "upkeep",
    "prune": "prune",
    "stale": "prune",
    "validate": "validate",
    "stats": "get",
    "problems": "validate",
    "reindex": "search",
    "doctor": "doctor",
    "capture": "capture",
    "hook": "hook",
    "vault": "vault",
    "topics": "topics",
    "records": "records",
    "layers": "layers",
    "import": "import_.import_",
    "export": "export",
    "gate": "gate",
    "audit": "audit",
    "fresh": "fresh",
    "mcp": "mcp",
    "trust": "trust",
    "connect": "connect",
    "disconnect": "connect",
    "completion": "completion",
    "help": "completion.help_",
}


class App(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(".")
        home = import_module(f"memlane.surfaces.cli.{module}")
        command: click.Command = getattr(home, name or cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, 1)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{close[0]}'?", ctx) from None


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=App, invoke_without_command=True, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="memlane", message="%(prog)s %(version)s")
@click.option("--bank", "folder", metavar="DIR", help="Use the bank of this folder instead of the current one's.")
@click.option("--set", "flags", metavar="KEY=VALUE", multiple=True, help="Override a setting for this call.")
@click.pass_context
def app(ctx: click.Context, folder: str | None, flags: tuple[str, ...]) -> None:
    """Durable memory for AI agents, kept as plain files in your project.

    \b
    $ memlane init
    $ memlane add "Deploys go out on Tuesdays" --tag release
    $ memlane search "when do we deploy"
    """
    ctx.obj = (folder, _flags(flags))
    if ctx.invoked_subcommand is None:
        from memlane.surfaces.cli.init import welcome

        welcome(*ctx.obj)


def _flags(pairs: tuple[str, ...]) -> dict[str, Any]:
    from memlane.config import parsed

    flags = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError("--set takes KEY=VALUE, for example --set memory.storage_strategy=user")
        flags[key] = parsed(key, value)
    return flags


def main() -> None:
    """Run the `memlane` command and end the process with its exit code."""
    with safe_streams():
        _run()


def _run() -> NoReturn:
    try:
        if "_MEMLANE_COMPLETE" in os.environ:
            import_module("memlane.surfaces.cli.completion")  # registers our completion for bash
        code = app.main(prog_name="memlane", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.UsageError as error:
        # redacted, because a secret may have been typed in the wrong place
        hint = f"`{error.ctx.command_path if error.ctx else 'memlane'} --help` shows what it takes."
        _fail(InvalidInput(redacted(error.format_message()), hint=hint, code="usage"))
    except click.ClickException as error:
        _fail(MemlaneError(redacted(error.format_message())))
    except MemlaneError as error:
        _fail(error)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or else Python complains when it flushes
        sys.exit(1)
    except ValueError as error:
        if "null" not in str(error):
            raise
        _fail(InvalidInput("A path has a NUL character.", hint="Check the arguments, and the paths in memlane.toml."))
    except OSError as error:  # the last resort: a sentence instead of a traceback
        where = f"{error.filename}: " if error.filename else ""
        _fail(StorageError(f"{where}{error.strerror or error}.", hint="Check the path, its permissions and the disk."))


def _fail(error: MemlaneError) -> NoReturn:
    """Print what went wrong, as JSON if that was asked for, and end the process with the error's exit code."""
    if "--json" in sys.argv[1:]:
        click.echo(to_json({"error": error.to_dict()}), err=True)
    else:
        complain(error)
    sys.exit(error.exit_code)
