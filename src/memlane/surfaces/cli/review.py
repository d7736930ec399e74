"""`memlane review`: whether what the bank says is still right, and keeping it in good order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.model import Plan, Step
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import Count, complete_id, with_bank
from memlane.surfaces.cli.output import (
    print_json,
    print_result,
    print_rows,
    print_text,
    say,
    say_notes,
    say_under,
)

_NOTES = 5  # how many of a plan's notes are shown
_SIMILAR = {"threshold": 0.85, "limit": 5, "type": None}


@click.command()
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=complete_id)
@click.option("--only", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@click.option("--lane", "lanes", type=click.Choice(NAMES), multiple=True, help="Only this lane; may be repeated.")
@click.option("--apply", "applied", is_flag=True, help="Do what needs no decision. Without this, it is only shown.")
@click.option("--show", is_flag=True, help="Show the memories that each item is about; of drifted ones, the code.")
@click.option("--accept", is_flag=True, help="The memories with these ids are right about the code as it is now.")
@click.option("--all", "everything", is_flag=True, help="With --only stale or drifted: all; with --accept: all ids.")
@click.option("--key", type=click.Choice([*"krtmx"]), help="With --only unconfirmed: what to do with these ids.")
@click.option("--check", is_flag=True, help="End with exit code 6 when there is something to do.")
@click.option("--threshold", type=click.FloatRange(0, 1), help="With --only similar: how much alike; else 0.85.")
@click.option("--limit", "-n", type=Count(), help="With --only similar: so many groups at most; else 5.")
@click.option("--type", help="With --only similar: only memories of this type.")
@with_bank
def review(bank: Bank, as_json: bool, **options: Any) -> None:
    """Show what the bank needs, as one plan over all lanes; with --apply, do what needs no decision.

    Kinds: expired, prune, retention, duplicate, superseded, versions, link, stale, drifted, size, register, empty,
    suspicious, wrong.
    An ITEM is an id, or a number of the list. Each line ends with the command that does this item alone, or that shows
    what has to be decided; such items are never applied. `memlane undo` takes back what was applied.

    --only drifted --show compares the code that memories speak of with what it was when they were written. It has
    drifted, is moved to another file, or orphaned: gone. Only --accept, or writing the memory anew, makes the memory
    fresh again. What was never compared, such as memories that came by git, is compared from now on.

    --only unconfirmed goes through what was distilled from sessions, one by one, each decided by a single key: keep,
    edit, make it a rule, merge, reject, or take the place of what it contradicts. --key does the same without a
    terminal. What was rejected is not distilled again, in the same words or nearly.

    --only stale --all lists how old everything is that a lane's rules let age; --only similar lists groups of memories
    that say much the same.

    \b
    $ memlane review
    $ memlane review --only duplicate --show
    $ memlane review --apply
    $ memlane review --accept notes:auth-plan
    $ memlane review --only unconfirmed
    $ memlane review --only unconfirmed --key k notes:private/distilled/importer-fails
    """
    similar = {name: value for name in _SIMILAR if (value := options.pop(name)) is not None}
    asked = _Asked(**options, similar=similar)
    asked.check_usage()
    if asked.accept or (asked.kinds == ("drifted",) and (asked.show or asked.everything)):
        _print_code(bank, asked.items, asked.accept, asked.everything, asked.check, as_json)
    elif asked.kinds == ("stale",) and asked.everything:
        _print_ages(bank, asked.lanes, as_json)
    elif asked.kinds == ("unconfirmed",):
        from memlane.surfaces.cli.confirm import decide, go_through

        if asked.key:
            decide(bank, asked.items, asked.key, as_json)
        else:
            go_through(bank, asked.items, as_json)
    elif asked.kinds == ("similar",):
        clusters = bank.suggest_merges(**{**_SIMILAR, **similar})
        rows = ((f"{cluster.score:.2f}", " ".join(memory.id for memory in cluster.memories)) for cluster in clusters)
        print_result(clusters, as_json, rows, talk="" if clusters else "nothing is that similar")
    else:
        _print_plan(bank, asked, as_json)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a review was asked for."""

    items: tuple[str, ...]
    kinds: tuple[str, ...]
    lanes: tuple[str, ...]
    applied: bool
    show: bool
    accept: bool
    everything: bool
    key: str | None
    check: bool
    similar: dict[str, Any]

    def check_usage(self) -> None:
        """Raise UsageError for options that do not go together."""
        if self.applied and (self.show or self.check):
            raise click.UsageError("--apply excludes --show and --check.")
        if self.accept and (self.kinds or self.lanes or self.applied or self.show or self.check or self.similar):
            raise click.UsageError("--accept takes ids, or --all, and nothing else.")
        if self.accept and bool(self.items) == self.everything:
            raise click.UsageError("--accept needs the ids of memories; --accept --all means all of them.")
        if self.everything and not self.accept and (self.kinds not in (("stale",), ("drifted",)) or self.applied):
            raise click.UsageError("--all needs --only stale, --only drifted or --accept.")
        if self.everything and self.kinds == ("stale",) and (self.items or self.show or self.check):
            raise click.UsageError("--only stale --all takes --lane, and nothing else.")
        if self.kinds == ("drifted",) and (self.show or self.everything) and (self.lanes or self.applied):
            raise click.UsageError("--only drifted --show takes ids, --all and --check, and nothing else.")
        if "unconfirmed" in self.kinds and (self.kinds[1:] or self.lanes or self.applied or self.show or self.check):
            raise click.UsageError("--only unconfirmed takes ids and --key, and nothing else.")
        if self.key and not (self.kinds == ("unconfirmed",) and self.items):
            raise click.UsageError("--key needs --only unconfirmed and the ids of memories.")
        if "similar" in self.kinds:
            if self.kinds != ("similar",) or self.items or self.lanes or self.applied or self.show or self.check:
                raise click.UsageError("--only similar takes --threshold, --limit and --type, and nothing else.")
        elif self.similar:
            raise click.UsageError(f"--{next(iter(self.similar))} needs --only similar.")


def _print_plan(bank: Bank, asked: _Asked, as_json: bool) -> None:
    from memlane.care import review as reviewing

    ctx = click.get_current_context()
    folder, _ = ctx.find_root().obj
    plan = reviewing.plan(bank, only=asked.kinds, lanes=asked.lanes, items=asked.items, folder=folder)
    if asked.show:
        _print_sides(bank, plan, as_json)
    else:
        undecided = sum(isinstance(step, reviewing.Item) and not step.safe for step in plan.steps)
        if asked.applied:
            plan = bank.apply(plan)
        if as_json:
            print_json({"applied": asked.applied, **plan.to_dict()})
        else:
            say_notes(plan.remarks[:_NOTES])
            if len(plan.remarks) > _NOTES:
                say(f"and {len(plan.remarks) - _NOTES:,} more notes: --json shows all")
            print_rows(map(_row, plan.steps), numbered=not asked.items)
            _say_next(len(plan.steps), undecided, asked.applied)
            say_under(bank)
    if asked.check and plan.steps:
        ctx.exit(6)


def _row(step: Step) -> tuple[str, ...]:
    kind, command = (getattr(step, name, "") for name in ("kind", "command"))
    return kind, step.action, step.id, step.reason, command


def _say_next(steps: int, undecided: int, applied: bool) -> None:
    if applied:
        say(f"done: {steps:,}; `memlane undo` takes it back" if steps else "nothing was done")
    elif not steps:
        say("nothing to do")
    else:
        safe = steps - undecided
        say(f"nothing was changed; `memlane review --apply` does what needs no decision: {safe:,}")
    if undecided:
        say(f"to be decided: {undecided:,}; the command at the end of each line shows what about")


def _print_sides(bank: Bank, plan: Plan, as_json: bool) -> None:
    """Print each item with the memories it is about, and the commands to decide with."""
    from memlane.care.review import Item, sides, summary

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


def _print_code(bank: Bank, ids: tuple[str, ...], accept: bool, everything: bool, check: bool, as_json: bool) -> None:
    """Print what became of the code that memories speak of, after accepting it if that is asked for."""
    from memlane.care.fresh import verdicts

    chosen = list(ids) or None
    result = verdicts.accept(bank, chosen) if accept else verdicts.report(bank, chosen)
    not_fresh = [verdict for verdict in result.verdicts if verdict.verdict != verdicts.FRESH]
    if as_json:
        print_json(result)
    else:
        for verdict in result.verdicts if ids or (everything and not accept) else not_fresh:
            places = verdict.why or ", ".join(f"{f.target}:{f.symbol}".rstrip(":") for f in verdict.findings)
            print_rows([(verdict.id, verdict.verdict, places)])
            for finding in verdict.findings:
                for line in finding.diff.splitlines():
                    click.echo(f"    {line}")
        say_notes(result.remarks)
        if result.anchored:
            say(f"anchored now: {result.anchored:,}")
        counts = [f"{count:,} {word}" for word, count in result.counts().items() if count]
        say(", ".join(counts) or "nothing remembered yet")
        if any(verdict.verdict == verdicts.MOVED for verdict in not_fresh):
            say("`memlane review --accept ID` follows what has moved, and says that the memory is right")
        elif not_fresh:
            say("look, mend the memory if it is wrong, then `memlane review --accept ID`")
    if check and not_fresh:
        click.get_current_context().exit(6)


def _print_ages(bank: Bank, lanes: tuple[str, ...], as_json: bool) -> None:
    """Print how long ago each memory was confirmed that a rule of staleness applies to, the oldest first."""
    from memlane.care.ages import ages

    found = [age for age in ages(bank) if not lanes or age.id.partition(":")[0] in lanes]
    rows = (
        (age.id, age.band, age.updated_at or "no date", "" if age.days is None else f"{age.days} days") for age in found
    )
    print_result(found, as_json, rows, talk="" if found else "no rule lets anything age here")
