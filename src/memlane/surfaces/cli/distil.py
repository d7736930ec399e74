"""`memlane distil`: what a colleague would want to know of a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memlane.capture.transcripts import KINDS
from memlane.core.errors import MemlaneError
from memlane.surfaces.cli.capture import each, passed_over
from memlane.surfaces.cli.options import as_json, open_bank
from memlane.surfaces.cli.output import print_line, print_result, print_rows, say, to_json

if TYPE_CHECKING:
    from memlane.capture.distil.candidates import Candidate
    from memlane.capture.distil.session import Session
    from memlane.care.distilled import Stored


@click.command()
@click.argument("transcripts", metavar="TRANSCRIPT...", nargs=-1, required=True)
@click.option("--from", "kind", type=click.Choice(KINDS), help="The transcript's format, when it is not recognised.")
@click.option("--store", "stores", is_flag=True, help="Remember them, as notes that nobody has confirmed yet.")
@click.option("--explain", is_flag=True, help="Say of each candidate where it comes from, and what spoke for it.")
@as_json
def distil(transcripts: tuple[str, ...], kind: str | None, stores: bool, explain: bool, as_json: bool) -> None:
    """Print what is worth remembering of a TRANSCRIPT: lessons, decisions, preferences, rules, facts, commands and open
    work. Stores nothing without --store.

    Reads what you said, answers to questions, summaries, the assistant's conclusions, and commands that failed and then
    worked. With --json, prints one candidate a line. A folder stands for every .jsonl and .json file in it.

    --store writes private notes, which git does not take, with the tag `unconfirmed`. They rank below what was written
    on purpose. `memlane review --only unconfirmed` goes through them.

    \b
    $ memlane distil session.jsonl
    $ memlane distil ~/.claude/projects/-home-me-app --json
    $ memlane distil session.jsonl --explain
    $ memlane distil session.jsonl --store
    """
    from memlane.capture.distil.candidates import distil as candidates_of
    from memlane.capture.distil.session import Session

    errors: list[MemlaneError] = []

    def found() -> Iterator[tuple[str, list[Candidate], Session]]:
        for transcript, alone in each(transcripts):
            session = Session()
            try:
                yield transcript, candidates_of(transcript, kind=kind, session=session), session
            except MemlaneError as error:
                errors.extend(filter(None, [passed_over(error, alone)]))

    if stores:
        _print_stored(_stored(found()), as_json)
    else:
        _print(found(), explain, as_json)
    if errors:
        click.get_current_context().exit(errors[0].exit_code)


def _print(found: Iterator[tuple[str, list[Candidate], Session]], explain: bool, as_json: bool) -> None:
    count = 0
    for transcript, candidates, _ in found:
        for one in candidates:
            count += 1
            if as_json:
                print_line(to_json({"transcript": transcript, **one.to_dict(explain)}))
                continue
            lines = ",".join(map(str, one.lines))
            print_rows([(one.type, f"{one.confidence:.2f}", f"{transcript}:{lines}", one.text)])
            if explain:
                signs = ", ".join(f"{name} {value:+.2f}" for name, value in list(one.signs.items())[:8])
                print_rows([("", "", one.rule, signs)])
    if not as_json:
        say(f"{_counted(count)}; nothing was stored")


def _counted(count: int) -> str:
    return f"{count:,} candidate{'' if count == 1 else 's'}"


def _stored(found: Iterator[tuple[str, list[Candidate], Session]]) -> Stored:
    from memlane.care.distilled import Stored, store

    total = Stored()
    with open_bank(click.get_current_context()) as bank:
        for _, candidates, session in found:
            total += store(bank, candidates, session.done)
    return total


def _print_stored(total: Stored, as_json: bool) -> None:
    parts = [f"{len(total.memories)} stored; `memlane review --only unconfirmed` goes through them"]
    parts += [f"{len(total.proposed)} would take the place of a memory: decide there"] if total.proposed else []
    parts += [f"{len(total.closed)} open closed"] if total.closed else []
    parts += [f"{total.known} known"] if total.known else []
    parts += [f"{total.deleted} rejected or deleted before"] if total.deleted else []
    parts += [f"{total.refused} refused by the gate"] if total.refused else []
    rows = ((memory.id, memory.tags[0], memory.title) for memory in total.memories)
    print_result(total, as_json, rows, "; ".join(parts))
