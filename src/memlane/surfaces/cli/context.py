"""`memlane context`: memory for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import Count, order_option, where_option, with_bank, words_argument
from memlane.surfaces.cli.output import one_line, print_json, say

if TYPE_CHECKING:
    from memlane.recall.blocks import Block

BUDGET = 1000  # tokens about a prompt
explain_option = click.option("--explain", is_flag=True, help="List what was left out and why.")


@click.command()
@words_argument("prompt", required=False)
@click.option("--budget", type=Count(), help=f"At most so many tokens: {BUDGET} with a PROMPT, else everything.")
@click.option("--scope", "scopes", multiple=True, help="Leave out what is in others; may be repeated.")
@click.option("--relevant", is_flag=True, help="Only what the prompt is clearly about: exactly what hooks give it.")
@where_option
@order_option
@explain_option
@with_bank
def context(
    bank: Bank,
    prompt: str | None,
    budget: int | None,
    scopes: tuple[str, ...],
    relevant: bool,
    where: dict[str, Any] | None,
    order: str,
    explain: bool,
    as_json: bool,
) -> None:
    """Print what a PROMPT should know as one block; without one, what belongs in every prompt.

    Every prompt gets the vault's canon, its registers with a topic, your rules and preferences, and the notes with the
    tag `pinned`.

    \b
    $ memlane context "how do we deploy?" --budget 500
    $ memlane context --scope shared
    """
    if order != "best" and (prompt is None or relevant):
        raise click.UsageError("--order needs a PROMPT, and stands without --relevant.")
    if where and (prompt is None or relevant):
        raise click.UsageError("--where needs a PROMPT, and stands without --relevant.")
    if prompt is None:
        if relevant:
            raise click.UsageError("--relevant needs a PROMPT.")
        block = bank.snapshot(scopes or None, budget=budget)
    elif relevant:
        if scopes:
            raise click.UsageError("--relevant shows what hooks would: the scopes are those of the profile.")
        block = bank.for_prompt(prompt, budget=budget)
    else:
        budget = BUDGET if budget is None else budget
        block = bank.context(prompt, budget, scopes=scopes or None, where=where, order=order)
    print_block(block, explain, as_json)


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
