"""`memlane judge`: what you think of what your agent was told."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.recall import judged
from memlane.surfaces.cli.options import complete_id, with_bank
from memlane.surfaces.cli.output import print_json, print_result, say

_DONE = {
    judged.USEFUL: "it counts in `memlane stats`",
    judged.WRONG: "no prompt gets it unasked until it says something else; `memlane review --only wrong` lists it",
    judged.NEVER: "no prompt gets it unasked any more; a search still finds it",
    None: "it is given again as before",
}


@click.command()
@click.argument("id", required=False, shell_complete=complete_id)
@click.argument("verdict", required=False, type=click.Choice((*judged.VERDICTS, "none")))
@click.option("--session", metavar="SESSION", help="The session that was given it; otherwise the last that was.")
@click.option("--at", metavar="TIME", help="When it was given it, as `memlane log --sessions SESSION` says.")
@with_bank
def judge(bank: Bank, id: str | None, verdict: str | None, session: str | None, at: str | None, as_json: bool) -> None:
    """Say what you think of a memory that your agent was given: useful, wrong, or never again; none takes it back.

    never: no prompt gets it unasked any more. wrong: not until it says something else, and `memlane review` lists it.
    A search finds it all the same. It is your own opinion, kept in your state folder: no file of the bank changes.
    Without a VERDICT, list what was said of ID, or of all memories.

    \b
    $ memlane judge notes:deploy-day useful
    $ memlane judge notes:old-plan never
    $ memlane judge notes:old-plan none
    $ memlane judge
    """
    if id is None or verdict is None:
        if session or at:
            raise click.UsageError("--session and --at need an ID and a VERDICT.")
        given = [one for one in judged.answers(bank) if id is None or one.id == bank.get(id).id]
        rows = ((one.id, one.verdict or "", iso(one.at) or "", one.session) for one in given)
        print_result(given, as_json, rows, "" if given else "nothing has been judged yet")
        return
    one = bank.judge(id, None if verdict == "none" else verdict, session=session, at=at)
    if as_json:
        print_json(one)
    else:
        say(f"{one.id}: {_DONE[one.verdict]}")
