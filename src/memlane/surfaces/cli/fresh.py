"""`memlane fresh`: whether the code that memories speak of is still what it was."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.surfaces.cli.output import as_json, ids_argument, print_json, print_rows, say, with_bank


@click.command()
@ids_argument(required=False)
@click.option("--accept", "accept_", is_flag=True, help="These memories are right about the code as it is now.")
@click.option("--accept-all", is_flag=True, help="All memories are.")
@click.option("--all", "everything", is_flag=True, help="List what is fresh, too; --json always does.")
@click.option("--check", is_flag=True, help="End with exit code 6 when something is not fresh.")
@as_json
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
    found = accept(bank, chosen) if accept_ or accept_all else report(bank, chosen)
    open_ = [verdict for verdict in found.verdicts if verdict.verdict != FRESH]
    if as_json:
        print_json(found.to_dict())
    else:
        shown = found.verdicts if everything or ids else open_
        for verdict in shown:
            places = verdict.why or ", ".join(f"{f.target}:{f.symbol}".rstrip(":") for f in verdict.findings)
            print_rows([(verdict.id, verdict.verdict, places)])
            for finding in verdict.findings:
                for line in finding.diff.splitlines():
                    click.echo(f"    {line}")
        for remark in found.remarks:
            say(f"note: {remark}")
        if found.anchored:
            say(f"anchored now: {found.anchored:,}")
        say(
            ", ".join(f"{count:,} {word}" for word, count in found.counts().items() if count)
            or "nothing remembered yet"
        )
        if any(verdict.verdict == MOVED for verdict in open_):
            say("`memlane fresh --accept ID` follows what has moved, and says that the memory is right")
        elif open_:
            say("look, mend the memory if it is wrong, then `memlane fresh --accept ID`")
    if check and open_:
        click.get_current_context().exit(6)
