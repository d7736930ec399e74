"""The command line: parse, one call on the bank, print. stdout is data, stderr is talk.

A module is named after its main command; _HOMES says where each of the others is.
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
from memlane.surfaces.cli.progress import listening

GROUPS = {  # what `memlane --help` lists, without importing it
    "Remember and find": {
        "add": "Remember a text.",
        "search": "Find memories by words, meaning and links.",
        "list": "List memories, the newest first.",
        "get": "Print one memory.",
        "context": "Print what a prompt should know, ready to be put into it.",
        "edit": "Change a memory, in your editor or from here.",
        "rm": "Delete memories; restore brings them back.",
        "restore": "Bring back what was deleted, or list it.",
    },
    "Review": {
        "ui": "See it all in a browser: sessions, inbox, search, timeline, health.",
        "review": "Is what the bank says still right? One plan over all lanes.",
        "history": "List the versions of a memory, or the bank's commits.",
        "undo": "Take back the last change, whoever made it, or list them.",
        "forget": "Remove memories for good, wherever they left a trace.",
    },
    "Look after": {
        "doctor": "Is the store sound? Damage, formats, secrets, index, settings.",
        "sync": "Share the bank with other machines and people.",
        "import": "Take in what other programs remember.",
        "export": "Write memories as lines of JSON or as Markdown.",
    },
    "Connect": {
        "init": "Make a folder a bank.",
        "connect": "Put memlane into a client's configuration, or take it out.",
    },
    "Lanes": {
        "vault": "Short, durable facts by scope and tier.",
        "topics": "Dated entries by topic and sub-topic.",
        "records": "Captured messages, whole.",
        "layers": "Files by project, skill, command and agent that age.",
    },
}
MORE = (  # rarer, or for programs: named in one line below the others
    "log", "judge", "changes", "redo", "recover", "share", "backup", "restore-backup", "move", "rename", "put",
    "update", "append", "links", "merge", "capture", "distil", "stats", "gate", "trust", "encoder", "check-config",
    "mcp", "token", "hook", "completion", "merge-driver", "help",
)  # fmt: skip
COMMANDS = (*(name for names in GROUPS.values() for name in names), *MORE)
NOW = {  # what commands of earlier days are called
    "snapshot": "context",
    "graph": "links",
    "trash": "restore",
    "disconnect": "connect CLIENT --remove",
    "reindex": "doctor --reindex",
    "problems": "doctor --only damage",
    "validate": "doctor --only format",
    "audit": "doctor --only secrets",
    "upkeep": "review",
    "prune": "review --only prune",
    "stale": "review --only stale",
    "fresh": "review --only drifted --show",
    "suggest-merges": "review --only similar",
    "promote": "vault promote",
}
_HOMES = {  # the module of a command, where it is not its own; it is imported only when the command is used
    "list": "get.list_",
    "stats": "get",
    "links": "search",
    "redo": "undo",
    "changes": "history",
    "put": "add",
    "rename": "edit",
    "update": "add",
    "append": "add",
    "restore": "rm",
    "restore-backup": "backup",
    "move": "backup",
    "merge-driver": "merge",
    "check-config": "init",
    "import": "import_.import_",
    "help": "completion.help_",
}


class App(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = _HOMES.get(cmd_name, cmd_name).partition(".")
        home = import_module(f"memlane.surfaces.cli.{module}")
        command: click.Command = getattr(home, name or cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] in NOW:
                raise click.UsageError(
                    f"There is no command '{args[0]}'; it is `memlane {NOW[args[0]]}` now.", ctx
                ) from None
            from difflib import get_close_matches

            close = ["rename"] if args[0] == "mv" else get_close_matches(args[0], COMMANDS, 1)  # `move` takes the bank
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{close[0]}'?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from textwrap import wrap

        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([*names.items()])
        formatter.write_paragraph()
        more = f"More, rarer or for programs: {', '.join(MORE)}."
        for line in wrap(more, formatter.width - formatter.current_indent, break_on_hyphens=False):
            formatter.write(f"{line}\n")


_NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # before click 8.2, it printed the help itself
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=App, invoke_without_command=True, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="memlane", message="%(prog)s %(version)s")
@click.option("--bank", "folder", metavar="DIR", help="Use the bank of this folder instead of the current one's.")
@click.option("--user", is_flag=True, help="Use your own bank instead of the current folder's.")
@click.option("--set", "flags", metavar="KEY=VALUE", multiple=True, help="Override a setting for this call.")
@click.pass_context
def app(ctx: click.Context, folder: str | None, user: bool, flags: tuple[str, ...]) -> None:
    """Durable memory for AI agents, kept as plain files in your project.

    \b
    $ memlane init
    $ memlane add "Deploys go out on Tuesdays" --tag release
    $ memlane search "when do we deploy"
    """
    if user:
        from memlane.config import own_folder

        if folder:
            raise click.UsageError("Give --bank or --user, not both.")
        folder = own_folder()
    ctx.obj = (folder, _flags(flags))
    if ctx.invoked_subcommand is None:
        from memlane.surfaces.cli.welcome import welcome

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
    with safe_streams(), listening():
        _run()


def _said(error: click.ClickException) -> str:
    """Click's message in one line; redacted, because a secret may have been typed in the wrong place."""
    return redacted(" ".join(error.format_message().split()))


def _usage(error: click.UsageError) -> str:
    """What helps whoever called a command wrongly."""
    if error.ctx is None:
        return "`memlane --help` shows what it takes."
    hint = f"`{error.ctx.command_path} --help` shows what it takes."
    if error.ctx.command.name == "move" and "unexpected extra argument" in error.format_message():
        return f"`memlane rename` gives a note another name; {hint}"
    takes_text = any(each.name in ("text", "content") for each in error.ctx.command.params)
    if takes_text and "unexpected extra argument" in error.format_message():
        return f"Put the text in quotes; {hint}"
    return hint


def _run() -> NoReturn:
    try:
        if "_MEMLANE_COMPLETE" in os.environ:
            import_module("memlane.surfaces.cli.completion")  # registers our completion for bash
        code = app.main(prog_name="memlane", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.UsageError as error:
        if error.ctx and isinstance(error, _NO_ARGUMENTS):
            click.echo(error.ctx.get_help(), err=True)
            sys.exit(InvalidInput.exit_code)
        _fail(InvalidInput(_said(error), hint=_usage(error), code="usage"))
    except click.ClickException as error:
        _fail(MemlaneError(_said(error)))
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
