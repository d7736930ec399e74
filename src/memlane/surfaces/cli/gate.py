"""`memlane gate`: what may be remembered."""

from __future__ import annotations

import sys
from typing import Any

import click

from memlane.bank import Bank
from memlane.config import allowing
from memlane.core.errors import Refused
from memlane.core.instructions import suspicious
from memlane.lanes import NAMES
from memlane.surfaces.cli.add import field_option, fields_of
from memlane.surfaces.cli.options import text_argument, with_bank
from memlane.surfaces.cli.output import print_json, print_line, print_result, say, say_notes, take_text


@click.group()
def gate() -> None:
    """The gate: the checks a text passes before it is stored.

    \b
    $ memlane gate show
    """


@gate.command()
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
    rows = (
        (name, str(number), check["check"], check["what"])
        for name, checks in table.items()
        for number, check in enumerate(checks, 1)
    )
    print_result(table, as_json, rows)


@gate.command()
@text_argument
@click.option("--lane", type=click.Choice(NAMES), default="notes", show_default=True)
@click.option("--title")
@click.option("--scope")
@field_option
@click.pass_context
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
            print_line(str(refusal))
            say(f"next: {refusal.hint} {refusal.way_to_allow}".rstrip())
        ctx.exit(4)
    marks = list(suspicious(draft.text))
    if as_json:
        print_json({"accepted": True, "remarks": list(draft.remarks), "suspicious": marks})
        return
    click.echo(f"{lane} would store it.")
    say_notes(draft.remarks)
    for mark in marks:
        say(f"suspicious: it {mark}")


@gate.command()
@click.argument("fingerprints", nargs=-1, required=True, metavar="FINGERPRINT...")
@click.option("--reason", required=True, help="Why it may be stored and shown; kept beside it.")
@click.option("--user", is_flag=True, help="For all your projects, in your own configuration.")
@with_bank
def allow(bank: Bank, fingerprints: tuple[str, ...], reason: str, user: bool, as_json: bool) -> None:
    """Let pass what the gate took for a secret; a refusal and `memlane doctor --only secrets` print its FINGERPRINT.

    Asks a person at a terminal: a program cannot allow itself anything. Writes `[[allow]]` into the project's
    memlane.toml, so that it holds for everybody who trusts the project.

    \b
    $ memlane gate allow ssn@7f3a-9c21b --reason "Latencies by region."
    """
    path = allowing.file_for(bank.config, user=user)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            "Only a person can allow that: there is no terminal to ask at.",
            check="secrets",
            code="needs_person",
            hint="Type the command in a terminal.",
        )
    for name in fingerprints:
        say(f"{name} in {path}: {reason}")
    if not click.confirm("May it be stored, and shown to agents, from now on?", default=False, err=True):
        say("nothing changed")
        click.get_current_context().exit(4)
    allowing.allow(bank.config, fingerprints, reason, user=user)
    print_result({"path": str(path), "allowed": list(fingerprints)}, as_json, talk=f"allowed in {path}")
