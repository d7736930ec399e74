"""What the user says of what a session was told, and how often memories were given and found useful."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlane import gate
from memlane.core.choosing import date_given
from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput, MemlaneError, NotFound
from memlane.core.model import USERS
from memlane.core.values import replace
from memlane.disk.written import by_user
from memlane.history import sessions
from memlane.recall import judged, under
from memlane.recall.judged import Judged

if TYPE_CHECKING:
    from memlane.bank import Bank

TOP = 10  # memories that are listed by how often they were given


def judge(bank: Bank, id: str, verdict: str | None, session: str | None, at: datetime | str | None) -> Judged:
    """As `Bank.judge`."""
    if verdict not in (None, *judged.VERDICTS):
        hint = f"Use one of: {', '.join(judged.VERDICTS)}; None takes it back."
        raise InvalidInput("There is no such verdict.", hint=hint)
    if not by_user():
        raise InvalidInput("An agent cannot judge what it was given.", hint="Do it in a terminal of your own.")
    memory, gone = None, None
    try:
        home, memory = under.found_in(bank, id)
        own = memory.id
    except NotFound as error:  # it may have been given and deleted
        (home, own), gone = under.home(bank, id), error
    named = own if home is bank else USERS + own
    told = _told(bank, named, session, date_given(at, "at"))
    before = [one for one in judged.answers(home) if one.id == own]
    if gone and not told and not before:
        raise gone
    now = utc_now().replace(microsecond=0)
    if verdict is None and session is None and at is None:
        for one in before:
            judged.note(home, Judged(own, None, now, one.session, one.told))
        return Judged(named, None, now)
    where, event, item = told or ("", None, None)
    said = (item.said if item else "") or (judged.said_by(memory) if memory else "")
    answer = Judged(own, verdict, now, where, event.at if event else None, said)
    judged.note(home, answer)
    return replace(answer, id=named)


def _told(
    bank: Bank, id: str, session: str | None, at: datetime | None
) -> tuple[str, sessions.Event, sessions.Item] | None:
    """The last time that a session, or this one, was given a memory: at this time, if one is given.

    None when none was. Raises NotFound where a session or a time is given and that was not so.
    """
    for one in sessions.sessions(bank) if session is None else [sessions.session(bank, session)]:
        for event in reversed(one.events):
            for item in event.given:
                if item.id == id and at in (None, event.at):
                    return one.id, event, item
    if session is None and at is None:
        return None
    raise NotFound(f"{gate.shown(id)} was not given then.", hint="`memlane log --sessions` shows what was, and when.")


def prompt_of(bank: Bank, one: Judged) -> str:
    """How the prompt began for which a memory was given that was judged; "" where that is not known, or any more."""
    try:
        events = sessions.session(bank, one.session).events if one.session else ()
    except MemlaneError:
        return ""
    return next((event.prompt for event in events if event.at == one.told and event.prompt), "")


def told(bank: Bank) -> dict[str, Any]:
    """What sessions were given unasked, as far as the log reaches back, and what the user said of it."""
    try:
        events = [event for one in sessions.sessions(bank) for event in one.events]
    except MemlaneError:  # there is no home folder, and so no log
        events = []
    given = [item for event in events for item in event.given]
    answers = Counter(item.verdict for item in given if item.verdict)
    useful = Counter(item.id for item in given if item.verdict == judged.USEFUL)
    prompts = [event for event in events if event.event == "prompt"]
    uses = sorted(Counter(item.id for item in given).items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "injections": len(given),
        "judged": answers.total(),
        "useful": answers[judged.USEFUL],
        "share_useful": round(answers[judged.USEFUL] / answers.total(), 2) if answers else None,
        "prompts": len(prompts),
        "prompts_without": sum(not event.given for event in prompts),
        "most_given": [{"id": id, "times": times, "useful": useful[id]} for id, times in uses[:TOP]],
    }
