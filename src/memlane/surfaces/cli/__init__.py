"""The command line: parse, one call on the bank, print. stdout is data, stderr is talk.

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

COMMANDS = {  # where each command lives; its module is imported only when it is used
    "init": "bank",
    "check-config": "bank",
    "add": "bank",
    "get": "bank",
    "list": "bank.list_",
    "search": "search",
    "links": "search",
    "graph": "search",
    "context": "context",
    "snapshot": "context",
    "update": "bank",
    "append": "bank",
    "edit": "edit",
    "history": "history",
    "log": "git",
    "merge-driver": "git",
    "rm": "bank",
    "restore": "bank",
    "forget": "forget",
    "trash": "bank",
    "merge": "bank",
    "suggest-merges": "search",
    "upkeep": "upkeep",
    "undo": "undo",
    "promote": "upkeep",
    "prune": "upkeep",
    "stale": "upkeep",
    "validate": "upkeep",
    "stats": "bank",
    "problems": "bank",
    "reindex": "search",
    "doctor": "doctor",
    "capture": "capture",
    "hook": "hook",
    "vault": "vault",
    "topics": "topics",
    "records": "records",
    "layers": "layers",
    "import": "exchange.import_",
    "export": "exchange",
    "gate": "gate",
    "audit": "gate",
    "fresh": "fresh",
    "mcp": "mcp",
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
        found: click.Command = getattr(
            import_module(f"memlane.surfaces.cli.{module}"), name or cmd_name.replace("-", "_")
        )
        return found

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
        from memlane.surfaces.cli.bank import welcome

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
    """The `memlane` command. Ends the process with an exit code."""
    try:
        if "_MEMLANE_COMPLETE" in os.environ:
            import_module("memlane.surfaces.cli.completion")  # registers what TAB in bash needs
        code = app.main(prog_name="memlane", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.UsageError as error:
        # what was typed may be a secret in the wrong place
        hint = f"`{error.ctx.command_path if error.ctx else 'memlane'} --help` shows what it takes."
        _fail(InvalidInput(redacted(error.format_message()), hint=hint, code="usage"))
    except click.ClickException as error:
        _fail(MemlaneError(redacted(error.format_message())))
    except MemlaneError as error:
        _fail(error)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes
        sys.exit(1)
    except OSError as error:  # the last resort: a sentence instead of a traceback
        where = f"{error.filename}: " if error.filename else ""
        _fail(StorageError(f"{where}{error.strerror or error}.", hint="Check the path, its permissions and the disk."))


def _fail(error: MemlaneError) -> NoReturn:
    """Say what went wrong, as JSON where JSON is asked for, and end with its exit code."""
    from memlane.surfaces.cli.output import complain

    if "--json" in sys.argv[1:]:
        import json

        click.echo(json.dumps({"error": error.to_dict()}, ensure_ascii=False), err=True)
    else:
        complain(error)
    sys.exit(error.exit_code)
