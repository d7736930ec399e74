"""`memlane distil`: what a colleague would want to know of a session."""

from __future__ import annotations

import click

from memlane.capture.transcripts import KINDS
from memlane.core.errors import MemlaneError
from memlane.surfaces.cli.capture import each, passed_over
from memlane.surfaces.cli.options import as_json
from memlane.surfaces.cli.output import print_line, print_rows, say, to_json


@click.command()
@click.argument("transcripts", metavar="TRANSCRIPT...", nargs=-1, required=True)
@click.option("--from", "kind", type=click.Choice(KINDS), help="The transcript's format, when it is not recognised.")
@click.option("--explain", is_flag=True, help="Say of each candidate where it comes from, and what spoke for it.")
@as_json
def distil(transcripts: tuple[str, ...], kind: str | None, explain: bool, as_json: bool) -> None:
    """Print what is worth remembering of a TRANSCRIPT: lessons, decisions, preferences, rules, facts, commands and open
    work. Stores nothing.

    Reads what you said, answers to questions, summaries, the assistant's conclusions, and commands that failed and then
    worked. With --json, prints one candidate a line. A folder stands for every .jsonl and .json file in it.

    \b
    $ memlane distil session.jsonl
    $ memlane distil ~/.claude/projects/-home-me-app --json
    $ memlane distil session.jsonl --explain
    """
    from memlane.capture.distil.candidates import distil as candidates_of

    first_error: MemlaneError | None = None
    count = 0
    for transcript, alone in each(transcripts):
        try:
            found = candidates_of(transcript, kind=kind)
        except MemlaneError as error:
            first_error = passed_over(error, alone) or first_error
            continue
        count += len(found)
        for one in found:
            if as_json:
                print_line(to_json({"transcript": transcript, **one.to_dict(explain)}))
                continue
            lines = ",".join(map(str, one.lines))
            print_rows([(one.type, f"{one.confidence:.2f}", f"{transcript}:{lines}", one.text)])
            if explain:
                signs = ", ".join(f"{name} {value:+.2f}" for name, value in list(one.signs.items())[:8])
                print_rows([("", "", one.rule, signs)])
    if not as_json:
        say(f"{count} candidates; nothing was stored")
    if first_error:
        click.get_current_context().exit(first_error.exit_code)
