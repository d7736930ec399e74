"""`memlane completion` and `memlane help`, and what the shell offers when somebody presses TAB.

Completion must be quick and must not fail: ids and tags come from the index as it is, without loading NumPy or
updating it. Without an index, ids come from file names.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from memlane import config, lanes
from memlane.bank import Bank
from memlane.core.errors import MemlaneError, StorageError
from memlane.core.model import USERS, Memory
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_json

MOST = 200  # how many completions are offered
_LANE_OF = {"merge": "notes"}  # commands for memories of one lane
_PLAIN = re.compile(r"[\w@%+=:,./-]+")  # means nothing but itself in every shell
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" type value
    local word="${line##*[[:space:]]}" begun=""
    # bash breaks words at colons and replaces only what follows the last one
    [[ "$COMP_WORDBREAKS" == *:* && "$word" == *:* ]] && begun="${word%%"${word##*:}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$begun"}") ;;
        esac
    done < <(COMP_LINE="$line" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """click's completion, adapted because bash splits `notes:plan` into three words."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        from click.shell_completion import split_arg_string

        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)[1:]
        return (words, "") if not words or line[-1:].isspace() else (words[:-1], words[-1])


add_completion_class(Bash)


# -- what TAB offers


def ids(ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """The ids that begin like this, with or without the lane's name, and that the command can use."""
    query = (
        "SELECT id FROM memories WHERE (substr(id, 1, :n) = :text OR substr(id, instr(id, ':') + 1, :n) = :text) "
        "AND (:lane = '' OR lane = :lane) ORDER BY id LIMIT :most"
    )
    group = ctx.parent.info_name if ctx.parent else None
    lane = group if group in lanes.NAMES else _LANE_OF.get(ctx.info_name or "", "")
    matches: Iterable[str] = ()
    lead = ""
    with suppress(MemlaneError, OSError):
        bank = _bank(ctx)
        if incomplete.startswith(USERS) and bank.under:
            bank, lead, incomplete = bank.under, USERS, incomplete.removeprefix(USERS)
        if ctx.info_name == "restore":
            gone = [*(removed.id for removed in bank.removed()), *(one.id for one in bank.list(status="archived"))]
            matches = [id for id in gone if _begins(id, incomplete)]
        elif (known := _query(bank, query, incomplete, lane)) is not None:
            matches = known
        else:
            matches = [id for id in _file_ids(bank, [lane] if lane else lanes.NAMES) if _begins(id, incomplete)]
    return _items(lead + id for id in islice(matches, MOST))


def tags(ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """The tags that begin like this, the most used first."""
    query = "SELECT tag FROM tags WHERE substr(tag, 1, :n) = :text GROUP BY tag ORDER BY count(*) DESC, tag LIMIT :most"
    with suppress(MemlaneError, OSError):
        return _items(_query(_bank(ctx), query, incomplete) or ())
    return []


def _items(words: Iterable[str]) -> list[CompletionItem[str]]:
    """What the shell may put into the command line as it is: bash would run what `$(…)` names at the next Enter."""
    return [CompletionItem(word) for word in words if _PLAIN.fullmatch(word)]


def commands(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The commands that begin like this, in the group that is already named."""
    with suppress(click.UsageError):
        at = _context_of(ctx, ctx.params.get("names") or ())
        names = at.command.list_commands(at) if isinstance(at.command, click.Group) else []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


def _context_of(ctx: click.Context, names: Iterable[str]) -> click.Context:
    """The context of the command with these names. Raises UsageError if there is no such command."""
    at = ctx.find_root()
    for name in names:
        group = at.command
        command = group.resolve_command(at, [name])[1] if isinstance(group, click.Group) else None
        if command is None:
            raise click.UsageError("There is no such command.", at)
        at = click.Context(command, info_name=name, parent=at)
    return at


def _begins(id: str, text: str) -> bool:
    return id.startswith(text) or id.partition(":")[2].startswith(text)


def _bank(ctx: click.Context) -> Bank:
    given = ctx.find_root().params
    return Bank(config.load(config.own_folder() if given.get("user") else given.get("folder")))


def _query(bank: Bank, query: str, text: str, lane: str = "") -> list[str] | None:
    """Ask the index as it is; None when there is no index or it cannot be read."""
    from memlane.index.seal import reading

    try:
        with closing(reading(bank.index_file, timeout=0.2)) as db:
            rows = db.execute(query, {"n": len(text), "text": text, "lane": lane, "most": MOST})
            return [value for (value,) in rows]
    except (sqlite3.Error, UnicodeDecodeError, StorageError):
        return None


def _file_ids(bank: Bank, names: Iterable[str]) -> Iterator[str]:
    """Ids made from file names; in lanes whose files hold several memories, by reading them."""
    for name in names:
        lane = bank.lane(name)
        if name in ("vault", "topics"):
            yield from (item.id for item in lanes.scan(lane) if isinstance(item, Memory))
            continue
        for path in lane.files():
            if isinstance(path, str) and (native := lane.answers.native_of(path)):
                yield f"{name}:{native}"


# -- the commands


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@as_json
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that completes commands, options, ids and tags in your shell.

    \b
    $ memlane completion bash >> ~/.bashrc
    $ memlane completion zsh > "${fpath[1]}/_memlane"
    $ memlane completion fish > ~/.config/fish/completions/memlane.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None  # noqa: S101 - click has all three
    script = complete(ctx.find_root().command, {}, "memlane", "_MEMLANE_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)


@click.command("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...", shell_complete=commands)
@click.pass_context
@as_json
def help_(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Print what a command does and takes.

    \b
    $ memlane help add
    $ memlane help vault history
    """
    at = _context_of(ctx, names)
    text = at.get_help()
    if as_json:
        print_json({"command": at.command_path, "help": text})
    else:
        click.echo(text)
