"""`memlane search`, `links`, `graph`, `suggest-merges` and `reindex`: finding things again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import click

from memlane.bank import Bank
from memlane.surfaces.cli.output import always_json, as_json, as_of, filters, print_json, print_rows, say, with_bank


@click.command()
@click.argument("query")
@click.option("--limit", "-n", type=click.IntRange(min=0), default=5, show_default=True)
@filters
@click.option("--archived", is_flag=True, help="Archived memories, too.")
@click.option(
    "--wait", type=float, metavar="SECONDS", help="Index for so long at most, then answer from what is there."
)
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@as_of
@as_json
@with_bank
def search(bank: Bank, query: str, explain: bool, as_json: bool, **options: Any) -> None:
    """Find memories by words, meaning and links, the best first.

    \b
    $ memlane search "when do we deploy" --tag release
    $ memlane search '"exact phrase" -without' --explain
    $ memlane search -- '-without something'
    """
    hits = [replace(hit, memory=bank.original(hit.memory)) for hit in bank.search(query, **options)]
    if not bank.index.complete:
        say("note: the bank is not indexed completely yet; more may be found later")
    if as_json:
        print_json([hit.to_dict() for hit in hits])
        return
    for hit in hits:
        place = f" > {hit.header_path}" if hit.header_path else ""
        print_rows([(hit.memory.id, f"{hit.score:.2f}", f"{hit.memory.title}{place}")])
        if explain:
            click.echo("    " + ", ".join(f"{name} {value:g}" for name, value in hit.why.items()))
    if not hits:
        say("nothing found")


@click.command()
@click.argument("target")
@click.option("--query", "-q", default="", help="Rank by this.")
@click.option("--limit", "-n", type=click.IntRange(min=0), default=5, show_default=True)
@as_json
@with_bank
def links(bank: Bank, target: str, query: str, limit: int, as_json: bool) -> None:
    """List the memories that link to TARGET.

    \b
    $ memlane links src/auth.py --query "refactor plans"
    """
    found = bank.linked(target, query, limit)
    if as_json:
        print_json([link.to_dict() for link in found])
    else:
        print_rows((link.memory.id, link.edge_type, link.anchor_context) for link in found)


@click.command()
@always_json
@with_bank
def graph(bank: Bank) -> None:
    """Print all memories and their links as nodes and edges.

    \b
    $ memlane graph --json
    """
    print_json(bank.graph())


@click.command("suggest-merges")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.85, show_default=True)
@click.option("--limit", "-n", type=click.IntRange(min=0), default=5, show_default=True)
@click.option("--type", default="journal", show_default=True, help="Only memories of this type; 'any' for all.")
@as_json
@with_bank
def suggest_merges(bank: Bank, threshold: float, limit: int, type: str, as_json: bool) -> None:
    """List groups of memories that say much the same. Changes nothing.

    \b
    $ memlane suggest-merges --type any
    """
    clusters = bank.suggest_merges(threshold, limit, None if type == "any" else type)
    if as_json:
        print_json([cluster.to_dict() for cluster in clusters])
    else:
        print_rows((f"{cluster.score:.2f}", " ".join(memory.id for memory in cluster.memories)) for cluster in clusters)


@click.command()
@as_json
@with_bank
def reindex(bank: Bank, as_json: bool) -> None:
    """Make the index anew. It is never needed: the index follows the files by itself.

    \b
    $ memlane reindex
    """
    shutil.rmtree(bank.root / "indices", ignore_errors=True)
    bank.index.refresh(force=True)
    count = sum(1 for _ in bank.index.every_memory())
    if as_json:
        print_json({"indexed": count})
    else:
        say(f"indexed {count} memories")
