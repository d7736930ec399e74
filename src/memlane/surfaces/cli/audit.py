"""`memlane audit`: secrets and personal data that should not have been remembered."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memlane.bank import Bank
from memlane.care import audit as audits
from memlane.core.errors import NotEnabled, StorageError
from memlane.gate import DEFAULT
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import as_json, open_bank
from memlane.surfaces.cli.output import print_json, print_line, progress, say


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
            folder = place if place.is_dir() else place.parent
            for number, version_leaks in enumerate(audits.scan_history(folder, guard), 1):
                leaks += version_leaks
                if sys.stderr.isatty() and number % 500 == 0:
                    say(f"audited {number} versions")
    else:
        names = [name for place in places for name in audits.files_of(place)]
        for name in progress(names, "auditing"):
            try:
                leaks += audits.scan_file(name, guard)
            except StorageError as error:
                unread += 1
                say(f"not audited: {error}")
    if as_json:
        print_json(leaks)
    else:
        for leak in leaks:
            print_line(str(leak))
        say(f"{len(leaks)} findings" if leaks else "nothing found")
    if leaks or unread:
        ctx.exit(4 if leaks else 1)


def _places(bank: Bank) -> list[Path]:
    """The bank's folder and the lanes that lie outside it."""
    roots = [bank.root, *(bank.config.lane_root(name) for name in NAMES)]
    return [
        root for root in dict.fromkeys(roots) if root.exists() and (root == bank.root or bank.root not in root.parents)
    ]
