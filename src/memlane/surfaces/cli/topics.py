"""`memlane topics`: seed 000's verbs."""

from __future__ import annotations

from typing import Any

import click

from memlane.bank import Bank
from memlane.surfaces.cli.output import as_json, print_json, print_rows, print_text, say, take_text, with_bank


@click.group()
def topics() -> None:
    """Topics: dated entries by topic and sub-topic, the newest first.

    \b
    $ memlane topics store auth/oauth2 --title "Refresh fails" --problem "…" --solution "…"
    """


@topics.command()
@click.argument("topic")
@click.argument("content", required=False)
@click.option("--title")
@click.option("--context", help="The task it belongs to.")
@click.option("--problem", help="What went wrong.")
@click.option("--solution", help="How it was fixed.")
@click.option("--code", help="Code, where it helps.")
@click.option("--date", metavar="YYYY-MM-DD")
@as_json
@with_bank
def store(bank: Bank, topic: str, content: str | None, as_json: bool, **fields: Any) -> None:
    """Add an entry at the top of TOPIC/SUBTOPIC.

    \b
    $ memlane topics store auth/oauth2 --title "Refresh fails" --problem "…" --solution "…"
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if content is not None or not given.keys() & {"problem", "solution", "code"}:
        content = take_text(content)
    stored = bank.topics.store(topic, content, **given)
    bank.anchor(stored.entry.id)
    if as_json:
        print_json(stored.to_dict())
        return
    for remark in stored.remarks:
        say(f"note: {remark}")
    for archive in stored.archived_to:
        say(f"moved old entries to {archive}")
    if not stored.index_updated:
        say("note: index.md could not be written; `memlane topics reindex` says why")
    say(f"stored in {stored.path}")
    click.echo(stored.entry.id)


@topics.command()
@click.argument("query")
@click.option("--limit", "-n", type=click.IntRange(min=0), default=10, show_default=True)
@click.option("--archive", is_flag=True, help="Search the archives too.")
@as_json
@with_bank
def search(bank: Bank, query: str, limit: int, archive: bool, as_json: bool) -> None:
    """Find entries by keyword, context, topic and recency: id (or archive file), date and title.

    \b
    $ memlane topics search 'refresh context:PRB-12 "exact phrase"'
    """
    found = bank.topics.search(query, limit, archive)
    if as_json:
        print_json([entry.to_dict() for entry in found])
    else:
        print_rows((entry.id or entry.path, entry.date, entry.title) for entry in found)


@topics.command()
@click.argument("topic")
@as_json
@with_bank
def load(bank: Bank, topic: str, as_json: bool) -> None:
    """Print the entries of TOPIC/SUBTOPIC, each below its id, and count the access.

    \b
    $ memlane topics load auth/oauth2
    """
    entries = bank.topics.load(topic)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
    elif entries:
        print_text("\n".join(f"<!-- {entry.id} -->\n{entry.raw.rstrip()}\n" for entry in entries))


@topics.command()
@click.argument("query")
@as_json
@with_bank
def embed(bank: Bank, query: str, as_json: bool) -> None:
    """Print the two or three most relevant entries for a prompt, within 1,000 tokens.

    \b
    $ memlane topics embed auth
    """
    block = bank.topics.embed(query)
    if as_json:
        print_json(
            {"text": str(block), "tokens": block.tokens, "entries": [entry.to_dict() for entry in block.entries]}
        )
    elif block:
        print_text(block)


@topics.command()
@as_json
@with_bank
def reindex(bank: Bank, as_json: bool) -> None:
    """Write index.md anew from the topic files.

    \b
    $ memlane topics reindex
    """
    bank.topics.reindex()
    if as_json:
        print_json({"index_updated": True})
    else:
        say(f"wrote {bank.topics.root / 'index.md'}")
