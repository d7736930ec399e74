"""`memlane history`: the versions of a memory."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.history import versions as histories
from memlane.surfaces.cli.output import as_json, id_argument, print_json, print_rows, print_text, say, with_bank


@click.command()
@id_argument
@click.option("--show", "version", metavar="VERSION", help="Print the text of this version.")
@as_json
@with_bank
def history(bank: Bank, id: str, version: str | None, as_json: bool) -> None:
    """List the versions of a memory, the newest first; of a deleted one, too.

    Of a vault record: the lines of its log. Of any other memory: the commits of its file, where the bank is in git.

    \b
    $ memlane history notes:deploy-day
    $ memlane history vault:3f9a1c0b7d2e --show 2
    """
    if version is not None:
        one = histories.show(bank, id, version)
        if as_json:
            print_json(one.to_dict())
        else:
            say(" · ".join(fact for fact in (one.version[:12], iso(one.at), one.author, one.what) if fact))
            print_text(one.text or "")
        return
    versions = histories.history(bank, id)
    if as_json:
        print_json([one.to_dict() for one in versions])
    else:
        if id.startswith("topics:"):
            say(f"note: these are the commits of {versions[0].path}, which holds more than this entry")
        print_rows(
            (one.version[:12], iso(one.at) or "", one.author or "", one.what, *([one.text] if one.text else []))
            for one in versions
        )
