"""`memlane add`, `put`, `update` and `append`: writing memories of any lane."""

from __future__ import annotations

from typing import Any

import click

from memlane.bank import Bank
from memlane.core.errors import InvalidInput
from memlane.core.model import Memory
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import (
    Command,
    expires_option,
    id_argument,
    plain_value,
    tag_option,
    text_argument,
    user_option,
    with_bank,
)
from memlane.surfaces.cli.output import line_ended, print_written, take_text

_OPTIONS = frozenset(
    {
        "id",
        "text",
        "lane",
        "title",
        "tags",
        "type",
        "scope",
        "thread",
        "created_at",
        "replaces",
        "extra",
        "when",
        "expires",
        "expected",
    }
)
field_option = click.option(
    "--field", "pairs", metavar="NAME=VALUE", multiple=True, help="One of the lane's own fields."
)


def fields_of(pairs: tuple[str, ...], example: str = "--field tier=register") -> dict[str, str]:
    """The fields that `--field NAME=VALUE` gives, or an option like it. Raises InvalidInput for what is no field."""
    fields = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput("A field is written NAME=VALUE.", hint=f"For example {example}.")
        if name in _OPTIONS:
            raise InvalidInput(f"{name} is not a lane's own field.", hint=f"Use the option or argument for the {name}.")
        fields[name] = value
    return fields


def own_fields(pairs: tuple[str, ...]) -> dict[str, Any]:
    """The fields that `--extra NAME=VALUE` gives; a number stays one, so that it can be compared."""
    return {name: plain_value(value) for name, value in fields_of(pairs, "--extra ticket=42").items()}


@click.command()
@text_argument
@click.option("--lane", type=click.Choice(NAMES), help="notes, unless it replaces a memory of another lane.")
@click.option("--title", help="A title; else the first line.")
@tag_option
@click.option(
    "--type", help="journal, plan, fact, observation, reflection, rule or preference; a vault record's category."
)
@click.option("--scope", help="What it applies to: a vault scope, file:PATH, area:NAME.")
@user_option
@click.option("--thread", help="The conversation or session it belongs to.")
@click.option("--created-at", metavar="WHEN", help="When it was so, if not now: 2025-01-15T10:30:00Z.")
@click.option("--replaces", metavar="ID", help="A memory that this takes the place of; it stays readable.")
@click.option("--private", is_flag=True, help="Keep it out of git: a note in the folder `private`.")
@click.option(
    "--when",
    metavar="MOMENT",
    multiple=True,
    help="When it applies: words, a path pattern, or a command, such as committing, src/api/**, git push.",
)
@expires_option
@click.option("--extra", "own", metavar="NAME=VALUE", multiple=True, help="A field of your own.")
@field_option
@with_bank
def add(
    bank: Bank,
    text: str | None,
    private: bool,
    when: tuple[str, ...],
    pairs: tuple[str, ...],
    own: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Remember TEXT (or what is piped in).

    A text that is there already is not written again; what is much like it is named. It is stored for this project;
    with --user, for you in every project.

    \b
    $ memlane add "Deploys go out on Tuesdays" --tag release
    $ memlane add --user "I prefer short answers"
    $ memlane add "Run make lint first" --type rule --when committing
    $ memlane add "The staging server is down" --expires 3d
    $ memlane add "Deploys go out on Wednesdays" --replaces notes:deploys-go-out-on-tuesdays
    $ git log -1 --format=%B | memlane add - --type journal
    """
    lane = options["lane"] or (bank.get(options["replaces"]).lane if options["replaces"] else "notes")
    given = line_ended(take_text(text), lane)
    if not all(map(str.strip, when)):
        raise InvalidInput("--when is empty.", hint="Say when it applies: committing, src/api/**, git push.")
    place: dict[str, Any] = {"private": True} if private else {}
    place |= {"when": list(when) if len(when) > 1 else when[0]} if when else {}
    memory = bank.add(given, **options, extra=own_fields(own), **place, **fields_of(pairs))
    print_written(memory, as_json, "already in" if memory.duplicate else "stored in")


expected_option = click.option(
    "--expected", metavar="VERSION", help="Only if it has this version, as --json shows it; else exit code 5."
)


@click.command()
@click.argument("key")
@text_argument
@click.option("--title", help="A title; else the first line.")
@tag_option
@click.option("--type", help="journal, plan, fact, observation, reflection, rule or preference.")
@click.option("--scope", help="What it applies to: file:PATH, area:NAME.")
@user_option
@click.option("--private", "scope", flag_value="private", help="Keep it out of git. As --scope private.")
@expires_option
@click.option("--extra", "own", metavar="NAME=VALUE", multiple=True, help="A field of your own.")
@expected_option
@with_bank
def put(bank: Bank, key: str, text: str | None, own: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Make the note under KEY say TEXT (or what is piped in), whether it is there or not.

    Any KEY will do, upper and lower case differ, and `memlane get --key KEY` finds it. Everything that the note said
    before is replaced; one that is private stays so. With --expected "", only if there is none.

    \b
    $ memlane put on-call "Maria is on call in March." --expires 30d
    $ memlane put alice@example.org "Prefers short answers." --extra level=3
    """
    memory = bank.put(key, line_ended(take_text(text), "notes"), extra=own_fields(own), **options)
    print_written(memory, as_json, "stored in")


def change_options(command: Command) -> Command:
    """What can be changed of a memory, beside its whole text."""
    for option in (
        expected_option,
        field_option,
        click.option("--when", metavar="MOMENT", multiple=True, help="When it applies, instead of what it says now."),
        expires_option,
        click.option("--thread"),
        click.option("--scope"),
        click.option("--status"),
        click.option("--type"),
        tag_option,
        click.option("--title"),
        click.option("--new", help="What takes the place of --old; may be empty."),
        click.option("--old", help="A passage that is there once, exactly as it is written: --new takes its place."),
    ):
        command = option(command)
    return command


def changed(
    bank: Bank,
    id: str,
    text: str | None,
    old: str | None = None,
    new: str | None = None,
    tags: tuple[str, ...] = (),
    when: tuple[str, ...] = (),
    pairs: tuple[str, ...] = (),
    **changes: Any,
) -> Memory:
    """The memory after what `change_options` and a text say was done. Raises InvalidInput."""
    if old is not None or new is not None:
        if old is None or new is None or text is not None or tags or when or pairs or any(changes.values()):
            hint = "Give both; change the fields in a second call."
            raise InvalidInput("--old and --new belong together, and stand alone.", hint=hint)
        return bank.edit(id, old, new)
    changes = {name: value for name, value in changes.items() if value is not None} | fields_of(pairs)
    if tags:
        changes["tags"] = tags
    if when:
        changes["when"] = list(when) if len(when) > 1 else when[0]
    if text is not None:
        given = take_text(text)
        if not given.strip():  # a variable of a script that is not set, rather than a wish
            raise InvalidInput("There is no text: nothing was changed.", hint="`memlane rm` deletes a memory.")
        changes["text"] = line_ended(given, bank.get(id).lane)
    return bank.update(id, **changes)


def appended(bank: Bank, id: str, text: str | None) -> Memory:
    return bank.append(id, line_ended(take_text(text), bank.get(id).lane))


@click.command()
@id_argument
@text_argument
@change_options
@with_bank
def update(bank: Bank, id: str, text: str | None, as_json: bool, **changes: Any) -> None:
    """Change a memory's TEXT or fields; what is not named stays as it is. `memlane edit` does the same.

    \b
    $ memlane update notes:deploy-day "Deploys go out on Wednesdays." --tag release
    $ memlane update notes:deploy-day --old Wednesdays --new Thursdays
    """
    print_written(changed(bank, id, text, **changes), as_json, "updated")


@click.command()
@id_argument
@text_argument
@with_bank
def append(bank: Bank, id: str, text: str | None, as_json: bool) -> None:
    """Add TEXT to the end of a memory. `memlane edit ID --append` does the same.

    \b
    $ memlane append notes:deploy-day "Not before holidays."
    """
    print_written(appended(bank, id, text), as_json, "appended to")
