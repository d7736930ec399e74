"""`memlane log --sessions`: what hooks told an agent in each session, and what they kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.history import sessions as log_
from memlane.surfaces.cli.options import limit_option, with_bank
from memlane.surfaces.cli.output import print_json, print_result, print_rows, print_text, say

SHORT = 8  # characters of a session's id that are shown, unless it takes more to tell it from the others


@click.command()
@click.argument("session", required=False)
@click.option("--sessions", is_flag=True, expose_value=False, help="By session, as it always is.")
@click.option("--show", is_flag=True, help="Of one SESSION: also the text that it was given, as its client got it.")
@limit_option(10, help="At most so many sessions.")
@with_bank
def log(bank: Bank, session: str | None, show: bool, limit: int, as_json: bool) -> None:
    """List the latest sessions of this bank, or tell all about one SESSION (the beginning of its id is enough).

    Of each: what it was given when it started and for each prompt, how many tokens that was and why it was chosen;
    the prompts that got nothing, and why; what was captured and distilled. The hooks write this log, for you alone to
    read; it has the newest 200 sessions. With `hook.log = false` it has ids and numbers only. Changes are in
    `memlane history`.

    \b
    $ memlane log --sessions
    $ memlane log --sessions 3f9a1c0b --show
    $ memlane log --sessions -n 1 --json
    """
    if session is not None:
        found = log_.session(bank, session)
        if as_json:
            print_json(found)
        else:
            _print_whole(found, show)
        return
    if show:
        raise click.UsageError("--show needs a SESSION; `memlane log --sessions` lists them.")
    listed = log_.sessions(bank, limit)
    none = "no session has been logged here yet; `memlane connect` shows whether a client is connected"
    ids = {one.id for one in listed}
    length = next((size for size in range(SHORT, 200) if len({id[:size] for id in ids}) == len(ids)), 200)
    print_result(listed, as_json, ((one.id[:length], *facts(one)) for one in listed), "" if listed else none)


def facts(session: log_.Session) -> Sequence[str]:
    answered = sum(bool(event.given) for event in session.prompts)
    at_start = [event for event in session.events if event.event == log_.START]
    parts = [f"started with {_amount(at_start[-1])}"] if at_start else []
    parts += [f"memory for {answered} of {_counted(len(session.prompts), 'prompt')}"] if session.prompts else []
    moments = sum(len(event.given) for event in session.events if event.event == "tool")
    parts += [f"{_counted(moments, 'memory', 'memories')} for tool calls"] if moments else []
    parts += _kept(session.events)
    failed = sum(bool(event.failed) for event in session.events)
    parts += [f"{failed} failed"] if failed else []
    return iso(session.started) or "", session.client, session.branch, "; ".join(parts)


def _amount(event: log_.Event) -> str:
    if not event.given:
        return "nothing"
    return f"{_counted(len(event.given), 'memory', 'memories')}, {_counted(event.tokens, 'token')}"


def _counted(count: int, noun: str, several: str = "") -> str:
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def _kept(events: Sequence[log_.Event]) -> list[str]:
    counts = {
        "captured": sum(len(event.captured) for event in events),
        "distilled": sum(len(event.distilled) for event in events),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _print_whole(session: log_.Session, show: bool) -> None:
    say(" · ".join(filter(None, (session.id, session.client, session.project, session.branch))))
    for event in session.events:
        print_rows([(iso(event.at) or "", event.event, _told(event), event.prompt)])
        print_rows(_items(event))
        if show and event.block:
            print_text(event.block)


def _told(event: log_.Event) -> str:
    if event.failed:
        return f"failed: {event.failed}"
    if event.event in (log_.START, "prompt", "tool"):
        return f"given {_amount(event)}{f': {event.why_nothing}' if event.why_nothing else ''}"
    return ", ".join(_kept([event])) or "nothing new"


def _items(event: log_.Event) -> Iterator[Sequence[str]]:
    for item in event.given:
        relevance = f" ({item.relevance:.2f})" if item.relevance is not None else ""
        yield "", item.id, f"{item.why}{relevance}{f', {item.verdict}' if item.verdict else ''}", item.title
    for what, items in (("captured", event.captured), ("distilled", event.distilled)):
        for item in items:
            yield "", item.id, what, item.title
