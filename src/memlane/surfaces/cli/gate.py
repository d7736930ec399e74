"""`memlane gate` and `memlane audit`: what may be remembered, and what should not have been."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.care import audit as audits
from memlane.core.errors import NotEnabled, Refused, StorageError
from memlane.core.instructions import suspicious
from memlane.gate import DEFAULT
from memlane.lanes import NAMES
from memlane.surfaces.cli.bank import field_option, fields_of
from memlane.surfaces.cli.output import as_json, open_bank, print_json, print_rows, progress, say, take_text, with_bank


@click.group()
def gate() -> None:
    """The gate: the checks a text passes before it is stored.

    \b
    $ memlane gate show
    """


@gate.command()
@as_json
@with_bank
def show(bank: Bank, as_json: bool) -> None:
    """Print each lane's checks in their order; the first refusal wins.

    \b
    $ memlane gate show
    """
    table = {
        name: [
            {"check": check.__name__, "what": (check.__doc__ or "").strip().splitlines()[0]}
            for check in bank.lane(name).checks
        ]
        for name in NAMES
    }
    if as_json:
        print_json(table)
    else:
        print_rows(
            (name, str(number), row["check"], row["what"])
            for name, rows in table.items()
            for number, row in enumerate(rows, 1)
        )


@gate.command()
@click.argument("text", required=False)
@click.option("--lane", type=click.Choice(NAMES), default="notes", show_default=True)
@click.option("--title")
@click.option("--scope")
@field_option
@click.pass_context
@as_json
@with_bank
def test(
    bank: Bank, ctx: click.Context, text: str | None, lane: str, pairs: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Say what the gate would do with TEXT (or `-`, what is piped in), and why. Stores nothing; exit code 4 if refused.

    \b
    $ memlane gate test - < note.md
    """
    given = take_text(text)
    try:
        draft = bank.check(given, lane=lane, **options, **fields_of(pairs))
    except Refused as refusal:
        if as_json:
            print_json({"accepted": False, **refusal.to_dict()})
        else:
            say(f"{lane} would refuse it at the check {refusal.check!r}.")
            click.echo(str(refusal))
            say(f"next: {refusal.hint}")
        ctx.exit(4)
    marks = list(suspicious(draft.text))
    if as_json:
        print_json({"accepted": True, "remarks": list(draft.remarks), "suspicious": marks})
        return
    click.echo(f"{lane} would store it.")
    for remark in draft.remarks:
        say(f"note: {remark}")
    for mark in marks:
        say(f"suspicious: it {mark}")


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--history", is_flag=True, help="Look through the git history instead.")
@click.pass_context
@as_json
def audit(ctx: click.Context, path: Path | None, history: bool, as_json: bool) -> None:
    """Look for secrets and personal data in PATH (default: the bank). Exit code 4 when there are any.

    \b
    $ memlane audit
    $ memlane audit ~/notes --json
    $ memlane audit --history
    """
    guard = DEFAULT
    places = [path] if path else []
    try:
        bank = open_bank(ctx)
    except NotEnabled:
        if not path:
            raise
    else:
        guard = bank.guard
        places = places or _places(bank)
    leaks: list[audits.Leak] = []
    unread = 0
    if history:
        for place in places:
            for done, found in enumerate(audits.scan_history(place if place.is_dir() else place.parent, guard), 1):
                leaks += found
                if sys.stderr.isatty() and done % 500 == 0:
                    say(f"audited {done} versions")
    else:
        names = [name for place in places for name in audits.files_of(place)]
        for name in progress(names, "auditing"):
            try:
                leaks += audits.scan_file(name, guard)
            except StorageError as error:
                unread += 1
                say(f"not audited: {error}")
    if as_json:
        print_json([leak.to_dict() for leak in leaks])
    else:
        for leak in leaks:
            click.echo(str(leak))
        say(f"{len(leaks)} findings" if leaks else "nothing found")
    if leaks or unread:
        ctx.exit(4 if leaks else 1)


def _places(bank: Bank) -> list[Path]:
    """The bank's folder and the lanes that lie outside it."""
    roots = [bank.root, *(bank.config.lane_root(name) for name in NAMES)]
    return [
        root for root in dict.fromkeys(roots) if root.exists() and (root == bank.root or bank.root not in root.parents)
    ]
