"""The verbs over all lanes: init, add, get, list, update, append, rm, restore, trash, stats, problems, merge."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from memlane import config
from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput, NotEnabled
from memlane.exchange import adopt
from memlane.lanes import NAMES
from memlane.surfaces.cli.output import (
    as_json,
    as_of,
    filters,
    id_argument,
    ids_argument,
    line_ended,
    one_line,
    print_json,
    print_memories,
    print_problems,
    print_rows,
    print_text,
    print_written,
    say,
    tag_option,
    take_text,
    with_bank,
)


def welcome(folder: str | None, flags: dict[str, Any]) -> None:
    """What `memlane` alone prints: where you are, and the three commands you want next."""
    try:
        bank = Bank(config.load(folder, flags))
    except NotEnabled:
        click.echo("There is no memory bank here yet.\n")
        steps = [
            ("memlane init", "make this folder a bank"),
            ("memlane init --user", "make one for all projects that have none"),
            ("memlane --help", "see all commands"),
        ]
    else:
        counts = [f"{count:,} {noun}{'s'[: count != 1]}" for noun, count in _counts(bank).items() if count]
        click.echo(f"Bank {bank.root}: {', '.join(counts) or 'nothing remembered yet'}.\n")
        steps = [
            ('memlane add "…" --tag x', "remember something"),
            ('memlane search "…"', "find it again"),
            ("memlane list -n 10", "see the latest"),
        ]
    for command, what in steps:
        click.echo(f"  {command:<26} {what}")


def _counts(bank: Bank) -> dict[str, int]:
    """What there is, as far as it can be counted without reading it: a large bank answers at once, too."""
    nouns = {"notes": "note", "topics": "topic file", "records": "record", "layers": "layer file"}
    counts = {noun: sum(isinstance(path, str) for path in bank.lane(name).files()) for name, noun in nouns.items()}
    lines = 0
    if os.path.isfile(bank.config.lane_root("vault")):
        with open(bank.config.lane_root("vault"), "rb") as file:
            lines = sum(1 for _ in file)
    return {"note": counts.pop("note"), "vault line": lines, **counts}


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--user", is_flag=True, help="Make your own bank instead, for all projects that have none.")
@click.option("--git", is_flag=True, help="Also teach the git repository here to merge memory; once in every clone.")
@click.pass_context
@as_json
def init(ctx: click.Context, folder: Path | None, user: bool, git: bool, as_json: bool) -> None:
    """Make FOLDER (default: this one) a bank. Adopts stores that are already there; safe to repeat.

    \b
    $ memlane init
    $ memlane init --git
    """
    folder = (folder or Path(ctx.find_root().obj[0] or ".")).expanduser().absolute()
    above = None if user else config.find_project(folder.parent)
    file = adopt.init(folder, user=user)
    settings = config.load(None if user else folder)
    adopted = {name: settings[f"lanes.{name}"] for name in NAMES if settings[f"lanes.{name}"]}
    joined = adopt.join_git(settings) if git else None
    if as_json:
        done = {"config": str(file), "root": str(settings.root), "adopted": adopted}
        print_json({**done, "git": joined} if git else done)
        return
    for lane, place in adopted.items():
        say(f"adopted {place} as the {lane} lane")
    if above:
        say(f"note: the bank of {above.parent} is not seen from here any more")
    say(f"memory is enabled by {file}")
    if joined:
        _say_joined(joined)
    click.echo(settings.root)


def _say_joined(joined: dict[str, Any]) -> None:
    if joined["repository"] is None:
        say("note: this is no git repository, so nothing was done for git; `git init`, then `memlane init --git` again")
        return
    say(f"git merges memory in {joined['repository']}; commit {' and '.join(joined['rules'])}")
    if joined["ignored"]:
        say("note: git ignores the bank's folder; take it out of .gitignore to have its history")


@click.command("check-config")
@click.pass_context
@as_json
def check_config(ctx: click.Context, as_json: bool) -> None:
    """Print the settings in force and where each came from.

    \b
    $ memlane check-config
    """
    settings = config.load(*ctx.find_root().obj)
    if as_json:
        print_json(settings.to_dict())
        return
    enabled = settings["memory.enabled"]
    say(
        f"memory is {'enabled' if enabled else 'not enabled: run `memlane init`'}; the bank's folder is {settings.root}"
    )
    print_rows(
        (key, json.dumps(value, ensure_ascii=False), settings.sources[key]) for key, value in settings.values.items()
    )


_OPTIONS = frozenset({"id", "text", "lane", "title", "tags", "type", "scope", "thread", "created_at"})


def fields_of(pairs: tuple[str, ...]) -> dict[str, str]:
    fields = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput("A field is written NAME=VALUE.", hint="For example --field tier=register.")
        if name in _OPTIONS:
            raise InvalidInput(f"{name} is not a lane's own field.", hint=f"Use the option or argument for the {name}.")
        fields[name] = value
    return fields


field_option = click.option(
    "--field", "pairs", metavar="NAME=VALUE", multiple=True, help="One of the lane's own fields."
)


@click.command()
@click.argument("text", required=False)
@click.option("--lane", type=click.Choice(NAMES), default="notes", show_default=True)
@click.option("--title", help="A title; else the first line.")
@tag_option
@click.option("--type", help="journal, plan, fact, observation or reflection; a vault record's category.")
@click.option("--scope", help="What it applies to: a vault scope, file:PATH, area:NAME.")
@click.option("--thread", help="The conversation or session it belongs to.")
@click.option("--created-at", metavar="WHEN", help="When it was so, if not now: 2025-01-15T10:30:00Z.")
@field_option
@as_json
@with_bank
def add(
    bank: Bank, text: str | None, tags: tuple[str, ...], pairs: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Remember TEXT (or what is piped in).

    \b
    $ memlane add "Deploys go out on Tuesdays" --tag release
    $ git log -1 --format=%B | memlane add - --type journal
    """
    given = line_ended(take_text(text), options["lane"])
    memory = bank.add(given, tags=tags, **options, **fields_of(pairs))
    print_written(memory, as_json, "stored in")


@click.command()
@id_argument
@click.option("--raw", is_flag=True, help="Print the whole file, front matter included.")
@as_of
@as_json
@with_bank
def get(bank: Bank, id: str, raw: bool, as_json: bool) -> None:
    """Print one memory.

    \b
    $ memlane get notes:deploy-day
    """
    memory = bank.get(id)
    if raw and not as_json:
        click.echo(memory.path.read_bytes(), nl=False)
        return
    memory = bank.original(memory)
    if as_json:
        print_json(memory.to_dict())
    else:
        facts = [memory.title, (iso(memory.created_at) or "")[:10], ", ".join(memory.tags), str(memory.path)]
        say(" · ".join(one_line(fact) for fact in facts if fact))
        if why := bank.held(memory):
            say(f"note: {why}")
        if outdated := bank.outdated(memory):
            say(f"⚠ {outdated}")
        print_text(memory.text)


@click.command("list")
@click.option("--limit", "-n", type=click.IntRange(min=0), help="At most this many.")
@filters
@click.option("--thread")
@as_of
@as_json
@with_bank
def list_(bank: Bank, as_json: bool, **chosen: Any) -> None:
    """List memories, the newest first.

    \b
    $ memlane list --tag release --since 2025-01-01 -n 10
    """
    print_memories(map(bank.original, bank.list(**chosen)), as_json)


@click.command()
@id_argument
@click.argument("text", required=False)
@click.option("--title")
@tag_option
@click.option("--type")
@click.option("--status")
@click.option("--scope")
@click.option("--thread")
@field_option
@as_json
@with_bank
def update(
    bank: Bank, id: str, text: str | None, tags: tuple[str, ...], pairs: tuple[str, ...], as_json: bool, **changes: Any
) -> None:
    """Change a memory's TEXT or fields; what is not named stays as it is.

    \b
    $ memlane update notes:deploy-day "Deploys go out on Wednesdays." --tag release
    """
    changes = {name: value for name, value in changes.items() if value is not None} | fields_of(pairs)
    if tags:
        changes["tags"] = tags
    if text is not None:
        changes["text"] = line_ended(take_text(text), bank.get(id).lane)
    memory = bank.update(id, **changes)
    print_written(memory, as_json, "updated")


@click.command()
@id_argument
@click.argument("text", required=False)
@as_json
@with_bank
def append(bank: Bank, id: str, text: str | None, as_json: bool) -> None:
    """Add TEXT to the end of a memory.

    \b
    $ memlane append notes:deploy-day "Not before holidays."
    """
    given = line_ended(take_text(text), bank.get(id).lane)
    print_written(bank.append(id, given), as_json, "appended to")


@click.command()
@ids_argument()
@as_json
@with_bank
def rm(bank: Bank, ids: tuple[str, ...], as_json: bool) -> None:
    """Delete memories; `memlane restore ID` brings one back.

    \b
    $ memlane rm notes:deploy-day
    """
    removed = []
    try:
        for id in ids:
            removed.append(bank.delete(id))
    finally:
        if as_json:
            print_json([item.to_dict() for item in removed])
        else:
            for item in removed:
                say(f"moved to {item.path}" if item.how == "trash" else f"marked as deleted in {item.path}")
                click.echo(item.id)


@click.command()
@id_argument
@as_json
@with_bank
def restore(bank: Bank, id: str, as_json: bool) -> None:
    """Bring back a deleted memory.

    \b
    $ memlane restore notes:deploy-day
    """
    print_written(bank.restore(id), as_json, "restored to")


@click.command()
@as_json
@with_bank
def trash(bank: Bank, as_json: bool) -> None:
    """List what `restore` can bring back.

    \b
    $ memlane trash
    """
    removed = bank.removed()
    if as_json:
        print_json([item.to_dict() for item in removed])
    else:
        print_rows((item.id, iso(item.removed_at) or "", str(item.path)) for item in removed)


@click.command()
@as_json
@with_bank
def stats(bank: Bank, as_json: bool) -> None:
    """Count what the bank holds.

    \b
    $ memlane stats
    """
    counts = bank.stats()
    if as_json:
        print_json(counts)
        return
    from memlane.lanes.notes.store import human_size

    say(f"{counts['root']}: {counts['count']} memories, {counts['problems']} problems, {counts['removed']} deleted")
    print_rows((name, f"{lane['count']}", human_size(lane["bytes"])) for name, lane in counts["lanes"].items())


@click.command()
@as_json
@with_bank
def problems(bank: Bank, as_json: bool) -> None:
    """List damaged files and lines; everything else keeps working. Exit code 6 when there are any.

    \b
    $ memlane problems
    """
    print_problems(bank.problems(), as_json)


@click.command()
@ids_argument("sources")
@click.option("--into", required=True, metavar="NAME", help="The file name of the new note.")
@click.option("--text", "text", help="Its whole content; else what is piped in.")
@as_json
@with_bank
def merge(bank: Bank, sources: tuple[str, ...], into: str, text: str | None, as_json: bool) -> None:
    """Replace several notes by one; the old ones go to the trash, and `memlane undo` takes it back.

    \b
    $ memlane merge auth-1 auth-2 --into auth --text "What both say: …"
    """
    from memlane.history.undo import recording

    names = [source.removeprefix("notes:") for source in sources]
    content = take_text(text)
    with recording(bank, "merge"):
        merged = bank.notes.merge(names, into, content)
    bank.anchor(merged.id)
    print_written(merged, as_json, "merged into")
