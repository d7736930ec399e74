"""`memlane promote`, `prune`, `stale` and `validate`: keeping a bank in good order."""

from __future__ import annotations

from functools import partial

import click

from memlane.bank import Bank
from memlane.cli.output import (
    as_json,
    id_argument,
    ids_argument,
    print_json,
    print_problems,
    print_rows,
    print_written,
    progress,
    say,
    tag_option,
    take_text,
    with_bank,
)
from memlane.errors import InvalidInput
from memlane.lanes import NAMES
from memlane.prune import LANES


@click.command()
@id_argument
@click.argument("text", required=False)
@tag_option
@as_json
@with_bank
def promote(bank: Bank, id: str, text: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """Make a vault register canon: it stays until somebody changes it. With TEXT, in these words.

    \b
    $ memlane promote vault:3f9a1c0b7d2e "We ship on Tuesdays."
    """
    memory = bank.get(id)
    if memory.lane != "vault":
        raise InvalidInput("Only a register of the vault can be promoted.", hint="`memlane vault list` shows them.")
    given = memory.text if text is None else take_text(text)
    record = bank.vault.promote_to_canon(memory.native_id, given, list(tags) or None)
    print_written(bank.get(f"vault:{record.id}"), as_json, "canon now, in")


@click.command()
@click.option("--lane", "lanes", type=click.Choice(LANES), multiple=True, help="Only this lane; may be repeated.")
@click.option("--apply", "apply_", is_flag=True, help="Do it. Without this, it is only shown.")
@click.option("--dry-run", is_flag=True, help="Only show it, as without --apply.")
@as_json
@with_bank
def prune(bank: Bank, lanes: tuple[str, ...], apply_: bool, dry_run: bool, as_json: bool) -> None:
    """Show what the lanes' own rules would archive or delete; with --apply, do it.

    The vault's duplicates, noise and forgotten registers; what is too much for a topic file; a layer's old reviews,
    sessions and resolved issues. Notes and records have no such rule. Nothing is lost: `memlane restore` and the
    archives bring it back. To delete only some of what is shown, use `memlane rm`.

    \b
    $ memlane prune
    $ memlane prune --lane topics --apply
    """
    from memlane import prune as pruning

    if apply_ and dry_run:
        raise click.UsageError("--apply and --dry-run exclude each other.")
    plan = pruning.plan(bank, lanes or LANES)
    if apply_:
        plan = pruning.apply(bank, plan)
    if as_json:
        print_json({"applied": apply_, **plan.to_dict()})
        return
    for remark in plan.remarks:
        say(f"note: {remark}")
    print_rows((step.id, step.action, step.reason, step.title) for step in plan.steps)
    if not plan.steps:
        say("nothing to prune")
    elif apply_:
        say("done")
    else:
        say("nothing was changed; `memlane prune --apply` does this")


@click.command()
@click.option("--all", "everything", is_flag=True, help="What is fresh, too.")
@as_json
@with_bank
def stale(bank: Bank, everything: bool, as_json: bool) -> None:
    """List memory that nobody has confirmed for long, the oldest first.

    Layers: aging after 30 days, stale after 90, by their Last Updated line. Vault: registers without a topic that were
    not updated for 90 days. Notes, topics and records have no such rule; `memlane list` shows their dates.

    \b
    $ memlane stale
    """
    from memlane.stale import ages

    found = [age for age in ages(bank) if everything or age.band != "fresh"]
    if as_json:
        print_json([age.to_dict() for age in found])
        return
    print_rows(
        (age.id, age.band, age.updated_at or "no date", "" if age.days is None else f"{age.days} days") for age in found
    )
    if not found:
        say("nothing is stale")


@click.command()
@ids_argument(required=False)
@click.option("--lane", type=click.Choice(NAMES), help="Only this lane.")
@as_json
@with_bank
def validate(bank: Bank, ids: tuple[str, ...], lane: str | None, as_json: bool) -> None:
    """Check the bank, or the files of some memories, against the rules of the lanes' formats. Exit code 6 for findings.

    \b
    $ memlane validate
    $ memlane validate notes:deploy-day --json
    """
    from memlane.validate import validate as check

    if ids and lane:
        raise click.UsageError("Give ids or --lane, not both.")
    problems = check(bank, ids, lane=lane, progress=partial(progress, label="validating"))
    print_problems(problems, as_json)
    if not problems and not as_json:
        say("everything is as it should be")
