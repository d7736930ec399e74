"""`memlane doctor`: what is wrong with the bank, and how to repair it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlane.bank import Bank
from memlane.core.errors import NotEnabled, StorageError
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import as_json, complete_id, open_bank, with_bank
from memlane.surfaces.cli.output import (
    Styled,
    echo,
    one_line,
    print_json,
    print_line,
    print_problems,
    print_result,
    say,
    say_under,
    so_many,
)
from memlane.surfaces.cli.progress import each, progress
from memlane.surfaces.resident import is_ready

if TYPE_CHECKING:
    from memlane.care.audit import Leak
    from memlane.care.doctor import Report

SHOWN = 5  # findings of each check that are printed; the rest are counted
LARGE = 1_000  # memories; of fewer, it is not worth a word how they are read
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_id)
@click.option("--only", metavar="CHECK", help="Only this check: damage, format, secrets, or another that is reported.")
@click.option("--lane", type=click.Choice(NAMES), help="With --only format: only this lane.")
@click.option("--history", is_flag=True, help="With --only secrets: look through the git history instead.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without touching a memory.")
@click.option("--deep", is_flag=True, help="Read every byte again, and compare the index with one made anew.")
@click.option("--reindex", is_flag=True, help="Only make the index anew. It follows the files by itself otherwise.")
@click.pass_context
@as_json
def doctor(
    ctx: click.Context,
    names: tuple[str, ...],
    only: str | None,
    lane: str | None,
    history: bool,
    fix: bool,
    deep: bool,
    reindex: bool,
    as_json: bool,
) -> None:
    """Look for everything that can be wrong with the bank, and say what mends it. Exit code 6 when there are errors.

    What has not changed since it was last looked at is not read again; --deep reads everything.

    Three checks can be had by themselves, with all that they find. --only damage: files and lines that cannot be read;
    exit code 6. --only format: what breaks the rules of the lanes' formats, in the bank or in the memories that are
    named; exit code 6. --only secrets: secrets and personal data, in the bank or in the files and folders that are
    named; exit code 4.

    \b
    $ memlane doctor
    $ memlane doctor --fix
    $ memlane doctor --only format notes:deploy-day
    $ memlane doctor --only secrets ~/notes --json
    """
    _check_usage(only, names=names, lane=lane, history=history, fix=fix, deep=deep, reindex=reindex)
    if reindex:
        _reindex(as_json=as_json)
    elif only == "damage":
        _damage(as_json=as_json)
    elif only == "format":
        _format(names, lane, as_json=as_json)
    elif only == "secrets":
        _secrets(ctx, [Path(name) for name in names], history, as_json)
    else:
        _examine(ctx, only, fix, deep, as_json)


def _check_usage(only: str | None, **given: object) -> None:
    """Raise UsageError for options that do not go together."""
    used = {name for name, value in given.items() if value}
    takes = {"damage": set(), "format": {"names", "lane"}, "secrets": {"names", "history"}}
    allowed = takes.get(only or "", {"fix", "deep"}) | ({"reindex"} if only is None else set())
    if wrong := sorted(used - allowed):
        what = "a NAME" if wrong[0] == "names" else f"--{wrong[0]}"
        why = f"--only {only} does not take {what}." if only else f"{what} needs --only; --help says which."
        raise click.UsageError(f"{why[0].upper()}{why[1:]}")
    if "reindex" in used and len(used) > 1:
        raise click.UsageError("--reindex stands alone.")
    if given["names"] and given["lane"]:
        raise click.UsageError("Give ids or --lane, not both.")


def _examine(ctx: click.Context, only: str | None, fix: bool, deep: bool, as_json: bool) -> None:
    """Run all checks, or one."""
    from memlane.care.doctor import examine, treat
    from memlane.surfaces.clients.health import CHECK

    folder, flags = ctx.find_root().obj
    report = examine(folder, flags, only=only, deep=deep, more=[CHECK])
    if fix:
        report = treat(report, flags, only=only, deep=deep, more=[CHECK])
    if as_json:
        print_json(report)
    else:
        _print(report, deep)
    if report.counts["error"]:
        ctx.exit(6)


@with_bank
def _reindex(bank: Bank, as_json: bool) -> None:
    from memlane.disk import derived

    derived.remove(bank.root)
    bank.index.refresh(force=True)
    count = len(bank.index.ids())
    print_result({"indexed": count}, as_json, talk=f"indexed {so_many(count)}")


@with_bank
def _damage(bank: Bank, as_json: bool) -> None:
    print_problems(bank.problems(), as_json)


@with_bank
def _format(bank: Bank, ids: tuple[str, ...], lane: str | None, as_json: bool) -> None:
    from memlane.care.validate import validate

    print_problems(validate(bank, ids, lane=lane), as_json)
    if not as_json:
        say("everything is as it should be")


def _secrets(ctx: click.Context, places: list[Path], history: bool, as_json: bool) -> None:
    """Look for secrets in these places, or else in the bank, which need not be there if there are places."""
    from memlane.care import audit
    from memlane.gate import DEFAULT

    guard = DEFAULT
    try:
        bank = open_bank(ctx)
    except NotEnabled:
        if not places:
            raise
    else:
        guard = bank.guard
        places = places or _places(bank)
    leaks: list[Leak] = []
    unread = 0
    if history:
        for place in places:
            folder = place if place.is_dir() else place.parent
            with progress("looking through versions") as report:
                for number, version_leaks in enumerate(audit.scan_history(folder, guard), 1):
                    leaks += version_leaks
                    report(number)
    else:
        names = [name for place in places for name in audit.files_of(place)]
        for name in each(names, "looking for secrets"):
            try:
                leaks += audit.scan_file(name, guard)
            except StorageError as error:
                unread += 1
                say(f"not looked at: {error}")
    if as_json:
        print_json(leaks)
    else:
        for leak in leaks:
            print_line(str(leak))
        say(f"{len(leaks)} findings" if leaks else "nothing found")
        if leaks:
            say('if one is no secret: `memlane gate allow FINGERPRINT --reason "…"`, with what stands in brackets')
    if leaks or unread:
        ctx.exit(4 if leaks else 1)


def _places(bank: Bank) -> list[Path]:
    """The bank's folder and the lanes that lie outside it."""
    roots = [bank.root, *(bank.config.lane_root(name) for name in NAMES)]
    return [
        root for root in dict.fromkeys(roots) if root.exists() and (root == bank.root or bank.root not in root.parents)
    ]


def _print(report: Report, deep: bool) -> None:
    for finding in report.mended:
        say(f"mended: {_near(finding.where)}: {finding.why}")
    shown: Counter[str] = Counter()
    for finding in report.findings:
        shown[finding.check] += 1
        if shown[finding.check] > SHOWN:
            continue
        mark = Styled(f"{finding.severity}:", _COLOURS[finding.severity])
        where = f"{_near(finding.where)}: " if finding.where else ""
        echo(mark, f" {where}{one_line(finding.why)} [{finding.check}]")
        if finding.fix:
            click.echo(f"  {one_line(finding.fix)}")
    for check, count in shown.items():
        if count > SHOWN:
            say(f"and {count - SHOWN} more of [{check}]: --json shows all")
    say(_summary(report))
    if report.inventory.count >= LARGE and not deep:
        say("files that have not changed were not read again: --deep reads everything")
    if bank := report.inventory.opened:
        say_under(bank)
    if is_ready():
        say("hooks are answered by a process of a running server")


def _near(where: str) -> str:
    """A path, relative to the current folder if it is below it."""
    return one_line(where.removeprefix(os.getcwd() + os.sep))


def _summary(report: Report) -> str:
    count = report.inventory.count
    memories = f"{count:,} {'memory' if count == 1 else 'memories'}"
    if not report.findings:
        return f"all is well: {memories}, nothing found"
    words = [
        f"{count:,} {name}{'s' * (count > 1 and name != 'info')}" for name, count in report.counts.items() if count
    ]
    fixable = sum(finding.fixable for finding in report.findings)
    mend = f"; {report.inventory.command('doctor', '--fix')} mends {fixable:,}" if fixable and not report.mended else ""
    return f"{', '.join(words)} in {memories}{mend}"
