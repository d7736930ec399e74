"""`memlane search` and `links`: finding memories through the index."""

from __future__ import annotations

import sys
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.values import replace
from memlane.surfaces.cli.options import (
    Number,
    archived_option,
    as_of,
    expired_option,
    filters,
    limit_option,
    offset_option,
    order_option,
    user_option,
    with_bank,
    words_argument,
)
from memlane.surfaces.cli.output import (
    BELOW,
    Styled,
    columns,
    echo,
    one_line,
    print_json,
    print_result,
    print_rows,
    print_tables,
    say,
    titled,
    wrapped,
)

SNIPPET = 160  # characters of a snippet in a pipe


@click.command()
@words_argument("query")
@limit_option(help="How many: 5, or with --order time all that are about it.")
@offset_option
@filters
@user_option
@order_option
@archived_option
@expired_option
@click.option(
    "--wait", type=Number(min=0), metavar="SECONDS", help="Index for so long at most, then answer from what is there."
)
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@as_of
@with_bank
def search(bank: Bank, query: str, explain: bool, as_json: bool, **options: Any) -> None:
    """Find memories by words, meaning and links, the best first, each with the sentences that say most about it.

    \b
    $ memlane search "when do we deploy" --tag release
    $ memlane search '"exact phrase" -without' --explain
    $ memlane search "payment gateway" --order time
    $ memlane search "what does she like" --where user=alice --where 'level>=3'
    $ memlane search -- '-without something'
    """
    from memlane.recall.harmless import suspicious
    from memlane.recall.snippets import marked, snippet

    hits = [replace(hit, memory=bank.original(hit.memory)) for hit in bank.search(query, **options)]
    if not bank.index.complete:
        say("note: the bank is not indexed completely yet; more may be found later")
    if as_json:
        print_json(hits)
        return
    seen = sys.stdout.isatty()
    for hit in hits:
        place = f" > {hit.header_path}" if hit.header_path else ""
        place += " (⚠ suspicious)" if suspicious(bank, hit.memory) else ""
        day = (iso(hit.memory.created_at or hit.memory.updated_at) or "-")[:10]
        by = day if options["order"] == "time" else f"{hit.score:.2f}"
        said = one_line(snippet(hit, query, 2 * (columns() - BELOW) if seen else SNIPPET))
        print_rows([(hit.memory.id, by, f"{titled(hit.memory)}{place}", *([] if seen else [said]))], again=True)
        for line in wrapped(said, columns() - BELOW) if seen and said else ():
            echo(" " * BELOW, *(Styled(piece, bold=True) if found else piece for piece, found in marked(line, query)))
        if explain:
            click.echo("    " + ", ".join(f"{name} {value:g}" for name, value in hit.why.items()))
    if not hits:
        say("nothing found")


@click.command()
@click.argument("target", required=False)
@click.option("--query", "-q", default="", help="Rank by this.")
@limit_option(5)
@with_bank
def links(bank: Bank, target: str | None, query: str, limit: int, as_json: bool) -> None:
    """List the memories that link to TARGET, a file by any path or a memory by any name; without one, all links.

    All links are JSON: nodes and edges.

    \b
    $ memlane links src/auth.py --query "refactor plans"
    $ memlane links notes:deploy-day
    $ memlane links
    """
    if target is None:
        print_tables(bank.graph())
        return
    linked = bank.linked(target, query, limit)
    if not linked:
        say("nothing links to it")
    print_result(linked, as_json, ((link.memory.id, link.edge_type, link.anchor_context) for link in linked))
