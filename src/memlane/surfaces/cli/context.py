"""Memory for a prompt: context and snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import with_bank
from memlane.surfaces.cli.output import one_line, print_json, say

if TYPE_CHECKING:
    from memlane.recall.blocks import Block

scope_option = click.option("--scope", "scopes", multiple=True, help="Leave out what is in others; may be repeated.")
explain_option = click.option("--explain", is_flag=True, help="List what was left out and why.")


@click.command()
@click.argument("query")
@click.option("--budget", type=click.IntRange(min=0), default=1000, show_default=True, help="At most so many tokens.")
@scope_option
@click.option("--relevant", is_flag=True, help="Only what is clearly about the query, as hooks inject it.")
@explain_option
@with_bank
def context(
    bank: Bank, query: str, budget: int, scopes: tuple[str, ...], relevant: bool, explain: bool, as_json: bool
) -> None:
    """Print the memories that a prompt should know of as one block, ready to be put into it.

    \b
    $ memlane context "how do we deploy?" --budget 500
    """
    from memlane.recall.blocks import RELEVANT

    block = bank.context(query, budget, scopes=scopes or None, least=RELEVANT if relevant else 0.0)
    print_block(block, explain, as_json)


@click.command()
@click.option("--budget", type=click.IntRange(min=0), help="At most so many tokens; else everything.")
@scope_option
@explain_option
@with_bank
def snapshot(bank: Bank, budget: int | None, scopes: tuple[str, ...], explain: bool, as_json: bool) -> None:
    """Print what belongs into every prompt: canon, registers with a topic, notes with the tag `pinned`.

    \b
    $ memlane snapshot --scope shared
    """
    print_block(bank.snapshot(scopes or None, budget=budget), explain, as_json)


def print_block(block: Block, explain: bool, as_json: bool) -> None:
    if as_json:
        print_json(block.to_dict())
        return
    click.echo(str(block), nl=False)
    if explain:
        count = len(block.memories)
        say(f"{count} {'memory' if count == 1 else 'memories'}, {block.tokens} tokens; {len(block.left_out)} left out")
        for item in block.left_out:
            say(f"  {one_line(item.id)}: {one_line(item.why)}")
