"""Learning from past sessions: a part of `memlane init`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from memlane import config
from memlane.bank import Bank
from memlane.capture.clients import Past
from memlane.care import backfill
from memlane.care.backfill import Learned
from memlane.disk import journal
from memlane.surfaces.cli.output import guarded_by, print_rows, say
from memlane.surfaces.cli.progress import added, megabytes

_TITLES = {"claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "opencode"}
_WIDE = 100  # characters of what was learned


def backfilled(settings: config.Config, wanted: bool) -> dict[str, Any]:
    """What there is to learn from, and with a yes, what was learned: for programs."""
    with Bank(settings) as bank:
        guarded_by(bank.guard)
        past = backfill.unread(bank)
        counts = backfill.counted(past).items()
        found = [{"client": client, "sessions": count, "bytes": size} for client, (count, size) in counts]
        return {"past": found} | ({"learned": _learn(bank, past).to_dict()} if wanted else {})


def backfill_here(settings: config.Config, wanted: bool) -> None:
    """Say what there is to learn from, ask on a terminal unless it is wanted, and tell what was learned."""
    with Bank(settings) as bank:
        guarded_by(bank.guard)
        past = backfill.unread(bank)
        if not past:
            if wanted:
                say("no past sessions of this project were found that hold something new")
            return
        say(f"past sessions of this project: {_described(past)}")
        if not wanted and not (sys.stdin.isatty() and sys.stderr.isatty()):
            say("`memlane init --backfill` learns from them: into private notes, which git does not take")
            return
        if wanted or click.confirm("Learn from them, into private notes that git does not take?", err=True):
            _tell(bank, _learn(bank, past))


def _described(past: Sequence[Past]) -> str:
    return ", ".join(
        f"{count:,} of {_TITLES[client]} ({_size(size)})" for client, (count, size) in backfill.counted(past).items()
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{max(count // 1000, 1)} KB"


def _learn(bank: Bank, past: Sequence[Past]) -> Learned:
    """Learn from past sessions, telling a terminal how far it is: one change, which `memlane undo` takes back."""
    try:
        size = sum(one.size for one in past)
        with journal.acting("cli"), journal.change("init --backfill"), added("learning", size, megabytes) as advance:
            return backfill.learn(bank, past, advance)
    except KeyboardInterrupt:
        say("stopped: what was learned is kept, and `memlane init --backfill` goes on from there")
        raise


def _tell(bank: Bank, learned: Learned) -> None:
    best = backfill.best(bank, learned)
    print_rows((memory.id, memory.tags[0], _cut(" ".join(memory.text.split()))) for memory in best)
    stored = learned.stored
    parts = [f"{len(stored.memories):,} learned from {learned.read:,} session{'s'[: learned.read != 1]}"]
    parts += [f"{learned.failed:,} could not be read"] if learned.failed else []
    parts += [f"{stored.known:,} known"] if stored.known else []
    parts += [f"{stored.deleted:,} deleted before"] if stored.deleted else []
    parts += [f"{stored.refused:,} refused by the gate"] if stored.refused else []
    say("; ".join(parts))
    if stored.memories:
        say(f"they are private notes in {backfill.place(bank)}, the best of them above")
        say("next: `memlane review --only unconfirmed` goes through them; `memlane undo` takes them back")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
