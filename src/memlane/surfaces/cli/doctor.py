"""`memlane doctor`: what is wrong with the bank, and how to repair it."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import Styled, echo, one_line, print_json, progress, say

if TYPE_CHECKING:
    from memlane.care.doctor import Report

SHOWN = 5  # findings of each check that are printed; the rest are counted
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended without touching a memory.")
@click.option("--deep", is_flag=True, help="Compare the index with one made anew; takes as long as indexing.")
@click.pass_context
@as_json
def doctor(ctx: click.Context, fix: bool, deep: bool, as_json: bool) -> None:
    """Look for everything that can be wrong with the bank, and say what mends it. Exit code 6 when there are errors.

    \b
    $ memlane doctor
    $ memlane doctor --fix
    """
    from memlane.care.doctor import examine, treat
    from memlane.surfaces.clients.health import CHECK

    folder, flags = ctx.find_root().obj
    report = examine(folder, flags, deep=deep, progress=progress, more=[CHECK])
    if fix:
        report = treat(report, flags, deep=deep, progress=progress, more=[CHECK])
    if as_json:
        print_json(report)
    else:
        _print(report)
    if report.counts["error"]:
        ctx.exit(6)


def _print(report: Report) -> None:
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


def _near(where: str) -> str:
    """A path, relative to the current folder if it is below it."""
    return one_line(where.removeprefix(os.getcwd() + os.sep))


def _summary(report: Report) -> str:
    count = len(report.inventory.memories)
    memories = f"{count:,} {'memory' if count == 1 else 'memories'}"
    if not report.findings:
        return f"all is well: {memories}, nothing found"
    words = [
        f"{count:,} {name}{'s' * (count > 1 and name != 'info')}" for name, count in report.counts.items() if count
    ]
    fixable = sum(finding.fixable for finding in report.findings)
    mend = f"; {report.inventory.command('doctor', '--fix')} mends {fixable:,}" if fixable and not report.mended else ""
    return f"{', '.join(words)} in {memories}{mend}"
