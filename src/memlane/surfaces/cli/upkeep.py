"""`memlane upkeep` and `memlane promote`: keeping a bank in good order."""

from __future__ import annotations

from collections.abc import Iterator

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput
from memlane.core.model import Plan
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import complete_id, id_argument, tag_option, text_argument, with_bank
from memlane.surfaces.cli.output import (
    print_json,
    print_rows,
    print_text,
    print_written,
    progress,
    say,
    say_notes,
    take_text,
)

_NOTES = 5  # how many of a plan's notes are shown


@click.command()
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=complete_id)
@click.option("--only", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@click.option("--lane", "lanes", type=click.Choice(NAMES), multiple=True, help="Only this lane; may be repeated.")
@click.option("--apply", "applied", is_flag=True, help="Do what needs no decision. Without this, it is only shown.")
@click.option("--show", is_flag=True, help="Show the memories that each item is about, side by side.")
@click.option("--check", is_flag=True, help="End with exit code 6 when there is something to do.")
@click.pass_context
@with_bank
def upkeep(
    bank: Bank,
    ctx: click.Context,
    items: tuple[str, ...],
    kinds: tuple[str, ...],
    lanes: tuple[str, ...],
    applied: bool,
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

    if applied and (show or check):
        raise click.UsageError("--apply excludes --show and --check.")
    folder, _ = ctx.find_root().obj
    plan = keeping.plan(bank, only=kinds, lanes=lanes, items=items, folder=folder, progress=progress)
    if show:
        _print_sides(bank, plan, as_json)
        return
    undecided = sum(isinstance(step, keeping.Item) and not step.safe for step in plan.steps)
    if applied:
        plan = bank.apply(plan)
    if as_json:
        print_json({"applied": applied, **plan.to_dict()})
    else:
        say_notes(plan.remarks[:_NOTES])
        if len(plan.remarks) > _NOTES:
            say(f"and {len(plan.remarks) - _NOTES:,} more notes: --json shows all")
        print_rows(_rows(plan, numbered=not items))
        _say_next(len(plan.steps), undecided, applied)
    if check and plan.steps:
        ctx.exit(6)


def _rows(plan: Plan, numbered: bool) -> Iterator[tuple[str, ...]]:
    for number, step in enumerate(plan.steps, 1):
        item = step.to_dict()
        first = (str(number),) if numbered else ()
        yield (*first, item.get("kind", ""), step.action, step.id, step.reason, item.get("command", ""))


def _say_next(steps: int, undecided: int, applied: bool) -> None:
    if applied:
        say(f"done: {steps:,}; `memlane undo` takes it back" if steps else "nothing was done")
    elif not steps:
        say("nothing to do")
    else:
        safe = steps - undecided
        say(f"nothing was changed; `memlane upkeep --apply` does what needs no decision: {safe:,}")
    if undecided:
        say(f"to be decided: {undecided:,}; the command at the end of each line shows what about")


def _print_sides(bank: Bank, plan: Plan, as_json: bool) -> None:
    """Print each item with the memories it is about, and the commands to decide with."""
    from memlane.care.upkeep import Item, sides, summary

    steps = [step for step in plan.steps if isinstance(step, Item)]
    if as_json:
        print_json([{**step.to_dict(), "memories": sides(bank, step)} for step in steps])
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
@text_argument
@tag_option
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
