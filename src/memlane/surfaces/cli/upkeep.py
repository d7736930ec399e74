"""`memlane upkeep`, `promote`, `prune`, `stale` and `validate`: keeping a bank in good order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import click

from memlane.bank import Bank
from memlane.care.prune import lanes_with_rules
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput
from memlane.core.model import Plan, Step
from memlane.lanes import NAMES
from memlane.surfaces.cli.output import (
    as_json,
    complete_id,
    id_argument,
    ids_argument,
    open_bank,
    print_json,
    print_problems,
    print_rows,
    print_text,
    print_written,
    progress,
    say,
    tag_option,
    take_text,
    with_bank,
)

_REMARKS = 5  # that are shown


@click.command()
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=complete_id)
@click.option("--only", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@click.option("--lane", "lanes", type=click.Choice(NAMES), multiple=True, help="Only this lane; may be repeated.")
@click.option("--apply", "apply_", is_flag=True, help="Do what needs no decision. Without this, it is only shown.")
@click.option("--show", is_flag=True, help="Show the memories that each item is about, side by side.")
@click.option("--check", is_flag=True, help="End with exit code 6 when there is something to do.")
@as_json
@click.pass_context
def upkeep(
    ctx: click.Context,
    items: tuple[str, ...],
    kinds: tuple[str, ...],
    lanes: tuple[str, ...],
    apply_: bool,
    show: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Show what the bank needs, as one plan over all lanes; with --apply, do what needs no decision.

    Kinds: prune, retention, duplicate, superseded, link, stale, drifted, size, register, empty, suspicious. An ITEM is
    an id, or a number of the list. Each line ends with the command that does this item alone, or that shows what has
    to be decided; such items are never applied. `memlane undo` takes back what was applied.

    \b
    $ memlane upkeep
    $ memlane upkeep --only duplicate --show
    $ memlane upkeep --apply
    """
    from memlane.care import upkeep as keeping

    if apply_ and (show or check):
        raise click.UsageError("--apply excludes --show and --check.")
    with open_bank(ctx) as bank:
        folder, _ = ctx.find_root().obj
        plan = keeping.plan(bank, only=kinds, lanes=lanes, items=items, folder=folder, progress=progress)
        if show:
            _print_sides(bank, plan, as_json)
            return
        left = [step for step in plan.steps if isinstance(step, keeping.Item) and not step.safe]
        if apply_:
            plan = bank.apply(plan)
    if as_json:
        print_json({"applied": apply_, **plan.to_dict()})
    else:
        for remark in plan.remarks[:_REMARKS]:
            say(f"note: {remark}")
        if len(plan.remarks) > _REMARKS:
            say(f"and {len(plan.remarks) - _REMARKS:,} more notes: --json shows all")
        print_rows(_rows(plan, numbered=not items))
        _say_next(plan, left, apply_)
    if check and plan.steps:
        ctx.exit(6)


def _rows(plan: Plan, numbered: bool) -> Iterator[tuple[str, ...]]:
    for number, step in enumerate(plan.steps, 1):
        own = step.to_dict()
        first = (str(number),) if numbered else ()
        yield (*first, own.get("kind", ""), step.action, step.id, step.reason, own.get("command", ""))


def _say_next(plan: Plan, left: Sequence[Step], applied: bool) -> None:
    if applied:
        say(f"done: {len(plan.steps):,}; `memlane undo` takes it back" if plan.steps else "nothing was done")
    elif not plan.steps:
        say("nothing to do")
    else:
        safe = len(plan.steps) - len(left)
        say(f"nothing was changed; `memlane upkeep --apply` does what needs no decision: {safe:,}")
    if left:
        say(f"to be decided: {len(left):,}; the command at the end of each line shows what about")


def _print_sides(bank: Bank, plan: Plan, as_json: bool) -> None:
    """Each item with the memories it is about, and the commands to decide with."""
    from memlane.care.upkeep import Item, sides, summary

    steps = [step for step in plan.steps if isinstance(step, Item)]
    if as_json:
        print_json([{**step.to_dict(), "memories": [side.to_dict() for side in sides(bank, step)]} for step in steps])
        return
    for step in steps:
        print_rows([(step.id, step.reason)])
        for side in sides(bank, step):
            print_rows([(f"== {side.id}", iso(side.updated_at or side.created_at) or "no date", side.title)])
            print_text(summary(side))
        for option in step.options if not step.safe else (step.command,):
            say(f"next: {option}")


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
    bank.anchor(memory.id)
    print_written(bank.get(f"vault:{record.id}"), as_json, "canon now, in")


@click.command()
@click.option(
    "--lane", "lanes", type=click.Choice(lanes_with_rules()), multiple=True, help="Only this lane; may be repeated."
)
@click.option("--apply", "apply_", is_flag=True, help="Do it. Without this, it is only shown.")
@click.option("--dry-run", is_flag=True, help="Only show it, as without --apply.")
@as_json
@with_bank
def prune(bank: Bank, lanes: tuple[str, ...], apply_: bool, dry_run: bool, as_json: bool) -> None:
    """Show what the lanes' own rules would archive or delete; with --apply, do it.

    The vault's duplicates, noise and forgotten registers; what is too much for a topic file; a layer's old reviews,
    sessions and resolved issues. Notes and records have no such rule. Nothing is lost: `memlane undo` takes it back.
    To delete only some of what is shown, use `memlane rm`.

    \b
    $ memlane prune
    $ memlane prune --lane topics --apply
    """
    from memlane.care import prune as pruning

    if apply_ and dry_run:
        raise click.UsageError("--apply and --dry-run exclude each other.")
    plan = pruning.plan(bank, lanes or lanes_with_rules())
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
        say("done; `memlane undo` takes it back")
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
    from memlane.care.ages import ages

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
    from memlane.care.validate import validate as check

    if ids and lane:
        raise click.UsageError("Give ids or --lane, not both.")
    problems = check(bank, ids, lane=lane, progress=partial(progress, label="validating"))
    print_problems(problems, as_json)
    if not problems and not as_json:
        say("everything is as it should be")
