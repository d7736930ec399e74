"""`memlane prune` and `memlane stale`: what the lanes' own rules call superfluous or old."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.care.prune import lanes_with_rules
from memlane.core.model import Plan
from memlane.surfaces.cli.options import apply_option, with_bank
from memlane.surfaces.cli.output import print_plan, print_result


@click.command()
@click.option(
    "--lane", "lanes", type=click.Choice(lanes_with_rules()), multiple=True, help="Only this lane; may be repeated."
)
@apply_option
@click.option("--dry-run", is_flag=True, help="Only show it, as without --apply.")
@with_bank
def prune(bank: Bank, lanes: tuple[str, ...], applied: bool, dry_run: bool, as_json: bool) -> None:
    """Show what the lanes' own rules would archive or delete; with --apply, do it.

    The vault's duplicates, noise and forgotten registers; what is too much for a topic file; a layer's old reviews,
    sessions and resolved issues. Notes and records have no such rule. Nothing is lost: `memlane undo` takes it back.
    To delete only some of what is shown, use `memlane rm`.

    \b
    $ memlane prune
    $ memlane prune --lane topics --apply
    """
    print_pruned(bank, bank.prune(*lanes), applied, dry_run, as_json)


def print_pruned(bank: Bank, plan: Plan, applied: bool, dry_run: bool, as_json: bool) -> None:
    """Print what would be pruned; with `applied`, carry it out and print what was done."""
    from memlane.care import prune as pruning

    if applied and dry_run:
        raise click.UsageError("--apply and --dry-run exclude each other.")
    if applied:
        plan = pruning.apply(bank, plan)
    if not plan.steps:
        talk = "nothing to prune"
    else:
        done = "done; `memlane undo` takes it back"
        talk = done if applied else "nothing was changed; --apply does this"
    print_plan(plan, as_json, applied, talk)


@click.command()
@click.option("--all", "everything", is_flag=True, help="What is fresh, too.")
@with_bank
def stale(bank: Bank, everything: bool, as_json: bool) -> None:
    """List memory that nobody has confirmed for long, the oldest first.

    Layers: aging after 30 days, stale after 90, by their Last Updated line. Vault: registers without a topic that were
    not updated for 90 days. Notes, topics and records have no such rule; `memlane list` shows their dates.

    \b
    $ memlane stale
    """
    from memlane.care.ages import ages

    old = [age for age in ages(bank) if everything or age.band != "fresh"]
    rows = (
        (age.id, age.band, age.updated_at or "no date", "" if age.days is None else f"{age.days} days") for age in old
    )
    print_result(old, as_json, rows, talk="" if old else "nothing is stale")
