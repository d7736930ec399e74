"""`memlane fresh`: whether the code that memories speak of has changed since."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import ids_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_rows, say, say_notes


@click.command()
@ids_argument(required=False)
@click.option("--accept", "accept_", is_flag=True, help="These memories are right about the code as it is now.")
@click.option("--accept-all", is_flag=True, help="All memories are.")
@click.option("--all", "everything", is_flag=True, help="List what is fresh, too; --json always does.")
@click.option("--check", is_flag=True, help="End with exit code 6 when something is not fresh.")
@with_bank
def fresh(
    bank: Bank, ids: tuple[str, ...], accept_: bool, accept_all: bool, everything: bool, check: bool, as_json: bool
) -> None:
    """Compare the code that memories speak of with what it was when they were written.

    fresh: as it was. drifted: the file, or the symbol that is named, has changed. moved: it is in another file now.
    orphaned: it is gone. Nothing but --accept, or writing the memory anew, makes it fresh again. A memory that names
    code and was never compared, such as one that came by git, is compared from now on.

    \b
    $ memlane fresh
    $ memlane fresh --accept notes:auth-plan
    """
    from memlane.care.fresh.verdicts import FRESH, MOVED, accept, report

    if accept_ and accept_all:
        raise click.UsageError("Give --accept with ids, or --accept-all.")
    if accept_ and not ids:
        raise click.UsageError("--accept needs the ids of memories; --accept-all means all of them.")
    chosen = list(ids) or None
    result = accept(bank, chosen) if accept_ or accept_all else report(bank, chosen)
    not_fresh = [verdict for verdict in result.verdicts if verdict.verdict != FRESH]
    if as_json:
        print_json(result)
    else:
        for verdict in result.verdicts if everything or ids else not_fresh:
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
        if any(verdict.verdict == MOVED for verdict in not_fresh):
            say("`memlane fresh --accept ID` follows what has moved, and says that the memory is right")
        elif not_fresh:
            say("look, mend the memory if it is wrong, then `memlane fresh --accept ID`")
    if check and not_fresh:
        click.get_current_context().exit(6)
