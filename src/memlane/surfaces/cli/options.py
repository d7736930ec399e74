"""The options and arguments that commands share, and the bank they work on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from memlane.bank import Bank
from memlane.core.errors import MemlaneError
from memlane.core.patterns import lazily
from memlane.disk import journal
from memlane.lanes import NAMES
from memlane.surfaces.cli.output import guarded_by, print_json, say, say_notes

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def complete_id(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from memlane.surfaces.cli.completion import ids

    return ids(ctx, incomplete)


def complete_tag(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from memlane.surfaces.cli.completion import tags

    return tags(ctx, incomplete)


id_argument = click.argument("id", shell_complete=complete_id)
text_argument = click.argument("text", required=False)
content_argument = click.argument("content", required=False)


def _joined(_context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> str | None:
    return " ".join(words) if words else None


def words_argument(name: str, *, required: bool = True) -> Decorator:
    """Words that a search begins with, in quotes or not: nothing that a shell does to them changes what is stored."""
    shown = name.upper() if required else f"[{name.upper()}]"
    return click.argument(name, nargs=-1, required=required, metavar=shown, callback=_joined)


DAYS = 36_500  # a hundred years: no date is farther away


class Count(click.IntRange):
    """A whole number, at most a billion: of no thing does a bank have more."""

    name = "number"

    def __init__(self, least: int = 0, most: int = 1_000_000_000) -> None:
        super().__init__(least, most)


def ids_argument(name: str = "ids", *, required: bool = True) -> Decorator:
    metavar = "ID..." if required else "[ID]..."
    return click.argument(name, nargs=-1, required=required, metavar=metavar, shell_complete=complete_id)


tag_option = click.option(
    "--tag", "-t", "tags", multiple=True, shell_complete=complete_tag, help="A tag; may be repeated."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
always_json = click.option("--json", is_flag=True, expose_value=False, help="Print JSON, as this command always does.")
apply_option = click.option("--apply", "applied", is_flag=True, help="Do it. Without this, it is only shown.")
as_of = click.option("--as-of", metavar="WHEN", help="As it was at a date, or at a commit, by git.")


class Number(click.FloatRange):
    """A number in a range. The one that is not a number is neither below nor above any other, so click lets it pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return self.fail("nan is not a number.", param, ctx) if found != found else found


def limit_option(default: int | None = None, help: str | None = None) -> Decorator:
    shown = default is not None
    return click.option("--limit", "-n", type=Count(), default=default, show_default=shown, help=help)


offset_option = click.option("--offset", type=Count(), default=0, help="Leave out so many of the first.")
_DATES = (click.option("--until", metavar="DATE"), click.option("--since", metavar="DATE"))
scope_option = click.option("--scope", help="For whom or what: user:alice, area:database, 'team/*'; a topic, a layer.")
user_option = click.option(
    "--user", "scope", flag_value="user", help="Your own memory, which is read in every project. As --scope user."
)


def _tags(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if not all(tag.strip() for tag in given):  # it would choose everything
        raise click.BadParameter("a tag is not empty", ctx, param)
    return given


any_tag_option = click.option(
    "--tag",
    "-t",
    "tags",
    multiple=True,
    callback=_tags,
    shell_complete=complete_tag,
    help="A tag; any of several.",
)


order_option = click.option(
    "--order", type=click.Choice(["best", "time"]), default="best", help="time: all that is about it, the newest first."
)


archived_option = click.option("--archived", is_flag=True, help="Archived memories, too.")
expired_option = click.option("--expired", is_flag=True, help="What has expired, too.")
expires_option = click.option(
    "--expires", metavar="WHEN", help="When it stops counting: 30d, 12h, 2025-01-15. From then on it is in no answer."
)
_SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt", "=": "$eq"}
_CONDITION = lazily(rf"\s*([^<>=!]+?)\s*(?:({'|'.join(_SIGNS)})(?![<>=!])(.*))?", re.DOTALL)


def plain_value(text: str) -> Any:
    """A number, true, false or null that a text is written as, or the text; one in quotes is text in any case."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if not isinstance(value, list | dict) and json.dumps(value, ensure_ascii=False) == text else text


def _where(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """What `--where` asks, as `memlane.core.where` has it."""
    where: dict[str, dict[str, Any]] = {}
    for text in given:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise click.BadParameter("write it like topic=deploys, level>=3 or topic", ctx, param)
        key, sign, value = match[1], match[2], (match[3] or "").strip()
        read = plain_value(value)
        asked = {_SIGNS[sign]: read} if sign else {"$exists": True}
        if sign == "=" and not isinstance(read, str):
            asked = {"$in": [read, value]}  # a file may have it as text
        if asked.keys() & where.get(key, {}).keys():
            raise click.BadParameter("it asks one thing of one field twice", ctx, param)
        where.setdefault(key, {}).update(asked)
    return where or None


where_option = click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    callback=_where,
    help="A field's value: topic=deploys, user.level>=3, team!=web; NAME alone: it has the field. May be repeated.",
)


def filters(command: Command) -> Command:
    """The options by which `list`, `search` and `export` choose among memories."""
    for option in (
        where_option,
        click.option("--thread", help="Of this conversation or session."),
        *_DATES,
        click.option("--project"),
        scope_option,
        click.option("--status"),
        click.option("--type"),
        any_tag_option,
        click.option("--lane", type=click.Choice(NAMES)),
    ):
        command = option(command)
    return command


def dates(command: Command) -> Command:
    """The options --since and --until."""
    for option in _DATES:
        command = option(command)
    return command


# -- the bank


def open_bank(ctx: click.Context) -> Bank:
    """The bank that the global options name."""
    from memlane import config

    folder, flags = ctx.find_root().obj
    bank = Bank(config.load(folder, flags))
    guarded_by(bank.guard, bank)
    return bank


def _say_journal(bank: Bank, ctx: click.Context) -> None:
    """Tell what the journal knows and a person should, too."""
    from memlane.config import FOLDER
    from memlane.config.places import absolute, bank_that_was
    from memlane.history.noticing import noticed, summary

    chosen = bank.config.file is not None or ctx.find_root().obj[0] is not None
    if bank.journal and bank.journal.absent:
        say(f"nothing is recorded for undo: {bank.journal.absent}")
    elif not chosen and (was := bank_that_was(absolute("."), FOLDER)):
        say(f"This is your own bank. {was}")
    elif ctx.info_name not in ("recover", "move"):
        with suppress(MemlaneError):  # the command has done what it should
            if count := noticed(bank):
                say(f"{summary(count)}; `memlane recover` shows what")


def _say_distrust(bank: Bank) -> None:
    """Tell that a project is only read, once the command has done what it could."""
    from memlane import config

    if error := config.distrusted(bank.config):
        say(f"{error} Nothing is written here, and its settings do not count; `memlane trust` changes that.")


@contextmanager
def _opened(when: str | None = None) -> Iterator[Bank]:
    """The bank, or as it was at a time. What a command changes is one change in the journal, however it ends."""
    ctx = click.get_current_context()
    stopped: click.exceptions.Exit | None = None
    with open_bank(ctx) as today, today.as_of(when) if when is not None else today as bank:
        with journal.acting("cli", users=True), journal.change(ctx.command_path.partition(" ")[2]):
            try:
                yield bank
            except click.exceptions.Exit as stop:  # with a code that says what was found
                stopped = stop
        if bank is today:
            _say_journal(bank, ctx)
        _say_distrust(bank)
    if stopped is not None:
        raise stopped


def with_bank(command: Command) -> Command:
    """Give a command the open bank as its first argument, and the option --json as `as_json`."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with _opened(kwargs.pop("as_of", None)) as bank:
            say_notes(map(str, bank.left_out))
            command(bank, *args, **kwargs)

    return as_json(run)


def json_from_bank(command: Callable[..., Any]) -> Command:
    """Give a command the open bank as its first argument, and print what it returns as JSON; --json changes nothing."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with _opened() as bank:
            print_json(command(bank, *args, **kwargs))

    return always_json(run)
