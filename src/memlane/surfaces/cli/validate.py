"""`memlane validate` and `memlane problems`: files that break their format's rules, or cannot be read."""

from __future__ import annotations

from functools import partial

import click

from memlane.bank import Bank
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import ids_argument, with_bank
from memlane.surfaces.cli.output import print_problems, progress, say


@click.command()
@ids_argument(required=False)
@click.option("--lane", type=click.Choice(NAMES), help="Only this lane.")
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
    print_problems(check(bank, ids, lane=lane, progress=partial(progress, label="validating")), as_json)
    if not as_json:
        say("everything is as it should be")


@click.command()
@with_bank
def problems(bank: Bank, as_json: bool) -> None:
    """List damaged files and lines; everything else keeps working. Exit code 6 when there are any.

    \b
    $ memlane problems
    """
    print_problems(bank.problems(), as_json)
