"""`memlane capture`: keep what the assistant said in a client's transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click

from memlane.bank import Bank
from memlane.capture import transcript_file
from memlane.capture.messages import Captured
from memlane.capture.messages import capture as capture_one
from memlane.capture.transcripts import KINDS
from memlane.core.errors import MemlaneError
from memlane.surfaces.cli.options import with_bank
from memlane.surfaces.cli.output import print_result, say
from memlane.surfaces.cli.progress import added, megabytes


@click.command()
@click.argument("transcripts", metavar="TRANSCRIPT...", nargs=-1, required=True)
@click.option("--from", "kind", type=click.Choice(KINDS), help="The transcript's format, when it is not recognised.")
@click.option("--dry-run", is_flag=True, help="Show what would be captured; store nothing.")
@with_bank
def capture(bank: Bank, transcripts: tuple[str, ...], kind: str | None, dry_run: bool, as_json: bool) -> None:
    """Store the assistant's messages of a TRANSCRIPT as records: those with two lines or more, whole, each once.

    A folder stands for every .jsonl and .json file in it.

    \b
    $ memlane capture ~/.claude/projects/-home-me-app
    $ memlane capture ~/.claude/projects/-home-me-app/*.jsonl --dry-run
    $ memlane capture rollout.jsonl --from codex
    """
    total = Captured()
    first_error: MemlaneError | None = None
    for transcript, alone in each(transcripts):
        size = os.path.getsize(transcript) if os.path.isfile(transcript) else 0
        with added(os.path.basename(transcript), size, megabytes) as advance:
            try:
                total += capture_one(bank, transcript, kind=kind, dry_run=dry_run, advance=advance)
            except MemlaneError as error:
                first_error = passed_over(error, alone) or first_error
    rows = ((record.id, record.occurred_at, record.applies_to, record.subject) for record in total.records)
    print_result(total, as_json, rows, _summary(total, dry_run))
    if first_error:
        click.get_current_context().exit(first_error.exit_code)


def each(transcripts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Every transcript that is named, those of a folder one by one; and whether it was named alone."""
    for named in transcripts:
        for found in transcript_file.within(named):
            yield found, len(transcripts) == 1 and found == named


def passed_over(error: MemlaneError, alone: bool) -> MemlaneError | None:
    """Tell of a file that could not be read while others can; None when it is merely no transcript. Raises the error
    of a file that was named alone."""
    if alone:
        raise error
    say(f"error: {error}" if error.code != "no_transcript" else f"note: {error}")
    return error if error.code != "no_transcript" else None


def _summary(total: Captured, dry_run: bool) -> str:
    reasons = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in total.skipped.items())
    parts = [
        f"{total.captured} {'would be captured' if dry_run else 'captured'}",
        *([f"{total.known} known"] if total.known else []),
        *([f"{total.refused} refused by the gate"] if total.refused else []),
        *([f"skipped: {reasons}"] if reasons else []),
    ]
    return "; ".join(parts)
