"""What the user's agents were told and when, and what the user says of it."""

from __future__ import annotations

from typing import Any

from memlane.bank import Bank
from memlane.core.dates import iso
from memlane.core.errors import InvalidInput
from memlane.history import judging
from memlane.history import sessions as log
from memlane.surfaces.ui.asking import Asked, Question, number, text

AT_FIRST = 40  # sessions of the list


def listed(bank: Bank, asked: Asked) -> dict[str, Any]:
    """The latest sessions, in a line each."""
    limit = number(asked, "limit", AT_FIRST, log.KEPT)
    found = log.sessions(bank, limit)
    return {"sessions": [_brief(one) for one in found], "more": len(found) == limit}


def _brief(one: log.Session) -> dict[str, Any]:
    prompts = one.prompts
    return {
        "id": one.id,
        "client": one.client,
        "branch": one.branch,
        "started": iso(one.started),
        "last": iso(one.events[-1].at),
        "title": next((event.prompt for event in prompts if event.prompt), ""),
        "prompts": len(prompts),
        "without": sum(not event.given for event in prompts),
        "given": sum(len(event.given) for event in one.events),
        "tokens": sum(event.tokens for event in one.events),
        "captured": sum(len(event.captured) for event in one.events),
        "distilled": sum(len(event.distilled) for event in one.events),
        "failed": sum(bool(event.failed) for event in one.events),
    }


def session(bank: Bank, asked: Asked) -> dict[str, Any]:
    """All that is known of one. Without words where the user wants none in the log."""
    one = log.session(bank, text(asked, "id"))
    return {**_brief(one), **one.to_dict(), "words": bool(bank.config["hook.log"])}


def told(bank: Bank, asked: Asked) -> dict[str, Any]:
    """All sessions together, and how useful what they were given was."""
    return judging.told(bank)


def judge(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Say of a memory that a session was given what it was worth; no verdict takes it back."""
    verdict = asked.get("verdict")
    if verdict is not None and not isinstance(verdict, str):
        raise InvalidInput("There is no such verdict.", hint="Load the page anew.")
    answer = bank.judge(text(asked, "id"), verdict, session=text(asked, "session"), at=text(asked, "at"))
    return {"verdict": answer.verdict or ""}


READS: dict[str, Question] = {"sessions": listed, "session": session, "told": told}
WRITES: dict[str, Question] = {"judge": judge}
