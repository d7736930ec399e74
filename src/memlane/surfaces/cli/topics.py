"""`memlane topics`: the verbs of the topics lane, dated entries."""

from __future__ import annotations

from typing import Any

import click

from memlane.bank import Bank
from memlane.recall.scopes import spelt
from memlane.surfaces.cli.context import explain_option, print_block
from memlane.surfaces.cli.options import (
    Count,
    any_tag_option,
    content_argument,
    dates,
    limit_option,
    scope_option,
    with_bank,
    words_argument,
)
from memlane.surfaces.cli.output import print_json, print_result, print_stored, print_text, say, take_text


@click.group()
def topics() -> None:
    """Topics: dated entries by topic and sub-topic, the newest first.

    \b
    $ memlane topics store auth/oauth2 --title "Refresh fails" --problem "…" --solution "…"
    """


@topics.command()
@click.argument("topic")
@content_argument
@click.option("--title")
@click.option("--context", help="The task it belongs to.")
@click.option("--problem", help="What went wrong.")
@click.option("--solution", help="How it was fixed.")
@click.option("--code", help="Code, where it helps.")
@click.option("--date", metavar="YYYY-MM-DD")
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
    talk = [f"note: {remark}" for remark in stored.remarks]
    if not stored.index_updated:
        talk.append("note: index.md could not be written; `memlane topics reindex` says why")
    print_stored(stored, as_json, stored.entry.id, *talk, f"stored in {stored.path}")


@topics.command()
@words_argument("query")
@limit_option(10)
@any_tag_option
@click.option("--type")
@scope_option
@dates
@click.option("--archive", "--archived", "archived", is_flag=True, help="Search the archives too.")
@with_bank
def search(bank: Bank, query: str, limit: int, scope: str | None, as_json: bool, **filters: Any) -> None:
    """Find entries by keyword, context, topic and recency: id, date and title.

    \b
    $ memlane topics search 'refresh context:PRB-12 "exact phrase"'
    """
    entries = bank.topics.search(query, limit, scope=spelt(bank, scope, "topics"), **filters)
    print_result(entries, as_json, ((entry.id, entry.date, entry.title) for entry in entries))


@topics.command()
@click.argument("topic")
@with_bank
def load(bank: Bank, topic: str, as_json: bool) -> None:
    """Print the entries of TOPIC/SUBTOPIC, or of all sub-topics of TOPIC, each below its id, and count the access.

    \b
    $ memlane topics load auth/oauth2
    """
    entries = bank.topics.load(topic)
    if as_json:
        print_json(entries)
    elif entries:
        print_text("\n".join(f"<!-- {entry.id} -->\n{entry.raw.rstrip()}\n" for entry in entries))
    else:
        say("nothing is stored there; `memlane topics list` shows the topics")


@topics.command("list")
@with_bank
def list_(bank: Bank, as_json: bool) -> None:
    """List every topic and sub-topic with the number of its entries and the date of the newest.

    \b
    $ memlane topics list
    """
    found = bank.topics.topics()
    print_result(found, as_json, ((item["topic"], str(item["entries"]), item["newest"] or "") for item in found))


@topics.command()
@words_argument("query")
@limit_option(3)
@click.option("--max-tokens", type=Count(), default=1000, show_default=True, help="At most so many.")
@explain_option
@with_bank
def embed(bank: Bank, query: str, limit: int, max_tokens: int, explain: bool, as_json: bool) -> None:
    """Print the two or three most relevant entries as a block for a prompt.

    \b
    $ memlane topics embed auth --max-tokens 500
    """
    print_block(bank.embed(query, limit, max_tokens), explain, as_json)


@topics.command()
@with_bank
def reindex(bank: Bank, as_json: bool) -> None:
    """Write index.md anew from the topic files.

    \b
    $ memlane topics reindex
    """
    bank.topics.reindex()
    print_result({"index_updated": True}, as_json, talk=f"wrote {bank.topics.root / 'index.md'}")
